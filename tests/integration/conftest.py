from pathlib import Path

import pytest

from tests.support.cli_sandbox import CliSandbox


@pytest.fixture
def sandbox(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CliSandbox:
    """A machine in a folder, to run commands on."""
    return CliSandbox.make(tmp_path / "sandbox", capfd, monkeypatch)
