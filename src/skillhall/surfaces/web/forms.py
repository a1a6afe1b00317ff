"""What browsers send: the fields and files of a form, bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from skillhall.surfaces.http.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from skillhall.surfaces.http.exchange import Exchange

MAX_UPLOAD = 110 * 1024 * 1024  # bytes of a form with files
MAX_FORM = 2 * 1024 * 1024  # bytes of one without: a SKILL.md in the longest way to write it
_MAX_FILES = 2_100  # one skill has 2,000 at most
_MAX_FIELDS = 4_000


@dataclass(frozen=True, slots=True)
class Form:
    """The fields by name, each with all its values, and the files by the name they came under."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """The first value of a field; "" without one."""
        return self.fields.get(name, [""])[0]

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return self.fields.get(name, [])


async def read_form(exchange: Exchange) -> Form:
    """The form in the body. Raises: Refused, ClientGone."""
    header = exchange.header(b"content-type") or b""
    kind, options = parse_options_header(header)
    if kind == b"multipart/form-data" and b"boundary" in options:
        return await _read_multipart(header, await exchange.body(MAX_UPLOAD))
    if kind not in (b"application/x-www-form-urlencoded", b""):
        raise Refused("unsupported_media_type", "the body must be sent as a form")
    body = await exchange.body(MAX_FORM)
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="replace",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError:
        raise _broken() from None
    form = Form()
    for name, value in pairs:
        form.fields.setdefault(name, []).append(value)
    return form


async def _read_multipart(header: bytes, body: bytes) -> Form:
    async def once() -> AsyncGenerator[bytes, None]:
        yield body

    parser = MultiPartParser(
        Headers({"content-type": header.decode("latin-1")}),
        once(),
        max_files=_MAX_FILES,
        max_fields=_MAX_FIELDS,
        max_part_size=MAX_FORM,
    )
    try:
        data = await parser.parse()
    except (MultiPartException, FormParserError, KeyError, UnicodeDecodeError):
        raise _broken() from None
    form = Form()
    for name, value in data.multi_items():
        if not isinstance(value, UploadFile):
            form.fields.setdefault(name, []).append(value)
        elif value.filename:  # an empty choice is sent as a file without a name
            form.files[value.filename] = await value.read()
    await data.close()
    return form


def _broken() -> Refused:
    return Refused("invalid_argument", "the form cannot be read")
