"""The server: one ASGI app with all surfaces, and the process that runs it."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn
from fastapi import APIRouter
from starlette.types import ASGIApp

from skillhall._internal.agents.usage_recorder import UsageRecorder
from skillhall._internal.background import limit_collector_pauses
from skillhall._internal.embeddings.embedding_job import BackgroundEmbedding
from skillhall._internal.http.access import record_failed_sign_in, record_refusal
from skillhall._internal.http.auth_middleware import AuthMiddleware
from skillhall._internal.http.bounded_protocol import BoundedProtocol
from skillhall._internal.http.credentials import (
    AcceptedTokens,
    BrowserSignIns,
    Credentials,
    KnownUsers,
)
from skillhall._internal.http.metrics import Metrics
from skillhall._internal.http.redaction import Redactor
from skillhall._internal.http.request_middleware import RequestLogMiddleware
from skillhall._internal.http.streaming import OpenStreams
from skillhall._internal.http.thread_pool import PoolLimits, Work, WorkerPools
from skillhall._internal.mcp.streamable_http import McpMiddleware, SessionLimits
from skillhall._internal.policy.access.token_strength import MIN_LENGTH, is_weak_token
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.rest import (
    account_routes,
    audit_routes,
    health,
    prompt_routes,
    revocation_routes,
    skill_routes,
    version_routes,
    webhooks,
    well_known_routes,
)
from skillhall._internal.rest.app import HeadAsGet, build_fastapi_app
from skillhall._internal.rest.health import HealthMonitor
from skillhall._internal.rest.prompt_responses import PromptFastPath, PromptResponder
from skillhall._internal.rest.sessions import (
    block_routes,
    event_stream,
    import_routes,
    session_routes,
    template_routes,
)
from skillhall._internal.rest.sessions.session_viewers import SessionViewers
from skillhall._internal.rest.webhooks import WebhookReceiver
from skillhall._internal.settings import Secret, ServerSettings, Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.trust.server_trust import ServerTrust
from skillhall._internal.web.rendering import render_unrouted_page
from skillhall._internal.web.routes import build_web_router
from skillhall._internal.web.site import Site
from skillhall._internal.wiring.database import RuntimeSettings, ServerAudit
from skillhall._internal.workspace.workspace import LazyWorkspace
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from skillhall._internal.mcp.server import SkillServer
    from skillhall._internal.wiring.database import Accounts  # imports the database driver

_SESSION_ROUTES = (session_routes, block_routes, template_routes, import_routes, event_stream)
GRACE_PERIOD = 5  # seconds for open requests after a stop signal
_MAX_BUFFERED_RECORDS = 1000
# Seconds after which MCP shows a change of the skills or rules, as for a revocation. A collection
# detects changes cheaply, even if its first scan was slow.
_MAX_VIEW_AGE = 1.0
_MCP_AGENT = "mcp"  # in the usage log: all clients of the MCP server
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
    """The services of a server, with additional routers."""

    prompt_service: PromptService
    collection: Collection | None = None
    workspace: LazyWorkspace | None = None
    routers: tuple[APIRouter, ...] = ()
    shutdown: ShutdownSignal = field(default_factory=ShutdownSignal)
    accepted_tokens: AcceptedTokens | None = None  # in addition to the operator's token
    sign_ins: BrowserSignIns | None = None
    users: KnownUsers | None = None
    accounts: Accounts | None = None  # changes users and tokens
    check_database: Callable[[], str] | None = None  # returns why it is unavailable, or ""
    embedding: BackgroundEmbedding | None = None
    audit: ServerAudit | None = None
    trust: ServerTrust | None = None
    runtime: RuntimeSettings | None = None


def build_app(services: Services, settings: Settings) -> ASGIApp:
    """Build the app: request log, authentication, MCP, fast path, then FastAPI."""
    service, server, collection = services.prompt_service, settings.server, services.collection
    workspace, shutdown = services.workspace, services.shutdown.wait
    pools, streams = _build_pools(server, collection), _build_open_streams(server)
    metrics = Metrics(service.status, pools.status, streams)
    monitor = HealthMonitor(
        service, metrics, services.check_database, services.embedding, services.audit
    )
    credentials = Credentials(server, services.accepted_tokens, services.sign_ins, services.users)
    if services.audit is not None:
        credentials.on_failure = partial(record_failed_sign_in, services.audit)
    responder = PromptResponder(service, pools)
    routers = [prompt_routes.router, health.router, webhooks.router]
    error_page = None
    if collection is not None:
        site = Site(
            collection,
            service,
            settings,
            pools,
            credentials,
            shutdown,
            workspace,
            services.accounts,
            services.audit,
            services.trust,
            services.check_database,
            services.embedding,
            services.runtime,
        )
        metrics.add_pool(lambda: site.conversations.status)
        routers += [skill_routes.router, version_routes.router, well_known_routes.router]
        routers.append(build_web_router(site))
        error_page = partial(render_unrouted_page, site)
    if services.accounts is not None:
        routers.append(account_routes.router)
    if services.audit is not None:
        routers.append(audit_routes.router)
    if services.trust is not None:
        routers.append(revocation_routes.router)
    if workspace is not None:
        routers += [module.router for module in _SESSION_ROUTES]
    fastapi = build_fastapi_app((*routers, *services.routers), monitor.preload, error_page)
    # The dependencies of the routes read these.
    state = fastapi.state
    state.prompts, state.collection, state.workspace = responder, collection, workspace
    state.health, state.wait_for_shutdown, state.streams = monitor, shutdown, streams
    state.viewers = SessionViewers()
    state.pools, state.accounts, state.server_settings = pools, services.accounts, server
    state.audit, state.trust = services.audit, services.trust
    state.runtime = services.runtime
    state.webhook = WebhookReceiver(service, server.webhook_secret)
    app: ASGIApp = PromptFastPath(HeadAsGet(fastapi), responder)
    if collection is not None:
        limits = SessionLimits(
            _parse_positive("SKILLHALL_MCP_MAX_SESSIONS", server.mcp_max_sessions),
            _parse_positive("SKILLHALL_MCP_SESSION_TIMEOUT", server.mcp_session_timeout),
        )

        def build_mcp_server() -> SkillServer:
            # The SDK takes as long to import as everything else together.
            from skillhall._internal.mcp.server import SkillServer  # noqa: PLC0415

            return SkillServer(
                collection,
                service,
                is_stateful=not server.mcp_stateless,
                max_view_age=_MAX_VIEW_AGE,
                workers=pools[Work.DISK],
                usage=UsageRecorder(settings, _MCP_AGENT),
            )

        session_limits = None if server.mcp_stateless else limits
        app = McpMiddleware(app, build_mcp_server, shutdown, session_limits)
    secrets = (
        server.auth_token,
        server.webhook_secret,
        server.oidc.client_secret,
        settings.database_url,
        settings.embeddings.key,
        *settings.tokens.values(),
    )
    app = AuthMiddleware(app, server, credentials, pools)
    on_refusal = None if services.audit is None else partial(record_refusal, services.audit)
    return RequestLogMiddleware(
        app, metrics=metrics, redactor=Redactor(secrets), on_refusal=on_refusal
    )


def _build_pools(server: ServerSettings, collection: Collection | None) -> WorkerPools:
    limits = PoolLimits(
        _parse_positive("SKILLHALL_REQUEST_TIMEOUT", server.request_timeout),
        _parse_positive("SKILLHALL_MAX_FETCHES", server.max_fetches),
        _parse_positive("SKILLHALL_MAX_FETCHES_PER_CLIENT", server.max_fetches_per_client),
    )
    in_database = collection is not None and collection.store.is_in_database
    return WorkerPools(limits, store_in_database=in_database)


def _build_open_streams(server: ServerSettings) -> OpenStreams:
    return OpenStreams(
        _parse_positive("SKILLHALL_MAX_STREAMS", server.max_streams),
        _parse_positive("SKILLHALL_MAX_STREAMS_PER_CLIENT", server.max_streams_per_client),
    )


def listen(settings: ServerSettings) -> socket.socket:
    """Return a socket that listens on the configured address.

    Raises: ConfigInvalid if the address is not allowed or not available.
    """
    port, address = _parse_port(settings.port), _resolve_host(settings.host)
    if settings.auth_token is None and not address.is_loopback:
        raise ConfigInvalid(
            "SKILLHALL_HOST",
            f"{settings.host!r} can be reached from other machines, but no token is set",
            "set SKILLHALL_AUTH_TOKEN, or listen on 127.0.0.1",
        )
    # With a public URL, other machines reach this server through a proxy.
    public_name = urlsplit(settings.public_url).hostname or "localhost"
    if not address.is_loopback or public_name not in _LOOPBACK_NAMES:
        _check_secret("SKILLHALL_AUTH_TOKEN", "token", settings.auth_token)
        _check_secret("SKILLHALL_WEBHOOK_SECRET", "secret", settings.webhook_secret)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        # On Windows, this option would let two servers use the same port.
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((str(address), port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise ConfigInvalid(
            "SKILLHALL_PORT",
            f"cannot listen on {settings.host} port {port}: {(error.strerror or '').lower()}",
            "stop the program that uses the port, or choose another with --port",
        ) from None
    return listening


def serve(
    services: Services,
    settings: Settings,
    listening_socket: socket.socket,
    on_started: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal arrives; call `on_started` when requests are accepted."""
    ServerProcess(services, settings, on_started).run([listening_socket])


class ServerProcess(uvicorn.Server):
    """A uvicorn server that stops within the grace period after SIGTERM or SIGINT."""

    def __init__(
        self, services: Services, settings: Settings, on_started: Callable[[], None] = lambda: None
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
        if threading.current_thread() is threading.main_thread():  # else it is not our process
            limit_collector_pauses()
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End open streams, which would use up the grace period, and shut down."""
        self._shutdown_signal.set()
        await super().shutdown(sockets)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Run the server until it stops. A stop signal does not raise an error."""
        # Only the main thread can set signal handlers.
        if threading.current_thread() is not threading.main_thread():
            super().run(sockets)
            return
        sys.setswitchinterval(_SWITCH_INTERVAL)
        # uvicorn raises the signal again after it has stopped, which would kill the process.
        signals = (signal.SIGTERM, signal.SIGINT)
        previous = {number: signal.signal(number, lambda *_: None) for number in signals}
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
        ("skillhall.embeddings", buffered, level),
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


def _check_secret(variable: str, noun: str, secret: Secret | None) -> None:
    """Check that a secret is hard to guess. Raises: ConfigInvalid."""
    if secret is not None and is_weak_token(secret.reveal()):
        problem = f"the {noun} is too easy to guess for a server that other machines can reach"
        hint = f"create one with at least {MIN_LENGTH} characters: {_NEW_TOKEN_COMMAND}"
        raise ConfigInvalid(variable, problem, hint)


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
    raise ConfigInvalid(
        "SKILLHALL_PORT", f"{text!r} is not a port number", "use a number from 0 to 65535"
    )


def _parse_positive(name: str, text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_LIMIT))
    if is_number and 0 < int(text) <= _MAX_LIMIT:
        return int(text)
    problem = f"{text!r} is not a positive integer"
    raise ConfigInvalid(name, problem, f"use a number from 1 to {_MAX_LIMIT}")
