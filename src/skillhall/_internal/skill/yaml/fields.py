"""Reads frontmatter fields: fast reader first, then full reader, then one repair."""

from __future__ import annotations

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.fast_reader import read_simple_yaml
from skillhall._internal.skill.yaml.full_reader import (
    YamlReadError,
    find_control_character,
    read_full_yaml,
)
from skillhall._internal.skill.yaml.lenient_reader import repair_yaml
from skillhall._internal.skill.yaml.yaml_findings import YamlResult, build_repaired_finding


def read_fields(block: str) -> YamlResult:
    """Read the fields of a YAML block. Raises: YamlReadError."""
    simple = read_simple_yaml(block)
    if simple is not None:
        first = [build_repaired_finding(simple.invalid_values)] if simple.invalid_values else []
        return YamlResult(simple.fields, [*first, *simple.findings])
    try:
        result = read_full_yaml(block)
    except YamlReadError as error:
        if not error.is_repairable:
            raise
        result = repair_yaml(block, error)
    # Literal control characters were rejected before; escapes such as "\\x07" become some now.
    if "\\" in block:
        _reject_control_characters(result)
    return result


def _reject_control_characters(result: YamlResult) -> None:
    for key, value in result.fields.items():
        character = find_control_character(key) or find_control_character(value)
        if character is not None:
            message = f"{key!r} contains the control character {character!r}"
            raise YamlReadError(Finding(Code.CONTROL_CHARACTER, message, hint="remove the escape"))
