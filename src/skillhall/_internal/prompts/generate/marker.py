"""Our mark on generated skills: one file beside them that says which are ours, and what they held.

It stands in the folder of skills, not in each skill: a copy that somebody makes of a generated
skill is not ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.skill.bundle import RelativePath, sha256_hex
from skillhall._internal.sources.server_api.prompt_client import RemoteSourceSelector
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json
from skillhall.errors import LockInvalid, NotAFile, SkillFileNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from skillhall._internal.skill.merge import FileState

MARKER_FILE: Final = ".skillhall-generated.json"
VERSION: Final = 1
MAX_MARKER_SIZE: Final = 16 * 1024 * 1024  # bytes; ten thousand skills with ten files each
_SHA256 = re.compile(r"[0-9a-f]{64}")
_EXECUTABLE_BY_MODE: Final[Mapping[object, bool]] = {
    "100644": False,
    "100755": True,
}  # as git writes them
_HINT = "take it back from version control, or remove it: what it names is then left alone"


class GeneratedFile(NamedTuple):
    """One file as it was written."""

    sha256: str
    executable: bool


GeneratedFiles: TypeAlias = Mapping[str, GeneratedFile]


class PromptOrigin(NamedTuple):
    """Whom a skill was generated from: the server, and what it was asked for."""

    server: str
    selector: RemoteSourceSelector = RemoteSourceSelector()


@dataclass(frozen=True, slots=True)
class GeneratedSkill:
    """One generated skill."""

    prompt: str
    origin: PromptOrigin
    source: str  # what the server called it
    files: GeneratedFiles
    pending_files: GeneratedFiles | None = None  # what was about to take their place

    def is_unmodified(self, files: GeneratedFiles) -> bool:
        """Whether nobody but us has changed the files."""
        return files in (self.files, self.pending_files)

    def with_pending_files(
        self, files: GeneratedFiles, *, current_files: GeneratedFiles
    ) -> GeneratedSkill:
        """The same, about to get other files: whichever of the two are found there are ours."""
        return replace(self, files=current_files, pending_files=files)


def to_generated_files(states: Mapping[str, FileState]) -> GeneratedFiles:
    """Files as the mark holds them."""
    return {
        path: GeneratedFile(sha256_hex(state.data), state.executable)
        for path, state in sorted(states.items())
    }


def read_marker(folder: str) -> dict[str, GeneratedSkill]:
    """The generated skills by folder; none if there is no mark. Raises: LockInvalid, OSError."""
    root = open_root(folder)
    try:
        data = read_below(root, RelativePath.parse(MARKER_FILE), MAX_MARKER_SIZE)
    except SkillFileNotFound:
        return {}
    except (UnsafePath, NotAFile, TooLarge):
        raise _build_marker_error("it is not a file of ours") from None
    finally:
        root.close()
    try:
        return _parse_marker(parse_json(data, unique_keys=True))
    except InvalidJson as error:
        raise _build_marker_error(str(error)) from None
    except (TypeError, LookupError, AttributeError, ValueError, UnsafePath):
        raise _build_marker_error("it is not what Skillhall writes") from None


def render_marker(skills: Mapping[str, GeneratedSkill]) -> bytes:
    """The mark as it stands on the disk; the same skills give the same bytes."""
    whole = {
        "version": VERSION,
        "skills": {name: _serialize_skill(one) for name, one in skills.items()},
    }
    return render_json(whole, sort_keys=True) + b"\n"


def _build_marker_error(problem: str) -> LockInvalid:
    return LockInvalid(MARKER_FILE, problem, _HINT)


def _serialize_skill(one: GeneratedSkill) -> dict[str, object]:
    entry: dict[str, object] = {
        "prompt": one.prompt,
        "server": one.origin.server,
        "asked": {key: text for key, text in one.origin.selector._asdict().items() if text},
        "source": one.source,
        "files": _serialize_files(one.files),
    }
    if one.pending_files is not None:
        entry["coming"] = _serialize_files(one.pending_files)
    return entry


def _serialize_files(files: GeneratedFiles) -> dict[str, object]:
    modes = {executable: mode for mode, executable in _EXECUTABLE_BY_MODE.items()}
    return {
        path: {"sha256": held.sha256, "mode": modes[held.executable]}
        for path, held in files.items()
    }


def _parse_marker(value: object) -> dict[str, GeneratedSkill]:
    whole = _require_object(value)
    version = whole["version"]
    if isinstance(version, int) and version > VERSION:
        raise _build_marker_error("a newer Skillhall wrote it: update yours")
    if version != VERSION:
        raise ValueError
    skills = _require_object(whole["skills"])
    return {
        _check_folder_name(name): _parse_generated_skill(_require_object(one))
        for name, one in sorted(skills.items())
    }


def _check_folder_name(name: str) -> str:
    path = RelativePath.parse(name)
    if len(path.parts) != 1 or path.text != name or name.startswith("."):
        raise ValueError
    return name


def _parse_generated_skill(one: Mapping[str, object]) -> GeneratedSkill:
    asked = {key: _require_text(value) for key, value in _require_object(one["asked"]).items()}
    return GeneratedSkill(
        _require_text(one["prompt"]),
        PromptOrigin(_require_text(one["server"]), RemoteSourceSelector(**asked)),
        _require_text(one["source"]),
        _parse_files(one["files"]),
        _parse_files(one["coming"]) if "coming" in one else None,
    )


def _parse_files(value: object) -> GeneratedFiles:
    return {
        path: _parse_file(_require_object(one))
        for path, one in sorted(_require_object(value).items())
    }


def _parse_file(one: Mapping[str, object]) -> GeneratedFile:
    digest = _require_text(one["sha256"])
    if not _SHA256.fullmatch(digest):
        raise ValueError
    return GeneratedFile(digest, _EXECUTABLE_BY_MODE[one["mode"]])


def _require_object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
