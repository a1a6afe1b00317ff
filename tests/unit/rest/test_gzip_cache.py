import gzip
import zlib

import pytest

from skillhall._internal.http.request import HEADERS_KEY, HttpRequest
from skillhall._internal.http.response import ByteResponse
from skillhall._internal.rest.gzip_cache import GzipCache


async def silent() -> dict[str, object]:
    raise AssertionError


def accepting(text: bytes) -> HttpRequest:
    return HttpRequest({HEADERS_KEY: {b"accept-encoding": text}}, silent)


def test_a_packed_answer_is_one_gzip_member_that_any_reader_unpacks() -> None:
    packed = GzipCache()
    for tail in (b"first", b"second, longer"):
        ready = packed.compress(ByteResponse(200, (), (b"head", b"data" * 9_000, tail)), "one")
        body = b"".join(ready.parts)
        reader = zlib.decompressobj(31)
        assert reader.decompress(body) == b"head" + b"data" * 9_000 + tail
        assert reader.eof
        assert reader.unused_data == b""
        assert gzip.decompress(body).endswith(tail)


def test_only_the_last_few_snapshots_are_kept() -> None:
    packed = GzipCache()
    for number in range(6):
        packed.compress(ByteResponse(200, (), (b"data", b"tail")), str(number))
    assert [number for number in range(6) if packed.has(str(number))] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("accepted", "wanted"),
    [
        (b"gzip", True),
        (b"br;q=1.0, GZIP;q=0.5", True),
        (b"gzip; q=0", False),
        (b"gzip;q=0.000", False),
        (b"identity", False),
        (b"", False),
    ],
)
def test_gzip_goes_to_whoever_takes_it(accepted: bytes, wanted: bool) -> None:
    large = ByteResponse(200, (), (b"x" * 20_000,))
    assert GzipCache().should_compress(accepting(accepted), large) is wanted


def test_small_answers_stay_as_they_are() -> None:
    assert not GzipCache().should_compress(
        accepting(b"gzip"), ByteResponse(200, (), (b"x" * 1_000,))
    )
