"""Static files of the pages: our styles and scripts, and vendored libraries."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

STATIC_PREFIX = "/static/"
_CONTENT_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
_DEFAULT_CONTENT_TYPE = b"text/plain; charset=utf-8"


class Asset(NamedTuple):
    """Static file with its immutable, content-hashed URL."""

    data: bytes
    content_type: bytes
    url: str


@cache
def load_assets() -> Mapping[str, Asset]:
    """Return every static file by its path below `static`."""
    return dict(_walk(files(__package__) / "static", ""))


def asset_url(path: str) -> str:
    """Return the URL of a static file; "" if set-up has not installed it."""
    asset = load_assets().get(path)
    return "" if asset is None else asset.url


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Asset]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _walk(entry, f"{path}/")
        elif not entry.name.startswith("."):
            data = entry.read_bytes()
            kind = _CONTENT_TYPES.get(f".{entry.name.rpartition('.')[2]}", _DEFAULT_CONTENT_TYPE)
            yield path, Asset(data, kind, f"{STATIC_PREFIX}{path}?v={sha256_hex(data)[:12]}")
