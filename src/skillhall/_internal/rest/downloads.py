"""Downloads of skill files: parsing of their URL paths, and response headers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from skillhall._internal.http.http_error import HttpError

if TYPE_CHECKING:
    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.http.response import Headers


def path_parts(request: HttpRequest, prefix: str, count: int) -> list[str]:
    """Return the decoded segments below `prefix`. Raises: HttpError.

    The last one contains the rest with its slashes. Missing segments are empty.
    """
    below = request.scope["raw_path"].removeprefix(f"{prefix}/".encode())
    parts = [*below.split(b"/", count - 1), *(b"",) * count][:count]
    try:
        return [unquote_to_bytes(part).decode("utf-8") for part in parts]
    except UnicodeDecodeError:
        raise HttpError("not_found", "skill not found") from None


def download_headers(path: str) -> Headers:
    """Return headers that make browsers save untrusted content, never render it."""
    name = quote(path.rpartition("/")[2], safe="")
    return (
        (b"content-type", b"application/octet-stream"),
        (b"content-disposition", f"attachment; filename*=UTF-8''{name}".encode()),
    )
