"""The activation: what a model gets when it asks for a skill."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall._internal.render.escape import escape_closing_tag, escape_field, unescape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# No body can close its element: see `literal`.
_ACTIVATION = re.compile(
    r'<skill_content name="([^"]*)">\n(?:(?!</skill_content>).*\n)*</skill_content>'
)
MAX_RESOURCES = 100  # files named in one activation; the client guide asks for a cap


def render_activation(name: str, directory: str, body: str, resources: Sequence[str] = ()) -> str:
    """The body, where the skill stands, and the paths of its other files; none of them is read."""
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
    """The skill whose activation `text` begins with, and that activation; else `None`.

    A host that compacts a conversation keeps these texts.
    """
    found = _ACTIVATION.match(text)
    return (unescape(found[1]), found[0]) if found else None


def _render_resources(paths: Sequence[str]) -> Iterator[str]:
    if not paths:
        return
    yield ""
    yield "<skill_resources>"
    yield from (f"  <file>{escape_field(path)}</file>" for path in paths[:MAX_RESOURCES])
    left = len(paths) - MAX_RESOURCES
    if left > 0:
        yield f"  ({left} more {'file is' if left == 1 else 'files are'} not listed here)"
    yield "</skill_resources>"
