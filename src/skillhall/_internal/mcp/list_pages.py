"""Pages of lists: made once, and made again only when a skill in them changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.catalog.manifests import left_out
from skillhall._internal.mcp.cursors import AFTER
from skillhall._internal.mcp.serializers import page, resource, skill_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.manifests import Manifest
    from skillhall._internal.catalog.skill_view import Offered
    from skillhall._internal.mcp.serializers import Wire
    from skillhall._internal.skill.finding import Finding

    Chosen: TypeAlias = tuple[Offered, Manifest]

SKILLS_IN_PAGE = 100
RESOURCES_IN_PAGE = 200  # and as many more as the last skill has


class Rows(Protocol):
    """What pages are made of."""

    @property
    def rows(self) -> Sequence[Offered]:
        """All skills, in the order of the list."""

    def manifest(self, row: Offered) -> Manifest | None:
        """The files of one; None if they cannot be read."""

    def note(self, finding: Finding) -> None:
        """Tell that a list leaves a skill out."""


class Choice(NamedTuple):
    """The skills of a page, and whether more follow."""

    skills: list[Chosen]
    more: bool

    def is_same(self, other: Choice) -> bool:
        """Whether both would make the same page: an unchanged manifest is the same object."""
        if len(self.skills) != len(other.skills) or self.more != other.more:
            return False
        pairs = zip(self.skills, other.skills, strict=True)
        return all(one[0] is two[0] and one[1] is two[1] for one, two in pairs)


class Page:
    """One page of a list of one kind."""

    def __init__(self, view: Rows, kind: str, start: int) -> None:
        self._view = view
        self._kind = kind
        self._start = start  # the number of its first skill
        self._last: tuple[Choice, Wire] | None = None

    def look(self) -> Wire:
        """The page as it is now; the same object while nothing changes."""
        choose, shape = _KINDS[self._kind]
        choice = choose(self._view, self._start)
        last = self._last
        if last is not None and last[0].is_same(choice):
            return last[1]
        rows = [told for one in choice.skills for told in shape(*one)]
        following = f"{AFTER}{choice.skills[-1][0].path}" if choice.more else None
        wire = page(self._kind, rows, following)
        self._last = choice, wire
        return wire


def _choose_skills(view: Rows, start: int) -> Choice:
    """Skills that every host takes."""
    chosen: list[Chosen] = []
    for number in range(start, len(view.rows)):
        row = view.rows[number]
        manifest = view.manifest(row)
        finding = left_out(row, manifest)
        if finding is not None:
            view.note(finding)
        elif len(chosen) == SKILLS_IN_PAGE:
            return Choice(chosen, more=True)
        elif manifest is not None:
            chosen.append((row, manifest))
    return Choice(chosen, more=False)


def _choose_resources(view: Rows, start: int) -> Choice:
    """Skills until their files fill a page."""
    chosen: list[Chosen] = []
    files = 0
    for number in range(start, len(view.rows)):
        row = view.rows[number]
        manifest = view.manifest(row)
        if manifest is None:
            continue
        if files >= RESOURCES_IN_PAGE:
            return Choice(chosen, more=True)
        chosen.append((row, manifest))
        files += len(manifest.files)
    return Choice(chosen, more=False)


def _resources(row: Offered, manifest: Manifest) -> list[Wire]:
    return [resource(row, file) for file in manifest.files]


_KINDS: Mapping[
    str, tuple[Callable[[Rows, int], Choice], Callable[[Offered, Manifest], list[Wire]]]
] = {
    "skills": (_choose_skills, lambda row, manifest: [skill_entry(row, manifest)]),
    "resources": (_choose_resources, _resources),
}
