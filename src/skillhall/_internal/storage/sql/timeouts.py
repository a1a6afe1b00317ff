"""Time limits of database calls."""

from __future__ import annotations

from dataclasses import dataclass

from skillhall.errors import ConfigInvalid

TIMEOUT_VARIABLE = "SKILLHALL_DATABASE_TIMEOUT"
DEFAULT_TIMEOUT = 10.0  # seconds
_MIN_TIMEOUT = 4  # drivers wait at least two seconds for a connection
_MAX_TIMEOUT = 3600


@dataclass(frozen=True, slots=True)
class DatabaseTimeouts:
    """Limits of the steps of a database call, as shares of one timeout in seconds.

    A call ends within the timeout if the database hangs at any step: getting a connection takes at
    most three quarters (`pool`, `ping` and `connect`), a statement `response`.
    """

    total: float = DEFAULT_TIMEOUT

    @property
    def pool(self) -> float:
        """Limit of the wait for a free connection."""
        return self.total * 0.25

    @property
    def ping(self) -> float:
        """Limit of the check of an open connection before it is used."""
        return self.total * 0.25

    @property
    def connect(self) -> int:
        """Limit of opening a connection, in full seconds, as drivers require."""
        return max(2, int(self.total * 0.25))

    @property
    def idle(self) -> float:
        """Limit between two statements of a transaction.

        The server then ends it, so that others can go on if a process was frozen or cut off. It is
        shorter than `lock`: those that wait for the same record get it.
        """
        return self.total * 0.3

    @property
    def lock(self) -> float:
        """Limit of the wait for a lock."""
        return self.total * 0.6

    @property
    def statement(self) -> float:
        """Limit of a statement, enforced by the server."""
        return self.total * 0.75

    @property
    def response(self) -> float:
        """Limit of the wait for the server, enforced by this process."""
        return self.total * 0.8

    @property
    def busy(self) -> float:
        """Limit of the wait for the other writers of an SQLite file, for one attempt."""
        return self.total * 0.2

    def allows_retry(self, elapsed: float, *, is_postgres: bool) -> bool:
        """Whether another attempt would end within the timeout."""
        return elapsed + (self.lock if is_postgres else self.busy) < self.total * 0.95


def parse_timeout(text: str) -> DatabaseTimeouts:
    """Parse the timeout that users configure. Raises: ConfigInvalid."""
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
