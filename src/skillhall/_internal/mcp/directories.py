"""Directories of the skill namespace: the skills' own, those in them, and what holds several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.skill_paths import SCHEME, segment_of, split_uri
from skillhall._internal.mcp.cursors import AFTER, position, shown
from skillhall._internal.mcp.errors import invalid
from skillhall._internal.mcp.serializers import directory, page, resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.mcp.serializers import Wire
    from skillhall._internal.mcp.skill_index import View

CHILDREN_IN_PAGE = 500


def read_directory(view: View, uri: str, cursor: str | None) -> Wire:
    """What stands directly in a directory, by address. Raises: MCPError if it is none."""
    found = {child["uri"]: child for child in (*_skills_below(view, uri), *_inside(view, uri))}
    if not found:
        raise invalid(f"{shown(uri)} is not a directory resource", "not_a_file")
    uris = sorted(found)
    start = position(uris, cursor)
    end = start + CHILDREN_IN_PAGE
    following = f"{AFTER}{uris[end - 1]}" if end < len(uris) else None
    return page("resources", [found[one] for one in uris[start:end]], following)


def _skills_below(view: View, uri: str) -> Iterator[Wire]:
    """The skills in a directory of ours that is no skill itself."""
    start = f"{uri.removeprefix(SCHEME)}/"
    for row in view.rows:
        if row.path.startswith(start) and uri.startswith(SCHEME):
            yield directory(row.uri, row.skill.name)


def _inside(view: View, uri: str) -> Iterator[Wire]:
    """Files and directories of a skill."""
    split = split_uri(uri)
    row = None if split is None else view.by_path.get(split[0])
    manifest = None if row is None else view.manifest(row)
    if split is None or row is None or manifest is None:
        return
    start = f"{split[1]}/" if split[1] else ""
    for file in manifest.files:
        if file.path.startswith(start):
            name, slash, _ = file.path.removeprefix(start).partition("/")
            yield directory(f"{uri}/{segment_of(name)}", name) if slash else resource(row, file)
