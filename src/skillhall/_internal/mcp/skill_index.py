"""Skill index of the MCP server: the current skills with cached list pages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mcp_types import RequestParams

from skillhall._internal.cache import TTL_FACTOR, AdaptiveCache
from skillhall._internal.catalog.manifests import ManifestCache
from skillhall._internal.catalog.skill_paths import split_uri
from skillhall._internal.mcp.errors import LOG, build_invalid_params, quote_uri
from skillhall._internal.mcp.list_pages import ListPage, find_start
from skillhall._internal.mcp.serializers import serialize_contents, serialize_skill, with_ttl
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall.errors import SkillFileNotFound

if TYPE_CHECKING:
    from mcp_types import ReadResourceRequestParams

    from skillhall._internal.catalog.manifests import Manifest
    from skillhall._internal.catalog.skill_view import SkillProvider, SkillView, ViewedSkill
    from skillhall._internal.mcp.list_pages import ListKind
    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.skill.finding import Finding

# Seconds for which the digests in a page are not compared with the disk. New, removed and changed
# SKILL.md files rebuild the pages at once, and `skills/get` always compares.
MIN_PAGE_TTL = 5.0


class SkillParams(RequestParams):
    """Parameters of `skills/get`: the URI of the SKILL.md."""

    uri: str


class IndexView:
    """A skill view in path order, with its cached pages."""

    def __init__(self, skill_view: SkillView, manifests: ManifestCache, ttl_factor: float) -> None:
        self.skill_view = skill_view
        self.rows = sorted(skill_view, key=lambda row: row.path)
        self.paths = [row.path for row in self.rows]
        self.by_path = {row.path: row for row in self.rows}
        self._manifests = manifests
        self._ttl_factor = ttl_factor
        self._pages: dict[tuple[ListKind, str], AdaptiveCache[JsonObject]] = {}
        self._reported_paths: set[str] = set()

    def get_cached_page(self, kind: ListKind, cursor: str | None) -> JsonObject | None:
        """Return a cached page, if it is fresh. Never blocks."""
        page = self._pages.get((kind, cursor or ""))
        return None if page is None else page.fresh_value

    def get_page(self, kind: ListKind, cursor: str | None) -> JsonObject:
        """Return a page. Raises: MCPError for an invalid cursor."""
        key = kind, cursor or ""
        if key not in self._pages:
            page = ListPage(self, kind, find_start(self.paths, cursor))
            self._pages[key] = AdaptiveCache(
                page.build, self._ttl_factor, MIN_PAGE_TTL if self._ttl_factor else 0.0
            )
        return self._pages[key].get()

    def read_manifest(self, row: ViewedSkill, *, fresh: bool = False) -> Manifest | None:
        """Return the manifest of a skill; `None` if its files cannot be read.

        A fresh one was compared with all files on the disk; others may be some seconds old.
        """
        read = self._manifests.get_or_none if fresh else self._manifests.get_for_list
        return read(self.skill_view, row)

    def report_skipped(self, finding: Finding) -> None:
        """Log once why the list omits a skill."""
        if finding.path not in self._reported_paths:
            self._reported_paths.add(finding.path)
            LOG.info("%s", finding.message)

    def find(self, uri: str) -> tuple[ViewedSkill, str] | None:
        """Return the skill of a URI, and the path in it."""
        split = split_uri(uri)
        row = None if split is None else self.by_path.get(split[0])
        return None if split is None or row is None else (row, split[1])

    def resolve_uri(self, uri: str) -> tuple[ViewedSkill, str]:
        """Return the skill and the file of a URI. Raises: MCPError."""
        found = self.find(uri)
        if found is None:
            raise build_invalid_params(f"resource not found: {quote_uri(uri)}")
        return found


class SkillIndex:
    """The skills of a provider, as MCP shows them. Thread-safe."""

    def __init__(self, provider: SkillProvider, ttl_factor: float = TTL_FACTOR) -> None:
        self._ttl_factor = ttl_factor
        self._manifests = ManifestCache()
        self._view: IndexView | None = None
        self._view_cache = AdaptiveCache(partial(self._build_view, provider), ttl_factor)

    def current_view(self) -> SkillView:
        """Return the current skills, possibly from the cache."""
        return self.get_index_view().skill_view

    def get_index_view(self) -> IndexView:
        """Return the current skills with their pages."""
        return self._view_cache.get()

    def refresh(self) -> IndexView:
        """Rescan the skills and return them with their pages."""
        return self._view_cache.refresh()

    def get_cached_page(self, kind: ListKind, cursor: str | None) -> JsonObject | None:
        """Return a cached page, if it is fresh. Never blocks."""
        view = self._view_cache.fresh_value
        return None if view is None else view.get_cached_page(kind, cursor)

    def get_page(self, kind: ListKind, cursor: str | None) -> JsonObject:
        """Return a page of `skills` or `resources`. Raises: MCPError."""
        return self.get_index_view().get_page(kind, cursor)

    def get_skill_entry(self, params: SkillParams) -> JsonObject:
        """Return one skill, compared with the disk. Raises: MCPError."""
        view, uri = self.get_index_view(), params.uri
        row, file = view.resolve_uri(uri)
        manifest = view.read_manifest(row, fresh=True) if file == SKILL_MD else None
        if manifest is None:
            raise build_invalid_params(f"skill not found: {quote_uri(uri)}")
        if reason := manifest.reason_not_served:
            code = "too_large" if manifest.limit_problem else "invalid_skill"
            raise build_invalid_params(
                f"{quote_uri(uri)} is available only as resources: {reason}", code
            )
        return with_ttl({"skill": serialize_skill(row, manifest)})

    def read_resource(self, params: ReadResourceRequestParams) -> JsonObject:
        """Return the content of a file. Raises: MCPError, SkillhallError."""
        view, uri = self.get_index_view(), params.uri
        row, file = view.resolve_uri(uri)
        if not file:
            raise build_invalid_params(f"{quote_uri(uri)} is a directory", "not_a_file")
        try:
            data = view.skill_view.read_file(row, file)
        except SkillFileNotFound:
            raise build_invalid_params(f"resource not found: {quote_uri(uri)}") from None
        return with_ttl({"contents": [serialize_contents(uri, file, data)]})

    def compute_file_state(self, uri: str) -> str:
        """Return a string that changes with the file; "" if it is not served. Never raises."""
        view = self.get_index_view()
        row, path = view.find(uri) or (None, "")
        manifest = None if row is None else view.read_manifest(row, fresh=True)
        for file in manifest.files if manifest else ():
            if file.path == path:
                return f"{file.digest}{file.size}{file.modified}"
        return ""

    def _build_view(self, provider: SkillProvider) -> IndexView:
        view = provider.current_view()
        if self._view is None or self._view.skill_view.revision != view.revision:
            self._view = IndexView(view, self._manifests, self._ttl_factor)
            self._manifests.evict_others(view)  # manifests of removed skills
        return self._view
