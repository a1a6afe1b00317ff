import gzip
import zlib

from skillhall._internal.rest.gzip_cache import GzipCache


def test_compressed_response_is_one_valid_gzip_member() -> None:
    cache = GzipCache()
    for tail in (b"first", b"second, longer"):
        body = b"".join(cache.compress((b"head", b"data" * 9_000, tail), "digest"))
        reader = zlib.decompressobj(31)
        assert reader.decompress(body) == b"head" + b"data" * 9_000 + tail
        assert reader.eof
        assert reader.unused_data == b""
        assert gzip.decompress(body).endswith(tail)


def test_cache_is_limited_to_the_last_snapshots() -> None:
    cache = GzipCache()
    for number in range(6):
        cache.compress((b"data", b"tail"), str(number))
    assert [number for number in range(6) if cache.has(str(number))] == [2, 3, 4, 5]
