"""Marker file: lists the generated skills with the digests of their files.

The marker is in the folder of all skills, not in each skill, so a copy of a generated skill is not
taken for a generated one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
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
MAX_MARKER_SIZE: Final = 16 * 1024 * 1024  # bytes; about ten thousand skills with ten files each
_SHA256 = re.compile(r"[0-9a-f]{64}")
_EXECUTABLE_BY_MODE: Final[Mapping[object, bool]] = {"100644": False, "100755": True}  # git modes
_HINT = (
    "restore it from version control, or delete it;"
    " the skills that it lists are then no longer updated"
)


class GeneratedFile(NamedTuple):
    """File as it was generated."""

    sha256: str
    executable: bool


GeneratedFiles: TypeAlias = Mapping[str, GeneratedFile]


class PromptOrigin(NamedTuple):
    """Origin of a generated skill: the server and the requested source."""

    server: str
    selector: RemoteSourceSelector = RemoteSourceSelector()


@dataclass(frozen=True, slots=True)
class GeneratedSkill:
    """Generated skill with the digests of its files."""

    prompt: str
    origin: PromptOrigin
    source: str  # as named by the server
    files: GeneratedFiles
    pending_files: GeneratedFiles | None = None  # about to be written; also count as unmodified


def to_generated_files(states: Mapping[str, FileState]) -> GeneratedFiles:
    """Return the digest and mode of each file, by path."""
    return {
        path: GeneratedFile(sha256_hex(state.data), state.executable)
        for path, state in sorted(states.items())
    }


def read_marker(folder: str) -> dict[str, GeneratedSkill]:
    """Return the generated skills by folder name; empty if there is no marker.

    Raises: LockInvalid, OSError.
    """
    try:
        with open_root(folder) as root:
            data = read_below(root, RelativePath.parse(MARKER_FILE), MAX_MARKER_SIZE)
    except SkillFileNotFound:
        return {}
    except (UnsafePath, NotAFile, TooLarge):
        raise _build_marker_error("it is too large or not a regular file") from None
    try:
        return _parse_marker(parse_json(data, unique_keys=True))
    except InvalidJson as error:
        raise _build_marker_error(str(error)) from None
    except (TypeError, LookupError, AttributeError, ValueError, UnsafePath):
        raise _build_marker_error("it is not in the format that Skillhall writes") from None


def render_marker(skills: Mapping[str, GeneratedSkill]) -> bytes:
    """Render the marker; equal skills give equal bytes."""
    rows = {name: _serialize_skill(skill) for name, skill in skills.items()}
    return render_json({"version": VERSION, "skills": rows}, sort_keys=True) + b"\n"


def _build_marker_error(problem: str) -> LockInvalid:
    return LockInvalid(MARKER_FILE, problem, _HINT)


def _serialize_skill(skill: GeneratedSkill) -> dict[str, object]:
    entry: dict[str, object] = {
        "prompt": skill.prompt,
        "server": skill.origin.server,
        "asked": {key: text for key, text in skill.origin.selector._asdict().items() if text},
        "source": skill.source,
        "files": _serialize_files(skill.files),
    }
    if skill.pending_files is not None:
        entry["coming"] = _serialize_files(skill.pending_files)
    return entry


def _serialize_files(files: GeneratedFiles) -> dict[str, object]:
    modes = {executable: mode for mode, executable in _EXECUTABLE_BY_MODE.items()}
    return {
        path: {"sha256": file.sha256, "mode": modes[file.executable]}
        for path, file in files.items()
    }


def _parse_marker(value: object) -> dict[str, GeneratedSkill]:
    data = _require_object(value)
    version = data["version"]
    if isinstance(version, int) and version > VERSION:
        raise _build_marker_error(
            "it was written by a newer version of Skillhall; update Skillhall"
        )
    if version != VERSION:
        raise ValueError
    skills = {}
    for name, skill in sorted(_require_object(data["skills"]).items()):
        path = RelativePath.parse(name)
        if len(path.parts) != 1 or path.text != name or name.startswith("."):
            raise ValueError
        fields = _require_object(skill)
        asked = {key: _require_text(text) for key, text in _require_object(fields["asked"]).items()}
        skills[name] = GeneratedSkill(
            _require_text(fields["prompt"]),
            PromptOrigin(_require_text(fields["server"]), RemoteSourceSelector(**asked)),
            _require_text(fields["source"]),
            _parse_files(fields["files"]),
            _parse_files(fields["coming"]) if "coming" in fields else None,
        )
    return skills


def _parse_files(value: object) -> GeneratedFiles:
    files = {}
    for path, file in sorted(_require_object(value).items()):
        data = _require_object(file)
        digest = _require_text(data["sha256"])
        if not _SHA256.fullmatch(digest):
            raise ValueError
        files[path] = GeneratedFile(digest, _EXECUTABLE_BY_MODE[data["mode"]])
    return files


def _require_object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
