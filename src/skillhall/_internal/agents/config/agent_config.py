"""The agent config: who the agents are and which skills each one gets, from a JSON or TOML file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.config.nodes import read_document
from skillhall._internal.agents.instruction_skills import InstructionSource
from skillhall._internal.policy.readable_files import extension_list
from skillhall._internal.policy.selection import Globs
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from skillhall._internal.agents.config.nodes import Node

CONFIG_FILES = ("skillhall.toml", "skillhall.json")  # looked for in the working directory
TOOLS = ("load_skill", "read_skill_file", "list_skills", "search_skills", "ReadFile")

_NO_PATH = re.compile("[\0\ud800-\udfff]")  # what no system call takes
_AGENT_KEYS = (
    *("agentId", "id", "displayName", "name", "description", "model", "instructions"),
    *("skills", "tools", "budgets", "readExtensions"),
)
_SOURCE_KEYS = ("root", "available", "inline", "base", "followLinks")
_BUDGET_KEYS = ("catalog", "requests", "tokens")


@dataclass(frozen=True, slots=True)
class Budgets:
    """What an agent may spend; `None` is no bound of ours."""

    catalog: int | None = None  # tokens of what the system prompt says about skills
    requests: int | None = None  # calls of the model for one message
    tokens: int | None = None  # of all these calls together


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """One agent of the config; in another program's file it may have further keys, for that one."""

    id: str
    display_name: str = ""
    description: str = ""
    skills: tuple[InstructionSource, ...] = ()
    model: str = ""
    instructions: str = ""
    tools: tuple[str, ...] = TOOLS
    budgets: Budgets = field(default_factory=Budgets)
    read_extensions: tuple[str, ...] = ()  # of files that ReadFile returns; else the settings'


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The agents of one config file, in its order."""

    path: str
    agents: tuple[AgentDefinition, ...]

    def agent(self, identity: str) -> AgentDefinition:
        """The agent of that id. Raises: ConfigInvalid."""
        for agent in self.agents:
            if agent.id == identity:
                return agent
        known = ", ".join(agent.id for agent in self.agents)
        raise ConfigInvalid(self.path, f"there is no agent {identity!r}", f"its agents: {known}")


def read_config(path: str | PathLike[str]) -> AgentConfig:
    """The config in a file: TOML if its name ends in `.toml`, else JSON. Raises: ConfigInvalid."""
    document = read_document(Path(path).absolute())
    nodes = document.child("agents").required().items()
    agents = tuple(_agent(node) for node in nodes)
    _refuse_equal_ids(agents, nodes)
    return AgentConfig(document.document.file, agents)


def find_config(folder: str | PathLike[str]) -> str | None:
    """The config file of a folder, if it has one."""
    return next((str(file) for name in CONFIG_FILES if (file := Path(folder, name)).exists()), None)


def schema_file() -> Path:
    """The JSON Schema of the config, for editors; it ships with the package."""
    return Path(__file__).with_name("config.schema.json")


def _agent(node: Node) -> AgentDefinition:
    if Path(node.document.file).name in CONFIG_FILES:  # ours alone: nobody else's keys are in it
        node.only(_AGENT_KEYS)
    identity = node.either("agentId", "id")
    if not identity.text():
        raise node.child("agentId").must("be a text that is not empty")
    return AgentDefinition(
        identity.text(),
        node.either("displayName", "name").text(),
        node.child("description").text(),
        tuple(_source(entry) for entry in node.child("skills").items()),
        node.child("model").text(),
        node.child("instructions").text(),
        _tools(node.child("tools")),
        _budgets(node.child("budgets")),
        _extensions(node.child("readExtensions")),
    )


def _tools(node: Node) -> tuple[str, ...]:
    given = node.texts()
    if given is None:
        return TOOLS
    for entry in node.items():
        if entry.value not in TOOLS:
            raise entry.must("name one of our tools", f"there are: {', '.join(TOOLS)}")
    return tuple(name for name in TOOLS if name in given)


def _extensions(node: Node) -> tuple[str, ...]:
    node.texts()
    for entry in node.items():
        try:
            extension_list(entry.text())
        except ValueError:
            raise entry.must("be a file extension such as .md") from None
    return extension_list(node.texts() or ())


def _budgets(node: Node) -> Budgets:
    if node.value is None:
        return Budgets()
    catalog, requests, tokens = (node.child(name).count() for name in _BUDGET_KEYS)
    node.only(_BUDGET_KEYS)
    return Budgets(catalog, requests, tokens)


def _source(node: Node) -> InstructionSource:
    root = node.child("root")
    if not root.text() or _NO_PATH.search(root.text()):
        raise root.must("be the path of a folder")
    base = node.child("base")
    if base.text() not in ("", "config"):
        raise base.must("be 'config'", "leave it out to start at the working directory")
    node.only(_SOURCE_KEYS)
    return InstructionSource(
        root.text(),
        Globs(node.child("available").texts(), node.child("inline").texts()),
        str(Path(node.document.file).parent) if base.text() else "",
        follow_links=node.child("followLinks").flag(),
    )


def _refuse_equal_ids(agents: Sequence[AgentDefinition], nodes: Sequence[Node]) -> None:
    first: dict[str, int] = {}
    for number, agent in enumerate(agents):
        if first.setdefault(agent.id, number) != number:
            problem = f"agents[{number}] has the id {agent.id!r} of agents[{first[agent.id]}]"
            raise nodes[number].wrong(problem, "give each agent an id of its own")
