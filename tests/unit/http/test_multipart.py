import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.multipart import (
    MAX_FIELD_BYTES,
    FormFile,
    MultipartForm,
    read_multipart,
)
from tests.support.forms import FORM, make_form

TYPE = FORM["Content-Type"]


def read(
    data: bytes, *, step: int = 7, limit: int = 100_000, max_parts: int = 9, kind: str = TYPE
) -> MultipartForm:
    """Parse a form that arrives in chunks of `step` bytes."""
    headers = [(b"transfer-encoding", b"chunked"), (b"content-type", kind.encode())]
    chunks = [data[start : start + step] for start in range(0, len(data), step)] or [b""]

    async def receive() -> Message:
        chunk = chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

    request = Request({"type": "http", "headers": headers}, receive)
    return asyncio.run(read_multipart(request, limit, max_parts))


def error_code(data: bytes, **limits: int) -> str:
    with pytest.raises(HttpError) as caught:
        read(data, **limits)  # type: ignore[arg-type]  # only numbers are passed
    return caught.value.code


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_files_and_fields_are_parsed_from_chunks_of_any_size(step: int) -> None:
    data = bytes(range(256)) + b"\r\n------form7f3"
    form = make_form([("files", "pdf/a b.bin", data)], {"id": "größe"})
    assert read(form, step=step) == MultipartForm(
        {"id": "größe"}, [FormFile("files", "pdf/a b.bin", data)]
    )


def test_empty_file_input_gives_no_file() -> None:
    assert read(make_form([("file", "", b"")])).files == []


def test_form_size_parts_and_fields_are_limited() -> None:
    assert error_code(make_form([("file", "a", b"x" * 5000)]), limit=4000) == "too_large"
    assert error_code(make_form([("files", str(n), b"") for n in range(10)])) == "too_many"
    assert error_code(make_form(fields={"id": "x" * (MAX_FIELD_BYTES + 1)})) == "too_large"


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
def test_malformed_form_is_rejected(data: bytes) -> None:
    assert error_code(data) == "invalid_argument"


@pytest.mark.parametrize(
    "kind", ["multipart/form-data", f"multipart/form-data; boundary={'x' * 999}"]
)
def test_form_without_a_valid_boundary_is_rejected(kind: str) -> None:
    with pytest.raises(HttpError, match="form"):
        read(make_form(), kind=kind)
