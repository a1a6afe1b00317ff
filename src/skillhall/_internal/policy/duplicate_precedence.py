"""Precedence: which of several skills with the same name is used."""

from collections.abc import Iterable
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

from skillhall._internal.skill.finding import Code, Finding

_SHADOWED, _SAME_NAME = Code.SHADOWED, Code.SAME_NAME  # globals are faster than attributes


class DuplicatePolicy(Enum):
    """Treatment of later skills with the same name or id."""

    FIRST_WINS = "the first wins"
    KEEP_ALL = "all are kept"


class Identity(Enum):
    """The property that duplicates share: the name or the id."""

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


class DuplicateSkill(NamedTuple, Generic[RankedT]):
    """A skill with the name or id of an earlier one."""

    skill: RankedT
    winner: RankedT
    rule: str  # the reason why only `winner` is used; "" if both are

    @property
    def is_shadowed(self) -> bool:
        """Whether the skill is not used."""
        return bool(self.rule)

    @property
    def code(self) -> Code:
        """The code of its finding."""
        return _SHADOWED if self.rule else _SAME_NAME


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

    def build_finding(self, duplicate: DuplicateSkill[RankedT]) -> Finding:
        """Build the finding about a duplicate."""
        skill, winner, rule = duplicate
        key = self.get_key(skill)
        if rule:
            hint = "rename one of them, or remove the one that is not needed"
            message = f"{key!r} is shadowed by {winner.location} ({rule})"
        else:
            hint = "rename one of them to tell them apart"
            message = f"{key!r} is also at {winner.location}; both are loaded"
        return Finding(duplicate.code, message, None, hint, skill.location, skill.name)


def resolve_duplicates(
    skills: Iterable[RankedT], policy: PrecedencePolicy
) -> tuple[list[RankedT], list[DuplicateSkill[RankedT]]]:
    """Return the skills that are used, in order, and the duplicates.

    Findings are not built here: a large catalog has tens of thousands, and few programs read them.
    """
    used: list[RankedT] = []
    duplicates: list[DuplicateSkill[RankedT]] = []
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
            rule = ""
        else:
            rule = _describe_rule(skill, winner)
        duplicates.append(DuplicateSkill(skill, winner, rule))
    return used, duplicates


def _describe_rule(skill: RankedSkill, winner: RankedSkill) -> str:
    if skill.root_number != winner.root_number:
        return "the earlier root wins"
    if winner.is_flat and not skill.is_flat:
        return "a flat file wins over a folder"
    return "the first in name and path order wins"
