"""The hash chain of the audit log: sealing, verifying and pruning rows.

A seal is the SHA-256 of the seal before it and of the row as JSON. Rows are numbered in the order
of their commits, so they are sealed in the order of their numbers.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, delete, func, insert, select, text

from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.sql.audit_rows import add_audit_row, allow_audit_deletion
from skillhall._internal.storage.sql.engine import lift_limits
from skillhall._internal.storage.sql.tables import audit, audit_seals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, RowMapping

PRUNE_ACTION = "audit.prune"
_SEAL_LOCK = 7_223_446_120_933  # id of PostgreSQL's advisory lock for sealing
_ROWS_PER_BATCH = 500


class ChainHead(NamedTuple):
    """The last seal: its position in the chain, the number of its row, and its hash."""

    position: int = 0
    row: int = 0
    hash: str = ""


class ChainReport(NamedTuple):
    """Result of a verification."""

    head: ChainHead
    verified: int  # number of rows whose seal is correct
    pending: int  # number of new rows that are not sealed yet
    broken_row: int | None = None  # number of the first row that does not match its seal
    problem: str = ""  # "" if the chain is unbroken


def hash_row(previous: str, row: Mapping[str, object]) -> str:
    """Return the seal of a row; `previous` is the seal before it, "" for the first."""
    data = json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256_hex(f"{previous}\n{data}".encode("utf-8", "surrogatepass"))


def to_audit_row(row: RowMapping) -> dict[str, Any]:
    """Return a row as it is sealed and exported, with its details as an object."""
    values = {column.name: row[column.name] for column in audit.columns}
    with suppress(ValueError, RecursionError):  # not written by a server; its text is hashed
        values["detail"] = json.loads(values["detail"])
    return values


def read_head(connection: Connection) -> ChainHead:
    """Return the last seal; zeros if there is none."""
    query = select(audit_seals).order_by(audit_seals.c.position.desc()).limit(1)
    row = connection.execute(query).first()
    return ChainHead() if row is None else ChainHead(*row)


def seal_rows(connection: Connection, limit: int = _ROWS_PER_BATCH) -> ChainHead | None:
    """Seal up to `limit` new rows in the open transaction and return the last seal.

    Returns None immediately if another server is sealing.
    """
    if not _try_lock(connection):
        return None
    head = read_head(connection)
    query = select(audit).where(audit.c.id > head.row).order_by(audit.c.id).limit(limit)
    seals = []
    for row in connection.execute(query).mappings():
        head = ChainHead(head.position + 1, row["id"], hash_row(head.hash, to_audit_row(row)))
        seals.append({"position": head.position, "audit_id": head.row, "hash": head.hash})
    if seals:
        connection.execute(insert(audit_seals), seals)
    return head


def count_pending(connection: Connection) -> int:
    """Return the number of rows that have not been sealed yet."""
    query = select(func.count()).select_from(audit).where(audit.c.id > read_head(connection).row)
    return int(connection.execute(query).scalar_one())


def verify_chain(connection: Connection, expected_head: str = "") -> ChainReport:
    """Verify all seals, in one read transaction.

    Memory use does not depend on their number. `expected_head` is a hash that was the newest one at
    some time, and must be in the chain.
    """
    verifier = _ChainVerifier(expected_head)
    query = (
        select(audit_seals.c.position, audit_seals.c.audit_id, audit_seals.c.hash, audit)
        .join_from(audit_seals, audit, audit.c.id == audit_seals.c.audit_id, isouter=True)
        .order_by(audit_seals.c.position)
    )
    options = {"yield_per": _ROWS_PER_BATCH}
    with connection.execute(query, execution_options=options) as result:
        if not all(map(verifier.check, result.mappings())):
            return verifier.report(0)
    verifier.check_checkpoint(_find_checkpoints(connection, verifier.checkpoint))
    verifier.check_unsealed(_find_unsealed(connection, verifier.head.row))
    verifier.check_head()
    return verifier.report(count_pending(connection))


def prune_rows(connection: Connection, before: str, at: str) -> int:
    """Delete the sealed rows of the days before `before`; return how many.

    `before` is a date. The last seal of the deleted rows stays: verifications start there. A new
    row records the deletion. Returns 0 if another server is sealing.
    """
    oldest = connection.execute(select(audit.c.at).order_by(audit.c.id).limit(1)).scalar()
    if oldest is None or oldest >= before or not _try_lock(connection):
        return 0
    lift_limits(connection)
    is_sealed = audit.c.id == audit_seals.c.audit_id
    positions = select(func.min(audit_seals.c.position)).join(audit, is_sealed)
    first_left = connection.execute(positions.where(audit.c.at >= before)).scalar()
    last = read_head(connection).position if first_left is None else int(first_left) - 1
    seal = connection.execute(select(audit_seals).where(audit_seals.c.position == last)).first()
    if seal is None:
        return 0
    with allow_audit_deletion(connection):
        deleted = connection.execute(delete(audit).where(audit.c.id <= seal.audit_id)).rowcount
        connection.execute(delete(audit_seals).where(audit_seals.c.position < last))
        if deleted:
            detail = {"position": last, "hash": seal.hash, "rows": deleted}
            add_audit_row(connection, SYSTEM_ACTOR, PRUNE_ACTION, before, at=at, detail=detail)
    return int(deleted)


class _ChainVerifier:
    """Compares rows and seals, in the order of the chain."""

    def __init__(self, expected_head: str) -> None:
        self.head = ChainHead()
        self.checkpoint: ChainHead | None = None  # the last seal before the first row
        self._expected_head = expected_head
        self._has_expected_head = not expected_head
        self._verified = 0
        self._broken_row: int | None = None
        self._problem = ""

    def check(self, row: RowMapping) -> bool:
        """Check the next seal and its row; return whether the chain is unbroken so far."""
        head, seal = self.head, ChainHead(row["position"], row["audit_id"], row["hash"])
        if not head.position and row["id"] is None:
            self.checkpoint = seal
        elif seal.position != head.position + 1:
            self._break(seal.row, "seals before this row are missing")
        elif row["id"] is None:
            self._break(seal.row, "this row was deleted")
        elif seal.row <= head.row:
            self._break(seal.row, "this row is out of order")
        elif seal.hash != hash_row(head.hash, to_audit_row(row)):
            self._break(
                seal.row, "this row or its seal was changed, or a row before it was removed"
            )
        else:
            self._verified += 1
        self._has_expected_head = self._has_expected_head or seal.hash == self._expected_head
        if not self._problem:
            self.head = seal
        return not self._problem

    def check_checkpoint(self, known: bool) -> None:  # noqa: FBT001 - the only argument
        """Check that a row about a deletion names the checkpoint."""
        if self.checkpoint is not None and not known:
            self._break(self.checkpoint.row, "the rows up to this one were deleted")

    def check_unsealed(self, row: int | None) -> None:
        """Check that there is no row without a seal among the sealed ones."""
        if row is not None:
            self._break(row, "this row was inserted later")

    def check_head(self) -> None:
        """Check that the chain contains the expected hash."""
        if not self._has_expected_head:
            self._break(None, "the given hash is not in the chain: the chain was rewritten or cut")

    def report(self, pending: int) -> ChainReport:
        """Return the result."""
        return ChainReport(self.head, self._verified, pending, self._broken_row, self._problem)

    def _break(self, row: int | None, problem: str) -> None:
        if not self._problem:
            self._broken_row, self._problem = row, problem


def _find_checkpoints(connection: Connection, checkpoint: ChainHead | None) -> bool:
    """Whether a row records the deletion that left this checkpoint."""
    if checkpoint is None:
        return True
    query = select(audit.c.detail).where(audit.c.action == PRUNE_ACTION)
    for detail in connection.execute(query.order_by(audit.c.id.desc())).scalars():
        recorded = json.loads(detail)
        if (recorded.get("position"), recorded.get("hash")) == (
            checkpoint.position,
            checkpoint.hash,
        ):
            return True
    return False


def _find_unsealed(connection: Connection, last_sealed: int) -> int | None:
    """Return the first row without a seal up to the last sealed one."""
    is_sealed = select(audit_seals.c.position).where(audit_seals.c.audit_id == audit.c.id).exists()
    query = select(func.min(audit.c.id)).where(and_(audit.c.id <= last_sealed, ~is_sealed))
    found = connection.execute(query).scalar()
    return None if found is None else int(found)


def _try_lock(connection: Connection) -> bool:
    """Try to become the only server that seals until the end of the transaction."""
    if connection.dialect.name != "postgresql":
        return True  # SQLite has only one writer
    query = text("SELECT pg_try_advisory_xact_lock(:lock)")
    return bool(connection.execute(query, {"lock": _SEAL_LOCK}).scalar())
