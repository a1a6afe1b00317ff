"""The values that frontmatter can hold, and the names of the fields the specification knows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

YamlValue: TypeAlias = "str | bool | list[YamlValue] | dict[str, YamlValue] | None"
Fields: TypeAlias = dict[str, YamlValue]
JsonValue: TypeAlias = (
    "str | bool | int | float | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)

# Fields whose value is text: `version: 1.10` stays "1.10", and `name: 0123` never becomes 83.
TEXT_FIELDS = frozenset({"name", "description", "license", "compatibility"})
KNOWN_FIELDS = TEXT_FIELDS | {"metadata", "allowed-tools"}
# Not in the specification, but heeded everywhere: no model is shown such a skill.
HIDDEN_FIELD = "disable-model-invocation"

# Only these six words are true or false; `yes` and `on` are text, as in YAML 1.2.
BOOLEANS = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}

# Numbers of the core schema of YAML 1.2, as long as every reader of JSON holds them exactly;
# infinities are no JSON.
_INTEGER = r"[-+]?[0-9]{1,15}"
_FLOAT = r"[-+]?(?:\.[0-9]{1,15}|[0-9]{1,15}(?:\.[0-9]{0,15})?)(?:[eE][-+]?[0-9]{1,2})?"
_OTHER_BASE = r"0o[0-7]{1,15}|0x[0-9a-fA-F]{1,12}"
NUMBER_PATTERN = re.compile(f"{_INTEGER}|{_FLOAT}|{_OTHER_BASE}")


def parse_number(text: str) -> int | float:
    """The number that a text is which `NUMBER` matches."""
    if re.fullmatch(_OTHER_BASE, text):
        return int(text, 0)
    return int(text) if re.fullmatch(_INTEGER, text) else float(text)


def is_hidden_value(value: object) -> bool:
    """Whether the value of the hiding field hides a skill."""
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


def describe_type(value: YamlValue) -> str:
    """What a person would call the kind of `value`."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a map"
    return "text"
