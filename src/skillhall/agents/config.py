"""The agent config: which skills each agent gets, read from a JSON or TOML file."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall.agents.instructions import InstructionSource
from skillhall.errors import ConfigInvalid
from skillhall.policy.selecting import Globs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

_NO_PATH = re.compile("[\0\ud800-\udfff]")  # what no system call takes
_SOURCE_KEYS = ("root", "available", "inline", "base")


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """One agent of the config; other keys of its entry belong to whoever runs it."""

    id: str
    display_name: str = ""
    description: str = ""
    skills: tuple[InstructionSource, ...] = ()


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
    file = Path(path).absolute()
    document = _Node(_read_document(file), "", str(file))
    agents = tuple(_agent(node) for node in document.child("agents").required().items())
    _refuse_equal_ids(agents, str(file))
    return AgentConfig(str(file), agents)


def _read_document(file: Path) -> object:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigInvalid(str(file), f"it cannot be read: {reason.lower()}") from None
    try:
        document: object = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        form = "TOML" if file.suffix == ".toml" else "JSON"
        raise ConfigInvalid(str(file), f"it is not {form}: {error}") from None
    return document


@dataclass(frozen=True, slots=True)
class _Node:
    """A value of the document, and the key that leads to it."""

    value: object
    key: str
    file: str

    def must(self, be: str, hint: str = "") -> ConfigInvalid:
        """The error that says what the value must be."""
        return ConfigInvalid(self.file, f"{self.key or 'the document'} must {be}", hint)

    def child(self, name: str) -> _Node:
        """The value below `name`; `None` if there is none."""
        if not isinstance(self.value, dict):
            raise self.must("be an object")
        return _Node(self.value.get(name), f"{self.key}.{name}" if self.key else name, self.file)

    def names(self) -> Sequence[str]:
        """The names of the values below this one."""
        return list(self.value) if isinstance(self.value, dict) else []

    def required(self) -> _Node:
        """The node itself, if it has a value."""
        if self.value is None:
            raise self.must("be given")
        return self

    def items(self) -> list[_Node]:
        """The entries of a list; none if it is left out."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.must("be a list")
        return [_Node(v, f"{self.key}[{i}]", self.file) for i, v in enumerate(self.value)]

    def text(self) -> str:
        """The text; "" if it is left out."""
        if self.value is None:
            return ""
        if not isinstance(self.value, str):
            raise self.must("be text")
        return self.value

    def texts(self) -> tuple[str, ...] | None:
        """The texts of a list; `None` if it is left out, which is not the same as empty."""
        if self.value is None:
            return None
        if not isinstance(self.value, list) or not all(isinstance(v, str) for v in self.value):
            raise self.must("be a list of text")
        return tuple(self.value)


def _agent(node: _Node) -> AgentDefinition:
    identity = node.child("agentId")
    identity = node.child("id") if identity.value is None else identity
    if not identity.text():
        raise node.child("agentId").must("be a text that is not empty")
    return AgentDefinition(
        identity.text(),
        node.child("displayName").text(),
        node.child("description").text(),
        tuple(_source(entry) for entry in node.child("skills").items()),
    )


def _source(node: _Node) -> InstructionSource:
    root = node.child("root")
    if not root.text() or _NO_PATH.search(root.text()):
        raise root.must("be the path of a folder")
    base = node.child("base")
    if base.text() not in ("", "config"):
        raise base.must("be 'config'", "leave it out to start at the working directory")
    # A misspelt 'inline' would otherwise list what should be inlined, and nobody would know.
    for name in node.names():
        if name not in _SOURCE_KEYS:
            raise node.child(name).must("not be there", f"known keys: {', '.join(_SOURCE_KEYS)}")
    return InstructionSource(
        root.text(),
        Globs(node.child("available").texts(), node.child("inline").texts()),
        str(Path(node.file).parent) if base.text() else "",
    )


def _refuse_equal_ids(agents: Sequence[AgentDefinition], file: str) -> None:
    first: dict[str, int] = {}
    for number, agent in enumerate(agents):
        if first.setdefault(agent.id, number) != number:
            problem = f"agents[{number}] has the id {agent.id!r} of agents[{first[agent.id]}]"
            raise ConfigInvalid(file, problem, "give each agent an id of its own")
