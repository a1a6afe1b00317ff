"""References to MCP servers and their skills: `mcp:label`, `mcp:label/skill`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.skill_uri import SkillUri
from skillhall._internal.sources.base import OpenedSource, Ref
from skillhall.errors import SourceRejected, UnsafePath

if TYPE_CHECKING:
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.source_text import SourceText

_PREFIX = "mcp:"
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class McpRef(Ref):
    """One skill of a configured MCP server, or all of them."""

    label: str
    skill: str = ""  # URI, path or name; "" is all skills

    needs_approval = True

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return f"{_PREFIX}{self.label}/{self.skill}" if self.skill else f"{_PREFIX}{self.label}"

    def for_bundle(self, bundle: Bundle) -> tuple[McpRef, str]:
        """Return the reference to the skill itself, which needs no path."""
        return McpRef(self.label, bundle.path or ""), ""

    def open(self, context: SourceContext) -> OpenedSource:
        """Download the skills. Raises: as `read_mcp_bundles`."""
        # Imported here because reading a lock file must not load it: see `Ref`.
        from skillhall._internal.sources.mcp.source import read_mcp_bundles  # noqa: PLC0415

        return OpenedSource(self, read_mcp_bundles(self, context.settings))


def check_mcp_label(text: str) -> str:
    """Return the label if it is valid, even as a folder name. Raises: SourceRejected."""
    try:
        if _LABEL.fullmatch(text):
            return RelativePath.parse(text).text
    except UnsafePath:
        pass
    hint = "use 1 to 32 lowercase letters, digits and hyphens"
    raise SourceRejected("path", text, "it is not a valid label for an MCP server", hint)


def parse_mcp(source: SourceText) -> McpRef | None:
    """Parse a label that may be followed by a skill. Raises: SourceRejected."""
    if not source.text.startswith(_PREFIX):
        return None
    label, _, skill = source.text.removeprefix(_PREFIX).partition("/")
    label, skill = check_mcp_label(label), skill.rstrip("/")
    try:
        if "://" in skill:
            uri = skill if skill.endswith(f"/{SKILL_MD}") else f"{skill}/{SKILL_MD}"
            return McpRef(label, SkillUri.parse(uri).text)
        return McpRef(label, RelativePath.parse(skill).text if skill else "")
    except UnsafePath as error:
        raise SourceRejected("path", source.text, error.reason) from None
