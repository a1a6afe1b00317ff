"""Prompt plan: fits the skills of an agent into a token budget.

Full descriptions are tried first, then shortened ones, then names, then as many names as fit and
how to find the others. The result is deterministic and never exceeds the budget.
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

MIN_DESCRIPTION_LENGTH = 24  # characters; less would add nothing to the name
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
    "search_skills": "Call search_skills with words of the task to find those that help.",
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
    """The share of one skill in the prompt."""

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
    """The text for a system prompt, and the share of each skill in it."""

    text: str
    tokens: int  # of the text
    budget: int | None
    skills: tuple[PlannedSkill, ...]

    @property
    def reduced_skills(self) -> tuple[PlannedSkill, ...]:
        """The skills without a complete description in the prompt."""
        complete = (DetailLevel.INLINE, DetailLevel.FULL)
        return tuple(skill for skill in self.skills if skill.detail not in complete)


class _ListingFormat(NamedTuple):
    """A format of the listing."""

    render: Callable[[Sequence[ListingEntry]], str]
    measure: Callable[[int, ListingEntry], tuple[DetailLevel, int]]  # by index


def plan_prompt(request: PlanRequest, budget: int | None = None) -> PromptPlan:
    """Render as much as the budget allows; without a budget, everything."""
    complete = _PlanDraft(request, request.listed, request.inlined)
    if budget is None or complete.count_tokens(_FULL_FORMAT) <= budget:
        return complete.build_plan(_FULL_FORMAT, budget)
    draft = _fit_inline_skills(request, budget)
    return draft.build_plan(draft.find_best_format(budget), budget)


def _fit_inline_skills(request: PlanRequest, budget: int) -> _PlanDraft:
    """Inline the skills that fit, in order, and list the others at the end."""
    draft = _PlanDraft(request, request.listed, ())
    for entry, inlined in request.inlined:
        larger = draft._replace(inlined=(*draft.inlined, (entry, inlined)))
        if larger.count_tokens(_build_count_only_format(request)) <= budget:
            draft = larger
        else:
            draft = draft._replace(listed=(*draft.listed, entry))
    return draft


class _PlanDraft(NamedTuple):
    request: PlanRequest
    listed: Sequence[ListingEntry]
    inlined: Sequence[tuple[ListingEntry, InlineSkill]]

    def render(self, format_: _ListingFormat) -> str:
        listing = format_.render(self.listed) if self.listed else ""
        blocks = [self.request.introduction if listing else "", listing]
        blocks += [render_inline(*inlined) for _, inlined in self.inlined]
        return "\n\n".join(filter(None, blocks))

    def count_tokens(self, format_: _ListingFormat) -> int:
        return estimate_tokens(self.render(format_))

    def find_best_format(self, budget: int) -> _ListingFormat:
        """Return the most detailed format that fits; an empty one if none does."""
        for format_ in (_FULL_FORMAT, self._build_compact_format(MAX_DESCRIPTION_LENGTH)):
            if self.count_tokens(format_) <= budget:
                return format_
        if self.count_tokens(self._build_compact_format(MIN_DESCRIPTION_LENGTH)) <= budget:
            return self._build_compact_format(self._find_description_length(budget))
        names = _NameListing.from_draft(self)
        if self.count_tokens(names.build_format(len(self.listed))) <= budget:
            return names.build_format(len(self.listed))
        counts = range(1, len(self.listed))
        count = bisect_right(counts, budget, key=lambda n: self.count_tokens(names.build_format(n)))
        format_ = names.build_format(count) if count else _build_count_only_format(self.request)
        return format_ if self.count_tokens(format_) <= budget else _EMPTY_FORMAT

    def _build_compact_format(self, length: int) -> _ListingFormat:
        return _build_compact_format(length, include_locations=self.request.include_locations)

    def _find_description_length(self, budget: int) -> int:
        """Return the longest length of descriptions that fits."""
        # Sizes may not grow strictly with the length, but the bisection ends at a length that fits.
        lengths = range(MIN_DESCRIPTION_LENGTH, MAX_DESCRIPTION_LENGTH)
        index = bisect_right(
            lengths, budget, key=lambda n: self.count_tokens(self._build_compact_format(n))
        )
        return lengths[index - 1]

    def build_plan(self, format_: _ListingFormat, budget: int | None) -> PromptPlan:
        text = self.render(format_)
        return PromptPlan(text, estimate_tokens(text), budget, tuple(self._build_skills(format_)))

    def _build_skills(self, format_: _ListingFormat) -> Iterator[PlannedSkill]:
        for index, entry in enumerate(self.listed):
            detail, tokens = format_.measure(index, entry)
            yield PlannedSkill(entry.name, entry.location, detail, tokens)
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
    """Build a format with one line per skill and descriptions of `length` characters."""

    def render_line(entry: ListingEntry) -> str:
        description = escape_field(shorten(entry.description, length))
        location = _render_location(entry, include_locations=include_locations)
        return f"- {escape_field(entry.name)}: {description}{location}"

    def measure(_: int, entry: ListingEntry) -> tuple[DetailLevel, int]:
        is_complete = len(to_single_line(entry.description)) <= length
        tokens = estimate_tokens(f"{render_line(entry)}\n")
        return (DetailLevel.FULL if is_complete else DetailLevel.SHORTENED), tokens

    return _ListingFormat(lambda entries: _wrap_listing([*map(render_line, entries)]), measure)


class _NameListing(NamedTuple):
    """A listing of names without descriptions."""

    lines: Sequence[str]
    search_hint: str

    @classmethod
    def from_draft(cls, draft: _PlanDraft) -> _NameListing:
        """Render one line per listed skill."""
        lines = []
        for entry in draft.listed:
            location = _render_location(entry, include_locations=draft.request.include_locations)
            lines.append(f"- {escape_field(entry.name)}{location}")
        return cls(lines, draft.request.search_hint)

    def build_format(self, count: int) -> _ListingFormat:
        """Build a format with the first `count` names and how to find the others."""
        missing = DetailLevel.SEARCHABLE if self.search_hint else DetailLevel.OMITTED

        def measure(index: int, _: ListingEntry) -> tuple[DetailLevel, int]:
            if index >= count:
                return missing, 0
            return DetailLevel.NAME_ONLY, estimate_tokens(f"{self.lines[index]}\n")

        more = len(self.lines) - count
        rest = [_render_remainder(more, " more", self.search_hint)] if more else []
        return _ListingFormat(lambda _: _wrap_listing([*self.lines[:count], *rest]), measure)


def _build_count_only_format(request: PlanRequest) -> _ListingFormat:
    """Build a format with only the number of skills; empty if no tool finds them."""
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
    """Put `text` on one line and cut it at `length` characters, between words."""
    line = to_single_line(text)
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return f"{cut.rpartition(' ')[0].rstrip() or cut}…"
