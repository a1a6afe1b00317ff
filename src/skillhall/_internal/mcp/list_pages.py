"""Pages of the lists: `skills/list`, `resources/list` and `resources/directory/read`."""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from mcp_types import PaginatedRequestParams

from skillhall._internal.catalog.manifests import explain_exclusion
from skillhall._internal.catalog.skill_paths import SCHEME, quote_segment
from skillhall._internal.mcp.errors import build_invalid_params, quote_uri
from skillhall._internal.mcp.serializers import (
    serialize_directory,
    serialize_page,
    serialize_resource,
    serialize_skill,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.catalog.manifests import Manifest
    from skillhall._internal.catalog.skill_view import ViewedSkill
    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.mcp.skill_index import IndexView, SkillIndex

    # The skills of a page, and whether more follow.
    Selection: TypeAlias = tuple[list[tuple[ViewedSkill, Manifest]], bool]

ListKind: TypeAlias = Literal["skills", "resources"]

SKILLS_PAGE_SIZE = 100
RESOURCES_PAGE_SIZE = 200  # plus the remaining files of the last skill
DIRECTORY_PAGE_SIZE = 500
CURSOR_PREFIX = "after:"


def find_start(names: Sequence[str], cursor: str | None) -> int:
    """Return the index after the cursor's name, which may be gone by now.

    Raises: MCPError for an invalid cursor.
    """
    if cursor is None:
        return 0
    if not cursor.startswith(CURSOR_PREFIX):
        raise build_invalid_params("invalid cursor", "invalid_argument")
    return bisect_right(names, cursor.removeprefix(CURSOR_PREFIX))


class DirectoryParams(PaginatedRequestParams):
    """Parameters of `resources/directory/read`."""

    uri: str


class ListPage:
    """One page of a list, rebuilt only when a skill in it changes."""

    def __init__(self, view: IndexView, kind: ListKind, start: int) -> None:
        self._view = view
        self._kind = kind
        self._start = start  # index of its first skill
        self._last: tuple[Selection, JsonObject] | None = None

    def build(self) -> JsonObject:
        """Return the current page; the same object while nothing changes."""
        selection = skills, has_more = self._select()
        # An unchanged manifest is the same object, so that selections are compared quickly.
        if self._last is not None and self._last[0] == selection:
            return self._last[1]
        rows = []
        for row, manifest in skills:
            if self._kind == "skills":
                rows.append(serialize_skill(row, manifest))
            else:
                rows += [serialize_resource(row, file) for file in manifest.files]
        cursor = f"{CURSOR_PREFIX}{skills[-1][0].path}" if has_more else None
        page = serialize_page(self._kind, rows, cursor)
        self._last = selection, page
        return page

    def _select(self) -> Selection:
        is_skills, size = self._kind == "skills", 0
        page_size = SKILLS_PAGE_SIZE if is_skills else RESOURCES_PAGE_SIZE
        selected: list[tuple[ViewedSkill, Manifest]] = []
        for row in islice(self._view.rows, self._start, None):
            manifest = self._view.read_manifest(row)
            # `skills/list` has only skills that every host accepts.
            finding = explain_exclusion(row, manifest) if is_skills else None
            if finding is not None:
                self._view.report_skipped(finding)
            elif manifest is not None:
                if size >= page_size:
                    return selected, True
                selected.append((row, manifest))
                size += 1 if is_skills else len(manifest.files)
        return selected, False


def read_directory(index: SkillIndex, params: DirectoryParams) -> JsonObject:
    """Return a page of the direct children of a directory. Raises: MCPError if it is none.

    Directories are skill folders, folders inside them and parents of several skills.
    """
    rows = _list_children(index.get_index_view(), params.uri)
    children = {child["uri"]: child for child in rows}
    if not children:
        message = f"{quote_uri(params.uri)} is not a directory resource"
        raise build_invalid_params(message, "not_a_file")
    uris = sorted(children)
    start = find_start(uris, params.cursor)
    end = start + DIRECTORY_PAGE_SIZE
    next_cursor = f"{CURSOR_PREFIX}{uris[end - 1]}" if end < len(uris) else None
    return serialize_page("resources", [children[uri] for uri in uris[start:end]], next_cursor)


def _list_children(view: IndexView, uri: str) -> Iterator[JsonObject]:
    if uri.startswith(SCHEME):  # skills below a directory that is not itself a skill
        parent = f"{uri.removeprefix(SCHEME)}/"
        for row in view.rows:
            if row.path.startswith(parent):
                yield serialize_directory(row.uri, row.skill.name)
    skill, folder = view.find(uri) or (None, "")
    manifest = None if skill is None else view.read_manifest(skill)
    if skill is None or manifest is None:
        return
    start = f"{folder}/" if folder else ""
    for file in manifest.files:
        if file.path.startswith(start):
            name, slash, _ = file.path.removeprefix(start).partition("/")
            if slash:
                yield serialize_directory(f"{uri}/{quote_segment(name)}", name)
            else:
                yield serialize_resource(skill, file)
