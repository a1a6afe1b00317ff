"""What a skill needs to be of use here: programs, environment variables, an operating system.

No field of the specification says so. These are the ones that many skills carry all the same:
`metadata.openclaw.requires` with `bins`, `anyBins` and `env`, and `metadata.openclaw.os`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from skillhall._internal.skill.finding import Code, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.skill.parsed import Frontmatter
    from skillhall._internal.skill.yaml.values import Fields, Value

_OWNERS = ("openclaw", "clawdbot", "clawdis")  # the names that one program had
_SYSTEMS = {"macos": "darwin", "mac": "darwin", "windows": "win32"}


class Host(Protocol):
    """The machine that an agent runs on."""

    @property
    def system(self) -> str:
        """As Python calls it: linux, darwin, win32."""

    def has_program(self, name: str) -> bool:
        """Whether a program of that name can be started."""

    def has_variable(self, name: str) -> bool:
        """Whether the environment has that variable."""


def unmet(front: Frontmatter, host: Host) -> Finding | None:
    """The finding that says what is missing here for a skill; `None` if nothing is."""
    if "metadata" not in front.fields:
        return None
    reasons = [*_reasons(_owned(front), host)]
    if not reasons:
        return None
    return Finding(
        Code.REQUIREMENT_UNMET,
        f"{front.name!r} is not offered: {', '.join(reasons)}",
        hint="the skill says so in its metadata; provide it, or remove that entry",
        skill=front.name,
    )


def _owned(front: Frontmatter) -> Fields:
    metadata = _fields(front.fields.get("metadata"))
    return next((_fields(metadata[name]) for name in _OWNERS if name in metadata), {})


def _reasons(owned: Fields, host: Host) -> Iterator[str]:
    if owned.get("always") in (True, "true"):
        return
    systems = [_SYSTEMS.get(name.lower(), name.lower()) for name in _names(owned.get("os"))]
    if systems and host.system not in systems:
        yield f"it is made for {' or '.join(systems)}"
    requires = _fields(owned.get("requires"))
    for name in _names(requires.get("bins")):
        if not host.has_program(name):
            yield f"the program {name!r} is not installed"
    choices = [*_names(requires.get("anyBins"))]
    if choices and not any(map(host.has_program, choices)):
        yield f"none of the programs {', '.join(map(repr, choices))} is installed"
    for name in _names(requires.get("env")):
        if not host.has_variable(name):
            yield f"the variable {name!r} is not set"


def _fields(value: Value) -> Fields:
    return value if isinstance(value, dict) else {}


def _names(value: Value) -> Iterator[str]:
    """The texts of a list, or one text."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and item.strip():
            yield item.strip()
