"""The context plan: as much about an agent's skills as a number of tokens holds.

Whole descriptions first; if they do not fit, shortened ones; else names; else only the advice to
search. The same skills and the same budget give the same text, and no text exceeds its budget.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from skillhall.render.escape import field, one_line
from skillhall.render.inline import Inlined, render_inline
from skillhall.render.listing import render_element, render_listing
from skillhall.skill.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from skillhall.render.listing import Entry

    Line: TypeAlias = Callable[[Entry], str]

SHORTEST = 24  # characters of a description; with fewer, the name alone says as much
SEARCH_ADVICE = (
    "There are {} skills, too many to list. Call search_skills with words of the task to find "
    "those that help."
)
LONGEST = 1024  # the specification's limit; what exceeds it was shown whole or is cut here


class Shown(Enum):
    """How much of a skill stands in the prompt."""

    INLINE = "inline"  # its whole text
    FULL = "full"  # its whole description
    SHORTENED = "shortened"
    NAME = "name"
    SEARCH = "search"  # nothing: it is found by a search
    NOTHING = "nothing"  # nothing, and there is no search


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
    can_search: bool = True


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
    share: Callable[[Entry], tuple[Shown, int]]


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
        if more.tokens(_last_form(more)) <= budget:
            draft = more
        else:
            draft = draft._replace(listed=(*draft.listed, entry))
    return draft


class _Draft(NamedTuple):
    wanted: Wanted
    listed: Sequence[Entry]
    inlined: Sequence[tuple[Entry, Inlined]]

    def text(self, form: _Form) -> str:
        blocks = [form.render(self.listed)] if self.listed else []
        blocks += [render_inline(*inlined) for _, inlined in self.inlined]
        said = [block for block in blocks if block]
        return "\n\n".join(
            [self.wanted.introduction, *said] if self.wanted.introduction and said else said
        )

    def tokens(self, form: _Form) -> int:
        return estimate_tokens(self.text(form))

    def best_form(self, budget: int) -> _Form:
        """The first form of the ladder that fits; the last one if none does."""
        for form in (_WHOLE, _compact(LONGEST)):
            if self.tokens(form) <= budget:
                return form
        if self.tokens(_compact(SHORTEST)) <= budget:
            return _compact(self._length(budget))
        if self.tokens(_NAMES) <= budget:
            return _NAMES
        last = _last_form(self)
        return last if self.tokens(last) <= budget else _NOTHING

    def _length(self, budget: int) -> int:
        """The longest descriptions that fit; bisecting only settles on a length that was tried."""
        lengths = range(SHORTEST, LONGEST)
        found = bisect_right(lengths, budget, key=lambda length: self.tokens(_compact(length)))
        return lengths[found - 1]

    def plan(self, form: _Form, budget: int | None) -> Plan:
        text = self.text(form)
        return Plan(text, estimate_tokens(text), budget, tuple(self._shares(form)))

    def _shares(self, form: _Form) -> Iterator[SkillShare]:
        for entry in self.listed:
            shown, tokens = form.share(entry)
            yield SkillShare(entry.name, entry.location, shown, tokens)
        for entry, inlined in self.inlined:
            tokens = estimate_tokens(render_inline(*inlined))
            yield SkillShare(entry.name, entry.location, Shown.INLINE, tokens)


_WHOLE = _Form(
    render_listing, lambda entry: (Shown.FULL, estimate_tokens(f"{render_element(entry)}\n"))
)
_NOTHING = _Form(lambda _: "", lambda _: (Shown.NOTHING, 0))


def _last_form(draft: _Draft) -> _Form:
    return _SEARCH if draft.wanted.can_search else _NOTHING


def _block(lines: Sequence[str]) -> str:
    return "\n".join(("<available_skills>", *lines, "</available_skills>"))


def _compact(length: int) -> _Form:
    """One line for each skill, its description cut to `length` characters."""

    def line(entry: Entry) -> str:
        return f"- {field(entry.name)}: {field(shortened(entry.description, length))}"

    def share(entry: Entry) -> tuple[Shown, int]:
        is_whole = len(one_line(entry.description)) <= length
        tokens = estimate_tokens(f"{line(entry)}\n")
        return (Shown.FULL if is_whole else Shown.SHORTENED), tokens

    return _Form(lambda entries: _block([*map(line, entries)]), share)


def _name_line(entry: Entry) -> str:
    return f"- {field(entry.name)}"


_NAMES = _Form(
    lambda entries: _block([*map(_name_line, entries)]),
    lambda entry: (Shown.NAME, estimate_tokens(f"{_name_line(entry)}\n")),
)
_SEARCH = _Form(
    lambda entries: _block([SEARCH_ADVICE.format(len(entries))]),
    lambda _: (Shown.SEARCH, 0),
)


def shortened(text: str, length: int) -> str:
    """`text` on one line and no longer than `length`, cut between words where there are any."""
    line = one_line(text)
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return f"{cut.rpartition(' ')[0].rstrip() or cut}…"
