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

from skillhall._internal.http.auth_middleware import Guard
from skillhall._internal.http.bounded_protocol import BoundedProtocol
from skillhall._internal.http.credentials import AcceptedTokens, Keys, NoTokens
from skillhall._internal.http.errors import internal_answer, stopping_answer
from skillhall._internal.http.metrics import Metrics
from skillhall._internal.http.redaction import Scrubber
from skillhall._internal.http.request_middleware import Observed
from skillhall._internal.http.thread_pool import Blocking
from skillhall._internal.mcp.server import SkillServer
from skillhall._internal.mcp.streamable_http import McpFront, SessionLimits
from skillhall._internal.policy.token_strength import is_trivial
from skillhall._internal.rest.app import HeadAsGet, framework
from skillhall._internal.rest.endpoint import HotFront
from skillhall._internal.rest.health import HealthCalls
from skillhall._internal.rest.prompt_handlers import PromptCalls
from skillhall._internal.rest.routes import health_router, prompt_router, webhook_router
from skillhall._internal.rest.sessions.routes import desk_router
from skillhall._internal.rest.skill_handlers import SkillCalls
from skillhall._internal.rest.skill_routes import installer_router, skill_router
from skillhall._internal.rest.webhooks import WebhookCalls
from skillhall._internal.rest.well_known import InstallerCalls
from skillhall._internal.web.routes import web_router
from skillhall._internal.web.site import unrouted_page
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import APIRouter
    from starlette.types import ASGIApp

    from skillhall._internal.prompts.prompt_model import Counter
    from skillhall._internal.rest.endpoint import HotRoute
    from skillhall._internal.settings import Secret, ServerSettings, Settings
    from skillhall._internal.skill_store.collection import Collection
    from skillhall._internal.workspace.workspace import Door

GRACE = 5  # seconds that open requests have when the server is told to stop
_HELD = 1000  # log records that wait at most
_THREADS = 16  # for work that may touch git or the disk
_TURN = 0.0005  # seconds a thread works before the event loop gets its turn; Python waits 0.005
_LARGEST_PORT = 65_535
_LARGEST_LIMIT = 1_000_000
_OWN_NAMES = ("localhost", "127.0.0.1", "::1")
_NEW_TOKEN = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"  # noqa: S105 - a command


class Stopping:
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

    counter: Counter
    collection: Collection | None = None
    workspace: Door | None = None
    routers: tuple[APIRouter, ...] = ()
    hot: tuple[HotRoute, ...] = ()
    stopping: Stopping = field(default_factory=Stopping)
    tokens: AcceptedTokens = field(default_factory=NoTokens)  # accepted besides the operator's
    database: Callable[[], str] | None = None  # says why that cannot be used


def build_app(services: Services, settings: Settings) -> ASGIApp:
    """The whole app: what observes, what guards, what is hot, then the framework."""
    counter, server = services.counter, settings.server
    blocking, metrics = Blocking(_THREADS), Metrics(counter.status)
    prompts, health = (
        PromptCalls(counter, blocking),
        HealthCalls(counter, metrics, services.database),
    )
    hooks = WebhookCalls(counter, blocking, server.webhook_secret)
    routers: tuple[APIRouter, ...] = (
        prompt_router(prompts),
        health_router(health),
        webhook_router(hooks),
    )
    keys = Keys(server, services.tokens)
    if services.collection is not None:
        routers = (
            *routers,
            skill_router(SkillCalls(services.collection, blocking)),
            installer_router(InstallerCalls(services.collection, blocking)),
            web_router(
                services.collection,
                counter,
                settings,
                blocking,
                keys,
                services.stopping.wait,
                services.workspace,
            ),
        )
    if services.workspace is not None:
        stopped = services.stopping.wait
        routers = (*routers, desk_router(services.workspace, blocking, stopped))
    page = None if services.collection is None else unrouted_page
    behind = framework((*routers, *services.routers), health.warm, page)
    front: ASGIApp = HotFront(HeadAsGet(behind), (prompts.hot, *services.hot))
    if services.collection is not None:
        front = _with_mcp(front, services.collection, services, _session_limits(server))
    own = (server.auth_token, server.webhook_secret, settings.database_url)
    secrets = (*own, *settings.tokens.values())
    return Observed(
        Guard(front, server, keys),
        metrics=metrics,
        scrubber=Scrubber(secrets),
        internal=internal_answer,
        stopping=stopping_answer,
    )


def _with_mcp(
    app: ASGIApp, collection: Collection, services: Services, sessions: SessionLimits | None
) -> ASGIApp:
    server = SkillServer(collection, services.counter, keeps_sessions=sessions is not None)
    return McpFront(app, server, services.stopping.wait, sessions)


def _session_limits(server: ServerSettings) -> SessionLimits | None:
    """Return the limits for MCP sessions, or `None` without sessions. Raises: ConfigInvalid."""
    limits = SessionLimits(
        _positive("SKILLHALL_MCP_MAX_SESSIONS", server.mcp_max_sessions),
        _positive("SKILLHALL_MCP_SESSION_TIMEOUT", server.mcp_session_timeout),
    )
    return None if server.mcp_stateless else limits


def listen(settings: ServerSettings) -> socket.socket:
    """A socket at the configured address.

    Raises: ConfigInvalid if it may not or cannot be listened at.
    """
    port, address = _port(settings.port), _address(settings.host)
    if settings.auth_token is None and not address.is_loopback:
        raise ConfigInvalid(
            "SKILLHALL_HOST",
            f"{settings.host!r} can be reached from other machines, and there is no token",
            "set SKILLHALL_AUTH_TOKEN, or listen at 127.0.0.1",
        )
    if not address.is_loopback or _has_public_name(settings):
        _refuse_trivial(settings.auth_token)
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
    listening: socket.socket,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal comes; `started` is told once requests are answered."""
    Server(services, settings, started).run([listening])


class Server(uvicorn.Server):
    """One process, one worker. It ends within the grace period after SIGTERM or SIGINT."""

    def __init__(
        self,
        services: Services,
        settings: Settings,
        started: Callable[[], None] = lambda: None,
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
            timeout_graceful_shutdown=GRACE,
        )
        super().__init__(config)
        self._stopping = services.stopping
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and tell that it is so."""
        await super().startup(sockets)
        self._tell()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams first: they would keep the server until the grace period is over."""
        self._stopping.set()
        await super().shutdown(sockets)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve; a signal that ended it is no failure."""
        if threading.current_thread() is not threading.main_thread():
            super().run(sockets)
            return
        sys.setswitchinterval(_TURN)
        before = {one: signal.signal(one, _nothing) for one in (signal.SIGTERM, signal.SIGINT)}
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
    held = logging.handlers.MemoryHandler(_HELD, logging.CRITICAL, plain)
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


def _has_public_name(settings: ServerSettings) -> bool:
    """Whether other machines reach this server by a name, through a proxy."""
    name = urlsplit(settings.public_url).hostname
    return name is not None and name not in _OWN_NAMES


def _refuse_trivial(token: Secret | None) -> None:
    """Raises: ConfigInvalid for a token that can be guessed."""
    if token is not None and is_trivial(token.reveal()):
        raise ConfigInvalid(
            "SKILLHALL_AUTH_TOKEN",
            "the token is too easy to guess for a server that other machines can reach",
            f"create one with: {_NEW_TOKEN}",
        )


def _address(host: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(host)
    except ValueError:
        pass  # a name, then
    try:
        found = socket.getaddrinfo(host or None, None, type=socket.SOCK_STREAM)
        return ip_address(found[0][4][0])
    except (OSError, ValueError):
        raise ConfigInvalid("SKILLHALL_HOST", f"{host!r} is no address here") from None


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= _LARGEST_PORT:
        return int(text)
    raise ConfigInvalid("SKILLHALL_PORT", f"{text!r} is no port", "give a number up to 65535")


def _positive(name: str, text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_LARGEST_LIMIT))
    if is_number and 0 < int(text) <= _LARGEST_LIMIT:
        return int(text)
    problem = f"{text!r} is not a positive integer"
    raise ConfigInvalid(name, problem, f"give a number from 1 to {_LARGEST_LIMIT}")


def _nothing(*_: object) -> None:
    """What is left to do about a signal that has ended the server."""
