"""Requirements of a skill: programs, environment variables, operating systems.

The specification has no field for them, but many skills use these: `metadata.openclaw.requires`
with `bins`, `anyBins` and `env`, and `metadata.openclaw.os`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.skill.yaml.values import Fields, YamlValue

_METADATA_KEYS = ("openclaw", "clawdbot", "clawdis")  # current and former names of one program
_PLATFORM_ALIASES = {"macos": "darwin", "mac": "darwin", "windows": "win32"}


class HostFacts(Protocol):
    """The machine that an agent runs on."""

    @property
    def platform(self) -> str:
        """The value of `sys.platform`: linux, darwin, win32."""

    def has_program(self, name: str) -> bool:
        """Whether a program with this name is on the PATH."""

    def has_environment_variable(self, name: str) -> bool:
        """Whether the environment variable is set."""


def check_requirements(front: Frontmatter, host: HostFacts) -> Finding | None:
    """Return a finding with the unmet requirements; `None` if all are met."""
    metadata = _as_fields(front.fields.get("metadata"))
    fields = next((_as_fields(metadata[name]) for name in _METADATA_KEYS if name in metadata), {})
    reasons = [] if fields.get("always") in (True, "true") else [*_find_unmet(fields, host)]
    if not reasons:
        return None
    return Finding(
        Code.REQUIREMENT_UNMET,
        f"{front.name!r} is not available: {', '.join(reasons)}",
        hint="meet the requirements in its metadata, or remove them",
        skill=front.name,
    )


def _find_unmet(fields: Fields, host: HostFacts) -> Iterator[str]:
    names = [name.lower() for name in _read_names(fields.get("os"))]
    systems = [_PLATFORM_ALIASES.get(name, name) for name in names]
    if systems and host.platform not in systems:
        yield f"it requires {' or '.join(systems)}"
    requires = _as_fields(fields.get("requires"))
    for name in _read_names(requires.get("bins")):
        if not host.has_program(name):
            yield f"the program {name!r} is not installed"
    choices = [*_read_names(requires.get("anyBins"))]
    if choices and not any(map(host.has_program, choices)):
        yield f"none of the programs {', '.join(map(repr, choices))} is installed"
    for name in _read_names(requires.get("env")):
        if not host.has_environment_variable(name):
            yield f"the environment variable {name!r} is not set"


def _as_fields(value: YamlValue) -> Fields:
    return value if isinstance(value, dict) else {}


def _read_names(value: YamlValue) -> Iterator[str]:
    """Yield the strings of a list, or a single string."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and item.strip():
            yield item.strip()
