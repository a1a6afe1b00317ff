"""The context plan: as much about an agent's skills as a number of tokens holds.

Whole descriptions first; if they do not fit, shortened ones; else names; else as many names as fit
and how to find the others. The same skills and the same budget give the same text, and no text
exceeds its budget.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.render.escape import field, one_line
from skillhall._internal.render.inline import Inlined, render_inline
from skillhall._internal.render.listing import render_element, render_listing
from skillhall._internal.skill.token_count import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from skillhall._internal.render.listing import Entry

SHORTEST = 24  # characters of a description; with fewer, the name alone says as much
# How to use a listed skill, by the first of these tools that the agent has.
HOW_TO_USE = {
    tool: f"Before a task that matches the description of a skill below, call {tool} with {given}, "
    "then follow its instructions."
    for tool, given in (
        ("load_skill", "its name"),
        ("read_skill_file", "its name and the path SKILL.md"),
        ("ReadFile", "its location"),
    )
}
# How to find a skill that is not listed, by the first of these tools that the agent has.
HOW_TO_FIND = {
    "search_skills": "Call search_skills with words of the task to find those that help.",
    "list_skills": "Call list_skills to see them.",
}
_BY_NAME = frozenset({"load_skill", "read_skill_file"})  # tools that take the name of a skill
LONGEST = 1024  # the specification's limit; what exceeds it was shown whole or is cut here


class Shown(Enum):
    """How much of a skill stands in the prompt."""

    INLINE = "inline"  # its whole text
    FULL = "full"  # its whole description
    SHORTENED = "shortened"
    NAME = "name"
    SEARCH = "search"  # nothing: a search or a list finds it
    NOTHING = "nothing"  # nothing, and no tool finds it


class SkillShare(NamedTuple):
    """What one skill has of the prompt."""

    name: str
    location: str
    shown: Shown
    tokens: int  # that it costs each turn


class Wanted(NamedTuple):
    """What a prompt should say: skills to list, skills to inline, and the words before them."""

    listed: Sequence[Entry]
    inlined: Sequence[tuple[Entry, Inlined]] = ()
    introduction: str = ""
    how_to_find: str = HOW_TO_FIND["search_skills"]  # a skill that is not listed; "" if none can
    with_locations: bool = False  # whether a cut listing needs them, since no tool takes names

    @classmethod
    def for_tools(
        cls,
        tools: Collection[str],
        listed: Sequence[Entry],
        inlined: Sequence[tuple[Entry, Inlined]] = (),
    ) -> Wanted:
        """How to use skills with these tools; names no tool that the agent lacks."""
        return cls(
            listed,
            inlined,
            next((said for tool, said in HOW_TO_USE.items() if tool in tools), ""),
            next((said for tool, said in HOW_TO_FIND.items() if tool in tools), ""),
            with_locations=_BY_NAME.isdisjoint(tools),
        )


class Plan(NamedTuple):
    """A text for the system prompt, and what became of each skill in it."""

    text: str
    tokens: int  # of the text
    budget: int | None
    shares: tuple[SkillShare, ...]

    @property
    def cut(self) -> tuple[SkillShare, ...]:
        """The skills of which the model is told less than their whole description."""
        return tuple(s for s in self.shares if s.shown not in (Shown.INLINE, Shown.FULL))


class _Form(NamedTuple):
    """One way to write the listing."""

    render: Callable[[Sequence[Entry]], str]
    share: Callable[[int, Entry], tuple[Shown, int]]  # by the position of the skill


def plan_prompt(wanted: Wanted, budget: int | None = None) -> Plan:
    """The fullest text that the budget holds; without one, everything."""
    whole = _Draft(wanted, wanted.listed, wanted.inlined)
    if budget is None or whole.tokens(_WHOLE) <= budget:
        return whole.plan(_WHOLE, budget)
    draft = _fitted_inline(wanted, budget)
    return draft.plan(draft.best_form(budget), budget)


def _fitted_inline(wanted: Wanted, budget: int) -> _Draft:
    """The inline skills that fit, in order; the others are listed after those to be listed."""
    draft = _Draft(wanted, wanted.listed, ())
    for entry, inlined in wanted.inlined:
        more = draft._replace(inlined=(*draft.inlined, (entry, inlined)))
        if more.tokens(_none_listed(wanted)) <= budget:
            draft = more
        else:
            draft = draft._replace(listed=(*draft.listed, entry))
    return draft


class _Draft(NamedTuple):
    wanted: Wanted
    listed: Sequence[Entry]
    inlined: Sequence[tuple[Entry, Inlined]]

    def text(self, form: _Form) -> str:
        listing = form.render(self.listed) if self.listed else ""
        blocks = [self.wanted.introduction if listing else "", listing]
        blocks += [render_inline(*inlined) for _, inlined in self.inlined]
        return "\n\n".join(filter(None, blocks))

    def tokens(self, form: _Form) -> int:
        return estimate_tokens(self.text(form))

    def best_form(self, budget: int) -> _Form:
        """The first form of the ladder that fits; nothing if none does."""
        for form in (_WHOLE, self._compact(LONGEST)):
            if self.tokens(form) <= budget:
                return form
        if self.tokens(self._compact(SHORTEST)) <= budget:
            return self._compact(self._length(budget))
        names = _Names.of(self)
        if self.tokens(names.form(len(self.listed))) <= budget:
            return names.form(len(self.listed))
        counts = range(1, len(self.listed))
        found = bisect_right(counts, budget, key=lambda count: self.tokens(names.form(count)))
        form = names.form(found) if found else _none_listed(self.wanted)
        return form if self.tokens(form) <= budget else _NOTHING

    def _compact(self, length: int) -> _Form:
        return _compact(length, with_locations=self.wanted.with_locations)

    def _length(self, budget: int) -> int:
        """The longest descriptions that fit; bisecting only settles on a length that was tried."""
        lengths = range(SHORTEST, LONGEST)
        found = bisect_right(lengths, budget, key=lambda length: self.tokens(self._compact(length)))
        return lengths[found - 1]

    def plan(self, form: _Form, budget: int | None) -> Plan:
        text = self.text(form)
        return Plan(text, estimate_tokens(text), budget, tuple(self._shares(form)))

    def _shares(self, form: _Form) -> Iterator[SkillShare]:
        for position, entry in enumerate(self.listed):
            shown, tokens = form.share(position, entry)
            yield SkillShare(entry.name, entry.location, shown, tokens)
        for entry, inlined in self.inlined:
            tokens = estimate_tokens(render_inline(*inlined))
            yield SkillShare(entry.name, entry.location, Shown.INLINE, tokens)


_WHOLE = _Form(
    render_listing, lambda _, entry: (Shown.FULL, estimate_tokens(f"{render_element(entry)}\n"))
)
_NOTHING = _Form(lambda _: "", lambda _, __: (Shown.NOTHING, 0))


def _block(lines: Sequence[str]) -> str:
    return "\n".join(("<available_skills>", *lines, "</available_skills>"))


def _place(entry: Entry, *, with_locations: bool) -> str:
    return f" ({field(entry.location)})" if with_locations else ""


def _compact(length: int, *, with_locations: bool) -> _Form:
    """One line for each skill, its description cut to `length` characters."""

    def line(entry: Entry) -> str:
        description = field(shortened(entry.description, length))
        place = _place(entry, with_locations=with_locations)
        return f"- {field(entry.name)}: {description}{place}"

    def share(_: int, entry: Entry) -> tuple[Shown, int]:
        is_whole = len(one_line(entry.description)) <= length
        tokens = estimate_tokens(f"{line(entry)}\n")
        return (Shown.FULL if is_whole else Shown.SHORTENED), tokens

    return _Form(lambda entries: _block([*map(line, entries)]), share)


class _Names(NamedTuple):
    """The lines of a listing of names."""

    lines: Sequence[str]
    how_to_find: str

    @classmethod
    def of(cls, draft: _Draft) -> _Names:
        """One line for each skill to be listed."""
        with_locations = draft.wanted.with_locations
        lines = [
            f"- {field(entry.name)}{_place(entry, with_locations=with_locations)}"
            for entry in draft.listed
        ]
        return cls(lines, draft.wanted.how_to_find)

    def form(self, count: int) -> _Form:
        """The first `count` names, then how many more there are and how to find them."""
        missing = Shown.SEARCH if self.how_to_find else Shown.NOTHING

        def share(position: int, _: Entry) -> tuple[Shown, int]:
            if position >= count:
                return missing, 0
            return Shown.NAME, estimate_tokens(f"{self.lines[position]}\n")

        left = len(self.lines) - count
        rest = [_not_listed(left, " more", self.how_to_find)] if left else []
        return _Form(lambda _: _block([*self.lines[:count], *rest]), share)


def _none_listed(wanted: Wanted) -> _Form:
    """How many skills there are and how to find them; nothing if no tool finds them."""
    if not wanted.how_to_find:
        return _NOTHING
    return _Form(
        lambda entries: _block([_not_listed(len(entries), "", wanted.how_to_find)]),
        lambda _, __: (Shown.SEARCH, 0),
    )


def _not_listed(count: int, more: str, how_to_find: str) -> str:
    skills = f"{count}{more} {'skill is' if count == 1 else 'skills are'}"
    return f"{skills} not listed here. {how_to_find}".rstrip()


def shortened(text: str, length: int) -> str:
    """`text` on one line and no longer than `length`, cut between words where there are any."""
    line = one_line(text)
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return f"{cut.rpartition(' ')[0].rstrip() or cut}…"
