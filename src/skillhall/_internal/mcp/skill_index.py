"""The stock: what a server has to show, with pages that were made before somebody asks again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.cache import SHARE, Lately
from skillhall._internal.catalog.manifests import Manifests
from skillhall._internal.catalog.skill_paths import split_uri
from skillhall._internal.mcp.cursors import position, shown
from skillhall._internal.mcp.errors import LOG, invalid
from skillhall._internal.mcp.list_pages import Page
from skillhall._internal.mcp.serializers import contents, fresh, skill_entry
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall.errors import SkillFileNotFound

if TYPE_CHECKING:
    from skillhall._internal.catalog.manifests import Manifest
    from skillhall._internal.catalog.skill_view import Offer, Offered, Offering
    from skillhall._internal.mcp.serializers import Wire
    from skillhall._internal.skill.finding import Finding

# Seconds for which the digests in a page are not compared with the disk. A skill that came, went or
# has another SKILL.md makes other pages at once, and an entry that is got alone is always compared.
PAGE_AGE = 5.0


class View:
    """One offer, in the order of skill paths, and the pages of it that were asked for."""

    def __init__(self, offer: Offer, manifests: Manifests, share: float) -> None:
        self.offer = offer
        self.rows = sorted(offer, key=lambda row: row.path)
        self.paths = [row.path for row in self.rows]
        self.by_path = {row.path: row for row in self.rows}
        self._manifests = manifests
        self._share = share
        self._pages: dict[tuple[str, str], Lately[Wire]] = {}
        self._noted: set[str] = set()

    def ready(self, kind: str, cursor: str | None) -> Wire | None:
        """A page that is at hand; never waits."""
        kept = self._pages.get((kind, cursor or ""))
        return None if kept is None else kept.ready

    def page(self, kind: str, cursor: str | None) -> Wire:
        """A page. Raises: MCPError for a cursor that is none of ours."""
        key = kind, cursor or ""
        if key not in self._pages:
            made = Page(self, kind, position(self.paths, cursor))
            self._pages[key] = Lately(made.look, self._share, PAGE_AGE if self._share else 0.0)
        return self._pages[key].value()

    def manifest(self, row: Offered) -> Manifest | None:
        """The manifest of a skill in a list; None if its files are gone or cannot be read."""
        return self._manifests.read_for_list(self.offer, row)

    def manifest_now(self, row: Offered) -> Manifest | None:
        """The same, as all files are at this moment."""
        return self._manifests.read(self.offer, row)

    def note(self, finding: Finding) -> None:
        """Tell once that the list leaves a skill out, and why."""
        if finding.path not in self._noted:
            self._noted.add(finding.path)
            LOG.info("%s", finding.message)

    def find(self, uri: str) -> tuple[Offered, str]:
        """The skill and the file that an address names. Raises: MCPError."""
        found = split_uri(uri)
        row = None if found is None else self.by_path.get(found[0])
        if found is None or row is None:
            raise invalid(f"nothing is served at {shown(uri)}")
        return row, found[1]


class Stock:
    """What an offering has, as MCP shows it; any number of threads may ask at once."""

    def __init__(self, offering: Offering, share: float = SHARE) -> None:
        self._share = share
        self._manifests = Manifests()
        self._view: View | None = None
        self._looked = Lately(partial(self._look, offering), share)

    def offer(self) -> Offer:
        """The skills there are now, or were a moment ago."""
        return self.view().offer

    def view(self) -> View:
        """The same with its pages."""
        return self._looked.value()

    def renewed(self) -> View:
        """The same, looked at in this moment."""
        return self._looked.renewed()

    def ready(self, kind: str, cursor: str | None) -> Wire | None:
        """A page that is at hand; never waits."""
        view = self._looked.ready
        return None if view is None else view.ready(kind, cursor)

    def page(self, kind: str, cursor: str | None) -> Wire:
        """A page of a list: `skills` or `resources`. Raises: MCPError."""
        return self.view().page(kind, cursor)

    def entry(self, uri: str) -> Wire:
        """The answer about one skill, as its files are at this moment. Raises: MCPError."""
        view = self.view()
        row, file = view.find(uri)
        manifest = view.manifest_now(row) if file == SKILL_MD else None
        if manifest is None:
            raise invalid(f"no skill is served at {shown(uri)}")
        if reason := manifest.reason_against_serving:
            code = "too_large" if manifest.beyond else "invalid_skill"
            raise invalid(f"{shown(uri)} is served as resources alone: {reason}", code)
        return fresh({"skill": skill_entry(row, manifest)})

    def read(self, uri: str) -> Wire:
        """The bytes of a file. Raises: MCPError, SkillhallError."""
        view = self.view()
        row, file = view.find(uri)
        if not file:
            raise invalid(f"{shown(uri)} is a directory", "not_a_file")
        try:
            data = view.offer.read_file(row, file)
        except SkillFileNotFound:
            raise invalid(f"nothing is served at {shown(uri)}") from None
        return fresh({"contents": [contents(uri, file, data)]})

    def digest(self, uri: str) -> str:
        """The digest of a file that is served; "" for what is not. It never raises."""
        view, split = self.view(), split_uri(uri)
        row = None if split is None else view.by_path.get(split[0])
        manifest = None if row is None else view.manifest_now(row)
        if split is None or manifest is None:
            return ""
        files = (file for file in manifest.files if file.path == split[1])
        return next((f"{file.digest}{file.size}{file.modified}" for file in files), "")

    def _look(self, offering: Offering) -> View:
        offer = offering.offer()
        if self._view is None or self._view.offer.revision != offer.revision:
            self._view = View(offer, self._manifests, self._share)
            self._manifests.forget_others(offer)
        return self._view
