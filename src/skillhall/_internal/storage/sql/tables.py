"""Tables of the latest schema. `migrations` creates them; a test compares both.

Where a column's name differs from the field of the record, its key is the name of the field.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
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
# Columns of a block's skill, and the fields of `SkillOrigin`.
SKILL_COLUMNS = {
    "skill_name": "name",
    "skill_description": "description",
    "source_type": "source_type",
    "source_ref": "source_ref",
}
BUDGET_COLUMNS = tuple(f"budget_{name}" for name in ("permanent", "stable", "working", "total"))
# SQLite assigns numbers only to keys of type INTEGER.
_SERIAL = BigInteger().with_variant(Integer, "sqlite")
# Positions are compared by bytes, whatever the collation of the database.
_POSITION = Text().with_variant(Text(collation="C"), "postgresql")
_ZONES = "zone IN ('PERMANENT', 'STABLE', 'WORKING')"


def _id(name: str = "id") -> Column[str]:
    return Column(name, Text, primary_key=True)


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def _integers(*names: str) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=False) for name in names]


def _created() -> Column[str]:
    return Column("created_at", Text, nullable=False, key="created")


def _updated() -> Column[str]:
    return Column("updated_at", Text, nullable=False, key="updated")


def _budgets() -> list[Column[int]]:
    return [Column(name, BigInteger) for name in BUDGET_COLUMNS]


def _content() -> list[Column[str] | Column[int]]:
    """Columns of a block's content, shared by blocks, templates and snapshots."""
    return [
        *_texts("type"),
        Column("zone", Text, CheckConstraint(_ZONES), nullable=False),
        Column("content", Text, nullable=False, key="text"),
        *_integers("tokens", "bytes"),
        *(Column(name, Text) for name in SKILL_COLUMNS),
    ]


def _owner(name: str, target: str) -> Column[str]:
    """Part of a primary key: the owner of the row, whose deletion deletes the row."""
    return Column(name, Text, ForeignKey(target, ondelete="CASCADE"), primary_key=True)


def _session() -> Column[str]:
    session = ForeignKey("sessions.id", ondelete="CASCADE")
    return Column("session_id", Text, session, nullable=False, key="session")


def _file() -> list[Column[str] | Column[int]]:
    """Columns of a file whose content is stored by digest."""
    digest = Column("digest", Text, ForeignKey("blobs.digest"), nullable=False)
    return [_id("path"), digest, *_integers("mode")]


migrations = Table(
    "schema_migrations",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    *_texts("applied_at"),
)

sessions = Table(
    "sessions",
    METADATA,
    _id(),
    *_texts("name"),
    *_budgets(),
    *_integers("version", "revision"),
    _created(),
    _updated(),
)

blocks = Table(
    "blocks",
    METADATA,
    _id(),
    _session(),
    Column("position", _POSITION, nullable=False),
    *_content(),
    *_integers("version"),
    _created(),
    _updated(),
    Column("deleted", BigInteger),
)
Index(
    "blocks_order",
    blocks.c.session,
    blocks.c.zone,
    blocks.c.position,
    unique=True,
    sqlite_where=text("deleted IS NULL"),
    postgresql_where=text("deleted IS NULL"),
)
Index("blocks_skill", blocks.c.session, blocks.c.skill_name)
Index("blocks_deleted", blocks.c.session, blocks.c.deleted)

events = Table(
    "events",
    METADATA,
    Column("seq", _SERIAL, Identity(), primary_key=True),
    Column("session_id", Text, nullable=False, key="session"),
    *_integers("revision"),
    *_texts("kind", "subject", "data", "at"),
    sqlite_autoincrement=True,  # numbers of deleted events are not reused
)
Index("events_session", events.c.session, events.c.seq)

templates = Table(
    "templates",
    METADATA,
    _id(),
    *_texts("name", "description"),
    *_budgets(),
    *_integers("version"),
    _created(),
    _updated(),
)
Index("templates_name", templates.c.name, unique=True)
template_blocks = Table(
    "template_blocks",
    METADATA,
    _owner("template_id", "templates.id"),
    Column("ordinal", BigInteger, primary_key=True, autoincrement=False),
    *_content(),
)

snapshots = Table(
    "snapshots",
    METADATA,
    _id(),
    _session(),
    *_texts("name"),
    *_budgets(),
    *_integers("revision", "automatic"),
    _created(),
)
Index("snapshots_session", snapshots.c.session, snapshots.c.revision)
snapshot_blocks = Table(
    "snapshot_blocks",
    METADATA,
    _owner("snapshot_id", "snapshots.id"),
    _id(),
    Column("position", _POSITION, nullable=False),
    *_content(),
    *_integers("version"),
    _created(),
    _updated(),
)

blobs = Table(
    "blobs",
    METADATA,
    _id("digest"),
    *_integers("size"),
    Column("data", LargeBinary, nullable=False),
)

shared_skills = Table(
    "shared_skills", METADATA, _id(), *_texts("origin"), *_integers("version"), _updated()
)
shared_skill_files = Table(
    "shared_skill_files", METADATA, _owner("skill_id", "shared_skills.id"), *_file()
)
Index("shared_skill_files_digest", shared_skill_files.c.digest)
# Times of files that were restored from folders. All other files have the time of their skill.
shared_file_times = Table(
    "shared_file_times",
    METADATA,
    _owner("skill_id", "shared_skills.id"),
    _id("path"),
    *_integers("modified"),  # nanoseconds since 1970
)

uploads = Table(
    "uploads", METADATA, _id("source"), *_texts("content_hash"), *_integers("used"), _updated()
)
upload_files = Table("upload_files", METADATA, _owner("source", "uploads.source"), *_file())
Index("upload_files_digest", upload_files.c.digest)

tokens = Table("tokens", METADATA, _id(), *_texts("label", "digest"), _created())
Index("tokens_label", tokens.c.label, unique=True)
# A table of its own, since older versions know the columns of `tokens`. Its rows outlive tokens.
token_details = Table(
    "token_details",
    METADATA,
    _id(),
    *_texts("label", "owner", "scopes"),
    _created(),
    Column("expires_at", Text, key="expires"),
    Column("used_at", Text, key="used"),
    Column("revoked_at", Text, key="revoked"),
)
token_owners = Table(
    "token_owners",
    METADATA,
    _id("token_id"),
    Column("user_id", Text, nullable=False, key="user"),
)
Index("token_owners_user", token_owners.c.user)
sign_ins = Table(
    "sign_ins",
    METADATA,
    _id(),
    *_texts("digest"),
    # No foreign key: the operator's token has no row, and users sign in without one.
    Column("token_id", Text, nullable=False, key="token"),
    _created(),
    Column("used_at", Text, nullable=False, key="used"),
    Column("expires_at", Text, nullable=False, key="expires"),
    *_texts("address", "agent"),
)
Index("sign_ins_digest", sign_ins.c.digest, unique=True)
Index("sign_ins_token", sign_ins.c.token)

users = Table(
    "users",
    METADATA,
    _id(),
    *_texts("name", "display", "role", "issuer", "subject", "password"),
    Column("disabled_at", Text, key="disabled"),
    _created(),
    Column("seen_at", Text, key="used"),
)
Index("users_name", users.c.name, unique=True)
Index(
    "users_identity",
    users.c.issuer,
    users.c.subject,
    unique=True,
    sqlite_where=users.c.issuer != "",
    postgresql_where=users.c.issuer != "",
)
# Links where users set a password. Only digests of their codes are stored.
user_links = Table(
    "user_links",
    METADATA,
    _id("digest"),
    Column("user_id", Text, nullable=False, key="user"),
    _created(),
    Column("expires_at", Text, nullable=False, key="expires"),
)

# Append-only: triggers refuse other changes.
audit = Table(
    "audit",
    METADATA,
    Column("id", _SERIAL, Identity(), primary_key=True),
    *_texts("at", "actor", "token", "via", "address", "request_id", "action", "subject"),
    *_texts("digest_before", "digest_after", "outcome", "detail"),
    sqlite_autoincrement=True,  # numbers are not reused
)
Index("audit_at", audit.c.at)
# The hash chain. No foreign key: the seal of the last deleted row stays.
audit_seals = Table(
    "audit_seals",
    METADATA,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    *_integers("audit_id"),
    *_texts("hash"),
)
Index("audit_seals_row", audit_seals.c.audit_id, unique=True)

# Rows are only added: a later one about a digest replaces the earlier ones.
revocations = Table(
    "revocations",
    METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    *_texts("digest", "skill", "reason", "at", "instead"),
    Column("actor", Text, nullable=False, key="by"),
    Column("revoked", BigInteger, nullable=False, key="is_revoked"),  # 0 undoes an earlier row
)
Index("revocations_digest", revocations.c.digest, revocations.c.number)

inventories = Table(
    "inventories",
    METADATA,
    _id("label"),
    Column("actor", Text, nullable=False, key="by"),
    *_texts("at"),
)
inventory_items = Table(
    "inventory_items",
    METADATA,
    _owner("label", "inventories.label"),
    Column("ordinal", BigInteger, primary_key=True, autoincrement=False),
    *_texts("name", "digest", "source"),
    Column("commit_id", Text, nullable=False, key="commit"),
    *_texts("signer", "state", "risk"),
)
Index("inventory_items_digest", inventory_items.c.digest)

# Versions of skills. They are never changed, except for their state, and outlive their skill.
skill_versions = Table(
    "skill_versions",
    METADATA,
    Column("skill_id", Text, primary_key=True, key="skill"),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    *_texts("digest", "state", "note", "source"),
    Column("commit_id", Text, nullable=False, key="commit"),
    *_texts("signer"),
    Column("created_by", Text, nullable=False, key="author"),
    _created(),
)
Index("skill_versions_digest", skill_versions.c.digest)
Index("skill_versions_state", skill_versions.c.state)


def _version() -> list[Column[str] | Column[int] | ForeignKeyConstraint]:
    """Return the key columns of a row about a version, and their foreign key."""
    return [
        Column("skill_id", Text, primary_key=True, key="skill"),
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        ForeignKeyConstraint(
            ["skill", "number"], [skill_versions.c.skill, skill_versions.c.number]
        ),
    ]


version_files = Table("version_files", METADATA, *_version(), *_file())
Index("version_files_digest", version_files.c.digest)
# Decisions about versions, in order.
version_reviews = Table(
    "version_reviews",
    METADATA,
    *_version(),
    Column("ordinal", BigInteger, primary_key=True, autoincrement=False),
    *_texts("decision"),
    Column("actor", Text, nullable=False, key="by"),
    *_texts("at", "comment", "digest"),
)
# The version of each skill that is served. A skill without a row is not served.
current_versions = Table(
    "current_versions",
    METADATA,
    Column("skill_id", Text, primary_key=True, key="skill"),
    *_integers("number", "changed"),  # `changed` is the number of the event about the change
    ForeignKeyConstraint(["skill", "number"], [skill_versions.c.skill, skill_versions.c.number]),
)
# Stores whose skills are reviewed: the path of a run directory, or "database".
reviewed_stores = Table("reviewed_stores", METADATA, _id("location"), *_texts("since"))
# The run directory whose skills have the versions, if they are in folders and not reviewed.
recorded_stores = Table("recorded_stores", METADATA, _id("location"), *_texts("since"))
# Deleted skills whose files are still stored, and the version that is restored.
deleted_skills = Table(
    "deleted_skills",
    METADATA,
    Column("skill_id", Text, primary_key=True, key="skill"),
    Column("number", BigInteger, nullable=False),
    Column("actor", Text, nullable=False, key="by"),
    *_texts("at"),
    ForeignKeyConstraint(["skill", "number"], [skill_versions.c.skill, skill_versions.c.number]),
)
Index("deleted_skills_at", deleted_skills.c.at)

# Settings that administrators have changed on a running server.
server_settings = Table(
    "server_settings",
    METADATA,
    _id("name"),
    *_texts("value"),
    Column("actor", Text, nullable=False, key="by"),
    *_texts("at"),
)
