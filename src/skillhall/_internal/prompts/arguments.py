"""The arguments of prompts: what the frontmatter declares, and putting values into a body."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

from skillhall._internal.prompts.prompt_model import PromptArgument
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.values import describe_type
from skillhall.errors import InvalidArguments, MissingArguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.skill.yaml.values import Fields, YamlValue

_FIELD = "arguments"
# Exactly so: white space inside the braces belongs to the name.
_PLACEHOLDER = re.compile(r"\{\{([^{}]+)\}\}")
_HINT = "write a list of maps with name, description and required"


def parse_arguments(fields: Fields) -> tuple[tuple[PromptArgument, ...], tuple[Finding, ...]]:
    """The arguments that a prompt declares, in order, and what is odd about them."""
    value = fields.get(_FIELD)
    if value is None:
        return (), ()
    if not isinstance(value, list):
        return (), (_argument_finding(f"they are {describe_type(value)}, not a list"),)
    found: dict[str, PromptArgument] = {}
    findings: list[Finding] = []
    for number, item in enumerate(value, start=1):
        argument = _parse(item)
        if argument is None:
            findings.append(_argument_finding(f"number {number} has no name"))
        elif argument.name in found:
            findings.append(
                _argument_finding(f"{argument.name!r} is there twice; the first one counts")
            )
        else:
            found[argument.name] = argument
    return tuple(found.values()), tuple(findings)


def _parse(item: YamlValue) -> PromptArgument | None:
    """The argument that one item of the list declares: a map, or a name alone."""
    given = item if isinstance(item, dict) else {"name": item}
    name = _text(given.get("name"))
    if not name:
        return None
    return PromptArgument(name, _text(given.get("description")), _is_true(given.get("required")))


def _text(value: YamlValue) -> str:
    return value.strip() if isinstance(value, str) else ""


def _is_true(value: YamlValue) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "yes"))


def _argument_finding(problem: str) -> Finding:
    return Finding(Code.ARGUMENTS_FORM, f"of the arguments, {problem}", hint=_HINT)


def check_arguments(
    arguments: Sequence[PromptArgument], values: Mapping[str, object]
) -> Mapping[str, str]:
    """The values as text, if nothing that is required is missing or empty.

    Numbers and booleans become their JSON text; None counts as not given.
    Raises: InvalidArguments, MissingArguments.
    """
    supplied = {name: value for name, value in values.items() if value is not None}
    if wrong := [name for name, value in supplied.items() if not _is_scalar(value)]:
        raise InvalidArguments(wrong)
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in supplied.items()
    }
    missing = [one.name for one in arguments if one.required and not texts.get(one.name)]
    if missing:
        raise MissingArguments(missing)
    return texts


def _is_scalar(value: object) -> bool:
    """Whether the value has a text: a string, a boolean or a finite number."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int)  # a boolean is an int


def render_arguments(body: str, values: Mapping[str, str]) -> str:
    """The body with each `{{name}}` that has a value replaced by it, in one pass and literally."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), body)
