"""The stock: what a server has to show, with pages that were made before somebody asks again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.cache import TTL_FACTOR, AdaptiveCache
from skillhall._internal.catalog.manifests import ManifestCache
from skillhall._internal.catalog.skill_paths import split_uri
from skillhall._internal.mcp.cursors import find_start, quote_uri
from skillhall._internal.mcp.errors import LOG, build_invalid_params
from skillhall._internal.mcp.list_pages import ListPage
from skillhall._internal.mcp.serializers import serialize_contents, serialize_skill, with_ttl
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall.errors import SkillFileNotFound

if TYPE_CHECKING:
    from skillhall._internal.catalog.manifests import Manifest
    from skillhall._internal.catalog.skill_view import SkillProvider, SkillView, ViewedSkill
    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.skill.finding import Finding

# Seconds for which the digests in a page are not compared with the disk. A skill that came, went or
# has another SKILL.md makes other pages at once, and an entry that is got alone is always compared.
MIN_PAGE_TTL = 5.0


class IndexView:
    """One offer, in the order of skill paths, and the pages of it that were asked for."""

    def __init__(self, skill_view: SkillView, manifests: ManifestCache, ttl_factor: float) -> None:
        self.skill_view = skill_view
        self.rows = sorted(skill_view, key=lambda row: row.path)
        self.paths = [row.path for row in self.rows]
        self.by_path = {row.path: row for row in self.rows}
        self._manifests = manifests
        self._ttl_factor = ttl_factor
        self._pages: dict[tuple[str, str], AdaptiveCache[JsonObject]] = {}
        self._reported_paths: set[str] = set()

    def get_cached_page(self, kind: str, cursor: str | None) -> JsonObject | None:
        """A page that is at hand; never waits."""
        kept = self._pages.get((kind, cursor or ""))
        return None if kept is None else kept.fresh_value

    def get_page(self, kind: str, cursor: str | None) -> JsonObject:
        """A page. Raises: MCPError for a cursor that is none of ours."""
        key = kind, cursor or ""
        if key not in self._pages:
            made = ListPage(self, kind, find_start(self.paths, cursor))
            self._pages[key] = AdaptiveCache(
                made.build, self._ttl_factor, MIN_PAGE_TTL if self._ttl_factor else 0.0
            )
        return self._pages[key].get()

    def read_manifest(self, row: ViewedSkill) -> Manifest | None:
        """The manifest of a skill in a list; None if its files are gone or cannot be read."""
        return self._manifests.get_for_list(self.skill_view, row)

    def read_fresh_manifest(self, row: ViewedSkill) -> Manifest | None:
        """The same, as all files are at this moment."""
        return self._manifests.get_or_none(self.skill_view, row)

    def report_skipped(self, finding: Finding) -> None:
        """Tell once that the list leaves a skill out, and why."""
        if finding.path not in self._reported_paths:
            self._reported_paths.add(finding.path)
            LOG.info("%s", finding.message)

    def resolve_uri(self, uri: str) -> tuple[ViewedSkill, str]:
        """The skill and the file that an address names. Raises: MCPError."""
        found = split_uri(uri)
        row = None if found is None else self.by_path.get(found[0])
        if found is None or row is None:
            raise build_invalid_params(f"nothing is served at {quote_uri(uri)}")
        return row, found[1]


class SkillIndex:
    """What an offering has, as MCP shows it; any number of threads may ask at once."""

    def __init__(self, provider: SkillProvider, ttl_factor: float = TTL_FACTOR) -> None:
        self._ttl_factor = ttl_factor
        self._manifests = ManifestCache()
        self._view: IndexView | None = None
        self._view_cache = AdaptiveCache(partial(self._build_view, provider), ttl_factor)

    def current_view(self) -> SkillView:
        """The skills there are now, or were a moment ago."""
        return self.get_index_view().skill_view

    def get_index_view(self) -> IndexView:
        """The same with its pages."""
        return self._view_cache.get()

    def refresh(self) -> IndexView:
        """The same, looked at in this moment."""
        return self._view_cache.refresh()

    def get_cached_page(self, kind: str, cursor: str | None) -> JsonObject | None:
        """A page that is at hand; never waits."""
        view = self._view_cache.fresh_value
        return None if view is None else view.get_cached_page(kind, cursor)

    def get_page(self, kind: str, cursor: str | None) -> JsonObject:
        """A page of a list: `skills` or `resources`. Raises: MCPError."""
        return self.get_index_view().get_page(kind, cursor)

    def get_skill_entry(self, uri: str) -> JsonObject:
        """The answer about one skill, as its files are at this moment. Raises: MCPError."""
        view = self.get_index_view()
        row, file = view.resolve_uri(uri)
        manifest = view.read_fresh_manifest(row) if file == SKILL_MD else None
        if manifest is None:
            raise build_invalid_params(f"no skill is served at {quote_uri(uri)}")
        if reason := manifest.reason_not_served:
            code = "too_large" if manifest.limit_problem else "invalid_skill"
            raise build_invalid_params(
                f"{quote_uri(uri)} is served as resources alone: {reason}", code
            )
        return with_ttl({"skill": serialize_skill(row, manifest)})

    def read_resource(self, uri: str) -> JsonObject:
        """The bytes of a file. Raises: MCPError, SkillhallError."""
        view = self.get_index_view()
        row, file = view.resolve_uri(uri)
        if not file:
            raise build_invalid_params(f"{quote_uri(uri)} is a directory", "not_a_file")
        try:
            data = view.skill_view.read_file(row, file)
        except SkillFileNotFound:
            raise build_invalid_params(f"nothing is served at {quote_uri(uri)}") from None
        return with_ttl({"contents": [serialize_contents(uri, file, data)]})

    def compute_file_state(self, uri: str) -> str:
        """The digest of a file that is served; "" for what is not. It never raises."""
        view, split = self.get_index_view(), split_uri(uri)
        row = None if split is None else view.by_path.get(split[0])
        manifest = None if row is None else view.read_fresh_manifest(row)
        if split is None or manifest is None:
            return ""
        files = (file for file in manifest.files if file.path == split[1])
        return next((f"{file.digest}{file.size}{file.modified}" for file in files), "")

    def _build_view(self, provider: SkillProvider) -> IndexView:
        offer = provider.current_view()
        if self._view is None or self._view.skill_view.revision != offer.revision:
            self._view = IndexView(offer, self._manifests, self._ttl_factor)
            self._manifests.evict_others(offer)
        return self._view
