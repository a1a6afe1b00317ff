"""Which of several skills with one name stays."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from skillhall._internal.skill.finding import Code, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable


class DuplicatePolicy(Enum):
    """What happens when a name comes up again."""

    FIRST_WINS = "the first wins"
    KEEP_ALL = "all are kept"


class Identity(Enum):
    """What two skills must share to count as the same."""

    NAME = "name"
    ID = "id"


class RankedSkill(Protocol):
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


RankedT = TypeVar("RankedT", bound=RankedSkill)


class ShadowedSkill(NamedTuple, Generic[RankedT]):
    """A skill that lost its place to another one of the same name, and the rule that said so."""

    skill: RankedT
    winner: RankedT
    rule: str


class PrecedencePolicy(NamedTuple):
    """The rules for equal names inside one root and across roots."""

    identity: Identity = Identity.NAME
    in_root: DuplicatePolicy = DuplicatePolicy.FIRST_WINS
    across_roots: DuplicatePolicy = DuplicatePolicy.FIRST_WINS

    def get_key(self, skill: RankedSkill) -> str:
        """What makes `skill` the same as another."""
        return skill.name if self.identity is Identity.NAME else skill.id

    def find_rule(self, skill: RankedSkill, winner: RankedSkill) -> DuplicatePolicy:
        """The rule that applies to two skills of the same key."""
        same_root = skill.root_number == winner.root_number
        return self.in_root if same_root else self.across_roots


def resolve_duplicates(
    skills: Iterable[RankedT], policy: PrecedencePolicy
) -> tuple[list[RankedT], list[ShadowedSkill[RankedT]], list[Finding]]:
    """The skills that stay, in the order given; those that do not; and what to tell the user."""
    kept: list[RankedT] = []
    shadowed: list[ShadowedSkill[RankedT]] = []
    findings: list[Finding] = []
    first: dict[str, RankedT] = {}
    first_in_later_root: dict[tuple[int, str], RankedT] = {}
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
        across = policy.find_rule(skill, anywhere)
        winner = anywhere if here is skill or across is DuplicatePolicy.FIRST_WINS else here
        if policy.find_rule(skill, winner) is DuplicatePolicy.KEEP_ALL:
            kept.append(skill)
            findings.append(_build_same_name_finding(skill, winner, policy))
        else:
            shadowed.append(ShadowedSkill(skill, winner, _describe_rule(skill, winner)))
            findings.append(_build_shadowed_finding(skill, winner, policy))
    return kept, shadowed, findings


def _describe_rule(skill: RankedSkill, winner: RankedSkill) -> str:
    if skill.root_number != winner.root_number:
        return "the earlier root wins"
    if winner.is_flat and not skill.is_flat:
        return "a flat file wins over a folder"
    return "the first in name and path order wins"


def _build_shadowed_finding(
    skill: RankedSkill, winner: RankedSkill, policy: PrecedencePolicy
) -> Finding:
    return Finding(
        Code.SHADOWED,
        f"{policy.get_key(skill)!r} is shadowed by {winner.location} "
        f"({_describe_rule(skill, winner)})",
        hint="rename one of them, or remove the copy that is not needed",
        path=skill.location,
        skill=skill.name,
    )


def _build_same_name_finding(
    skill: RankedSkill, winner: RankedSkill, policy: PrecedencePolicy
) -> Finding:
    return Finding(
        Code.SAME_NAME,
        f"{policy.get_key(skill)!r} is also at {winner.location}; both are kept",
        hint="rename one of them if only one is meant",
        path=skill.location,
        skill=skill.name,
    )
