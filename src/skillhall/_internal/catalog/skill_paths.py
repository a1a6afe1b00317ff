"""Skill paths: where each skill stands in `skill://` addresses.

A skill whose name follows the specification, and is the first of that name, stands at its name. Any
other stands below a segment that no name can be, a tilde and its id, and still ends in its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from skillhall._internal.skill.checks import check_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parsed import Frontmatter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.catalog.catalog import Skill

SCHEME = "skill://"
_ID_PREFIX = "~"  # begins a segment of ours: no name that follows the specification holds it


def assign_skill_paths(skills: Iterable[Skill]) -> tuple[list[str], list[Finding]]:
    """The path of each skill, none of them twice, and a finding for each that is not its name."""
    taken: set[str] = set()
    paths, findings = [], []
    for skill in skills:
        path = quote_segment(skill.name)
        reason = _find_path_problem(skill.name, is_taken=path in taken)
        if reason:
            path = _find_unused_path(
                f"{_ID_PREFIX}{quote_segment(skill.id.replace('/', '.'))}", path, taken
            )
            findings.append(_build_finding(skill, path, reason))
        taken.add(path)
        paths.append(path)
    return paths, findings


def is_valid_name(name: str) -> bool:
    """Whether the specification allows the name."""
    return bool(name) and not any(check_name(Frontmatter({}, name), None, 0))


def _find_path_problem(name: str, *, is_taken: bool) -> str:
    if not is_valid_name(name):
        return "the name breaks a rule of the specification"
    return "another skill of that name comes first" if is_taken else ""


def build_uri(path: str, file: str) -> str:
    """The address of a file of the skill at `path`."""
    return f"{SCHEME}{path}/{'/'.join(map(quote_segment, file.split('/')))}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """The skill path and the file that an address names, if it can be one of ours.

    However it is written, it is compared as we write it; nothing in it becomes a path on a disk.
    """
    if not uri.startswith(SCHEME) or "?" in uri or "#" in uri:
        return None
    names = [unquote(segment) for segment in uri.removeprefix(SCHEME).split("/")]
    own = 2 if names[0].startswith(_ID_PREFIX) else 1
    if not all(names) or any("/" in name for name in names[own:]):
        return None
    return "/".join(map(quote_segment, names[:own])), "/".join(names[own:])


def quote_segment(text: str) -> str:
    """The text as one segment of an address; no reader takes it for a way up."""
    quoted = quote(text, safe="")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def _find_unused_path(prefix: str, name: str, taken: set[str]) -> str:
    path, number = f"{prefix}/{name}", 2
    while path in taken:
        path, number = f"{prefix}{_ID_PREFIX}{number}/{name}", number + 1
    return path


def _build_finding(skill: Skill, path: str, reason: str) -> Finding:
    message = f"MCP clients find {skill.name!r} at {SCHEME}{path}: {reason}"
    hint = "give it a name of its own that follows the rules"
    return Finding(Code.MCP_ADDRESS, message, hint=hint, path=skill.location, skill=skill.name)
