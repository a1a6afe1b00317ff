import asyncio
from collections.abc import Iterable

import pytest
from starlette.types import Message, Receive

from skillhall._internal.http import request as exchange
from skillhall._internal.http.http_error import ClientDisconnected, HttpError
from skillhall._internal.http.request import HEADERS_KEY, HttpRequest


def sent(messages: Iterable[Message], headers: dict[bytes, bytes] | None = None) -> HttpRequest:
    """A request in chunks, after which nothing comes any more."""
    left = list(messages)

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return made(receive, headers)


def made(receive: Receive, headers: dict[bytes, bytes] | None = None) -> HttpRequest:
    given = headers or {b"transfer-encoding": b"chunked"}
    return HttpRequest({HEADERS_KEY: given, "headers": list(given.items())}, receive)


def chunk(data: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": data, "more_body": more}


def test_a_body_is_put_together() -> None:
    request = sent([chunk(b"one "), chunk(b"two", more=False)])
    assert asyncio.run(request.body(100)) == b"one two"


def test_a_body_of_exactly_the_limit_is_taken() -> None:
    assert asyncio.run(sent([chunk(b"12345", more=False)]).body(5)) == b"12345"


def test_a_body_that_does_not_come_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange, "_BODY_TIMEOUT", 0.01)
    with pytest.raises(HttpError) as refusal:
        asyncio.run(sent([chunk(b"one ")]).body(100))
    assert refusal.value.code == "request_timeout"


def test_a_body_that_is_too_large_and_stops_is_refused_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange, "_DISCARD_TIMEOUT", 0.01)
    with pytest.raises(HttpError) as refusal:
        asyncio.run(sent([chunk(b"123456")]).body(5))
    assert refusal.value.code == "too_large"


def test_a_client_that_hangs_up_is_gone() -> None:
    with pytest.raises(ClientDisconnected):
        asyncio.run(sent([chunk(b"one "), {"type": "http.disconnect"}]).body(100))


def test_a_compressed_body_is_refused() -> None:
    headers = {b"content-length": b"2", b"content-type": b"application/json"}
    request = sent([chunk(b"{}", more=False)], {**headers, b"content-encoding": b"gzip"})
    with pytest.raises(HttpError) as refusal:
        asyncio.run(request.json())
    assert refusal.value.code == "unsupported_media_type"
