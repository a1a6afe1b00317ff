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
    from skillhall._internal.skill.yaml.values import Fields, YamlValue

_METADATA_KEYS = ("openclaw", "clawdbot", "clawdis")  # the names that one program had
_PLATFORM_ALIASES = {"macos": "darwin", "mac": "darwin", "windows": "win32"}


class HostFacts(Protocol):
    """The machine that an agent runs on."""

    @property
    def platform(self) -> str:
        """As Python calls it: linux, darwin, win32."""

    def has_program(self, name: str) -> bool:
        """Whether a program of that name can be started."""

    def has_environment_variable(self, name: str) -> bool:
        """Whether the environment has that variable."""


def check_requirements(front: Frontmatter, host: HostFacts) -> Finding | None:
    """The finding that says what is missing here for a skill; `None` if nothing is."""
    if "metadata" not in front.fields:
        return None
    reasons = [*_find_unmet(_read_requirement_fields(front), host)]
    if not reasons:
        return None
    return Finding(
        Code.REQUIREMENT_UNMET,
        f"{front.name!r} is not offered: {', '.join(reasons)}",
        hint="the skill says so in its metadata; provide it, or remove that entry",
        skill=front.name,
    )


def _read_requirement_fields(front: Frontmatter) -> Fields:
    metadata = _as_fields(front.fields.get("metadata"))
    return next((_as_fields(metadata[name]) for name in _METADATA_KEYS if name in metadata), {})


def _find_unmet(fields: Fields, host: HostFacts) -> Iterator[str]:
    if fields.get("always") in (True, "true"):
        return
    systems = [
        _PLATFORM_ALIASES.get(name.lower(), name.lower()) for name in _read_names(fields.get("os"))
    ]
    if systems and host.platform not in systems:
        yield f"it is made for {' or '.join(systems)}"
    requires = _as_fields(fields.get("requires"))
    for name in _read_names(requires.get("bins")):
        if not host.has_program(name):
            yield f"the program {name!r} is not installed"
    choices = [*_read_names(requires.get("anyBins"))]
    if choices and not any(map(host.has_program, choices)):
        yield f"none of the programs {', '.join(map(repr, choices))} is installed"
    for name in _read_names(requires.get("env")):
        if not host.has_environment_variable(name):
            yield f"the variable {name!r} is not set"


def _as_fields(value: YamlValue) -> Fields:
    return value if isinstance(value, dict) else {}


def _read_names(value: YamlValue) -> Iterator[str]:
    """The texts of a list, or one text."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and item.strip():
            yield item.strip()
