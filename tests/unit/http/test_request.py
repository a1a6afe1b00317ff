import asyncio
from collections.abc import Iterable

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from skillhall._internal.http import request as request_module
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import accepts_gzip, read_body, read_json


def make_request(messages: Iterable[Message], headers: dict[bytes, bytes] | None = None) -> Request:
    """Return a request that receives these messages, then waits forever."""
    remaining = list(messages)

    async def receive() -> Message:
        if not remaining:
            await asyncio.Event().wait()
        return remaining.pop(0)

    headers = headers or {b"transfer-encoding": b"chunked"}
    return Request({"type": "http", "headers": list(headers.items())}, receive)


def chunk(data: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": data, "more_body": more}


def test_chunks_of_a_body_are_joined() -> None:
    request = make_request([chunk(b"one "), chunk(b"two", more=False)])
    assert asyncio.run(read_body(request, 100)) == b"one two"


def test_body_of_exactly_the_limit_is_accepted() -> None:
    assert asyncio.run(read_body(make_request([chunk(b"12345", more=False)]), 5)) == b"12345"


def test_slow_body_times_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_module, "_BODY_TIMEOUT", 0.01)
    with pytest.raises(HttpError) as caught:
        asyncio.run(read_body(make_request([chunk(b"one ")]), 100))
    assert caught.value.code == "request_timeout"


def test_oversized_body_that_stalls_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_module, "_DISCARD_TIMEOUT", 0.01)
    with pytest.raises(HttpError) as caught:
        asyncio.run(read_body(make_request([chunk(b"123456")]), 5))
    assert caught.value.code == "too_large"


def test_disconnect_while_reading_the_body_raises() -> None:
    request = make_request([chunk(b"one "), {"type": "http.disconnect"}])
    with pytest.raises(ClientDisconnect):
        asyncio.run(read_body(request, 100))


def test_compressed_body_is_rejected() -> None:
    headers = {b"content-length": b"2", b"content-type": b"application/json"}
    request = make_request([chunk(b"{}", more=False)], {**headers, b"content-encoding": b"gzip"})
    with pytest.raises(HttpError) as caught:
        asyncio.run(read_json(request))
    assert caught.value.code == "unsupported_media_type"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("gzip", True),
        ("br;q=1.0, GZIP;q=0.5", True),
        ("gzip; q=0", False),
        ("gzip;q=0.000", False),
        ("identity", False),
        ("", False),
    ],
)
def test_gzip_requires_an_accepting_client(header: str, expected: bool) -> None:
    assert accepts_gzip(header) is expected
