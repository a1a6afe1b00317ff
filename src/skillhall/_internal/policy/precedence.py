"""Which of several skills with one name stays."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from skillhall._internal.skill.finding import Code, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable


class SameName(Enum):
    """What happens when a name comes up again."""

    FIRST_WINS = "the first wins"
    ALL_KEPT = "all are kept"


class Identity(Enum):
    """What two skills must share to count as the same."""

    NAME = "name"
    ID = "id"


class Ranked(Protocol):
    """What precedence needs to know about a skill."""

    @property
    def id(self) -> str:
        """Its folder, or its file's name."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def location(self) -> str:
        """The path of its file."""

    @property
    def root_number(self) -> int:
        """The place of its root in the order of roots."""

    @property
    def is_flat(self) -> bool:
        """Whether it is a single file without a folder."""


SkillT = TypeVar("SkillT", bound=Ranked)


class Shadowed(NamedTuple, Generic[SkillT]):
    """A skill that lost its place to another one of the same name, and the rule that said so."""

    skill: SkillT
    winner: SkillT
    rule: str


class PrecedencePolicy(NamedTuple):
    """The rules for equal names inside one root and across roots."""

    identity: Identity = Identity.NAME
    in_root: SameName = SameName.FIRST_WINS
    across_roots: SameName = SameName.FIRST_WINS

    def key(self, skill: Ranked) -> str:
        """What makes `skill` the same as another."""
        return skill.name if self.identity is Identity.NAME else skill.id

    def rule(self, skill: Ranked, winner: Ranked) -> SameName:
        """The rule that applies to two skills of the same key."""
        same_root = skill.root_number == winner.root_number
        return self.in_root if same_root else self.across_roots


def settle(
    skills: Iterable[SkillT], policy: PrecedencePolicy
) -> tuple[list[SkillT], list[Shadowed[SkillT]], list[Finding]]:
    """The skills that stay, in the order given; those that do not; and what to tell the user."""
    kept: list[SkillT] = []
    shadowed: list[Shadowed[SkillT]] = []
    findings: list[Finding] = []
    first: dict[str, SkillT] = {}
    first_in_later_root: dict[tuple[int, str], SkillT] = {}
    by_name = policy.identity is Identity.NAME
    for skill in skills:
        key = skill.name if by_name else skill.id
        anywhere = first.setdefault(key, skill)
        if anywhere is skill:
            kept.append(skill)
            continue
        # Where an earlier root does not decide, a skill meets the first one of its own root.
        here = anywhere
        if anywhere.root_number != skill.root_number:
            here = first_in_later_root.setdefault((skill.root_number, key), skill)
        across = policy.rule(skill, anywhere)
        winner = anywhere if here is skill or across is SameName.FIRST_WINS else here
        if policy.rule(skill, winner) is SameName.ALL_KEPT:
            kept.append(skill)
            findings.append(_same_name(skill, winner, policy))
        else:
            shadowed.append(Shadowed(skill, winner, _word(skill, winner)))
            findings.append(_shadowed(skill, winner, policy))
    return kept, shadowed, findings


def _word(skill: Ranked, winner: Ranked) -> str:
    if skill.root_number != winner.root_number:
        return "the earlier root wins"
    if winner.is_flat and not skill.is_flat:
        return "a flat file wins over a folder"
    return "the first in name and path order wins"


def _shadowed(skill: Ranked, winner: Ranked, policy: PrecedencePolicy) -> Finding:
    return Finding(
        Code.SHADOWED,
        f"{policy.key(skill)!r} is shadowed by {winner.location} ({_word(skill, winner)})",
        hint="rename one of them, or remove the copy that is not needed",
        path=skill.location,
        skill=skill.name,
    )


def _same_name(skill: Ranked, winner: Ranked, policy: PrecedencePolicy) -> Finding:
    return Finding(
        Code.SAME_NAME,
        f"{policy.key(skill)!r} is also at {winner.location}; both are kept",
        hint="rename one of them if only one is meant",
        path=skill.location,
        skill=skill.name,
    )
