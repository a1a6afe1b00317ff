"""Activation: the text that a model gets when it loads a skill."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillhall._internal.render.escape import escape_closing_tag, escape_field, unescape

# A body cannot contain the closing tag: see `escape_closing_tag`.
_ACTIVATION = re.compile(
    r'<skill_content name="([^"]*)">\n(?:(?!</skill_content>).*\n)*</skill_content>'
)
_SECTION_START = "<skill_section "
MAX_RESOURCES = 100  # paths in one activation; the client guide recommends a limit


def render_activation(name: str, directory: str, body: str, resources: Sequence[str] = ()) -> str:
    """Render a skill's body, its directory and the paths of its other files."""
    files = [f"  <file>{escape_field(path)}</file>" for path in resources[:MAX_RESOURCES]]
    if (more := len(resources) - MAX_RESOURCES) > 0:
        files.append(f"  ({more} more {'file is' if more == 1 else 'files are'} not listed here)")
    return "\n".join(
        (
            f'<skill_content name="{escape_field(name)}">',
            escape_closing_tag(body, "skill_content"),
            "",
            f"Skill directory: {escape_field(directory)}",
            "Relative paths in this skill are relative to the skill directory.",
            *(("", "<skill_resources>", *files, "</skill_resources>") if files else ()),
            "</skill_content>",
        )
    )


def render_section(name: str, heading: str, text: str) -> str:
    """Render one section of a skill's body."""
    return "\n".join(
        (
            f'{_SECTION_START}name="{escape_field(name)}" heading="{escape_field(heading)}">',
            escape_closing_tag(escape_closing_tag(text, "skill_section"), "skill_content"),
            "</skill_section>",
        )
    )


def is_section(text: str) -> bool:
    """Whether the text is the result of `render_section`."""
    return text.startswith(_SECTION_START)


def find_activation(text: str) -> tuple[str, str] | None:
    """Return the skill name and the activation that `text` starts with, or `None`.

    Hosts use this function to preserve activations when they compact a conversation.
    """
    match = _ACTIVATION.match(text)
    return (unescape(match[1]), match[0]) if match else None
