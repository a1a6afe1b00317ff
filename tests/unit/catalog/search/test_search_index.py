"""Search over a catalog: matches, ranking and unusual queries."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.catalog.search.fts import FtsEngine
from skillhall._internal.catalog.search.linear_scan import LinearScanEngine
from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall.errors import SkillFileNotFound
from tests.support.catalogs import (
    ENGINES,
    make_catalog,
    make_catalog_skill,
    make_index,
    search_names,
)

SKILLS = {
    "pdf": "Reads documents.",
    "pdf-forms": "Fills forms.",
    "pdfium-build": "Compiles a library.",
    "merge": "Merges pdf documents into one.",
    "tables": "Validates spreadsheets; knows Java.",
    "resume": "Schreibt einen schönen Résumé.",
    "report": "生成分析报告, also PDFを結合する.",
    "party": "Celebrates 🎉 with c++ and name: tags.",
}
ODD_QUERIES = [
    *['foo"', '"', "AND", "OR NOT", "NEAR(a b)", "c++ (x", "name:", "*", "a*b*", "^pdf", "-pdf"],
    *["{a}: b", "'; DROP TABLE skills; --", "\0", "pdf\0x", "\ud800", "pdf\udfff", "%", "_"],
    *["🎉🎉", "\u202e", "İ", "ß", "é" * 2000, "a " * 2000, "x" * 100_000, "٣", "ǅ", "\ufffe"],
]


@pytest.fixture(params=ENGINES)
def index(request: pytest.FixtureRequest) -> SearchIndex:
    return make_index(SKILLS, request.param)


def test_exact_name_ranks_before_prefixes_and_texts(index: SearchIndex) -> None:
    assert search_names(index, "pdf") == ["pdf", "pdf-forms", "pdfium-build", "merge", "report"]


def test_name_is_found_by_its_prefix(index: SearchIndex) -> None:
    assert search_names(index, "pdf-fo")[0] == "pdf-forms"


def test_scores_are_descending_and_below_one(index: SearchIndex) -> None:
    scores = [hit.score for hit in index.search("pdf").hits]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] < scores[0] < 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RÉSUMÉ", "resume"),
        ("schonen", "resume"),
        ("SCHO\u0308NEN", "resume"),
        ("分析", "report"),
        ("結合", "report"),
        ("报告", "report"),
        ("preadsh", "tables"),
        ("🎉", "party"),
        ("name:", "party"),
        ("forms fills", "pdf-forms"),
        ("spread* valid", "tables"),
    ],
)
def test_query_finds_skill(index: SearchIndex, text: str, name: str) -> None:
    assert search_names(index, text)[0] == name


def test_prefix_longer_than_the_stem_is_found() -> None:
    index = make_index({"a": "Validates things.", "b": "Other."}, FtsEngine)
    assert search_names(index, "valida") == ["a"]


def test_single_letter_matches_words_only() -> None:
    index = make_index({"a": "Compiles code.", "b": "Knows c++."}, FtsEngine)
    assert search_names(index, "c++ (x") == ["b"]


def test_other_forms_of_a_word_are_found() -> None:
    index = make_index({"a": "Merging documents.", "b": "Other."}, FtsEngine)
    assert search_names(index, "merged document") == ["a"]


def test_exact_word_ranks_before_longer_words() -> None:
    descriptions = {"a": "Writes javascript.", "b": "Writes java beans.", "c": "Other."}
    assert search_names(make_index(descriptions, FtsEngine), "java") == ["b", "a"]


def test_name_ranks_before_description_before_body() -> None:
    skills = [
        make_catalog_skill("a", "x"),
        make_catalog_skill("b", "about tea"),
        make_catalog_skill("my-tea", "x"),
    ]
    skills += [make_catalog_skill(f"other-{number}", "x") for number in range(5)]
    bodies = {"a": "tea"}
    for engine in ENGINES:
        built = SearchIndex.build(
            make_catalog(skills), lambda skill: bodies.get(skill.name, ""), engine
        )
        assert search_names(built, "tea") == ["my-tea", "b", "a"]


def test_skills_with_all_terms_rank_first(index: SearchIndex) -> None:
    assert search_names(index, "documents merges")[0] == "merge"
    assert "pdf" in search_names(index, "documents merges")


def test_common_terms_are_ignored_next_to_a_rare_one() -> None:
    descriptions = {f"s-{number:04}": "common words" for number in range(1500)}
    index = make_index(descriptions | {"odd": "rare"}, FtsEngine)
    assert search_names(index, "common rare") == ["odd"]


def test_unspaced_sentence_is_found_by_its_bigrams() -> None:
    index = make_index({"a": "生成分析报告", "b": "Other."}, FtsEngine)
    assert search_names(index, "我需要分析数据") == ["a"]


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"])
def test_blank_query_returns_all_skills_in_name_order(index: SearchIndex, text: str) -> None:
    assert search_names(index, text) == sorted(SKILLS)
    assert index.search(text, 3).total == len(SKILLS)


@pytest.mark.parametrize("text", ODD_QUERIES)
def test_any_text_is_a_valid_query(index: SearchIndex, text: str) -> None:
    result = index.search(text)
    assert len(result.hits) == min(result.total, 20)


@pytest.mark.parametrize("name", ["\ud800", "a\0b", "*", '"', "  two  words ", "名", "\u0301"])
def test_unusual_name_is_found_by_itself(name: str) -> None:
    for engine in ENGINES:
        names = search_names(make_index({name: "\0 \udfff", "other": "x"}, engine), name)
        assert names[:1] == [name]


def test_page_has_total_and_has_more(index: SearchIndex) -> None:
    first, last = index.search("pdf", 2), index.search("pdf", 3, 2)
    assert (len(first.hits), first.total, first.has_more) == (2, 5, True)
    assert (len(last.hits), last.total, last.has_more) == (3, 5, False)


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, 0), (5, 99)])
def test_page_out_of_range_is_empty(index: SearchIndex, limit: int, offset: int) -> None:
    assert index.search("pdf", limit, offset).hits == ()
    assert index.search("pdf", limit, offset).total == 5


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["", "secret", "secr", "tea", "te secret", "ecre", "pot tea"])
def test_hidden_skill_is_not_found_for_models(
    engine: type[FtsEngine | LinearScanEngine], text: str
) -> None:
    skills = [
        make_catalog_skill("secret", "A tea pot.", hidden=True),
        make_catalog_skill("open", "A tea pot."),
    ]
    index = SearchIndex.build(make_catalog(skills), make_engine=engine)
    assert "secret" in search_names(index, text)
    result = index.search(text, for_models=True)
    assert "secret" not in [hit.skill.name for hit in result.hits]
    assert result.total == len(result.hits)


def test_equal_names_are_sorted_by_path() -> None:
    skills = [make_catalog_skill("a", "x", "two"), make_catalog_skill("a", "x", "one")]
    index = SearchIndex.build(make_catalog(skills))
    assert [hit.skill.folder for hit in index.search("a").hits] == ["one", "two"]


def test_skill_with_unreadable_body_is_still_found() -> None:
    def fail(skill: CatalogSkill) -> str:
        raise SkillFileNotFound(skill.name)

    index = SearchIndex.build(make_catalog([make_catalog_skill("a", "Tea.")]), fail)
    assert [skill.name for skill in index.unreadable_skills] == ["a"]
    assert index.search("a").hits[0].snippet.text == "Tea."


def test_snippet_of_a_body_match_is_from_the_body() -> None:
    catalog = make_catalog([make_catalog_skill("a", "Tea.")])
    index = SearchIndex.build(catalog, lambda _: "# Green\n\npot")
    assert index.search("pot").hits[0].snippet == ("# Green pot", ((8, 11),))
    assert index.search("tea").hits[0].snippet == ("Tea.", ((0, 3),))


def test_concurrent_searches_return_equal_results(index: SearchIndex) -> None:
    texts = ["pdf", "documents merges", "分析", "", "preadsh"] * 40
    expected = [index.search(text) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(index.search, texts)) == expected


def test_empty_catalog_has_no_hits(index: SearchIndex) -> None:
    empty = SearchIndex.build(make_catalog([]))
    assert [empty.search(text).total for text in ("", "pdf", "a b", "*")] == [0, 0, 0, 0]


@pytest.mark.parametrize("module", ["sqlite3", "_sqlite3"])
def test_linear_scan_is_used_without_sqlite(module: str) -> None:
    script = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from skillhall._internal.catalog.search.search_index import choose_engine\n"
        "print(choose_engine().__name__)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert result.stdout.split() == [b"LinearScanEngine"]


def test_linear_scan_is_used_without_full_text_search() -> None:
    script = (
        "import sqlite3\n"
        "class WithoutFts(sqlite3.Connection):\n"
        "    def execute(self, sql, *values):\n"
        "        return super().execute(sql.replace('fts5', 'no_such_module'), *values)\n"
        "connect = sqlite3.connect\n"
        "sqlite3.connect = lambda *a, **k: connect(*a, factory=WithoutFts, **k)\n"
        "from skillhall._internal.catalog.search.search_index import choose_engine\n"
        "print(choose_engine().__name__)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert result.stdout.split() == [b"LinearScanEngine"]


def test_name_that_folds_to_nothing_ranks_before_a_blank_one() -> None:
    for engine in ENGINES:
        names = search_names(make_index({"": "x", "\u00a8": "y"}, engine), "\u00a8")
        assert names[:1] == ["\u00a8"]
