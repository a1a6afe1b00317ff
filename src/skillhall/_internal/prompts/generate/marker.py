"""Our mark on generated skills: one file beside them that says which are ours, and what they held.

It stands in the folder of skills, not in each skill: a copy that somebody makes of a generated
skill is not ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from skillhall._internal.fs.handles import open_root, read_beneath
from skillhall._internal.skill.bundle import RelativePath, sha256_of
from skillhall._internal.sources.server_api.prompt_client import Asked
from skillhall._internal.strict_json import NotJson, parse_json, render_json
from skillhall.errors import LockInvalid, NotAFile, SkillFileNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from skillhall._internal.skill.merge import FileState

MARK: Final = ".skillhall-generated.json"
VERSION: Final = 1
MAX_MARK: Final = 16 * 1024 * 1024  # bytes; ten thousand skills with ten files each
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MODES: Final[Mapping[object, bool]] = {"100644": False, "100755": True}  # as git writes them
_HINT = "take it back from version control, or remove it: what it names is then left alone"


class Held(NamedTuple):
    """One file as it was written."""

    sha256: str
    executable: bool


Files: TypeAlias = Mapping[str, Held]


class Origin(NamedTuple):
    """Whom a skill was generated from: the server, and what it was asked for."""

    server: str
    asked: Asked = Asked()


@dataclass(frozen=True, slots=True)
class Generated:
    """One generated skill."""

    prompt: str
    origin: Origin
    source: str  # what the server called it
    files: Files
    coming: Files | None = None  # what was about to take their place

    def is_as_written(self, files: Files) -> bool:
        """Whether nobody but us has changed the files."""
        return files in (self.files, self.coming)

    def becoming(self, files: Files, *, instead_of: Files) -> Generated:
        """The same, about to get other files: whichever of the two are found there are ours."""
        return replace(self, files=instead_of, coming=files)


def held_files(states: Mapping[str, FileState]) -> Files:
    """Files as the mark holds them."""
    return {
        path: Held(sha256_of(state.data), state.executable)
        for path, state in sorted(states.items())
    }


def read_mark(folder: str) -> dict[str, Generated]:
    """The generated skills by folder; none if there is no mark. Raises: LockInvalid, OSError."""
    root = open_root(folder)
    try:
        data = read_beneath(root, RelativePath.parse(MARK), MAX_MARK)
    except SkillFileNotFound:
        return {}
    except (UnsafePath, NotAFile, TooLarge):
        raise _invalid("it is not a file of ours") from None
    finally:
        root.close()
    try:
        return _parsed(parse_json(data, unique=True))
    except NotJson as error:
        raise _invalid(str(error)) from None
    except (TypeError, LookupError, AttributeError, ValueError, UnsafePath):
        raise _invalid("it is not what Skillhall writes") from None


def render_mark(skills: Mapping[str, Generated]) -> bytes:
    """The mark as it stands on the disk; the same skills give the same bytes."""
    whole = {"version": VERSION, "skills": {name: _entry(one) for name, one in skills.items()}}
    return render_json(whole, sort=True) + b"\n"


def _invalid(problem: str) -> LockInvalid:
    return LockInvalid(MARK, problem, _HINT)


def _entry(one: Generated) -> dict[str, object]:
    entry: dict[str, object] = {
        "prompt": one.prompt,
        "server": one.origin.server,
        "asked": {key: text for key, text in one.origin.asked._asdict().items() if text},
        "source": one.source,
        "files": _rendered(one.files),
    }
    if one.coming is not None:
        entry["coming"] = _rendered(one.coming)
    return entry


def _rendered(files: Files) -> dict[str, object]:
    modes = {executable: mode for mode, executable in _MODES.items()}
    return {
        path: {"sha256": held.sha256, "mode": modes[held.executable]}
        for path, held in files.items()
    }


def _parsed(value: object) -> dict[str, Generated]:
    whole = _object(value)
    version = whole["version"]
    if isinstance(version, int) and version > VERSION:
        raise _invalid("a newer Skillhall wrote it: update yours")
    if version != VERSION:
        raise ValueError
    skills = _object(whole["skills"])
    return {_folder(name): _generated(_object(one)) for name, one in sorted(skills.items())}


def _folder(name: str) -> str:
    path = RelativePath.parse(name)
    if len(path.parts) != 1 or path.text != name or name.startswith("."):
        raise ValueError
    return name


def _generated(one: Mapping[str, object]) -> Generated:
    asked = {key: _text(value) for key, value in _object(one["asked"]).items()}
    return Generated(
        _text(one["prompt"]),
        Origin(_text(one["server"]), Asked(**asked)),
        _text(one["source"]),
        _files(one["files"]),
        _files(one["coming"]) if "coming" in one else None,
    )


def _files(value: object) -> Files:
    return {path: _held(_object(one)) for path, one in sorted(_object(value).items())}


def _held(one: Mapping[str, object]) -> Held:
    digest = _text(one["sha256"])
    if not _SHA256.fullmatch(digest):
        raise ValueError
    return Held(digest, _MODES[one["mode"]])


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
