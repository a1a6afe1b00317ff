"""Forms with files, as browsers send them: taken apart while they arrive, within bounds."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from skillhall._internal.http.http_error import Refused

if TYPE_CHECKING:
    from skillhall._internal.http.request import Exchange

MULTIPART = b"multipart/form-data"
MAX_TEXT = 4096  # bytes of a field that is no file
_HEADERS, _HEADER = 8, 4096  # of each part, and the bytes of one
_DISPOSITION = b"content-disposition"


class FormFile(NamedTuple):
    """A file of a form; a folder picker sends its path in the folder as its name."""

    field: str
    name: str
    data: bytes


class Form(NamedTuple):
    """What a form holds."""

    fields: dict[str, str]
    files: list[FormFile]


async def read_form(exchange: Exchange, limit: int, most: int) -> Form:
    """The form in a body of up to `limit` bytes and `most` parts. Raises: Refused, ClientGone."""
    reading = _Reading(_boundary(exchange.header(b"content-type") or b""), most)
    await exchange.stream(limit, reading.take)
    return reading.form()


def _boundary(content_type: bytes) -> bytes:
    found = parse_options_header(content_type[:_HEADER])[1].get(b"boundary", b"")
    if not found:
        raise Refused("invalid_argument", "the form's boundary is missing")
    return found


class _Part:
    """One part as far as it has come."""

    def __init__(self) -> None:
        self.header = b""  # the name of the header that is coming
        self.headers: dict[bytes, bytes] = {}
        self.field = ""
        self.file: str | None = None
        self.data = BytesIO()


class _Reading:
    """A form that arrives in pieces."""

    def __init__(self, boundary: bytes, most: int) -> None:
        self._left = most
        self._part = _Part()
        self._form = Form({}, [])
        self._is_whole = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_begin": self._begin_header,
                    "on_header_field": self._header_name,
                    "on_header_value": self._header_value,
                    "on_headers_finished": self._name,
                    "on_part_data": self._data,
                    "on_part_end": self._end,
                    "on_end": self._finish,
                },
                max_header_count=_HEADERS,
                max_header_size=_HEADER,
            )
        except FormParserError:
            raise _damaged() from None

    def take(self, piece: bytes) -> None:
        """Read on. Raises: Refused."""
        try:
            self._parser.write(piece)
        except FormParserError:
            raise _damaged() from None

    def form(self) -> Form:
        """All of it. Raises: Refused if its end is missing."""
        if not self._is_whole:
            raise _damaged()
        return self._form

    def _begin(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Refused("too_many", "the form has too many parts")
        self._part = _Part()

    def _begin_header(self) -> None:
        self._part.header = b""

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._part.header += data[start:end].lower()

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        headers, name = self._part.headers, self._part.header
        headers[name] = headers.get(name, b"") + data[start:end]

    def _name(self) -> None:
        kind, options = parse_options_header(self._part.headers.get(_DISPOSITION, b""))
        if kind != b"form-data" or b"name" not in options:
            raise _damaged()
        self._part.field = _text(options[b"name"])
        if b"filename" in options:
            self._part.file = _text(options[b"filename"])

    def _data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        if part.file is None and part.data.tell() + end - start > MAX_TEXT:
            raise Refused("too_large", f"the field {part.field!r} is larger than {MAX_TEXT} bytes")
        part.data.write(data[start:end])

    def _end(self) -> None:
        part, data = self._part, self._part.data.getvalue()
        if part.file is not None:
            # A browser sends an empty part for a picker in which nothing was chosen.
            if part.file or data:
                self._form.files.append(FormFile(part.field, part.file, data))
        elif part.field in self._form.fields:
            raise Refused("invalid_argument", f"the field {part.field!r} is given twice")
        else:
            self._form.fields[part.field] = _text(data)

    def _finish(self) -> None:
        self._is_whole = True


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("invalid_argument", "the form holds a text that is not UTF-8") from None


def _damaged() -> Refused:
    return Refused("invalid_argument", "the form cannot be read")
