"""Frontmatter text to fields: the fast reader, then the careful one, then one repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall.skill.careful_yaml import (
    FLOW_MESSAGE,
    Reading,
    YamlRefused,
    find_control_character,
    read_careful_yaml,
)
from skillhall.skill.fast_yaml import read_plain_yaml
from skillhall.skill.finding import Code, Finding
from skillhall.skill.repair import colon_finding, repair_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall.skill.fast_yaml import PlainReading


def read_fields(block: str) -> Reading:
    """What the YAML in `block` says. Raises: YamlRefused, with the finding that explains it."""
    plain = read_plain_yaml(block)
    if plain is not None:
        plainest = not plain.flow_line and not plain.unquoted_colons
        return Reading(plain.fields, [] if plainest else [*_plain_findings(plain)])
    try:
        reading = read_careful_yaml(block)
    except YamlRefused as refusal:
        if not refusal.repairable:
            raise
        reading = repair_yaml(block, refusal)
    if "\\" in block:
        _refuse_control_characters(reading)
    return reading


def _plain_findings(plain: PlainReading) -> Iterator[Finding]:
    if plain.unquoted_colons:
        first = plain.fields[plain.unquoted_colons[0][0]]
        yield colon_finding(plain.unquoted_colons, str(first))
    if plain.flow_line:
        yield Finding(Code.YAML_FLOW, FLOW_MESSAGE, plain.flow_line)


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
