"""The skills of a server's collection, as the skills of an agent."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.agent_skills import (
    DEFAULT_AGENT,
    AgentSkills,
    AgentSkillsSnapshot,
)
from skillhall._internal.agents.config.agent_config import AgentDefinition
from skillhall._internal.agents.instruction_skills import LoadedInstructions, LocalHost
from skillhall._internal.agents.skill_tools import SkillTools
from skillhall._internal.catalog.fingerprint import Fingerprint
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.catalog.trust.gate import clear_all
from skillhall._internal.policy.host_requirements import check_requirements
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.readable_files import AGENTS_FOLDER
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.render.listing import ListingRow
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill_store.input_checks import USER

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.skill_view import ViewedSkill
    from skillhall._internal.catalog.trust.server_gate import ServedClearance
    from skillhall._internal.skill_store.collection import Collection, CollectionSnapshot
    from skillhall._internal.skill_store.input_checks import SkillSummary


_DEFAULT_DEFINITION = AgentDefinition(DEFAULT_AGENT)
_USER_FOLDER = next(path for path, source in LOCAL_SKILLS.roots if source == USER)


class CollectionSkills(AgentSkills):
    """The skills of a collection, except those whose requirements are not met here."""

    def __init__(
        self, collection: Collection, agent: AgentDefinition = _DEFAULT_DEFINITION
    ) -> None:
        super().__init__(agent, collection.settings, profile=LOCAL_SKILLS)
        self._collection = collection
        self._host = LocalHost(collection.settings.variable_names)
        run_directory = Path(collection.settings.working_directory).absolute()
        self._agents_folder = f"{run_directory / AGENTS_FOLDER}{os.sep}"

    def snapshot(self) -> AgentSkillsSnapshot:
        """Return the current skills; the same object if nothing has changed."""
        current = self._collection.snapshot()
        served = self._collection.clear(current)
        with self._lock:
            snapshot = self._snapshot
            if snapshot is None or snapshot.skill_view.revision != served.revision:
                snapshot = self._snapshot = self._snapshot_of(current, served)
            return snapshot

    def get_directory(self, row: ViewedSkill) -> str:
        """Return the skill's folder, relative to the run directory, or its URI.

        Skills outside `.agents` get the URI: models must not see absolute paths of the server.
        """
        folder = row.skill.directory
        if not folder.startswith(self._agents_folder):
            return row.uri
        return f"{AGENTS_FOLDER}/{folder[len(self._agents_folder) :].replace(os.sep, '/')}"

    def get_location(self, row: ViewedSkill) -> str:
        """Return the path or the URI of a skill's SKILL.md."""
        return f"{self.get_directory(row)}/{row.skill.file}"

    def render_prompt_for_skill(self, identity: str) -> str:
        """Return the system prompt with only this skill; "" if models do not see it.

        Models see neither hidden skills nor skills whose requirements this machine does not meet.
        Raises: SkillNotFound.
        """
        row = self._find_visible(self._collection.find(identity))
        return "" if row is None else self._render_prompt_for(self._build_listing_row(row))

    def render_prompt_for_draft(self, draft: SkillSummary) -> str:
        """Return the system prompt with only this unsaved skill; "" if it is hidden."""
        if not is_visible_to_models(draft):
            return ""
        location = f"{_USER_FOLDER}/{draft.id}/{SKILL_MD}"
        return self._render_prompt_for(ListingRow(draft.name, draft.description, location))

    def render_activation_text(self, identity: str) -> str:
        """Return the result of `load_skill`, even for a skill that models do not see.

        Raises: SkillNotFound, SkillNotApproved if it is revoked or held.
        """
        skill = self._collection.find_available(identity)
        row, view = self._find_visible(skill), self.current_view()
        if row is None:
            view = SkillView(view.revision, self.profile, clear_all([skill._replace(hidden=False)]))
            (row,) = view
        tools = SkillTools(view, get_directory=self.get_directory)
        return str(tools.load_skill(row.name).content)

    def _find_visible(self, skill: CatalogSkill) -> ViewedSkill | None:
        return self.current_view().find_skill(skill)

    def _snapshot_of(
        self, current: CollectionSnapshot, served: ServedClearance
    ) -> AgentSkillsSnapshot:
        skills = sorted(served.clearance.cleared, key=lambda skill: skill.id)
        hidden = tuple(skill for skill in skills if not is_visible_to_models(skill))
        listed = tuple(
            skill
            for skill in skills
            if is_visible_to_models(skill)
            and check_requirements(skill.frontmatter, self._host) is None
        )
        # The empty fingerprint is never checked, since `snapshot` compares revisions.
        loaded = LoadedInstructions(listed, (), hidden, current.findings, Fingerprint({}, 0))
        get_index = partial(self._collection.get_index, current)
        view = SkillView(
            served.revision,
            self.profile,
            listed,
            get_index=get_index,
            clearance=served.clearance,
        )
        return self._build_snapshot(loaded, view)
