"""The audit log of a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.storage.audit.audit_query import AuditLog
from skillhall._internal.storage.audit.audit_sealer import AuditSealer
from skillhall._internal.storage.audit.refusal_log import RefusalLog

if TYPE_CHECKING:
    from skillhall._internal.storage.sql.engine import Database


class ServerAudit:
    """The log, the thread that seals it, and refused requests. Call `close` when done."""

    def __init__(self, database: Database, retention: int) -> None:
        """`retention` is in days."""
        self.log = AuditLog(database)
        self.sealer = AuditSealer(database, retention)
        self.refusals = RefusalLog(database)

    @property
    def is_broken(self) -> bool:
        """Whether the last verification found that rows were changed."""
        return bool(self.sealer.problem)

    def close(self) -> None:
        """Write and seal the last rows, and stop. Idempotent."""
        self.refusals.close()
        self.sealer.close()
