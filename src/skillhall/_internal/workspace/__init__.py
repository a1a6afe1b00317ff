"""Sessions, blocks, templates and snapshots. Exports the records for surfaces."""

from skillhall._internal.storage.records import (
    Block,
    BlockContent,
    Event,
    Session,
    SessionBudgets,
    SessionSnapshot,
    SkillOrigin,
    Template,
    Zone,
    ZoneSize,
)

__all__ = [
    "Block",
    "BlockContent",
    "Event",
    "Session",
    "SessionBudgets",
    "SessionSnapshot",
    "SkillOrigin",
    "Template",
    "Zone",
    "ZoneSize",
]
