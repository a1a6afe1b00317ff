"""Frontmatter text to fields: the fast reader, then the careful one, then one repair."""

from __future__ import annotations

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.fast_reader import read_simple_yaml
from skillhall._internal.skill.yaml.full_reader import (
    YamlReadError,
    find_control_character,
    read_full_yaml,
)
from skillhall._internal.skill.yaml.repair import repair_yaml
from skillhall._internal.skill.yaml.result import YamlResult, build_repaired_finding


def read_fields(block: str) -> YamlResult:
    """What the YAML in `block` says. Raises: YamlRefused, with the finding that explains it."""
    plain = read_simple_yaml(block)
    if plain is not None:
        first = [build_repaired_finding(plain.invalid_values)] if plain.invalid_values else []
        return YamlResult(plain.fields, [*first, *plain.findings])
    try:
        reading = read_full_yaml(block)
    except YamlReadError as refusal:
        if not refusal.is_repairable:
            raise
        reading = repair_yaml(block, refusal)
    if "\\" in block:
        _reject_control_characters(reading)
    return reading


def _reject_control_characters(result: YamlResult) -> None:
    for key, value in result.fields.items():
        character = find_control_character(key) or find_control_character(value)
        if character is not None:
            raise YamlReadError(
                Finding(
                    Code.CONTROL_CHARACTER,
                    f"{key!r} holds the control character {character!r}",
                    hint="remove the escape",
                )
            )
