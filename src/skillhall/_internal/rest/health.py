"""Whether the server lives, whether it is ready, and its figures."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.metrics import CONTENT_TYPE
from skillhall._internal.http.request_middleware import ERRORS
from skillhall._internal.http.response import Answer, encoded, success
from skillhall._internal.http.thread_pool import Blocking
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.http.metrics import Metrics
    from skillhall._internal.http.request import Exchange
    from skillhall._internal.prompts.prompt_model import Counter, SourceStatus

_PATIENCE = 1.0  # seconds to wait for the first load, before "not yet" is the answer
_DATABASE_PATIENCE = 2.0  # seconds
_RETRY = ((b"retry-after", b"5"),)
_THREADS = 2  # its own, so that a slow repository does not make the server look dead


class HealthCalls:
    """The calls of those who watch over servers."""

    def __init__(
        self, counter: Counter, metrics: Metrics, database: Callable[[], str] | None = None
    ) -> None:
        """`database` says why that cannot be used; "" if it can."""
        self._counter = counter
        self._database = database
        self._metrics = metrics
        self._blocking = Blocking(_THREADS)
        self._warmed = asyncio.Event()
        self._problem = ""  # why nothing could be loaded

    async def warm(self) -> None:
        """Load what is configured, before anybody asks for it."""
        try:
            await self._blocking.run(self._counter.snapshot)
        except SkillhallError as error:
            self._problem = str(error)
        except Exception as error:  # noqa: BLE001 - whoever asks for prompts meets it again
            self._problem = "the prompts cannot be loaded"
            # Its words may hold a secret.
            ERRORS.error("%s: %s", self._problem, type(error).__name__)
        finally:
            self._warmed.set()

    async def alive(self, exchange: Exchange) -> Answer:
        """Always fine, while it can say so."""
        return success(b'{"status":"ok"}', exchange.request_id)

    async def ready(self, exchange: Exchange) -> Answer:
        """How every source stands, and the database; fine if all can be asked for."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._warmed.wait(), _PATIENCE)
        sources = [_as_json(one) for one in await self._blocking.run(self._counter.status)]
        problem = self._problem if self._warmed.is_set() else "the prompts are being loaded"
        lost = await self._lost()
        if lost or (problem and not (sources and self._warmed.is_set())):
            details = {"sources": sources, **_database(lost)}
            raise Refused("not_ready", lost or problem, headers=_RETRY, details=details)
        known = _database("ok") if self._database is not None else {}
        data = {"status": "ready", "sources": sources, **known}
        return success(encoded(data), exchange.request_id)

    async def _lost(self) -> str:
        """Why the database cannot be used; "" if it can, or if there is none."""
        if self._database is None:
            return ""
        try:
            return await asyncio.wait_for(self._blocking.run(self._database), _DATABASE_PATIENCE)
        except TimeoutError:
            return "the database cannot be used: it does not answer"

    async def figures(self, exchange: Exchange) -> Answer:  # noqa: ARG002 - a call's signature
        """The figures for Prometheus."""
        text = await self._blocking.run(self._metrics.text)
        return Answer(200, ((b"content-type", CONTENT_TYPE),), (text,))


def _database(state: str) -> dict[str, object]:
    return {"database": state} if state else {}


def _as_json(status: SourceStatus) -> dict[str, object]:
    report: dict[str, object] = {
        "source": status.source,
        "prompts": status.prompts,
        "skipped": len(status.skipped),
    }
    if status.commit:
        report["commit"] = status.commit
    if status.checked:
        report["checked"] = status.checked
    if status.stale:
        report["stale"] = status.stale._asdict()
    return report
