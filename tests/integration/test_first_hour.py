"""One person on one machine notices nothing of approvals and policies, but one question."""

import re
from pathlib import Path

from tests.support.first_hour import RECORDING, FirstHour

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
# All that was added since the recording, for skills that the user added or created.
ADDITIONS = ('"trust": "approved"', "trust:          approved")
# Of the MCP server: a capability and a parameter of `load_skill`, which do not concern trust.
CAPABILITY = '   "completions": {},'
PARAMETER = re.compile(r' {6}"heading": \{\n {7}"description": .*\n {7}"type": .*\n {6}\},\n')


def test_first_hour_gives_the_output_of_the_version_without_trust(tmp_path: Path) -> None:
    transcript = PARAMETER.sub("", FirstHour(SOURCE, tmp_path.resolve()).run_all(), count=1)
    key, line = ADDITIONS
    added = {line, CAPABILITY}
    lines = [one.replace(f", {key}", "") for one in transcript.splitlines() if one not in added]
    assert lines == RECORDING.read_text(encoding="utf-8").splitlines()
