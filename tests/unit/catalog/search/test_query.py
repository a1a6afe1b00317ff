"""Parsing of queries."""

import pytest

from skillhall._internal.catalog.search.query import (
    MAX_TERMS,
    Term,
    fold_text,
    loosen_terms,
    parse_query,
    separate_unspaced,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("PDF tools", [("pdf", False), ("tools", True)]),
        ("pdf* tools", [("pdf", True), ("tools", True)]),
        ("pdf-tools", [("pdf", False), ("tools", True)]),
        ("pdf PDF", [("pdf", True)]),
        ("c++ (x", [("c", False), ("x", False)]),
        ("PDF文档", [("pdf", False), ("文档", False)]),
        ("snake_case", [("snake", False), ("case", True)]),
        ("*", []),
        ("🎉", []),
        ("", []),
    ],
)
def test_terms_of_a_query(text: str, terms: list[tuple[str, bool]]) -> None:
    assert list(parse_query(text).terms) == terms


def test_query_has_a_limit_of_terms() -> None:
    assert len(parse_query(" ".join(f"w{number}" for number in range(100))).terms) == MAX_TERMS


def test_query_is_truncated_at_its_limit() -> None:
    assert parse_query("x" * 5000).folded_text == "x" * 1000


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Résumé", "resume"),
        ("ÅNGSTRÖM", "angstrom"),
        ("Straße", "strasse"),
        ("ＰＤＦ", "pdf"),
        ("İ", "i"),
        ("ΣΑΣ", "σασ"),
        ("がく", "がく"),
        ("한글", "한글"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_folding_removes_case_and_accents(text: str, folded: str) -> None:
    assert fold_text(text) == folded


def test_characters_of_unspaced_scripts_are_tokens() -> None:
    assert separate_unspaced("pdf文档 x").split() == ["pdf", "文", "档", "x"]


def test_long_unspaced_run_is_split_into_bigrams() -> None:
    terms = (Term("pdf"), Term("分析数"), Term("文档"))
    assert loosen_terms(terms) == (Term("pdf"), Term("分析"), Term("析数"), Term("文档"))
