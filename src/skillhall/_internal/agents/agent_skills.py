"""The skills of one agent: what it is told of them each turn, and what it can ask for."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, replace
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.agents.config.agent_config import AgentDefinition, find_config, read_config
from skillhall._internal.agents.instruction_skills import InstructionSource, Loader, as_inlined
from skillhall._internal.agents.local_host import LocalHost
from skillhall._internal.catalog.reader import activate
from skillhall._internal.catalog.skill_view import Offer
from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS, LENIENT, LOCAL_SKILLS
from skillhall._internal.render.prompt_plan import Plan, Wanted, plan_prompt
from skillhall._internal.settings import Settings
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from os import PathLike

    from skillhall._internal.agents.instruction_skills import Instructions
    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.catalog.skill_view import Offered
    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.policy.profiles import Profile

DEFAULT_AGENT = "default"
# Where the agent of a folder without a config finds skills: its own, then those of every agent.
_USUAL = tuple(dict.fromkeys(path for path, _ in (*LOCAL_SKILLS.roots, *LENIENT.roots)))


class Listed(NamedTuple):
    """A skill of the listing, under the name that the tools know it by."""

    name: str
    description: str
    location: str


@dataclass(frozen=True, slots=True)
class Built:
    """Everything about an agent's skills at one moment."""

    instructions: Instructions
    offer: Offer
    plan: Plan


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
        located = [one.located(base, follow_links=follow) for one in agent.skills]
        self._sources = [*zip(located, (one.globs for one in agent.skills), strict=True)]
        self._load = Loader(profile, LocalHost.of(self.settings))
        self._lock = threading.Lock()
        self._built: Built | None = None
        self._told: Plan | None = None

    @classmethod
    def of(cls, *roots: str | PathLike[str], settings: Settings | None = None) -> AgentSkills:
        """The skills of these folders; without any, those of the usual ones."""
        usual = [InstructionSource(path, expected=False) for path in _USUAL]
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
        return cls(read_config(file).agent(identity), settings)

    def current(self) -> Built:
        """What there is now: the same value as before if nothing changed."""
        with self._lock:
            built = self._built
            if built is None or not built.instructions.stamps.still_hold():
                built = self._rebuilt(built, self._load(self._sources))
            self._built = built
            return built

    def offer(self) -> Offer:
        """The skills that the tools know."""
        return self.current().offer

    def text(self) -> str:
        """The system prompt: the agent's own instructions, then its skills.

        Every surface that sends or shows a system prompt takes it from here.
        """
        return self._with_instructions(self.current().plan)

    def place(self, row: Offered) -> str:
        """The folder of a skill, as it is in the prompt."""
        return row.skill.directory

    def location(self, row: Offered) -> str:
        """The SKILL.md of a skill, as it is in the prompt."""
        return row.skill.location

    def is_first_telling(self, plan: Plan) -> bool:
        """Whether a model is told this plan for the first time, and there is something in it."""
        with self._lock:
            is_first = plan is not self._told and bool(plan.shares)
            self._told = plan
        return is_first

    @property
    def findings(self) -> tuple[Judged, ...]:
        """Everything that was noticed: what is broken, hidden, shadowed or missing."""
        return self.current().instructions.findings

    def _with_instructions(self, plan: Plan) -> str:
        return "\n\n".join(filter(None, (self.agent.instructions.strip(), plan.text)))

    def _rebuilt(self, before: Built | None, loaded: Instructions) -> Built:
        if before is not None and _says_the_same(before.instructions, loaded):
            return replace(before, instructions=loaded)
        offer = Offer(_digest(loaded), self.profile, loaded.skills)
        plan = plan_prompt(self._wanted(loaded, offer), self.agent.budgets.catalog)
        return Built(loaded, offer, plan)

    def _wanted(self, loaded: Instructions, offer: Offer) -> Wanted:
        entries = {id(row.skill): self._entry(row) for row in offer}
        listed = [entries[id(skill)] for skill in loaded.listed]
        inlined = [(entries[id(skill)], as_inlined(skill, body)) for skill, body in loaded.inlined]
        return Wanted.for_tools(self.agent.tools, listed, inlined)

    def _text_about(self, entry: Listed) -> str:
        """The system prompt as it would be with this skill alone."""
        plan = plan_prompt(Wanted.for_tools(self.agent.tools, [entry]))
        return self._with_instructions(plan)

    def _entry(self, row: Offered) -> Listed:
        return Listed(row.name, row.skill.description, self.location(row))


def load_tokens(skill: Skill, profile: Profile) -> int | None:
    """What it costs to load a skill; `None` if it cannot be loaded."""
    try:
        return estimate_tokens(activate(skill, profile))
    except (SkillhallError, OSError):
        return None


def _says_the_same(one: Instructions, other: Instructions) -> bool:
    return _parts(one) == _parts(other)


def _parts(loaded: Instructions) -> tuple[object, ...]:
    return loaded.listed, loaded.inlined, loaded.for_people, loaded.findings


def _digest(loaded: Instructions) -> str:
    signatures = sorted(loaded.stamps.signatures.items())
    return hashlib.sha256(repr(signatures).encode("utf-8", "surrogatepass")).hexdigest()
