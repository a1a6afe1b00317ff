"""Saved views of the skill list: their cookie, names and limits."""

import base64
import json

import pytest

from skillhall._internal.skill_store.skill_table import SkillQuery
from skillhall._internal.web.skills.saved_views import (
    MAX_VIEW_NAME,
    SavedView,
    decode_views,
    encode_views,
)
from skillhall.errors import FieldRefused, SkillhallError

RISKY = SkillQuery("pdf & more", {"risk": ("L2", "L3")}, "tokens", "desc")


def encode(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def test_saved_views_are_read_from_their_cookie() -> None:
    views = (SavedView.build("危险 risky", RISKY), SavedView.build(" all ", SkillQuery()))
    assert decode_views(encode_views(views)) == views
    assert views[0].url.startswith("/skills?q=pdf+%26+more&risk=L2&risk=L3")
    assert views[1] == ("all", "")
    assert views[1].url == "/skills"


@pytest.mark.parametrize(
    "cookie",
    ["", "%", "ü", "e30", encode(3), encode([1]), encode([["a"]]), encode([["a", "b", 1]])],
)
def test_invalid_cookie_has_no_views(cookie: str) -> None:
    assert decode_views(cookie) == ()


def test_view_of_a_cookie_has_only_parameters_of_the_list() -> None:
    (view,) = decode_views(encode([["x", "q=a&next=//evil.example&sort=bogus"]]))
    assert view.url == "/skills?q=a"


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * (MAX_VIEW_NAME + 1)])
def test_invalid_view_name_is_refused(name: str) -> None:
    with pytest.raises(SkillhallError):
        SavedView.build(name, RISKY)


def test_views_that_do_not_fit_into_a_cookie_are_refused() -> None:
    views = [SavedView.build(f"view {number}", RISKY) for number in range(100)]
    with pytest.raises(FieldRefused, match="no room for another saved view"):
        encode_views(views)
