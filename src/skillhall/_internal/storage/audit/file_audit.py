"""Audit rows for changes to files, which share no transaction with the database.

The planned rows are written to a journal first. The files are changed while a transaction with the
rows is open: if the database is down, nothing changes. If the process is killed in between, the
next one compares the files with the journal, and adds the rows of the changes that were made.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sqlalchemy import select

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.access.actor import Actor, AuditedChange, Via
from skillhall._internal.storage.sql.audit_rows import add_change_rows, format_audit_time
from skillhall._internal.storage.sql.tables import audit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    from skillhall._internal.storage.sql.engine import Database

    FindState = Callable[[str], str]  # the digest of a subject at this moment; "" if it is gone

_T = TypeVar("_T")
_FOLDER = "audit-journals"  # in the data folder
_ID_DETAIL = "journal"  # key of the journal's id in the details of rows
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700


class _Journal(NamedTuple):
    """Planned change. The id is in the details of its rows."""

    id: str
    at: str
    change: AuditedChange


@dataclass(frozen=True, slots=True)
class FileAudit:
    """Records changes to files. Call its methods while no other process changes them."""

    database: Database
    data_directory: str
    name: str  # name of the journal, unique in the data folder
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def run(self, change: AuditedChange, apply: Callable[[], _T], find_state: FindState) -> _T:
        """Call `apply`, which changes the files, and add rows for its changes.

        Raises: DatabaseUnavailable, DatabaseFull, OSError; and errors from `apply`.
        """
        self.recover(find_state)
        journal = _Journal(secrets.token_hex(8), format_audit_time(self.clock()), change)
        self._write(journal)
        results: list[_T] = []

        def work(connection: Connection) -> None:
            _add_rows(connection, journal, [*change.digests])
            if not results:  # a transaction may be retried
                results.append(apply())

        try:
            self.database.write(work)
        except BaseException:
            # Changes made before the error are recorded, now or by the next process.
            with suppress(Exception):
                self.recover(find_state)
            raise
        self._delete()
        return results[0]

    def recover(self, find_state: FindState) -> None:
        """Add the rows of a change that a killed process made.

        Raises: DatabaseUnavailable, DatabaseFull, OSError.
        """
        journal = self._read()
        if journal is None:
            return
        subjects = [
            subject
            for subject, (before, _) in journal.change.digests.items()
            if find_state(subject) != before
        ]
        if subjects:
            self.database.write(lambda connection: _add_missing_rows(connection, journal, subjects))
        self._delete()

    @property
    def _path(self) -> str:
        return os.path.join(self.data_directory, _FOLDER, f"{self.name}.json")

    def _read(self) -> _Journal | None:
        try:
            with open(self._path, encoding="utf-8") as file:
                identity, at, (actor, action, digests) = json.load(file)
        except FileNotFoundError:
            return None
        except ValueError:  # the machine stopped while it was written, before any change
            self._delete()
            return None
        user, token, via, address, request = actor
        pairs = {subject: (before, after) for subject, (before, after) in digests.items()}
        change = AuditedChange(Actor(user, token, Via(via), address, request), action, pairs)
        return _Journal(identity, at, change)

    def _write(self, journal: _Journal) -> None:
        folder, name = os.path.split(self._path)
        os.makedirs(folder, _FOLDER_MODE, exist_ok=True)
        with WritableFolder(folder) as opened:
            opened.write_file(name, json.dumps(journal).encode(), _FILE_MODE)

    def _delete(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def _add_missing_rows(connection: Connection, journal: _Journal, subjects: Sequence[str]) -> None:
    """Add rows, unless the transaction with them was already committed."""
    query = select(audit.c.detail).where(audit.c.at == journal.at)
    details = connection.execute(query).scalars()
    if not any(json.loads(detail).get(_ID_DETAIL) == journal.id for detail in details):
        _add_rows(connection, journal, subjects)


def _add_rows(connection: Connection, journal: _Journal, subjects: Sequence[str]) -> None:
    digests = {subject: journal.change.digests[subject] for subject in subjects}
    change = journal.change._replace(digests=digests)
    add_change_rows(connection, change, journal.at, {_ID_DETAIL: journal.id})
