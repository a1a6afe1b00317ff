"""Inventories that machines reported, in tables: the last report of each label."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select

from skillhall._internal.policy.trust.inventory_item import InventoryItem, InventoryReport
from skillhall._internal.storage.sql.audit_rows import add_audit_row
from skillhall._internal.storage.sql.tables import inventories, inventory_items
from skillhall.errors import Conflict

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.sql.engine import Database

_ITEM_COLUMNS = [inventory_items.c[field].label(field) for field in InventoryItem._fields]


class SqlInventoryTable:
    """Inventories in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, since: str) -> list[InventoryReport]:
        """Return the reports since a time, by label. Raises: DatabaseUnavailable."""
        reports = select(inventories).where(inventories.c.at >= since).order_by("label")
        items = select(inventory_items.c.label, *_ITEM_COLUMNS).order_by("label", "ordinal")

        def work(connection: Connection) -> list[InventoryReport]:
            rows = connection.execute(items).all()
            by_label = {
                label: tuple(InventoryItem(*row[1:]) for row in group)
                for label, group in groupby(rows, key=lambda row: row[0])
            }
            return [
                InventoryReport(label, by, at, by_label.get(label, ()))
                for label, by, at in connection.execute(reports)
            ]

        return self._database.read(work)

    def put(self, actor: Actor, report: InventoryReport, since: str) -> None:
        """Replace the report of a label, and delete reports from before `since`.

        A label belongs to the user who sent its last report.
        Raises: Conflict if it belongs to another user, DatabaseUnavailable, DatabaseFull.
        """
        owner = select(inventories.c.by).where(inventories.c.label == report.label)
        rows = [
            {"label": report.label, "ordinal": number, **item._asdict()}
            for number, item in enumerate(report.items)
        ]

        def work(connection: Connection) -> None:
            connection.execute(delete(inventories).where(inventories.c.at < since))
            by = connection.execute(owner).scalar()
            if by is not None and by.partition("/")[0] != actor.user:
                raise Conflict(
                    report.label, "choose another label: this one belongs to another user"
                )
            connection.execute(delete(inventories).where(inventories.c.label == report.label))
            values = {"label": report.label, "by": report.by, "at": report.at}
            connection.execute(insert(inventories), values)
            if rows:
                connection.execute(insert(inventory_items), rows)
            detail = {"skills": len(rows)}
            add_audit_row(
                connection, actor, "inventory.send", report.label, at=report.at, detail=detail
            )

        self._database.write(work)
