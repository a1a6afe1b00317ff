"""The gate between the skills that were found and the text that models get.

Prompts, tools, MCP and chats get a skill's text and files only as a `ClearedSkill`, and only a
gate makes one: this module, or `trust_gate` for skills that need an approval. Mypy finds each path
that forgets the gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NewType, Protocol, cast

from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.policy.trust.trust_action import TrustAction
from skillhall._internal.settings import is_present
from skillhall._internal.skill.finding import Code, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.catalog.trust.file_hashes import HashedFiles
    from skillhall._internal.catalog.trust.trust_summary import TrustSummary
    from skillhall._internal.policy.duplicate_precedence import DuplicateSkill
    from skillhall._internal.policy.trust.trust_decision import Decision
    from skillhall._internal.sources.folder.candidate import Signature

# A type only for mypy: a second object for each of 60,000 skills would take 10 MB.
ClearedSkill = NewType("ClearedSkill", CatalogSkill)


class HeldSkill(NamedTuple):
    """A skill that models do not get, and why; without `hashed` if it cannot be read."""

    skill: CatalogSkill
    decision: Decision
    hashed: HashedFiles | None = None

    @property
    def is_undecided(self) -> bool:
        """Whether the user can still decide; a blocked skill is already decided."""
        return not self.decision.is_cleared and self.decision.action is not TrustAction.BLOCK


class Clearance(NamedTuple):
    """Skills that models may get, and skills that are held back, even from listings."""

    cleared: Sequence[ClearedSkill]
    held: tuple[HeldSkill, ...] = ()
    problem: str = ""  # why the approvals or a policy cannot be read
    warnings: tuple[str, ...] = ()  # for the user
    examined: tuple[HashedFiles, ...] = ()  # files of skills that were cleared by content

    @property
    def signatures(self) -> Mapping[str, Signature | None]:
        """The signatures of all files whose changes may change a decision."""
        held = (one.hashed for one in self.held if one.hashed is not None)
        hashed = (*held, *self.examined)
        return {path: signature for one in hashed for path, signature in one.signatures.items()}

    def iter_findings(self) -> Iterator[Finding]:
        """Yield a finding for each held skill.

        They are for programs; commands print their own text. If rules cannot be read, skills in
        named folders are used without them, so that is a finding, too.
        """
        if self.problem:
            yield Finding(Code.RULES_UNREADABLE, self.problem)
        for one in self.held:
            message = f"models do not get the skill: {one.decision.rule}"
            yield Finding(Code.HELD, message, path=one.skill.location, skill=one.skill.name)

    def add(self, other: Clearance) -> Clearance:
        """Return a clearance with the held skills, problem and warnings of both.

        It has no cleared skills.
        """
        return Clearance(
            (),
            (*self.held, *other.held),
            other.problem,
            tuple(dict.fromkeys((*self.warnings, *other.warnings))),
            (*self.examined, *other.examined),
        )


class SkillGate(Protocol):
    """Decides which skills models get."""

    @property
    def watched_paths(self) -> Sequence[str]:
        """Files whose changes may change the decisions."""

    def find_linked_folders(self) -> Sequence[str]:
        """Return the approved targets of links that lead out of the searched folders."""

    def clear(self, skills: Iterable[CatalogSkill]) -> Clearance:
        """Clear the skills that models may get, in order."""

    def summarize(self, skill: CatalogSkill) -> TrustSummary | None:
        """Return who wrote and approved a skill; None if nothing is known about it."""


class OpenGate:
    """Gate that clears every skill, unless a file with rules exists.

    For servers, for founding profiles, and for programs: calling the library names the skills.
    """

    def __init__(
        self, rule_files: Sequence[str] = (), open_gate: Callable[[], SkillGate] | None = None
    ) -> None:
        """Use the gate of `open_gate` while one of the files exists."""
        self._rule_files = rule_files
        self._open_gate = open_gate
        self._opened: SkillGate | None = None

    @property
    def watched_paths(self) -> Sequence[str]:
        """The files with rules."""
        return self._rule_files

    def find_linked_folders(self) -> Sequence[str]:
        """Return no folders."""
        return ()

    def clear(self, skills: Iterable[CatalogSkill]) -> Clearance:
        """Clear all skills that no rule holds."""
        gate = self._find_gate()
        return Clearance(clear_all(skills)) if gate is None else gate.clear(skills)

    def summarize(self, skill: CatalogSkill) -> TrustSummary | None:
        """Return who wrote and approved a skill; None without rules."""
        gate = self._find_gate()
        return None if gate is None else gate.summarize(skill)

    def _find_gate(self) -> SkillGate | None:
        """Return the gate with the rules; None if there are no rules."""
        if self._open_gate is None or not any(map(is_present, self._rule_files)):
            return None
        if self._opened is None:
            self._opened = self._open_gate()
        return self._opened


OPEN_GATE = OpenGate()


def clear_with_fallbacks(
    gate: SkillGate,
    skills: Sequence[CatalogSkill],
    shadowed: Sequence[DuplicateSkill[CatalogSkill]],
) -> Clearance:
    """Clear skills; replace a held one with the next cleared skill of the same name.

    Otherwise, a cloned project could disable skills in the home folder by using their names.
    """
    clearance = gate.clear(skills)
    held = {one.skill.location for one in clearance.held}
    losers = [
        one
        for one in shadowed
        if one.winner.location in held and (one.winner.hidden or not one.skill.hidden)
    ]
    if not losers:
        return clearance
    usable = gate.clear([one.skill for one in losers])
    by_location = {skill.location: skill for skill in usable.cleared}
    fallbacks: dict[str, ClearedSkill] = {}  # by the location of the held skill
    for one in losers:
        if one.skill.location in by_location:
            fallbacks.setdefault(one.winner.location, by_location[one.skill.location])
    cleared = {skill.location: skill for skill in clearance.cleared} | fallbacks
    ordered = [cleared[skill.location] for skill in skills if skill.location in cleared]
    warnings = [
        f"{skill.name!r} of the project is not approved; agents get {skill.location} instead"
        for skill in fallbacks.values()
    ]
    return clearance._replace(
        cleared=ordered,
        warnings=(*clearance.warnings, *warnings),
        examined=(*clearance.examined, *usable.examined),
    )


def clear_all(skills: Iterable[CatalogSkill]) -> Sequence[ClearedSkill]:
    """Clear skills that need no approval: those of a server, or in named folders."""
    return cast("Sequence[ClearedSkill]", [*skills])
