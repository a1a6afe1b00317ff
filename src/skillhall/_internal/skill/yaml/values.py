"""Value types of frontmatter, and the fields of the specification."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

YamlValue: TypeAlias = "str | bool | list[YamlValue] | dict[str, YamlValue] | None"
Fields: TypeAlias = dict[str, YamlValue]
JsonValue: TypeAlias = (
    "str | bool | int | float | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)

# Fields whose value is always text: `name: 0123` never becomes 83, as YAML 1.1 would read it.
TEXT_FIELDS = frozenset({"name", "description", "license", "compatibility"})
KNOWN_FIELDS = TEXT_FIELDS | {"metadata", "allowed-tools"}
# Not in the specification, but common among agents: hides the skill from models.
HIDDEN_FIELD = "disable-model-invocation"

# As in YAML 1.2: `yes` and `on` are text.
BOOLEANS = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}

# Numbers of the YAML 1.2 core schema, limited to those that every JSON parser represents exactly.
# Infinities are not JSON.
_INTEGER = r"[-+]?[0-9]{1,15}"
_FLOAT = r"[-+]?(?:\.[0-9]{1,15}|[0-9]{1,15}(?:\.[0-9]{0,15})?)(?:[eE][-+]?[0-9]{1,2})?"
_OTHER_BASE = r"0o[0-7]{1,15}|0x[0-9a-fA-F]{1,12}"
NUMBER_PATTERN = re.compile(f"{_INTEGER}|{_FLOAT}|{_OTHER_BASE}")


def parse_number(text: str) -> int | float:
    """Parse text that matches `NUMBER_PATTERN`."""
    if re.fullmatch(_OTHER_BASE, text):
        return int(text, 0)
    return int(text) if re.fullmatch(_INTEGER, text) else float(text)


def is_hidden_value(value: object) -> bool:
    """Whether this value of `HIDDEN_FIELD` hides a skill."""
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


def describe_type(value: YamlValue) -> str:
    """Name the type of `value` for a message."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a map"
    return "text"
