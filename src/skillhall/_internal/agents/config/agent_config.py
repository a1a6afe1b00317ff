"""The agent config: who the agents are and which skills each one gets, from a JSON or TOML file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.config.nodes import read_config_document
from skillhall._internal.agents.instruction_skills import InstructionSource
from skillhall._internal.policy.readable_files import normalize_extensions
from skillhall._internal.policy.selection import Globs
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from skillhall._internal.agents.config.nodes import ConfigNode

CONFIG_FILES = ("skillhall.toml", "skillhall.json")  # looked for in the working directory
AGENT_TOOL_NAMES = ("load_skill", "read_skill_file", "list_skills", "search_skills", "ReadFile")

_INVALID_PATH_CHARACTERS = re.compile("[\0\ud800-\udfff]")  # what no system call takes
_AGENT_KEYS = (
    *("agentId", "id", "displayName", "name", "description", "model", "instructions"),
    *("skills", "tools", "budgets", "readExtensions"),
)
_SOURCE_KEYS = ("root", "available", "inline", "base", "followLinks")
_BUDGET_KEYS = ("catalog", "requests", "tokens")


@dataclass(frozen=True, slots=True)
class AgentBudgets:
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
    tools: tuple[str, ...] = AGENT_TOOL_NAMES
    budgets: AgentBudgets = field(default_factory=AgentBudgets)
    read_extensions: tuple[str, ...] = ()  # of files that ReadFile returns; else the settings'


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The agents of one config file, in its order."""

    path: str
    agents: tuple[AgentDefinition, ...]

    def find_agent(self, identity: str) -> AgentDefinition:
        """The agent of that id. Raises: ConfigInvalid."""
        for agent in self.agents:
            if agent.id == identity:
                return agent
        known = ", ".join(agent.id for agent in self.agents)
        raise ConfigInvalid(self.path, f"there is no agent {identity!r}", f"its agents: {known}")


def read_config(path: str | PathLike[str]) -> AgentConfig:
    """The config in a file: TOML if its name ends in `.toml`, else JSON. Raises: ConfigInvalid."""
    document = read_config_document(Path(path).absolute())
    nodes = document.child("agents").require().as_list()
    agents = tuple(_parse_agent(node) for node in nodes)
    _reject_duplicate_ids(agents, nodes)
    return AgentConfig(document.document.file, agents)


def find_config(folder: str | PathLike[str]) -> str | None:
    """The config file of a folder, if it has one."""
    return next((str(file) for name in CONFIG_FILES if (file := Path(folder, name)).exists()), None)


def schema_file() -> Path:
    """The JSON Schema of the config, for editors; it ships with the package."""
    return Path(__file__).with_name("config.schema.json")


def _parse_agent(node: ConfigNode) -> AgentDefinition:
    if Path(node.document.file).name in CONFIG_FILES:  # ours alone: nobody else's keys are in it
        node.reject_unknown_keys(_AGENT_KEYS)
    identity = node.child_or_alias("agentId", "id")
    if not identity.as_string():
        raise node.child("agentId").build_requirement_error("be a text that is not empty")
    return AgentDefinition(
        identity.as_string(),
        node.child_or_alias("displayName", "name").as_string(),
        node.child("description").as_string(),
        tuple(_parse_source(entry) for entry in node.child("skills").as_list()),
        node.child("model").as_string(),
        node.child("instructions").as_string(),
        _parse_tools(node.child("tools")),
        _parse_budgets(node.child("budgets")),
        _parse_extensions(node.child("readExtensions")),
    )


def _parse_tools(node: ConfigNode) -> tuple[str, ...]:
    given = node.as_strings()
    if given is None:
        return AGENT_TOOL_NAMES
    for entry in node.as_list():
        if entry.value not in AGENT_TOOL_NAMES:
            raise entry.build_requirement_error(
                "name one of our tools", f"there are: {', '.join(AGENT_TOOL_NAMES)}"
            )
    return tuple(name for name in AGENT_TOOL_NAMES if name in given)


def _parse_extensions(node: ConfigNode) -> tuple[str, ...]:
    node.as_strings()
    for entry in node.as_list():
        try:
            normalize_extensions(entry.as_string())
        except ValueError:
            raise entry.build_requirement_error("be a file extension such as .md") from None
    return normalize_extensions(node.as_strings() or ())


def _parse_budgets(node: ConfigNode) -> AgentBudgets:
    if node.value is None:
        return AgentBudgets()
    catalog, requests, tokens = (node.child(name).as_positive_int() for name in _BUDGET_KEYS)
    node.reject_unknown_keys(_BUDGET_KEYS)
    return AgentBudgets(catalog, requests, tokens)


def _parse_source(node: ConfigNode) -> InstructionSource:
    root = node.child("root")
    if not root.as_string() or _INVALID_PATH_CHARACTERS.search(root.as_string()):
        raise root.build_requirement_error("be the path of a folder")
    base = node.child("base")
    if base.as_string() not in ("", "config"):
        raise base.build_requirement_error(
            "be 'config'", "leave it out to start at the working directory"
        )
    node.reject_unknown_keys(_SOURCE_KEYS)
    return InstructionSource(
        root.as_string(),
        Globs(node.child("available").as_strings(), node.child("inline").as_strings()),
        str(Path(node.document.file).parent) if base.as_string() else "",
        follow_links=node.child("followLinks").as_bool(),
    )


def _reject_duplicate_ids(agents: Sequence[AgentDefinition], nodes: Sequence[ConfigNode]) -> None:
    first: dict[str, int] = {}
    for number, agent in enumerate(agents):
        if first.setdefault(agent.id, number) != number:
            problem = f"agents[{number}] has the id {agent.id!r} of agents[{first[agent.id]}]"
            raise nodes[number].build_error(problem, "give each agent an id of its own")
