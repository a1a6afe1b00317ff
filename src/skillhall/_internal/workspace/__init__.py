"""Sessions, blocks, templates and snapshots. Exports the records for surfaces."""

from skillhall._internal.storage.records import (
    DATABASE_RESTORED,
    MAX_BUDGET,
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
    "DATABASE_RESTORED",
    "MAX_BUDGET",
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
