"""Parses submitted forms within size limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from skillhall._internal.http import multipart as forms
from skillhall._internal.http.http_error import HttpError

if TYPE_CHECKING:
    from skillhall._internal.http.request import HttpRequest

MAX_UPLOAD_BYTES = 110 * 1024 * 1024  # form with files: one skill may have 100 MB
MAX_FORM_BYTES = 2 * 1024 * 1024  # form without files: a SKILL.md, percent-encoded
_MAX_PARTS = 2_100  # a skill has at most 2,000 files
_MAX_FIELDS = 4_000


@dataclass(frozen=True, slots=True)
class PageForm:
    """Submitted form: values by field name, and (name, content) of files."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    files: tuple[tuple[str, bytes], ...] = ()

    def text(self, name: str) -> str:
        """Return the first value of a field; "" without one."""
        return self.fields.get(name, [""])[0]

    def values(self, name: str) -> list[str]:
        """Return every value of a field."""
        return self.fields.get(name, [])


async def read_page_form(request: HttpRequest) -> PageForm:
    """Parse the request body as a form. Raises: HttpError, ClientDisconnected."""
    kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind == forms.MULTIPART_TYPE:
        upload = await forms.read_multipart(request, MAX_UPLOAD_BYTES, _MAX_PARTS)
        files = tuple((file.name, file.data) for file in upload.files)
        return PageForm({name: [value] for name, value in upload.fields.items()}, files)
    if kind not in (b"application/x-www-form-urlencoded", b""):
        raise HttpError("unsupported_media_type", "the request body must be a form")
    body = await request.body(MAX_FORM_BYTES)
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="replace",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError:
        raise HttpError("invalid_argument", "the form cannot be read") from None
    form = PageForm()
    for name, value in pairs:
        form.fields.setdefault(name, []).append(value)
    return form
