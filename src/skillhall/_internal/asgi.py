"""The server: one ASGI app out of all surfaces, and the process that runs it."""

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
from skillhall._internal.web.site import render_unrouted_page
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import APIRouter
    from starlette.types import ASGIApp

    from skillhall._internal.prompts.prompt_model import PromptServiceProtocol
    from skillhall._internal.rest.endpoint import FastRouteFinder
    from skillhall._internal.settings import Secret, ServerSettings, Settings
    from skillhall._internal.skill_store.collection import Collection
    from skillhall._internal.workspace.workspace import LazyWorkspace

GRACE_PERIOD = 5  # seconds that open requests have when the server is told to stop
_MAX_BUFFERED_RECORDS = 1000  # log records that wait at most
_WORKER_THREADS = 16  # for work that may touch git or the disk
_SWITCH_INTERVAL = (
    0.0005  # seconds a thread works before the event loop gets its turn; Python waits 0.005
)
_MAX_PORT = 65_535
_MAX_LIMIT = 1_000_000
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_NEW_TOKEN_COMMAND = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"  # noqa: S105 - a command


class ShutdownSignal:
    """Tells streams that the server is about to stop, so that they end by themselves."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """From now on; called in the event loop."""
        self._event.set()

    async def wait(self) -> None:
        """Until it is so."""
        await self._event.wait()


@dataclass(frozen=True, slots=True)
class Services:
    """What the server serves; further surfaces bring their routers and hot routes."""

    prompt_service: PromptServiceProtocol
    collection: Collection | None = None
    workspace: LazyWorkspace | None = None
    routers: tuple[APIRouter, ...] = ()
    fast_routes: tuple[FastRouteFinder, ...] = ()
    shutdown: ShutdownSignal = field(default_factory=ShutdownSignal)
    accepted_tokens: AcceptedTokens = field(
        default_factory=NoTokens
    )  # accepted besides the operator's
    check_database: Callable[[], str] | None = None  # says why that cannot be used


def build_app(services: Services, settings: Settings) -> ASGIApp:
    """The whole app: what observes, what guards, what is hot, then the framework."""
    counter, server = services.prompt_service, settings.server
    blocking, metrics = WorkerPool(_WORKER_THREADS), Metrics(counter.status)
    prompts, health = (
        PromptHandlers(counter, blocking),
        HealthHandlers(counter, metrics, services.check_database),
    )
    hooks = WebhookHandlers(counter, blocking, server.webhook_secret)
    routers: tuple[APIRouter, ...] = (
        build_prompt_router(prompts),
        build_health_router(health),
        build_webhook_router(hooks),
    )
    keys = Credentials(server, services.accepted_tokens)
    if services.collection is not None:
        routers = (
            *routers,
            build_skill_router(SkillHandlers(services.collection, blocking)),
            build_well_known_router(WellKnownHandlers(services.collection, blocking)),
            build_web_router(
                services.collection,
                counter,
                settings,
                blocking,
                keys,
                services.shutdown.wait,
                services.workspace,
            ),
        )
    if services.workspace is not None:
        stopped = services.shutdown.wait
        routers = (*routers, build_session_router(services.workspace, blocking, stopped))
    page = None if services.collection is None else render_unrouted_page
    behind = build_fastapi_app((*routers, *services.routers), health.preload, page)
    front: ASGIApp = FastPath(HeadAsGet(behind), (prompts.find_fast_route, *services.fast_routes))
    if services.collection is not None:
        front = _mount_mcp(front, services.collection, services, _mcp_session_limits(server))
    own = (server.auth_token, server.webhook_secret, settings.database_url)
    secrets = (*own, *settings.tokens.values())
    return RequestLogMiddleware(
        AuthMiddleware(front, server, keys),
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
    """A socket at the configured address.

    Raises: ConfigInvalid if it may not or cannot be listened at.
    """
    port, address = _parse_port(settings.port), _resolve_host(settings.host)
    if settings.auth_token is None and not address.is_loopback:
        raise ConfigInvalid(
            "SKILLHALL_HOST",
            f"{settings.host!r} can be reached from other machines, and there is no token",
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
            f"port {port} of {settings.host} cannot be used: {(error.strerror or '').lower()}",
            "stop what listens there, or choose another with --port",
        ) from None
    return listening


def serve(
    services: Services,
    settings: Settings,
    listening_socket: socket.socket,
    on_started: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal comes; `started` is told once requests are answered."""
    ServerProcess(services, settings, on_started).run([listening_socket])


class ServerProcess(uvicorn.Server):
    """One process, one worker. It ends within the grace period after SIGTERM or SIGINT."""

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
        """Listen, and tell that it is so."""
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams first: they would keep the server until the grace period is over."""
        self._shutdown_signal.set()
        await super().shutdown(sockets)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve; a signal that ended it is no failure."""
        if threading.current_thread() is not threading.main_thread():
            super().run(sockets)
            return
        sys.setswitchinterval(_SWITCH_INTERVAL)
        before = {
            one: signal.signal(one, _ignore_signal) for one in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            super().run(sockets)
        finally:
            for one, what in before.items():
                signal.signal(one, what)


def log_to_stderr(level: str) -> Callable[[], None]:
    """Send what the server tells to stderr: requests as JSON lines, the rest as text.

    Warnings about sources wait for the function that is returned: a repository may be read before
    the server says where it listens, which is its first line.
    """
    plain = logging.StreamHandler()
    plain.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    lines = logging.StreamHandler()
    lines.setFormatter(logging.Formatter("%(message)s"))
    held = logging.handlers.MemoryHandler(_MAX_BUFFERED_RECORDS, logging.CRITICAL, plain)
    for name, handler, at_least in (
        ("skillhall.access", lines, level),
        ("skillhall.server", plain, level),
        ("skillhall.skipped", held, level),
        ("skillhall.mcp", plain, level),
        ("mcp", plain, "ERROR"),
        ("uvicorn.error", plain, "ERROR"),  # that it started and stopped is ours to tell
        ("python_multipart", plain, "ERROR"),  # what is wrong with a form is told to its sender
    ):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(at_least)

    def release() -> None:
        held.flushLevel = logging.NOTSET
        held.flush()

    return release


def _has_public_hostname(settings: ServerSettings) -> bool:
    """Whether other machines reach this server by a name, through a proxy."""
    name = urlsplit(settings.public_url).hostname
    return name is not None and name not in _LOOPBACK_NAMES


def _reject_weak_token(token: Secret | None) -> None:
    """Raises: ConfigInvalid for a token that can be guessed."""
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
        pass  # a name, then
    try:
        found = socket.getaddrinfo(host or None, None, type=socket.SOCK_STREAM)
        return ip_address(found[0][4][0])
    except (OSError, ValueError):
        raise ConfigInvalid("SKILLHALL_HOST", f"{host!r} is no address here") from None


def _parse_port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= _MAX_PORT:
        return int(text)
    raise ConfigInvalid("SKILLHALL_PORT", f"{text!r} is no port", "give a number up to 65535")


def _parse_positive(name: str, text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_LIMIT))
    if is_number and 0 < int(text) <= _MAX_LIMIT:
        return int(text)
    problem = f"{text!r} is not a positive integer"
    raise ConfigInvalid(name, problem, f"give a number from 1 to {_MAX_LIMIT}")


def _ignore_signal(*_: object) -> None:
    """What is left to do about a signal that has ended the server."""
