"""The JSON Schema of the frontmatter, which also documents its fields."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SKILL_SCHEMA = Path(__file__).with_name("schemas") / "skill.schema.json"
_BOOLEANS = ("true", "false")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDescription:
    """A field of the frontmatter: its meaning, and common values."""

    name: str
    description: str
    is_required: bool
    values: tuple[str, ...]


@cache
def describe_fields() -> dict[str, FieldDescription]:
    """Return the fields that the schema describes, by name."""
    schema = json.loads(SKILL_SCHEMA.read_text(encoding="utf-8"))
    return {
        name: FieldDescription(
            name=name,
            description=field["description"],
            is_required=name in schema["required"],
            values=("true", "false")
            if field["type"] == "boolean"
            else (*field.get("examples", ()),),
        )
        for name, field in schema["properties"].items()
    }
