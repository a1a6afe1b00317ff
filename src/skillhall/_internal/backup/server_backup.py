"""Makes and restores backups of the database and the folders of a server."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.backup.backup_summary import (
    DATA,
    RECORD_KINDS,
    SKILLS,
    SYSTEM_SKILLS,
    UPLOADS,
    Difference,
    summarize_backup,
    summarize_server,
)
from skillhall._internal.backup.store_conversion import (
    CONVERTED_TABLES,
    FolderToTables,
    delete_converted_rows,
    split_file,
    stage_skills,
    stage_uploads,
)
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.folder_walk_rules import STAGING_PREFIX
from skillhall._internal.prompt_server.followed_file import FILE as FOLLOWED_FILE
from skillhall._internal.settings import REVOCATIONS_FILE, TRUST_FILE
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.shipped_skills import read_shipped_skills
from skillhall._internal.skill_store.store import FOLDER_BY_SOURCE
from skillhall._internal.skill_store.undoable_changes import get_history_scope
from skillhall._internal.sources.mcp.servers_file import SERVERS_FILE
from skillhall._internal.storage.audit.audit_sealer import seal_on_close
from skillhall._internal.storage.backup_folders import (
    FolderPart,
    RestoreJournal,
    StagedPart,
    lock_parts,
    read_part,
    sync_disks,
)
from skillhall._internal.storage.backup_format import (
    FORMAT_1,
    FORMAT_2,
    BackupHeader,
    BackupReader,
    BackupWriter,
    FileChunk,
)
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.history import move_change, scope_folder_name
from skillhall._internal.storage.revocation_store import RevocationStore
from skillhall._internal.storage.sql.backup import (
    KeepAlive,
    RestorePlan,
    allow_long_transaction,
    check_rows,
    dump_tables,
    finish_restore,
    has_rows,
    replace_rows,
)
from skillhall._internal.storage.sql.migrations import current_version
from skillhall._internal.storage.sql.tables import blobs, recorded_stores
from skillhall._internal.storage.trust_store import TrustStore
from skillhall._internal.wiring.database import get_mirror_folder, open_database, utc_now
from skillhall.errors import BackupRejected, ConfigInvalid, Conflict, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO, TypeAlias

    from sqlalchemy import Connection

    from skillhall._internal.backup.backup_summary import ServerSummary
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.settings import Settings
    from skillhall._internal.storage.backup_format import BackupEntry, BackupTotals
    from skillhall._internal.storage.sql.engine import Database

    # Called with a step, its progress and the total, which is 0 if it is unknown.
    ReportProgress: TypeAlias = Callable[[str, int, int], None]

HISTORY, CONTENTS, USAGE, SETTINGS_COPIES = "history", "contents", "usage", "settings-copies"
# Folders that a server with PostgreSQL does not serve.
UNSHARED_SKILLS, UNSHARED_UPLOADS = "unshared-skills", "unshared-uploads"
STORE_HISTORY = "store"  # instead of a name that depends on the path of the skill store
# A restore does not remove what belongs to other projects on this machine.
MERGED_PARTS = frozenset({HISTORY, USAGE, SETTINGS_COPIES})
_REPLACED_PARTS = (SKILLS, UNSHARED_SKILLS, SYSTEM_SKILLS, DATA, UPLOADS, UNSHARED_UPLOADS)
_PART_NAMES = frozenset({*_REPLACED_PARTS, *MERGED_PARTS, CONTENTS})
# A restore adds to these files in the data folder: a decision or revocation on this machine stays.
_MERGED_FILES: dict[str, type[TrustStore | RevocationStore]] = {
    TRUST_FILE: TrustStore,
    REVOCATIONS_FILE: RevocationStore,
}
_DATA_FILES = frozenset({FOLLOWED_FILE, SERVERS_FILE, *_MERGED_FILES})
_MERGED_ENTRIES = {DATA: frozenset(_MERGED_FILES)}  # by part
LEFT_OUT = (
    "clones and caches of repositories, and their skills: fetched again when needed",
    "the search index and the head cache: computed again",
    "environment variables: settings, and secrets such as SKILLHALL_AUTH_TOKEN",
    "pending imports: only in memory",
    "policy files: part of the configuration of a machine, a user or a project",
    "projects: skills that 'skillhall add' installed outside of the run directory, and lock files",
)
_FOLLOWING_NOTE = (
    "{count} followed repositories: not served, because servers that share a database "
    "cannot follow repositories"
)
_FORMAT_1_NOTE = "a backup of an earlier version: it contains only the database"
_UNSHARED_NOTE = "{name}: not restored, because the server that was backed up did not serve it"
_MAX_COLLECTED_BYTES = 64 * 1024 * 1024  # of a stored content, or a change in the history
_PRIVATE = 0o600  # the mode of merged files
_SPARE_BYTES = 16 * 1024 * 1024  # of disk space


class BackupReport(NamedTuple):
    """Contents of a backup, and the data that it leaves out."""

    totals: BackupTotals
    version: int  # of the database schema
    size: int  # of the file, in bytes
    left_out: tuple[str, ...]


class RestoreReport(NamedTuple):
    """Changes that a restore made, or would make."""

    totals: BackupTotals
    version: int  # of the database schema
    at: str  # when the backup was made
    changes: dict[str, Difference]  # by kind
    to_fetch: tuple[str, ...]  # repositories that are not cached here
    notes: tuple[str, ...]  # about data that is not restored, or not served as before
    left_out: tuple[str, ...]


class _Server(NamedTuple):
    """Locations of a server's data."""

    parts: tuple[FolderPart, ...]
    contents: FolderPart
    history_scope: str
    is_postgres: bool


def make_backup(
    settings: Settings,
    path: str,
    *,
    overwrite: bool = False,
    progress: ReportProgress | None = None,
) -> BackupReport:
    """Back up everything that cannot be fetched again, as of one moment, to a file.

    Raises: Conflict if the file exists and `overwrite` is not set, ConfigInvalid,
    DatabaseUnavailable, OSError.
    """
    target = Path(path).absolute()
    for store in _MERGED_FILES.values():
        store(settings.data_directory).read()  # a restore would reject a damaged file
    with closing(open_database(settings)) as database, WritableFolder(str(target.parent)) as folder:
        if not overwrite and folder.entry_kind(target.name) is not None:
            raise Conflict(target.name, "use --overwrite, or choose another name")
        with folder.staging_name() as temporary:
            with folder.open_new_file(temporary) as stream:
                totals, version = _write_backup(settings, database, stream, progress)
                stream.flush()
                os.fsync(stream.fileno())
                size = stream.tell()
            folder.rename(temporary, target.name)
        folder.sync()
    return BackupReport(totals, version, size, LEFT_OUT)


def _write_backup(
    settings: Settings, database: Database, stream: BinaryIO, progress: ReportProgress | None
) -> tuple[BackupTotals, int]:
    server = _find_server(settings, database)
    kind = "postgresql" if server.is_postgres else "sqlite"
    skipped: list[str] = []

    def work(connection: Connection) -> tuple[BackupTotals, int]:
        # A transaction may be retried: start again.
        stream.seek(0)
        stream.truncate()
        skipped.clear()
        allow_long_transaction(connection)
        version = current_version(connection)  # the first query: the snapshot is of this moment
        writer = BackupWriter(stream, BackupHeader(FORMAT_2, version, utc_now(), kind, LEFT_OUT))
        chunks = chain(_read_files(server, skipped), read_part(server.contents, skipped))
        keep_alive = KeepAlive(connection)
        for number, chunk in enumerate(chunks):
            keep_alive.send()
            writer.write_chunk(chunk)
            if progress is not None and number % 100 == 0:
                progress("files", number, 0)
        locks.close()  # writers may go on; the snapshot of the database does not change
        dump_tables(connection, writer)
        return writer.finish(skipped), version

    with ExitStack() as locks:
        locks.enter_context(lock_parts(server.parts))
        return database.read(work)


def _read_files(server: _Server, skipped: list[str]) -> Iterator[FileChunk]:
    for part in server.parts:
        for chunk in read_part(part, skipped):
            yield _rename_history(chunk, scope_folder_name(server.history_scope), STORE_HISTORY)


def _rename_history(chunk: FileChunk, old: str, new: str) -> FileChunk:
    """Rename the history folder `old` in a chunk's path; other paths stay the same."""
    if chunk.part != HISTORY or chunk.path.parts[0] != old:
        return chunk
    path = "/".join((new, *chunk.path.parts[1:]))
    return chunk._replace(path=chunk.path.parse(path))


def _find_server(settings: Settings, database: Database) -> _Server:
    run_directory, data = settings.working_directory, settings.data_directory
    skills, uploads = SKILLS, UPLOADS
    location = FolderStore(run_directory).location
    if database.is_postgres:
        skills, uploads = UNSHARED_SKILLS, UNSHARED_UPLOADS
        location = get_mirror_folder(settings, database)
    folders = {
        source: os.path.join(run_directory, *path.split("/"))  # noqa: PTH118
        for source, path in FOLDER_BY_SOURCE.items()
    }
    parts = (
        FolderPart(skills, folders["user"], mode=0o777),
        FolderPart(SYSTEM_SKILLS, folders["system"], mode=0o777),
        FolderPart(DATA, data, _DATA_FILES),
        FolderPart(uploads, os.path.join(data, "uploads")),  # noqa: PTH118
        FolderPart(HISTORY, os.path.join(data, "history")),  # noqa: PTH118
        FolderPart(USAGE, os.path.join(data, "usage")),  # noqa: PTH118
        FolderPart(SETTINGS_COPIES, os.path.join(data, "backups")),  # noqa: PTH118
    )
    contents = FolderPart(CONTENTS, os.path.join(data, "contents"))  # noqa: PTH118
    return _Server(parts, contents, get_history_scope(location), database.is_postgres)


def restore_backup(  # noqa: PLR0913 - the options, and what an audit log needs
    settings: Settings,
    path: str,
    *,
    actor: Actor,
    overwrite: bool = False,
    dry_run: bool = False,
    progress: ReportProgress | None = None,
) -> RestoreReport:
    """Check a backup completely, then replace all data of the server, or none.

    With `dry_run`, nothing is changed. Raises: BackupRejected, Conflict if data would be lost and
    `overwrite` is not set, ConfigInvalid, DatabaseUnavailable, DatabaseFull, OSError.
    """
    with open(path, "rb") as stream, ExitStack() as stack:  # noqa: PTH123
        size = os.fstat(stream.fileno()).st_size

        def report_check(done: int) -> None:
            if progress is not None:
                progress("check", done, size)

        def report_restore(done: int) -> None:
            if progress is not None:
                progress("restore", done, size)

        checked = BackupReader(stream, report_check)
        after, totals = _check_backup(checked)
        database = open_database(settings)
        stack.callback(seal_on_close(database))
        restore = _Restore(settings, database, checked.header, after)
        if not dry_run:
            stack.enter_context(restore.lock())
        before = restore.summarize_present()
        report = restore.compare(before, totals)
        if not dry_run:
            if not overwrite and restore.would_lose(before):
                hint = "use --overwrite to replace its data; --dry-run shows what would change"
                raise Conflict("data on this server", hint)
            restore.run(BackupReader(stream, report_restore), totals, before, actor)
        return report


def _check_backup(reader: BackupReader) -> tuple[ServerSummary, BackupTotals]:
    try:
        return summarize_backup(map(_check_file, check_rows(reader.header, reader.entries())))
    except ConfigInvalid as error:
        raise BackupRejected(f"its file {error.path!r} cannot be read: {error.problem}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise BackupRejected("it contains a file that cannot be read") from None


def _check_file(entry: BackupEntry) -> BackupEntry:
    """Check that a restore may write a file. Raises: BackupRejected."""
    if isinstance(entry, FileChunk):
        name = entry.path.parts[0]
        is_allowed = entry.part in _PART_NAMES and not name.startswith(STAGING_PREFIX)
        if not is_allowed or (entry.part == DATA and entry.path.text not in _DATA_FILES):
            raise BackupRejected(f"it contains an unknown file: {entry.part}/{entry.path}")
    return entry


class _Restore:
    """Restore of a backup that has been checked."""

    def __init__(
        self, settings: Settings, database: Database, header: BackupHeader, after: ServerSummary
    ) -> None:
        self._settings = settings
        self._database = database
        self._header = header
        self._after = after
        self._server = _find_server(settings, database)
        was_postgres = header.database == "postgresql"
        self._has_folders = header.format != FORMAT_1
        self._to_tables = self._has_folders and self._server.is_postgres and not was_postgres
        self._to_folders = self._has_folders and was_postgres and not self._server.is_postgres
        # The folders that are replaced. Format 1 has only tables.
        self._parts = {part.name: part for part in self._server.parts if self._has_folders}
        if self._to_tables:  # this server has its skills in tables and does not serve these
            del self._parts[UNSHARED_SKILLS], self._parts[UNSHARED_UPLOADS]
        # A folder that neither exists nor is needed is not created: revisions depend on it.
        for name, part in [*self._parts.items()]:
            needed = after.entries[name].ids or (self._to_folders and after.records[name].ids)
            if not needed and not os.path.isdir(part.path):  # noqa: PTH112
                del self._parts[name]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folders that are replaced. Raises: UnsafePath, OSError."""
        _check_no_links(self._settings.working_directory)
        Path(self._settings.data_directory).mkdir(parents=True, exist_ok=True)
        with lock_parts([*self._parts.values()]):
            yield

    def summarize_present(self) -> ServerSummary:
        """Return a summary of the server before the restore. Raises: OSError."""
        chunks = _read_files(self._server, [])
        return self._database.read(lambda connection: summarize_server(connection, chunks))

    def compare(self, before: ServerSummary, totals: BackupTotals) -> RestoreReport:
        """Return what a restore would change."""
        after, is_postgres = self._after, self._server.is_postgres
        was_postgres = self._header.database == "postgresql" or not self._has_folders
        skills = before.get_skills(is_postgres=is_postgres or not self._has_folders)
        uploads = before.get_uploads(is_postgres=is_postgres or not self._has_folders)
        changes = {
            "skills": skills.compare(after.get_skills(is_postgres=was_postgres)),
            **{kind: before.records[kind].compare(after.records[kind]) for kind in RECORD_KINDS},
            "uploads": uploads.compare(after.get_uploads(is_postgres=was_postgres)),
        }
        if self._has_folders:
            changes["systemSkills"] = before.system_skills.compare(after.system_skills)
            changes["followedRepositories"] = before.followed.compare(after.followed)
            changes["mcpServers"] = before.mcp_servers.compare(after.mcp_servers)
            approvals = before.approvals.compare(after.approvals)
            changes["approvals"] = approvals._replace(removed=())
        followed = changes.get("followedRepositories", Difference())
        return RestoreReport(
            totals,
            self._header.version,
            self._header.at,
            changes,
            () if is_postgres else followed.added,
            (*totals.skipped, *self._find_notes()),
            self._header.left_out,
        )

    def _find_notes(self) -> Iterator[str]:
        """Yield notes about data that is not restored, or not served as before."""
        if not self._has_folders:
            yield _FORMAT_1_NOTE
        if self._server.is_postgres and self._after.followed.ids:
            yield _FOLLOWING_NOTE.format(count=len(self._after.followed.ids))
        for part in (UNSHARED_SKILLS, UNSHARED_UPLOADS):
            if part not in self._parts:
                for name in sorted(self._after.entries[part].ids):
                    yield _UNSHARED_NOTE.format(name=f"{part}/{name}")

    def would_lose(self, before: ServerSummary) -> bool:
        """Whether the server has rows, or entries that differ from the backup."""
        if self._database.read(has_rows):
            return True
        shipped = read_shipped_skills().keys()
        for name in self._parts.keys() - MERGED_PARTS:
            present, restored = before.entries[name], self._after.entries[name]
            safe = shipped if name == SYSTEM_SKILLS else _MERGED_ENTRIES.get(name, frozenset())
            replaced = present.ids - safe
            if not all(present.is_equal(entry, restored) for entry in replaced):
                return True
        return False

    def run(
        self, reader: BackupReader, totals: BackupTotals, before: ServerSummary, actor: Actor
    ) -> None:
        """Replace the data, and clear the summaries. Raises: as `restore_backup`."""
        restore_id = secrets.token_hex(8)
        # Versions need their contents.
        skipped = {
            table.name for table in CONVERTED_TABLES if self._to_tables and table is not blobs
        }
        skipped.add(recorded_stores.name)  # the versions belong to this run directory now
        plan = RestorePlan(self._header, restore_id, utc_now(), frozenset(skipped), actor)
        _check_disk_space(self._settings.data_directory, totals.bytes)
        staged = {name: StagedPart(part, restore_id) for name, part in self._parts.items()}
        unchanged = self._find_unchanged(before)
        present = {name: {*before.entries[name].ids} for name in self._parts}
        # They take a large part of a restore's memory, which the lists of files need later.
        before.clear()
        self._after.clear()

        def work(connection: Connection) -> None:
            # A transaction may be retried: start again.
            stager = _Stager(self._settings, self._server, staged, unchanged)
            converter = FolderToTables()

            def handle_chunk(connection: Connection, chunk: FileChunk) -> None:
                if self._to_tables:
                    converter.add_chunk(connection, chunk)
                stager.add_chunk(chunk)

            seq = replace_rows(connection, plan, reader.entries(), handle_chunk)
            if self._to_tables:
                converter.finish(connection, seq)
            if self._to_folders:
                if SKILLS in staged:
                    stage_skills(connection, staged[SKILLS])
                if UPLOADS in staged:
                    stage_uploads(connection, staged[UPLOADS])
                delete_converted_rows(connection)
            stager.finish(present)
            sync_disks()

        journal = RestoreJournal(self._settings.data_directory)
        journal.write(restore_id, [*self._parts.values()])
        try:
            self._database.write(work)
        finally:
            # After an error, the database tells whether the restore was committed.
            finish_restore(self._database, journal)

    def _find_unchanged(self, before: ServerSummary) -> dict[str, set[str]]:
        """Return the entries of each part that are already the same as in the backup."""
        unchanged = {}
        for name in self._parts:
            present, restored = before.entries[name], self._after.entries[name]
            unchanged[name] = {entry for entry in present.ids if present.is_equal(entry, restored)}
        return unchanged


class _Stager:
    """Writes files of a backup to staging folders, and contents to the content store."""

    def __init__(
        self,
        settings: Settings,
        server: _Server,
        staged: Mapping[str, StagedPart],
        unchanged: Mapping[str, set[str]],
    ) -> None:
        self._data_directory = settings.data_directory
        self._contents = ContentStore(settings.data_directory)
        self._scope = server.history_scope
        self._staged = staged
        self._unchanged = unchanged
        self._data = b""  # of a file that is not written chunk by chunk
        for part in staged.values():
            part.prepare()

    def add_chunk(self, chunk: FileChunk) -> None:
        """Write a chunk. Raises: BackupRejected, OSError."""
        entry = chunk.path.parts[0]
        if chunk.part == CONTENTS:
            if (data := self._collect(chunk)) is not None:
                self._contents.put(data)
        elif chunk.part not in self._staged or entry in self._unchanged[chunk.part]:
            return
        elif chunk.part == HISTORY and entry == STORE_HISTORY:
            if (data := self._collect(chunk)) is not None:
                moved = move_change(data, self._scope)
                renamed = _rename_history(chunk, STORE_HISTORY, scope_folder_name(self._scope))
                for piece in split_file(renamed, moved):
                    self._staged[HISTORY].write(piece)
        elif chunk.part == DATA and entry in _MERGED_FILES:
            if (data := self._collect(chunk)) is not None:
                merged = _MERGED_FILES[entry](self._data_directory).merge(data)
                for piece in split_file(chunk._replace(mode=_PRIVATE), merged):
                    self._staged[DATA].write(piece)
        else:
            self._staged[chunk.part].write(chunk)

    def finish(self, present: Mapping[str, set[str]]) -> None:
        """Record which of the present entries will be replaced and removed. Raises: OSError."""
        scope = scope_folder_name(self._scope)
        for name, part in self._staged.items():
            removed = set[str]()
            if name not in MERGED_PARTS:
                merged_names = _MERGED_ENTRIES.get(name, frozenset())
                removed = present[name] - self._unchanged[name] - merged_names
            elif name == HISTORY and STORE_HISTORY not in self._unchanged[name]:
                removed = {scope}
            part.save_plan(removed)

    def _collect(self, chunk: FileChunk) -> bytes | None:
        """Return the complete file once its last chunk is added, else None."""
        self._data = chunk.data if chunk.offset == 0 else self._data + chunk.data
        if len(self._data) > _MAX_COLLECTED_BYTES:
            raise BackupRejected(f"{chunk.part}/{chunk.path} is too large")
        return self._data if chunk.is_last else None


def _check_no_links(run_directory: str) -> None:
    """Check that no skill folder or parent of one is a link. Raises: UnsafePath."""
    for path in FOLDER_BY_SOURCE.values():
        folder = run_directory
        for name in path.split("/"):
            folder = os.path.join(folder, name)  # noqa: PTH118
            if os.path.islink(folder):  # noqa: PTH114
                raise UnsafePath(path, f"{name!r} is a link; nothing is written")


def _check_disk_space(data_directory: str, size: int) -> None:
    free = shutil.disk_usage(data_directory).free
    if size + _SPARE_BYTES > free:
        megabytes = f"{(size + _SPARE_BYTES) >> 20} MB of disk space; only {free >> 20} MB are free"
        raise BackupRejected(f"it needs {megabytes}")
