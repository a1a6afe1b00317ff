"""Spelling: mistyped words and other spellings of a word."""

import pytest

from skillhall._internal.catalog.search.query import Term
from skillhall._internal.catalog.search.spelling import (
    correct_word,
    is_numeronym,
    list_variants,
    shorten_word,
    split_word,
    vary_spelling,
)


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("licence", "license"),
        ("colours", "colors"),
        ("organise", "organize"),
        ("organising", "organizing"),
        ("optimisation", "optimization"),
        ("analyse", "analyze"),
        ("centre", "center"),
        ("catalogue", "catalog"),
        ("labelled", "labeled"),
        ("programme", "program"),
    ],
)
def test_british_and_american_spellings_are_variants_of_each_other(
    british: str, american: str
) -> None:
    assert american in vary_spelling(british)
    assert british in vary_spelling(american)


@pytest.mark.parametrize(
    ("short", "full"), [("xlsx", "excel"), ("js", "javascript"), ("pr", "pull request")]
)
def test_abbreviation_and_full_name_are_variants_of_each_other(short: str, full: str) -> None:
    assert full in vary_spelling(short)
    assert short in vary_spelling(full)


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("pull requests", "pr"),
        ("power point", "pptx"),
        ("speech text", "transcription"),
        ("retrieval augmented generation", "rag"),
        ("analyse", "analysis"),
        ("analysis", "analyze"),
    ],
)
def test_name_of_one_or_more_words_is_a_variant_of_each(text: str, variant: str) -> None:
    terms = [Term(word) for word in text.split()]
    assert all(variant in variants for variants in list_variants(terms))


@pytest.mark.parametrize("word", ["for", "four", "test", "server", "データ"])
def test_word_with_one_spelling_has_no_variants(word: str) -> None:
    assert vary_spelling(word) == []


def test_long_word_can_be_shortened_to_a_numeronym() -> None:
    assert shorten_word("kubernetes") == "k8s"
    assert "k8s" in vary_spelling("kubernetes")


@pytest.mark.parametrize(
    ("word", "answer"), [("k8s", True), ("i18n", True), ("mp3", False), ("3d", False), ("a", False)]
)
def test_numeronym_has_a_number_between_two_letters(word: str, answer: bool) -> None:
    assert is_numeronym(word) is answer


def test_mistyped_word_is_corrected_to_the_most_frequent_known_word() -> None:
    known = {"docker": 1, "docket": 3, "kubernetes": 1}
    assert correct_word("dockes", known) == "docket"
    assert correct_word("kubarnates", known) == "kubernetes"
    assert correct_word("zip", known) is None


def test_word_is_split_into_two_of_at_least_two_letters() -> None:
    assert split_word("uikits") == ["ui kits", "uik its", "uiki ts"]
    assert split_word("abc") == []


def test_very_long_word_is_not_corrected() -> None:
    # Its neighbors would take more than a gigabyte.
    assert correct_word("x" * 4000, {"x" * 3999: 1}) is None
