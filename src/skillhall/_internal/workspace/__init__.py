"""Sessions, blocks, templates and snapshots. Exports the values that surfaces show."""

from skillhall._internal.storage.records import (
    Block,
    Budgets,
    Content,
    Event,
    Session,
    SkillOrigin,
    Snapshot,
    Template,
    Zone,
    ZoneSize,
)

__all__ = [
    "Block",
    "Budgets",
    "Content",
    "Event",
    "Session",
    "SkillOrigin",
    "Snapshot",
    "Template",
    "Zone",
    "ZoneSize",
]
