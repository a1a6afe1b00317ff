"""Prompt plan: fits the skills of an agent into a token budget.

Full descriptions are tried first, then shortened ones, then names only, then as many names as fit
and how to find the others. The most relevant skills, such as those for a known task, come
first and keep more of their descriptions. The result is deterministic and never exceeds the budget.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import NamedTuple

from skillhall._internal.render.escape import escape_field, to_single_line
from skillhall._internal.render.listing import (
    InlineSkill,
    ListingEntry,
    render_inline,
    render_listing,
    render_listing_entry,
)
from skillhall._internal.skill.token_count import estimate_tokens

MIN_DESCRIPTION_LENGTH = 24  # characters; less would add nothing to the name
# Of a leading skill whose complete description does not fit: enough to choose by.
SHORT_DESCRIPTION_LENGTH = 100
_MAX_LINES_PER_TOKEN = 2  # a line takes more than half a token
# How to use a listed skill; the first tool that the agent has is used.
USAGE_HINTS = {
    tool: f"Before a task that matches the description of a skill below, call {tool} with {args}, "
    "then follow its instructions."
    for tool, args in (
        ("load_skill", "its name"),
        ("read_skill_file", "its name and the path SKILL.md"),
        ("ReadFile", "its location"),
    )
}
# How to find a skill that is not listed; the first tool that the agent has is used.
SEARCH_HINTS = {
    "search_skills": "Call search_skills with words from the task to find those that help.",
    "list_skills": "Call list_skills to see them.",
}
_TOOLS_BY_SKILL_NAME = frozenset({"load_skill", "read_skill_file"})
MAX_DESCRIPTION_LENGTH = 1024  # of a shortened description; the specification's limit


class DetailLevel(Enum):
    """How much of a skill is in the prompt."""

    INLINE = "inline"  # the body
    FULL = "full"  # the complete description
    SHORTENED = "shortened"
    NAME_ONLY = "name"
    SEARCHABLE = "search"  # not listed, but a tool finds it
    OMITTED = "nothing"  # not listed, and no tool finds it


class PlannedSkill(NamedTuple):
    """How one skill appears in the prompt, and its tokens."""

    name: str
    location: str
    detail: DetailLevel
    tokens: int  # in each turn


class PlanRequest(NamedTuple):
    """The skills to list and to inline, and the text around them."""

    listed: Sequence[ListingEntry]
    inlined: Sequence[tuple[ListingEntry, InlineSkill]] = ()
    introduction: str = ""
    search_hint: str = SEARCH_HINTS["search_skills"]  # "" if no tool finds skills
    include_locations: bool = False  # in a shortened listing, if no tool takes names
    # Returns the locations of the skills that matter most, best first. Called only if something
    # must be shortened, because it may have to search.
    find_leading: Callable[[], Sequence[str]] | None = None

    @classmethod
    def for_tools(
        cls,
        tools: Collection[str],
        listed: Sequence[ListingEntry],
        inlined: Sequence[tuple[ListingEntry, InlineSkill]] = (),
    ) -> PlanRequest:
        """Build the request for an agent with these tools."""
        return cls(
            listed,
            inlined,
            next((hint for tool, hint in USAGE_HINTS.items() if tool in tools), ""),
            next((hint for tool, hint in SEARCH_HINTS.items() if tool in tools), ""),
            include_locations=_TOOLS_BY_SKILL_NAME.isdisjoint(tools),
        )


class PromptPlan(NamedTuple):
    """The text for a system prompt, and how each skill appears in it."""

    text: str
    tokens: int  # of the text
    budget: int | None
    skills: tuple[PlannedSkill, ...]

    @property
    def listed_skills(self) -> tuple[PlannedSkill, ...]:
        """The skills that the prompt contains, even if only by name."""
        unlisted = (DetailLevel.SEARCHABLE, DetailLevel.OMITTED)
        return tuple(skill for skill in self.skills if skill.detail not in unlisted)

    @property
    def reduced_skills(self) -> tuple[PlannedSkill, ...]:
        """The skills without a complete description in the prompt."""
        complete = (DetailLevel.INLINE, DetailLevel.FULL)
        return tuple(skill for skill in self.skills if skill.detail not in complete)


class _Listing(NamedTuple):
    """The text of a listing, and the detail and tokens of each skill in it."""

    text: str
    measure: Callable[[int], tuple[DetailLevel, int]]  # by index


_EMPTY_LISTING = _Listing("", lambda _: (DetailLevel.OMITTED, 0))


def plan_prompt(request: PlanRequest, budget: int | None = None) -> PromptPlan:
    """Render as much as the budget allows; without a budget, everything."""
    draft = _PlanDraft(request, request.listed, request.inlined)
    complete = draft.list_completely()
    if budget is None or draft.count_tokens(complete) <= budget:
        return draft.build_plan(complete, budget)
    # Inline the skills that fit, in order, and list the others at the end. A skill fits if there is
    # room for the shortest listing next to it.
    draft = _PlanDraft(request, request.listed, ())
    for entry, inlined in request.inlined:
        larger = draft._replace(inlined=(*draft.inlined, (entry, inlined)))
        if larger.count_tokens(larger.list_count()) <= budget:
            draft = larger
        else:
            draft = draft._replace(listed=(*draft.listed, entry))
    return draft.build_plan(draft.find_best_listing(budget), budget)


class _PlanDraft(NamedTuple):
    """The skills to list and to inline; each `list_*` method renders one detail level."""

    request: PlanRequest
    listed: Sequence[ListingEntry]
    inlined: Sequence[tuple[ListingEntry, InlineSkill]]

    def render(self, listing: _Listing) -> str:
        blocks = [self.request.introduction if listing.text else "", listing.text]
        blocks += [render_inline(*inlined) for _, inlined in self.inlined]
        return "\n\n".join(filter(None, blocks))

    def count_tokens(self, listing: _Listing) -> int:
        return estimate_tokens(self.render(listing))

    def build_plan(self, listing: _Listing, budget: int | None) -> PromptPlan:
        skills = []
        for index, entry in enumerate(self.listed):
            skills.append(PlannedSkill(entry.name, entry.location, *listing.measure(index)))
        for entry, inlined in self.inlined:
            tokens = estimate_tokens(render_inline(*inlined))
            skills.append(PlannedSkill(entry.name, entry.location, DetailLevel.INLINE, tokens))
        text = self.render(listing)
        return PromptPlan(text, estimate_tokens(text), budget, tuple(skills))

    def find_best_listing(self, budget: int) -> _Listing:
        """Return the most detailed listing that fits; an empty one if none does."""

        def fits(listing: _Listing) -> bool:
            return self.count_tokens(listing) <= budget

        for listing in (self.list_completely(), self.list_compactly(MAX_DESCRIPTION_LENGTH)):
            if fits(listing):
                return listing
        if self.request.find_leading is not None:
            return self.find_best_selection(budget, self.request.find_leading())
        if fits(self.list_compactly(MIN_DESCRIPTION_LENGTH)):
            # Sizes may not grow strictly with the length, but the bisection ends at one that fits.
            lengths = range(MIN_DESCRIPTION_LENGTH, MAX_DESCRIPTION_LENGTH)
            index = bisect_right(
                lengths, budget, key=lambda n: self.count_tokens(self.list_compactly(n))
            )
            return self.list_compactly(lengths[index - 1])
        names = [self._render_line(entry, 0) for entry in self.listed]
        if fits(everything := self.list_names(names, len(names))):
            return everything
        count = bisect_right(
            range(1, len(names)), budget, key=lambda n: self.count_tokens(self.list_names(names, n))
        )
        listing = self.list_names(names, count) if count else self.list_count()
        return listing if fits(listing) else _EMPTY_LISTING

    def find_best_selection(self, budget: int, leading: Sequence[str]) -> _Listing:
        """Return the best listing with the skills at the `leading` locations first."""
        indexes = {entry.location: index for index, entry in enumerate(self.listed)}
        first = [*dict.fromkeys(indexes[one] for one in leading if one in indexes)]
        order = [*dict.fromkeys((*first, *range(len(self.listed))))]

        def count(lengths: Sequence[int]) -> int:
            return self.count_tokens(self.list_selection(order, lengths))

        lengths = _LengthChooser(count, budget, len(order), len(first)).choose()
        listing = self.list_selection(order, lengths) if lengths else self.list_count()
        return listing if self.count_tokens(listing) <= budget else _EMPTY_LISTING

    def list_completely(self) -> _Listing:
        """List all descriptions and locations."""

        def measure(index: int) -> tuple[DetailLevel, int]:
            tokens = estimate_tokens(f"{render_listing_entry(self.listed[index])}\n")
            return DetailLevel.FULL, tokens

        return _Listing(render_listing(self.listed), measure)

    def list_compactly(self, length: int) -> _Listing:
        """List one line per skill, with descriptions of at most `length` characters."""
        lines = [self._render_line(entry, length) for entry in self.listed]

        def measure(index: int) -> tuple[DetailLevel, int]:
            detail = _get_detail(self.listed[index], length)
            return detail, estimate_tokens(f"{lines[index]}\n")

        return _Listing(_wrap_lines(lines), measure)

    def list_selection(self, order: Sequence[int], lengths: Sequence[int]) -> _Listing:
        """List the first skills of `order`, and count the others.

        `lengths` has the maximum length of each description; with 0, only the name is listed.
        """
        positions = {index: position for position, index in enumerate(order[: len(lengths)])}
        chosen = [self.listed[index] for index in positions]
        lines = [*map(self._render_line, chosen, lengths)]
        search_hint, more = self.request.search_hint, len(order) - len(lengths)

        def measure(index: int) -> tuple[DetailLevel, int]:
            position = positions.get(index)
            if position is None:
                return (DetailLevel.SEARCHABLE if search_hint else DetailLevel.OMITTED), 0
            detail = _get_detail(chosen[position], lengths[position])
            return detail, estimate_tokens(f"{lines[position]}\n")

        rest = [_render_remainder(more, " more", search_hint)] if more else []
        return _Listing(_wrap_lines([*lines, *rest]), measure)

    def list_names(self, names: Sequence[str], count: int) -> _Listing:
        """List the first `count` names, and say how to find the others."""
        search_hint, more = self.request.search_hint, len(names) - count

        def measure(index: int) -> tuple[DetailLevel, int]:
            if index < count:
                return DetailLevel.NAME_ONLY, estimate_tokens(f"{names[index]}\n")
            return (DetailLevel.SEARCHABLE if search_hint else DetailLevel.OMITTED), 0

        rest = [_render_remainder(more, " more", search_hint)] if more else []
        return _Listing(_wrap_lines([*names[:count], *rest]), measure)

    def list_count(self) -> _Listing:
        """State only the number of skills; empty if no tool can find them."""
        if not self.request.search_hint or not self.listed:
            return _EMPTY_LISTING
        text = _render_remainder(len(self.listed), "", self.request.search_hint)
        return _Listing(_wrap_lines([text]), lambda _: (DetailLevel.SEARCHABLE, 0))

    def _render_line(self, entry: ListingEntry, length: int) -> str:
        where = f" ({escape_field(entry.location)})" if self.request.include_locations else ""
        if not length:
            return f"- {escape_field(entry.name)}{where}"
        description = escape_field(shorten(entry.description, length))
        return f"- {escape_field(entry.name)}: {description}{where}"


class _LengthChooser(NamedTuple):
    """Chooses how long each description may be, within a token budget."""

    count: Callable[[Sequence[int]], int]  # the tokens of a listing with these lengths
    budget: int
    total: int  # skills
    leading: int  # the skills that matter most, at the beginning

    def choose(self) -> Sequence[int]:
        """Return a description length for each skill to list; 0 means only the name."""
        if self.total <= self._max_lines:
            if self.count([MIN_DESCRIPTION_LENGTH] * self.total) <= self.budget:
                return self._describe_all()
            if self.count([0] * self.total) <= self.budget:
                return self._describe_some()
        return self._leave_out()

    @property
    def _max_lines(self) -> int:
        return _MAX_LINES_PER_TOKEN * self.budget

    def _describe_all(self) -> Sequence[int]:
        """Split the remaining budget: complete descriptions at the top, short ones below."""
        least = self.count([MIN_DESCRIPTION_LENGTH] * self.total)

        def describe(top: int, length: int) -> list[int]:
            return _describe_first(top, self.total, max(length, MIN_DESCRIPTION_LENGTH))

        top = self._fill((least + self.budget) // 2, self.total, lambda n: describe(n, 0))
        length = self._fill(self.budget, MAX_DESCRIPTION_LENGTH, lambda n: describe(top, n))
        # The same length for all others may leave room.
        top = self._fill(self.budget, self.total, lambda n: describe(n, length))
        return describe(top, length)

    def _describe_some(self) -> Sequence[int]:
        """List all names, with complete descriptions at the top."""
        top = self._fill(self.budget, self.total, lambda n: _describe_first(n, self.total, 0))
        return _describe_first(top, self.total, 0)

    def _leave_out(self) -> Sequence[int]:
        """Use half of the budget for complete descriptions, then short ones, then names."""
        leading, lines = min(self.leading, self._max_lines), min(self.total, self._max_lines)
        limit = (self.count([]) + self.budget) // 2
        top = self._fill(limit, leading, lambda n: [MAX_DESCRIPTION_LENGTH] * n)
        wanted = _describe_first(top, leading, SHORT_DESCRIPTION_LENGTH) + [0] * (lines - leading)
        chosen = wanted[: self._fill(self.budget, lines, lambda n: wanted[:n])]
        more = self._fill(self.budget, lines - len(chosen), lambda n: [*chosen, *[0] * n])
        return [*chosen, *[0] * more]

    def _fill(self, limit: int, most: int, get_lengths: Callable[[int], list[int]]) -> int:
        """Return the largest n up to `most` for which `get_lengths(n)` fits the limit."""
        return bisect_right(range(1, most + 1), limit, key=lambda n: self.count(get_lengths(n)))


def _describe_first(count: int, total: int, length: int) -> list[int]:
    """Return the full length for the first `count` of `total` skills, else `length`."""
    return [MAX_DESCRIPTION_LENGTH] * count + [length] * (total - count)


def _get_detail(entry: ListingEntry, length: int) -> DetailLevel:
    if not length:
        return DetailLevel.NAME_ONLY
    is_complete = len(to_single_line(entry.description)) <= length
    return DetailLevel.FULL if is_complete else DetailLevel.SHORTENED


def _wrap_lines(lines: Sequence[str]) -> str:
    return "\n".join(("<available_skills>", *lines, "</available_skills>")) if lines else ""


def _render_remainder(count: int, more: str, search_hint: str) -> str:
    skills = f"{count}{more} {'skill is' if count == 1 else 'skills are'}"
    return f"{skills} not listed here. {search_hint}".rstrip()


def shorten(text: str, length: int) -> str:
    """Put `text` on one line and cut it at `length` characters, between words."""
    line = to_single_line(text)
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return f"{cut.rpartition(' ')[0].rstrip() or cut}…"
