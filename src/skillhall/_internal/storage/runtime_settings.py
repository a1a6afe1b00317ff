"""Settings that administrators change while a server runs.

They are in the database, so all of its servers have them. An environment variable of a server takes
precedence there.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, insert

from skillhall._internal.background import PollingThread
from skillhall._internal.settings import RUNTIME_VARIABLES
from skillhall._internal.storage.records import (
    DATABASE_RESTORED,
    MAX_BUDGET,
    SETTINGS_CHANGED,
    SessionBudgets,
)
from skillhall._internal.storage.sql.audit_rows import add_audit_row
from skillhall._internal.storage.sql.events.event_rows import publish_event
from skillhall._internal.storage.sql.rows import select_fields
from skillhall._internal.storage.sql.tables import server_settings
from skillhall._internal.storage.sql.version_rows import BIN_RETENTION
from skillhall.errors import ConfigInvalid, FieldRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Connection

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.storage.records import Event
    from skillhall._internal.storage.sql.engine import Database

_POLL_INTERVAL, _RETRY_INTERVAL = 30.0, 1.0  # seconds
_MAX_BIN_RETENTION = 3_650  # days


class RuntimeSetting(NamedTuple):
    """A setting: a number within limits, or one of several choices."""

    name: str
    default: str = ""  # "" is no limit, or the choice of each visitor
    choices: tuple[str, ...] = ()
    lowest: int = 0
    highest: int = MAX_BUDGET

    @property
    def variable(self) -> str:
        """The environment variable that takes precedence."""
        return RUNTIME_VARIABLES[self.name]

    def convert(self, value: str) -> str | int | None:
        """Return a value for JSON; `None` is no limit, or the choice of each visitor."""
        return (value if self.choices else int(value)) if value else None

    def parse(self, text: str) -> str:
        """Return the normalized value; "" is the default. Raises: FieldRefused."""
        value = text.strip()
        if self.choices:
            if value and value not in self.choices:
                raise FieldRefused(self.name, f"must be one of: {', '.join(self.choices)}")
            return value
        digits = value.replace(",", "").replace(" ", "")
        if not digits:
            return ""
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(MAX_BUDGET))
        if not is_number or not self.lowest <= int(digits) <= self.highest:
            problem = f"must be a number from {self.lowest} to {self.highest}"
            raise FieldRefused(self.name, problem)
        return str(int(digits))


SETTINGS: Mapping[str, RuntimeSetting] = {
    one.name: one
    for one in (
        RuntimeSetting("language", choices=("en", "zh")),
        RuntimeSetting("budget_total"),
        RuntimeSetting("budget_permanent"),
        RuntimeSetting("budget_stable"),
        RuntimeSetting("budget_working"),
        RuntimeSetting(
            "bin_retention", str(BIN_RETENTION.days), lowest=1, highest=_MAX_BIN_RETENTION
        ),
    )
}


class StoredSetting(NamedTuple):
    """A setting that an administrator has changed."""

    name: str
    value: str
    by: str
    at: str  # ISO 8601


class SettingInEffect(NamedTuple):
    """A setting of this server at one moment."""

    setting: RuntimeSetting
    value: str
    is_fixed: bool  # by an environment variable
    stored: StoredSetting | None


class RuntimeValues(NamedTuple):
    """The values of all settings at one moment."""

    language: str = ""  # of visitors who have not chosen one; "" is that of their browser
    budgets: SessionBudgets = SessionBudgets()  # of new sessions
    bin_retention: timedelta = BIN_RETENTION

    @classmethod
    def build(cls, values: Mapping[str, str]) -> RuntimeValues:
        """Return the values by the names of the settings."""

        def read(name: str) -> str:
            return values.get(name) or SETTINGS[name].default

        zones = ("permanent", "stable", "working", "total")
        texts = [read(f"budget_{zone}") for zone in zones]
        budgets = SessionBudgets(*(int(text) if text else None for text in texts))
        return cls(read("language"), budgets, timedelta(days=int(read("bin_retention"))))


class RuntimeSettings:
    """The settings for every request. Call `close` when done.

    While the database is unavailable, the last known values apply.
    """

    def __init__(self, database: Database, fixed: Mapping[str, str]) -> None:
        """`fixed` are the values of environment variables. Raises: ConfigInvalid."""
        self._database = database
        self._fixed = parse_fixed(fixed)
        self._lock = threading.Lock()
        self._is_stale = True
        self._stored: Mapping[str, StoredSetting] = {}
        self.values = RuntimeValues.build(self._fixed)
        self._thread = PollingThread(
            self.try_refresh,
            lambda: _RETRY_INTERVAL if self._is_stale else _POLL_INTERVAL,
            "skillhall-settings",
        )

    def list(self) -> tuple[SettingInEffect, ...]:
        """Return all settings in effect. Never blocks."""
        rows, stored = [], self._stored
        for name, setting in SETTINGS.items():
            own = stored.get(name)
            value = self._fixed.get(name) or (own.value if own else setting.default)
            rows.append(SettingInEffect(setting, value, name in self._fixed, own))
        return tuple(rows)

    def change(self, actor: Actor, values: Mapping[str, str]) -> None:
        """Change settings by name; "" restores a default.

        Raises: FieldRefused, DatabaseUnavailable, DatabaseFull.
        """
        parsed = {}
        for name, text in values.items():
            if name not in SETTINGS:
                raise FieldRefused(name, f"must be one of: {', '.join(SETTINGS)}")
            if name in self._fixed:
                raise FieldRefused(name, f"is set by the variable {SETTINGS[name].variable}")
            parsed[name] = SETTINGS[name].parse(text)
        self._database.write(lambda connection: _write_settings(connection, actor, parsed))
        self.try_refresh()

    def handle_events(self, events: Sequence[Event]) -> None:
        """Read the settings again if events concern them, or were missed (`events` is empty)."""
        kinds = (SETTINGS_CHANGED, DATABASE_RESTORED)
        if not events or any(event.kind in kinds for event in events):
            self._thread.wake()

    def try_refresh(self) -> None:
        """Read the settings again. Never raises; the thread retries after a failure."""
        with self._lock:
            try:
                stored = self._database.read(read_stored_settings)
            except Exception:  # noqa: BLE001 - the polling thread must survive any error
                self._is_stale = True
                return
            self._is_stale = False
            self._stored = stored
            self.values = _build_values(stored, self._fixed)

    def close(self) -> None:
        """Stop polling."""
        self._thread.close()


def parse_fixed(fixed: Mapping[str, str]) -> Mapping[str, str]:
    """Return the valid values of environment variables, by setting. Raises: ConfigInvalid."""
    try:
        return {name: SETTINGS[name].parse(text) for name, text in fixed.items()}
    except FieldRefused as error:
        variable = RUNTIME_VARIABLES[error.field]
        raise ConfigInvalid(variable, error.problem) from None


def read_budgets(database: Database, fixed: Mapping[str, str]) -> Callable[[], SessionBudgets]:
    """Return a function that reads the budgets of new sessions, for commands.

    Raises: ConfigInvalid.
    """
    parsed = parse_fixed(fixed)
    return lambda: _build_values(database.read(read_stored_settings), parsed).budgets


def read_stored_settings(connection: Connection) -> dict[str, StoredSetting]:
    """Return the changed settings by name; those of newer versions are left out."""
    rows = connection.execute(select_fields(server_settings)).mappings()
    settings = (StoredSetting(**row) for row in rows)
    return {one.name: one for one in settings if _is_valid(one)}


def _is_valid(stored: StoredSetting) -> bool:
    try:
        return bool(SETTINGS[stored.name].parse(stored.value))
    except (KeyError, FieldRefused):
        return False


def _build_values(stored: Mapping[str, StoredSetting], fixed: Mapping[str, str]) -> RuntimeValues:
    return RuntimeValues.build({name: one.value for name, one in stored.items()} | dict(fixed))


def _write_settings(connection: Connection, actor: Actor, values: Mapping[str, str]) -> None:
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    stored, is_changed = read_stored_settings(connection), False
    for name, value in values.items():
        before = stored[name].value if name in stored else ""
        if value == before:
            continue
        is_changed = True
        connection.execute(delete(server_settings).where(server_settings.c.name == name))
        if value:
            row = StoredSetting(name, value, actor.name, at)
            connection.execute(insert(server_settings), row._asdict())
        detail = {"before": before, "after": value}
        add_audit_row(connection, actor, "setting.change", name, at=at, detail=detail)
    if is_changed:
        publish_event(connection, SETTINGS_CHANGED, at)
