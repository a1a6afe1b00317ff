"""Pages of lists: made once, and made again only when a skill in them changed."""

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
RESOURCES_PAGE_SIZE = 200  # and as many more as the last skill has


class PageSource(Protocol):
    """What pages are made of."""

    @property
    def rows(self) -> Sequence[ViewedSkill]:
        """All skills, in the order of the list."""

    def read_manifest(self, row: ViewedSkill) -> Manifest | None:
        """The files of one; None if they cannot be read."""

    def report_skipped(self, finding: Finding) -> None:
        """Tell that a list leaves a skill out."""


class PageSelection(NamedTuple):
    """The skills of a page, and whether more follow."""

    skills: list[SkillWithManifest]
    has_more: bool

    def is_same(self, other: PageSelection) -> bool:
        """Whether both would make the same page: an unchanged manifest is the same object."""
        if len(self.skills) != len(other.skills) or self.has_more != other.has_more:
            return False
        pairs = zip(self.skills, other.skills, strict=True)
        return all(one[0] is two[0] and one[1] is two[1] for one, two in pairs)


class ListPage:
    """One page of a list of one kind."""

    def __init__(self, source: PageSource, kind: str, start: int) -> None:
        self._source = source
        self._kind = kind
        self._start = start  # the number of its first skill
        self._last: tuple[PageSelection, JsonObject] | None = None

    def build(self) -> JsonObject:
        """The page as it is now; the same object while nothing changes."""
        choose, shape = _LIST_KINDS[self._kind]
        choice = choose(self._source, self._start)
        last = self._last
        if last is not None and last[0].is_same(choice):
            return last[1]
        rows = [told for one in choice.skills for told in shape(*one)]
        following = f"{CURSOR_PREFIX}{choice.skills[-1][0].path}" if choice.has_more else None
        wire = serialize_page(self._kind, rows, following)
        self._last = choice, wire
        return wire


def _select_skills(source: PageSource, start: int) -> PageSelection:
    """Skills that every host takes."""
    chosen: list[SkillWithManifest] = []
    for number in range(start, len(source.rows)):
        row = source.rows[number]
        manifest = source.read_manifest(row)
        finding = explain_exclusion(row, manifest)
        if finding is not None:
            source.report_skipped(finding)
        elif len(chosen) == SKILLS_PAGE_SIZE:
            return PageSelection(chosen, has_more=True)
        elif manifest is not None:
            chosen.append((row, manifest))
    return PageSelection(chosen, has_more=False)


def _select_resources(source: PageSource, start: int) -> PageSelection:
    """Skills until their files fill a page."""
    chosen: list[SkillWithManifest] = []
    files = 0
    for number in range(start, len(source.rows)):
        row = source.rows[number]
        manifest = source.read_manifest(row)
        if manifest is None:
            continue
        if files >= RESOURCES_PAGE_SIZE:
            return PageSelection(chosen, has_more=True)
        chosen.append((row, manifest))
        files += len(manifest.files)
    return PageSelection(chosen, has_more=False)


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
