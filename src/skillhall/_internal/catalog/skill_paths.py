"""Paths of skills in `skill://` URIs.

The path of a skill is its name, if the name is valid and no earlier skill has it. The path of any
other skill is `~id/name`; no valid name starts with a tilde.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from skillhall._internal.skill.checks import check_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parsed import Frontmatter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.catalog.catalog import CatalogSkill

SCHEME = "skill://"
_ID_PREFIX = "~"  # not allowed in names by the specification


def assign_skill_paths(skills: Iterable[CatalogSkill]) -> tuple[list[str], list[Finding]]:
    """Return a unique path per skill, and a finding per path that is not the name."""
    taken: set[str] = set()
    paths, findings = [], []
    for skill in skills:
        path = name = quote_segment(skill.name)
        reason = "another skill with that name comes first" if path in taken else ""
        if not skill.name or any(check_name(Frontmatter({}, skill.name), None, 0)):
            reason = "the name breaks a rule of the specification"
        if reason:
            prefix = f"{_ID_PREFIX}{quote_segment(skill.id.replace('/', '.'))}"
            path, number = f"{prefix}/{name}", 2
            while path in taken:
                path, number = f"{prefix}{_ID_PREFIX}{number}/{name}", number + 1
            message = f"MCP clients find {skill.name!r} at {SCHEME}{path}: {reason}"
            hint = "give it a unique name that follows the rules"
            findings.append(
                Finding(Code.MCP_ADDRESS, message, None, hint, skill.location, skill.name)
            )
        taken.add(path)
        paths.append(path)
    return paths, findings


def build_uri(path: str, file: str) -> str:
    """Build the URI of a file of the skill at `path`."""
    return f"{SCHEME}{path}/{'/'.join(map(quote_segment, file.split('/')))}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """Split a URI into skill path and file; `None` if it cannot be one of ours.

    Segments are normalized to our quoting. The result is only compared with known paths; it is
    never used as a path on disk.
    """
    if not uri.startswith(SCHEME) or "?" in uri or "#" in uri:
        return None
    names = [unquote(segment) for segment in uri.removeprefix(SCHEME).split("/")]
    skill_length = 2 if names[0].startswith(_ID_PREFIX) else 1
    if not all(names) or any("/" in name for name in names[skill_length:]):
        return None
    skill_path = "/".join(map(quote_segment, names[:skill_length]))
    return skill_path, "/".join(names[skill_length:])


def quote_segment(text: str) -> str:
    """Quote the text as one URI segment."""
    quoted = quote(text, safe="")
    # "." and ".." would be resolved as relative segments.
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")
