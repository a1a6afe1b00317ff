"""The skills of the MCP server: list pages, directories and resources."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import unquote

from mcp_types import PaginatedRequestParams, RequestParams, ResourceTemplateReference

from skillhall._internal.cache import TTL_FACTOR, AdaptiveCache
from skillhall._internal.catalog.manifests import ManifestCache, explain_exclusion
from skillhall._internal.catalog.skill_paths import SCHEME, build_uri, quote_segment, split_uri
from skillhall._internal.catalog.skill_view import VersionProvider
from skillhall._internal.mcp.errors import LOG, build_invalid_params, quote_uri
from skillhall._internal.mcp.serializers import (
    serialize_completion,
    serialize_contents,
    serialize_directory,
    serialize_fastmcp_manifest,
    serialize_page,
    serialize_resource,
    serialize_skill,
    with_ttl,
)
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall.errors import SkillFileNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_types import CompleteRequestParams, ReadResourceRequestParams

    from skillhall._internal.catalog.manifests import Manifest
    from skillhall._internal.catalog.skill_view import SkillProvider, SkillView, ViewedSkill
    from skillhall._internal.mcp.serializers import JsonObject

ListKind: TypeAlias = Literal["skills", "resources"]

SKILLS_PAGE_SIZE = 100
RESOURCES_PAGE_SIZE = 200  # plus the remaining files of the last skill
DIRECTORY_PAGE_SIZE = 500
MAX_COMPLETIONS = 100  # in the protocol
# FastMCP's client reads this file of a skill to download it. It is in no list.
FASTMCP_MANIFEST = "_manifest"
CURSOR_PREFIX = "after:"
RESOURCE_TEMPLATE = {
    "uriTemplate": "skill://{+skill_path}/{+file}",
    "name": "skill-file",
    "title": "A file of a skill",
    "description": "Any file of any skill. SKILL.md contains the instructions of the skill.",
}
# Seconds for which the digests in a page are not compared with the disk. New, removed and changed
# SKILL.md files rebuild the pages at once, and `skills/get` always compares.
MIN_PAGE_TTL = 5.0


class SkillParams(RequestParams):
    """Parameters of `skills/get`: the URI of the SKILL.md."""

    uri: str


class DirectoryParams(PaginatedRequestParams):
    """Parameters of `resources/directory/read`."""

    uri: str


def find_start(names: Sequence[str], cursor: str | None) -> int:
    """Return the index after the cursor's name; 0 without a cursor.

    The name may no longer exist. Raises: MCPError for an invalid cursor.
    """
    if cursor is None:
        return 0
    if not cursor.startswith(CURSOR_PREFIX):
        raise build_invalid_params("invalid cursor", "invalid_argument")
    return bisect_right(names, cursor.removeprefix(CURSOR_PREFIX))


class IndexView:
    """A skill view in path order, with its cached pages."""

    def __init__(self, skill_view: SkillView, manifests: ManifestCache, ttl_factor: float) -> None:
        self.skill_view = skill_view
        self.rows = sorted(skill_view, key=lambda row: row.path)
        self._paths = [row.path for row in self.rows]
        self._by_path = {row.path: row for row in self.rows}
        self._manifests = manifests
        self._ttl_factor = ttl_factor
        self._pages: dict[tuple[ListKind, str], AdaptiveCache[JsonObject]] = {}
        self._reported_paths: set[str] = set()

    def get_cached_page(self, kind: ListKind, cursor: str | None) -> JsonObject | None:
        """Return a cached page; `None` if it is missing or stale. Never blocks."""
        page = self._pages.get((kind, cursor or ""))
        return None if page is None else page.fresh_value

    def get_page(self, kind: ListKind, cursor: str | None) -> JsonObject:
        """Return a page. Raises: MCPError for an invalid cursor."""
        key = kind, cursor or ""
        if key not in self._pages:
            build = partial(self._build_page, kind, find_start(self._paths, cursor))
            min_ttl = MIN_PAGE_TTL if self._ttl_factor else 0.0
            self._pages[key] = AdaptiveCache(build, self._ttl_factor, min_ttl)
        return self._pages[key].get()

    def read_manifest(self, row: ViewedSkill, *, fresh: bool = False) -> Manifest | None:
        """Return the manifest of a skill; `None` if its files cannot be read.

        With `fresh`, all files are compared with the disk. Otherwise, a change to SKILL.md is
        noticed only with the view's next revision.
        """
        read = self._manifests.get_or_none if fresh else self._manifests.get_for_list
        return read(self.skill_view, row)

    def find(self, uri: str) -> tuple[ViewedSkill, str] | None:
        """Return the skill of a URI and the path in it; `None` if there is no such skill."""
        path, file = split_uri(uri) or ("", "")
        row = self._by_path.get(path)
        return None if row is None else (row, file)

    def resolve_uri(self, uri: str) -> tuple[ViewedSkill, str]:
        """Return the skill of a URI and the path in it. Raises: MCPError if not found."""
        found = self.find(uri)
        if found is None:
            raise build_invalid_params(f"resource not found: {quote_uri(uri)}")
        return found

    def list_completions(self, argument: str, skill_path: str) -> Iterator[str]:
        """Yield the values of a variable of `RESOURCE_TEMPLATE`.

        Files are those of the skill at `skill_path`.
        """
        if argument == "skill_path":
            yield from self._paths
        elif argument == "file":
            row = self._by_path.get(skill_path)
            manifest = None if row is None else self.read_manifest(row)
            for file in manifest.files if manifest else ():
                yield build_uri("", file.path).removeprefix(f"{SCHEME}/")

    def list_children(self, uri: str) -> Iterator[JsonObject]:
        """Yield the children of a directory, and the skills below it; entries may repeat.

        Directories are skill folders, folders inside them, and parents of skill folders.
        """
        if uri.startswith(SCHEME):  # skills below a directory that is not itself a skill
            parent = f"{uri.removeprefix(SCHEME)}/"
            for row in self.rows:
                if row.path.startswith(parent):
                    yield serialize_directory(row.uri, row.skill.name)
        skill, folder = self.find(uri) or (None, "")
        manifest = None if skill is None else self.read_manifest(skill)
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

    def _build_page(self, kind: ListKind, start: int) -> JsonObject:
        page_size = SKILLS_PAGE_SIZE if kind == "skills" else RESOURCES_PAGE_SIZE
        entries: list[JsonObject] = []
        last = ""  # path of the last skill in the page
        for row in islice(self.rows, start, None):
            manifest = self.read_manifest(row)
            # `skills/list` has only skills that every host accepts.
            finding = explain_exclusion(row, manifest) if kind == "skills" else None
            if finding is not None:
                if finding.path not in self._reported_paths:
                    self._reported_paths.add(finding.path)
                    LOG.info("%s", finding.message)
            elif manifest is not None:
                if len(entries) >= page_size:
                    return serialize_page(kind, entries, f"{CURSOR_PREFIX}{last}")
                last = row.path
                if kind == "skills":
                    entries.append(serialize_skill(row, manifest))
                else:
                    entries += [serialize_resource(row, file) for file in manifest.files]
        return serialize_page(kind, entries, None)


class SkillIndex:
    """The skills of a provider, as served over MCP. Thread-safe."""

    def __init__(
        self,
        provider: SkillProvider,
        ttl_factor: float = TTL_FACTOR,
        max_view_age: float = math.inf,
    ) -> None:
        self._provider = provider
        self._ttl_factor = ttl_factor
        self._manifests = ManifestCache()
        self._view: IndexView | None = None
        self._view_cache = AdaptiveCache(self._build_view, ttl_factor, max_ttl=max_view_age)
        self._versions = provider if isinstance(provider, VersionProvider) else None

    def current_view(self) -> SkillView:
        """Return the current skills, possibly from the cache."""
        return self._view_cache.get().skill_view

    def refresh(self) -> SkillView:
        """Rescan the skills and return them."""
        return self._view_cache.refresh().skill_view

    def get_cached_page(self, kind: ListKind, cursor: str | None) -> JsonObject | None:
        """Return a cached page; `None` if it is missing or stale. Never blocks."""
        view = self._view_cache.fresh_value
        return None if view is None else view.get_cached_page(kind, cursor)

    def get_page(self, kind: ListKind, cursor: str | None) -> JsonObject:
        """Return a page of `skills` or `resources`. Raises: MCPError."""
        return self._view_cache.get().get_page(kind, cursor)

    def get_skill_entry(self, params: SkillParams) -> JsonObject:
        """Return one skill, with current digests. Raises: MCPError, SkillhallError."""
        uri = params.uri
        view, row, file = self._resolve_uri(uri)
        manifest = view.read_manifest(row, fresh=True) if file == SKILL_MD else None
        if manifest is None:
            raise build_invalid_params(f"skill not found: {quote_uri(uri)}")
        if reason := manifest.reason_not_served:
            code = "too_large" if manifest.limit_problem else "invalid_skill"
            raise build_invalid_params(
                f"{quote_uri(uri)} is available only as resources, file by file: {reason}", code
            )
        # Not in lists: the summary needs the risk level, which takes a scan of all files.
        trust = view.skill_view.summarize_trust(row.skill)
        return with_ttl({"skill": serialize_skill(row, manifest, trust)})

    def read_resource(self, params: ReadResourceRequestParams) -> JsonObject:
        """Return the content of a file. Raises: MCPError, SkillhallError."""
        uri = params.uri
        view, row, file = self._resolve_uri(uri)
        if not file:
            raise build_invalid_params(f"{quote_uri(uri)} is a directory", "not_a_file")
        try:
            data = view.skill_view.read_file(row, file)
        except SkillFileNotFound:
            manifest = view.read_manifest(row, fresh=True) if file == FASTMCP_MANIFEST else None
            if manifest is not None:
                return with_ttl({"contents": [serialize_fastmcp_manifest(uri, row, manifest)]})
            raise build_invalid_params(f"resource not found: {quote_uri(uri)}") from None
        return with_ttl({"contents": [serialize_contents(uri, file, data)]})

    def read_directory(self, params: DirectoryParams) -> JsonObject:
        """Return a page of a directory's children.

        Raises: MCPError if the URI does not name a directory.
        """
        children = {
            child["uri"]: child for child in self._view_cache.get().list_children(params.uri)
        }
        if not children:
            message = f"{quote_uri(params.uri)} is not a directory resource"
            raise build_invalid_params(message, "not_a_file")
        uris = sorted(children)
        start = find_start(uris, params.cursor)
        end = start + DIRECTORY_PAGE_SIZE
        next_cursor = f"{CURSOR_PREFIX}{uris[end - 1]}" if end < len(uris) else None
        return serialize_page("resources", [children[uri] for uri in uris[start:end]], next_cursor)

    def complete(self, params: CompleteRequestParams) -> JsonObject:
        """Return values of a template's variable that start with, or else contain, the typed text.

        Raises: MCPError for an unknown template.
        """
        if not isinstance(params.ref, ResourceTemplateReference):
            raise build_invalid_params("not a resource template", "invalid_argument")
        if params.ref.uri != RESOURCE_TEMPLATE["uriTemplate"]:
            raise build_invalid_params(f"unknown resource template: {quote_uri(params.ref.uri)}")
        known = params.context.arguments if params.context and params.context.arguments else {}
        values = self._view_cache.get().list_completions(
            params.argument.name, known.get("skill_path", "")
        )
        return serialize_completion(values, params.argument.value, MAX_COMPLETIONS)

    def compute_file_state(self, uri: str) -> str:
        """Return a string that changes with the file; "" if it cannot be served."""
        view = self._view_cache.get()
        row, path = view.find(uri) or (None, "")
        manifest = None if row is None else view.read_manifest(row, fresh=True)
        for file in manifest.files if manifest else ():
            if file.path == path:
                return f"{file.digest}{file.size}{file.modified}"
        return ""

    def _resolve_uri(self, uri: str) -> tuple[IndexView, ViewedSkill, str]:
        """Return the skill of a URI, with its view and the path in it.

        The URI may name a version: `skill://pdf@4/SKILL.md`.
        Raises: MCPError if not found, SkillhallError for an unknown or yanked version.
        """
        view = self._view_cache.get()
        path, file = split_uri(uri) or ("", "")
        name, _, version = unquote(path).rpartition("@")
        if self._versions is None or not name or view.find(uri) is not None:
            return view, *view.resolve_uri(uri)
        served = view.find(f"{SCHEME}{quote_segment(name)}")
        identity = served[0].id if served else name
        pinned = self._versions.pinned_view(f"{identity}@{version}")
        if not pinned:
            return view, *view.resolve_uri(uri)
        row = next(iter(pinned))._replace(path=path)
        return IndexView(pinned, self._manifests, self._ttl_factor), row, file

    def _build_view(self) -> IndexView:
        view = self._provider.current_view()
        if self._view is None or self._view.skill_view.revision != view.revision:
            self._view = IndexView(view, self._manifests, self._ttl_factor)
            self._manifests.evict_others(view)  # manifests of removed skills
        return self._view
