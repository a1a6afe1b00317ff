"""deepagents adapter: a backend with the files of the skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    PERMISSION_DENIED,
    BackendProtocol,
    EditResult,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import (
    compile_grep_include_glob,
    grep_matches_from_files,
    slice_read_response,
)

from skillhall._internal.agents.skill_tools import MAX_FILE_BYTES
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall.errors import SkillFileNotFound, SkillhallError, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.agents.agent_skills import SkillSource
    from skillhall._internal.catalog.skill_view import SkillView, ViewedSkill

_READ_ONLY = "Error: skills are read-only."


class SkillsBackend(BackendProtocol):
    """Read-only backend: the files of each skill that models may see, in a folder of its name.

    deepagents lists the skills of its `skills` and reads their files from a backend. Mount this one
    next to that of the agent:

    >>> from deepagents.backends import CompositeBackend, StateBackend
    >>> skills = SkillsBackend(Skills.load("skills"))
    >>> backend = CompositeBackend(StateBackend(), {"/skills/": skills})
    >>> [entry["path"] for entry in backend.ls("/skills/").entries]
    ['/skills/csv-report/', '/skills/pdf-tools/']
    """

    def __init__(self, skills: SkillSource) -> None:
        self._skills = skills.as_agent_skills()

    def ls(self, path: str) -> LsResult:
        """List the skills, or the entries of a folder of one skill."""
        folder = f"{path.rstrip('/')}/"
        entries: dict[str, FileInfo] = {}
        for file in self._list_files(path):
            if file.startswith(folder):
                name, is_dir, _ = file[len(folder) :].partition("/")
                entry = f"{folder}{name}{is_dir}"
                entries[entry] = FileInfo(path=entry, is_dir=bool(is_dir))
        return LsResult(entries=[entries[entry] for entry in sorted(entries)])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read lines of a text file."""
        problem, text = "", ""
        try:
            data = self._read(file_path)
            if len(data) > MAX_FILE_BYTES:
                problem = f"is larger than {MAX_FILE_BYTES} bytes"
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            problem = "is not UTF-8 text"
        except SkillFileNotFound:
            problem = "not found"
        except (SkillhallError, OSError):
            problem = "cannot be read"
        if problem:
            return ReadResult(error=f"File '{file_path}' {problem}")
        return slice_read_response({"content": text, "encoding": "utf-8"}, offset, limit)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Return the files whose path relative to `path` matches the pattern."""
        folder = f"{(path or '').rstrip('/')}/"
        try:
            matches = compile_grep_include_glob(pattern)
        except ValueError as error:
            return GlobResult(error=str(error))
        files = (file for file in self._list_files(folder) if file.startswith(folder))
        return GlobResult(
            matches=[FileInfo(path=file) for file in files if matches(file[len(folder) :])]
        )

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        """Return the lines with a literal text."""
        files = {}
        for file in self._list_files(path or "/"):
            try:
                files[file] = {"content": self._read(file).decode("utf-8"), "encoding": "utf-8"}
            except (SkillhallError, OSError, UnicodeDecodeError):
                continue  # as in the other backends, for files without text
        return grep_matches_from_files(files, pattern, path, glob, max_count=max_count)

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return the contents of files; deepagents reads each SKILL.md with it."""
        return [self._download(path) for path in paths]

    def write(self, file_path: str, content: str) -> WriteResult:
        """Refuse to write."""
        del file_path, content
        return WriteResult(error=_READ_ONLY)

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,  # noqa: FBT001, FBT002 - as in the base class
    ) -> EditResult:
        """Refuse to edit."""
        del file_path, old_string, new_string, replace_all
        return EditResult(error=_READ_ONLY)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Refuse to write."""
        return [FileUploadResponse(path, error=PERMISSION_DENIED) for path, _ in files]

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path, content=self._read(path))
        except SkillFileNotFound:
            return FileDownloadResponse(path, error=FILE_NOT_FOUND)
        except UnsafePath:
            return FileDownloadResponse(path, error=INVALID_PATH)
        except (SkillhallError, OSError):
            return FileDownloadResponse(path, error=PERMISSION_DENIED)

    def _read(self, path: str) -> bytes:
        """Read a file. Raises: SkillFileNotFound, SkillNotApproved, UnsafePath, TooLarge."""
        view = self._skills.current_view()
        folder, _, file = path.removeprefix("/").partition("/")
        row = _find_row(view, folder)
        if row is None or not file:
            raise SkillFileNotFound(path)
        return view.read_file(row, file)

    def _list_files(self, path: str) -> Iterator[str]:
        """Yield the files of the skills, or only those of the skill that contains `path`."""
        view = self._skills.current_view()
        folder = path.strip("/").partition("/")[0]
        rows: Sequence[ViewedSkill | None] = [_find_row(view, folder)] if folder else [*view]
        for row in filter(None, rows):
            try:
                files = view.list_files(row)
            except (SkillhallError, OSError):
                continue  # deleted or changed since the view was loaded
            yield from (f"/{_folder_name(row)}/{file}" for file in (SKILL_MD, *files))


def _find_row(view: SkillView, folder: str) -> ViewedSkill | None:
    return next((row for row in view if _folder_name(row) == folder), None)


def _folder_name(row: ViewedSkill) -> str:
    """Return the name of a skill, or a path for another one of that name, as one component."""
    return row.path.replace("/", "~")
