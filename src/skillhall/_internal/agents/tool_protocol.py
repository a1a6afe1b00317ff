"""The tool protocol: tools for agents, independent of framework and transport."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar


class ToolResult(NamedTuple):
    """The content of a tool result, and whether it is an error."""

    content: str | Mapping[str, object]
    is_error: bool = False
    code: str = ""  # the error code, if known


class ToolDescription(Protocol):
    """The description of a tool for a model."""

    @property
    def name(self) -> str:
        """The name for the model."""

    @property
    def description(self) -> str:
        """What the tool does and when to call it."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON Schema of its arguments."""


class Tool(ToolDescription, Protocol):
    """A tool for a framework. Calls never raise."""

    def call(self, arguments: object) -> ToolResult:
        """Call the tool and return its result."""

    def __call__(self, arguments: object) -> str | Mapping[str, object]:
        """Call the tool and return what the model sees."""


T = TypeVar("T", bound=ToolDescription)


@dataclass(frozen=True, slots=True)
class ToolWrapper(ABC, Generic[T]):
    """A tool with the description of another one and its own `call`."""

    tool: T

    @property
    def name(self) -> str:
        """The name for the model."""
        return self.tool.name

    @property
    def description(self) -> str:
        """What the tool does and when to call it."""
        return self.tool.description

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON Schema of its arguments."""
        return self.tool.parameters

    @abstractmethod
    def call(self, arguments: object) -> ToolResult:
        """Call the tool and return its result."""

    def __call__(self, arguments: object) -> str | Mapping[str, object]:
        """Call the tool and return what the model sees."""
        return self.call(arguments).content
