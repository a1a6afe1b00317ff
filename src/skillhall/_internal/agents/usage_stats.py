"""Usage counts of skills, from the usage log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillhall._internal.storage.usage_log import UsageLog

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings

_DATE_LENGTH = len("2026-01-31")


@dataclass(slots=True)
class DayUsage:
    """How often a skill was used on one day."""

    loads: int = 0
    tokens: int = 0
    failures: int = 0


@dataclass(slots=True)
class SkillUsage:
    """How often one skill was used."""

    skill: str
    offered: int = 0
    loaded: int = 0
    read: int = 0
    tokens: int = 0  # of loaded instructions and read files
    last: str = ""  # time of the last load or read
    failed: int = 0  # loads and reads that ended with an error
    days: dict[str, DayUsage] = field(default_factory=dict)  # by date in UTC


def count_usage(settings: Settings, agent: str | None = None) -> list[SkillUsage]:
    """Count the usage of each skill, most loaded first; optionally for one agent."""
    uses: dict[str, SkillUsage] = {}
    for usage in UsageLog(settings.data_directory).read():
        if agent is not None and usage.agent != agent:
            continue
        for name in usage.skills:
            use = uses.setdefault(name, SkillUsage(name))
            if usage.event == "offered":
                use.offered += 1
                continue
            day = use.days.setdefault(usage.at[:_DATE_LENGTH], DayUsage())
            if usage.event == "failed":
                use.failed += 1
                day.failures += 1
                continue
            if usage.event == "loaded":
                use.loaded += 1
                day.loads += 1
            use.read += usage.event == "read"
            use.tokens += usage.tokens
            day.tokens += usage.tokens
            use.last = max(use.last, usage.at)
    return sorted(uses.values(), key=lambda use: (-use.loaded, -use.read, use.skill))
