"""Inventories of machines: the operations on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from skillhall._internal.policy.trust.inventory_item import InventoryItem, InventoryReport
from skillhall._internal.policy.trust.revocations import is_digest
from skillhall._internal.policy.trust.trust_decision import TrustState
from skillhall._internal.skill.risks.levels import RiskLevel
from skillhall.errors import FieldRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.sql.inventory_rows import SqlInventoryTable

KEPT_FOR = timedelta(days=90)
MAX_ITEMS = 5_000  # skills of one report
MAX_LABEL = 100  # characters
MAX_TEXT = 500  # characters of a field
_COMMIT = re.compile(r"[0-9a-f]{0,64}")
_PATH_STARTS = ("/", "~", ".", "\\")


@dataclass(frozen=True, slots=True)
class Inventories:
    """Operations on the inventories of a server."""

    table: SqlInventoryTable
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def put(self, actor: Actor, label: str, items: Sequence[InventoryItem]) -> InventoryReport:
        """Replace the report of a label.

        Raises: FieldRefused, Conflict, DatabaseUnavailable, DatabaseFull.
        """
        name = label.strip()
        if not name or len(name) > MAX_LABEL or not name.isprintable():
            raise FieldRefused("label", f"must have 1 to {MAX_LABEL} printable characters")
        if len(items) > MAX_ITEMS:
            raise FieldRefused("skills", f"must have at most {MAX_ITEMS} entries")
        for number, item in enumerate(items):
            _check_item(f"skills[{number}]", item)
        report = InventoryReport(name, actor.name, _format_time(self.clock()), tuple(items))
        self.table.put(actor, report, self._oldest)
        return report

    def list(self) -> Sequence[InventoryReport]:
        """Return the reports of the last 90 days, by label. Raises: DatabaseUnavailable."""
        return self.table.list(self._oldest)

    @property
    def _oldest(self) -> str:
        return _format_time(self.clock() - KEPT_FOR)


def _check_item(where: str, item: InventoryItem) -> None:
    """Check that an item has only valid data. Raises: FieldRefused."""
    for field, text in item._asdict().items():
        if len(text) > MAX_TEXT or not text.isprintable():
            problem = f"must be one line of at most {MAX_TEXT} characters"
            raise FieldRefused(f"{where}.{field}", problem)
    if not item.name:
        raise FieldRefused(f"{where}.name", "must not be empty")
    if item.digest and not is_digest(item.digest):
        raise FieldRefused(f"{where}.digest", "must be sha256: and 64 hexadecimal digits")
    if item.source.startswith(_PATH_STARTS):
        raise FieldRefused(f"{where}.source", "must not be a path")
    if not _COMMIT.fullmatch(item.commit):
        raise FieldRefused(f"{where}.commit", "must be hexadecimal digits")
    if item.state not in ("", *TrustState):
        raise FieldRefused(f"{where}.state", f"must be one of: {', '.join(TrustState)}")
    if item.risk not in ("", *RiskLevel):
        raise FieldRefused(f"{where}.risk", f"must be one of: {', '.join(RiskLevel)}")


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
