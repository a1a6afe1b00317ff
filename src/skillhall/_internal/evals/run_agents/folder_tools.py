"""Tools of the built-in agent for the folder of a run: list and write files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.agents.tool_definition import Tool, ToolError, get_argument, string_schema
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.readable_files import is_publishable
from skillhall._internal.render.escape import to_single_line
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall.errors import SkillhallError, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Which files the built-in agent may read in the folder of a run.
_TYPES = (
    *("md", "txt", "rst", "log", "tex", "diff", "patch"),
    *("json", "jsonl", "yml", "yaml", "toml", "ini", "cfg", "csv", "tsv", "xml"),
    *("html", "htm", "css", "svg", "js", "mjs", "ts", "tsx", "jsx"),
    *("py", "sh", "sql", "r", "rb", "go", "rs", "java", "kt", "cs", "c", "h", "cpp", "php"),
)
READABLE_EXTENSIONS = tuple(f".{one}" for one in _TYPES)
_MAX_LISTED = 200


class FolderTools:
    """Tools for one folder.

    They do not follow links, and write at most `max_bytes`.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = str(folder)
        self._free = max_bytes

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools for a model."""
        path = string_schema("The path of the file, relative to your folder.")
        properties: Mapping[str, Mapping[str, object]] = {
            "path": path,
            "content": string_schema("The complete new content."),
        }
        return (
            Tool(
                name="ListFiles",
                description="Lists the files in your folder with their sizes, one per line.",
                get_properties=dict,
                handler=lambda _: self._list_files(),
            ),
            Tool(
                name="WriteFile",
                description="Creates or replaces a text file in your folder.",
                required=("path", "content"),
                get_properties=lambda: properties,
                handler=self._write_file,
            ),
        )

    def _list_files(self) -> str:
        policy = LENIENT.scan_policy.without_hidden_files
        try:
            files = [*open_bundle(FolderHandle(self._folder), policy).files.values()]
        except SkillhallError:
            raise ToolError("the folder cannot be read.") from None
        lines = [f"{to_single_line(one.path.text)} ({one.size} bytes)" for one in files]
        if len(lines) > _MAX_LISTED:
            lines = [*lines[:_MAX_LISTED], f"({len(lines) - _MAX_LISTED} more files)"]
        return "\n".join(lines) or "The folder is empty."

    def _write_file(self, arguments: object) -> str:
        requested, content = get_argument(arguments, "path"), get_argument(arguments, "content")
        if not isinstance(requested, str) or not isinstance(content, str):
            raise ToolError("path and content must be strings.")
        try:
            path = RelativePath.parse(requested.strip())
        except UnsafePath as error:
            raise ToolError(f"the path cannot be used: {error.reason}.") from None
        if not is_publishable(path.text):
            raise ToolError("the path must not be hidden.")
        data = content.encode("utf-8", "replace")
        if len(data) > self._free:
            raise ToolError("the limit on the size of all files is reached.")
        try:
            _write_below(self._folder, path.parts, data)
        except (OSError, SkillhallError):
            raise ToolError("the file cannot be written.") from None
        self._free -= len(data)
        return f"Wrote {to_single_line(path.text)} ({len(data)} bytes)."


def _write_below(root: str, parts: tuple[str, ...], data: bytes) -> None:
    folder = WritableFolder(root)
    try:
        for part in parts[:-1]:
            parent, folder = folder, folder.open_folder(part, create=True)
            parent.close()
        folder.write_file(parts[-1], data, fsync=False)  # the folder is temporary
    finally:
        folder.close()
