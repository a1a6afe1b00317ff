"""Activation: the text that a model gets when it loads a skill."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall._internal.render.escape import escape_closing_tag, escape_field, unescape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A body cannot contain the closing tag: see `escape_closing_tag`.
_ACTIVATION = re.compile(
    r'<skill_content name="([^"]*)">\n(?:(?!</skill_content>).*\n)*</skill_content>'
)
MAX_RESOURCES = 100  # paths in one activation; the client guide recommends a limit


def render_activation(name: str, directory: str, body: str, resources: Sequence[str] = ()) -> str:
    """Render the body, the directory and the paths of the other files of a skill."""
    return "\n".join(
        (
            f'<skill_content name="{escape_field(name)}">',
            escape_closing_tag(body, "skill_content"),
            "",
            f"Skill directory: {escape_field(directory)}",
            "Relative paths in this skill are relative to the skill directory.",
            *_render_resources(resources),
            "</skill_content>",
        )
    )


def find_activation(text: str) -> tuple[str, str] | None:
    """Return the skill name and the activation that `text` starts with, or `None`.

    Hosts use it to preserve activations when they compact a conversation.
    """
    match = _ACTIVATION.match(text)
    return (unescape(match[1]), match[0]) if match else None


def _render_resources(paths: Sequence[str]) -> Iterator[str]:
    if not paths:
        return
    yield ""
    yield "<skill_resources>"
    yield from (f"  <file>{escape_field(path)}</file>" for path in paths[:MAX_RESOURCES])
    more = len(paths) - MAX_RESOURCES
    if more > 0:
        yield f"  ({more} more {'file is' if more == 1 else 'files are'} not listed here)"
    yield "</skill_resources>"
