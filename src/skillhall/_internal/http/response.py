"""Responses as bytes, and the JSON envelope."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

    from skillhall._internal.prompts.prompt_snapshot import PromptSnapshot

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

JSON_HEADERS: Headers = ((b"content-type", b"application/json"),)
_MAX_JOINED_BYTES = 65_536  # up to this size one write is cheaper than three
_BODILESS_STATUSES = (204, 304)


class ByteResponse(NamedTuple):
    """A response whose body is sent in parts."""

    status: int
    headers: Headers = ()
    parts: tuple[bytes, ...] = ()

    async def send(self, send: Send) -> None:
        """Send the response; large parts are not copied."""
        start = {"type": "http.response.start", "status": self.status, "headers": self.headers}
        if self.status in _BODILESS_STATUSES:
            await send(start)
            await send({"type": "http.response.body"})
            return
        length = sum(map(len, self.parts))
        await send({**start, "headers": (*self.headers, (b"content-length", b"%d" % length))})
        parts = self.parts if length > _MAX_JOINED_BYTES else (b"".join(self.parts),)
        for part in parts[:-1]:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": parts[-1]})


def encode_json(value: object) -> bytes:
    """Encode a value as JSON. Unpaired surrogates become question marks."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), check_circular=False)
    return text.encode("utf-8", "replace")


def success_response(
    data: bytes,
    request_id: str,
    *,
    status: int = 200,
    headers: Headers = JSON_HEADERS,
    snapshot: PromptSnapshot | None = None,
) -> ByteResponse:
    """Return a success envelope; `data` is encoded JSON."""
    tail = b',"meta":' + encode_meta(request_id, snapshot) + b"}"
    return ByteResponse(status, headers, (b'{"success":true,"data":', data, tail))


def failure_response(
    status: int,
    error: Mapping[str, object],
    request_id: str,
    headers: Headers = (),
) -> ByteResponse:
    """Return an error envelope."""
    tail = b',"meta":' + encode_meta(request_id) + b"}"
    body = b'{"success":false,"error":' + encode_json(error) + tail
    return ByteResponse(status, (*JSON_HEADERS, *headers), (body,))


def encode_meta(request_id: str, snapshot: PromptSnapshot | None = None) -> bytes:
    """Encode the `meta` of a response, with the commit of its snapshot."""
    # Nothing to escape: a request id has only letters, digits and "._-".
    text = f'{{"timestamp":"{utc_timestamp()}","requestId":"{request_id}","version":"v1"'.encode()
    if snapshot is None:
        return text + b"}"
    if snapshot.commit:
        text += b',"commit":' + encode_json(snapshot.commit)
    if snapshot.stale:
        text += b',"stale":' + encode_json(snapshot.stale._asdict())
    return text + b"}"


class _TimestampCache:
    second = millisecond = -1
    date_and_time = text = ""


def utc_timestamp() -> str:
    """Return the current time in UTC, in milliseconds. Cached, since every response has it."""
    now = int(time.time() * 1000)
    if now == _TimestampCache.millisecond:
        return _TimestampCache.text
    second, rest = divmod(now, 1000)
    if second != _TimestampCache.second:
        _TimestampCache.date_and_time = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _TimestampCache.second = second
    text = _TimestampCache.text = f"{_TimestampCache.date_and_time}.{rest:03d}Z"
    _TimestampCache.millisecond = now
    return text


class Ready(Response):
    """A `ByteResponse` as a Starlette response."""

    def __init__(self, ready: ByteResponse) -> None:
        super().__init__(status_code=ready.status)
        self._ready = ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the response."""
        await self._ready.send(send)
