"""Contract of both databases: migrations, backups, uploads and events."""

import gzip
import hashlib
import json
import queue
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from skillhall._internal.policy.access.access_scopes import DEFAULT_SCOPES
from skillhall._internal.policy.access.actor import SYSTEM_ACTOR, Actor, Via
from skillhall._internal.policy.trust.revocations import Revocation
from skillhall._internal.policy.trust.version_states import ReviewMode, VersionVerb
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.storage.accounts.user_rows import SqlUserTable
from skillhall._internal.storage.records import Event, SignIn, StoredToken, StoredUser
from skillhall._internal.storage.sql.audit_rows import add_audit_row
from skillhall._internal.storage.sql.backup import LEFT_OUT_TABLES, backup_tables, has_rows
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.events.event_feed import EventFeed
from skillhall._internal.storage.sql.events.event_signal import open_event_signal
from skillhall._internal.storage.sql.migrations import (
    LATEST_VERSION,
    current_version,
    migrate,
)
from skillhall._internal.storage.sql.revocation_rows import add_revocation
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall._internal.storage.sql.tables import (
    METADATA,
    audit_seals,
    blobs,
    events,
    inventories,
    inventory_items,
    migrations,
    server_settings,
    shared_file_times,
    shared_skill_files,
    shared_skills,
)
from skillhall._internal.storage.sql.token_rows import SqlSignInTable, SqlTokenTable
from skillhall._internal.storage.sql.upload_rows import SqlUploadTable
from skillhall._internal.storage.sql.version_rows import (
    SqlVersionTable,
    VersionOrigin,
    VersionWriter,
)
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall.errors import BackupRejected, DatabaseNewer
from tests.support.actors import ACTOR
from tests.support.backups import Lines, dump_database, forge, load_database
from tests.support.databases import TIMESTAMP
from tests.support.servers import DEADLINE
from tests.support.workspaces import import_upload, list_texts, make_workspace, skill_md


def describe_tables(database: Database) -> dict[str, object]:
    """Describe every table as the database reports it."""

    def work(connection: Connection) -> dict[str, object]:
        inspector = inspect(connection)
        return {
            name: {
                # In no order: migrations add columns at the end.
                "columns": sorted(inspector.get_columns(name), key=lambda c: c["name"]),
                "collations": read_collations(connection, name),
                "indexes": sorted(inspector.get_indexes(name), key=lambda i: str(i["name"])),
                "key": inspector.get_pk_constraint(name),
                "references": read_references(connection, name),
                "checks": inspector.get_check_constraints(name),
            }
            for name in inspector.get_table_names()
        }

    # Types and conditions are objects without equality; their text is precise.
    return {name: json.dumps(table, default=str) for name, table in database.read(work).items()}


def read_references(connection: Connection, table: str) -> list[str]:
    """Return the foreign keys of a table, with what happens to it on deletion."""
    if connection.dialect.name == "postgresql":
        return sorted(map(repr, inspect(connection).get_foreign_keys(table)))
    # The inspector does not see the options of a reference in a column's definition.
    return [str(row) for row in connection.execute(text(f"PRAGMA foreign_key_list({table})"))]


def read_collations(connection: Connection, table: str) -> list[str]:
    """Return the collations of a table's columns, which the inspector leaves out."""
    if connection.dialect.name == "sqlite":
        return []
    query = text(
        "SELECT column_name, collation_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND table_name = :name ORDER BY 1"
    )
    return [str(row) for row in connection.execute(query, {"name": table})]


@pytest.mark.parametrize("version", range(LATEST_VERSION))
def test_every_earlier_version_migrates_to_the_latest(database: Database, version: int) -> None:
    newest = describe_tables(database)
    database.write(METADATA.drop_all)
    if version:
        database.write(lambda connection: migrate(connection, TIMESTAMP, version))
        assert database.read(current_version) == version
    database.write(lambda connection: migrate(connection, TIMESTAMP))
    assert database.read(current_version) == LATEST_VERSION
    assert describe_tables(database) == newest


def test_migrations_create_the_declared_tables(database: Database) -> None:
    migrated = describe_tables(database)
    database.write(METADATA.drop_all)
    database.write(METADATA.create_all)
    assert describe_tables(database) == migrated
    database.write(METADATA.drop_all)
    database.write(lambda connection: migrate(connection, TIMESTAMP))


def test_table_of_another_program_is_not_taken_for_ours(database: Database) -> None:
    database.write(METADATA.drop_all)
    database.write(lambda connection: connection.exec_driver_sql("CREATE TABLE tokens (x TEXT)"))
    with pytest.raises(DBAPIError, match="tokens"):
        database.write(lambda connection: migrate(connection, TIMESTAMP))
    assert database.read(lambda connection: inspect(connection).get_table_names()) == ["tokens"]
    database.write(METADATA.drop_all)
    database.write(lambda connection: migrate(connection, TIMESTAMP))


def test_migration_preserves_data(database: Database) -> None:
    database.write(METADATA.drop_all)
    database.write(lambda connection: migrate(connection, TIMESTAMP, 1))
    row = "INSERT INTO sessions VALUES ('s1', 'old', NULL, NULL, NULL, 5, 1, 1, 'c', 'u')"
    database.write(lambda connection: connection.exec_driver_sql(row))
    database.write(lambda connection: migrate(connection, TIMESTAMP))
    workspace = make_workspace(SqlWorkspaceStore(database, actor=ACTOR))
    assert workspace.sessions.find("s1").budgets.total == 5
    workspace.snapshots.save("s1", "works")


def test_tokens_of_an_older_version_belong_to_the_operator_and_allow_what_they_did(
    database: Database,
) -> None:
    database.write(METADATA.drop_all)
    database.write(lambda connection: migrate(connection, TIMESTAMP, 6))
    row = "INSERT INTO tokens VALUES ('1', 'laptop', 'digest', 'then')"
    database.write(lambda connection: connection.exec_driver_sql(row))
    database.write(lambda connection: migrate(connection, TIMESTAMP))
    [token] = SqlTokenTable(database).list()
    assert token == StoredToken("1", "laptop", "digest", "then", "operator", DEFAULT_SCOPES)
    assert SqlTokenTable(database).revoke("laptop", TIMESTAMP, None, ACTOR)


def test_skills_of_an_older_version_become_version_1_approved(database: Database) -> None:
    database.write(METADATA.drop_all)
    database.write(lambda connection: migrate(connection, TIMESTAMP, 6))
    file = SkillFile(RelativePath.parse("SKILL.md"), 4, executable=False, read=lambda: b"text")
    sha256 = file.digest().removeprefix("sha256:")
    skill = {"id": "pdf", "origin": "imported", "version": 7, "updated": "then"}
    stored = {"skill_id": "pdf", "path": "SKILL.md", "digest": sha256, "mode": 0o644}

    def insert_skill(connection: Connection) -> None:
        connection.execute(shared_skills.insert(), skill)
        connection.execute(blobs.insert(), {"digest": sha256, "size": 4, "data": b"text"})
        connection.execute(shared_skill_files.insert(), stored)

    database.write(insert_skill)
    database.write(lambda connection: migrate(connection, TIMESTAMP))
    [version] = SqlVersionTable(database).read(lambda reader: reader.list_versions("pdf"))
    digest = Bundle("pdf", {"SKILL.md": file}).digest()
    assert (version.number, version.state, version.digest) == (1, "approved", digest)
    current = SqlVersionTable(database).read(lambda reader: reader.list_current())
    assert current == {"pdf": (1, 7)}
    contents = SqlVersionTable(database).read(lambda reader: reader.read_contents("pdf", 1))
    assert contents == {"SKILL.md": (b"text", 0o644)}


def test_newer_database_is_rejected_and_unchanged(database: Database) -> None:
    newer = {"version": LATEST_VERSION + 1, "applied_at": TIMESTAMP}
    database.write(lambda connection: connection.execute(migrations.insert(), newer))
    before = describe_tables(database)
    with pytest.raises(DatabaseNewer, match=f"its version is {LATEST_VERSION + 1}"):
        database.write(lambda connection: migrate(connection, TIMESTAMP))
    assert describe_tables(database) == before
    database.write(METADATA.drop_all)
    database.write(lambda connection: migrate(connection, TIMESTAMP))


def fill_tables(database: Database) -> str:
    """Put a row into every table of a backup; return the session's id."""
    workspace = make_workspace(SqlWorkspaceStore(database, actor=ACTOR))
    session = workspace.sessions.create("Größe").id
    workspace.blocks.add(session, "note", "a 🙂\r\n\x1b")
    import_upload(workspace.importer, session, skill_md("pdf", "body"), "pdf.md")
    workspace.templates.save(session, "T")
    workspace.snapshots.save(session, "s")
    skill = {"SKILL.md": (b"\0\xff", 0o644)}
    SqlSharedSkillTable(database).write(
        lambda write: write.put("pdf", skill, "o"), TIMESTAMP, actor=ACTOR
    )

    def review(writer: VersionWriter) -> None:
        version = writer.find("pdf", 1)
        assert version is not None
        writer.add_review(version, VersionVerb.USE, "dev1", "as before")
        writer.set_reviewed_store("database", is_reviewed=True)
        writer.set_recorded_store("/srv/skills")
        deleted = writer.record_files(
            "old", {"SKILL.md": (b"y", 0o644)}, VersionOrigin(), ReviewMode.ONE
        )
        writer.move_to_bin("old", "dev1", deleted.digest)

    SqlVersionTable(database).write(review, TIMESTAMP)
    time = {"skill_id": "pdf", "path": "SKILL.md", "modified": 7}
    database.write(lambda connection: connection.execute(shared_file_times.insert(), time))
    SqlUploadTable(database).put("up", {"a/b": (b"x", 0o755)}, "h", TIMESTAMP, 5, actor=ACTOR)
    SqlTokenTable(database).add(StoredToken("1", "laptop", "digest", TIMESTAMP), actor=ACTOR)
    actor = Actor("dev1", "ci", Via.REST, "::1", "r1")
    database.write(lambda connection: add_audit_row(connection, actor, "a.b", "c", at=TIMESTAMP))
    SqlUserTable(database).add(StoredUser("1", "dev1", "", "reader", TIMESTAMP), actor, None)
    SqlTokenTable(database).add(StoredToken("2", "ci", "other", TIMESTAMP, "dev1"), actor=ACTOR)
    seal = {"position": 1, "audit_id": 1, "hash": "h"}
    database.write(lambda connection: connection.execute(audit_seals.insert(), seal))
    revocation = Revocation("sha256:" + "0" * 64, "pdf", "steals keys", TIMESTAMP, "pdf@4")
    database.write(lambda connection: add_revocation(connection, SYSTEM_ACTOR, revocation))
    inventory = {"label": "laptop", "by": "dev1", "at": TIMESTAMP}
    item = dict.fromkeys(("name", "digest", "source", "commit", "signer", "state", "risk"), "x")
    database.write(lambda connection: connection.execute(inventories.insert(), inventory))
    database.write(
        lambda connection: connection.execute(
            inventory_items.insert(), {"label": "laptop", "ordinal": 0, **item}
        )
    )
    setting = {"name": "language", "value": "zh", "by": "dev1", "at": TIMESTAMP}
    database.write(lambda connection: connection.execute(server_settings.insert(), setting))
    return session


def read_rows(database: Database) -> dict[str, list[object]]:
    def work(connection: Connection) -> dict[str, list[object]]:
        rows_by_table: dict[str, list[object]] = {}
        for table in METADATA.sorted_tables:
            if table is not events and table.name not in LEFT_OUT_TABLES:
                rows_by_table[table.name] = sorted(
                    map(tuple, connection.execute(table.select())), key=repr
                )
        return rows_by_table

    return database.read(work)


def test_every_table_is_in_the_backup_or_left_out_for_a_reason() -> None:
    assert {table.name for table in backup_tables()} | LEFT_OUT_TABLES.keys() == {*METADATA.tables}
    assert all(LEFT_OUT_TABLES.values())


def test_backup_can_be_restored_to_the_other_database(database: Database, tmp_path: Path) -> None:
    session = fill_tables(database)
    data = dump_database(database)
    assert all(read_rows(database).values())
    other = Database(build_sqlite_url(str(tmp_path / "other.db")), TIMESTAMP)
    try:
        assert not other.read(has_rows)
        assert load_database(other, data).rows > len(METADATA.tables)
        assert read_rows(other) == read_rows(database)
        other_workspace = make_workspace(SqlWorkspaceStore(other, actor=ACTOR), "n")
        other_workspace.blocks.add(session, "note", "more")
        assert other.read(has_rows)
        load_database(database, dump_database(other))
        assert read_rows(database) == read_rows(other)
        assert (
            list_texts(make_workspace(SqlWorkspaceStore(database, actor=ACTOR)), session)[-1]
            == "more"
        )
    finally:
        other.close()


def test_sign_ins_are_not_in_a_backup_and_survive_a_restore(database: Database) -> None:
    fill_tables(database)
    sign_in = SignIn("a", "cookie-digest", "1", TIMESTAMP, TIMESTAMP, TIMESTAMP, "::1", "Fox")
    SqlSignInTable(database).add(sign_in, actor=ACTOR)
    data = dump_database(database)
    assert b"cookie-digest" not in gzip.decompress(data)
    load_database(database, data)
    assert SqlSignInTable(database).list() == [sign_in]


def test_restore_publishes_an_event_with_a_new_number(
    database: Database,
) -> None:
    data = dump_database(database)
    fill_tables(database)
    store = SqlWorkspaceStore(database, actor=ACTOR)
    last = store.read(lambda read: read.event_range())[1]
    load_database(database, data)
    [event] = store.read(lambda read: read.events(last, 10))
    assert event.kind == "database-restored"
    make_workspace(store).sessions.create("goes on")


def test_events_keep_their_numbers_in_a_backup(database: Database) -> None:
    fill_tables(database)
    store = SqlWorkspaceStore(database, actor=ACTOR)
    before = store.read(lambda read: read.events(0, 100))
    load_database(database, dump_database(database))
    assert [*store.read(lambda read: read.events(0, 100))][:-1] == [*before]


VERSION = b'"version":%d' % LATEST_VERSION


def repack(data: bytes, change: Callable[[list[bytes]], list[bytes]]) -> bytes:
    lines = gzip.decompress(data).splitlines(keepends=True)
    return gzip.compress(b"".join(change(lines)), mtime=0)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:0],
        lambda data: data.hex().encode(),
        lambda data: data[: len(data) // 2],
        lambda data: repack(data, lambda lines: lines[:-1]),
        lambda data: repack(data, lambda lines: [*lines[:3], *lines[4:]]),
        lambda data: repack(data, lambda lines: [b'{"format":"other"}\n', *lines[1:]]),
        lambda data: repack(
            data, lambda lines: [lines[0].replace(VERSION, b'"version":99'), *lines[1:]]
        ),
    ],
)
def test_damaged_backup_is_rejected(database: Database, damage: Callable[[bytes], bytes]) -> None:
    fill_tables(database)
    before = read_rows(database)
    data = dump_database(database)
    with pytest.raises(BackupRejected):
        load_database(database, damage(data))
    assert read_rows(database) == before


def test_backup_with_unknown_tables_is_rejected(database: Database) -> None:
    fill_tables(database)
    before = read_rows(database)
    head = json.dumps(
        {"format": "skillhall.backup/1", "version": LATEST_VERSION, "at": TIMESTAMP}
    ).encode()
    lines = [head + b"\n", b'{"table":"schema_migrations","columns":["version"]}\n', b"[9]\n"]
    check = hashlib.sha256(b"".join(lines)).hexdigest()
    lines.append(json.dumps({"rows": 1, "sha256": check}).encode() + b"\n")
    with pytest.raises(BackupRejected):
        load_database(database, gzip.compress(b"".join(lines)))
    assert read_rows(database) == before


def try_restore(database: Database, data: bytes) -> str:
    """Return why a backup is rejected, or ""."""
    try:
        load_database(database, data)
    except BackupRejected as error:
        return str(error)
    return ""


def find_first_row(lines: Lines, table: str) -> tuple[list[str], int]:
    """Return the columns of a table, and the index of its first row."""
    for number, line in enumerate(lines):
        if isinstance(line, dict) and line.get("table") == table:
            return line["columns"], number + 1
    raise AssertionError(table)


def set_value(table: str, column: str, value: object) -> Callable[[Lines], object]:
    """Return a change of one value in a table's first row."""

    def change(lines: Lines) -> None:
        columns, number = find_first_row(lines, table)
        lines[number][columns.index(column)] = value

    return change


def repeat_row(lines: Lines) -> None:
    _, number = find_first_row(lines, "sessions")
    lines.insert(number, lines[number])


def cut_row(lines: Lines) -> None:
    _, number = find_first_row(lines, "sessions")
    lines[number] = lines[number][:-1]


def delete_sessions(lines: Lines) -> None:
    _, number = find_first_row(lines, "sessions")
    while isinstance(lines[number], list):
        del lines[number]


FORGED = {
    "text for a number": set_value("sessions", "version", "one"),
    "a number for text": set_value("sessions", "name", 7),
    "a fraction": set_value("sessions", "version", 1.5),
    "a huge number": set_value("sessions", "version", 2**70),
    "true": set_value("sessions", "version", value=True),
    "nothing where something must be": set_value("sessions", "name", None),
    "a NUL character": set_value("sessions", "name", "a\0b"),
    "half a character": set_value("sessions", "name", "\ud800"),
    "a list": set_value("sessions", "name", []),
    "wrong base64": set_value("blobs", "data", {"base64": "%"}),
    "no base64": set_value("blobs", "data", {"other": 1}),
    "bytes with another digest": set_value("blobs", "data", {"base64": "AAAA"}),
    "a path that leads out": set_value("shared_skill_files", "path", "../../x"),
    "a skill that leads out": set_value("shared_skills", "id", "../x"),
    "an unknown zone": set_value("blocks", "zone", "NOWHERE"),
    "a mode that is not a permission": set_value("shared_skill_files", "mode", 0o4755),
    "an event that is no JSON": set_value("events", "data", "{"),
    "audit details that are no JSON": set_value("audit", "detail", "[]"),
    "an audit row without a number": set_value("audit", "id", 0),
    "a row twice": repeat_row,
    "a short row": cut_row,
    "blocks of no session": delete_sessions,
    "a line that is a number": lambda lines: lines.append(5),
    "a line that is nothing": lambda lines: lines.append(None),
    "columns that are no list": lambda lines: lines.append({"table": "tokens", "columns": 5}),
    "a table that is no text": lambda lines: lines.append({"table": [], "columns": []}),
    "columns of another table": lambda lines: lines.append({"table": "tokens", "columns": ["x"]}),
    "only its head": lambda lines: lines.__delitem__(slice(0, len(lines))),
    "a table less": lambda lines: lines.pop(find_first_row(lines, "upload_files")[1] - 1),
    "no table at all": lambda lines: lines.__delitem__(slice(1, len(lines))),
    "a table twice": lambda lines: lines.append(lines[find_first_row(lines, "tokens")[1] - 1]),
    "another format": lambda lines: lines[0].update(format="other/1"),
    "another database": lambda lines: lines[0].update(database="mysql"),
    "a version that is text": lambda lines: lines[0].update(version="1"),
    "an older version": lambda lines: lines[0].update(version=1),
}


def test_forged_backup_is_rejected(database: Database) -> None:
    fill_tables(database)
    before = read_rows(database)
    data = dump_database(database)
    errors = {name: try_restore(database, forge(data, change)) for name, change in FORGED.items()}
    accepted = {name for name, text in errors.items() if "the backup cannot be used: " not in text}
    assert accepted == set()
    assert read_rows(database) == before
    load_database(database, forge(data, len))
    assert read_rows(database) == before


def test_backup_with_flipped_bytes_is_rejected(
    database: Database,
) -> None:
    fill_tables(database)
    before = read_rows(database)
    data = dump_database(database)
    damaged = [data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :] for at in (12, 40, 200)]
    for backup in (*damaged, gzip.compress(gzip.decompress(data) + b"[1]\n")):
        with pytest.raises(BackupRejected):
            load_database(database, backup)
    assert read_rows(database) == before


def test_least_recently_used_uploads_are_evicted(database: Database) -> None:
    uploads = SqlUploadTable(database)
    for name in ("a", "b", "c"):
        assert uploads.put(
            name,
            {"f": (name.encode(), 0o644)},
            f"hash-{name}",
            TIMESTAMP,
            max_uploads=3,
            actor=ACTOR,
        )
    assert not uploads.put("b", {}, "hash-b", TIMESTAMP, max_uploads=3, actor=ACTOR)
    assert uploads.find("a") is not None
    uploads.put("d", {"f": (b"d", 0o644)}, "", TIMESTAMP, max_uploads=3, actor=ACTOR)
    assert [item.source for item in uploads.list()] == ["d", "a", "b"]
    assert uploads.find("c") is None
    assert len(read_rows(database)["blobs"]) == 3
    assert uploads.put("d", {"f": (b"d2", 0o644)}, "", TIMESTAMP, max_uploads=3, actor=ACTOR)


def test_events_are_delivered_in_order_and_once(database: Database) -> None:
    store = SqlWorkspaceStore(database, actor=ACTOR)
    workspace = make_workspace(store)
    workspace.sessions.create("before")
    received: queue.Queue[Event] = queue.Queue()

    def receive(events: Sequence[Event]) -> None:
        for event in events:
            received.put(event)

    feed = EventFeed(store, open_event_signal(database))
    try:
        stop = feed.subscribe(receive)
        session = workspace.sessions.create("after").id
        workspace.blocks.add(session, "note", "a")
        kinds = [received.get(timeout=DEADLINE).kind for _ in range(2)]
        assert kinds == ["session-created", "block-added"]
        stop()
        workspace.blocks.add(session, "note", "b")
        batches: queue.Queue[Sequence[Event]] = queue.Queue()
        feed.subscribe(batches.put)
        workspace.sessions.create("last")
        while batches.get(timeout=DEADLINE)[-1].kind != "session-created":
            pass
        assert received.empty()
    finally:
        feed.close()
