"""Summaries of a server and of a backup, to tell what a restore would change.

A summary has a name and a digest for each skill, session and so on, not their content. Digests do
not depend on the order of files and rows, which differs between databases.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select

from skillhall._internal.prompt_server.followed_file import (
    FILE as FOLLOWED_FILE,
)
from skillhall._internal.prompt_server.followed_file import (
    format_followed,
    parse_followed_file,
)
from skillhall._internal.prompt_server.uploads.folder_uploads import (
    FILES,
    MANIFEST,
    UploadManifest,
)
from skillhall._internal.settings import REVOCATIONS_FILE, TRUST_FILE
from skillhall._internal.skill_store.mirror import EXECUTABLE_BIT
from skillhall._internal.sources.mcp.servers_file import SERVERS_FILE
from skillhall._internal.storage.backup_format import FileChunk, TableStart
from skillhall._internal.storage.revocation_store import MAX_FILE_SIZE, parse_lists
from skillhall._internal.storage.sql.backup import backup_tables
from skillhall._internal.storage.trust_store import MAX_TRUST_SIZE, parse_records
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from sqlalchemy import Connection

    from skillhall._internal.storage.backup_format import BackupEntry, BackupTotals

SKILLS, SYSTEM_SKILLS, UPLOADS = "skills", "system-skills", "uploads"  # parts of a backup
DATA = "data"
RECORD_KINDS = ("sessions", "templates", "tokens")
_MAX_CONFIG_BYTES = 1024 * 1024  # larger files in the data folder are not parsed, except these
_MAX_FILE_BYTES = {TRUST_FILE: MAX_TRUST_SIZE, REVOCATIONS_FILE: MAX_FILE_SIZE}
_MODULUS = 2**128
# Kind of record, column with its id, and column with its name, for each table that a summary
# covers.
_RECORD_TABLES = {
    "sessions": ("sessions", "id", "name"),
    "blocks": ("sessions", "session_id", ""),
    "templates": ("templates", "id", "name"),
    "template_blocks": ("templates", "template_id", ""),
    "tokens": ("tokens", "id", "label"),
    "shared_skills": (SKILLS, "id", "id"),
    "shared_skill_files": (SKILLS, "skill_id", ""),
    "uploads": (UPLOADS, "source", "source"),
    "upload_files": (UPLOADS, "source", ""),
}
_OWNERS = frozenset({"shared_skills", "uploads"})  # their rows have times and counters
_FILES_OF_OWNERS = frozenset({"shared_skill_files", "upload_files"})


class Difference(NamedTuple):
    """Names that a restore adds, removes and changes, sorted."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: int = 0


class RecordSummary:
    """Names and digests of records of one kind, by id."""

    # There can be very many records, so little is stored for each.
    def __init__(self) -> None:
        self._digests: dict[str, int] = {}
        self._names: dict[str, str] = {}  # that are not the id

    @property
    def ids(self) -> AbstractSet[str]:
        """The ids of all records."""
        return self._digests.keys()

    @property
    def names(self) -> list[str]:
        """The names of all records, sorted."""
        return self._list_names(self.ids)

    def add(self, identity: str, facts: object, name: str = "") -> None:
        """Add facts about a record. Their order does not matter."""
        if name and name != identity:
            self._names[identity] = name
        digest = hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass")).digest()
        total = self._digests.get(identity, 0) + int.from_bytes(digest[:16], "big")
        # Interned, because several summaries have the same ids.
        self._digests[sys.intern(identity)] = total % _MODULUS

    def is_equal(self, identity: str, other: RecordSummary) -> bool:
        """Whether a record of this summary has the same facts in `other`."""
        return self._digests[identity] == other._digests.get(identity)

    def _list_names(self, ids: Iterable[str]) -> list[str]:
        return sorted(self._names.get(identity, identity) for identity in ids)

    def compare(self, after: RecordSummary) -> Difference:
        """Return what changes from these records to those in `after`."""
        common = self.ids & after.ids
        changed = {identity for identity in common if not self.is_equal(identity, after)}
        return Difference(
            tuple(after._list_names(after.ids - self.ids)),
            tuple(self._list_names(self.ids - after.ids)),
            tuple(after._list_names(changed)),
            len(common) - len(changed),
        )


class ServerSummary:
    """Summary of the tables and folders of a server, or of a backup."""

    def __init__(self) -> None:
        self.records: defaultdict[str, RecordSummary] = defaultdict(RecordSummary)
        # Entries of folders with modes and times, which decide what is written.
        self.entries: defaultdict[str, RecordSummary] = defaultdict(RecordSummary)
        self.folder_skills = RecordSummary()
        self.folder_uploads = RecordSummary()
        self.system_skills = RecordSummary()
        self.followed = RecordSummary()
        self.mcp_servers = RecordSummary()
        self.approvals = RecordSummary()
        self._file_digest = hashlib.sha256()
        self._config = b""
        self._upload_files: list[tuple[str, ...]] = []

    def clear(self) -> None:
        """Forget all records and entries."""
        self.records.clear()
        self.entries.clear()
        self.folder_skills, self.folder_uploads = RecordSummary(), RecordSummary()
        self.system_skills, self.followed = RecordSummary(), RecordSummary()
        self.mcp_servers, self.approvals = RecordSummary(), RecordSummary()

    def get_skills(self, *, is_postgres: bool) -> RecordSummary:
        """Return the served user skills: in tables for PostgreSQL, else in folders."""
        return self.records[SKILLS] if is_postgres else self.folder_skills

    def get_uploads(self, *, is_postgres: bool) -> RecordSummary:
        """Return the served uploads: in tables for PostgreSQL, else in folders."""
        return self.records[UPLOADS] if is_postgres else self.folder_uploads

    def add_row(self, table: str, row: Mapping[str, object]) -> None:
        """Add a row of a table."""
        if table not in _RECORD_TABLES:
            return
        kind, id_column, name_column = _RECORD_TABLES[table]
        facts: object = sorted(row.items())
        if table in _OWNERS:
            facts = row.get("content_hash", "")
        elif table in _FILES_OF_OWNERS:
            facts = _file_facts(str(row["path"]), _to_int(row["mode"]), str(row["digest"]))
        name = str(row[name_column]) if name_column else ""
        self.records[kind].add(str(row[id_column]), facts, name)

    def add_chunk(self, chunk: FileChunk) -> None:
        """Add a chunk of a file. Raises: ConfigInvalid."""
        if chunk.offset == 0:
            self._file_digest, self._config = hashlib.sha256(), b""
        self._file_digest.update(chunk.data)
        if len(self._config) <= _MAX_FILE_BYTES.get(chunk.path.text, _MAX_CONFIG_BYTES):
            self._config += chunk.data
        if not chunk.is_last:
            return
        name, digest = chunk.path.parts[0], self._file_digest.hexdigest()
        facts = (chunk.path.text, chunk.mode, chunk.modified, digest)
        self.entries[chunk.part].add(name, facts)
        path = chunk.path.text.partition("/")[2]
        if path and chunk.part in (SKILLS, SYSTEM_SKILLS):
            skills = self.folder_skills if chunk.part == SKILLS else self.system_skills
            if name not in skills.ids:
                skills.add(name, "")  # as the row of a shared skill
            skills.add(name, _file_facts(path, chunk.mode, digest))
        elif path and chunk.part == UPLOADS:
            self._add_upload_file(path, chunk, digest)
        elif chunk.part == DATA:
            self._add_config(name)

    def _add_upload_file(self, path: str, chunk: FileChunk, digest: str) -> None:
        # The manifest comes after the files.
        if path == MANIFEST:
            manifest = UploadManifest.parse(self._config)
            if manifest is not None:
                self.folder_uploads.add(manifest.source, manifest.content_hash, manifest.source)
                for facts in self._upload_files:
                    self.folder_uploads.add(manifest.source, facts)
            self._upload_files = []
        elif path.startswith(f"{FILES}/"):
            self._upload_files.append(
                _file_facts(path.removeprefix(f"{FILES}/"), chunk.mode, digest)
            )

    def _add_config(self, name: str) -> None:
        if name == FOLLOWED_FILE:
            for followed in parse_followed_file(self._config):
                self.followed.add(followed.key, followed, format_followed(followed))
        elif name == SERVERS_FILE:
            servers = json.loads(self._config)["servers"]
            for label, fields in servers.items():
                self.mcp_servers.add(label, sorted(map(repr, fields.items())), label)
        elif name == TRUST_FILE:
            for one in parse_records(self._config).approvals:
                subject = f"{one.name}\n{one.digest}\n{one.folder}\n{one.where}"
                self.approvals.add(subject, one, one.name)
        elif name == REVOCATIONS_FILE:
            parse_lists(self._config)


def _file_facts(path: str, mode: int, digest: str) -> tuple[str, ...]:
    return path, "x" if mode & EXECUTABLE_BIT else "-", digest


def _to_int(value: object) -> int:
    return value if isinstance(value, int) else 0


def summarize_backup(entries: Iterable[BackupEntry]) -> tuple[ServerSummary, BackupTotals]:
    """Read a backup to its end; return its summary and totals.

    Raises: BackupRejected, ConfigInvalid.
    """
    summary, table, columns = ServerSummary(), "", list[str]()
    for entry in entries:
        if isinstance(entry, FileChunk):
            summary.add_chunk(entry)
        elif isinstance(entry, TableStart):
            table, columns = entry
        elif isinstance(entry, list):
            if len(entry) == len(columns):  # otherwise it is rejected later
                summary.add_row(table, dict(zip(columns, entry, strict=True)))
        else:
            return summary, entry
    raise AssertionError("a reader ends with the totals")


def summarize_server(connection: Connection, chunks: Iterable[FileChunk]) -> ServerSummary:
    """Summarize the tables and files of a server. Raises: OSError."""
    summary = ServerSummary()
    for table in backup_tables():
        if table.name in _RECORD_TABLES:
            query = select(*(column.label(column.name) for column in table.columns))
            rows = connection.execute(query, execution_options={"yield_per": 500})
            for row in rows:
                summary.add_row(table.name, row._asdict())
    for chunk in chunks:
        # A damaged file is going to be replaced.
        with suppress(ConfigInvalid, ValueError, LookupError, TypeError, AttributeError):
            summary.add_chunk(chunk)
    return summary
