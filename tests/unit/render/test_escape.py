import pytest

from skillhall._internal.render.escape import (
    escape,
    escape_closing_tag,
    escape_field,
    escape_fields,
    to_single_line,
)


def test_all_five_characters_are_escaped() -> None:
    assert escape("""&<>"'""") == "&amp;&lt;&gt;&quot;&apos;"


def test_text_that_is_escaped_already_is_escaped_again() -> None:
    assert escape("&lt;") == "&amp;lt;"


def test_text_without_special_characters_is_the_same_object() -> None:
    text = "plain text – with a dash"
    assert escape_field(text) is text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\ntwo", "one two"),
        ("one  \r\n\r\n  two", "one two"),
        ("one\u2028two\x85three\x0bfour", "one two three four"),
        ("\none\n", "one"),
        ("one\n", "one"),
        ("one\ttwo", "one two"),
        ("  one  two", "  one  two"),
        ("\n \n", ""),
    ],
)
def test_line_breaks_become_one_space(text: str, line: str) -> None:
    assert to_single_line(text) == line


@pytest.mark.parametrize(
    "unseen", ["\0", "\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\ufffe", "\ud800", "\U000e0041"]
)
def test_characters_that_nobody_sees_are_made_visible(unseen: str) -> None:
    assert to_single_line(f"a{unseen}b") == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("text", ["naïve", "日本語", "a\u00a0b", "👩\u200d🔧", "مرحبا"])
def test_text_in_any_script_stays(text: str) -> None:
    assert to_single_line(text) == text


def test_fields_together_are_what_they_are_alone() -> None:
    texts = ("plain", "a & b", "two\nlines <x>", "日本\x1b")
    assert escape_fields(*texts) == tuple(map(escape_field, texts))
    assert escape_fields("plain", "it's") == ("plain", "it&apos;s")


@pytest.mark.parametrize("closing", ["</skill>", "</SKILL >", "</Skill_content>"])
def test_a_body_cannot_close_its_element(closing: str) -> None:
    assert escape_closing_tag(f"a{closing}b", "skill") == f"a&lt;{closing[1:]}b"


def test_everything_else_in_a_body_stays_and_its_edges_are_trimmed() -> None:
    assert escape_closing_tag("\n <b>&amp;</b> <skill> </ski ll>\n\n", "skill") == (
        "<b>&amp;</b> <skill> </ski ll>"
    )


@pytest.mark.parametrize(
    "unseen", ["\u200b", "\u2060", "\ufeff", "\u202e", "\xad", "\U000e0041", "\U000e0101", "\x1b"]
)
def test_what_no_reader_sees_does_not_reach_a_model(unseen: str) -> None:
    assert unseen not in to_single_line(f"a{unseen}b é")
    assert unseen not in "".join(escape_fields(f"a{unseen}b", "c"))


@pytest.mark.parametrize("text", ["❤\ufe0f", "👩\u200d💻", "می\u200cخواهم"])
def test_joiners_and_emoji_stay(text: str) -> None:
    assert to_single_line(text) == text


WALES = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"


def test_emoji_flags_stay_as_they_are() -> None:
    text = f"For {WALES} and \N{WOMAN}\u200d\N{PERSONAL COMPUTER} \u2764\ufe0f"
    assert escape_field(text) == text
    assert escape_fields(text, "plain") == (text, "plain")


def test_tags_behind_an_emoji_flag_are_replaced() -> None:
    assert to_single_line(f"{WALES}\U000e0041") == f"{WALES}\ufffd"
    assert to_single_line(WALES.removesuffix("\U000e007f")) == "\U0001f3f4" + "\ufffd" * 5
