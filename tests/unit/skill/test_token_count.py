import pytest

from skillhall._internal.skill.token_count import estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("a" * 425, 100), ("é" * 425, 232), ("\ud800", 1)],
)
def test_estimate_depends_on_characters_and_bytes(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_text_outside_ascii_needs_more_tokens() -> None:
    assert estimate_tokens("日本語" * 100) > estimate_tokens("abc" * 100)
