"""Sections of a text: how they are split and ranked."""

from collections.abc import Sequence

import pytest

from skillhall._internal.catalog.search.query import Term
from skillhall._internal.catalog.search.sections import (
    MAX_SECTIONS,
    format_section_term,
    number_sections,
    rank_texts,
    shorten_text,
    split_sections,
)


def test_text_is_split_before_its_headings() -> None:
    assert split_sections(b"# A\nx\n## B\ny\n### C") == ["# A\nx", " B\ny", "# C"]


def test_last_section_contains_the_rest() -> None:
    sections = split_sections(b"\n## x" * 100)
    assert len(sections) == MAX_SECTIONS
    assert sections[-1].count("x") == 100 - MAX_SECTIONS + 2


def test_unspaced_scripts_are_split_into_pairs() -> None:
    (section,) = split_sections("PDF分析报告 é".encode())
    assert section.split() == ["PDF", "分析", "析报", "报告", "告", "é"]


def test_bytes_that_are_not_text_are_accepted() -> None:
    assert split_sections(b"tea \xff pot") == ["tea \ufffd pot"]


def test_shortened_text_has_its_beginning_and_all_headings() -> None:
    data = b"# Tea\nBrew it." + b" word" * 400 + b"\n## Milk\nMuch." + b"\n### Sugar\nLittle."
    first, headings = split_sections(shorten_text(data))
    assert first.startswith("# Tea\nBrew it. word")
    assert first.endswith(" word")
    assert headings == " Milk # Sugar"


def test_shortened_text_of_a_script_without_spaces_is_cut_anywhere() -> None:
    (section,) = split_sections(shorten_text("茶".encode() * 1000))
    assert section.count("茶茶") > 300


def test_short_text_is_not_shortened() -> None:
    assert shorten_text(b"# Tea\n## Milk\nMuch.") == b"# Tea\n## Milk\nMuch."


@pytest.mark.parametrize(
    ("term", "expression"),
    [
        (Term("tea"), '"tea"'),
        (Term("te", is_prefix=True), '"te" *'),
        (Term("析"), '"析" *'),
        (Term("分析报"), '("分析" AND "析报")'),
    ],
)
def test_expression_of_a_term(term: Term, expression: str) -> None:
    assert format_section_term(term) == expression


def rank(*terms: tuple[str, list[int]]) -> list[tuple[int, float]]:
    """Rank sections by terms, given with the rows that contain them."""
    counts = {term: len(rows) for term, rows in terms}
    return rank_texts(counts, dict(terms).__getitem__, 3, 10)


def test_short_section_ranks_before_a_long_one_and_several_words_before_one() -> None:
    texts = {1: ["x " * 500], 2: ["x y", "other"], 3: ["other", "x"]}
    rows = {n: [row for row, _ in number_sections(n, texts[n])] for n in texts}
    x = [rows[1][0], rows[2][0], rows[3][1]]
    ranked = rank(("y", [rows[2][0]]), ("x", x))
    assert [text for text, _ in ranked] == [2, 3, 1]


def test_text_counts_with_its_best_section() -> None:
    rows = [row for row, _ in number_sections(7, ["a", "b" * 999])]
    ((text, score),) = rank_texts({"x": 2}, {"x": rows}.__getitem__, 1, 10)
    assert (text, score) == (7, max(score, 0))
    assert rank_texts({"x": 2}, {"x": rows[:1]}.__getitem__, 1, 10) == [(7, score)]


def test_further_terms_only_raise_the_scores_of_many_sections() -> None:
    asked = []

    def find(expression: str) -> Sequence[int]:
        asked.append(expression)
        return [1024] if " AND " in expression else range(512, 512 + 20_000 * 8, 8)

    best, *_ = rank_texts({"a": 20_000, "b": 20_000}, find, 100, 2)
    assert asked == ["a", "b AND (a)"]
    assert best[0] == 2
