"""The skills of one agent: its system prompt and the skills its tools can load."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import partial
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from skillhall._internal.agents.config.agent_config import (
    AgentBudgets,
    AgentDefinition,
    find_config,
    read_config,
)
from skillhall._internal.agents.instruction_skills import (
    InstructionLoader,
    InstructionSource,
    LoadedInstructions,
    to_inlined,
)
from skillhall._internal.catalog.fingerprint import Fingerprint
from skillhall._internal.catalog.search.background_index import (
    BackgroundIndex,
    IndexInput,
    build_index_path,
)
from skillhall._internal.catalog.skill_content import activate
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.catalog.trust.gate import Clearance
from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS, LENIENT, LOCAL_SKILLS
from skillhall._internal.render.listing import ListingRow
from skillhall._internal.render.prompt_plan import PlanRequest, PromptPlan, plan_prompt
from skillhall._internal.settings import Settings
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from skillhall._internal.agents.scripts.script_runner import ScriptRunner
    from skillhall._internal.catalog.search.search_index import SearchIndex
    from skillhall._internal.catalog.skill_view import ViewedSkill
    from skillhall._internal.catalog.trust.gate import ClearedSkill, SkillGate
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.policy.profiles import Profile

DEFAULT_AGENT = "default"
# The roots of an agent without a config: the local skills, then those of all coding agents.
# Those in the working directory belong to the project, which a stranger may have written.
_DEFAULT_ROOTS = {
    path: "user" if path.startswith("~") else "project"
    for path, _ in (*LOCAL_SKILLS.roots, *LENIENT.roots)
}


@dataclass(frozen=True, slots=True)
class AgentSkillsSnapshot:
    """An agent's skills, prompt plan and findings at one moment."""

    instructions: LoadedInstructions
    skill_view: SkillView
    plan: PromptPlan
    request: PlanRequest  # of the plan, to plan again for a task


class SkillSource(Protocol):
    """Skills that tools and adapters accept: `Skills` or `AgentSkills`."""

    def as_agent_skills(self) -> AgentSkills:
        """Return these skills as `AgentSkills`."""


class AgentSkills:
    """The skills of one agent: its system prompt and its tools. Thread-safe.

    Every call uses the current skills. They are read again only if a file has changed.

    ```python
    from skillhall import AgentSkills

    skills = AgentSkills.of("skills")  # or AgentSkills.from_config("coding")
    print(skills.prompt())
    print(skills.prompt("Fill in the form application.pdf", max_tokens=2_000))
    ```
    """

    def __init__(
        self,
        agent: AgentDefinition,
        settings: Settings | None = None,
        *,
        profile: Profile = INSTRUCTION_SKILLS,
        script_runner: ScriptRunner | None = None,
    ) -> None:
        self.agent = agent
        self.script_runner = script_runner
        self.settings: Settings = settings or Settings.read()
        self.profile = profile
        self._loader = InstructionLoader(
            agent.skills, self.settings, profile, agent.pinned, agent.excluded
        )
        self._index: BackgroundIndex | None = None  # opened by the first search
        self._lock = threading.Lock()
        self._snapshot: AgentSkillsSnapshot | None = None
        self._last_plan: PromptPlan | None = None

    @classmethod
    def of(
        cls,
        *roots: str | PathLike[str],
        settings: Settings | None = None,
        max_tokens: int | None = None,
        pinned: Sequence[str] = (),
        excluded: Sequence[str] = (),
        script_runner: ScriptRunner | None = None,
    ) -> AgentSkills:
        """Return the skills in `roots`, or in the default folders if none are given.

        `max_tokens` limits the listing in the system prompt. Pinned skills come first in it;
        excluded skills are not available to the agent. Patterns match names, or ids such as
        `office/*`. With a `script_runner`, the agent has the tool `run_skill_script`.

        ```python
        from skillhall import AgentSkills

        skills = AgentSkills.of("skills", pinned=["pdf-*"], excluded=["drafts/*"])
        ```
        """
        agent = replace(
            build_default_agent(roots),
            budgets=AgentBudgets(catalog=max_tokens),
            pinned=tuple(pinned),
            excluded=tuple(excluded),
        )
        return cls(agent, settings, profile=LENIENT, script_runner=script_runner)

    @classmethod
    def from_config(
        cls,
        identity: str,
        config: str | PathLike[str] | None = None,
        settings: Settings | None = None,
        script_runner: ScriptRunner | None = None,
    ) -> AgentSkills:
        """Return the skills of the agent with this id in a config file.

        `config` defaults to `skillhall.toml`, else `skillhall.json`, in the working directory.
        With a `script_runner`, the agent has the tool `run_skill_script`.
        Raises: ConfigInvalid.
        """
        settings = settings or Settings.read()
        folder = settings.working_directory
        path = config or find_config(folder) or Path(folder, "skillhall.toml")
        agent = read_config(path).find_agent(identity)
        return cls(agent, settings, script_runner=script_runner)

    def as_agent_skills(self) -> AgentSkills:
        """Return itself. Adapters call this method because they accept `Skills` too."""
        return self

    def snapshot(self) -> AgentSkillsSnapshot:
        """Return the current skills; they are loaded again only if a file has changed."""
        with self._lock:
            snapshot = self._snapshot
            if snapshot is None or not snapshot.instructions.fingerprint.is_current():
                loaded = self._loader.load()
                if snapshot is not None and snapshot.instructions == loaded:
                    # Keep the plan object: `mark_plan_sent` compares plans by identity.
                    snapshot = replace(snapshot, instructions=loaded)
                else:
                    revision = loaded.fingerprint.revision
                    state = IndexInput(revision, loaded.skills)
                    get_index = partial(self._get_index, state)
                    clearance = Clearance(
                        loaded.skills, loaded.held, loaded.trust_problem, loaded.trust_warnings
                    )
                    view = SkillView(
                        revision, self.profile, loaded.skills, (), get_index, clearance=clearance
                    )
                    snapshot = self._build_snapshot(loaded, view)
                self._snapshot = snapshot
            return snapshot

    def current_view(self) -> SkillView:
        """Return the skills that the tools can load."""
        return self.snapshot().skill_view

    def system_prompt(self) -> str:
        """Return the system prompt without a task, as `prompt()` does."""
        return self.prompt()

    def prompt(self, task: str = "", *, max_tokens: int | None = None) -> str:
        """Return the system prompt: the agent's own instructions, then its skills.

        If the skills need more tokens than `max_tokens`, by default the agent's budget, those that
        matter for the task come first, and a last line says how many more can be searched. The
        same skills, task and budget always give the same text.
        Every surface that sends or shows a system prompt uses this method.

        ```python
        from skillhall import AgentSkills

        print(AgentSkills.of("skills").prompt("Fill in a PDF form", max_tokens=2_000))
        ```
        """
        return self.render_prompt(self.plan(task, max_tokens=max_tokens))

    def plan(self, task: str = "", *, max_tokens: int | None = None) -> PromptPlan:
        """Return the plan for `prompt`: how each skill appears in it, and its tokens.

        ```python
        from skillhall import AgentSkills

        plan = AgentSkills.of("skills").plan("Fill in a PDF form", max_tokens=2_000)
        print(plan.tokens, [(skill.name, skill.detail) for skill in plan.skills])
        ```
        """
        snapshot = self.snapshot()
        budget = self.agent.budgets.catalog if max_tokens is None else max_tokens
        if budget == snapshot.plan.budget and not task.strip():
            return snapshot.plan
        request = snapshot.request
        if task.strip():
            request = request._replace(find_leading=partial(self._find_leading, snapshot, task))
        return plan_prompt(request, budget)

    def render_prompt(self, plan: PromptPlan) -> str:
        """Return the system prompt for a plan of these skills."""
        return "\n\n".join(filter(None, (self.agent.instructions.strip(), plan.text)))

    def get_directory(self, row: ViewedSkill) -> str:
        """Return the folder of a skill, as shown in the prompt."""
        return row.skill.directory

    def get_location(self, row: ViewedSkill) -> str:
        """Return the path of a skill's SKILL.md, as shown in the prompt."""
        return row.skill.location

    def mark_plan_sent(self, plan: PromptPlan) -> bool:
        """Record a sent plan; return whether it has skills and differs from the last one."""
        with self._lock:
            is_first = plan is not self._last_plan and bool(plan.skills)
            self._last_plan = plan
        return is_first

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """The findings about rejected, shadowed, unusable and missing skills."""
        return self.snapshot().instructions.findings

    def _build_snapshot(self, loaded: LoadedInstructions, view: SkillView) -> AgentSkillsSnapshot:
        # By identity, as in `InstructionLoader.load`.
        entries = {id(row.skill): self._build_listing_row(row) for row in view}
        listed = [entries[id(skill)] for skill in loaded.listed]
        inlined = [(entries[id(skill)], to_inlined(skill, body)) for skill, body in loaded.inlined]
        request = PlanRequest.for_tools(self.agent.tools, listed, inlined)
        if loaded.pinned_count:
            pinned = [entry.location for entry in listed[: loaded.pinned_count]]
            request = request._replace(find_leading=lambda: pinned)
        plan = plan_prompt(request, self.agent.budgets.catalog)
        return AgentSkillsSnapshot(loaded, view, plan, request)

    def _find_leading(self, snapshot: AgentSkillsSnapshot, task: str) -> list[str]:
        """Return the locations of pinned skills, then of the best matches for the task."""
        pinned = snapshot.request.listed[: snapshot.instructions.pinned_count]
        matching = map(self.get_location, snapshot.skill_view.rank(task))
        return [*(entry.location for entry in pinned), *matching]

    def _get_index(self, state: IndexInput) -> SearchIndex:
        with self._lock:
            if self._index is None:
                self._index = BackgroundIndex(self._build_index_path())
        return self._index.get_index(state)

    def _build_index_path(self) -> str | None:
        """Return the path of the stored search index; `None` if caches are disabled."""
        if not self.settings.use_head_cache:
            return None
        sources = (repr((source, self.settings.working_directory)) for source in self.agent.skills)
        patterns = repr((self.agent.pinned, self.agent.excluded))
        identity = ("agent", self.profile.name, patterns, *sources)
        return build_index_path(self.settings.cache_directory, *identity)

    def _render_prompt_for(self, entry: ListingRow) -> str:
        """Return the system prompt as if this were the only skill."""
        plan = plan_prompt(PlanRequest.for_tools(self.agent.tools, [entry]))
        return self.render_prompt(plan)

    def _build_listing_row(self, row: ViewedSkill) -> ListingRow:
        return ListingRow(row.name, row.skill.description, self.get_location(row))


def build_default_agent(roots: Sequence[str | PathLike[str]] = ()) -> AgentDefinition:
    """Return an agent without a config, with the skills in `roots` or the default folders."""
    sources = [InstructionSource(fspath(root)) for root in roots] or [
        InstructionSource(path, expected=False, label=label)
        for path, label in _DEFAULT_ROOTS.items()
    ]
    return AgentDefinition(DEFAULT_AGENT, skills=tuple(sources))


class GatedAgentSkills(AgentSkills):
    """The skills that a trust gate clears, by default for an agent without a config."""

    def __init__(
        self,
        agent: AgentDefinition,
        settings: Settings,
        gate: SkillGate,
        profile: Profile = LENIENT,
    ) -> None:
        super().__init__(agent, settings, profile=profile)
        self._loader = InstructionLoader(
            agent.skills, settings, profile, agent.pinned, agent.excluded, gate=gate
        )


class FixedAgentSkills(AgentSkills):
    """The skills of a fixed view, for an agent without a config."""

    def __init__(self, view: SkillView) -> None:
        super().__init__(AgentDefinition(DEFAULT_AGENT), profile=view.profile)
        listed = tuple(row.skill for row in view)
        hidden = tuple(skill for skill in view.all_skills if skill.hidden)
        # The empty fingerprint is never checked, since `snapshot` is overridden.
        loaded = LoadedInstructions(listed, (), hidden, view.findings, Fingerprint({}, 0))
        self._fixed = self._build_snapshot(loaded, view)

    def snapshot(self) -> AgentSkillsSnapshot:
        """Return the same snapshot every time."""
        return self._fixed


def estimate_load_tokens(skill: ClearedSkill, profile: Profile) -> int | None:
    """Return the estimated tokens of a loaded skill; `None` if it cannot be loaded."""
    try:
        return estimate_tokens(activate(skill, profile))
    except (SkillhallError, OSError):
        return None
