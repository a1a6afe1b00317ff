"""PostgreSQL connection that gives up if the server does not respond.

Import this module only where PostgreSQL is used: the driver is an optional extra.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from psycopg import Connection, Error, OperationalError

if TYPE_CHECKING:
    from psycopg.abc import PQGen

    from skillhall._internal.storage.sql.timeouts import DatabaseTimeouts

__all__ = ["Error", "LimitedConnection", "connect"]
_T = TypeVar("_T")


class LimitedConnection(Connection[tuple[Any, ...]]):
    """Connection that closes if the server sends nothing for `response_limit` seconds.

    The server enforces its own timeouts, and TCP notices a host that is gone. Neither helps if the
    processes of the server are stopped: its kernel still acknowledges every packet.
    """

    response_limit: float | None = None

    def wait(self, gen: PQGen[_T], *arguments: Any, **named: Any) -> _T:  # noqa: ANN401 - passed on
        """Wait for the server. Raises: OperationalError if it does not respond."""
        if self.response_limit is not None:
            gen = _limit_silence(gen, self.response_limit)
        try:
            return super().wait(gen, *arguments, **named)
        except _SilenceError:
            self.close()
            raise OperationalError("the server does not respond") from None

    def ping(self, limit: float) -> None:
        """Check the connection; close it if there is no response. Raises: psycopg.Error."""
        previous, self.response_limit = self.response_limit, limit
        self.autocommit = True  # without a transaction, it is one round trip
        self.execute("")
        self.autocommit = False
        self.response_limit = previous


class _SilenceError(Exception):
    """The server sent nothing for too long."""


def connect(timeouts: DatabaseTimeouts, *arguments: Any, **named: Any) -> LimitedConnection:  # noqa: ANN401 - passed on
    """Open a connection with these timeouts. Raises: psycopg.Error."""
    limits = {
        "statement_timeout": timeouts.statement,
        "lock_timeout": timeouts.lock,
        "idle_in_transaction_session_timeout": timeouts.idle,
    }
    options = [f"-c {name}={int(seconds * 1000)}" for name, seconds in limits.items()]
    # The options of the database URL come last, so that an operator can override ours.
    named["options"] = " ".join([*options, str(named.get("options") or "")])
    connection = LimitedConnection.connect(
        *arguments,
        connect_timeout=timeouts.connect,
        # A host that is gone is noticed after seconds; TCP's default is two hours.
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=int(timeouts.response * 1000),
        **named,
    )
    connection.response_limit = timeouts.response
    return connection


def _limit_silence(gen: PQGen[_T], limit: float) -> PQGen[_T]:
    """Run `gen`. Raises: _SilenceError if nothing arrives for `limit` seconds."""
    deadline = time.monotonic() + limit
    try:
        wait_for = next(gen)
        while True:
            ready = yield wait_for
            if ready:
                deadline = time.monotonic() + limit
            elif time.monotonic() > deadline:
                raise _SilenceError
            wait_for = gen.send(ready)
    except StopIteration as stop:
        result: _T = stop.value
        return result
