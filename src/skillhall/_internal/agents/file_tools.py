"""ReadFile, ReadSkill and ListSkillFiles: what an agent may read below its run directory.

Whatever a model sends, the answer is text: what was asked for, or one line that begins "Error: ".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.file_resolver import ToldFiles
from skillhall._internal.agents.tool_protocol import Answer
from skillhall._internal.catalog.reader import activate, bundle_of
from skillhall._internal.catalog.skill_view import Offer
from skillhall._internal.fs.links import read_inside
from skillhall._internal.policy.readable_files import (
    DEFAULT_EXTENSIONS,
    extension_list,
    has_extension,
    is_private,
)
from skillhall._internal.render.escape import one_line
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import RelativePath, folded
from skillhall._internal.skill_store.folder_store import LocalSkills
from skillhall.errors import (
    ConfigInvalid,
    SkillhallError,
    SkillRejected,
    TooLarge,
    UnsafePath,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.agents.file_resolver import ToldFile
    from skillhall._internal.catalog.catalog import Catalog, Skill

MAX_ANSWER = 1024 * 1024  # bytes of one file
MAX_FILES = 200  # files that one answer names
_MAX_NAMES = 100  # skills that an error names
_SHOWN = 80  # characters of a wrong name that an error repeats

REQUIRED = "path is required."
OUTSIDE = "path must be under the run directory."
NOT_FOUND = "file not found."
LARGE = "file too large."
NOT_TEXT = "file is not UTF-8 text."
IN_RUN_DIRECTORY = (
    "The path, relative to the run directory: .agents/skills/<id>/SKILL.md, or "
    ".agents/sys.skills/<id>/SKILL.md for a system skill."
)
AT_LOCATION = "The path: a location that you were given, or relative to the run directory."


class _Refused(Exception):
    """The one line that a model gets instead of a text; it never leaves this module."""


@dataclass(frozen=True, slots=True)
class TextTool:
    """A tool with one argument that answers in text, whatever it is called with."""

    name: str
    description: str
    argument: str
    about: str  # the argument
    read: Callable[[object], str]

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON Schema of the call."""
        return {
            "type": "object",
            "properties": {self.argument: {"type": "string", "description": self.about}},
            "required": [self.argument],
            "additionalProperties": False,
        }

    def answer(self, arguments: object) -> Answer:
        """The text, or the line that says why there is none."""
        given = arguments.get(self.argument) if isinstance(arguments, Mapping) else None
        try:
            return Answer(self.read(given))
        except _Refused as refusal:
            return Answer(f"Error: {refusal}", is_error=True)

    def __call__(self, arguments: object) -> str:
        """The answer alone."""
        return str(self.answer(arguments).content)


@dataclass(frozen=True, slots=True)
class ReadTools:
    """The reading tools of one run directory; every call sees the files as they are then.

    Raises: ValueError for an extension that cannot be one; ConfigInvalid if the settings name it.
    """

    run_directory: str | os.PathLike[str]
    extensions: Sequence[str] = ()  # that ReadFile returns; else those of the settings
    catalog: Callable[[], Catalog] | None = None  # where skills are found; else the local ones
    settings: Settings = field(default_factory=Settings.read)
    # Further skills whose files ReadFile returns wherever they are.
    told: Callable[[], ToldFiles] | None = None
    about_path: str = IN_RUN_DIRECTORY

    def __post_init__(self) -> None:
        """Complete what was left out."""
        chosen = extension_list(self.extensions) or _configured_extensions(self.settings)
        object.__setattr__(self, "extensions", chosen)
        object.__setattr__(self, "run_directory", os.fspath(self.run_directory))

    def read_file(self, path: object) -> str:
        """The text of a file, or a line that begins with "Error: "."""
        return self.tools[0]({"path": path})

    def read_skill(self, name: object) -> str:
        """The instructions of a skill, marked as such, or an error."""
        return self.tools[1]({"name": name})

    def list_skill_files(self, name: object) -> str:
        """The files of a skill, one in a line, or an error."""
        return self.tools[2]({"name": name})

    @property
    def tools(self) -> tuple[TextTool, TextTool, TextTool]:
        """The three as tools for a model."""
        allowed = " ".join(self.extensions)
        given = "" if self.told is None else " or at a location that you were given"
        where = f"below the run directory{given}"
        return (
            TextTool(
                "ReadFile",
                f"Returns the text of a file {where}. Allowed types: {allowed}. "
                "Reads only; runs nothing.",
                "path",
                self.about_path,
                partial(_file_text, self),
            ),
            TextTool(
                "ReadSkill",
                "Returns the instructions of a skill, where it stands, and the names of its "
                "files. Call it before a task that matches the skill's description.",
                "name",
                "The id or the name of the skill.",
                partial(_skill_text, self),
            ),
            TextTool(
                "ListSkillFiles",
                "Returns the paths and sizes of a skill's files, one in a line; ReadFile takes "
                "the paths.",
                "name",
                "The id or the name of the skill.",
                partial(_skill_files, self),
            ),
        )


def _configured_extensions(settings: Settings) -> tuple[str, ...]:
    try:
        return extension_list(settings.read_extensions) or DEFAULT_EXTENSIONS
    except ValueError as error:
        raise ConfigInvalid("SKILLHALL_READ_EXTENSIONS", str(error)) from None


def _file_text(tools: ReadTools, path: object) -> str:
    """The text at `path`: below the run directory, else in a skill that the model was told of."""
    if not isinstance(path, str) or not path.strip():
        raise _Refused(REQUIRED)
    try:
        return _run_directory_text(tools, path.strip())
    except _Refused:
        told = _find_told(tools, path.strip())
        if told is None:
            raise
        return _told_text(tools, told)


def _run_directory_text(tools: ReadTools, path: str) -> str:
    """The text at `path`: its shape is judged first, then its place and type, then the disk."""
    asked = _asked_path(tools, path)
    admit = partial(_refuse_private, _own_folders(tools))
    admit(asked.text)
    _refuse_type(asked.text, tools.extensions)
    try:
        found = read_inside(os.fspath(tools.run_directory), asked, MAX_ANSWER, admit)
    except UnsafePath:
        raise _Refused(OUTSIDE) from None
    except TooLarge:
        raise _Refused(LARGE) from None
    except SkillhallError:
        raise _Refused(NOT_FOUND) from None
    _refuse_type(found.path, tools.extensions)
    return _decoded(found.data)


def _asked_path(tools: ReadTools, path: str) -> RelativePath:
    """The path from the run directory on, for every spelling that means a place in it."""
    full = _full_path(tools, path)
    for root in (_full_path(tools, "."), os.path.realpath(tools.run_directory)):
        start = root.rstrip(os.sep) + os.sep
        if full.startswith(start):
            return _relative(full[len(start) :].replace(os.sep, "/"))
    raise _Refused(OUTSIDE)


def _relative(path: str) -> RelativePath:
    try:
        return RelativePath.parse(path)
    except UnsafePath:
        raise _Refused(OUTSIDE) from None


def _full_path(tools: ReadTools, path: str) -> str:
    return os.path.normpath(Path(tools.run_directory).absolute() / path)


def _find_told(tools: ReadTools, path: str) -> ToldFile | None:
    known: list[Callable[[], ToldFiles]] = [partial(_told_files, tools)]
    if tools.told is not None:
        known.insert(0, tools.told)
    for told in known:
        files = told()
        found = files.find(path) or files.find(_full_path(tools, path))
        if found is not None:
            return found
    return None


def _told_files(tools: ReadTools) -> ToldFiles:
    catalog = _catalog(tools)
    return ToldFiles(Offer("", catalog.profile, catalog), lambda row: _directory(tools, row.skill))


def _told_text(tools: ReadTools, told: ToldFile) -> str:
    if not told.is_location:
        _refuse_private((), f"skill/{told.path}")
        _refuse_type(told.path, tools.extensions)
    try:
        data = told.read()
    except UnsafePath:
        raise _Refused(OUTSIDE) from None
    except TooLarge:
        raise _Refused(LARGE) from None
    except (SkillhallError, OSError):
        raise _Refused(NOT_FOUND) from None
    if len(data) > MAX_ANSWER:
        raise _Refused(LARGE)
    return _decoded(data)


def _own_folders(tools: ReadTools) -> tuple[tuple[str, ...], ...]:
    """The folders in the run directory that Skillhall keeps for itself, name by name."""
    kept = [tools.settings.cache_directory, tools.settings.data_directory]
    return tuple(filter(None, (_names_below(tools.run_directory, folder) for folder in kept)))


def _names_below(run_directory: str | os.PathLike[str], folder: str) -> tuple[str, ...]:
    """The way from the run directory to `folder`, if that lies in it."""
    try:
        relative = Path(folder).resolve().relative_to(Path(run_directory).resolve())
    except (OSError, ValueError):
        return ()
    return tuple(map(folded, relative.parts))


def _refuse_private(own: tuple[tuple[str, ...], ...], path: str) -> None:
    """Answer for a private place as for one that is not there, whether or not it is."""
    parts = path.split("/")
    names = tuple(map(folded, parts))
    if is_private(parts) or any(names[: len(folder)] == folder for folder in own):
        raise _Refused(NOT_FOUND)


def _refuse_type(path: str, extensions: Sequence[str]) -> None:
    if not has_extension(path, extensions):
        raise _Refused(f"file type not allowed. Allowed: {', '.join(extensions)}")


def _decoded(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _Refused(NOT_TEXT) from None
    if "\0" in text:
        raise _Refused(NOT_TEXT)
    return text


def _skill_text(tools: ReadTools, name: object) -> str:
    catalog, skill = _find_skill(tools, name)
    try:
        return activate(skill, catalog.profile, _directory(tools, skill))
    except SkillRejected as error:
        raise _Refused(f"skill {skill.id!r} is broken: {'; '.join(error.reasons)}") from None
    except SkillhallError:
        raise _Refused(f"skill {skill.id!r} cannot be read.") from None


def _skill_files(tools: ReadTools, name: object) -> str:
    catalog, skill = _find_skill(tools, name)
    try:
        files = bundle_of(skill, catalog.profile.scan.published).files
    except SkillhallError:
        raise _Refused(f"skill {skill.id!r} cannot be read.") from None
    directory = _directory(tools, skill)
    lines = [
        f"{directory}/{one_line(path)} ({file.size} bytes)"
        for path, file in islice(files.items(), MAX_FILES)
    ]
    left = len(files) - len(lines)
    more = [f"({left} more {'file is' if left == 1 else 'files are'} not listed here)"]
    return "\n".join(lines + more * (left > 0))


def _find_skill(tools: ReadTools, name: object) -> tuple[Catalog, Skill]:
    """The skill of that id, else of that name, if a model may know it."""
    catalog = _catalog(tools)
    if not isinstance(name, str) or not name.strip():
        raise _Refused(f"name is required. {_available(catalog)}")
    for skill in sorted(catalog.visible, key=lambda one: one.id != name):
        if name in (skill.id, skill.name):
            return catalog, skill
    raise _Refused(f"there is no skill {name[:_SHOWN]!r}. {_available(catalog)}")


def _catalog(tools: ReadTools) -> Catalog:
    return LocalSkills(tools.run_directory).catalog() if tools.catalog is None else tools.catalog()


def _available(catalog: Catalog) -> str:
    ids = [one_line(skill.id) for skill in catalog.visible]
    if not ids:
        return "No skills are available."
    more = f" and {len(ids) - _MAX_NAMES} more" if len(ids) > _MAX_NAMES else ""
    return f"Available skills: {', '.join(ids[:_MAX_NAMES])}{more}"


def _directory(tools: ReadTools, skill: Skill) -> str:
    """Where the skill stands, as ReadFile takes it."""
    try:
        return Path(skill.directory).relative_to(Path(tools.run_directory).absolute()).as_posix()
    except ValueError:
        return skill.directory
