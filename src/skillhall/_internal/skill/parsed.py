"""Parsed frontmatter and parsed SKILL.md files, as immutable values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from skillhall._internal.skill.finding import Finding
from skillhall._internal.skill.yaml.values import (
    HIDDEN_FIELD,
    KNOWN_FIELDS,
    Fields,
    YamlValue,
    is_hidden_value,
)

_SEPARATOR = re.compile(r"[\s,]")


class KeyCase(Enum):
    """Whether the case of known keys matters: does `Name:` count as `name:`?"""

    EXACT = "exact"
    ANY = "any"


class Frontmatter(NamedTuple):
    r"""Frontmatter of a SKILL.md: all fields as written, known ones as properties.

    >>> skill = parse_skill(b"---\nname: pdf\nlicense: MIT\n---\n")
    >>> skill.frontmatter.name, skill.frontmatter.license
    ('pdf', 'MIT')
    """

    fields: Fields
    name: str = ""
    description: str = ""

    @classmethod
    def from_fields(cls, fields: Fields, key_case: KeyCase = KeyCase.EXACT) -> Frontmatter:
        """Build the frontmatter from its fields; name and description are trimmed."""
        if key_case is KeyCase.ANY:
            fields = dict(fields)
            for key in [*fields]:
                lower = key.lower()
                if lower in KNOWN_FIELDS or lower == HIDDEN_FIELD:
                    fields.setdefault(lower, fields[key])
        name, description = fields.get("name"), fields.get("description")
        return tuple.__new__(
            cls,
            (
                fields,
                name.strip() if isinstance(name, str) else "",
                description.rstrip() if isinstance(description, str) else "",
            ),
        )

    @property
    def license(self) -> str | None:
        """The license; `None` if it is missing or not text."""
        return _trim_text(self.fields.get("license"))

    @property
    def compatibility(self) -> str | None:
        """The environment that the skill needs; `None` if missing or not text."""
        return _trim_text(self.fields.get("compatibility"))

    @property
    def metadata(self) -> dict[str, str]:
        """The entries of `metadata` whose values are text."""
        value = self.fields.get("metadata")
        items = value.items() if isinstance(value, dict) else ()
        return {key: text for key, text in items if isinstance(text, str)}

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """The tools in `allowed-tools`, which may be a string or a list."""
        return tuple(_read_tools(self.fields.get("allowed-tools")))

    @property
    def hidden(self) -> bool:
        """Whether the skill is hidden from models; users can still call it."""
        return is_hidden_value(self.fields.get(HIDDEN_FIELD))


EMPTY_FRONTMATTER = Frontmatter({})


class ParsedSkill(NamedTuple):
    r"""A SKILL.md with its findings; no profile has judged it yet.

    >>> skill = parse_skill(b"---\nname: pdf\n---\n# Steps\n")
    >>> skill.body, [finding.code.value for finding in skill.findings]
    ('# Steps', ['description-missing'])
    """

    frontmatter: Frontmatter
    body: str
    findings: tuple[Finding, ...]


def _trim_text(value: YamlValue) -> str | None:
    return value.rstrip() if isinstance(value, str) else None


def _read_tools(value: YamlValue) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _read_tools(item)
    elif isinstance(value, str) and "(" not in value:
        yield from filter(None, _SEPARATOR.split(value))
    elif isinstance(value, str):
        # Split at spaces and commas outside parentheses: "Bash(git add *)" is one tool.
        tools, depth = [""], 0
        for character in value:
            depth += (character == "(") - (character == ")" and depth > 0)
            if depth == 0 and _SEPARATOR.match(character):
                tools.append("")
            else:
                tools[-1] += character
        yield from filter(None, tools)
