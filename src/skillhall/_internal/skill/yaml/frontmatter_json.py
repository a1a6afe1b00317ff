"""Frontmatter as JSON, with the types that other YAML parsers produce.

The readers here return `version: 1.10` as the text "1.10". Clients compare published frontmatter
with the result of their own YAML parser, where it is a number. Fields that the specification
defines as text are text in both.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillhall._internal.skill.frontmatter_locator import (
    FrontmatterBlock,
    decode_text,
    find_frontmatter,
)
from skillhall._internal.skill.yaml.full_reader import read_typed_yaml
from skillhall._internal.skill.yaml.values import (
    KNOWN_FIELDS,
    NUMBER_PATTERN,
    Fields,
    JsonValue,
    YamlValue,
)
from skillhall._internal.skill.yaml.yaml_findings import YamlReadError


def to_json_fields(data: bytes, fields: Fields) -> Mapping[str, JsonValue]:
    """Convert the `fields` of the SKILL.md `data` to JSON values."""
    others = [value for key, value in fields.items() if key not in KNOWN_FIELDS]
    block = find_frontmatter(data)
    if not any(map(_contains_number, others)) or not isinstance(block, FrontmatterBlock):
        return {**fields}
    try:
        typed = read_typed_yaml(decode_text(data[block.start : block.end]))
    except YamlReadError:  # `fields` were repaired; other parsers reject the file
        return {**fields}
    return {key: value if key in KNOWN_FIELDS else typed[key] for key, value in fields.items()}


def _contains_number(value: YamlValue) -> bool:
    if isinstance(value, str):
        return NUMBER_PATTERN.fullmatch(value) is not None
    if isinstance(value, list):
        return any(map(_contains_number, value))
    return isinstance(value, dict) and any(map(_contains_number, value.values()))
