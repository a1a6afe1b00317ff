"""The skills that a server shows, as an agent gets them: of its folders and of its repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall.agents.agent_skills import DEFAULT_AGENT, AgentSkills, Built
from skillhall.agents.config import AgentDefinition
from skillhall.agents.host import LocalHost
from skillhall.agents.instructions import Instructions
from skillhall.catalog.stamps import Stamps
from skillhall.library.offering import Offer
from skillhall.policy.exposing import shown_to_models
from skillhall.policy.profiles import LOCAL_SKILLS
from skillhall.policy.requirements import unmet
from skillhall.render.planning import plan_prompt

if TYPE_CHECKING:
    from skillhall.library.collection import Collection, Shown


class CollectionSkills(AgentSkills):
    """Every skill of a collection that finds here what it needs, as it is when it is asked for."""

    def __init__(self, collection: Collection) -> None:
        agent = AgentDefinition(DEFAULT_AGENT)
        super().__init__(agent, collection.settings, profile=LOCAL_SKILLS)
        self._collection = collection
        self._host = LocalHost.of(collection.settings)

    def current(self) -> Built:
        """What there is now: the same value as before if nothing changed."""
        shown = self._collection.show()
        with self._lock:
            built = self._built
            if built is None or built.offer.revision != shown.revision:
                built = self._built = self._built_of(shown)
            return built

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
