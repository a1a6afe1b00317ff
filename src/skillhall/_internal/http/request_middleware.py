"""The outermost layer: every request gets an id, a line in the log and its headers.

Nothing that goes wrong further inside reaches a client in another shape than our errors have.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import traceback
from itertools import count
from os import urandom
from typing import TYPE_CHECKING

from skillhall._internal.http.access_log import AccessLog
from skillhall._internal.http.http_error import ClientDisconnected
from skillhall._internal.http.request import HEADERS_KEY, MAX_JSON_BYTES, REQUEST_ID_KEY, ROUTE_KEY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillhall._internal.http.metrics import Metrics
    from skillhall._internal.http.redaction import Redactor
    from skillhall._internal.http.response import ByteResponse

SERVER_LOGGER = logging.getLogger("skillhall.server")

_PROCESS_PREFIX = urandom(8).hex()  # what ids of this process begin with
_REQUEST_NUMBERS = count(1)
_VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
# What an answer may say for itself; this is said for those that do not.
_DEFAULT_CSP = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_DEFAULT_CACHE_CONTROL = (b"cache-control", b"no-store")
_CLOSE_HEADER = (b"connection", b"close")
_NOT_MODIFIED = 304
_FIRST_ERROR_STATUS = 400
_CLIENT_DISCONNECTED = 499  # in logs alone: the client left


class RequestLogMiddleware:
    """Every request, seen from outside."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        redactor: Redactor,
        build_internal_error: Callable[[str], ByteResponse],
        build_shutdown_error: Callable[[str], ByteResponse],
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._redactor = redactor
        self._build_internal_error = build_internal_error
        self._build_shutdown_error = build_shutdown_error
        self._access_log = AccessLog(redactor)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            self._access_log.flush()  # its life ends, or a socket's
            return
        seen = _TrackedRequest(scope, send)
        self._metrics.request_started()
        try:
            await self._app(scope, receive, seen.send)
        except ClientDisconnected:
            seen.status = _CLIENT_DISCONNECTED
        except asyncio.CancelledError:
            # The server stops, and the request took longer than the grace period.
            if not seen.status:
                await self._build_shutdown_error(seen.request_id).send(seen.send)
        except Exception:  # noqa: BLE001 - the last net: a client never meets a traceback
            self._log_exception(seen)
            if not seen.status:
                await self._build_internal_error(seen.request_id).send(seen.send)
        finally:
            self._record(seen, scope)

    def _log_exception(self, tracked: _TrackedRequest) -> None:
        trace = self._redactor.redact(traceback.format_exc())
        SERVER_LOGGER.error("request %s failed\n%s", tracked.request_id, trace)

    def _record(self, tracked: _TrackedRequest, scope: Scope) -> None:
        seconds = time.perf_counter() - tracked.started
        status, method = tracked.status or _CLIENT_DISCONNECTED, scope["method"]
        self._metrics.request_finished(_route_template(scope), method, status, seconds)
        self._access_log.log_request(
            scope,
            status=status,
            bytes_sent=tracked.bytes_sent,
            seconds=seconds,
            request_id=tracked.request_id,
        )


class _TrackedRequest:
    """One request, and what was sent to its client so far."""

    __slots__ = ("_scope", "_send", "bytes_sent", "request_id", "started", "status")

    def __init__(self, scope: Scope, send: Send) -> None:
        self.started = time.perf_counter()
        scope[HEADERS_KEY] = dict(scope["headers"])
        self.request_id = scope[REQUEST_ID_KEY] = _read_request_id(scope)
        self.status = 0
        self.bytes_sent = 0  # bytes of the body
        self._scope = scope
        self._send = send

    def send(self, message: Message) -> Awaitable[None]:
        """Pass a message on; the first one gets the headers that every answer has."""
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
            return headers  # what the client keeps has the rest of them
        headers += _SECURITY_HEADERS
        said = dict(headers)
        if _DEFAULT_CSP[0] not in said:
            headers.append(_DEFAULT_CSP)
        if _DEFAULT_CACHE_CONTROL[0] not in said:
            headers.append(_DEFAULT_CACHE_CONTROL)
        if self.status >= _FIRST_ERROR_STATUS and _has_large_body(self._scope):
            headers.append(_CLOSE_HEADER)
        return headers


def new_request_id() -> str:
    """An id that no other request has."""
    return f"{_PROCESS_PREFIX}{next(_REQUEST_NUMBERS):08x}"


def _read_request_id(scope: Scope) -> str:
    given = scope[HEADERS_KEY].get(b"x-request-id")
    if given is not None and _VALID_REQUEST_ID.fullmatch(given):
        return str(given, "ascii")
    return new_request_id()


def _has_large_body(scope: Scope) -> bool:
    """Whether the rest of the request may be long; it is not listened to after an error."""
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return True
        if name == b"content-length":
            return not value.isdigit() or int(value) > 2 * MAX_JSON_BYTES
    return False


def _route_template(scope: Scope) -> str:
    """The route, never the path: a path is a stranger's text, and there are too many of them."""
    known = scope.get(ROUTE_KEY)
    if known is None:
        known = getattr(scope.get("route"), "path_format", "none")
    return str(known)
