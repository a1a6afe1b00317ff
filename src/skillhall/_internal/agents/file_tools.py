"""ReadFile, ReadSkill and ListSkillFiles: read-only tools for a run directory.

For any input the result is text: the content, or one line that starts with "Error: ".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.file_resolver import SkillFileResolver
from skillhall._internal.agents.tool_protocol import ToolResult
from skillhall._internal.catalog.reader import activate, open_skill_bundle
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.fs.links import read_contained_file
from skillhall._internal.policy.readable_files import (
    DEFAULT_EXTENSIONS,
    has_extension,
    is_private_path,
    normalize_extensions,
)
from skillhall._internal.render.escape import to_single_line
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import RelativePath, fold_name
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall.errors import (
    ConfigInvalid,
    SkillhallError,
    SkillRejected,
    TooLarge,
    UnsafePath,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.agents.file_resolver import ResolvedFile
    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill

MAX_FILE_BYTES = 1024 * 1024
MAX_FILES = 200  # files in one result
_MAX_LISTED_SKILLS = 100  # skills in an error
_MAX_QUOTED = 80  # characters of an unknown name in an error

PATH_REQUIRED = "path is required."
PATH_OUTSIDE = "path must be under the run directory."
FILE_NOT_FOUND = "file not found."
FILE_TOO_LARGE = "file too large."
FILE_NOT_TEXT = "file is not UTF-8 text."
RUN_DIRECTORY_PATH_HELP = (
    "The path, relative to the run directory: .agents/skills/<id>/SKILL.md, or "
    ".agents/sys.skills/<id>/SKILL.md for a system skill."
)
LOCATION_PATH_HELP = "The path: a location that you were given, or relative to the run directory."


class _FileToolError(Exception):
    """An error line for the model; never leaves this module."""


@dataclass(frozen=True, slots=True)
class TextTool:
    """A tool with one argument and a text result."""

    name: str
    description: str
    argument_name: str
    argument_description: str
    handler: Callable[[object], str]

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                self.argument_name: {"type": "string", "description": self.argument_description}
            },
            "required": [self.argument_name],
            "additionalProperties": False,
        }

    def call(self, arguments: object) -> ToolResult:
        """Return the text or an error line."""
        argument = arguments.get(self.argument_name) if isinstance(arguments, Mapping) else None
        try:
            return ToolResult(self.handler(argument))
        except _FileToolError as error:
            return ToolResult(f"Error: {error}", is_error=True)

    def __call__(self, arguments: object) -> str:
        """Return the content of the result."""
        return str(self.call(arguments).content)


@dataclass(frozen=True, slots=True)
class ReadTools:
    """The read tools of a run directory. Every call reads the current files.

    Raises: ValueError for an invalid extension, ConfigInvalid for one in the settings.
    """

    run_directory: str | os.PathLike[str]
    extensions: Sequence[str] = ()  # that ReadFile may return; by default those of the settings
    catalog: Callable[[], Catalog] | None = None  # by default the local skills
    settings: Settings = field(default_factory=Settings.read)
    # Further skills, whose files ReadFile may return wherever they are.
    resolve_extra_files: Callable[[], SkillFileResolver] | None = None
    path_description: str = RUN_DIRECTORY_PATH_HELP

    def __post_init__(self) -> None:
        """Apply the defaults."""
        chosen = normalize_extensions(self.extensions) or _read_configured_extensions(self.settings)
        object.__setattr__(self, "extensions", chosen)
        object.__setattr__(self, "run_directory", os.fspath(self.run_directory))

    def read_file(self, path: object) -> str:
        """Return the text of a file, or a line that starts with "Error: "."""
        return self.tools[0]({"path": path})

    def read_skill(self, name: object) -> str:
        """Return the instructions of a skill, or an error."""
        return self.tools[1]({"name": name})

    def list_skill_files(self, name: object) -> str:
        """Return the files of a skill, one per line, or an error."""
        return self.tools[2]({"name": name})

    @property
    def tools(self) -> tuple[TextTool, TextTool, TextTool]:
        """The three tools for a model."""
        allowed = " ".join(self.extensions)
        given = "" if self.resolve_extra_files is None else " or at a location that you were given"
        where = f"below the run directory{given}"
        return (
            TextTool(
                "ReadFile",
                f"Returns the text of a file {where}. Allowed types: {allowed}. "
                "Reads only; runs nothing.",
                "path",
                self.path_description,
                partial(_read_file_text, self),
            ),
            TextTool(
                "ReadSkill",
                "Returns the instructions of a skill, where it stands, and the names of its "
                "files. Call it before a task that matches the skill's description.",
                "name",
                "The id or the name of the skill.",
                partial(_render_skill, self),
            ),
            TextTool(
                "ListSkillFiles",
                "Returns the paths and sizes of a skill's files, one in a line; ReadFile takes "
                "the paths.",
                "name",
                "The id or the name of the skill.",
                partial(_render_skill_files, self),
            ),
        )


def _read_configured_extensions(settings: Settings) -> tuple[str, ...]:
    try:
        return normalize_extensions(settings.read_extensions) or DEFAULT_EXTENSIONS
    except ValueError as error:
        raise ConfigInvalid("SKILLHALL_READ_EXTENSIONS", str(error)) from None


def _read_file_text(tools: ReadTools, path: object) -> str:
    """Return the text at `path`, below the run directory or in a skill of the prompt."""
    if not isinstance(path, str) or not path.strip():
        raise _FileToolError(PATH_REQUIRED)
    try:
        return _read_run_directory_text(tools, path.strip())
    except _FileToolError:
        file = _find_skill_file(tools, path.strip())
        if file is None:
            raise
        return _read_skill_file_text(tools, file)


def _read_run_directory_text(tools: ReadTools, path: str) -> str:
    """Return the text at `path`. The path is checked before the disk is read."""
    requested = _resolve_requested_path(tools, path)
    admit = partial(_reject_private, _find_own_folders(tools))
    admit(requested.text)  # `read_contained_file` repeats this check behind links
    _reject_type(requested.text, tools.extensions)
    try:
        file = read_contained_file(os.fspath(tools.run_directory), requested, MAX_FILE_BYTES, admit)
    except UnsafePath:
        raise _FileToolError(PATH_OUTSIDE) from None
    except TooLarge:
        raise _FileToolError(FILE_TOO_LARGE) from None
    except SkillhallError:
        raise _FileToolError(FILE_NOT_FOUND) from None
    _reject_type(file.path, tools.extensions)  # a link may lead to another type
    return _decode_text(file.data)


def _resolve_requested_path(tools: ReadTools, path: str) -> RelativePath:
    """Return the path relative to the run directory, for absolute and linked spellings too."""
    full = _to_absolute_path(tools, path)
    for root in (_to_absolute_path(tools, "."), os.path.realpath(tools.run_directory)):
        start = root.rstrip(os.sep) + os.sep
        if full.startswith(start):
            return _parse_relative_path(full[len(start) :].replace(os.sep, "/"))
    raise _FileToolError(PATH_OUTSIDE)


def _parse_relative_path(path: str) -> RelativePath:
    try:
        return RelativePath.parse(path)
    except UnsafePath:
        raise _FileToolError(PATH_OUTSIDE) from None


def _to_absolute_path(tools: ReadTools, path: str) -> str:
    return os.path.normpath(Path(tools.run_directory).absolute() / path)


def _find_skill_file(tools: ReadTools, path: str) -> ResolvedFile | None:
    resolvers: list[Callable[[], SkillFileResolver]] = [partial(_build_file_resolver, tools)]
    if tools.resolve_extra_files is not None:
        resolvers.insert(0, tools.resolve_extra_files)
    for build_resolver in resolvers:
        files = build_resolver()
        file = files.find(path) or files.find(_to_absolute_path(tools, path))
        if file is not None:
            return file
    return None


def _build_file_resolver(tools: ReadTools) -> SkillFileResolver:
    catalog = _load_catalog(tools)
    return SkillFileResolver(
        SkillView("", catalog.profile, catalog), lambda row: _get_directory(tools, row.skill)
    )


def _read_skill_file_text(tools: ReadTools, file: ResolvedFile) -> str:
    if not file.is_location:
        _reject_private((), f"skill/{file.path}")
        _reject_type(file.path, tools.extensions)
    try:
        data = file.read()
    except UnsafePath:
        raise _FileToolError(PATH_OUTSIDE) from None
    except TooLarge:
        raise _FileToolError(FILE_TOO_LARGE) from None
    except (SkillhallError, OSError):
        raise _FileToolError(FILE_NOT_FOUND) from None
    if len(data) > MAX_FILE_BYTES:
        raise _FileToolError(FILE_TOO_LARGE)
    return _decode_text(data)


def _find_own_folders(tools: ReadTools) -> tuple[tuple[str, ...], ...]:
    """Return Skillhall's own folders in the run directory, as path parts."""
    folders = [tools.settings.cache_directory, tools.settings.data_directory]
    return tuple(filter(None, (_relative_parts(tools.run_directory, path) for path in folders)))


def _relative_parts(run_directory: str | os.PathLike[str], folder: str) -> tuple[str, ...]:
    """Return the parts of `folder` relative to the run directory; () if it is outside."""
    try:
        relative = Path(folder).resolve().relative_to(Path(run_directory).resolve())
    except (OSError, ValueError):
        return ()
    return tuple(map(fold_name, relative.parts))


def _reject_private(own_folders: tuple[tuple[str, ...], ...], path: str) -> None:
    """Reject private paths with "file not found", so that models cannot probe for them."""
    parts = path.split("/")
    names = tuple(map(fold_name, parts))
    if is_private_path(parts) or any(names[: len(folder)] == folder for folder in own_folders):
        raise _FileToolError(FILE_NOT_FOUND)


def _reject_type(path: str, extensions: Sequence[str]) -> None:
    if not has_extension(path, extensions):
        raise _FileToolError(f"file type not allowed. Allowed: {', '.join(extensions)}")


def _decode_text(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _FileToolError(FILE_NOT_TEXT) from None
    if "\0" in text:
        raise _FileToolError(FILE_NOT_TEXT)
    return text


def _render_skill(tools: ReadTools, name: object) -> str:
    catalog, skill = _find_skill(tools, name)
    try:
        return activate(skill, catalog.profile, _get_directory(tools, skill))
    except SkillRejected as error:
        raise _FileToolError(f"skill {skill.id!r} is broken: {'; '.join(error.reasons)}") from None
    except SkillhallError:
        raise _FileToolError(f"skill {skill.id!r} cannot be read.") from None


def _render_skill_files(tools: ReadTools, name: object) -> str:
    catalog, skill = _find_skill(tools, name)
    try:
        files = open_skill_bundle(skill, catalog.profile.scan_policy.without_hidden_files).files
    except SkillhallError:
        raise _FileToolError(f"skill {skill.id!r} cannot be read.") from None
    directory = _get_directory(tools, skill)
    lines = [
        f"{directory}/{to_single_line(path)} ({file.size} bytes)"
        for path, file in islice(files.items(), MAX_FILES)
    ]
    rest = len(files) - len(lines)
    more = [f"({rest} more {'file is' if rest == 1 else 'files are'} not listed here)"]
    return "\n".join(lines + more * (rest > 0))


def _find_skill(tools: ReadTools, name: object) -> tuple[Catalog, CatalogSkill]:
    """Return the visible skill with this id, else with this name."""
    catalog = _load_catalog(tools)
    if not isinstance(name, str) or not name.strip():
        raise _FileToolError(f"name is required. {_format_available(catalog)}")
    for skill in sorted(catalog.visible, key=lambda skill: skill.id != name):
        if name in (skill.id, skill.name):
            return catalog, skill
    raise _FileToolError(f"there is no skill {name[:_MAX_QUOTED]!r}. {_format_available(catalog)}")


def _load_catalog(tools: ReadTools) -> Catalog:
    return FolderStore(tools.run_directory).catalog() if tools.catalog is None else tools.catalog()


def _format_available(catalog: Catalog) -> str:
    ids = [to_single_line(skill.id) for skill in catalog.visible]
    if not ids:
        return "No skills are available."
    more = f" and {len(ids) - _MAX_LISTED_SKILLS} more" if len(ids) > _MAX_LISTED_SKILLS else ""
    return f"Available skills: {', '.join(ids[:_MAX_LISTED_SKILLS])}{more}"


def _get_directory(tools: ReadTools, skill: CatalogSkill) -> str:
    """Return the skill's folder in the form that ReadFile accepts."""
    try:
        return Path(skill.directory).relative_to(Path(tools.run_directory).absolute()).as_posix()
    except ValueError:
        return skill.directory
