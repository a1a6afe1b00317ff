"""Liveness, readiness and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.embeddings.embedding_job import BackgroundEmbedding, JobStatus
from skillhall._internal.http.access import needs
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.metrics import CONTENT_TYPE, Metrics
from skillhall._internal.http.request_middleware import SERVER_LOGGER
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.http.thread_pool import WorkerPool
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.prompt_server.prompt_model import SourceStatus
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.rest import responses
from skillhall._internal.rest.api_route import ApiRoute
from skillhall._internal.rest.responses import PUBLIC, describe_content, describe_errors
from skillhall._internal.rest.route_parameters import app_state
from skillhall._internal.wiring.database import ServerAudit
from skillhall.errors import SkillhallError

_TIMEOUT = 2.0  # seconds for a readiness check, whatever hangs
_LOAD_TIMEOUT = 1.0  # seconds of them to wait for the first load
_RETRY_HEADERS = ((b"retry-after", b"5"),)
_NOT_READY = describe_errors(
    {503: "The sources are not loaded yet, or the database is unavailable."}
)


class HealthMonitor:
    """State of the server for probes and monitoring."""

    def __init__(
        self,
        prompt_service: PromptService,
        metrics: Metrics,
        check_database: Callable[[], str] | None = None,
        embedding: BackgroundEmbedding | None = None,
        audit: ServerAudit | None = None,
    ) -> None:
        """`check_database` returns why the database is unavailable, or ""."""
        self._prompt_service = prompt_service
        self._check_database = check_database
        self._embedding = embedding
        self._audit = audit
        self._metrics = metrics
        # Pools of their own: what hangs must not make the server look dead, or block the others.
        self._workers = WorkerPool(1)
        self._load_workers = WorkerPool(1)
        self._database_workers = WorkerPool(1)
        self._database_check: asyncio.Task[str] | None = None
        self._preloaded = asyncio.Event()
        self._load_problem = ""

    async def preload(self) -> None:
        """Load the configured source, so that the first request need not wait."""
        try:
            await self._load_workers.run(self._prompt_service.snapshot)
        except SkillhallError as error:
            self._load_problem = str(error)
        except Exception as error:  # noqa: BLE001 - the next request for prompts raises it again
            self._load_problem = "the prompts cannot be loaded"
            # Only the type: the message may contain a secret.
            SERVER_LOGGER.error("%s: %s", self._load_problem, type(error).__name__)
        finally:
            self._preloaded.set()

    async def check_readiness(self) -> dict[str, object]:
        """Return the status of the sources and the database, within two seconds.

        A source that could be read once is ready, even if it is stale: its host may be down for all
        servers at the same time. Raises: HttpError if the server is not ready.
        """
        deadline = asyncio.get_running_loop().time() + _TIMEOUT
        database_check = self._start_database_check()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._preloaded.wait(), _LOAD_TIMEOUT)
        statuses = await self._source_statuses(deadline)
        is_loaded = self._preloaded.is_set()
        problem = self._load_problem if is_loaded else "the prompts are being loaded"
        if statuses and is_loaded:
            problem = ""
        elif statuses is None:
            problem = "the sources do not respond"
        data: dict[str, object] = {"sources": [*map(_serialize_source_status, statuses or ())]}
        if database_check is not None:
            database_problem = await _wait_until(deadline, database_check)
            problem = database_problem or problem
            if database_problem or not problem:
                data["database"] = database_problem or "ok"
        if self._embedding is not None:
            data["embeddings"] = _serialize_job_status(self._embedding.status)
        if self._audit is not None:
            # No reason to stop serving: it is the same on all servers.
            data["audit"] = "broken" if self._audit.is_broken else "ok"
        if problem:
            raise HttpError("not_ready", problem, headers=_RETRY_HEADERS, details=data)
        return {"status": "ready", **data}

    def _start_database_check(self) -> asyncio.Task[str] | None:
        """Return the running database check or start one; None without a database."""
        if self._check_database is None:
            return None
        if self._database_check is None or self._database_check.done():
            check = self._database_workers.run(self._check_database)
            self._database_check = asyncio.create_task(check)
        return self._database_check

    async def _source_statuses(self, deadline: float) -> Sequence[SourceStatus] | None:
        """Return the status of each source, or None if this takes too long."""
        try:
            async with asyncio.timeout_at(deadline):
                return await self._workers.run(self._prompt_service.status)
        except TimeoutError:
            return None

    async def render_metrics(self) -> bytes:
        """Return the metrics in the Prometheus text format."""
        return await self._workers.run(self._metrics.render)


_HealthDep = Annotated[HealthMonitor, app_state("health")]
router = APIRouter(tags=["health"], route_class=ApiRoute)


@router.get("/healthz", response_model=responses.LivenessResponse, openapi_extra=PUBLIC)
async def get_liveness() -> Response:
    """Return 200 while the server runs."""
    return SuccessResponse(b'{"status":"ok"}')


@router.get(
    "/readyz",
    response_model=responses.ReadinessResponse,
    responses=_NOT_READY,
    openapi_extra=PUBLIC,
)
async def get_readiness(health: _HealthDep) -> Response:
    """Return the status of the sources and the database, or 503 if not ready."""
    return SuccessResponse(await health.check_readiness())


@router.get(
    "/metrics",
    response_class=Response,
    responses=describe_content("Metrics in the Prometheus text format.", "text/plain"),
)
@needs(Action.READ)
async def get_metrics(health: _HealthDep) -> Response:
    """Return the metrics in the Prometheus text format."""
    return Response(await health.render_metrics(), media_type=CONTENT_TYPE)


async def _wait_until(deadline: float, check: asyncio.Task[str]) -> str:
    """Return the problem that a database check finds, or "" if there is none.

    A check that is still running at the deadline counts as a problem.
    """
    try:
        async with asyncio.timeout_at(deadline):
            return await asyncio.shield(check)
    except TimeoutError:
        return "the database cannot be used: it does not respond"


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


def _serialize_job_status(status: JobStatus) -> dict[str, object]:
    # Without the problem: this route is public, and the problem names the model's server.
    return {
        "state": status.state,
        "done": status.done,
        "total": status.total,
        "rate": round(status.rate, 1),
    }
