"""Frontmatter as JSON: every field the author wrote, of the type that readers of YAML give it.

Our own reading keeps text as written, so that `version: 1.10` stays "1.10". Others compare what we
publish with what their YAML reader says, and to that one it is a number. What the specification
calls text stays text: it is what both must read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill.frontmatter import FrontmatterBlock, decode_text, find_frontmatter
from skillhall._internal.skill.yaml.full_reader import YamlReadError, read_typed_yaml
from skillhall._internal.skill.yaml.values import KNOWN_FIELDS, NUMBER_PATTERN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.skill.yaml.values import Fields, JsonValue, YamlValue


def to_json_fields(data: bytes, fields: Fields) -> Mapping[str, JsonValue]:
    """The `fields` of a SKILL.md, whose bytes are `data`, as JSON."""
    others = [value for key, value in fields.items() if key not in KNOWN_FIELDS]
    block = find_frontmatter(data)
    if not any(map(_contains_number, others)) or not isinstance(block, FrontmatterBlock):
        return {**fields}
    try:
        typed = read_typed_yaml(decode_text(data[block.start : block.end]))
    except YamlReadError:  # it was repaired, so no other reader takes it either
        return {**fields}
    return {key: value if key in KNOWN_FIELDS else typed[key] for key, value in fields.items()}


def _contains_number(value: YamlValue) -> bool:
    if isinstance(value, str):
        return NUMBER_PATTERN.fullmatch(value) is not None
    if isinstance(value, list):
        return any(map(_contains_number, value))
    return isinstance(value, dict) and any(map(_contains_number, value.values()))
