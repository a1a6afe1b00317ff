"""Directory resources: skill folders, folders inside them and parents of several skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.skill_paths import SCHEME, quote_segment, split_uri
from skillhall._internal.mcp.cursors import CURSOR_PREFIX, find_start, quote_uri
from skillhall._internal.mcp.errors import build_invalid_params
from skillhall._internal.mcp.serializers import (
    serialize_directory,
    serialize_page,
    serialize_resource,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.mcp.skill_index import IndexView

DIRECTORY_PAGE_SIZE = 500


def read_directory(view: IndexView, uri: str, cursor: str | None) -> JsonObject:
    """Return a page of the direct children of a directory. Raises: MCPError if it is none."""
    children = {
        child["uri"]: child
        for child in (*_list_skills_below(view, uri), *_list_skill_children(view, uri))
    }
    if not children:
        raise build_invalid_params(f"{quote_uri(uri)} is not a directory resource", "not_a_file")
    uris = sorted(children)
    start = find_start(uris, cursor)
    end = start + DIRECTORY_PAGE_SIZE
    next_cursor = f"{CURSOR_PREFIX}{uris[end - 1]}" if end < len(uris) else None
    return serialize_page("resources", [children[uri] for uri in uris[start:end]], next_cursor)


def _list_skills_below(view: IndexView, uri: str) -> Iterator[JsonObject]:
    """Yield the skills below a directory that is not itself a skill."""
    start = f"{uri.removeprefix(SCHEME)}/"
    for row in view.rows:
        if row.path.startswith(start) and uri.startswith(SCHEME):
            yield serialize_directory(row.uri, row.skill.name)


def _list_skill_children(view: IndexView, uri: str) -> Iterator[JsonObject]:
    """Yield the files and directories of a skill."""
    split = split_uri(uri)
    row = None if split is None else view.by_path.get(split[0])
    manifest = None if row is None else view.read_manifest(row)
    if split is None or row is None or manifest is None:
        return
    start = f"{split[1]}/" if split[1] else ""
    for file in manifest.files:
        if file.path.startswith(start):
            name, slash, _ = file.path.removeprefix(start).partition("/")
            yield (
                serialize_directory(f"{uri}/{quote_segment(name)}", name)
                if slash
                else serialize_resource(row, file)
            )
