"""Argument models: Pydantic classes for frameworks that take one instead of a JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, create_model

if TYPE_CHECKING:
    from skillhall._internal.agents.tool_definition import Tool


def build_arguments_model(tool: Tool) -> type[BaseModel]:
    """Return a model whose JSON Schema is the current one of the tool.

    It accepts all arguments: the tool checks them, and its errors tell the model what to do.
    """

    def replace_schema(schema: dict[str, Any]) -> None:
        schema.clear()
        schema.update(tool.parameters)

    config = ConfigDict(extra="allow", json_schema_extra=replace_schema)
    return create_model(tool.name, __config__=config)
