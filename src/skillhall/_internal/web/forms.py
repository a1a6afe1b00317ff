"""What browsers send: the fields and files of a form, bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from skillhall._internal.http import multipart as forms
from skillhall._internal.http.http_error import HttpError

if TYPE_CHECKING:
    from skillhall._internal.http.request import HttpRequest

MAX_UPLOAD_BYTES = 110 * 1024 * 1024  # bytes of a form with files
MAX_FORM_BYTES = 2 * 1024 * 1024  # bytes of one without: a SKILL.md in the longest way to write it
_MAX_PARTS = 2_100  # of a form with files; one skill has 2,000 at most
_MAX_FIELDS = 4_000


@dataclass(frozen=True, slots=True)
class PageForm:
    """The fields by name, each with all its values, and the files with their names."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    files: tuple[tuple[str, bytes], ...] = ()

    def text(self, name: str) -> str:
        """The first value of a field; "" without one."""
        return self.fields.get(name, [""])[0]

    def values(self, name: str) -> list[str]:
        """Every value of a field."""
        return self.fields.get(name, [])


async def read_page_form(request: HttpRequest) -> PageForm:
    """The form in the body. Raises: Refused, ClientGone."""
    kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind == forms.MULTIPART_TYPE:
        sent = await forms.read_multipart(request, MAX_UPLOAD_BYTES, _MAX_PARTS)
        files = tuple((one.name, one.data) for one in sent.files)
        return PageForm({name: [value] for name, value in sent.fields.items()}, files)
    if kind not in (b"application/x-www-form-urlencoded", b""):
        raise HttpError("unsupported_media_type", "the body must be sent as a form")
    body = await request.body(MAX_FORM_BYTES)
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="replace",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError:
        raise _malformed_form_error() from None
    form = PageForm()
    for name, value in pairs:
        form.fields.setdefault(name, []).append(value)
    return form


def _malformed_form_error() -> HttpError:
    return HttpError("invalid_argument", "the form cannot be read")
