"""The files that pages load from us: styles, scripts, and what set-up brought from others."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

STATIC = "/static/"
_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
_PLAIN = b"text/plain; charset=utf-8"


class Asset(NamedTuple):
    """One file, and the address under which it never changes."""

    data: bytes
    kind: bytes
    address: str


@cache
def assets() -> Mapping[str, Asset]:
    """Every file by its path below `static`."""
    return dict(_below(files(__package__) / "static", ""))


def address_of(path: str) -> str:
    """Where pages load a file from; "" if set-up has not brought it."""
    found = assets().get(path)
    return "" if found is None else found.address


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, Asset]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _below(entry, f"{path}/")
        elif not entry.name.startswith("."):
            data = entry.read_bytes()
            kind = _TYPES.get(f".{entry.name.rpartition('.')[2]}", _PLAIN)
            yield path, Asset(data, kind, f"{STATIC}{path}?v={sha256_of(data)[:12]}")
