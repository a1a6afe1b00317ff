"""The skills of one agent: what it is told of them each turn, and what it can ask for."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, replace
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.agents.config.agent_config import AgentDefinition, find_config, read_config
from skillhall._internal.agents.instruction_skills import (
    InstructionLoader,
    InstructionSource,
    to_inlined,
)
from skillhall._internal.agents.local_host import LocalHost
from skillhall._internal.catalog.reader import activate
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS, LENIENT, LOCAL_SKILLS
from skillhall._internal.render.prompt_plan import PlanRequest, PromptPlan, plan_prompt
from skillhall._internal.settings import Settings
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from os import PathLike

    from skillhall._internal.agents.instruction_skills import LoadedInstructions
    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.catalog.skill_view import ViewedSkill
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.policy.profiles import Profile

DEFAULT_AGENT = "default"
# Where the agent of a folder without a config finds skills: its own, then those of every agent.
_DEFAULT_ROOTS = tuple(dict.fromkeys(path for path, _ in (*LOCAL_SKILLS.roots, *LENIENT.roots)))


class ListingRow(NamedTuple):
    """A skill of the listing, under the name that the tools know it by."""

    name: str
    description: str
    location: str


@dataclass(frozen=True, slots=True)
class AgentSkillsSnapshot:
    """Everything about an agent's skills at one moment."""

    instructions: LoadedInstructions
    skill_view: SkillView
    plan: PromptPlan


class AgentSkills:
    """The skills of one agent. What is asked for is read again only if a file changed.

    Any number of threads may ask.
    """

    def __init__(
        self,
        agent: AgentDefinition,
        settings: Settings | None = None,
        *,
        profile: Profile = INSTRUCTION_SKILLS,
    ) -> None:
        self.agent = agent
        self.settings = settings or Settings.read()
        self.profile = profile
        base, follow = self.settings.working_directory, self.settings.follow_links
        located = [one.resolve_root(base, follow_links=follow) for one in agent.skills]
        self._sources = [*zip(located, (one.globs for one in agent.skills), strict=True)]
        self._loader = InstructionLoader(profile, LocalHost.from_settings(self.settings))
        self._lock = threading.Lock()
        self._snapshot: AgentSkillsSnapshot | None = None
        self._last_plan: PromptPlan | None = None

    @classmethod
    def of(cls, *roots: str | PathLike[str], settings: Settings | None = None) -> AgentSkills:
        """The skills of these folders; without any, those of the usual ones."""
        usual = [InstructionSource(path, expected=False) for path in _DEFAULT_ROOTS]
        given = [InstructionSource(fspath(root)) for root in roots]
        agent = AgentDefinition(DEFAULT_AGENT, skills=tuple(given or usual))
        return cls(agent, settings, profile=LENIENT)

    @classmethod
    def from_config(
        cls,
        identity: str,
        config: str | PathLike[str] | None = None,
        settings: Settings | None = None,
    ) -> AgentSkills:
        """The skills of an agent of the config; that is `skillhall.toml` unless said otherwise.

        Raises: ConfigInvalid.
        """
        settings = settings or Settings.read()
        found = config or find_config(settings.working_directory)
        file = found or Path(settings.working_directory, "skillhall.toml")
        return cls(read_config(file).find_agent(identity), settings)

    def snapshot(self) -> AgentSkillsSnapshot:
        """What there is now: the same value as before if nothing changed."""
        with self._lock:
            built = self._snapshot
            if built is None or not built.instructions.fingerprint.is_current():
                built = self._rebuild(built, self._loader(self._sources))
            self._snapshot = built
            return built

    def current_view(self) -> SkillView:
        """The skills that the tools know."""
        return self.snapshot().skill_view

    def system_prompt(self) -> str:
        """The system prompt: the agent's own instructions, then its skills.

        Every surface that sends or shows a system prompt takes it from here.
        """
        return self._join_instructions(self.snapshot().plan)

    def get_directory(self, row: ViewedSkill) -> str:
        """The folder of a skill, as it is in the prompt."""
        return row.skill.directory

    def get_location(self, row: ViewedSkill) -> str:
        """The SKILL.md of a skill, as it is in the prompt."""
        return row.skill.location

    def mark_plan_sent(self, plan: PromptPlan) -> bool:
        """Whether a model is told this plan for the first time, and there is something in it."""
        with self._lock:
            is_first = plan is not self._last_plan and bool(plan.skills)
            self._last_plan = plan
        return is_first

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """Everything that was noticed: what is broken, hidden, shadowed or missing."""
        return self.snapshot().instructions.findings

    def _join_instructions(self, plan: PromptPlan) -> str:
        return "\n\n".join(filter(None, (self.agent.instructions.strip(), plan.text)))

    def _rebuild(
        self, previous: AgentSkillsSnapshot | None, loaded: LoadedInstructions
    ) -> AgentSkillsSnapshot:
        if previous is not None and _has_same_content(previous.instructions, loaded):
            return replace(previous, instructions=loaded)
        offer = SkillView(_compute_revision(loaded), self.profile, loaded.skills)
        plan = plan_prompt(self._build_plan_request(loaded, offer), self.agent.budgets.catalog)
        return AgentSkillsSnapshot(loaded, offer, plan)

    def _build_plan_request(self, loaded: LoadedInstructions, view: SkillView) -> PlanRequest:
        entries = {id(row.skill): self._build_listing_row(row) for row in view}
        listed = [entries[id(skill)] for skill in loaded.listed]
        inlined = [(entries[id(skill)], to_inlined(skill, body)) for skill, body in loaded.inlined]
        return PlanRequest.for_tools(self.agent.tools, listed, inlined)

    def _render_prompt_for(self, entry: ListingRow) -> str:
        """The system prompt as it would be with this skill alone."""
        plan = plan_prompt(PlanRequest.for_tools(self.agent.tools, [entry]))
        return self._join_instructions(plan)

    def _build_listing_row(self, row: ViewedSkill) -> ListingRow:
        return ListingRow(row.name, row.skill.description, self.get_location(row))


def estimate_load_tokens(skill: Skill, profile: Profile) -> int | None:
    """What it costs to load a skill; `None` if it cannot be loaded."""
    try:
        return estimate_tokens(activate(skill, profile))
    except (SkillhallError, OSError):
        return None


def _has_same_content(one: LoadedInstructions, other: LoadedInstructions) -> bool:
    return _content_parts(one) == _content_parts(other)


def _content_parts(loaded: LoadedInstructions) -> tuple[object, ...]:
    return loaded.listed, loaded.inlined, loaded.hidden, loaded.findings


def _compute_revision(loaded: LoadedInstructions) -> str:
    signatures = sorted(loaded.fingerprint.signatures.items())
    return hashlib.sha256(repr(signatures).encode("utf-8", "surrogatepass")).hexdigest()
