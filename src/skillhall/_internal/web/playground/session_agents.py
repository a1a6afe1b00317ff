"""Agents of the playground with the compiled context of a session."""

import threading
from collections import OrderedDict

from skillhall._internal.agents.collection_skills import CollectionSkills
from skillhall._internal.agents.config.agent_config import AgentDefinition
from skillhall._internal.skill_store.collection import Collection

MAX_SESSION_AGENTS = 64
_PREFIX = "session:"


class SessionAgents:
    """The agents of sessions that were tried, in memory. Thread-safe."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._by_id: OrderedDict[str, CollectionSkills] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, session_id: str, name: str, context: str) -> str:
        """Add or replace the agent of a session; return its id."""
        agent = AgentDefinition(f"{_PREFIX}{session_id}", name, instructions=context)
        with self._lock:
            self._by_id.pop(agent.id, None)
            self._by_id[agent.id] = CollectionSkills(self._collection, agent)
            if len(self._by_id) > MAX_SESSION_AGENTS:
                self._by_id.popitem(last=False)
        return agent.id

    def find(self, agent_id: str) -> CollectionSkills | None:
        """Return the skills of an agent with its context; `None` if it is gone."""
        return self._by_id.get(agent_id)
