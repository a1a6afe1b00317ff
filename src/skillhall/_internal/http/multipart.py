"""Parser for multipart forms, with limits on parts and sizes."""

from __future__ import annotations

from io import BytesIO
from typing import NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import stream_body

MULTIPART_TYPE = "multipart/form-data"
MAX_FIELD_BYTES = 4096  # of a field that is not a file
_MAX_PART_HEADERS, _MAX_HEADER_BYTES = 8, 4096
_CONTENT_DISPOSITION = b"content-disposition"


class FormFile(NamedTuple):
    """A file of a form. Folder pickers send its relative path as the name."""

    field: str
    name: str
    data: bytes


class MultipartForm(NamedTuple):
    """The fields and files of a form."""

    fields: dict[str, str]
    files: list[FormFile]


async def read_multipart(request: Request, limit: int, max_parts: int) -> MultipartForm:
    """Read a form of up to `limit` bytes. Raises: HttpError, ClientDisconnect."""
    kind = request.headers.get("content-type", "")[:_MAX_HEADER_BYTES]
    boundary = parse_options_header(kind)[1].get(b"boundary", b"")
    if not boundary:
        raise HttpError("invalid_argument", "the Content-Type of the form has no boundary")
    reader = _MultipartReader(boundary, max_parts)
    await stream_body(request, limit, reader.feed)
    return reader.result()


class _FormPart:
    """The received data of one part."""

    def __init__(self) -> None:
        self.header_name = b""  # of the header being received
        self.headers: dict[bytes, bytes] = {}
        self.field = ""
        self.filename: str | None = None
        self.data = BytesIO()


class _MultipartReader:
    """Incremental reader of a form."""

    def __init__(self, boundary: bytes, max_parts: int) -> None:
        self._parts_left = max_parts
        self._part = _FormPart()
        self._form = MultipartForm({}, [])
        self._is_complete = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part_begin,
                    "on_header_begin": self._on_header_begin,
                    "on_header_field": self._on_header_name,
                    "on_header_value": self._on_header_value,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": self._on_part_data,
                    "on_part_end": self._on_part_end,
                    "on_end": self._on_end,
                },
                max_header_count=_MAX_PART_HEADERS,
                max_header_size=_MAX_HEADER_BYTES,
            )
        except FormParserError:
            raise _malformed_form_error() from None

    def feed(self, chunk: bytes) -> None:
        """Parse a chunk. Raises: HttpError."""
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise _malformed_form_error() from None

    def result(self) -> MultipartForm:
        """Return the form. Raises: HttpError if it is incomplete."""
        if not self._is_complete:
            raise _malformed_form_error()
        return self._form

    def _on_part_begin(self) -> None:
        self._parts_left -= 1
        if self._parts_left < 0:
            raise HttpError("too_many", "the form has too many parts")
        self._part = _FormPart()

    def _on_header_begin(self) -> None:
        self._part.header_name = b""

    def _on_header_name(self, data: bytes, start: int, end: int) -> None:
        self._part.header_name += data[start:end].lower()

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        headers, name = self._part.headers, self._part.header_name
        headers[name] = headers.get(name, b"") + data[start:end]

    def _on_headers_finished(self) -> None:
        kind, options = parse_options_header(self._part.headers.get(_CONTENT_DISPOSITION, b""))
        if kind != b"form-data" or b"name" not in options:
            raise _malformed_form_error()
        self._part.field = _decode_utf8(options[b"name"])
        if b"filename" in options:
            self._part.filename = _decode_utf8(options[b"filename"])

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        if part.filename is None and part.data.tell() + end - start > MAX_FIELD_BYTES:
            raise HttpError(
                "too_large", f"the field {part.field!r} is larger than {MAX_FIELD_BYTES} bytes"
            )
        part.data.write(data[start:end])

    def _on_part_end(self) -> None:
        part, data = self._part, self._part.data.getvalue()
        if part.filename is not None:
            # Browsers send an empty part for a file input without a selection.
            if part.filename or data:
                self._form.files.append(FormFile(part.field, part.filename, data))
        elif part.field in self._form.fields:
            raise HttpError("invalid_argument", f"duplicate field {part.field!r}")
        else:
            self._form.fields[part.field] = _decode_utf8(data)

    def _on_end(self) -> None:
        self._is_complete = True


def _decode_utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise HttpError("invalid_argument", "the form contains text that is not UTF-8") from None


def _malformed_form_error() -> HttpError:
    return HttpError("invalid_argument", "malformed form")
