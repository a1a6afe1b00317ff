"""Tools for agents, defined independently of any framework.

Adapters, MCP, the command line and hand-written agent loops use the same definition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

ToolContent: TypeAlias = str | Mapping[str, object]


class ToolError(Exception):
    """A tool call failed. The message is for the model; `code` is "" if unknown."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool call: its content, and whether it is an error.

    ```python
    from skillhall import Skills

    tools = {tool.name: tool for tool in Skills.load("skills").tools()}
    result = tools["load_skill"].call({"name": "pdf-tools"})
    print(result.text, result.is_error)
    ```
    """

    content: ToolContent
    is_error: bool = False
    code: str = ""
    """The error code, if known."""

    @property
    def text(self) -> str:
        """The content as the model reads it; JSON if it is not text."""
        if isinstance(self.content, str):
            return self.content
        return json.dumps(self.content, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool for a model: a name, a description, a JSON Schema and `call`.

    ```python
    from skillhall import Skills

    for tool in Skills.load("skills").tools():
        print(tool.name, tool.description, tool.parameters)
    ```
    """

    name: str
    description: str
    """What the tool does and when to call it."""
    required: tuple[str, ...] = ()
    """The names of the required arguments."""
    # The properties may depend on the current skills.
    get_properties: Callable[[], Mapping[str, Mapping[str, object]]] = field(repr=False)
    # Returns the content or a complete result, or raises `ToolError`.
    handler: Callable[[object], ToolContent | ToolResult] = field(repr=False)

    @property
    def parameters(self) -> dict[str, object]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": self.get_properties(),
            "required": [*self.required],
            "additionalProperties": False,
        }

    def call(self, arguments: object) -> ToolResult:
        """Call the tool. Invalid arguments give an error result, not an exception."""
        try:
            result = self.handler(arguments)
        except ToolError as error:
            return ToolResult(content=f"Error: {error}", is_error=True, code=error.code)
        return result if isinstance(result, ToolResult) else ToolResult(content=result)

    def __call__(self, arguments: object) -> ToolContent:
        """Call the tool and return only the content of the result."""
        return self.call(arguments).content


def string_schema(description: str) -> Mapping[str, object]:
    """Return the JSON Schema of a string argument."""
    return {"type": "string", "description": description}


def get_argument(arguments: object, name: str) -> object:
    """Return an argument; `None` if it is missing or `arguments` is not a mapping."""
    return arguments.get(name) if isinstance(arguments, Mapping) else None
