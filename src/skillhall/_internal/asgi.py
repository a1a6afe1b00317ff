"""The server: one ASGI app with all surfaces, and the process that runs it."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import signal
import socket
import sys
import threading
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn

from skillhall._internal.http.auth_middleware import AuthMiddleware
from skillhall._internal.http.bounded_protocol import BoundedProtocol
from skillhall._internal.http.credentials import AcceptedTokens, Credentials, NoTokens
from skillhall._internal.http.errors import internal_error_response, shutdown_response
from skillhall._internal.http.metrics import Metrics
from skillhall._internal.http.redaction import Redactor
from skillhall._internal.http.request_middleware import RequestLogMiddleware
from skillhall._internal.http.thread_pool import WorkerPool
from skillhall._internal.mcp.server import SkillServer
from skillhall._internal.mcp.streamable_http import McpMiddleware, SessionLimits
from skillhall._internal.policy.token_strength import is_weak_token
from skillhall._internal.rest.app import HeadAsGet, build_fastapi_app
from skillhall._internal.rest.endpoint import FastPath
from skillhall._internal.rest.health import HealthHandlers
from skillhall._internal.rest.prompt_handlers import PromptHandlers
from skillhall._internal.rest.routes import (
    build_health_router,
    build_prompt_router,
    build_webhook_router,
)
from skillhall._internal.rest.sessions.routes import build_session_router
from skillhall._internal.rest.skill_handlers import SkillHandlers
from skillhall._internal.rest.skill_routes import build_skill_router, build_well_known_router
from skillhall._internal.rest.webhooks import WebhookHandlers
from skillhall._internal.rest.well_known import WellKnownHandlers
from skillhall._internal.web.routes import build_web_router
from skillhall._internal.web.site import Site, render_unrouted_page
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import APIRouter
    from starlette.types import ASGIApp

    from skillhall._internal.prompts.service import PromptService
    from skillhall._internal.rest.endpoint import FastRouteFinder
    from skillhall._internal.settings import Secret, ServerSettings, Settings
    from skillhall._internal.skill_store.collection import Collection
    from skillhall._internal.workspace.workspace import LazyWorkspace

GRACE_PERIOD = 5  # seconds for open requests after a stop signal
_MAX_BUFFERED_RECORDS = 1000
_WORKER_THREADS = 16  # for git, disk and database access
# Python's default of 5 ms lets a busy worker thread delay the event loop noticeably.
_SWITCH_INTERVAL = 0.0005
_MAX_PORT = 65_535
_MAX_LIMIT = 1_000_000
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_NEW_TOKEN_COMMAND = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"  # noqa: S105 - a command


class ShutdownSignal:
    """Event that ends open streams before the server stops."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Signal the shutdown. Call it in the event loop."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for the shutdown."""
        await self._event.wait()


@dataclass(frozen=True, slots=True)
class Services:
    """The services of a server, with additional routers and fast routes."""

    prompt_service: PromptService
    collection: Collection | None = None
    workspace: LazyWorkspace | None = None
    routers: tuple[APIRouter, ...] = ()
    fast_routes: tuple[FastRouteFinder, ...] = ()
    shutdown: ShutdownSignal = field(default_factory=ShutdownSignal)
    accepted_tokens: AcceptedTokens = field(default_factory=NoTokens)
    check_database: Callable[[], str] | None = None  # returns why it is unavailable, or ""


def build_app(services: Services, settings: Settings) -> ASGIApp:
    """Build the app: request log, authentication, MCP, fast path, then FastAPI."""
    service, server, collection = services.prompt_service, settings.server, services.collection
    workers, metrics = WorkerPool(_WORKER_THREADS), Metrics(service.status)
    prompts = PromptHandlers(service, workers)
    health = HealthHandlers(service, metrics, services.check_database)
    webhooks = WebhookHandlers(service, workers, server.webhook_secret)
    credentials = Credentials(server, services.accepted_tokens)
    shutdown, workspace = services.shutdown.wait, services.workspace
    routers = [
        build_prompt_router(prompts),
        build_health_router(health),
        build_webhook_router(webhooks),
    ]
    if collection is not None:
        routers += [
            build_skill_router(SkillHandlers(collection, workers)),
            build_well_known_router(WellKnownHandlers(collection, workers)),
            build_web_router(
                Site(collection, service, settings, workers, credentials, shutdown, workspace)
            ),
        ]
    if workspace is not None:
        routers.append(build_session_router(workspace, workers, shutdown))
    error_page = None if collection is None else render_unrouted_page
    fastapi = build_fastapi_app((*routers, *services.routers), health.preload, error_page)
    fast_routes = (prompts.find_fast_route, *services.fast_routes)
    app: ASGIApp = FastPath(HeadAsGet(fastapi), fast_routes)
    if collection is not None:
        app = _mount_mcp(app, collection, services, _mcp_session_limits(server))
    secrets = (
        server.auth_token,
        server.webhook_secret,
        settings.database_url,
        *settings.tokens.values(),
    )
    return RequestLogMiddleware(
        AuthMiddleware(app, server, credentials),
        metrics=metrics,
        redactor=Redactor(secrets),
        build_internal_error=internal_error_response,
        build_shutdown_error=shutdown_response,
    )


def _mount_mcp(
    app: ASGIApp, collection: Collection, services: Services, sessions: SessionLimits | None
) -> ASGIApp:
    server = SkillServer(collection, services.prompt_service, is_stateful=sessions is not None)
    return McpMiddleware(app, server, services.shutdown.wait, sessions)


def _mcp_session_limits(server: ServerSettings) -> SessionLimits | None:
    """Return the limits for MCP sessions, or `None` without sessions. Raises: ConfigInvalid."""
    limits = SessionLimits(
        _parse_positive("SKILLHALL_MCP_MAX_SESSIONS", server.mcp_max_sessions),
        _parse_positive("SKILLHALL_MCP_SESSION_TIMEOUT", server.mcp_session_timeout),
    )
    return None if server.mcp_stateless else limits


def listen(settings: ServerSettings) -> socket.socket:
    """Return a socket that listens on the configured address.

    Raises: ConfigInvalid if the address is not allowed or not available.
    """
    port, address = _parse_port(settings.port), _resolve_host(settings.host)
    if settings.auth_token is None and not address.is_loopback:
        raise ConfigInvalid(
            "SKILLHALL_HOST",
            f"{settings.host!r} can be reached from other machines, but no token is set",
            "set SKILLHALL_AUTH_TOKEN, or listen at 127.0.0.1",
        )
    if not address.is_loopback or _has_public_hostname(settings):
        _reject_weak_token(settings.auth_token)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((str(address), port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise ConfigInvalid(
            "SKILLHALL_PORT",
            f"cannot listen on {settings.host} port {port}: {(error.strerror or '').lower()}",
            "stop what listens there, or choose another with --port",
        ) from None
    return listening


def serve(
    services: Services,
    settings: Settings,
    listening_socket: socket.socket,
    on_started: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal arrives. Calls `on_started` when the server accepts requests."""
    ServerProcess(services, settings, on_started).run([listening_socket])


class ServerProcess(uvicorn.Server):
    """A uvicorn server that stops within the grace period after SIGTERM or SIGINT."""

    def __init__(
        self,
        services: Services,
        settings: Settings,
        on_started: Callable[[], None] = lambda: None,
    ) -> None:
        config = uvicorn.Config(
            build_app(services, settings),
            http=BoundedProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_PERIOD,
        )
        super().__init__(config)
        self._shutdown_signal = services.shutdown
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening and call `on_started`."""
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End open streams first; otherwise they would use up the grace period."""
        self._shutdown_signal.set()
        await super().shutdown(sockets)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Run the server. A signal that stops it is not a failure."""
        if threading.current_thread() is not threading.main_thread():
            super().run(sockets)
            return
        sys.setswitchinterval(_SWITCH_INTERVAL)
        # uvicorn raises the signal again after it has stopped, which would kill the process.
        signals = (signal.SIGTERM, signal.SIGINT)
        previous = {number: signal.signal(number, _ignore_signal) for number in signals}
        try:
            super().run(sockets)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def log_to_stderr(level: str) -> Callable[[], None]:
    """Log to stderr: requests as JSON lines, everything else as text.

    Warnings about sources are buffered until the returned function is called, because the first
    line of output must be the address that the server listens on.
    """
    plain = logging.StreamHandler()
    plain.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    json_lines = logging.StreamHandler()
    json_lines.setFormatter(logging.Formatter("%(message)s"))
    buffered = logging.handlers.MemoryHandler(_MAX_BUFFERED_RECORDS, logging.CRITICAL, plain)
    for name, handler, min_level in (
        ("skillhall.access", json_lines, level),
        ("skillhall.server", plain, level),
        ("skillhall.skipped", buffered, level),
        ("skillhall.mcp", plain, level),
        ("mcp", plain, "ERROR"),
        ("uvicorn.error", plain, "ERROR"),  # the CLI reports start and stop
        ("python_multipart", plain, "ERROR"),  # the client gets the warnings about its form
    ):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(min_level)

    def release() -> None:
        buffered.flushLevel = logging.NOTSET
        buffered.flush()

    return release


def _has_public_hostname(settings: ServerSettings) -> bool:
    """Whether other machines reach this server by a public URL, through a proxy."""
    name = urlsplit(settings.public_url).hostname
    return name is not None and name not in _LOOPBACK_NAMES


def _reject_weak_token(token: Secret | None) -> None:
    """Reject a token that can be guessed. Raises: ConfigInvalid."""
    if token is not None and is_weak_token(token.reveal()):
        raise ConfigInvalid(
            "SKILLHALL_AUTH_TOKEN",
            "the token is too easy to guess for a server that other machines can reach",
            f"create one with: {_NEW_TOKEN_COMMAND}",
        )


def _resolve_host(host: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(host)
    except ValueError:
        pass  # a host name
    try:
        addresses = socket.getaddrinfo(host or None, None, type=socket.SOCK_STREAM)
        return ip_address(addresses[0][4][0])
    except (OSError, ValueError):
        raise ConfigInvalid("SKILLHALL_HOST", f"cannot resolve {host!r}") from None


def _parse_port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= _MAX_PORT:
        return int(text)
    raise ConfigInvalid("SKILLHALL_PORT", f"{text!r} is not a port", "give a number up to 65535")


def _parse_positive(name: str, text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_LIMIT))
    if is_number and 0 < int(text) <= _MAX_LIMIT:
        return int(text)
    problem = f"{text!r} is not a positive integer"
    raise ConfigInvalid(name, problem, f"give a number from 1 to {_MAX_LIMIT}")


def _ignore_signal(*_: object) -> None:
    """Do nothing: the signal has already stopped the server."""
