"""Contract of the settings of a running server in both databases."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta

import pytest

from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.storage.records import SessionBudgets
from skillhall._internal.storage.runtime_settings import (
    RuntimeSettings,
    RuntimeValues,
    read_budgets,
)
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.tables import audit, events, server_settings
from skillhall.errors import FieldRefused

ADMIN = Actor("ann", "laptop")


@contextmanager
def open_settings(database: Database, **fixed: str) -> Iterator[RuntimeSettings]:
    with closing(RuntimeSettings(database, fixed)) as settings:
        yield settings


def test_change_applies_to_all_servers_of_a_database(database: Database) -> None:
    with open_settings(database) as one, open_settings(database) as other:
        one.change(ADMIN, {"language": "zh", "budget_total": " 12,000 ", "bin_retention": "7"})
        expected = RuntimeValues("zh", SessionBudgets(total=12_000), timedelta(days=7))
        assert one.values == expected
        other.try_refresh()
        assert other.values == expected
        assert read_budgets(database, {})() == expected.budgets
        row = next(row for row in other.list() if row.setting.name == "language")
        assert row.stored is not None
        assert (row.value, row.is_fixed, row.stored.by) == ("zh", False, "ann/laptop")
        one.change(ADMIN, {"language": "", "budget_total": "", "bin_retention": ""})
        assert one.values == RuntimeValues()


def test_change_is_recorded_and_announced_once(database: Database) -> None:
    with open_settings(database) as settings:
        for _ in range(2):  # the second one changes nothing
            settings.change(ADMIN, {"bin_retention": "7"})
    rows = database.read(lambda connection: connection.execute(audit.select()).mappings().all())
    kinds = database.read(lambda connection: connection.execute(events.select()).mappings().all())
    assert [(row["action"], row["subject"], json.loads(row["detail"])) for row in rows] == [
        ("setting.change", "bin_retention", {"before": "", "after": "7"})
    ]
    assert [row["kind"] for row in kinds] == ["settings-changed"]


def test_variable_takes_precedence_and_cannot_be_changed(database: Database) -> None:
    with open_settings(database) as settings:
        settings.change(ADMIN, {"language": "zh"})
    with open_settings(database, language="en", budget_stable="500") as fixed:
        fixed.try_refresh()
        assert fixed.values == RuntimeValues("en", SessionBudgets(stable=500))
        assert [row.setting.variable for row in fixed.list() if row.is_fixed] == [
            "SKILLHALL_LANGUAGE",
            "SKILLHALL_BUDGET_STABLE",
        ]
        with pytest.raises(FieldRefused, match="SKILLHALL_LANGUAGE"):
            fixed.change(ADMIN, {"language": "zh"})


def test_stored_value_that_is_not_valid_is_ignored(database: Database) -> None:
    rows = [
        {"name": name, "value": value, "by": "ann", "at": "2026-01-01T00:00:00Z"}
        for name, value in (("language", "tlh"), ("of_a_newer_version", "1"), ("budget_total", "9"))
    ]
    database.write(lambda connection: connection.execute(server_settings.insert(), rows))
    with open_settings(database) as settings:
        settings.try_refresh()
        assert settings.values == RuntimeValues(budgets=SessionBudgets(total=9))
