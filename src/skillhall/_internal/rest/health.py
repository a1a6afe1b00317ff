"""Whether the server lives, whether it is ready, and its figures."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.metrics import CONTENT_TYPE
from skillhall._internal.http.request_middleware import SERVER_LOGGER
from skillhall._internal.http.response import ByteResponse, encode_json, success_response
from skillhall._internal.http.thread_pool import WorkerPool
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.http.metrics import Metrics
    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.prompts.prompt_model import PromptServiceProtocol, SourceStatus

_READY_TIMEOUT = 1.0  # seconds to wait for the first load, before "not yet" is the answer
_DATABASE_TIMEOUT = 2.0  # seconds
_RETRY_HEADERS = ((b"retry-after", b"5"),)
_THREADS = 2  # its own, so that a slow repository does not make the server look dead


class HealthHandlers:
    """The calls of those who watch over servers."""

    def __init__(
        self,
        prompt_service: PromptServiceProtocol,
        metrics: Metrics,
        check_database: Callable[[], str] | None = None,
    ) -> None:
        """`database` says why that cannot be used; "" if it can."""
        self._prompt_service = prompt_service
        self._check_database = check_database
        self._metrics = metrics
        self._workers = WorkerPool(_THREADS)
        self._preloaded = asyncio.Event()
        self._load_problem = ""  # why nothing could be loaded

    async def preload(self) -> None:
        """Load what is configured, before anybody asks for it."""
        try:
            await self._workers.run(self._prompt_service.snapshot)
        except SkillhallError as error:
            self._load_problem = str(error)
        except Exception as error:  # noqa: BLE001 - whoever asks for prompts meets it again
            self._load_problem = "the prompts cannot be loaded"
            # Its words may hold a secret.
            SERVER_LOGGER.error("%s: %s", self._load_problem, type(error).__name__)
        finally:
            self._preloaded.set()

    async def get_liveness(self, request: HttpRequest) -> ByteResponse:
        """Always fine, while it can say so."""
        return success_response(b'{"status":"ok"}', request.request_id)

    async def get_readiness(self, request: HttpRequest) -> ByteResponse:
        """How every source stands, and the database; fine if all can be asked for."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._preloaded.wait(), _READY_TIMEOUT)
        sources = [
            _serialize_source_status(one)
            for one in await self._workers.run(self._prompt_service.status)
        ]
        problem = self._load_problem if self._preloaded.is_set() else "the prompts are being loaded"
        lost = await self._database_problem()
        if lost or (problem and not (sources and self._preloaded.is_set())):
            details = {"sources": sources, **_database_field(lost)}
            raise HttpError("not_ready", lost or problem, headers=_RETRY_HEADERS, details=details)
        known = _database_field("ok") if self._check_database is not None else {}
        data = {"status": "ready", "sources": sources, **known}
        return success_response(encode_json(data), request.request_id)

    async def _database_problem(self) -> str:
        """Why the database cannot be used; "" if it can, or if there is none."""
        if self._check_database is None:
            return ""
        try:
            return await asyncio.wait_for(
                self._workers.run(self._check_database), _DATABASE_TIMEOUT
            )
        except TimeoutError:
            return "the database cannot be used: it does not answer"

    async def get_metrics(self, request: HttpRequest) -> ByteResponse:  # noqa: ARG002 - a call's signature
        """The figures for Prometheus."""
        text = await self._workers.run(self._metrics.render)
        return ByteResponse(200, ((b"content-type", CONTENT_TYPE),), (text,))


def _database_field(state: str) -> dict[str, object]:
    return {"database": state} if state else {}


def _serialize_source_status(status: SourceStatus) -> dict[str, object]:
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
