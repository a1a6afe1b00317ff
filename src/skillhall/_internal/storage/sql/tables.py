"""Tables of the latest schema. `migrations` creates them; a test compares both.

A column's key is the name of the record's field, where its name in the database differs.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

METADATA = MetaData()
# SQLite assigns numbers only to keys of type INTEGER.
_SERIAL = BigInteger().with_variant(Integer, "sqlite")
# Positions are compared by bytes, whatever the collation of the database.
_POSITION_TYPE = Text().with_variant(Text(collation="C"), "postgresql")
# Columns of a block's skill, and the fields of `SkillOrigin`.
SKILL_COLUMNS = {
    "skill_name": "name",
    "skill_description": "description",
    "source_type": "source_type",
    "source_ref": "source_ref",
}
BUDGET_PREFIX = "budget_"


def _text_column(name: str, key: str | None = None) -> Column[str]:
    return Column(name, Text, nullable=False, key=key or name)


def _integer_column(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _time_columns() -> list[Column[str]]:
    return [_text_column("created_at", "created"), _text_column("updated_at", "updated")]


def _reference(name: str, target: str, *, key: str | None = None, primary: bool) -> Column[str]:
    """Column that refers to an owner, which is deleted with all that belongs to it."""
    owner = ForeignKey(target, ondelete="CASCADE")
    return Column(name, Text, owner, primary_key=primary, nullable=False, key=key or name)


def _budget_columns() -> list[Column[int]]:
    names = ("permanent", "stable", "working", "total")
    return [Column(f"{BUDGET_PREFIX}{name}", BigInteger) for name in names]


def _content_columns() -> list[Column[str] | Column[int]]:
    """Columns of a block's content, shared by blocks, templates and snapshots."""
    zones = CheckConstraint("zone IN ('PERMANENT', 'STABLE', 'WORKING')")
    return [
        _text_column("type"),
        Column("zone", Text, zones, nullable=False),
        _text_column("content", "text"),
        _integer_column("tokens"),
        _integer_column("bytes"),
        *(Column(name, Text) for name in SKILL_COLUMNS),
    ]


def _file_columns(owner: Column[str]) -> list[Column[str] | Column[int]]:
    """Columns of a file whose content is stored by digest."""
    return [
        owner,
        Column("path", Text, primary_key=True),
        Column("digest", Text, ForeignKey("blobs.digest"), nullable=False),
        _integer_column("mode"),
    ]


migrations = Table(
    "schema_migrations",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    _text_column("applied_at"),
)

sessions = Table(
    "sessions",
    METADATA,
    Column("id", Text, primary_key=True),
    _text_column("name"),
    *_budget_columns(),
    _integer_column("version"),
    _integer_column("revision"),
    *_time_columns(),
)

blocks = Table(
    "blocks",
    METADATA,
    Column("id", Text, primary_key=True),
    _reference("session_id", "sessions.id", key="session", primary=False),
    Column("position", _POSITION_TYPE, nullable=False),
    *_content_columns(),
    _integer_column("version"),
    *_time_columns(),
    Column("deleted", BigInteger),
)
_NOT_DELETED = text("deleted IS NULL")
Index(
    "blocks_order",
    blocks.c.session,
    blocks.c.zone,
    blocks.c.position,
    unique=True,
    sqlite_where=_NOT_DELETED,
    postgresql_where=_NOT_DELETED,
)
Index("blocks_skill", blocks.c.session, blocks.c.skill_name)
Index("blocks_deleted", blocks.c.session, blocks.c.deleted)

events = Table(
    "events",
    METADATA,
    Column("seq", _SERIAL, Identity(), primary_key=True),
    _text_column("session_id", "session"),
    _integer_column("revision"),
    _text_column("kind"),
    _text_column("subject"),
    _text_column("data"),
    _text_column("at"),
    sqlite_autoincrement=True,  # numbers of deleted events are not reused
)
Index("events_session", events.c.session, events.c.seq)

templates = Table(
    "templates",
    METADATA,
    Column("id", Text, primary_key=True),
    _text_column("name"),
    _text_column("description"),
    *_budget_columns(),
    _integer_column("version"),
    *_time_columns(),
)
Index("templates_name", templates.c.name, unique=True)

template_blocks = Table(
    "template_blocks",
    METADATA,
    _reference("template_id", "templates.id", primary=True),
    Column("ordinal", BigInteger, primary_key=True, autoincrement=False),
    *_content_columns(),
)

snapshots = Table(
    "snapshots",
    METADATA,
    Column("id", Text, primary_key=True),
    _reference("session_id", "sessions.id", key="session", primary=False),
    _text_column("name"),
    *_budget_columns(),
    _integer_column("revision"),
    _integer_column("automatic"),
    _text_column("created_at", "created"),
)
Index("snapshots_session", snapshots.c.session, snapshots.c.revision)

snapshot_blocks = Table(
    "snapshot_blocks",
    METADATA,
    _reference("snapshot_id", "snapshots.id", primary=True),
    Column("id", Text, primary_key=True),
    Column("position", _POSITION_TYPE, nullable=False),
    *_content_columns(),
    _integer_column("version"),
    *_time_columns(),
)

blobs = Table(
    "blobs",
    METADATA,
    Column("digest", Text, primary_key=True),
    _integer_column("size"),
    Column("data", LargeBinary, nullable=False),
)

shared_skills = Table(
    "shared_skills",
    METADATA,
    Column("id", Text, primary_key=True),
    _text_column("origin"),
    _integer_column("version"),
    _text_column("updated_at", "updated"),
)
shared_skill_files = Table(
    "shared_skill_files",
    METADATA,
    *_file_columns(_reference("skill_id", "shared_skills.id", primary=True)),
)
Index("shared_skill_files_digest", shared_skill_files.c.digest)

uploads = Table(
    "uploads",
    METADATA,
    Column("source", Text, primary_key=True),
    _text_column("content_hash"),
    _integer_column("used"),
    _text_column("updated_at", "updated"),
)
upload_files = Table(
    "upload_files",
    METADATA,
    *_file_columns(_reference("source", "uploads.source", primary=True)),
)
Index("upload_files_digest", upload_files.c.digest)

tokens = Table(
    "tokens",
    METADATA,
    Column("id", Text, primary_key=True),
    _text_column("label"),
    _text_column("digest"),
    _text_column("created_at", "created"),
)
Index("tokens_label", tokens.c.label, unique=True)
