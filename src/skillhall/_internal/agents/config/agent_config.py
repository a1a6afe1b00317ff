"""The agent config: agents and their skills, from a TOML or JSON file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.instruction_skills import InstructionSource
from skillhall._internal.config_file.nodes import read_config_document
from skillhall._internal.policy.readable_files import normalize_extensions
from skillhall._internal.policy.selection import Globs
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from os import PathLike

    from skillhall._internal.config_file.nodes import ConfigNode

CONFIG_FILES = ("skillhall.toml", "skillhall.json")  # in the working directory
AGENT_TOOL_NAMES = ("load_skill", "read_skill_file", "list_skills", "search_skills", "ReadFile")

_INVALID_PATH_CHARACTERS = re.compile("[\0\ud800-\udfff]")  # rejected by the operating system
_AGENT_KEYS = (
    *("agentId", "id", "displayName", "name", "description", "model", "instructions"),
    *("pinned", "excluded"),
    *("skills", "tools", "budgets", "readExtensions"),
)
_SOURCE_KEYS = ("root", "available", "inline", "base", "followLinks")
_BUDGET_KEYS = ("catalog", "requests", "tokens")


@dataclass(frozen=True, slots=True)
class AgentBudgets:
    """The budgets of an agent; `None` if a budget is not set."""

    catalog: int | None = None  # tokens of the skill listing in the system prompt
    requests: int | None = None  # model requests per message; `None`: the framework's own limit
    tokens: int | None = None  # of all requests for a message


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """An agent in the config.

    Config files of other programs may have further keys, which are ignored.
    """

    id: str
    display_name: str = ""
    description: str = ""
    skills: tuple[InstructionSource, ...] = ()
    model: str = ""
    instructions: str = ""
    tools: tuple[str, ...] = AGENT_TOOL_NAMES
    budgets: AgentBudgets = field(default_factory=AgentBudgets)
    read_extensions: tuple[str, ...] = ()  # of ReadFile; by default those of the settings
    # Patterns for names, or for ids such as `office/*`.
    pinned: tuple[str, ...] = ()  # skills that are first in the listing
    excluded: tuple[str, ...] = ()  # skills that the agent does not get


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The agents of a config file, in file order."""

    path: str
    agents: tuple[AgentDefinition, ...]

    def find_agent(self, identity: str) -> AgentDefinition:
        """Return the agent with this id. Raises: ConfigInvalid."""
        for agent in self.agents:
            if agent.id == identity:
                return agent
        known = ", ".join(agent.id for agent in self.agents) or "none"
        raise ConfigInvalid(
            self.path, f"agent not found: {identity!r}", f"agents in this file: {known}"
        )


def read_config(path: str | PathLike[str]) -> AgentConfig:
    """Read a config file: TOML if its name ends in `.toml`, else JSON.

    Raises: ConfigInvalid.
    """
    document = read_config_document(Path(path).absolute())
    agents_node = document.child("agents")
    # The file may be only for `skillhall check` or `skillhall publish`.
    if document.child("check").value is None and document.child("publish").value is None:
        agents_node.require()
    nodes = agents_node.as_list()
    agents = tuple(_parse_agent(node) for node in nodes)
    first: dict[str, int] = {}
    for number, agent in enumerate(agents):
        if first.setdefault(agent.id, number) != number:
            problem = f"agents[{number}] has the same id {agent.id!r} as agents[{first[agent.id]}]"
            raise nodes[number].build_error(problem, "give each agent a unique id")
    return AgentConfig(document.document.file, agents)


def find_config(folder: str | PathLike[str]) -> str | None:
    """Return the path of the config file in a folder; `None` if there is none."""
    return next((str(file) for name in CONFIG_FILES if (file := Path(folder, name)).exists()), None)


def schema_file() -> Path:
    """Return the path of the config's JSON Schema, which ships with the package."""
    return Path(__file__).with_name("config.schema.json")


def _parse_agent(node: ConfigNode) -> AgentDefinition:
    # Only in our own files: config files of other programs have keys that we do not know.
    if Path(node.document.file).name in CONFIG_FILES:
        node.reject_unknown_keys(_AGENT_KEYS)
    identity = node.child_or_alias("agentId", "id")
    if not identity.as_string():
        raise node.child("agentId").build_requirement_error("be a non-empty string")
    budgets = node.child("budgets")
    if budgets.value is None:
        limits = AgentBudgets()
    else:
        limits = AgentBudgets(*(budgets.child(name).as_positive_int() for name in _BUDGET_KEYS))
        budgets.reject_unknown_keys(_BUDGET_KEYS)
    return AgentDefinition(
        identity.as_string(),
        node.child_or_alias("displayName", "name").as_string(),
        node.child("description").as_string(),
        tuple(_parse_source(entry) for entry in node.child("skills").as_list()),
        node.child("model").as_string(),
        node.child("instructions").as_string(),
        _parse_tools(node.child("tools")),
        limits,
        _parse_extensions(node.child("readExtensions")),
        tuple(node.child("pinned").as_strings() or ()),
        tuple(node.child("excluded").as_strings() or ()),
    )


def _parse_tools(node: ConfigNode) -> tuple[str, ...]:
    names = node.as_strings()
    if names is None:
        return AGENT_TOOL_NAMES
    for entry in node.as_list():
        if entry.value not in AGENT_TOOL_NAMES:
            raise entry.build_requirement_error(
                "be the name of a tool", f"available tools: {', '.join(AGENT_TOOL_NAMES)}"
            )
    return tuple(name for name in AGENT_TOOL_NAMES if name in names)


def _parse_extensions(node: ConfigNode) -> tuple[str, ...]:
    node.as_strings()
    for entry in node.as_list():
        try:
            normalize_extensions(entry.as_string())
        except ValueError:
            raise entry.build_requirement_error("be a file extension such as '.md'") from None
    return normalize_extensions(node.as_strings() or ())


def _parse_source(node: ConfigNode) -> InstructionSource:
    root = node.child("root")
    if not root.as_string() or _INVALID_PATH_CHARACTERS.search(root.as_string()):
        raise root.build_requirement_error("be the path of a folder")
    base = node.child("base")
    if base.as_string() not in ("", "config"):
        raise base.build_requirement_error(
            "be 'config'", "remove 'base' if 'root' is relative to the working directory"
        )
    node.reject_unknown_keys(_SOURCE_KEYS)
    is_absolute = root.as_string().startswith("~") or Path(root.as_string()).is_absolute()
    return InstructionSource(
        root.as_string(),
        Globs(node.child("available").as_strings(), node.child("inline").as_strings()),
        str(Path(node.document.file).parent) if base.as_string() else "",
        follow_links=node.child("followLinks").as_bool(),
        # The config may come with the project.
        label="given" if is_absolute else "project",
    )
