import asyncio

import pytest
from starlette.types import Message

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.multipart import (
    MAX_FIELD_BYTES,
    FormFile,
    MultipartForm,
    read_multipart,
)
from skillhall._internal.http.request import HEADERS_KEY, HttpRequest
from tests.support.forms import FORM, make_form

TYPE = FORM["Content-Type"]


def read(
    data: bytes, *, step: int = 7, limit: int = 100_000, most: int = 9, kind: str = TYPE
) -> MultipartForm:
    """The form in a body that comes in small pieces."""
    headers = {b"transfer-encoding": b"chunked", b"content-type": kind.encode()}
    pieces = [data[start : start + step] for start in range(0, len(data), step)] or [b""]

    async def receive() -> Message:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    exchange = HttpRequest({HEADERS_KEY: headers, "headers": []}, receive)
    return asyncio.run(read_multipart(exchange, limit, most))


def refused(data: bytes, **how: int) -> str:
    with pytest.raises(HttpError) as refusal:
        read(data, **how)  # type: ignore[arg-type]  # all of them are numbers
    return refusal.value.code


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_files_and_fields_are_told_apart_however_they_arrive(step: int) -> None:
    data = bytes(range(256)) + b"\r\n------form7f3"
    form = make_form([("files", "pdf/a b.bin", data)], {"id": "größe"})
    assert read(form, step=step) == MultipartForm(
        {"id": "größe"}, [FormFile("files", "pdf/a b.bin", data)]
    )


def test_a_picker_in_which_nothing_was_chosen_gives_no_file() -> None:
    assert read(make_form([("file", "", b"")])).files == []


def test_a_form_is_bounded_in_bytes_parts_and_texts() -> None:
    assert refused(make_form([("file", "a", b"x" * 5000)]), limit=4000) == "too_large"
    assert refused(make_form([("files", str(n), b"") for n in range(10)])) == "too_many"
    assert refused(make_form(fields={"id": "x" * (MAX_FIELD_BYTES + 1)})) == "too_large"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        make_form([("file", "a", b"x")])[:-8],
        make_form([("file", "a", b"x")]).replace(b"form-data;", b"attachment;"),
        make_form([("file", "a", b"x")]).replace(b'name="file"; ', b""),
        make_form([("file", "a", b"x")]).replace(b'"a"', b'"\xff"'),
        make_form([("file", "a", b"x")]).replace(b"text/plain", b"x" * 5000),
        make_form(fields={"id": "a"})[: -len(make_form())] + make_form(fields={"id": "b"}),
    ],
)
def test_a_form_that_is_damaged_is_refused(data: bytes) -> None:
    assert refused(data) == "invalid_argument"


@pytest.mark.parametrize(
    "kind", ["multipart/form-data", f"multipart/form-data; boundary={'x' * 999}"]
)
def test_a_form_needs_a_boundary_as_the_rules_have_it(kind: str) -> None:
    with pytest.raises(HttpError, match="form"):
        read(make_form(), kind=kind)
