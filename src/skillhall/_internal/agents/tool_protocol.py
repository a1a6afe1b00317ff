"""What a tool for agents is, whichever framework or protocol calls it, and what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar


class ToolResult(NamedTuple):
    """What a tool says, and whether it could not do what it was asked."""

    content: str | Mapping[str, object]
    is_error: bool = False
    code: str = ""  # the class of the error, where the tool knows it


class ToolDescription(Protocol):
    """What a model is told of a tool."""

    @property
    def name(self) -> str:
        """What the model calls it."""

    @property
    def description(self) -> str:
        """What it does and when to call it."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON Schema of its arguments."""


class Tool(ToolDescription, Protocol):
    """What a framework needs to know of a tool. No call raises, whatever it is given."""

    def call(self, arguments: object) -> ToolResult:
        """The answer, and whether it is an error."""

    def __call__(self, arguments: object) -> str | Mapping[str, object]:
        """What the model sees."""


T = TypeVar("T", bound=ToolDescription)


@dataclass(frozen=True, slots=True)
class ToolWrapper(ABC, Generic[T]):
    """A tool that is described as another one, and answers in its own way."""

    tool: T

    @property
    def name(self) -> str:
        """What the model calls it."""
        return self.tool.name

    @property
    def description(self) -> str:
        """What it does and when to call it."""
        return self.tool.description

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON Schema of its arguments."""
        return self.tool.parameters

    @abstractmethod
    def call(self, arguments: object) -> ToolResult:
        """The answer, and whether it is an error."""

    def __call__(self, arguments: object) -> str | Mapping[str, object]:
        """What the model sees."""
        return self.call(arguments).content
