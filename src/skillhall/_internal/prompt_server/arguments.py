"""Arguments of prompts: parsing their declaration and rendering them into a body."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

from skillhall._internal.prompt_server.prompt_model import PromptArgument
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.values import describe_type
from skillhall.errors import InvalidArguments, MissingArguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.prompt_server.prompt_model import Prompt
    from skillhall._internal.skill.yaml.values import Fields

_FIELD = "arguments"
# The match is exact: spaces inside the braces belong to the name.
_PLACEHOLDER = re.compile(r"\{\{([^{}]+)\}\}")
_HINT = "write a list of maps with name, description and required"


def parse_arguments(fields: Fields) -> tuple[tuple[PromptArgument, ...], tuple[Finding, ...]]:
    """Return the declared arguments, in order, and findings about invalid ones."""
    value = fields.get(_FIELD)
    if value is None:
        return (), ()
    if not isinstance(value, list):
        return (), (_argument_finding(f"the value is {describe_type(value)}, not a list"),)
    arguments: dict[str, PromptArgument] = {}
    findings: list[Finding] = []
    for number, item in enumerate(value, start=1):
        # An item is a map, or only a name.
        entry = item if isinstance(item, dict) else {"name": item}
        values = [entry.get(key) for key in ("name", "description", "required")]
        name, description, required = (v.strip() if isinstance(v, str) else "" for v in values)
        if not name:
            findings.append(_argument_finding(f"item {number} has no name"))
        elif name in arguments:
            problem = f"{name!r} is declared twice; the first one is used"
            findings.append(_argument_finding(problem))
        else:
            is_required = values[2] is True or required.lower() in ("true", "yes")
            arguments[name] = PromptArgument(name, description, is_required)
    return tuple(arguments.values()), tuple(findings)


def _argument_finding(problem: str) -> Finding:
    return Finding(Code.ARGUMENTS_FORM, f"arguments: {problem}", hint=_HINT)


def check_arguments(
    arguments: Sequence[PromptArgument], values: Mapping[str, object]
) -> Mapping[str, str]:
    """Check the values of arguments and return them as strings.

    Required arguments must not be missing or empty; None counts as missing. Numbers and booleans
    are converted to JSON. Raises: InvalidArguments, MissingArguments.
    """
    supplied = {name: value for name, value in values.items() if value is not None}
    if wrong := [name for name, value in supplied.items() if not _is_scalar(value)]:
        raise InvalidArguments(wrong)
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in supplied.items()
    }
    missing = [
        argument.name
        for argument in arguments
        if argument.required and not texts.get(argument.name)
    ]
    if missing:
        raise MissingArguments(missing)
    return texts


def _is_scalar(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int)  # bool is a subclass of int


def render_arguments(body: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` that has a value, literally and in one pass."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), body)


def render_prompt(prompt: Prompt, values: Mapping[str, object]) -> dict[str, object]:
    """Return the description and the message of a prompt, as REST and MCP send them.

    Raises: InvalidArguments, MissingArguments.
    """
    text = render_arguments(prompt.body, check_arguments(prompt.arguments, values))
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": prompt.description, "messages": [message]}
