"""Instruction skills: the part of an agent's system prompt that its config makes of skills."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall.catalog.load import load_roots
from skillhall.catalog.read import read_skill
from skillhall.catalog.stamps import take_stamps
from skillhall.errors import SkillhallError
from skillhall.policy.loading import Effect, Judged
from skillhall.policy.precedence import settle
from skillhall.policy.profiles import INSTRUCTION_SKILLS
from skillhall.policy.selecting import Globs, select
from skillhall.render.inline import Inlined, render_instructions
from skillhall.settings import Settings
from skillhall.skill.finding import Code, Finding
from skillhall.sources.roots import Root

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall.catalog.catalog import Skill
    from skillhall.catalog.stamps import Stamps

logger = logging.getLogger("skillhall.agents")


@dataclass(frozen=True, slots=True)
class InstructionSource:
    """A folder of skills, and which of them an agent gets."""

    root: str
    globs: Globs = field(default_factory=Globs)
    base: str = ""  # where a relative root starts; "" is the working directory

    def located(self, working_directory: str) -> Root:
        """The folder itself: `~` expands."""
        return Root.of(self.root, str(Path(working_directory, self.base)))


@dataclass(frozen=True, slots=True)
class Instructions:
    """What the sources gave at one moment."""

    text: str
    findings: tuple[Judged, ...]
    stamps: Stamps


class InstructionSkills:
    """The instructions of one agent, read when made and kept until they are read again."""

    def __init__(
        self,
        sources: Iterable[InstructionSource],
        settings: Settings | None = None,
        *,
        watch: bool = True,
    ) -> None:
        settings = settings or Settings.read()
        self._sources = [
            (source.located(settings.working_directory), source.globs) for source in sources
        ]
        self._watch = watch
        self._loaded = load_instructions(self._sources)
        _log(self._loaded.findings)

    @property
    def text(self) -> str:
        """The text for the system prompt, as last read; "" if nothing is selected."""
        return self._loaded.text

    @property
    def findings(self) -> tuple[Judged, ...]:
        """Everything that was noticed at the last reading; what is not accepted was logged."""
        return self._loaded.findings

    def refresh(self) -> None:
        """Read everything again."""
        before = set(self.findings)
        self._loaded = load_instructions(self._sources)
        _log(judged for judged in self.findings if judged not in before)

    def current(self) -> str:
        """The text, read again if a file changed; with `watch=False` it is `text`."""
        if self._watch and not self._loaded.stamps.still_hold():
            self.refresh()
        return self.text


def load_instructions(sources: Sequence[tuple[Root, Globs]]) -> Instructions:
    """The instructions that `sources` give, in their order. Never raises on what it finds."""
    profile = INSTRUCTION_SKILLS
    stamps = take_stamps([root.path for root, _ in sources], profile.scan)
    chosen = _Chosen()
    for number, (root, globs) in enumerate(sources):
        chosen.add(number, root, globs)
    _, _, equal_names = settle(chosen.all, profile.precedence)
    chosen.findings += profile.load.judge(equal_names)
    inlined = chosen.read_bodies()
    return Instructions(render_instructions(chosen.listed, inlined), tuple(chosen.findings), stamps)


@dataclass(slots=True)
class _Chosen:
    """The skills chosen so far, source by source."""

    listed: list[Skill] = field(default_factory=list)
    inlined: list[Skill] = field(default_factory=list)
    all: list[Skill] = field(default_factory=list)
    findings: list[Judged] = field(default_factory=list)

    def add(self, number: int, root: Root, globs: Globs) -> None:
        """Choose from one source. It is loaded alone, so that its links stay inside it."""
        catalog = load_roots([root], INSTRUCTION_SKILLS)
        visible = [skill._replace(root_number=number) for skill in catalog.visible]
        selection = select(visible, globs)
        self.listed += selection.listed
        self.inlined += selection.inlined
        self.all += (*selection.listed, *selection.inlined)
        self.findings += catalog.findings
        located = (f if f.path else f.at(root.path) for f in selection.findings)
        self.findings += INSTRUCTION_SKILLS.load.judge(located)

    def read_bodies(self) -> list[Inlined]:
        """The inlined skills with their bodies; one that cannot be read is left out and found."""
        return [found for skill in self.inlined if (found := self._read_body(skill)) is not None]

    def _read_body(self, skill: Skill) -> Inlined | None:
        findings: tuple[Finding, ...]
        try:
            parsed = read_skill(skill, INSTRUCTION_SKILLS)
        except SkillhallError as error:
            body, findings = "", (Finding(Code.UNREADABLE, f"the body cannot be read: {error}"),)
        else:
            body, findings = parsed.body, parsed.findings
        known = {judged.finding.code for judged in skill.findings}
        judged = INSTRUCTION_SKILLS.load.judge(
            found.at(skill.location, skill.name) for found in findings if found.code not in known
        )
        self.findings += [one for one in judged if one.effect is not Effect.ACCEPT]
        if any(one.effect is Effect.REJECT for one in judged):
            return None
        return Inlined(skill.name, skill.location, skill.directory, body)


def _log(findings: Iterable[Judged]) -> None:
    for finding, effect in findings:
        if effect is not Effect.ACCEPT:
            logger.warning("%s: %s [%s]", finding.path, finding.message, finding.code)
