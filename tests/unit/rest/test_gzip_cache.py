import gzip
import zlib

import pytest

from skillhall._internal.http.request import HEADERS_KEY, HttpRequest
from skillhall._internal.http.response import ByteResponse
from skillhall._internal.rest.gzip_cache import GzipCache


async def receive_nothing() -> dict[str, object]:
    raise AssertionError


def request_accepting(text: bytes) -> HttpRequest:
    return HttpRequest({HEADERS_KEY: {b"accept-encoding": text}}, receive_nothing)


def test_compressed_response_is_one_valid_gzip_member() -> None:
    cache = GzipCache()
    for tail in (b"first", b"second, longer"):
        response = ByteResponse(200, (), (b"head", b"data" * 9_000, tail))
        body = b"".join(cache.compress(response, "digest").parts)
        reader = zlib.decompressobj(31)
        assert reader.decompress(body) == b"head" + b"data" * 9_000 + tail
        assert reader.eof
        assert reader.unused_data == b""
        assert gzip.decompress(body).endswith(tail)


def test_cache_is_limited_to_the_last_snapshots() -> None:
    cache = GzipCache()
    for number in range(6):
        cache.compress(ByteResponse(200, (), (b"data", b"tail")), str(number))
    assert [number for number in range(6) if cache.has(str(number))] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"gzip", True),
        (b"br;q=1.0, GZIP;q=0.5", True),
        (b"gzip; q=0", False),
        (b"gzip;q=0.000", False),
        (b"identity", False),
        (b"", False),
    ],
)
def test_gzip_requires_an_accepting_client(header: bytes, expected: bool) -> None:
    large = ByteResponse(200, (), (b"x" * 20_000,))
    assert GzipCache().should_compress(request_accepting(header), large) is expected


def test_small_responses_are_not_compressed() -> None:
    assert not GzipCache().should_compress(
        request_accepting(b"gzip"), ByteResponse(200, (), (b"x" * 1_000,))
    )
