"""A machine in a folder for commands that are refused: what it held before, it holds after."""

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

# Exit codes by class, as people and scripts are promised them.
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
PASSWORD = "pa55-planted"  # noqa: S105 - of nobody
SECRET_TEXT = "content-planted"  # noqa: S105 - what a link out of a source leads to
ADD = ("add", "--yes")
IMPORT = ("local", "import", "--yes")
_PAUSE = threading.Event()


class CommandResult(NamedTuple):
    """What a command said, and the exit code."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> Mapping[str, object]:
        """The one JSON object on stdout."""
        [line] = self.out.splitlines()
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    @property
    def error(self) -> Mapping[str, str]:
        error = self.json["error"]
        assert isinstance(error, dict)
        return error


@dataclass(frozen=True)
class CliSandbox:
    """A project that commands run in, a home, all folders of ours, and sources beside them."""

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
        places = {"HOME": "home", "SKILLHALL_CACHE_DIR": "cache", "SKILLHALL_DATA_DIR": "data"}
        for variable, name in (*places.items(), ("TMPDIR", "temp")):
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
        """An honest skill among the sources, as a person would write its path."""
        make_skill(self.sources, name)
        return f"../sources/{name}"

    def source(self, name: str, data: bytes) -> str:
        """A file among the sources, as a person would write its path."""
        (self.sources / name).write_bytes(data)
        return f"../sources/{name}"

    def run(self, *arguments: str) -> CommandResult:
        """Run a command to its end; nothing that it started is left."""
        self.capture.readouterr()
        before = _children()
        code = run(arguments)
        assert _wait_for_children(before)
        told = self.capture.readouterr()
        return CommandResult(told.out, told.err, code)

    def check_rejected(
        self,
        command: Sequence[str],
        arguments: Sequence[str],
        code: str,
        *,
        ignored: Sequence[str] = (),
    ) -> CommandResult:
        """The answer of a command that must be refused with that class, as text and as JSON.

        Nothing on the disk is another after it, but in the folders that may keep something.
        """
        before = snapshot(self.folder, ignored)
        text = self.run(*command, *arguments)
        assert_same(snapshot(self.folder, ignored), before)
        told = self.run(*command, "--json", *arguments)
        assert_same(snapshot(self.folder, ignored), before)
        assert (told.error["code"], told.code) == (code, EXITS[code]), told
        assert told.json["ok"] is False
        assert text.code == told.code, text
        for one in (text, told):
            self.check_output(one, arguments)
        return told

    def check_output(self, result: CommandResult, arguments: Sequence[str] = ()) -> None:
        """Nothing that is said is a secret, a trace, a path that nobody typed, or a control."""
        said = result.out + result.err
        assert "Traceback" not in said
        assert "internal error" not in said
        for secret in (*SECRETS.values(), PASSWORD, SECRET_TEXT):
            assert secret not in said
        for word in arguments:
            said = said.replace(word, "")
        assert str(self.folder) not in said, said
        assert all(c.isprintable() or c == "\n" for c in said), ascii(said)


def snapshot(folder: Path, without: Sequence[str] = ()) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder: its kind and mode, and its bytes or where it leads."""
    found = {}
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(above, name)
            short = str(path.relative_to(folder))
            if not short.startswith(tuple(f"{place}/" for place in without)):
                found[short] = (path.lstat().st_mode, _content(path))
    return found


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
    """The difference is named if there is one."""
    changed = {path for path in {*after, *before} if after.get(path) != before.get(path)}
    assert not changed, sorted(changed)


def _wait_for_children(before: set[str]) -> bool:
    """Whether no other process is left; servers of the tests may take a moment to end theirs."""
    return any(_children() <= before or _PAUSE.wait(0.02) for _ in range(6000))


def _children() -> set[str]:
    """The ids of this process's children, of those too that ended and were not asked how."""
    found: set[str] = set()
    for one in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            found.update(one.read_text(encoding="ascii").split())
    return found
