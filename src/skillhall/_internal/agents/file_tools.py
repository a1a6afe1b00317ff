"""ReadFile, ReadSkill and ListSkillFiles: read-only tools for a run directory.

They never raise: each returns the content, or one line that starts with "Error: ".
"""

from __future__ import annotations

import os
import posixpath
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.agents.agent_gate import open_gate
from skillhall._internal.agents.tool_definition import Tool, ToolError, get_argument, string_schema
from skillhall._internal.catalog.skill_content import activate, open_skill_bundle
from skillhall._internal.catalog.skill_paths import SCHEME
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.catalog.trust.gate import clear_with_fallbacks
from skillhall._internal.fs.links import read_contained_file
from skillhall._internal.policy.readable_files import (
    DEFAULT_EXTENSIONS,
    has_extension,
    is_private_path,
    normalize_extensions,
)
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.render.escape import escape_field, to_single_line
from skillhall._internal.settings import Settings, is_present
from skillhall._internal.skill.bundle import RelativePath, fold_name
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall.errors import ConfigInvalid, SkillhallError, SkillRejected, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
    from skillhall._internal.catalog.skill_view import ViewedSkill
    from skillhall._internal.catalog.trust.gate import Clearance, ClearedSkill

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
    "The path, relative to the run directory, such as .agents/skills/<id>/SKILL.md, or "
    ".agents/sys.skills/<id>/SKILL.md for a system skill."
)
LOCATION_PATH_HELP = "A location that you were given, or a path relative to the run directory."
_NAME_PROPERTIES = {"name": string_schema("The id or the name of the skill.")}


class ResolvedFile(NamedTuple):
    """A file of a skill. `is_location` is true for the SKILL.md that a listing names."""

    path: str  # relative to the skill's folder
    read: Callable[[], bytes]  # raises the errors of `SkillView.read_file`
    is_location: bool = False
    skill_name: str = ""


@dataclass(frozen=True)
class SkillFileResolver:
    """Finds the files of a view's skills by the paths that models see."""

    skill_view: SkillView
    get_directory: Callable[[ViewedSkill], str]

    def find(self, path: str) -> ResolvedFile | None:
        """Return the file at `path`; `None` if `path` is not in a skill's folder.

        Does not check that the file exists: `read` does.
        """
        # Without `//`, `.` and `..`; the `skill://` of a URI stays.
        slashed = _to_posix(path)
        scheme = SCHEME if slashed.startswith(SCHEME) else ""
        normalized = scheme + posixpath.normpath(slashed.removeprefix(scheme))
        read = self.skill_view.read_file
        row = self._skills_by_location.get(normalized)
        if row is not None:
            return ResolvedFile(
                row.skill.file,
                partial(read, row, row.skill.file),
                is_location=True,
                skill_name=row.name,
            )
        # A skill may contain the folder of another one, so the longest folder is tried first.
        end = normalized.rfind("/")
        while end > 0:
            row, rest = self._skills_by_folder.get(normalized[:end]), normalized[end + 1 :]
            if row is not None:
                return ResolvedFile(rest, partial(read, row, rest), skill_name=row.name)
            end = normalized.rfind("/", 0, end)
        return None

    # In both tables the first skill of a view wins, hence the reversed order.
    @cached_property
    def _skills_by_location(self) -> Mapping[str, ViewedSkill]:
        return {
            f"{folder}/{file}": row
            for row in reversed([*self.skill_view])
            for folder in self._folder_spellings(row)
            for file in (row.skill.file, escape_field(row.skill.file))
        }

    @cached_property
    def _skills_by_folder(self) -> Mapping[str, ViewedSkill]:
        rows = [row for row in self.skill_view if not row.skill.is_flat]
        return {folder: row for row in reversed(rows) for folder in self._folder_spellings(row)}

    def _folder_spellings(self, row: ViewedSkill) -> tuple[str, str, str]:
        """Return the folder as shown to models, as escaped in the prompt, and on disk."""
        shown = _to_posix(self.get_directory(row))
        return shown, escape_field(shown), _to_posix(row.skill.directory)


@dataclass(frozen=True, slots=True)
class ReadTools:
    r"""The read tools of a run directory. Every call reads the current files.

    Raises: ValueError for an invalid extension in `extensions`, ConfigInvalid for one in the
    settings.

    >>> ReadTools(".").read_file("skills/pdf-tools/references/forms.md")
    'Forms.\n'
    """

    run_directory: str | os.PathLike[str]
    extensions: Sequence[str] = ()  # that ReadFile may read; by default those of the settings
    catalog: Callable[[], Catalog] | None = None  # by default the local skills
    settings: Settings = field(default_factory=Settings.read)
    # Further skills, whose files ReadFile may read even outside the run directory.
    resolve_extra_files: Callable[[], SkillFileResolver] | None = None
    path_description: str = RUN_DIRECTORY_PATH_HELP
    # Folders that are read only as files of skills, because these need an approval.
    find_guarded_folders: Callable[[], Iterable[str]] = tuple

    def __post_init__(self) -> None:
        """Apply the defaults."""
        extensions = normalize_extensions(self.extensions)
        try:
            extensions = extensions or normalize_extensions(self.settings.read_extensions)
        except ValueError as error:
            raise ConfigInvalid("SKILLHALL_READ_EXTENSIONS", str(error)) from None
        object.__setattr__(self, "extensions", extensions or DEFAULT_EXTENSIONS)
        object.__setattr__(self, "run_directory", os.fspath(self.run_directory))

    def read_file(self, path: object) -> str:
        """Return the text of a file, or a line that starts with "Error: "."""
        return self.tools[0].call({"path": path}).text

    def read_skill(self, name: object) -> str:
        """Return the instructions of a skill, or an error line."""
        return self.tools[1].call({"name": name}).text

    def list_skill_files(self, name: object) -> str:
        """Return the files of a skill, one per line, or an error line."""
        return self.tools[2].call({"name": name}).text

    @property
    def tools(self) -> tuple[Tool, Tool, Tool]:
        """The three tools for a model."""
        given = "" if self.resolve_extra_files is None else " or at a location that you were given"
        return (
            Tool(
                name="ReadFile",
                description=f"Returns the text of a file below the run directory{given}. "
                f"Allowed types: {' '.join(self.extensions)}. Reads only; runs nothing.",
                required=("path",),
                get_properties=lambda: {"path": string_schema(self.path_description)},
                handler=lambda arguments: self._read_text(get_argument(arguments, "path")),
            ),
            Tool(
                name="ReadSkill",
                description="Returns the instructions of a skill, its folder, and the names of its "
                "files. Call it before a task that matches the skill's description.",
                required=("name",),
                get_properties=lambda: _NAME_PROPERTIES,
                handler=lambda arguments: self._render_skill(get_argument(arguments, "name")),
            ),
            Tool(
                name="ListSkillFiles",
                description="Returns the paths and sizes of a skill's files, one per line. "
                "ReadFile accepts these paths.",
                required=("name",),
                get_properties=lambda: _NAME_PROPERTIES,
                handler=lambda arguments: self._render_skill_files(get_argument(arguments, "name")),
            ),
        )

    def _read_text(self, requested: object) -> str:
        """Return the text of a file in the run directory or in a skill's folder."""
        if not isinstance(requested, str) or not requested.strip():
            raise ToolError(PATH_REQUIRED)
        path = requested.strip()
        try:
            return self._read_run_directory_text(path)
        except ToolError:
            file = self._find_skill_file(path)
            if file is None:
                raise
        if not file.is_location:
            # With the prefix, a `.agents` folder in the skill is not taken for the one of the run
            # directory, which is not private.
            _reject_private((), f"skill/{file.path}")
            self._reject_type(file.path)
        with _read_errors_as_tool_errors():
            data = file.read()
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(FILE_TOO_LARGE)
        return _decode_text(data)

    def _read_run_directory_text(self, path: str) -> str:
        """Return the text at `path`. The path is checked before the disk is read."""
        with _read_errors_as_tool_errors():
            full = self._to_absolute_path(path)  # `path` may be absolute
            # If the run directory is a link, absolute paths may start with the link or its target.
            roots = (self._to_absolute_path("."), os.path.realpath(self.run_directory))
            starts = [root.rstrip(os.sep) + os.sep for root in roots]
            start = next((start for start in starts if full.startswith(start)), None)
            if start is None:
                raise ToolError(PATH_OUTSIDE)
            requested = RelativePath.parse(full[len(start) :].replace(os.sep, "/"))
            admit = partial(_reject_private, self._find_own_folders())
            admit(requested.text)  # `read_contained_file` repeats this check behind links
            self._reject_type(requested.text)
            root = os.fspath(self.run_directory)
            file = read_contained_file(root, requested, MAX_FILE_BYTES, admit)
        self._reject_type(file.path)  # a link may lead to another type
        return _decode_text(file.data)

    def _to_absolute_path(self, path: str) -> str:
        return os.path.normpath(Path(self.run_directory).absolute() / path)

    def _find_skill_file(self, path: str) -> ResolvedFile | None:
        for resolve in filter(None, (self.resolve_extra_files, self._resolve_own_files)):
            files = resolve()
            file = files.find(path) or files.find(self._to_absolute_path(path))
            if file is not None:
                return file
        return None

    def _resolve_own_files(self) -> SkillFileResolver:
        catalog = self._load_catalog()
        guarded = set(map(os.path.realpath, self.find_guarded_folders()))
        cleared = self._clear(catalog).cleared
        skills = (one for one in cleared if os.path.realpath(one.directory) not in guarded)
        view = SkillView("", catalog.profile, skills)
        return SkillFileResolver(view, lambda row: self._get_directory(row.skill))

    def _clear(self, catalog: Catalog) -> Clearance:
        gate = open_gate(self.settings)
        return clear_with_fallbacks(gate, [*catalog], catalog.shadowed)

    def _find_held_folders(self) -> list[str]:
        """Return the folders of held skills; models must not read their files, either."""
        if not any(map(is_present, self.settings.trust_rule_files)):
            return []
        return [one.skill.directory for one in self._clear(self._load_catalog()).held]

    def _find_own_folders(self) -> list[tuple[str, ...]]:
        """Return Skillhall's own folders and guarded ones in the run directory, as parts."""
        folders = []
        own = (self.settings.cache_directory, self.settings.data_directory)
        for folder in (*own, *self.find_guarded_folders(), *self._find_held_folders()):
            with suppress(OSError, ValueError):  # it is not in the run directory
                relative = Path(folder).resolve().relative_to(Path(self.run_directory).resolve())
                folders.append(tuple(map(fold_name, relative.parts)))
        return [folder for folder in folders if folder]

    def _reject_type(self, path: str) -> None:
        if not has_extension(path, self.extensions):
            raise ToolError(f"file type not allowed. Allowed: {', '.join(self.extensions)}")

    def _render_skill(self, name: object) -> str:
        catalog, skill = self._find_skill(name)
        try:
            return activate(skill, catalog.profile, self._get_directory(skill))
        except SkillRejected as error:
            raise ToolError(f"skill {skill.id!r} is invalid: {'; '.join(error.reasons)}") from None
        except SkillhallError:
            raise ToolError(f"skill {skill.id!r} cannot be read.") from None

    def _render_skill_files(self, name: object) -> str:
        catalog, skill = self._find_skill(name)
        try:
            files = open_skill_bundle(skill, catalog.profile.scan_policy.without_hidden_files).files
        except SkillhallError:
            raise ToolError(f"skill {skill.id!r} cannot be read.") from None
        directory = self._get_directory(skill)
        lines = [
            f"{directory}/{to_single_line(path)} ({file.size} bytes)"
            for path, file in islice(files.items(), MAX_FILES)
        ]
        rest = len(files) - len(lines)
        if rest:
            lines.append(f"({rest} more {'file is' if rest == 1 else 'files are'} not listed here)")
        return "\n".join(lines)

    def _find_skill(self, name: object) -> tuple[Catalog, ClearedSkill]:
        """Return the visible skill with this id, else with this name."""
        catalog = self._load_catalog()
        visible = [*filter(is_visible_to_models, self._clear(catalog).cleared)]
        problem = "name is required"
        if isinstance(name, str) and name.strip():
            for skill in sorted(visible, key=lambda skill: skill.id != name):
                if name in (skill.id, skill.name):
                    return catalog, skill
            problem = f"there is no skill {name[:_MAX_QUOTED]!r}"
        ids = [to_single_line(skill.id) for skill in visible]
        if not ids:
            raise ToolError(f"{problem}. No skills are available.")
        rest = len(ids) - _MAX_LISTED_SKILLS
        more = f" and {rest} more" if rest > 0 else ""
        listed = ", ".join(ids[:_MAX_LISTED_SKILLS])
        raise ToolError(f"{problem}. Available skills: {listed}{more}")

    def _load_catalog(self) -> Catalog:
        return FolderStore(self.run_directory).catalog() if self.catalog is None else self.catalog()

    def _get_directory(self, skill: CatalogSkill) -> str:
        """Return the skill's folder in the form that ReadFile accepts."""
        try:
            return Path(skill.directory).relative_to(Path(self.run_directory).absolute()).as_posix()
        except ValueError:
            return skill.directory


@contextmanager
def _read_errors_as_tool_errors() -> Iterator[None]:
    """Translate read errors to tool errors that reveal nothing about the disk."""
    try:
        yield
    except UnsafePath:
        raise ToolError(PATH_OUTSIDE) from None
    except TooLarge:
        raise ToolError(FILE_TOO_LARGE) from None
    except (SkillhallError, OSError):
        raise ToolError(FILE_NOT_FOUND) from None


def _reject_private(own_folders: Sequence[tuple[str, ...]], path: str) -> None:
    """Reject private paths with "file not found", so models cannot probe for them."""
    parts = path.split("/")
    names = tuple(map(fold_name, parts))
    if is_private_path(parts) or any(names[: len(folder)] == folder for folder in own_folders):
        raise ToolError(FILE_NOT_FOUND)


def _decode_text(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(FILE_NOT_TEXT) from None
    if "\0" in text:
        raise ToolError(FILE_NOT_TEXT)
    return text


def _to_posix(path: str) -> str:
    return path if os.sep == "/" else path.replace(os.sep, "/")
