"""The tool protocol: tools for agents, independent of framework and transport."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call: its content, and whether it is an error.

    ```python
    tools = {tool.name: tool for tool in Skills.load("skills").tools()}
    result = tools["load_skill"].call({"name": "pdf-tools"})
    print(result.text)
    ```
    """

    content: str | Mapping[str, object]
    is_error: bool = False
    code: str = ""
    """The error code, if known."""

    @property
    def text(self) -> str:
        """The content as the model reads it; JSON if it is not text."""
        if isinstance(self.content, str):
            return self.content
        return json.dumps(self.content, ensure_ascii=False)


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
