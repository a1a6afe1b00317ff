"""Real database that can be made unavailable."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from skillhall._internal.storage.sql.engine import Database
from skillhall.errors import DatabaseUnavailable

_T = TypeVar("_T")


class SwitchableDatabase(Database):
    """Database that is unavailable while `is_down` is set."""

    is_down = False

    def read(self, work: Callable[[Connection], _T]) -> _T:
        self._check_available()
        return super().read(work)

    def write(self, work: Callable[[Connection], _T]) -> _T:
        self._check_available()
        return super().write(work)

    def _check_available(self) -> None:
        if self.is_down:
            raise DatabaseUnavailable("it is down")
