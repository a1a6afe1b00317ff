from pathlib import Path

import pytest

from tests.support.cli_sandbox import CliSandbox


@pytest.fixture
def sandbox(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CliSandbox:
    """Isolated home and working directory to run commands in."""
    return CliSandbox.make(tmp_path / "sandbox", capfd, monkeypatch)
