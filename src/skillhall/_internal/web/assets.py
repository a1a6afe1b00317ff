"""The files that pages load from us: styles, scripts, and what set-up brought from others."""

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
    """One file, and the address under which it never changes."""

    data: bytes
    content_type: bytes
    url: str


@cache
def load_assets() -> Mapping[str, Asset]:
    """Every file by its path below `static`."""
    return dict(_walk(files(__package__) / "static", ""))


def asset_url(path: str) -> str:
    """Where pages load a file from; "" if set-up has not brought it."""
    found = load_assets().get(path)
    return "" if found is None else found.url


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Asset]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _walk(entry, f"{path}/")
        elif not entry.name.startswith("."):
            data = entry.read_bytes()
            kind = _CONTENT_TYPES.get(f".{entry.name.rpartition('.')[2]}", _DEFAULT_CONTENT_TYPE)
            yield path, Asset(data, kind, f"{STATIC_PREFIX}{path}?v={sha256_hex(data)[:12]}")
