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

JSON: Headers = ((b"content-type", b"application/json"),)
_JOINED = 65_536  # bytes; below it one write is cheaper than three
_BODILESS = (204, 304)


class Answer(NamedTuple):
    """An answer, in parts that are sent one after the other."""

    status: int
    headers: Headers = ()
    parts: tuple[bytes, ...] = ()

    async def send(self, send: Send) -> None:
        """Send it; a large part is never copied."""
        if self.status in _BODILESS:
            await send(
                {"type": "http.response.start", "status": self.status, "headers": self.headers}
            )
            await send({"type": "http.response.body"})
            return
        length = sum(map(len, self.parts))
        headers = (*self.headers, (b"content-length", b"%d" % length))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        parts = self.parts if length > _JOINED else (b"".join(self.parts),)
        for part in parts[:-1]:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": parts[-1]})


def encoded(value: object) -> bytes:
    """A value as JSON. Half characters, which no JSON may hold, become question marks."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), check_circular=False)
    return text.encode("utf-8", "replace")


def success(
    data: bytes,
    request_id: str,
    *,
    status: int = 200,
    headers: Headers = JSON,
    snapshot: PromptSnapshot | None = None,
) -> Answer:
    """The answer to a call that did its work; `data` is JSON already."""
    tail = b',"meta":' + meta(request_id, snapshot) + b"}"
    return Answer(status, headers, (b'{"success":true,"data":', data, tail))


def failure(
    status: int,
    error: Mapping[str, object],
    request_id: str,
    headers: Headers = (),
) -> Answer:
    """The answer to a call that did not."""
    body = b'{"success":false,"error":' + encoded(error) + b',"meta":' + meta(request_id) + b"}"
    return Answer(status, (*JSON, *headers), (body,))


def meta(request_id: str, snapshot: PromptSnapshot | None = None) -> bytes:
    """What is said about every answer, and about the snapshot it was taken from."""
    # Nothing to escape: an id has letters, digits and three marks.
    text = f'{{"timestamp":"{timestamp()}","requestId":"{request_id}","version":"v1"'.encode()
    if snapshot is None:
        return text + b"}"
    if snapshot.commit:
        text += b',"commit":' + encoded(snapshot.commit)
    if snapshot.stale:
        text += b',"stale":' + encoded(snapshot.stale._asdict())
    return text + b"}"


class _Now:
    second = millisecond = -1
    day_and_time = text = ""


def timestamp() -> str:
    """Now in UTC, to the millisecond."""
    now = int(time.time() * 1000)
    if now == _Now.millisecond:
        return _Now.text
    second, rest = divmod(now, 1000)
    if second != _Now.second:
        _Now.day_and_time = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _Now.second = second
    text = _Now.text = f"{_Now.day_and_time}.{rest:03d}Z"
    _Now.millisecond = now
    return text


class Ready(Response):
    """An answer of ours where the framework expects one of its own."""

    def __init__(self, ready: Answer) -> None:
        super().__init__(status_code=ready.status)
        self._ready = ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send it."""
        await self._ready.send(send)
