"""The skills of an agent during an eval: frozen, and without a usage log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillhall._internal.agents.agent_skills import AgentSkills, AgentSkillsSnapshot
from skillhall._internal.catalog.skill_view import SkillView

if TYPE_CHECKING:
    from skillhall._internal.catalog.trust.gate import ClearedSkill


class EvaluatedSkills(AgentSkills):
    """The current skills of an agent.

    Later changes of files do not change the listing. The file tools see `run_directory` instead of
    the working directory, and the usage log records nothing. `description` replaces the description
    of the skill `name`.
    """

    def __init__(
        self, skills: AgentSkills, run_directory: str, name: str = "", description: str = ""
    ) -> None:
        settings = skills.settings._replace(working_directory=run_directory, log_usage=False)
        super().__init__(skills.agent, settings, profile=skills.profile)
        self._fixed = skills.snapshot()
        if name:
            self._fixed = self._replace_description(self._fixed, name, description)

    def snapshot(self) -> AgentSkillsSnapshot:
        """Return the same snapshot every time."""
        return self._fixed

    def _replace_description(
        self, snapshot: AgentSkillsSnapshot, name: str, description: str
    ) -> AgentSkillsSnapshot:
        location = snapshot.skill_view.find(name).skill.location

        def rewrite(skill: ClearedSkill) -> ClearedSkill:
            is_same = skill.location == location
            return skill._replace(description=description) if is_same else skill

        loaded = snapshot.instructions
        loaded = replace(
            loaded,
            listed=tuple(map(rewrite, loaded.listed)),
            inlined=tuple((rewrite(skill), body) for skill, body in loaded.inlined),
        )
        return self._build_snapshot(loaded, SkillView("", self.profile, loaded.skills))
