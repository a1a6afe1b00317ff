import pytest

from skillhall._internal.render.escape import (
    escape,
    escape_closing_tag,
    escape_field,
    escape_fields,
    to_single_line,
)


def test_all_five_xml_characters_are_escaped() -> None:
    assert escape("""&<>"'""") == "&amp;&lt;&gt;&quot;&apos;"


def test_escaped_text_is_escaped_again() -> None:
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
    "invisible",
    ["\0", "\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\ufffe", "\ud800", "\U000e0041"],
)
def test_invisible_characters_become_replacement_characters(invisible: str) -> None:
    assert to_single_line(f"a{invisible}b") == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("text", ["naïve", "日本語", "a\u00a0b", "👩\u200d🔧", "مرحبا"])
def test_text_in_any_script_is_unchanged(text: str) -> None:
    assert to_single_line(text) == text


def test_escape_fields_equals_escape_field_for_each() -> None:
    texts = ("plain", "a & b", "two\nlines <x>", "日本\x1b")
    assert escape_fields(*texts) == tuple(map(escape_field, texts))
    assert escape_fields("plain", "it's") == ("plain", "it&apos;s")


@pytest.mark.parametrize("closing", ["</skill>", "</SKILL >", "</Skill_content>"])
def test_body_cannot_close_its_element(closing: str) -> None:
    assert escape_closing_tag(f"a{closing}b", "skill") == f"a&lt;{closing[1:]}b"


def test_body_is_trimmed_and_otherwise_unchanged() -> None:
    assert escape_closing_tag("\n <b>&amp;</b> <skill> </ski ll>\n\n", "skill") == (
        "<b>&amp;</b> <skill> </ski ll>"
    )


@pytest.mark.parametrize(
    "invisible",
    ["\u200b", "\u2060", "\ufeff", "\u202e", "\xad", "\U000e0041", "\U000e0101", "\x1b"],
)
def test_invisible_characters_are_removed(invisible: str) -> None:
    assert invisible not in to_single_line(f"a{invisible}b é")
    assert invisible not in "".join(escape_fields(f"a{invisible}b", "c"))


@pytest.mark.parametrize("text", ["❤\ufe0f", "👩\u200d💻", "می\u200cخواهم"])
def test_joiners_and_emoji_are_unchanged(text: str) -> None:
    assert to_single_line(text) == text


WALES = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"


def test_emoji_flags_are_unchanged() -> None:
    text = f"For {WALES} and \N{WOMAN}\u200d\N{PERSONAL COMPUTER} \u2764\ufe0f"
    assert escape_field(text) == text
    assert escape_fields(text, "plain") == (text, "plain")


def test_tags_after_an_emoji_flag_are_replaced() -> None:
    assert to_single_line(f"{WALES}\U000e0041") == f"{WALES}\ufffd"
    assert to_single_line(WALES.removesuffix("\U000e007f")) == "\U0001f3f4" + "\ufffd" * 5
