import io

import pytest

from skillhall._internal.cli.progress import scan_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_progress_is_not_shown_in_a_pipe() -> None:
    with scan_progress(io.StringIO()) as progress:
        assert progress is None


def test_progress_is_not_shown_for_short_scans() -> None:
    stream = Terminal()
    with scan_progress(stream, clock=lambda: 0.0) as progress:
        assert progress is not None
        progress(256)
    assert stream.getvalue() == ""


def test_long_scan_shows_progress_across_roots() -> None:
    stream = Terminal()
    times = iter([0.0, 0.1, 0.2, 0.9])
    with scan_progress(stream, clock=lambda: next(times)) as progress:
        assert progress is not None
        progress(512)
        progress(256)
        progress(1024)
    assert "1,536 skills found" in stream.getvalue()
    assert "\x1b[?25h" in stream.getvalue()  # the cursor is back
