import pytest

from skillhall._internal.workspace import MAX_BUDGET, SessionBudgets, SkillOrigin, Zone
from skillhall._internal.workspace.validation import (
    MAX_CONTENT,
    MAX_DESCRIPTION,
    build_content,
    parse_zone,
    validate_block_type,
    validate_budgets,
    validate_description,
    validate_name,
)
from skillhall.errors import FieldRefused, TextRefused, TooLarge


def test_name_is_trimmed_and_limited_to_one_line() -> None:
    assert validate_name("name", "  Über alles 🙂 ") == "Über alles 🙂"
    for text in ("a\nb", "a\x85b", "a\u2028b", "a\x1bb", "a\0b", "a\ud800b"):
        with pytest.raises(TextRefused):
            validate_name("name", text)
    with pytest.raises(FieldRefused):
        validate_name("name", " ")
    with pytest.raises(TooLarge):
        validate_name("name", "x" * 201)


def test_description_has_a_length_limit() -> None:
    assert validate_description(" two\nlines ") == "two\nlines"
    with pytest.raises(TooLarge):
        validate_description("x" * (MAX_DESCRIPTION + 1))


def test_zones_and_types_are_parsed_by_name() -> None:
    assert parse_zone("stable") is Zone.STABLE
    assert validate_block_type("note") == "note"
    with pytest.raises(FieldRefused):
        parse_zone("")
    with pytest.raises(FieldRefused):
        validate_block_type("Note")


@pytest.mark.parametrize("value", [-1, MAX_BUDGET + 1])
def test_budget_out_of_range_is_rejected(value: int) -> None:
    assert validate_budgets(SessionBudgets(total=0)) == SessionBudgets(total=0)
    with pytest.raises(FieldRefused):
        validate_budgets(SessionBudgets(stable=value))


def test_content_is_kept_unchanged_and_limited_in_bytes() -> None:
    assert build_content("note", Zone.STABLE, "a\r\n\x1b").text == "a\r\n\x1b"
    assert build_content("note", Zone.STABLE, "x" * MAX_CONTENT).tokens > 100_000
    with pytest.raises(TooLarge):
        build_content("note", Zone.STABLE, "é" * (MAX_CONTENT // 2 + 1))
    with pytest.raises(TextRefused):
        build_content("skill", Zone.STABLE, "", SkillOrigin("a\0", "", "", ""))
