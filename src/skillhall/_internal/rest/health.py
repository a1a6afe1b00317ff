"""Handlers for liveness, readiness and metrics."""

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
    from skillhall._internal.prompts.prompt_model import SourceStatus
    from skillhall._internal.prompts.service import PromptService

_READY_TIMEOUT = 1.0  # seconds to wait for the first load
_DATABASE_TIMEOUT = 2.0  # seconds
_RETRY_HEADERS = ((b"retry-after", b"5"),)
_THREADS = 2  # a pool of its own: slow repositories must not make the server look dead


class HealthHandlers:
    """Handlers for probes and monitoring."""

    def __init__(
        self,
        prompt_service: PromptService,
        metrics: Metrics,
        check_database: Callable[[], str] | None = None,
    ) -> None:
        """`check_database` returns why the database is unavailable, or ""."""
        self._prompt_service = prompt_service
        self._check_database = check_database
        self._metrics = metrics
        self._workers = WorkerPool(_THREADS)
        self._preloaded = asyncio.Event()
        self._load_problem = ""

    async def preload(self) -> None:
        """Load the configured source, so that the first request need not wait."""
        try:
            await self._workers.run(self._prompt_service.snapshot)
        except SkillhallError as error:
            self._load_problem = str(error)
        except Exception as error:  # noqa: BLE001 - the next request for prompts raises it again
            self._load_problem = "the prompts cannot be loaded"
            # Only the type: the message may contain a secret.
            SERVER_LOGGER.error("%s: %s", self._load_problem, type(error).__name__)
        finally:
            self._preloaded.set()

    async def get_liveness(self, request: HttpRequest) -> ByteResponse:
        """Return 200 while the server runs."""
        return success_response(b'{"status":"ok"}', request.request_id)

    async def get_readiness(self, request: HttpRequest) -> ByteResponse:
        """Return the status of the sources and the database; 503 if one is not ready."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._preloaded.wait(), _READY_TIMEOUT)
        statuses = await self._workers.run(self._prompt_service.status)
        sources = [_serialize_source_status(status) for status in statuses]
        is_loaded = self._preloaded.is_set()
        problem = self._load_problem if is_loaded else "the prompts are being loaded"
        database_problem = await self._database_problem()
        if database_problem or (problem and not (sources and is_loaded)):
            details = {"sources": sources, **_database_field(database_problem)}
            message = database_problem or problem
            raise HttpError("not_ready", message, headers=_RETRY_HEADERS, details=details)
        database = _database_field("ok") if self._check_database is not None else {}
        data = {"status": "ready", "sources": sources, **database}
        return success_response(encode_json(data), request.request_id)

    async def _database_problem(self) -> str:
        """Return why the database is unavailable; "" if it is available or not configured."""
        if self._check_database is None:
            return ""
        try:
            return await asyncio.wait_for(
                self._workers.run(self._check_database), _DATABASE_TIMEOUT
            )
        except TimeoutError:
            return "the database cannot be used: it does not respond"

    async def get_metrics(self, request: HttpRequest) -> ByteResponse:  # noqa: ARG002 - a handler's signature
        """Return the metrics in the Prometheus text format."""
        text = await self._workers.run(self._metrics.render)
        return ByteResponse(200, ((b"content-type", CONTENT_TYPE),), (text,))


def _database_field(state: str) -> dict[str, object]:
    return {"database": state} if state else {}


def _serialize_source_status(status: SourceStatus) -> dict[str, object]:
    data: dict[str, object] = {
        "source": status.source,
        "prompts": status.prompts,
        "skipped": len(status.skipped),
    }
    if status.commit:
        data["commit"] = status.commit
    if status.checked:
        data["checked"] = status.checked
    if status.stale:
        data["stale"] = status.stale._asdict()
    return data
