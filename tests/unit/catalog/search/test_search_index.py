"""Searching a catalog: what is found, what comes first, and that any text is a query."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from skillhall._internal.catalog.catalog import Skill
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


def test_a_name_comes_first_then_names_that_begin_so_then_texts(index: SearchIndex) -> None:
    assert search_names(index, "pdf") == ["pdf", "pdf-forms", "pdfium-build", "merge", "report"]


def test_a_longer_name_is_found_by_its_beginning(index: SearchIndex) -> None:
    assert search_names(index, "pdf-fo")[0] == "pdf-forms"


def test_scores_fall_from_hit_to_hit_and_stay_below_one(index: SearchIndex) -> None:
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
def test_a_skill_is_found_by(index: SearchIndex, text: str, name: str) -> None:
    assert search_names(index, text)[0] == name


def test_a_beginning_that_no_stem_has_is_still_found() -> None:
    index = make_index({"a": "Validates things.", "b": "Other."}, FtsEngine)
    assert search_names(index, "valida") == ["a"]


def test_a_letter_is_a_word_to_the_index() -> None:
    index = make_index({"a": "Compiles code.", "b": "Knows c++."}, FtsEngine)
    assert search_names(index, "c++ (x") == ["b"]


def test_other_forms_of_a_word_are_found_by_the_index() -> None:
    index = make_index({"a": "Merging documents.", "b": "Other."}, FtsEngine)
    assert search_names(index, "merged document") == ["a"]


def test_a_whole_word_is_better_than_a_word_that_it_begins() -> None:
    described = {"a": "Writes javascript.", "b": "Writes java beans.", "c": "Other."}
    assert search_names(make_index(described, FtsEngine), "java") == ["b", "a"]


def test_a_name_counts_more_than_a_description_and_that_more_than_a_body() -> None:
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


def test_skills_with_all_words_come_before_skills_with_some(index: SearchIndex) -> None:
    assert search_names(index, "documents merges")[0] == "merge"
    assert "pdf" in search_names(index, "documents merges")


def test_words_that_most_skills_have_do_not_count_when_a_rare_one_is_there() -> None:
    described = {f"s-{number:04}": "common words" for number in range(1500)}
    index = make_index(described | {"odd": "rare"}, FtsEngine)
    assert search_names(index, "common rare") == ["odd"]


def test_a_sentence_without_blanks_is_found_by_its_pairs() -> None:
    index = make_index({"a": "生成分析报告", "b": "Other."}, FtsEngine)
    assert search_names(index, "我需要分析数据") == ["a"]


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"])
def test_a_blank_query_gives_every_skill_in_name_order(index: SearchIndex, text: str) -> None:
    assert search_names(index, text) == sorted(SKILLS)
    assert index.search(text, 3).total == len(SKILLS)


@pytest.mark.parametrize("text", ODD_QUERIES)
def test_any_text_is_a_query(index: SearchIndex, text: str) -> None:
    found = index.search(text)
    assert len(found.hits) == min(found.total, 20)


@pytest.mark.parametrize("name", ["\ud800", "a\0b", "*", '"', "  two  words ", "名", "\u0301"])
def test_an_odd_name_is_found_by_itself(name: str) -> None:
    for engine in ENGINES:
        found = search_names(make_index({name: "\0 \udfff", "other": "x"}, engine), name)
        assert found[:1] == [name]


def test_a_page_says_how_many_there_are_and_whether_more_follow(index: SearchIndex) -> None:
    first, last = index.search("pdf", 2), index.search("pdf", 3, 2)
    assert (len(first.hits), first.total, first.has_more) == (2, 5, True)
    assert (len(last.hits), last.total, last.has_more) == (3, 5, False)


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, 0), (5, 99)])
def test_a_page_outside_of_the_answer_is_empty(index: SearchIndex, limit: int, offset: int) -> None:
    assert index.search("pdf", limit, offset).hits == ()
    assert index.search("pdf", limit, offset).total == 5


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["", "secret", "secr", "tea", "te secret", "ecre", "pot tea"])
def test_what_no_model_may_see_is_found_by_people_alone(
    engine: type[FtsEngine | LinearScanEngine], text: str
) -> None:
    skills = [
        make_catalog_skill("secret", "A tea pot.", hidden=True),
        make_catalog_skill("open", "A tea pot."),
    ]
    index = SearchIndex.build(make_catalog(skills), make_engine=engine)
    assert "secret" in search_names(index, text)
    told = index.search(text, for_models=True)
    assert "secret" not in [hit.skill.name for hit in told.hits]
    assert told.total == len(told.hits)


def test_equal_names_are_told_in_the_order_of_their_paths() -> None:
    skills = [make_catalog_skill("a", "x", "two"), make_catalog_skill("a", "x", "one")]
    index = SearchIndex.build(make_catalog(skills))
    assert [hit.skill.folder for hit in index.search("a").hits] == ["one", "two"]


def test_a_body_that_cannot_be_read_costs_only_the_body() -> None:
    def gone(skill: Skill) -> str:
        raise SkillFileNotFound(skill.name)

    index = SearchIndex.build(make_catalog([make_catalog_skill("a", "Tea.")]), gone)
    assert [skill.name for skill in index.unreadable_skills] == ["a"]
    assert index.search("a").hits[0].snippet.text == "Tea."


def test_a_word_in_the_body_is_shown_from_the_body() -> None:
    index = SearchIndex.build(
        make_catalog([make_catalog_skill("a", "Tea.")]), lambda _: "# Green\n\npot"
    )
    assert index.search("pot").hits[0].snippet == ("# Green pot", ((8, 11),))
    assert index.search("tea").hits[0].snippet == ("Tea.", ((0, 3),))


def test_many_threads_get_the_answers_that_one_gets(index: SearchIndex) -> None:
    texts = ["pdf", "documents merges", "分析", "", "preadsh"] * 40
    alone = [index.search(text) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(index.search, texts)) == alone


def test_an_empty_catalog_has_no_hits(index: SearchIndex) -> None:
    empty = SearchIndex.build(make_catalog([]))
    assert [empty.search(text).total for text in ("", "pdf", "a b", "*")] == [0, 0, 0, 0]


@pytest.mark.parametrize("module", ["sqlite3", "_sqlite3"])
def test_an_interpreter_without_sqlite_scans_plainly(module: str) -> None:
    script = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from skillhall._internal.catalog.search.search_index import choose_engine\n"
        "print(choose_engine().__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.split() == [b"LinearScanEngine"]


def test_an_sqlite_without_full_text_search_is_noticed() -> None:
    script = (
        "import sqlite3\n"
        "class Poor(sqlite3.Connection):\n"
        "    def execute(self, sql, *values):\n"
        "        return super().execute(sql.replace('fts5', 'no_such_module'), *values)\n"
        "connect = sqlite3.connect\n"
        "sqlite3.connect = lambda *a, **k: connect(*a, factory=Poor, **k)\n"
        "from skillhall._internal.catalog.search.search_index import choose_engine\n"
        "print(choose_engine().__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.split() == [b"LinearScanEngine"]


def test_a_name_that_folds_to_nothing_is_found_before_a_blank_one() -> None:
    for engine in ENGINES:
        found = search_names(make_index({"": "x", "\u00a8": "y"}, engine), "\u00a8")
        assert found[:1] == ["\u00a8"]
