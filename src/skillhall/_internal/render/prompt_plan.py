"""The context plan: as much about an agent's skills as a number of tokens holds.

Whole descriptions first; if they do not fit, shortened ones; else names; else as many names as fit
and how to find the others. The same skills and the same budget give the same text, and no text
exceeds its budget.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.render.escape import escape_field, to_single_line
from skillhall._internal.render.inline import InlineSkill, render_inline
from skillhall._internal.render.listing import render_listing, render_listing_entry
from skillhall._internal.skill.token_count import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from skillhall._internal.render.listing import ListingEntry

MIN_DESCRIPTION_LENGTH = 24  # characters of a description; with fewer, the name alone says as much
# How to use a listed skill, by the first of these tools that the agent has.
USAGE_HINTS = {
    tool: f"Before a task that matches the description of a skill below, call {tool} with {given}, "
    "then follow its instructions."
    for tool, given in (
        ("load_skill", "its name"),
        ("read_skill_file", "its name and the path SKILL.md"),
        ("ReadFile", "its location"),
    )
}
# How to find a skill that is not listed, by the first of these tools that the agent has.
SEARCH_HINTS = {
    "search_skills": "Call search_skills with words of the task to find those that help.",
    "list_skills": "Call list_skills to see them.",
}
_TOOLS_BY_SKILL_NAME = frozenset(
    {"load_skill", "read_skill_file"}
)  # tools that take the name of a skill
MAX_DESCRIPTION_LENGTH = (
    1024  # the specification's limit; what exceeds it was shown whole or is cut here
)


class DetailLevel(Enum):
    """How much of a skill stands in the prompt."""

    INLINE = "inline"  # its whole text
    FULL = "full"  # its whole description
    SHORTENED = "shortened"
    NAME_ONLY = "name"
    SEARCHABLE = "search"  # nothing: a search or a list finds it
    OMITTED = "nothing"  # nothing, and no tool finds it


class PlannedSkill(NamedTuple):
    """What one skill has of the prompt."""

    name: str
    location: str
    detail: DetailLevel
    tokens: int  # that it costs each turn


class PlanRequest(NamedTuple):
    """What a prompt should say: skills to list, skills to inline, and the words before them."""

    listed: Sequence[ListingEntry]
    inlined: Sequence[tuple[ListingEntry, InlineSkill]] = ()
    introduction: str = ""
    search_hint: str = SEARCH_HINTS["search_skills"]  # a skill that is not listed; "" if none can
    include_locations: bool = False  # whether a cut listing needs them, since no tool takes names

    @classmethod
    def for_tools(
        cls,
        tools: Collection[str],
        listed: Sequence[ListingEntry],
        inlined: Sequence[tuple[ListingEntry, InlineSkill]] = (),
    ) -> PlanRequest:
        """How to use skills with these tools; names no tool that the agent lacks."""
        return cls(
            listed,
            inlined,
            next((said for tool, said in USAGE_HINTS.items() if tool in tools), ""),
            next((said for tool, said in SEARCH_HINTS.items() if tool in tools), ""),
            include_locations=_TOOLS_BY_SKILL_NAME.isdisjoint(tools),
        )


class PromptPlan(NamedTuple):
    """A text for the system prompt, and what became of each skill in it."""

    text: str
    tokens: int  # of the text
    budget: int | None
    skills: tuple[PlannedSkill, ...]

    @property
    def reduced_skills(self) -> tuple[PlannedSkill, ...]:
        """The skills of which the model is told less than their whole description."""
        return tuple(
            s for s in self.skills if s.detail not in (DetailLevel.INLINE, DetailLevel.FULL)
        )


class _ListingFormat(NamedTuple):
    """One way to write the listing."""

    render: Callable[[Sequence[ListingEntry]], str]
    measure: Callable[[int, ListingEntry], tuple[DetailLevel, int]]  # by the position of the skill


def plan_prompt(request: PlanRequest, budget: int | None = None) -> PromptPlan:
    """The fullest text that the budget holds; without one, everything."""
    whole = _PlanDraft(request, request.listed, request.inlined)
    if budget is None or whole.count_tokens(_FULL_FORMAT) <= budget:
        return whole.build_plan(_FULL_FORMAT, budget)
    draft = _fit_inline_skills(request, budget)
    return draft.build_plan(draft.find_best_format(budget), budget)


def _fit_inline_skills(request: PlanRequest, budget: int) -> _PlanDraft:
    """The inline skills that fit, in order; the others are listed after those to be listed."""
    draft = _PlanDraft(request, request.listed, ())
    for entry, inlined in request.inlined:
        more = draft._replace(inlined=(*draft.inlined, (entry, inlined)))
        if more.count_tokens(_build_count_only_format(request)) <= budget:
            draft = more
        else:
            draft = draft._replace(listed=(*draft.listed, entry))
    return draft


class _PlanDraft(NamedTuple):
    request: PlanRequest
    listed: Sequence[ListingEntry]
    inlined: Sequence[tuple[ListingEntry, InlineSkill]]

    def render(self, form: _ListingFormat) -> str:
        listing = form.render(self.listed) if self.listed else ""
        blocks = [self.request.introduction if listing else "", listing]
        blocks += [render_inline(*inlined) for _, inlined in self.inlined]
        return "\n\n".join(filter(None, blocks))

    def count_tokens(self, form: _ListingFormat) -> int:
        return estimate_tokens(self.render(form))

    def find_best_format(self, budget: int) -> _ListingFormat:
        """The first form of the ladder that fits; nothing if none does."""
        for form in (_FULL_FORMAT, self._build_compact_format(MAX_DESCRIPTION_LENGTH)):
            if self.count_tokens(form) <= budget:
                return form
        if self.count_tokens(self._build_compact_format(MIN_DESCRIPTION_LENGTH)) <= budget:
            return self._build_compact_format(self._find_description_length(budget))
        names = _NameListing.from_draft(self)
        if self.count_tokens(names.build_format(len(self.listed))) <= budget:
            return names.build_format(len(self.listed))
        counts = range(1, len(self.listed))
        found = bisect_right(
            counts, budget, key=lambda count: self.count_tokens(names.build_format(count))
        )
        form = names.build_format(found) if found else _build_count_only_format(self.request)
        return form if self.count_tokens(form) <= budget else _EMPTY_FORMAT

    def _build_compact_format(self, length: int) -> _ListingFormat:
        return _build_compact_format(length, include_locations=self.request.include_locations)

    def _find_description_length(self, budget: int) -> int:
        """The longest descriptions that fit; bisecting only settles on a length that was tried."""
        lengths = range(MIN_DESCRIPTION_LENGTH, MAX_DESCRIPTION_LENGTH)
        found = bisect_right(
            lengths,
            budget,
            key=lambda length: self.count_tokens(self._build_compact_format(length)),
        )
        return lengths[found - 1]

    def build_plan(self, form: _ListingFormat, budget: int | None) -> PromptPlan:
        text = self.render(form)
        return PromptPlan(text, estimate_tokens(text), budget, tuple(self._build_skills(form)))

    def _build_skills(self, form: _ListingFormat) -> Iterator[PlannedSkill]:
        for position, entry in enumerate(self.listed):
            shown, tokens = form.measure(position, entry)
            yield PlannedSkill(entry.name, entry.location, shown, tokens)
        for entry, inlined in self.inlined:
            tokens = estimate_tokens(render_inline(*inlined))
            yield PlannedSkill(entry.name, entry.location, DetailLevel.INLINE, tokens)


_FULL_FORMAT = _ListingFormat(
    render_listing,
    lambda _, entry: (DetailLevel.FULL, estimate_tokens(f"{render_listing_entry(entry)}\n")),
)
_EMPTY_FORMAT = _ListingFormat(lambda _: "", lambda _, __: (DetailLevel.OMITTED, 0))


def _wrap_listing(lines: Sequence[str]) -> str:
    return "\n".join(("<available_skills>", *lines, "</available_skills>"))


def _render_location(entry: ListingEntry, *, include_locations: bool) -> str:
    return f" ({escape_field(entry.location)})" if include_locations else ""


def _build_compact_format(length: int, *, include_locations: bool) -> _ListingFormat:
    """One line for each skill, its description cut to `length` characters."""

    def line(entry: ListingEntry) -> str:
        description = escape_field(shorten(entry.description, length))
        place = _render_location(entry, include_locations=include_locations)
        return f"- {escape_field(entry.name)}: {description}{place}"

    def share(_: int, entry: ListingEntry) -> tuple[DetailLevel, int]:
        is_whole = len(to_single_line(entry.description)) <= length
        tokens = estimate_tokens(f"{line(entry)}\n")
        return (DetailLevel.FULL if is_whole else DetailLevel.SHORTENED), tokens

    return _ListingFormat(lambda entries: _wrap_listing([*map(line, entries)]), share)


class _NameListing(NamedTuple):
    """The lines of a listing of names."""

    lines: Sequence[str]
    search_hint: str

    @classmethod
    def from_draft(cls, draft: _PlanDraft) -> _NameListing:
        """One line for each skill to be listed."""
        with_locations = draft.request.include_locations
        lines = [
            f"- "
            f"{escape_field(entry.name)}{_render_location(entry, include_locations=with_locations)}"
            for entry in draft.listed
        ]
        return cls(lines, draft.request.search_hint)

    def build_format(self, count: int) -> _ListingFormat:
        """The first `count` names, then how many more there are and how to find them."""
        missing = DetailLevel.SEARCHABLE if self.search_hint else DetailLevel.OMITTED

        def share(position: int, _: ListingEntry) -> tuple[DetailLevel, int]:
            if position >= count:
                return missing, 0
            return DetailLevel.NAME_ONLY, estimate_tokens(f"{self.lines[position]}\n")

        left = len(self.lines) - count
        rest = [_render_remainder(left, " more", self.search_hint)] if left else []
        return _ListingFormat(lambda _: _wrap_listing([*self.lines[:count], *rest]), share)


def _build_count_only_format(request: PlanRequest) -> _ListingFormat:
    """How many skills there are and how to find them; nothing if no tool finds them."""
    if not request.search_hint:
        return _EMPTY_FORMAT
    return _ListingFormat(
        lambda entries: _wrap_listing([_render_remainder(len(entries), "", request.search_hint)]),
        lambda _, __: (DetailLevel.SEARCHABLE, 0),
    )


def _render_remainder(count: int, more: str, search_hint: str) -> str:
    skills = f"{count}{more} {'skill is' if count == 1 else 'skills are'}"
    return f"{skills} not listed here. {search_hint}".rstrip()


def shorten(text: str, length: int) -> str:
    """`text` on one line and no longer than `length`, cut between words where there are any."""
    line = to_single_line(text)
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return f"{cut.rpartition(' ')[0].rstrip() or cut}…"
