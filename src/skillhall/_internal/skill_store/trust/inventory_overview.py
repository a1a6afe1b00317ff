"""Overview of the skills on all machines, by digest, with their server state."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import fold_name

if TYPE_CHECKING:
    from collections.abc import Collection as Group
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.policy.trust.inventory_item import InventoryItem, InventoryReport
    from skillhall._internal.policy.trust.revocations import Revocation


class ServerState(StrEnum):
    """State of a skill's digest on a server."""

    REVOKED = "revoked"  # also if the version was yanked
    APPROVED = "approved"  # the server serves it
    UNKNOWN = "unknown"


class MachineSkill(NamedTuple):
    """A skill on one machine."""

    label: str
    at: str  # of the report
    item: InventoryItem


class InventoryRow(NamedTuple):
    """A version of a skill, and the machines that have it."""

    digest: str
    state: ServerState
    machines: tuple[MachineSkill, ...]
    revocation: Revocation | None = None

    @property
    def names(self) -> list[str]:
        """The names that machines report, sorted."""
        return sorted({machine.item.name for machine in self.machines})

    @property
    def risk(self) -> str:
        """The highest risk level that machines report."""
        return max(machine.item.risk for machine in self.machines)


class InventoryQuery(NamedTuple):
    """Filters; "" means all."""

    text: str = ""  # in names, digests, sources and labels
    state: str = ""
    label: str = ""

    def accepts(self, row: InventoryRow) -> bool:
        """Whether a row matches all filters."""
        if self.state and row.state != self.state:
            return False
        if self.label and all(machine.label != self.label for machine in row.machines):
            return False
        return not self.text or self._finds_text(row)

    def _finds_text(self, row: InventoryRow) -> bool:
        wanted = fold_name(self.text.strip())
        texts = (
            text
            for machine in row.machines
            for text in (machine.label, machine.item.name, machine.item.source)
        )
        return any(wanted in fold_name(text) for text in (row.digest, *texts))


class InventoryOverview(NamedTuple):
    """The rows that match a query, and the counts of all rows by state."""

    rows: Sequence[InventoryRow]
    counts: Mapping[ServerState, int]
    machines: Sequence[InventoryReport]


def build_overview(
    reports: Sequence[InventoryReport],
    revoked: Mapping[str, Revocation],
    approved: Group[str],
    query: InventoryQuery,
) -> InventoryOverview:
    """Group reports by digest; revoked ones come first, then unknown ones, by name."""
    rows = sorted(_build_rows(reports, revoked, approved), key=_order)
    counts = Counter(row.state for row in rows)
    return InventoryOverview([*filter(query.accepts, rows)], counts, reports)


def _build_rows(
    reports: Iterable[InventoryReport], revoked: Mapping[str, Revocation], approved: Group[str]
) -> Iterable[InventoryRow]:
    by_digest: dict[str, list[MachineSkill]] = {}
    for report in reports:
        for item in report.items:
            by_digest.setdefault(item.digest, []).append(
                MachineSkill(report.label, report.at, item)
            )
    for digest, machines in by_digest.items():
        state = ServerState.APPROVED if digest in approved else ServerState.UNKNOWN
        if digest in revoked:
            state = ServerState.REVOKED
        yield InventoryRow(digest, state, tuple(machines), revoked.get(digest))


_STATE_ORDER = {ServerState.REVOKED: 0, ServerState.UNKNOWN: 1, ServerState.APPROVED: 2}


def _order(row: InventoryRow) -> tuple[int, str, str]:
    return _STATE_ORDER[row.state], row.names[0].casefold(), row.digest


def serialize_row(row: InventoryRow) -> dict[str, object]:
    """Serialize a row for the REST API."""
    return {
        "digest": row.digest,
        "state": row.state.value,
        "names": row.names,
        "revoked": row.revocation._asdict() if row.revocation else None,
        "machines": [
            {"label": machine.label, "at": machine.at, **machine.item._asdict()}
            for machine in row.machines
        ],
    }
