"""Errors on pages: sentences of library messages and hints."""

from datetime import UTC, datetime, timedelta

import pytest
from starlette.types import Message

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.skill_store.skill_table import FacetValue, SkillQuery
from skillhall._internal.web.page_request import PageRequest
from skillhall._internal.web.rendering import (
    describe_error,
    format_age,
    format_minute,
    render_macro,
)
from skillhall._internal.web.skills.list_pages import ListedFacet, ListView
from skillhall._internal.web.translations import load_translations
from skillhall.errors import Conflict, FieldRefused, ReviewGone, SkillhallError, SkillNotFound


async def receive() -> Message:
    return {"type": "http.request"}


def make_request() -> PageRequest:
    scope = {"type": "http", "method": "GET", "path": "/skills", "headers": []}
    return PageRequest(scope, receive)


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


def test_chinese_page_error_is_translated_with_its_facts() -> None:
    scope = {**make_request().scope, "headers": [(b"accept-language", b"zh-CN")]}
    error = describe_error(PageRequest(scope, receive), SkillNotFound("nope"))
    assert error.message == "没有名为 'nope' 的技能。"


def test_page_error_hint_is_in_the_language_of_the_visitor() -> None:
    assert describe_error(make_request(), ReviewGone()).hint == "Import the skills again."


@pytest.mark.parametrize(
    ("past", "text"),
    [
        (timedelta(seconds=20), "just now"),
        (timedelta(minutes=1, seconds=5), "1 minute ago"),
        (timedelta(hours=5, minutes=1), "5 hours ago"),
        (timedelta(days=29, minutes=1), "29 days ago"),
        (timedelta(days=70), "2 months ago"),
        (timedelta(days=800), "2 years ago"),
        (-timedelta(days=30, minutes=1), "in 1 month"),
        (-timedelta(seconds=20), "in less than a minute"),
    ],
)
def test_age_is_in_the_largest_unit(past: timedelta, text: str) -> None:
    time = (datetime.now(UTC) - past).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert format_age(time, load_translations("en")) == text
    assert format_minute("2026-01-31T09:05:07.123Z") == "2026-01-31 09:05 UTC"


def test_filter_by_finding_explains_the_code_on_hover() -> None:
    values = [(FacetValue("name-uppercase", 1, is_selected=False), "name-uppercase")]
    facet = ListedFacet("findings", tuple(values))
    view = ListView(SkillQuery())
    html = render_macro("parts.html", "facet_links", load_translations("zh"), view, facet, values)
    assert 'title="名称不是小写。"' in html
