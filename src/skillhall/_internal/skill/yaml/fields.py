"""Frontmatter text to fields: the fast reader, then the careful one, then one repair."""

from __future__ import annotations

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.fast_reader import read_plain_yaml
from skillhall._internal.skill.yaml.full_reader import (
    YamlRefused,
    find_control_character,
    read_careful_yaml,
)
from skillhall._internal.skill.yaml.repair import repair_yaml
from skillhall._internal.skill.yaml.result import Reading, repaired


def read_fields(block: str) -> Reading:
    """What the YAML in `block` says. Raises: YamlRefused, with the finding that explains it."""
    plain = read_plain_yaml(block)
    if plain is not None:
        first = [repaired(plain.faults)] if plain.faults else []
        return Reading(plain.fields, [*first, *plain.findings])
    try:
        reading = read_careful_yaml(block)
    except YamlRefused as refusal:
        if not refusal.repairable:
            raise
        reading = repair_yaml(block, refusal)
    if "\\" in block:
        _refuse_control_characters(reading)
    return reading


def _refuse_control_characters(reading: Reading) -> None:
    for key, value in reading.fields.items():
        character = find_control_character(key) or find_control_character(value)
        if character is not None:
            raise YamlRefused(
                Finding(
                    Code.CONTROL_CHARACTER,
                    f"{key!r} holds the control character {character!r}",
                    hint="remove the escape",
                )
            )
