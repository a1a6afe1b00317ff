"""Migrations for SQLite and PostgreSQL: one list of functions, forward only.

A new database runs all of them, an older one those that it lacks. A released migration never
changes, so it is written out instead of derived from `tables`. A test compares both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import inspect, text

from skillhall._internal.skill.bundle import compute_digest
from skillhall._internal.storage.sql.tables import migrations
from skillhall.errors import DatabaseNewer

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

_LOCK = 7_223_446_120_931  # id of PostgreSQL's advisory lock for migrations

_BUDGET_COLUMNS = (
    "budget_permanent BIGINT, budget_stable BIGINT, budget_working BIGINT, budget_total BIGINT"
)
_CONTENT_COLUMNS = """type TEXT NOT NULL,
    zone TEXT NOT NULL CHECK (zone IN ('PERMANENT', 'STABLE', 'WORKING')),
    content TEXT NOT NULL, tokens BIGINT NOT NULL, bytes BIGINT NOT NULL,
    skill_name TEXT, skill_description TEXT, source_type TEXT, source_ref TEXT"""
_SESSION_COLUMN = "session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE"


def _m1_sessions(connection: Connection) -> None:
    """Create sessions, blocks and events."""
    key, serial = _get_position_type(connection), _get_serial_type(connection)
    _execute(
        connection,
        f"""CREATE TABLE sessions (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL,
            {_BUDGET_COLUMNS}, version BIGINT NOT NULL, revision BIGINT NOT NULL,
            created_at TEXT NOT NULL, updated_at TEXT NOT NULL)""",
        f"""CREATE TABLE blocks (id TEXT PRIMARY KEY NOT NULL, {_SESSION_COLUMN},
            position {key} NOT NULL, {_CONTENT_COLUMNS}, version BIGINT NOT NULL,
            created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deleted BIGINT)""",
        """CREATE UNIQUE INDEX blocks_order ON blocks (session_id, zone, position)
            WHERE deleted IS NULL""",
        "CREATE INDEX blocks_skill ON blocks (session_id, skill_name)",
        "CREATE INDEX blocks_deleted ON blocks (session_id, deleted)",
        f"""CREATE TABLE events (seq {serial}, session_id TEXT NOT NULL, revision BIGINT NOT NULL,
            kind TEXT NOT NULL, subject TEXT NOT NULL, data TEXT NOT NULL, at TEXT NOT NULL)""",
        "CREATE INDEX events_session ON events (session_id, seq)",
    )


def _m2_templates_and_snapshots(connection: Connection) -> None:
    """Create templates and snapshots."""
    key = _get_position_type(connection)
    _execute(
        connection,
        f"""CREATE TABLE templates (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL,
            description TEXT NOT NULL, {_BUDGET_COLUMNS}, version BIGINT NOT NULL,
            created_at TEXT NOT NULL, updated_at TEXT NOT NULL)""",
        "CREATE UNIQUE INDEX templates_name ON templates (name)",
        f"""CREATE TABLE template_blocks (
            template_id TEXT NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
            ordinal BIGINT NOT NULL, {_CONTENT_COLUMNS},
            PRIMARY KEY (template_id, ordinal))""",
        f"""CREATE TABLE snapshots (id TEXT PRIMARY KEY NOT NULL, {_SESSION_COLUMN},
            name TEXT NOT NULL, {_BUDGET_COLUMNS}, revision BIGINT NOT NULL,
            automatic BIGINT NOT NULL, created_at TEXT NOT NULL)""",
        "CREATE INDEX snapshots_session ON snapshots (session_id, revision)",
        f"""CREATE TABLE snapshot_blocks (
            snapshot_id TEXT NOT NULL REFERENCES snapshots (id) ON DELETE CASCADE,
            id TEXT NOT NULL, position {key} NOT NULL, {_CONTENT_COLUMNS}, version BIGINT NOT NULL,
            created_at TEXT NOT NULL, updated_at TEXT NOT NULL, PRIMARY KEY (snapshot_id, id))""",
    )


def _m3_shared_files(connection: Connection) -> None:
    """Create shared skills and uploads, with blobs by digest."""
    data = "BYTEA" if _is_postgres(connection) else "BLOB"
    file = (
        "path TEXT NOT NULL, digest TEXT NOT NULL REFERENCES blobs (digest), mode BIGINT NOT NULL"
    )
    _execute(
        connection,
        f"""CREATE TABLE blobs (digest TEXT PRIMARY KEY NOT NULL, size BIGINT NOT NULL,
            data {data} NOT NULL)""",
        """CREATE TABLE shared_skills (id TEXT PRIMARY KEY NOT NULL, origin TEXT NOT NULL,
            version BIGINT NOT NULL, updated_at TEXT NOT NULL)""",
        f"""CREATE TABLE shared_skill_files (
            skill_id TEXT NOT NULL REFERENCES shared_skills (id) ON DELETE CASCADE,
            {file}, PRIMARY KEY (skill_id, path))""",
        "CREATE INDEX shared_skill_files_digest ON shared_skill_files (digest)",
        """CREATE TABLE uploads (source TEXT PRIMARY KEY NOT NULL, content_hash TEXT NOT NULL,
            used BIGINT NOT NULL, updated_at TEXT NOT NULL)""",
        f"""CREATE TABLE upload_files (
            source TEXT NOT NULL REFERENCES uploads (source) ON DELETE CASCADE,
            {file}, PRIMARY KEY (source, path))""",
        "CREATE INDEX upload_files_digest ON upload_files (digest)",
    )


def _m4_tokens(connection: Connection) -> None:
    """Create access tokens."""
    _execute(
        connection,
        """CREATE TABLE tokens (id TEXT PRIMARY KEY NOT NULL, label TEXT NOT NULL,
            digest TEXT NOT NULL, created_at TEXT NOT NULL)""",
        "CREATE UNIQUE INDEX tokens_label ON tokens (label)",
    )


def _m5_event_order(connection: Connection) -> None:
    """Let PostgreSQL number events at the commit instead of at the insert."""
    if not _is_postgres(connection):  # SQLite has only one writer
        return
    _execute(
        connection,
        """CREATE OR REPLACE FUNCTION skillhall_number_event() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN
            PERFORM pg_advisory_xact_lock(7223446120932);
            UPDATE events SET seq = nextval(pg_get_serial_sequence('events', 'seq'))
                WHERE seq = NEW.seq;
            RETURN NULL;
        END $$""",
        """CREATE CONSTRAINT TRIGGER events_number AFTER INSERT ON events
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.seq < 0)
            EXECUTE FUNCTION skillhall_number_event()""",
    )


def _m6_file_times(connection: Connection) -> None:
    """Create the table with the modification times of restored files."""
    _execute(
        connection,
        """CREATE TABLE shared_file_times (
            skill_id TEXT NOT NULL REFERENCES shared_skills (id) ON DELETE CASCADE,
            path TEXT NOT NULL, modified BIGINT NOT NULL, PRIMARY KEY (skill_id, path))""",
    )


def _m7_sign_ins(connection: Connection) -> None:
    """Create token details and sign-ins. Existing tokens keep their permissions."""
    _execute(
        connection,
        """CREATE TABLE token_details (id TEXT PRIMARY KEY NOT NULL, label TEXT NOT NULL,
            owner TEXT NOT NULL, scopes TEXT NOT NULL, created_at TEXT NOT NULL,
            expires_at TEXT, used_at TEXT, revoked_at TEXT)""",
        """INSERT INTO token_details (id, label, owner, scopes, created_at)
            SELECT id, label, 'operator', 'read write review admin', created_at FROM tokens""",
        """CREATE TABLE sign_ins (id TEXT PRIMARY KEY NOT NULL, digest TEXT NOT NULL,
            token_id TEXT NOT NULL, created_at TEXT NOT NULL, used_at TEXT NOT NULL,
            expires_at TEXT NOT NULL, address TEXT NOT NULL, agent TEXT NOT NULL)""",
        "CREATE UNIQUE INDEX sign_ins_digest ON sign_ins (digest)",
        "CREATE INDEX sign_ins_token ON sign_ins (token_id)",
    )


def _m8_audit(connection: Connection) -> None:
    """Create the audit log and its seals, which triggers make append-only."""
    serial = _get_serial_type(connection)
    _execute(
        connection,
        f"""CREATE TABLE audit (id {serial}, at TEXT NOT NULL, actor TEXT NOT NULL,
            token TEXT NOT NULL, via TEXT NOT NULL, address TEXT NOT NULL,
            request_id TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL,
            digest_before TEXT NOT NULL, digest_after TEXT NOT NULL, outcome TEXT NOT NULL,
            detail TEXT NOT NULL)""",
        "CREATE INDEX audit_at ON audit (at)",
        """CREATE TABLE audit_seals (position BIGINT PRIMARY KEY NOT NULL,
            audit_id BIGINT NOT NULL, hash TEXT NOT NULL)""",
        "CREATE UNIQUE INDEX audit_seals_row ON audit_seals (audit_id)",
    )
    if not _is_postgres(connection):
        for table in ("audit", "audit_seals"):
            for change in ("UPDATE", "DELETE"):
                _execute(
                    connection,
                    f"""CREATE TRIGGER {table}_{change.lower()} BEFORE {change} ON {table}
                    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
                )
        return
    _execute(
        connection,
        """CREATE OR REPLACE FUNCTION skillhall_refuse_audit_change() RETURNS trigger
        LANGUAGE plpgsql AS $$ BEGIN
            IF TG_OP <> 'UPDATE' AND current_setting('skillhall.audit_deletion', true) = 'on' THEN
                RETURN OLD;
            END IF;
            RAISE EXCEPTION 'the audit log is append-only';
        END $$""",
        # As for events, rows get their numbers at the commit: a reader never sees a number before
        # all lower ones are committed, so that rows can be sealed in the order of their numbers.
        """CREATE OR REPLACE FUNCTION skillhall_number_audit() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN
            PERFORM pg_advisory_xact_lock(7223446120932);
            UPDATE audit SET id = nextval(pg_get_serial_sequence('audit', 'id'))
                WHERE id = NEW.id;
            RETURN NULL;
        END $$""",
        """CREATE CONSTRAINT TRIGGER audit_number AFTER INSERT ON audit
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.id < 0)
            EXECUTE FUNCTION skillhall_number_audit()""",
        """CREATE TRIGGER audit_update BEFORE UPDATE ON audit FOR EACH ROW WHEN (OLD.id > 0)
            EXECUTE FUNCTION skillhall_refuse_audit_change()""",
        """CREATE TRIGGER audit_seals_update BEFORE UPDATE ON audit_seals FOR EACH ROW
            EXECUTE FUNCTION skillhall_refuse_audit_change()""",
    )
    for table in ("audit", "audit_seals"):
        _execute(
            connection,
            f"""CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} FOR EACH ROW
                EXECUTE FUNCTION skillhall_refuse_audit_change()""",
            f"""CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table}
                EXECUTE FUNCTION skillhall_refuse_audit_change()""",
        )


def _m9_revocations_and_inventories(connection: Connection) -> None:
    """Create revocations, and the inventories that machines report."""
    _execute(
        connection,
        """CREATE TABLE revocations (number BIGINT PRIMARY KEY NOT NULL, digest TEXT NOT NULL,
            skill TEXT NOT NULL, reason TEXT NOT NULL, at TEXT NOT NULL, instead TEXT NOT NULL,
            actor TEXT NOT NULL, revoked BIGINT NOT NULL)""",
        "CREATE INDEX revocations_digest ON revocations (digest, number)",
        """CREATE TABLE inventories (label TEXT PRIMARY KEY NOT NULL, actor TEXT NOT NULL,
            at TEXT NOT NULL)""",
        """CREATE TABLE inventory_items (
            label TEXT NOT NULL REFERENCES inventories (label) ON DELETE CASCADE,
            ordinal BIGINT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
            source TEXT NOT NULL, commit_id TEXT NOT NULL, signer TEXT NOT NULL,
            state TEXT NOT NULL, risk TEXT NOT NULL, PRIMARY KEY (label, ordinal))""",
        "CREATE INDEX inventory_items_digest ON inventory_items (digest)",
    )


def _m10_versions(connection: Connection) -> None:
    """Create versions of skills and their reviews. Existing skills become version 1, approved."""
    version = """FOREIGN KEY (skill_id, number) REFERENCES skill_versions (skill_id, number)"""
    _execute(
        connection,
        """CREATE TABLE skill_versions (skill_id TEXT NOT NULL, number BIGINT NOT NULL,
            digest TEXT NOT NULL, state TEXT NOT NULL, note TEXT NOT NULL, source TEXT NOT NULL,
            commit_id TEXT NOT NULL, signer TEXT NOT NULL, created_by TEXT NOT NULL,
            created_at TEXT NOT NULL, PRIMARY KEY (skill_id, number))""",
        "CREATE INDEX skill_versions_digest ON skill_versions (digest)",
        "CREATE INDEX skill_versions_state ON skill_versions (state)",
        f"""CREATE TABLE version_files (skill_id TEXT NOT NULL, number BIGINT NOT NULL,
            path TEXT NOT NULL, digest TEXT NOT NULL, mode BIGINT NOT NULL,
            PRIMARY KEY (skill_id, number, path), {version},
            FOREIGN KEY (digest) REFERENCES blobs (digest))""",
        "CREATE INDEX version_files_digest ON version_files (digest)",
        f"""CREATE TABLE version_reviews (skill_id TEXT NOT NULL, number BIGINT NOT NULL,
            ordinal BIGINT NOT NULL, decision TEXT NOT NULL, actor TEXT NOT NULL, at TEXT NOT NULL,
            comment TEXT NOT NULL, digest TEXT NOT NULL,
            PRIMARY KEY (skill_id, number, ordinal), {version})""",
        f"""CREATE TABLE current_versions (skill_id TEXT PRIMARY KEY NOT NULL,
            number BIGINT NOT NULL, changed BIGINT NOT NULL, {version})""",
        """CREATE TABLE reviewed_stores (location TEXT PRIMARY KEY NOT NULL,
            since TEXT NOT NULL)""",
    )
    rows = connection.exec_driver_sql(
        """SELECT f.skill_id, f.path, b.size, f.digest FROM shared_skill_files f
            JOIN blobs b ON b.digest = f.digest"""
    )
    files: dict[str, list[tuple[str, int, str]]] = {}
    for skill_id, *file in rows:
        files.setdefault(skill_id, []).append((file[0], file[1], file[2]))
    insert_version = text(
        """INSERT INTO skill_versions SELECT id, 1, :digest, 'approved', '', '', '', '', '',
            updated_at FROM shared_skills WHERE id = :id"""
    )
    for skill_id, listed in files.items():
        digest = compute_digest(listed)
        connection.execute(insert_version, {"id": skill_id, "digest": digest})
    _execute(
        connection,
        """INSERT INTO version_files SELECT skill_id, 1, path, digest, mode
            FROM shared_skill_files""",
        """INSERT INTO current_versions SELECT id, 1, version FROM shared_skills
            WHERE id IN (SELECT skill_id FROM skill_versions)""",
    )


def _m11_users(connection: Connection) -> None:
    """Create users, their links, and which tokens they own."""
    _execute(
        connection,
        """CREATE TABLE users (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL,
            display TEXT NOT NULL, role TEXT NOT NULL, issuer TEXT NOT NULL,
            subject TEXT NOT NULL, password TEXT NOT NULL, disabled_at TEXT,
            created_at TEXT NOT NULL, seen_at TEXT)""",
        "CREATE UNIQUE INDEX users_name ON users (name)",
        "CREATE UNIQUE INDEX users_identity ON users (issuer, subject) WHERE issuer != ''",
        """CREATE TABLE user_links (digest TEXT PRIMARY KEY NOT NULL, user_id TEXT NOT NULL,
            created_at TEXT NOT NULL, expires_at TEXT NOT NULL)""",
        """CREATE TABLE token_owners (token_id TEXT PRIMARY KEY NOT NULL,
            user_id TEXT NOT NULL)""",
        "CREATE INDEX token_owners_user ON token_owners (user_id)",
    )


def _m12_deleted_skills(connection: Connection) -> None:
    """Create the bin, and the store of skills in folders whose versions are recorded."""
    _execute(
        connection,
        """CREATE TABLE recorded_stores (location TEXT PRIMARY KEY NOT NULL,
            since TEXT NOT NULL)""",
        """CREATE TABLE deleted_skills (skill_id TEXT PRIMARY KEY NOT NULL,
            number BIGINT NOT NULL, actor TEXT NOT NULL, at TEXT NOT NULL,
            FOREIGN KEY (skill_id, number) REFERENCES skill_versions (skill_id, number))""",
        "CREATE INDEX deleted_skills_at ON deleted_skills (at)",
    )


def _m13_settings(connection: Connection) -> None:
    """Create the settings that administrators change on a running server."""
    _execute(
        connection,
        """CREATE TABLE server_settings (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL,
            actor TEXT NOT NULL, at TEXT NOT NULL)""",
    )


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _m1_sessions,
    _m2_templates_and_snapshots,
    _m3_shared_files,
    _m4_tokens,
    _m5_event_order,
    _m6_file_times,
    _m7_sign_ins,
    _m8_audit,
    _m9_revocations_and_inventories,
    _m10_versions,
    _m11_users,
    _m12_deleted_skills,
    _m13_settings,
)
LATEST_VERSION = len(MIGRATIONS)


def current_version(connection: Connection) -> int:
    """Return the schema version: the number of migrations that were applied."""
    if not inspect(connection).has_table(migrations.name):
        return 0
    version = connection.exec_driver_sql("SELECT MAX(version) FROM schema_migrations").scalar()
    return int(version or 0)


def lock_schema(connection: Connection) -> None:
    """Block other migrations until the transaction ends."""
    if _is_postgres(connection):  # SQLite has only one writer
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")


def migrate(connection: Connection, at: str, target_version: int = LATEST_VERSION) -> None:
    """Migrate to a version in the open transaction. Raises: DatabaseNewer."""
    lock_schema(connection)
    version = current_version(connection)
    if version > LATEST_VERSION:
        raise DatabaseNewer(version, LATEST_VERSION)
    if version == 0:
        _execute(
            connection,
            """CREATE TABLE IF NOT EXISTS schema_migrations (
                version INTEGER PRIMARY KEY NOT NULL, applied_at TEXT NOT NULL)""",
        )
    for number, step in enumerate(MIGRATIONS[version:target_version], start=version + 1):
        step(connection)
        connection.execute(migrations.insert(), {"version": number, "applied_at": at})


def _execute(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)


def _is_postgres(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"


def _get_position_type(connection: Connection) -> str:
    return 'TEXT COLLATE "C"' if _is_postgres(connection) else "TEXT"


def _get_serial_type(connection: Connection) -> str:
    if _is_postgres(connection):
        return "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
    return "INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL"
