from pathlib import Path

import pytest

from tests.support.cli_sandbox import Sandbox


@pytest.fixture
def sandbox(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Sandbox:
    """A machine in a folder, to run commands on."""
    return Sandbox.make(tmp_path / "sandbox", capfd, monkeypatch)
