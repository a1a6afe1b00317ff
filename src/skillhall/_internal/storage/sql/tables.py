"""The tables as statements know them. The migrations make them; a test holds both equal."""

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
# SQLite numbers rows by itself only where the key is an INTEGER.
_SERIAL = BigInteger().with_variant(Integer, "sqlite")
# Positions are compared byte by byte, whatever the language of the database.
_KEY = Text().with_variant(Text(collation="C"), "postgresql")


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _budgets() -> list[Column[int]]:
    names = ("permanent", "stable", "working", "total")
    return [Column(f"budget_{name}", BigInteger) for name in names]


def _content() -> list[Column[str] | Column[int]]:
    """What a block says; templates and snapshots keep the same."""
    return [
        _text("type"),
        _text("zone"),
        _text("content"),
        _number("tokens"),
        _number("bytes"),
        *(Column(name, Text) for name in SKILL_COLUMNS),
    ]


SKILL_COLUMNS = ("skill_name", "skill_description", "source_type", "source_ref")

migrations = Table(
    "schema_migrations",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    _text("applied_at"),
)

sessions = Table(
    "sessions",
    METADATA,
    Column("id", Text, primary_key=True),
    _text("name"),
    *_budgets(),
    _number("version"),
    _number("revision"),
    _text("created_at"),
    _text("updated_at"),
)


def _of_session() -> Column[str]:
    there = ForeignKey("sessions.id", ondelete="CASCADE")
    return Column("session_id", Text, there, nullable=False)


blocks = Table(
    "blocks",
    METADATA,
    Column("id", Text, primary_key=True),
    _of_session(),
    Column("position", _KEY, nullable=False),
    *_content(),
    _number("version"),
    _text("created_at"),
    _text("updated_at"),
    Column("deleted", BigInteger),
)
_LIVE = text("deleted IS NULL")
Index(
    "blocks_order",
    blocks.c.session_id,
    blocks.c.zone,
    blocks.c.position,
    unique=True,
    sqlite_where=_LIVE,
    postgresql_where=_LIVE,
)
Index("blocks_skill", blocks.c.session_id, blocks.c.skill_name)
Index("blocks_deleted", blocks.c.session_id, blocks.c.deleted)

events = Table(
    "events",
    METADATA,
    Column("seq", _SERIAL, primary_key=True, autoincrement=True),
    _text("session_id"),
    _number("revision"),
    _text("kind"),
    _text("subject"),
    _text("data"),
    _text("at"),
    sqlite_autoincrement=True,
)
Index("events_session", events.c.session_id, events.c.seq)

templates = Table(
    "templates",
    METADATA,
    Column("id", Text, primary_key=True),
    _text("name"),
    _text("description"),
    *_budgets(),
    _number("version"),
    _text("created_at"),
    _text("updated_at"),
)
Index("templates_name", templates.c.name, unique=True)

template_blocks = Table(
    "template_blocks",
    METADATA,
    Column("template_id", Text, ForeignKey("templates.id", ondelete="CASCADE"), primary_key=True),
    Column("ordinal", BigInteger, primary_key=True, autoincrement=False),
    *_content(),
)

snapshots = Table(
    "snapshots",
    METADATA,
    Column("id", Text, primary_key=True),
    _of_session(),
    _text("name"),
    *_budgets(),
    _number("revision"),
    _number("automatic"),
    _text("created_at"),
)
Index("snapshots_session", snapshots.c.session_id, snapshots.c.revision)

snapshot_blocks = Table(
    "snapshot_blocks",
    METADATA,
    Column("snapshot_id", Text, ForeignKey("snapshots.id", ondelete="CASCADE"), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("position", _KEY, nullable=False),
    *_content(),
    _number("version"),
    _text("created_at"),
    _text("updated_at"),
)

blobs = Table(
    "blobs",
    METADATA,
    Column("digest", Text, primary_key=True),
    _number("size"),
    Column("data", LargeBinary, nullable=False),
)


def _file(owner: Column[str]) -> list[Column[str] | Column[int]]:
    """One file of something that is kept by digests."""
    return [
        owner,
        Column("path", Text, primary_key=True),
        Column("digest", Text, ForeignKey("blobs.digest"), nullable=False),
        _number("mode"),
    ]


shared_skills = Table(
    "shared_skills",
    METADATA,
    Column("id", Text, primary_key=True),
    _text("origin"),
    _number("version"),
    _text("updated_at"),
)
shared_skill_files = Table(
    "shared_skill_files",
    METADATA,
    *_file(
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
    _text("content_hash"),
    _number("used"),
    _text("updated_at"),
)
upload_files = Table(
    "upload_files",
    METADATA,
    *_file(
        Column("source", Text, ForeignKey("uploads.source", ondelete="CASCADE"), primary_key=True)
    ),
)
Index("upload_files_digest", upload_files.c.digest)

tokens = Table(
    "tokens",
    METADATA,
    Column("id", Text, primary_key=True),
    _text("label"),
    _text("digest"),
    _text("created_at"),
)
Index("tokens_label", tokens.c.label, unique=True)
