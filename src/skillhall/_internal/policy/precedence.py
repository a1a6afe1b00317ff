"""Precedence: which of several skills with the same name is used."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

from skillhall._internal.skill.finding import Code, Finding


class DuplicatePolicy(Enum):
    """What happens to later skills with the same name or id."""

    FIRST_WINS = "the first wins"
    KEEP_ALL = "all are kept"


class Identity(Enum):
    """What makes two skills duplicates: the same name, or the same id."""

    NAME = "name"
    ID = "id"


class LocatedSkill(Protocol):
    """The properties of a skill that every policy needs."""

    @property
    def name(self) -> str:
        """Its display name."""

    @property
    def location(self) -> str:
        """The path of its file."""


class RankedSkill(LocatedSkill, Protocol):
    """The properties of a skill that precedence needs."""

    @property
    def id(self) -> str:
        """The name of its folder or flat file."""

    @property
    def root_number(self) -> int:
        """The index of its root; earlier roots come first."""

    @property
    def is_flat(self) -> bool:
        """Whether it is a single file without a folder."""


RankedT = TypeVar("RankedT", bound=RankedSkill)


class ShadowedSkill(NamedTuple, Generic[RankedT]):
    """A skill that is not used, the duplicate that is, and the rule that decided it."""

    skill: RankedT
    winner: RankedT
    rule: str


class PrecedencePolicy(NamedTuple):
    """The rules for duplicates in one root and across roots."""

    identity: Identity = Identity.NAME
    in_root: DuplicatePolicy = DuplicatePolicy.FIRST_WINS
    across_roots: DuplicatePolicy = DuplicatePolicy.FIRST_WINS

    def get_key(self, skill: RankedSkill) -> str:
        """Return the name or id that duplicates share."""
        return skill.name if self.identity is Identity.NAME else skill.id

    def find_rule(self, skill: RankedSkill, winner: RankedSkill) -> DuplicatePolicy:
        """Return the rule for two skills with the same key."""
        same_root = skill.root_number == winner.root_number
        return self.in_root if same_root else self.across_roots


def resolve_duplicates(
    skills: Iterable[RankedT], policy: PrecedencePolicy
) -> tuple[list[RankedT], list[ShadowedSkill[RankedT]], list[Finding]]:
    """Return the skills that are used, in order, the shadowed ones, and the findings."""
    used: list[RankedT] = []
    shadowed: list[ShadowedSkill[RankedT]] = []
    findings: list[Finding] = []
    first: dict[str, RankedT] = {}
    first_in_later_root: dict[tuple[int, str], RankedT] = {}
    by_name = policy.identity is Identity.NAME
    for skill in skills:
        key = skill.name if by_name else policy.get_key(skill)
        anywhere = first.setdefault(key, skill)
        if anywhere is skill:
            used.append(skill)
            continue
        # If roots do not shadow each other, the first skill of the same root decides.
        in_root = anywhere
        if anywhere.root_number != skill.root_number:
            in_root = first_in_later_root.setdefault((skill.root_number, key), skill)
        across = policy.find_rule(skill, anywhere)
        winner = anywhere if in_root is skill or across is DuplicatePolicy.FIRST_WINS else in_root
        if policy.find_rule(skill, winner) is DuplicatePolicy.KEEP_ALL:
            used.append(skill)
            code, hint = Code.SAME_NAME, "rename one of them to tell them apart"
            message = f"{key!r} is also at {winner.location}; both are loaded"
        else:
            rule = _describe_rule(skill, winner)
            shadowed.append(ShadowedSkill(skill, winner, rule))
            code, hint = Code.SHADOWED, "rename one of them, or remove the one that is not needed"
            message = f"{key!r} is shadowed by {winner.location} ({rule})"
        findings.append(Finding(code, message, None, hint, skill.location, skill.name))
    return used, shadowed, findings


def _describe_rule(skill: RankedSkill, winner: RankedSkill) -> str:
    if skill.root_number != winner.root_number:
        return "the earlier root wins"
    if winner.is_flat and not skill.is_flat:
        return "a flat file wins over a folder"
    return "the first in name and path order wins"
