"""The skills that a server shows, as an agent gets them: of its folders and of its repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.agents.agent_skills import DEFAULT_AGENT, AgentSkills, Built, Listed
from skillhall._internal.agents.config.agent_config import AgentDefinition
from skillhall._internal.agents.instruction_skills import Instructions
from skillhall._internal.agents.local_host import LocalHost
from skillhall._internal.agents.skill_tools import SkillTools
from skillhall._internal.catalog.fingerprint import Stamps
from skillhall._internal.catalog.skill_view import Offer
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.readable_files import AGENTS_FOLDER
from skillhall._internal.policy.requirements import unmet
from skillhall._internal.policy.selection import shown_to_models
from skillhall._internal.render.prompt_plan import plan_prompt
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill_store.input_checks import USER

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.catalog.skill_view import Offered
    from skillhall._internal.skill_store.collection import Collection, Shown
    from skillhall._internal.skill_store.input_checks import LocalSkill


_USER_FOLDER = next(path for path, source in LOCAL_SKILLS.roots if source == USER)


class _Fixed(NamedTuple):
    """An offering that never changes."""

    fixed: Offer

    def offer(self) -> Offer:
        """The same every time."""
        return self.fixed


class CollectionSkills(AgentSkills):
    """Every skill of a collection that finds here what it needs, as it is when it is asked for."""

    def __init__(self, collection: Collection) -> None:
        agent = AgentDefinition(DEFAULT_AGENT)
        super().__init__(agent, collection.settings, profile=LOCAL_SKILLS)
        self._collection = collection
        self._host = LocalHost.of(collection.settings)
        run_directory = Path(collection.settings.working_directory).absolute()
        self._agents_folder = f"{run_directory / AGENTS_FOLDER}{os.sep}"

    def current(self) -> Built:
        """What there is now: the same value as before if nothing changed."""
        shown = self._collection.show()
        with self._lock:
            built = self._built
            if built is None or built.offer.revision != shown.revision:
                built = self._built = self._built_of(shown)
            return built

    def place(self, row: Offered) -> str:
        """The folder of a skill: in the run directory, else an address; never a server's path."""
        folder = row.skill.directory
        if not folder.startswith(self._agents_folder):
            return row.uri
        return f"{AGENTS_FOLDER}/{folder[len(self._agents_folder) :].replace(os.sep, '/')}"

    def location(self, row: Offered) -> str:
        """The SKILL.md of a skill, below its place."""
        return f"{self.place(row)}/{row.skill.file}"

    def text_about(self, identity: str) -> str:
        """The system prompt with one skill alone; "" if models are not told of it.

        Raises: SkillNotFound.
        """
        row = self._row(self._collection.find(identity))
        return "" if row is None else self._text_about(self._entry(row))

    def text_about_draft(self, draft: LocalSkill) -> str:
        """The same for a skill that is not written yet."""
        if not shown_to_models(draft):
            return ""
        location = f"{_USER_FOLDER}/{draft.id}/{SKILL_MD}"
        return self._text_about(Listed(draft.name, draft.description, location))

    def activation(self, identity: str) -> str:
        """What `load_skill` gives for a skill, also for one that only people may call.

        Raises: SkillNotFound.
        """
        skill = self._collection.find(identity)
        row, offer = self._row(skill), self.offer()
        if row is None:
            offer = Offer(offer.revision, self.profile, [skill._replace(hidden=False)])
            (row,) = offer
        return str(SkillTools(_Fixed(offer), place=self.place).load(row.name).content)

    def _row(self, skill: Skill) -> Offered | None:
        return next((row for row in self.offer() if row.skill.location == skill.location), None)

    def _built_of(self, shown: Shown) -> Built:
        skills = [shown.skills[identity] for identity in shown.ids]
        hidden = tuple(skill for skill in skills if not shown_to_models(skill))
        listed = tuple(
            skill
            for skill in skills
            if shown_to_models(skill) and unmet(skill.frontmatter, self._host) is None
        )
        loaded = Instructions(listed, (), hidden, shown.findings, Stamps({}, 0))
        offer = Offer(shown.revision, self.profile, listed)
        return Built(loaded, offer, plan_prompt(self._wanted(loaded, offer), None))
