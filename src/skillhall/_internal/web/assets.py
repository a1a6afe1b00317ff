"""Static files of the pages: styles, scripts, libraries and block type colors."""

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import accepts_gzip
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.workspace.block_types import BLOCK_TYPES

STATIC_PREFIX = "/static/"
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class Asset(NamedTuple):
    """Static file with its immutable, content-hashed URL."""

    data: bytes
    media_type: str
    url: str


@cache
def load_assets() -> Mapping[str, Asset]:
    """Return every static file by its path below `static`."""
    # Colors are in a stylesheet because the Content-Security-Policy forbids inline styles.
    rules = (f".type-{row.id} {{ --type: {row.colour}; }}\n" for row in BLOCK_TYPES.values())
    contents = {"block-types.css": "".join(rules).encode()}
    contents.update(_read_files(files(__package__) / "static", ""))
    assets = {}
    for path, data in contents.items():
        media_type = _MEDIA_TYPES.get(path.rpartition(".")[2], "text/plain")
        url = f"{STATIC_PREFIX}{path}?v={sha256_hex(data)[:12]}"
        assets[path] = Asset(data, media_type, url)
    return assets


def asset_url(path: str) -> str:
    """Return the URL of a static file; "" if it does not exist."""
    asset = load_assets().get(path)
    return "" if asset is None else asset.url


def serve_asset(request: Request) -> Response:
    """Return a static file. With its hash in the URL, browsers may cache it forever."""
    path = request.path_params["path"]
    asset = load_assets().get(path)
    if asset is None:
        raise HttpError("not_found", "file not found")
    is_current = asset.url == f"{STATIC_PREFIX}{path}?v={request.query_params.get('v')}"
    caching = "public, max-age=31536000, immutable" if is_current else "no-cache"
    headers = {"cache-control": caching, "vary": "accept-encoding"}
    data = asset.data
    if accepts_gzip(request.headers.get("accept-encoding", "")):
        data, headers["content-encoding"] = _compress(path), "gzip"
    return Response(data, 200, headers, asset.media_type)


@cache
def _compress(path: str) -> bytes:
    """Return a static file, compressed at its first request."""
    return gzip.compress(load_assets()[path].data, mtime=0)


def _read_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _read_files(entry, f"{path}/")
        elif not entry.name.startswith("."):
            yield path, entry.read_bytes()
