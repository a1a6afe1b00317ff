"""Timeouts of database calls."""

from __future__ import annotations

from dataclasses import dataclass

from skillhall.errors import ConfigInvalid

TIMEOUT_VARIABLE = "SKILLHALL_DATABASE_TIMEOUT"
DEFAULT_TIMEOUT = 10.0  # seconds
_MIN_TIMEOUT = 4  # drivers wait at least two seconds for a connection
_MAX_TIMEOUT = 3600


@dataclass(frozen=True, slots=True)
class DatabaseTimeouts:
    """Timeouts in seconds for the steps of a database call, as shares of a total.

    If the database hangs at any one step, the call still ends within the total: getting a
    connection takes at most three quarters of it (`pool`, `ping` and `connect`), and waiting for
    a statement takes at most `response`.
    """

    total: float = DEFAULT_TIMEOUT

    @property
    def pool(self) -> float:
        """Maximum wait for a free connection."""
        return self.total * 0.25

    @property
    def ping(self) -> float:
        """Maximum time to check an open connection before it is used."""
        return self.total * 0.25

    @property
    def connect(self) -> int:
        """Maximum time to open a connection, in whole seconds, as drivers require."""
        return max(2, int(self.total * 0.25))

    @property
    def idle(self) -> float:
        """Maximum time between two statements of a transaction.

        The server then ends the transaction, so that others can continue if this process is frozen
        or disconnected. It is shorter than `lock`, so that those waiting for the same record get
        it.
        """
        return self.total * 0.3

    @property
    def lock(self) -> float:
        """Maximum wait for a lock."""
        return self.total * 0.6

    @property
    def statement(self) -> float:
        """Maximum duration of a statement, enforced by the server."""
        return self.total * 0.75

    @property
    def response(self) -> float:
        """Maximum wait for a response from the server, enforced by this process."""
        return self.total * 0.8

    @property
    def busy(self) -> float:
        """Maximum wait for other writers of an SQLite file, per attempt."""
        return self.total * 0.2

    def allows_retry(self, elapsed: float, *, is_postgres: bool) -> bool:
        """Whether another attempt would end within the timeout."""
        return elapsed + (self.lock if is_postgres else self.busy) < self.total * 0.95


def parse_timeout(text: str) -> DatabaseTimeouts:
    """Parse the configured timeout. Raises: ConfigInvalid."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _MIN_TIMEOUT <= seconds <= _MAX_TIMEOUT:
        raise ConfigInvalid(
            TIMEOUT_VARIABLE,
            f"{text!r} is not a number of seconds in the allowed range",
            f"use a number from {_MIN_TIMEOUT} to {_MAX_TIMEOUT}",
        )
    return DatabaseTimeouts(seconds)
