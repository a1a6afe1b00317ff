"""Sandbox for CLI commands that must be rejected without changing the disk."""

import json
import os
import stat
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill

# Documented exit codes by error code.
EXITS: Mapping[str, int] = {
    **dict.fromkeys(["invalid_skill", "invalid_config", "invalid_path", "not_a_file"], 3),
    **dict.fromkeys(["too_large", "archive_rejected", "source_rejected"], 3),
    "not_found": 4,
    **dict.fromkeys(["upstream_error", "upstream_timeout", "rate_limited"], 5),
    "conflict": 6,
    "storage_unavailable": 7,
    "unauthenticated": 8,
}
SECRETS: Mapping[str, str] = {
    "GITHUB_TOKEN": "ghp-0123-planted",
    "GITLAB_TOKEN": "glpat-0123-planted",
    "SKILLHALL_GIT_TOKEN": "git-0123-planted",
}
PASSWORD = "pa55-planted"  # noqa: S105 - fake
SECRET_TEXT = "content-planted"  # noqa: S105 - content of a file outside of the sources
ADD = ("add", "--yes")
IMPORT = ("local", "import", "--yes")
_PAUSE = threading.Event()


class CommandResult(NamedTuple):
    """Output and exit code of a command."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> Mapping[str, object]:
        """The JSON object on stdout."""
        [line] = self.out.splitlines()
        value = json.loads(line)
        assert isinstance(value, dict)
        return value

    @property
    def error(self) -> Mapping[str, str]:
        error = self.json["error"]
        assert isinstance(error, dict)
        return error


@dataclass(frozen=True)
class CliSandbox:
    """A project as working directory, with home, data folders and sources."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    @classmethod
    def make(
        cls, folder: Path, capture: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> "CliSandbox":
        for name in ("project", "home", "cache", "data", "temp", "sources", "outside"):
            (folder / name).mkdir(parents=True)
        (folder / "outside" / "secret.txt").write_text(SECRET_TEXT, encoding="utf-8")
        folders = {"HOME": "home", "SKILLHALL_CACHE_DIR": "cache", "SKILLHALL_DATA_DIR": "data"}
        for variable, name in (*folders.items(), ("TMPDIR", "temp")):
            monkeypatch.setenv(variable, str(folder / name))
        for variable, value in SECRETS.items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setattr(tempfile, "tempdir", str(folder / "temp"))
        monkeypatch.chdir(folder / "project")
        return cls(folder, capture, monkeypatch)

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def sources(self) -> Path:
        return self.folder / "sources"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    def skill(self, name: str = "pdf") -> str:
        """Create a valid skill and return its relative path."""
        make_skill(self.sources, name)
        return f"../sources/{name}"

    def source(self, name: str, data: bytes) -> str:
        """Write a file and return its relative path."""
        (self.sources / name).write_bytes(data)
        return f"../sources/{name}"

    def run(self, *arguments: str) -> CommandResult:
        """Run a command; check that it leaves no child processes."""
        self.capture.readouterr()
        before = _children()
        code = run(arguments)
        assert _wait_for_children(before)
        captured = self.capture.readouterr()
        return CommandResult(captured.out, captured.err, code)

    def check_rejected(
        self,
        command: Sequence[str],
        arguments: Sequence[str],
        code: str,
        *,
        ignored: Sequence[str] = (),
    ) -> CommandResult:
        """Check that a command is rejected with this error code, as text and as JSON.

        The disk must not change, except in `ignored` folders. Returns the JSON result.
        """
        before = snapshot(self.folder, ignored)
        text = self.run(*command, *arguments)
        assert_same(snapshot(self.folder, ignored), before)
        result = self.run(*command, "--json", *arguments)
        assert_same(snapshot(self.folder, ignored), before)
        assert (result.error["code"], result.code) == (code, EXITS[code]), result
        assert result.json["ok"] is False
        assert text.code == result.code, text
        self.check_output(text, arguments)
        self.check_output(result, arguments)
        return result

    def check_output(self, result: CommandResult, arguments: Sequence[str] = ()) -> None:
        """Check for secrets, tracebacks, absolute paths and control characters."""
        output = result.out + result.err
        assert "Traceback" not in output
        assert "internal error" not in output
        for secret in (*SECRETS.values(), PASSWORD, SECRET_TEXT):
            assert secret not in output
        for argument in arguments:
            output = output.replace(argument, "")
        assert str(self.folder) not in output, output
        assert all(c.isprintable() or c == "\n" for c in output), ascii(output)


def snapshot(folder: Path, without: Sequence[str] = ()) -> dict[str, tuple[int, bytes]]:
    """Return mode and content (or link target) of everything below a folder."""
    entries = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            relative = str(path.relative_to(folder))
            if not relative.startswith(tuple(f"{ignored}/" for ignored in without)):
                entries[relative] = (path.lstat().st_mode, _content(path))
    return entries


def _content(path: Path) -> bytes:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return os.fsencode(path.readlink())
    if not stat.S_ISREG(mode):
        return b""
    size = path.stat().st_size
    return path.read_bytes() if size < 50_000_000 else b"%d" % size


def assert_same(
    after: Mapping[str, tuple[int, bytes]], before: Mapping[str, tuple[int, bytes]]
) -> None:
    changed = {path for path in {*after, *before} if after.get(path) != before.get(path)}
    assert not changed, sorted(changed)


def _wait_for_children(before: set[str]) -> bool:
    # Servers that tests have started may need a moment to end their child processes.
    return any(_children() <= before or _PAUSE.wait(0.02) for _ in range(6000))


def _children() -> set[str]:
    """Return the ids of this process's children, including zombies."""
    ids: set[str] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            ids.update(file.read_text(encoding="ascii").split())
    return ids
