"""Errors on pages: sentences of library messages and hints."""

import pytest
from starlette.types import Message

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.web.page_request import PageRequest
from skillhall._internal.web.rendering import capitalize, describe_error
from skillhall.errors import Conflict, FieldRefused, ReviewGone, SkillhallError, SkillNotFound


async def receive() -> Message:
    return {"type": "http.request"}


def make_request() -> PageRequest:
    scope = {"type": "http", "method": "GET", "path": "/skills", "headers": []}
    return PageRequest(scope, receive)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the description is missing", "The description is missing"),
        ("unrestricted tools: Bash", "Unrestricted tools: Bash"),
        ("'acme' is rejected", "'acme' is rejected"),
        ("allowed-tools is a list", "allowed-tools is a list"),
        ("pdf/SKILL.md cannot be read", "pdf/SKILL.md cannot be read"),
        ("", ""),
    ],
)
def test_capitalize_changes_only_a_leading_word(text: str, expected: str) -> None:
    assert capitalize(text) == expected


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SkillNotFound("nope"), "There is no skill named 'nope'."),
        (HttpError("not_found", "this server has no sessions"), "This server has no sessions."),
        (FieldRefused("name", "must not be empty"), "Name: must not be empty."),
        (Conflict("pdf"), "pdf already exists."),
    ],
)
def test_page_error_message_is_a_sentence(error: SkillhallError, message: str) -> None:
    assert describe_error(make_request(), error).message == message


def test_page_error_hint_is_in_the_language_of_the_visitor() -> None:
    assert describe_error(make_request(), ReviewGone()).hint == "Import the skills again."
