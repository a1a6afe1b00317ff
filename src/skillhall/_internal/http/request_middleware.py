"""The outermost middleware: request ids, access log, metrics, security headers.

It also turns every uncaught exception into an error response.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from os import urandom

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillhall._internal.http.access_log import AccessLog
from skillhall._internal.http.errors import error_response, internal_error, shutdown_error
from skillhall._internal.http.metrics import Metrics
from skillhall._internal.http.redaction import Redactor
from skillhall._internal.http.request import HEADERS_KEY, MAX_JSON_BYTES, REQUEST_ID_KEY, ROUTE_KEY

SERVER_LOGGER = logging.getLogger("skillhall.server")

_PROCESS_PREFIX = urandom(8).hex()  # of all request ids of this process
_REQUEST_NUMBERS = count(1)
_VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
# Defaults for responses that do not set these headers themselves.
_DEFAULT_CSP = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_DEFAULT_CACHE_CONTROL = (b"cache-control", b"no-store")
_CLOSE_HEADER = (b"connection", b"close")
_NOT_MODIFIED = 304
_FORBIDDEN = 403
_FIRST_ERROR_STATUS = 400
_CLIENT_DISCONNECTED = 499  # only in logs and metrics, as in nginx


class RequestLogMiddleware:
    """Logs and measures every request, and completes the headers of its response."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        redactor: Redactor,
        on_refusal: Callable[[Scope], None] | None = None,
    ) -> None:
        """`on_refusal` is called after a response with status 403. It must not block."""
        self._app = app
        self._metrics = metrics
        self._redactor = redactor
        self._on_refusal = on_refusal
        self._access_log = AccessLog(redactor)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; pass on other ASGI scopes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            self._access_log.flush()  # the lifespan ends: no timer would flush any more
            return
        tracked = _TrackedRequest(scope, send)
        self._metrics.request_started()
        try:
            await self._app(scope, receive, tracked.send)
        except ClientDisconnect:
            tracked.status = _CLIENT_DISCONNECTED
        except asyncio.CancelledError:
            # The server stops, and the request exceeded the grace period.
            if not tracked.status:
                response = error_response(shutdown_error(), tracked.request_id)
                await response(scope, receive, tracked.send)
        except Exception:  # noqa: BLE001 - the last resort: no traceback reaches a client
            trace = self._redactor.redact(traceback.format_exc())
            SERVER_LOGGER.error("request %s failed\n%s", tracked.request_id, trace)  # noqa: TRY400 - redacted
            if not tracked.status:
                response = error_response(internal_error(), tracked.request_id)
                await response(scope, receive, tracked.send)
        finally:
            self._record(tracked, scope)

    def _record(self, tracked: _TrackedRequest, scope: Scope) -> None:
        seconds = time.perf_counter() - tracked.started
        status, method = tracked.status or _CLIENT_DISCONNECTED, scope["method"]
        if status == _FORBIDDEN and self._on_refusal is not None:
            self._on_refusal(scope)
        # The route's template: with paths, clients could create any number of metric series.
        route = str(scope.get(ROUTE_KEY) or getattr(scope.get("route"), "path_format", "none"))
        self._metrics.request_finished(route, method, status, seconds)
        self._access_log.log_request(
            scope,
            status=status,
            bytes_sent=tracked.bytes_sent,
            seconds=seconds,
            request_id=tracked.request_id,
        )


class _TrackedRequest:
    """A request and the progress of its response."""

    __slots__ = ("_scope", "_send", "bytes_sent", "request_id", "started", "status")

    def __init__(self, scope: Scope, send: Send) -> None:
        self.started = time.perf_counter()
        scope[HEADERS_KEY] = dict(scope["headers"])
        self.request_id = scope[REQUEST_ID_KEY] = _read_request_id(scope)
        self.status = 0
        self.bytes_sent = 0  # of the body
        self._scope = scope
        self._send = send

    def send(self, message: Message) -> Awaitable[None]:
        """Pass a message on; the first one gets the common headers."""
        kind = message["type"]
        if kind == "http.response.body":
            self.bytes_sent += len(message.get("body", b""))
        elif kind == "http.response.start":
            self.status = message["status"]
            message["headers"] = self._complete_headers(message.get("headers", ()))
        return self._send(message)

    def _complete_headers(self, own: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        headers = [*own, (b"x-request-id", self.request_id.encode("ascii"))]
        if self.status == _NOT_MODIFIED:
            return headers  # the client's cached response has the others
        headers += _SECURITY_HEADERS
        names = dict(headers)
        if _DEFAULT_CSP[0] not in names:
            headers.append(_DEFAULT_CSP)
        if _DEFAULT_CACHE_CONTROL[0] not in names:
            headers.append(_DEFAULT_CACHE_CONTROL)
        if self.status >= _FIRST_ERROR_STATUS and _has_large_body(self._scope):
            headers.append(_CLOSE_HEADER)
        return headers


def new_request_id() -> str:
    """Return a unique request id."""
    return f"{_PROCESS_PREFIX}{next(_REQUEST_NUMBERS):08x}"


def _read_request_id(scope: Scope) -> str:
    from_client = scope[HEADERS_KEY].get(b"x-request-id")
    if from_client is not None and _VALID_REQUEST_ID.fullmatch(from_client):
        return str(from_client, "ascii")
    return new_request_id()


def _has_large_body(scope: Scope) -> bool:
    """Whether much of the body may be unread, so that the connection must be closed."""
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return True
        if name == b"content-length":
            return not value.isdigit() or int(value) > 2 * MAX_JSON_BYTES
    return False
