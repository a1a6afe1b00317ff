"""Tables for building statements. Migrations create them; a test keeps both equal."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
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


def _text_column(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _integer_column(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _budget_columns() -> list[Column[int]]:
    names = ("permanent", "stable", "working", "total")
    return [Column(f"budget_{name}", BigInteger) for name in names]


def _content_columns() -> list[Column[str] | Column[int]]:
    """Columns of a block's content, shared by blocks, templates and snapshots."""
    return [
        _text_column("type"),
        _text_column("zone"),
        _text_column("content"),
        _integer_column("tokens"),
        _integer_column("bytes"),
        *(Column(name, Text) for name in SKILL_COLUMNS),
    ]


SKILL_COLUMNS = ("skill_name", "skill_description", "source_type", "source_ref")

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
    _text_column("created_at"),
    _text_column("updated_at"),
)


def _session_column() -> Column[str]:
    reference = ForeignKey("sessions.id", ondelete="CASCADE")
    return Column("session_id", Text, reference, nullable=False)


blocks = Table(
    "blocks",
    METADATA,
    Column("id", Text, primary_key=True),
    _session_column(),
    Column("position", _POSITION_TYPE, nullable=False),
    *_content_columns(),
    _integer_column("version"),
    _text_column("created_at"),
    _text_column("updated_at"),
    Column("deleted", BigInteger),
)
_NOT_DELETED = text("deleted IS NULL")
Index(
    "blocks_order",
    blocks.c.session_id,
    blocks.c.zone,
    blocks.c.position,
    unique=True,
    sqlite_where=_NOT_DELETED,
    postgresql_where=_NOT_DELETED,
)
Index("blocks_skill", blocks.c.session_id, blocks.c.skill_name)
Index("blocks_deleted", blocks.c.session_id, blocks.c.deleted)

events = Table(
    "events",
    METADATA,
    Column("seq", _SERIAL, primary_key=True, autoincrement=True),
    _text_column("session_id"),
    _integer_column("revision"),
    _text_column("kind"),
    _text_column("subject"),
    _text_column("data"),
    _text_column("at"),
    sqlite_autoincrement=True,
)
Index("events_session", events.c.session_id, events.c.seq)

templates = Table(
    "templates",
    METADATA,
    Column("id", Text, primary_key=True),
    _text_column("name"),
    _text_column("description"),
    *_budget_columns(),
    _integer_column("version"),
    _text_column("created_at"),
    _text_column("updated_at"),
)
Index("templates_name", templates.c.name, unique=True)

template_blocks = Table(
    "template_blocks",
    METADATA,
    Column("template_id", Text, ForeignKey("templates.id", ondelete="CASCADE"), primary_key=True),
    Column("ordinal", BigInteger, primary_key=True, autoincrement=False),
    *_content_columns(),
)

snapshots = Table(
    "snapshots",
    METADATA,
    Column("id", Text, primary_key=True),
    _session_column(),
    _text_column("name"),
    *_budget_columns(),
    _integer_column("revision"),
    _integer_column("automatic"),
    _text_column("created_at"),
)
Index("snapshots_session", snapshots.c.session_id, snapshots.c.revision)

snapshot_blocks = Table(
    "snapshot_blocks",
    METADATA,
    Column("snapshot_id", Text, ForeignKey("snapshots.id", ondelete="CASCADE"), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("position", _POSITION_TYPE, nullable=False),
    *_content_columns(),
    _integer_column("version"),
    _text_column("created_at"),
    _text_column("updated_at"),
)

blobs = Table(
    "blobs",
    METADATA,
    Column("digest", Text, primary_key=True),
    _integer_column("size"),
    Column("data", LargeBinary, nullable=False),
)


def _file_columns(owner: Column[str]) -> list[Column[str] | Column[int]]:
    """Columns of a file whose content is stored by digest."""
    return [
        owner,
        Column("path", Text, primary_key=True),
        Column("digest", Text, ForeignKey("blobs.digest"), nullable=False),
        _integer_column("mode"),
    ]


shared_skills = Table(
    "shared_skills",
    METADATA,
    Column("id", Text, primary_key=True),
    _text_column("origin"),
    _integer_column("version"),
    _text_column("updated_at"),
)
shared_skill_files = Table(
    "shared_skill_files",
    METADATA,
    *_file_columns(
        Column(
            "skill_id", Text, ForeignKey("shared_skills.id", ondelete="CASCADE"), primary_key=True
        )
    ),
)
Index("shared_skill_files_digest", shared_skill_files.c.digest)

uploads = Table(
    "uploads",
    METADATA,
    Column("source", Text, primary_key=True),
    _text_column("content_hash"),
    _integer_column("used"),
    _text_column("updated_at"),
)
upload_files = Table(
    "upload_files",
    METADATA,
    *_file_columns(
        Column("source", Text, ForeignKey("uploads.source", ondelete="CASCADE"), primary_key=True)
    ),
)
Index("upload_files_digest", upload_files.c.digest)

tokens = Table(
    "tokens",
    METADATA,
    Column("id", Text, primary_key=True),
    _text_column("label"),
    _text_column("digest"),
    _text_column("created_at"),
)
Index("tokens_label", tokens.c.label, unique=True)
