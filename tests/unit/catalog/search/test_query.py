"""Parsing of queries."""

import pytest

from skillhall._internal.catalog.search.query import (
    MAX_QUERY_LENGTH,
    MAX_TERMS,
    Term,
    build_name_key,
    fold_text,
    list_number_forms,
    loosen_terms,
    parse_query,
    separate_unspaced,
    split_name,
    stem_word,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("PDF tools", [("pdf", False), ("tools", False)]),
        ("pdf* tools", [("pdf", True), ("tools", False)]),
        ("pdf-tools", [("pdf", False), ("tools", False)]),
        ("pdf PDF", [("pdf", False)]),
        ("merge the pdf with this", [("merge", False), ("pdf", False)]),
        (
            "fasse die PDF mit dem Brief zusammen",
            [("fasse", False), ("pdf", False), ("brief", False), ("zusammen", False)],
        ),
        ("to be", [("to", False), ("be", False)]),
        ("c++ (x", [("c", False), ("x", False)]),
        ("PDF文档", [("pdf", False), ("文档", False)]),
        ("snake_case", [("snake", False), ("case", False)]),
        ("*", []),
        ("🎉", []),
        ("", []),
    ],
)
def test_terms_of_a_query(text: str, terms: list[tuple[str, bool]]) -> None:
    assert list(parse_query(text).terms) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("todo list", ["todo", "list"]),
        ("necesito todo el contrato", ["contrato"]),
        ("AI agents in CI", ["ai", "agents", "ci"]),
        ("ho scritto ai clienti", ["scritto", "clienti"]),
        ("code comment", ["code", "comment"]),
        ("comment faire un pdf", ["pdf"]),
    ],
)
def test_word_of_another_language_is_a_stop_word_in_that_language_only(
    text: str, terms: list[str]
) -> None:
    assert [term.text for term in parse_query(text).terms] == terms


def test_go_is_a_language_in_a_short_query_and_a_verb_in_a_prompt() -> None:
    assert [term.text for term in parse_query("tests in go").terms] == ["tests", "go"]
    prompt = "please go through the report and list the errors"
    assert [term.text for term in parse_query(prompt).terms] == ["report", "list", "errors"]


def test_query_has_a_limit_of_terms() -> None:
    assert len(parse_query(" ".join(f"w{number}" for number in range(100))).terms) == MAX_TERMS


def test_query_is_truncated_at_its_limit() -> None:
    assert parse_query("x" * 1_000_000).folded_text == "x" * MAX_QUERY_LENGTH


@pytest.mark.parametrize(
    ("text", "unfinished"),
    [
        ("kube", "kube"),
        ("deploy kube", "kube"),
        ("k", ""),
        ("分析", ""),
        ("deploy the service to our kube", ""),
        ("", ""),
    ],
)
def test_last_word_of_a_short_query_is_unfinished(text: str, unfinished: str) -> None:
    assert parse_query(text).unfinished == unfinished


@pytest.mark.parametrize(
    ("name", "key"),
    [("a-b", "a b"), ("A_B", "a b"), ("a  b", "a b"), ("*", "*"), ("\u0301", "\u0301"), ("É", "e")],
)
def test_name_key_has_the_words_of_a_name(name: str, key: str) -> None:
    assert build_name_key(name) == key


def test_camel_case_is_split_for_the_index() -> None:
    assert split_name("dataAnalysis") == "dataanalysis data analysis"
    assert split_name("data-analysis") == "data-analysis"


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
    assert loosen_terms(terms) == (
        Term("pdf"),
        Term("分析数"),
        Term("分析"),
        Term("析数"),
        Term("文档"),
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("policy", "policies"),
        ("table", "tables"),
        ("class", "classes"),
        ("user", "users"),
        ("cookie", "cookies"),
        ("vulnerable", "vulnerabilities"),
        ("accessible", "accessibility"),
        ("scraper", "scraping"),
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem_word(one) == stem_word(other)


@pytest.mark.parametrize(
    ("singular", "plural"), [("policy", "policies"), ("cache", "caches"), ("class", "classes")]
)
def test_number_forms_of_a_word_have_its_singular_and_plural(singular: str, plural: str) -> None:
    assert plural in list_number_forms(singular)
    assert singular in list_number_forms(plural)
