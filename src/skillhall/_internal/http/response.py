"""Answers as bytes, and the one shape that answers have."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

    from skillhall._internal.prompts.prompt_model import PromptSnapshot

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

JSON_HEADERS: Headers = ((b"content-type", b"application/json"),)
_MAX_JOINED_BYTES = 65_536  # bytes; below it one write is cheaper than three
_BODILESS_STATUSES = (204, 304)


class ByteResponse(NamedTuple):
    """An answer, in parts that are sent one after the other."""

    status: int
    headers: Headers = ()
    parts: tuple[bytes, ...] = ()

    async def send(self, send: Send) -> None:
        """Send it; a large part is never copied."""
        if self.status in _BODILESS_STATUSES:
            await send(
                {"type": "http.response.start", "status": self.status, "headers": self.headers}
            )
            await send({"type": "http.response.body"})
            return
        length = sum(map(len, self.parts))
        headers = (*self.headers, (b"content-length", b"%d" % length))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        parts = self.parts if length > _MAX_JOINED_BYTES else (b"".join(self.parts),)
        for part in parts[:-1]:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": parts[-1]})


def encode_json(value: object) -> bytes:
    """A value as JSON. Half characters, which no JSON may hold, become question marks."""
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
    """The answer to a call that did its work; `data` is JSON already."""
    tail = b',"meta":' + encode_meta(request_id, snapshot) + b"}"
    return ByteResponse(status, headers, (b'{"success":true,"data":', data, tail))


def failure_response(
    status: int,
    error: Mapping[str, object],
    request_id: str,
    headers: Headers = (),
) -> ByteResponse:
    """The answer to a call that did not."""
    body = (
        b'{"success":false,"error":'
        + encode_json(error)
        + b',"meta":'
        + encode_meta(request_id)
        + b"}"
    )
    return ByteResponse(status, (*JSON_HEADERS, *headers), (body,))


def encode_meta(request_id: str, snapshot: PromptSnapshot | None = None) -> bytes:
    """What is said about every answer, and about the snapshot it was taken from."""
    # Nothing to escape: an id has letters, digits and three marks.
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
    """Now in UTC, to the millisecond."""
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
    """An answer of ours where the framework expects one of its own."""

    def __init__(self, ready: ByteResponse) -> None:
        super().__init__(status_code=ready.status)
        self._ready = ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send it."""
        await self._ready.send(send)
