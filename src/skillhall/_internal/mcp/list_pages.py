"""Pages of `skills/list` and `resources/list`, rebuilt only when a skill in them changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.catalog.manifests import explain_exclusion
from skillhall._internal.mcp.cursors import CURSOR_PREFIX
from skillhall._internal.mcp.serializers import serialize_page, serialize_resource, serialize_skill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.manifests import Manifest
    from skillhall._internal.catalog.skill_view import ViewedSkill
    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.skill.finding import Finding

    SkillWithManifest: TypeAlias = tuple[ViewedSkill, Manifest]

SKILLS_PAGE_SIZE = 100
RESOURCES_PAGE_SIZE = 200  # plus the remaining files of the last skill


class PageSource(Protocol):
    """The skills that pages are built from."""

    @property
    def rows(self) -> Sequence[ViewedSkill]:
        """All skills, in list order."""

    def read_manifest(self, row: ViewedSkill) -> Manifest | None:
        """Return the manifest of a skill; `None` if its files cannot be read."""

    def report_skipped(self, finding: Finding) -> None:
        """Report a skill that the list omits."""


class PageSelection(NamedTuple):
    """The skills of a page and whether more follow."""

    skills: list[SkillWithManifest]
    has_more: bool

    def is_same(self, other: PageSelection) -> bool:
        """Whether both give the same page: an unchanged manifest is the same object."""
        if len(self.skills) != len(other.skills) or self.has_more != other.has_more:
            return False
        pairs = zip(self.skills, other.skills, strict=True)
        return all(old[0] is new[0] and old[1] is new[1] for old, new in pairs)


class ListPage:
    """One page of a list."""

    def __init__(self, source: PageSource, kind: str, start: int) -> None:
        self._source = source
        self._kind = kind
        self._start = start  # index of its first skill
        self._last: tuple[PageSelection, JsonObject] | None = None

    def build(self) -> JsonObject:
        """Return the current page; the same object while nothing changes."""
        select, serialize = _LIST_KINDS[self._kind]
        selection = select(self._source, self._start)
        last = self._last
        if last is not None and last[0].is_same(selection):
            return last[1]
        rows = [row for skill in selection.skills for row in serialize(*skill)]
        cursor = f"{CURSOR_PREFIX}{selection.skills[-1][0].path}" if selection.has_more else None
        page = serialize_page(self._kind, rows, cursor)
        self._last = selection, page
        return page


def _select_skills(source: PageSource, start: int) -> PageSelection:
    """Select skills that every host accepts."""
    selected: list[SkillWithManifest] = []
    for number in range(start, len(source.rows)):
        row = source.rows[number]
        manifest = source.read_manifest(row)
        finding = explain_exclusion(row, manifest)
        if finding is not None:
            source.report_skipped(finding)
        elif len(selected) == SKILLS_PAGE_SIZE:
            return PageSelection(selected, has_more=True)
        elif manifest is not None:
            selected.append((row, manifest))
    return PageSelection(selected, has_more=False)


def _select_resources(source: PageSource, start: int) -> PageSelection:
    """Select skills until their files fill a page."""
    selected: list[SkillWithManifest] = []
    files = 0
    for number in range(start, len(source.rows)):
        row = source.rows[number]
        manifest = source.read_manifest(row)
        if manifest is None:
            continue
        if files >= RESOURCES_PAGE_SIZE:
            return PageSelection(selected, has_more=True)
        selected.append((row, manifest))
        files += len(manifest.files)
    return PageSelection(selected, has_more=False)


def _serialize_resources(row: ViewedSkill, manifest: Manifest) -> list[JsonObject]:
    return [serialize_resource(row, file) for file in manifest.files]


_LIST_KINDS: Mapping[
    str,
    tuple[
        Callable[[PageSource, int], PageSelection],
        Callable[[ViewedSkill, Manifest], list[JsonObject]],
    ],
] = {
    "skills": (_select_skills, lambda row, manifest: [serialize_skill(row, manifest)]),
    "resources": (_select_resources, _serialize_resources),
}
