"""Forms whose page is shown again with their error."""

import pytest
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message

from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall.errors import SkillNotFound


async def receive() -> Message:
    return {"type": "http.request"}


def show(request: PageRequest) -> Response:
    return PlainTextResponse(f"{request.failed_form}: {request.error}")


@on_error(show, "new")
def fail(request: PageRequest) -> Response:
    raise SkillNotFound(request.path_params["id"])


@on_error(show, "new")
def crash(request: PageRequest) -> Response:
    raise OSError(request.path_params["id"])


def make_request() -> PageRequest:
    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    return PageRequest({**scope, "path_params": {"id": "pdf"}}, receive)


def test_failed_form_shows_its_page_with_the_error() -> None:
    assert fail(make_request()).body == b"new: there is no skill named 'pdf'"


def test_unexpected_errors_are_not_shown_in_the_form() -> None:
    with pytest.raises(OSError, match="pdf"):
        crash(make_request())
