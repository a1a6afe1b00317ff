"""Selection: which skills of a source an agent lists or inlines, by name globs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from skillhall._internal.policy.duplicate_precedence import LocatedSkill
from skillhall._internal.skill.finding import Code, Finding

SelectableT = TypeVar("SelectableT", bound=LocatedSkill)


class IdentifiedSkill(Protocol):
    """The properties of a skill that group patterns are matched against."""

    @property
    def name(self) -> str:
        """The name that the model uses."""

    @property
    def id(self) -> str:
        """The folder of the skill relative to its root."""


IdentifiedT = TypeVar("IdentifiedT", bound=IdentifiedSkill)


@dataclass(frozen=True, slots=True)
class Globs:
    """The patterns of one source; if there are none, all skills are listed.

    A single string is one pattern. If only `inline` is given, no other skills are listed.

    >>> Globs(available="pdf-*").available
    ('pdf-*',)
    """

    available: str | Sequence[str] | None = None
    inline: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Convert the patterns to tuples."""
        object.__setattr__(self, "available", _to_tuple(self.available))
        object.__setattr__(self, "inline", _to_tuple(self.inline))

    @property
    def listing_patterns(self) -> Sequence[str]:
        """The patterns of the listing, with the default applied."""
        if self.available is None:
            return ("*",) if self.inline is None else ()
        return self.available


def _to_tuple(patterns: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if patterns is None:
        return None
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


@dataclass(frozen=True, slots=True)
class Selection(Generic[SelectableT]):
    """The skills to list and to inline for an agent, in order, and findings."""

    listed: tuple[SelectableT, ...] = ()
    inlined: tuple[SelectableT, ...] = ()
    findings: tuple[Finding, ...] = ()


def select_skills(skills: Sequence[SelectableT], globs: Globs) -> Selection[SelectableT]:
    """Select the skills of one source; `inline` wins over `available`."""
    inline = _build_matcher(globs.inline or ())
    available = _build_matcher(globs.listing_patterns)
    inlined = [skill for skill in skills if inline(skill.name)]
    listed = [skill for skill in skills if available(skill.name) and not inline(skill.name)]
    findings = [
        Finding(
            Code.INLINE_WINS,
            f"{skill.name!r} matches 'available' and 'inline'; it is inlined",
            hint="narrow one of the patterns",
            path=skill.location,
            skill=skill.name,
        )
        for skill in inlined
        if globs.available is not None and available(skill.name)
    ]
    for pattern in dict.fromkeys((*(globs.available or ()), *(globs.inline or ()))):
        if not any(matches_glob(pattern, skill.name) for skill in skills):
            message = f"the pattern {pattern!r} matches no skill"
            hint = "check its spelling; '*' and '?' are wildcards, case matters"
            findings.append(Finding(Code.PATTERN_UNMATCHED, message, hint=hint))
    return Selection(tuple(listed), tuple(inlined), tuple(findings))


def find_pinned(skills: Sequence[IdentifiedT], patterns: Iterable[str]) -> list[IdentifiedT]:
    """Return the skills that match a pattern, in the order of the patterns."""
    found = [skill for one in patterns for skill in filter(build_group_matcher([one]), skills)]
    return [*{id(skill): skill for skill in found}.values()]


def build_group_matcher(patterns: Iterable[str]) -> Callable[[IdentifiedSkill], bool]:
    """Return a predicate: does the name or id of a skill match one of the patterns?

    An id is a path, so `office/*` matches all skills in the folder `office`.
    """
    matches = _build_matcher(patterns)
    return lambda skill: matches(skill.name) or matches(skill.id)


def check_group_patterns(
    skills: Sequence[IdentifiedSkill], patterns: Iterable[str]
) -> list[Finding]:
    """Return a finding for each pattern that matches neither a name nor an id."""
    hint = "check its spelling; '*' and '?' are wildcards, case matters"
    return [
        Finding(Code.PATTERN_UNMATCHED, f"the pattern {pattern!r} matches no skill", hint=hint)
        for pattern in dict.fromkeys(patterns)
        if not any(map(build_group_matcher([pattern]), skills))
    ]


def matches_glob(pattern: str, name: str) -> bool:
    """Whether `name` matches completely. Wildcards are `*` and `?`; case matters."""
    return _compile_glob(pattern).fullmatch(name) is not None


def _compile_glob(pattern: str) -> re.Pattern[str]:
    # Atomic groups never give back what a star has matched, so no pattern can make the search slow.
    first, *rest = [
        "".join("." if c == "?" else re.escape(c) for c in part)
        for part in re.split(r"\*+", pattern)
    ]
    if not rest:
        return re.compile(first, re.DOTALL)
    *middle, last = rest
    steps = "".join(f"(?>.*?{part})" for part in middle)
    return re.compile(f"{first}{steps}.*{last}", re.DOTALL)


def _build_matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    compiled = [_compile_glob(pattern) for pattern in patterns]
    return lambda name: any(pattern.fullmatch(name) for pattern in compiled)
