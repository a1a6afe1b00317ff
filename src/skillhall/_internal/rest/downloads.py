"""Files of strangers over HTTP: how a path names one, and how its bytes are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from skillhall._internal.http.http_error import HttpError

if TYPE_CHECKING:
    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.http.response import Headers


def path_parts(request: HttpRequest, prefix: str, count: int) -> list[str]:
    """The names below a path, decoded; the last one has the rest, slashes and all. Raises: Refused.

    A name that is not there is empty.
    """
    below = request.scope["raw_path"].removeprefix(f"{prefix}/".encode())
    parts = [*below.split(b"/", count - 1), *(b"",) * count][:count]
    try:
        return [unquote_to_bytes(part).decode("utf-8") for part in parts]
    except UnicodeDecodeError:
        raise HttpError("not_found", "there is no such skill") from None


def download_headers(path: str) -> Headers:
    """How bytes of strangers are sent: to be kept, never to be shown as a page."""
    name = quote(path.rpartition("/")[2], safe="")
    return (
        (b"content-type", b"application/octet-stream"),
        (b"content-disposition", f"attachment; filename*=UTF-8''{name}".encode()),
    )
