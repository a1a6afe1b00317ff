import pytest

from skillhall._internal.skill.yaml.quoting import format_scalar, quote_scalar


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", '""'),
        ("a", '"a"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("a\\b", '"a\\\\b"'),
        ("a\nb\tc\r", '"a\\nb\\tc\\r"'),
        ("\x07\x85\u2028\ufeff", '"\\u0007\\u0085\\u2028\\ufeff"'),
        ("é😀", '"é😀"'),
    ],
)
def test_quoted_text_is_on_one_line(text: str, written: str) -> None:
    assert quote_scalar(text) == written


@pytest.mark.parametrize("text", ["a", "Reads PDF files.", "a:b", "a#b", "it's", "C:\\x", "日本語"])
def test_unambiguous_text_stays_plain(text: str) -> None:
    assert format_scalar(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *["", " a", "a ", "a: b", "a #b", "a:", "- a", "'a'", "[a]", "{a}", "#a", "|", ">", "@a"],
        *["true", "no", "null", "~", "1", "1.10", "2024-01-01", "-1", "<<", "=", "&a", "*a", "!a"],
        *["a\nb", "a\n", "a\nname: b", "a\tb", "a\u00a0b", "a\u2028b", "\x07", "---", "..."],
    ],
)
def test_ambiguous_text_is_quoted(text: str) -> None:
    assert format_scalar(text) == quote_scalar(text)
