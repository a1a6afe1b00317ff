"""Bytes that are sent to be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from skillhall.surfaces.http.answer import Headers


def download(name: str) -> Headers:
    """How bytes of strangers are sent: to be kept, never to be shown as a page."""
    return (
        (b"content-type", b"application/octet-stream"),
        (b"content-disposition", f"attachment; filename*=UTF-8''{quote(name, safe='')}".encode()),
    )
