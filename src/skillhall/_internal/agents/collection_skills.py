"""The skills that a server shows, as an agent gets them: of its folders and of its repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.agents.agent_skills import (
    DEFAULT_AGENT,
    AgentSkills,
    AgentSkillsSnapshot,
    ListingRow,
)
from skillhall._internal.agents.config.agent_config import AgentDefinition
from skillhall._internal.agents.instruction_skills import LoadedInstructions
from skillhall._internal.agents.local_host import LocalHost
from skillhall._internal.agents.skill_tools import SkillTools
from skillhall._internal.catalog.fingerprint import Fingerprint
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.readable_files import AGENTS_FOLDER
from skillhall._internal.policy.requirements import check_requirements
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.render.prompt_plan import plan_prompt
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill_store.input_checks import USER

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.catalog.skill_view import ViewedSkill
    from skillhall._internal.skill_store.collection import Collection, CollectionSnapshot
    from skillhall._internal.skill_store.input_checks import StoredSkill


_USER_FOLDER = next(path for path, source in LOCAL_SKILLS.roots if source == USER)


class _StaticProvider(NamedTuple):
    """An offering that never changes."""

    view: SkillView

    def current_view(self) -> SkillView:
        """The same every time."""
        return self.view


class CollectionSkills(AgentSkills):
    """Every skill of a collection that finds here what it needs, as it is when it is asked for."""

    def __init__(self, collection: Collection) -> None:
        agent = AgentDefinition(DEFAULT_AGENT)
        super().__init__(agent, collection.settings, profile=LOCAL_SKILLS)
        self._collection = collection
        self._host = LocalHost.from_settings(collection.settings)
        run_directory = Path(collection.settings.working_directory).absolute()
        self._agents_folder = f"{run_directory / AGENTS_FOLDER}{os.sep}"

    def snapshot(self) -> AgentSkillsSnapshot:
        """What there is now: the same value as before if nothing changed."""
        shown = self._collection.snapshot()
        with self._lock:
            built = self._snapshot
            if built is None or built.skill_view.revision != shown.revision:
                built = self._snapshot = self._build_snapshot(shown)
            return built

    def get_directory(self, row: ViewedSkill) -> str:
        """The folder of a skill: in the run directory, else an address; never a server's path."""
        folder = row.skill.directory
        if not folder.startswith(self._agents_folder):
            return row.uri
        return f"{AGENTS_FOLDER}/{folder[len(self._agents_folder) :].replace(os.sep, '/')}"

    def get_location(self, row: ViewedSkill) -> str:
        """The SKILL.md of a skill, below its place."""
        return f"{self.get_directory(row)}/{row.skill.file}"

    def render_prompt_for_skill(self, identity: str) -> str:
        """The system prompt with one skill alone; "" if models are not told of it.

        Raises: SkillNotFound.
        """
        row = self._find_visible(self._collection.find(identity))
        return "" if row is None else self._render_prompt_for(self._build_listing_row(row))

    def render_prompt_for_draft(self, draft: StoredSkill) -> str:
        """The same for a skill that is not written yet."""
        if not is_visible_to_models(draft):
            return ""
        location = f"{_USER_FOLDER}/{draft.id}/{SKILL_MD}"
        return self._render_prompt_for(ListingRow(draft.name, draft.description, location))

    def render_activation_text(self, identity: str) -> str:
        """What `load_skill` gives for a skill, also for one that only people may call.

        Raises: SkillNotFound.
        """
        skill = self._collection.find(identity)
        row, offer = self._find_visible(skill), self.current_view()
        if row is None:
            offer = SkillView(offer.revision, self.profile, [skill._replace(hidden=False)])
            (row,) = offer
        return str(
            SkillTools(_StaticProvider(offer), get_directory=self.get_directory)
            .load_skill(row.name)
            .content
        )

    def _find_visible(self, skill: Skill) -> ViewedSkill | None:
        return next(
            (row for row in self.current_view() if row.skill.location == skill.location), None
        )

    def _build_snapshot(self, collection_snapshot: CollectionSnapshot) -> AgentSkillsSnapshot:
        skills = [collection_snapshot.skills[identity] for identity in collection_snapshot.ids]
        hidden = tuple(skill for skill in skills if not is_visible_to_models(skill))
        listed = tuple(
            skill
            for skill in skills
            if is_visible_to_models(skill)
            and check_requirements(skill.frontmatter, self._host) is None
        )
        loaded = LoadedInstructions(
            listed, (), hidden, collection_snapshot.findings, Fingerprint({}, 0)
        )
        offer = SkillView(collection_snapshot.revision, self.profile, listed)
        return AgentSkillsSnapshot(
            loaded, offer, plan_prompt(self._build_plan_request(loaded, offer), None)
        )
