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
from skillhall._internal.http.http_error import ClientGone
from skillhall._internal.http.request import HEADERS, MAX_JSON, REQUEST_ID, ROUTE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillhall._internal.http.metrics import Metrics
    from skillhall._internal.http.redaction import Scrubber
    from skillhall._internal.http.response import Answer

ERRORS = logging.getLogger("skillhall.server")

_START = urandom(8).hex()  # what ids of this process begin with
_NUMBERS = count(1)
_GOOD_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_SAFE: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
# What an answer may say for itself; this is said for those that do not.
_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_CACHE = (b"cache-control", b"no-store")
_CLOSE = (b"connection", b"close")
_NOT_CHANGED = 304
_FAILED = 400
_HUNG_UP = 499  # in logs alone: the client left


class Observed:
    """Every request, seen from outside."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        scrubber: Scrubber,
        internal: Callable[[str], Answer],
        stopping: Callable[[str], Answer],
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._scrubber = scrubber
        self._internal = internal
        self._stopping = stopping
        self._log = AccessLog(scrubber)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            self._log.flush()  # its life ends, or a socket's
            return
        seen = _Seen(scope, send)
        self._metrics.begin()
        try:
            await self._app(scope, receive, seen.send)
        except ClientGone:
            seen.status = _HUNG_UP
        except asyncio.CancelledError:
            # The server stops, and the request took longer than the grace period.
            if not seen.status:
                await self._stopping(seen.id).send(seen.send)
        except Exception:  # noqa: BLE001 - the last net: a client never meets a traceback
            self._tell(seen)
            if not seen.status:
                await self._internal(seen.id).send(seen.send)
        finally:
            self._finish(seen, scope)

    def _tell(self, seen: _Seen) -> None:
        trace = self._scrubber.all(traceback.format_exc())
        ERRORS.error("request %s failed\n%s", seen.id, trace)

    def _finish(self, seen: _Seen, scope: Scope) -> None:
        seconds = time.perf_counter() - seen.began
        status, method = seen.status or _HUNG_UP, scope["method"]
        self._metrics.end(_template(scope), method, status, seconds)
        self._log.note(scope, status=status, sent=seen.sent, seconds=seconds, identity=seen.id)


class _Seen:
    """One request, and what was sent to its client so far."""

    __slots__ = ("_scope", "_send", "began", "id", "sent", "status")

    def __init__(self, scope: Scope, send: Send) -> None:
        self.began = time.perf_counter()
        scope[HEADERS] = dict(scope["headers"])
        self.id = scope[REQUEST_ID] = _request_id(scope)
        self.status = 0
        self.sent = 0  # bytes of the body
        self._scope = scope
        self._send = send

    def send(self, message: Message) -> Awaitable[None]:
        """Pass a message on; the first one gets the headers that every answer has."""
        kind = message["type"]
        if kind == "http.response.body":
            self.sent += len(message.get("body", b""))
        elif kind == "http.response.start":
            self.status = message["status"]
            message["headers"] = self._headers(message.get("headers", ()))
        return self._send(message)

    def _headers(self, own: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        headers = [*own, (b"x-request-id", self.id.encode("ascii"))]
        if self.status == _NOT_CHANGED:
            return headers  # what the client keeps has the rest of them
        headers += _SAFE
        said = dict(headers)
        if _POLICY[0] not in said:
            headers.append(_POLICY)
        if _CACHE[0] not in said:
            headers.append(_CACHE)
        if self.status >= _FAILED and _goes_on(self._scope):
            headers.append(_CLOSE)
        return headers


def new_request_id() -> str:
    """An id that no other request has."""
    return f"{_START}{next(_NUMBERS):08x}"


def _request_id(scope: Scope) -> str:
    given = scope[HEADERS].get(b"x-request-id")
    if given is not None and _GOOD_ID.fullmatch(given):
        return str(given, "ascii")
    return new_request_id()


def _goes_on(scope: Scope) -> bool:
    """Whether the rest of the request may be long; it is not listened to after an error."""
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return True
        if name == b"content-length":
            return not value.isdigit() or int(value) > 2 * MAX_JSON
    return False


def _template(scope: Scope) -> str:
    """The route, never the path: a path is a stranger's text, and there are too many of them."""
    known = scope.get(ROUTE)
    if known is None:
        known = getattr(scope.get("route"), "path_format", "none")
    return str(known)
