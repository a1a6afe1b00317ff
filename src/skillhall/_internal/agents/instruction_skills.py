"""Instruction skills: the part of an agent's system prompt that comes from skills."""

from __future__ import annotations

import logging
import shutil
import sys
from dataclasses import dataclass, field
from functools import cached_property
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.agent_gate import open_gate
from skillhall._internal.catalog.fingerprint import read_signature, take_fingerprint
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.skill_content import read_skill
from skillhall._internal.catalog.trust.gate import Clearance, clear_with_fallbacks
from skillhall._internal.policy.duplicate_precedence import resolve_duplicates
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.host_requirements import check_requirements
from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS
from skillhall._internal.policy.selection import (
    Globs,
    build_group_matcher,
    check_group_patterns,
    find_pinned,
    select_skills,
)
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.render.listing import InlineSkill, render_instructions
from skillhall._internal.settings import Settings
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from skillhall._internal.catalog.fingerprint import Fingerprint
    from skillhall._internal.catalog.trust.gate import ClearedSkill, HeldSkill, SkillGate
    from skillhall._internal.policy.profiles import Profile

logger = logging.getLogger("skillhall.agents")


@dataclass(frozen=True, slots=True)
class InstructionSource:
    """A folder of skills and the globs that select from it.

    >>> InstructionSource("skills", Globs(inline="pdf-*")).globs.inline
    ('pdf-*',)
    """

    root: str | PathLike[str]
    globs: Globs = field(default_factory=Globs)
    base: str = ""  # base of a relative root; "" is the working directory
    expected: bool = True  # whether a missing folder gives a finding
    follow_links: bool = False  # whether links may lead out of the folder
    label: str = "given"  # the origin of the folder: `project` if a stranger may have written it

    def resolve_root(self, settings: Settings) -> Root:
        """Return the root, with `~` expanded.

        Links may lead out of the folder if the source or the settings allow it.
        """
        base = str(Path(settings.working_directory, self.base))
        follow = self.follow_links or settings.follow_links
        root, expected = fspath(self.root), self.expected
        return Root.resolve(root, base, self.label, is_required=expected, follow_links=follow)


@dataclass(frozen=True, slots=True)
class LocalHost:
    """This machine, checked against the requirements of skills.

    Only the names of environment variables are known, not their values.
    """

    variable_names: frozenset[str] = frozenset()  # of variables that are not empty
    platform: str = sys.platform

    def has_program(self, name: str) -> bool:
        """Whether a program with this name is on the search path. Paths are not accepted."""
        return "/" not in name and "\\" not in name and shutil.which(name) is not None

    def has_environment_variable(self, name: str) -> bool:
        """Whether the environment variable is set and not empty."""
        return name in self.variable_names


@dataclass(frozen=True)
class LoadedInstructions:
    """The skills of the sources at one moment."""

    listed: tuple[ClearedSkill, ...]
    inlined: tuple[tuple[ClearedSkill, str], ...]  # with their bodies
    hidden: tuple[ClearedSkill, ...]  # selected, but hidden from models
    findings: tuple[JudgedFinding, ...]
    fingerprint: Fingerprint = field(compare=False)
    held: tuple[HeldSkill, ...] = ()  # neither their names nor their text reach the model
    trust_problem: str = ""  # why the approvals or a policy cannot be read
    trust_warnings: tuple[str, ...] = ()
    pinned_count: int = 0  # the first of the listed skills, which always come first

    @cached_property
    def text(self) -> str:
        """The text for the system prompt; "" if nothing is selected."""
        return render_instructions(self.listed, [to_inlined(*pair) for pair in self.inlined])

    @property
    def skills(self) -> tuple[ClearedSkill, ...]:
        """All skills visible to the model, listed ones first."""
        return (*self.listed, *(skill for skill, _ in self.inlined))


def to_inlined(skill: ClearedSkill, body: str) -> InlineSkill:
    """Return the skill for inlining in a system prompt."""
    return InlineSkill(skill.name, skill.location, skill.directory, body)


class InstructionSkills:
    """The part of one agent's system prompt that comes from skills.

    The skills are read at construction and by `refresh`, and by `current` if a file has changed.

    >>> skills = InstructionSkills([InstructionSource("skills")])
    >>> "pdf-tools" in str(skills.current())
    True
    """

    def __init__(
        self,
        sources: Iterable[InstructionSource],
        settings: Settings | None = None,
        *,
        watch: bool = True,
        profile: Profile = INSTRUCTION_SKILLS,
    ) -> None:
        self._watch = watch
        self._loader = InstructionLoader(sources, settings or Settings.read(), profile)
        self._loaded = self._loader.load()
        _log_findings(self._loaded.findings)

    @property
    def text(self) -> str:
        """The text for the system prompt as last read; "" if nothing is selected."""
        return self._loaded.text

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """The findings of the last read. Warnings and rejections were also logged."""
        return self._loaded.findings

    def refresh(self) -> None:
        """Read everything again."""
        before = set(self.findings)
        self._loaded = self._loader.load()
        _log_findings(judged for judged in self.findings if judged not in before)

    def current(self) -> str:
        """Return the text, after reading the skills again if a file has changed.

        With `watch=False`, changes are not noticed and the result is `text`.
        """
        if self._watch and not self._loaded.fingerprint.is_current():
            self.refresh()
        return self.text


class InstructionLoader:
    """Loads sources under a profile, for agents on this machine."""

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        sources: Iterable[InstructionSource],
        settings: Settings,
        profile: Profile,
        pinned: Sequence[str] = (),
        excluded: Sequence[str] = (),
        *,
        gate: SkillGate | None = None,
    ) -> None:
        """Create a loader; the patterns `pinned` and `excluded` apply to all sources."""
        self._gate = gate or open_gate(settings)
        self._reports_held = gate is None  # commands print a text of their own
        self._pinned = pinned
        self._excluded = excluded
        self._profile = profile
        self._host = LocalHost(settings.variable_names)
        self._sources = [(source.resolve_root(settings), source.globs) for source in sources]

    def load(self) -> LoadedInstructions:
        """Load the sources in order. Problems become findings, not exceptions."""
        # Taken before loading, so that a change during the load is noticed later.
        follow = {root.path for root, _ in self._sources if root.follow_links}
        fingerprint = take_fingerprint(
            [root.path for root, _ in self._sources], self._profile.scan_policy, follow
        )
        watched = {path: read_signature(path) for path in self._gate.watched_paths}
        linked, clearance = self._gate.find_linked_folders(), Clearance(())
        judge = self._profile.load_policy.judge
        findings: list[JudgedFinding] = []
        listed: list[ClearedSkill] = []
        inlined: list[ClearedSkill] = []
        hidden: list[ClearedSkill] = []
        selected: list[ClearedSkill] = []
        known: list[ClearedSkill] = []
        is_excluded = build_group_matcher(self._excluded)
        for number, (root, globs) in enumerate(self._sources):
            # Each source is loaded alone, so that its links stay inside it.
            catalog = load_roots([root], self._profile, with_bodies=True, linked_folders=linked)
            findings += catalog.findings
            cleared = clear_with_fallbacks(self._gate, [*catalog], catalog.shadowed)
            clearance = clearance.add(cleared)
            skills = [skill.with_root_number(number) for skill in cleared.cleared]
            known += skills
            skills = [skill for skill in skills if not is_excluded(skill)]
            usable = []
            for skill in filter(is_visible_to_models, skills):
                unmet = check_requirements(skill.frontmatter, self._host)
                if unmet is None:
                    usable.append(skill)
                else:
                    findings += judge([unmet.with_location(skill.location, skill.name)])
            selection = select_skills(usable, globs)
            listed += selection.listed
            inlined += selection.inlined
            selected += (*selection.listed, *selection.inlined)
            unseen = select_skills([s for s in skills if not is_visible_to_models(s)], globs)
            hidden += (*unseen.listed, *unseen.inlined)
            located = (f if f.path else f.with_location(root.path) for f in selection.findings)
            findings += judge(located)
        precedence = self._profile.precedence_policy
        winners, duplicates = resolve_duplicates(selected, precedence)
        findings += judge(map(precedence.build_finding, duplicates))
        if self._reports_held:
            findings += judge(clearance.iter_findings())
        findings += judge(check_group_patterns(known, (*self._pinned, *self._excluded)))
        # Skills are compared by identity, because two sources may select equal ones.
        winner_ids = {id(skill) for skill in winners}
        bodies = [(s, self._read_body(s, findings)) for s in inlined if id(s) in winner_ids]
        listed = [skill for skill in listed if id(skill) in winner_ids]
        pinned = find_pinned(listed, self._pinned)
        pinned_ids = {id(skill) for skill in pinned}
        return LoadedInstructions(
            (*pinned, *(skill for skill in listed if id(skill) not in pinned_ids)),
            tuple((skill, body) for skill, body in bodies if body is not None),
            tuple(hidden),
            tuple(findings),
            fingerprint.extend({**watched, **clearance.signatures}),
            clearance.held,
            clearance.problem,
            clearance.warnings,
            len(pinned),
        )

    def _read_body(self, skill: ClearedSkill, findings: list[JudgedFinding]) -> str | None:
        """Return the body of an inlined skill; `None` if it is rejected.

        Warnings and rejections that are not yet known are added to `findings`.
        """
        try:
            parsed = read_skill(skill, self._profile)
            body, noticed = parsed.body, parsed.findings
        except SkillhallError as error:
            body, noticed = "", (Finding(Code.UNREADABLE, f"the body cannot be read: {error}"),)
        known = {judged.finding.code for judged in skill.findings}
        judged = self._profile.load_policy.judge(
            finding.with_location(skill.location, skill.name)
            for finding in noticed
            if finding.code not in known
        )
        findings += [each for each in judged if each.effect is not Effect.ACCEPT]
        return None if any(each.effect is Effect.REJECT for each in judged) else body


def _log_findings(findings: Iterable[JudgedFinding]) -> None:
    for finding, effect in findings:
        if effect is not Effect.ACCEPT:
            logger.warning("%s: %s [%s]", finding.path, finding.message, finding.code)
