"""Instruction skills: the part of an agent's system prompt that comes from skills."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.local_host import LocalHost
from skillhall._internal.catalog.fingerprint import take_fingerprint
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.reader import read_skill
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.host_requirements import check_requirements
from skillhall._internal.policy.precedence import resolve_duplicates
from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS
from skillhall._internal.policy.selection import Globs, select_skills
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.render.listing import InlineSkill, render_instructions
from skillhall._internal.settings import Settings
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.fingerprint import Fingerprint
    from skillhall._internal.policy.host_requirements import HostFacts
    from skillhall._internal.policy.profiles import Profile

logger = logging.getLogger("skillhall.agents")


@dataclass(frozen=True, slots=True)
class InstructionSource:
    """A folder of skills and the globs that select from it."""

    root: str | PathLike[str]
    globs: Globs = field(default_factory=Globs)
    base: str = ""  # base of a relative root; "" is the working directory
    expected: bool = True  # whether a missing folder gives a finding
    follow_links: bool = False  # whether links may lead out of the folder

    def resolve_root(self, working_directory: str, *, follow_links: bool = False) -> Root:
        """Return the root, with `~` expanded. `follow_links` allows links for every source."""
        base = str(Path(working_directory, self.base))
        follow = self.follow_links or follow_links
        return Root.resolve(fspath(self.root), base, is_required=self.expected, follow_links=follow)


@dataclass(frozen=True)
class LoadedInstructions:
    """The skills of the sources at one moment."""

    listed: tuple[CatalogSkill, ...]
    inlined: tuple[tuple[CatalogSkill, str], ...]  # with their bodies
    hidden: tuple[CatalogSkill, ...]  # selected, but hidden from models
    findings: tuple[JudgedFinding, ...]
    fingerprint: Fingerprint

    @cached_property
    def text(self) -> str:
        """The text for the system prompt; "" if nothing is selected."""
        return render_instructions(self.listed, [to_inlined(*pair) for pair in self.inlined])

    @property
    def skills(self) -> tuple[CatalogSkill, ...]:
        """All skills visible to the model, listed ones first."""
        return (*self.listed, *(skill for skill, _ in self.inlined))


def to_inlined(skill: CatalogSkill, body: str) -> InlineSkill:
    """Return the skill for inlining in a system prompt."""
    return InlineSkill(skill.name, skill.location, skill.directory, body)


class InstructionSkills:
    """The instructions of one agent, read at construction and by `refresh`."""

    def __init__(
        self,
        sources: Iterable[InstructionSource],
        settings: Settings | None = None,
        *,
        watch: bool = True,
        profile: Profile = INSTRUCTION_SKILLS,
    ) -> None:
        settings = settings or Settings.read()
        base = settings.working_directory
        self._sources = [
            (source.resolve_root(base, follow_links=settings.follow_links), source.globs)
            for source in sources
        ]
        self._watch = watch
        self._load = InstructionLoader(profile, LocalHost.from_settings(settings))
        self._loaded = self._load(self._sources)
        _log_findings(self._loaded.findings)

    @property
    def text(self) -> str:
        """The text for the system prompt as last read; "" if nothing is selected."""
        return self._loaded.text

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """The findings of the last read. Those with an effect other than accept were logged."""
        return self._loaded.findings

    def refresh(self) -> None:
        """Read everything again."""
        before = set(self.findings)
        self._loaded = self._load(self._sources)
        _log_findings(judged for judged in self.findings if judged not in before)

    def current(self) -> str:
        """Return the text, read again if a file changed; with `watch=False` it is `text`."""
        return self.load_current().text

    def load_current(self) -> LoadedInstructions:
        """Return the skills; the same value as before if nothing changed."""
        if self._watch and not self._loaded.fingerprint.is_current():
            self.refresh()
        return self._loaded


@dataclass(frozen=True, slots=True)
class InstructionLoader:
    """Loads sources under a profile, for agents on one machine."""

    profile: Profile
    host: HostFacts

    def __call__(self, sources: Sequence[tuple[Root, Globs]]) -> LoadedInstructions:
        """Load `sources` in order. Problems become findings, not exceptions."""
        # Taken before loading, so that a change during the load is noticed later.
        follow = {root.path for root, _ in sources if root.follow_links}
        fingerprint = take_fingerprint(
            [root.path for root, _ in sources], self.profile.scan_policy, follow
        )
        selector = _SkillSelector(self.profile, self.host)
        for number, (root, globs) in enumerate(sources):
            selector.add_source(number, root, globs)
        selector.resolve_duplicates()
        inlined = selector.read_bodies()
        listed, hidden = tuple(selector.listed), tuple(selector.hidden)
        return LoadedInstructions(listed, inlined, hidden, tuple(selector.findings), fingerprint)


@dataclass(slots=True)
class _SkillSelector:
    """The skills selected so far."""

    profile: Profile
    host: HostFacts
    listed: list[CatalogSkill] = field(default_factory=list)
    inlined: list[CatalogSkill] = field(default_factory=list)
    hidden: list[CatalogSkill] = field(default_factory=list)
    all_skills: list[CatalogSkill] = field(default_factory=list)
    findings: list[JudgedFinding] = field(default_factory=list)

    def add_source(self, number: int, root: Root, globs: Globs) -> None:
        """Select from one source. It is loaded alone, so that its links stay inside it."""
        catalog = load_roots([root], self.profile, with_bodies=True)
        self.findings += catalog.findings
        skills = [skill._replace(root_number=number) for skill in catalog]
        visible = self._filter_usable([skill for skill in skills if is_visible_to_models(skill)])
        selection = select_skills(visible, globs)
        self.listed += selection.listed
        self.inlined += selection.inlined
        self.all_skills += (*selection.listed, *selection.inlined)
        hidden = select_skills(
            [skill for skill in skills if not is_visible_to_models(skill)], globs
        )
        self.hidden += (*hidden.listed, *hidden.inlined)
        located = (f if f.path else f.with_location(root.path) for f in selection.findings)
        self.findings += self.profile.load_policy.judge(located)

    def resolve_duplicates(self) -> None:
        """Drop shadowed skills of the same name in other sources."""
        winners, _, findings = resolve_duplicates(self.all_skills, self.profile.precedence_policy)
        self.findings += self.profile.load_policy.judge(findings)
        ids = {id(skill) for skill in winners}
        self.listed = [skill for skill in self.listed if id(skill) in ids]
        self.inlined = [skill for skill in self.inlined if id(skill) in ids]

    def read_bodies(self) -> tuple[tuple[CatalogSkill, str], ...]:
        """Return the inlined skills with their bodies. An unreadable one becomes a finding."""
        bodies = ((skill, self._read_body(skill)) for skill in self.inlined)
        return tuple((skill, body) for skill, body in bodies if body is not None)

    def _filter_usable(self, skills: Iterable[CatalogSkill]) -> list[CatalogSkill]:
        """Return the skills whose requirements are met; the others become findings."""
        usable = []
        for skill in skills:
            finding = check_requirements(skill.frontmatter, self.host)
            if finding is None:
                usable.append(skill)
            else:
                located = finding.with_location(skill.location, skill.name)
                self.findings += self.profile.load_policy.judge([located])
        return usable

    def _read_body(self, skill: CatalogSkill) -> str | None:
        findings: tuple[Finding, ...]
        try:
            parsed = read_skill(skill, self.profile)
        except SkillhallError as error:
            body, findings = "", (Finding(Code.UNREADABLE, f"the body cannot be read: {error}"),)
        else:
            body, findings = parsed.body, parsed.findings
        known = {judged.finding.code for judged in skill.findings}
        judged = self.profile.load_policy.judge(
            finding.with_location(skill.location, skill.name)
            for finding in findings
            if finding.code not in known
        )
        self.findings += [each for each in judged if each.effect is not Effect.ACCEPT]
        return None if any(each.effect is Effect.REJECT for each in judged) else body


def _log_findings(findings: Iterable[JudgedFinding]) -> None:
    for finding, effect in findings:
        if effect is not Effect.ACCEPT:
            logger.warning("%s: %s [%s]", finding.path, finding.message, finding.code)
