"""Search over a catalog: matches, ranking and unusual queries."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall.errors import SkillFileNotFound
from tests.support.catalogs import (
    make_catalog_skill,
    make_index,
    read_head,
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


@pytest.fixture
def index() -> SearchIndex:
    return make_index(SKILLS)


def test_names_and_whole_words_rank_before_parts_of_words(index: SearchIndex) -> None:
    assert search_names(index, "pdf") == ["pdf", "pdf-forms", "merge", "report", "pdfium-build"]


def test_name_is_found_by_its_prefix(index: SearchIndex) -> None:
    assert search_names(index, "pdf-fo")[0] == "pdf-forms"


def test_scores_are_descending_and_below_one(index: SearchIndex) -> None:
    scores = [hit.score for hit in index.search("pdf").hits]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] < scores[0] <= 1


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
    index = make_index({"a": "Validates things.", "b": "Other."})
    assert search_names(index, "valida") == ["a"]


def test_single_letter_matches_words_only() -> None:
    index = make_index({"a": "Compiles code.", "b": "Knows c++."})
    assert search_names(index, "c++ (x") == ["b"]


def test_other_forms_of_a_word_are_found() -> None:
    index = make_index({"a": "Merging documents.", "b": "Other."})
    assert search_names(index, "merged document") == ["a"]


def test_exact_word_ranks_before_longer_words() -> None:
    descriptions = {"a": "Writes javascript.", "b": "Writes java beans.", "c": "Other."}
    assert search_names(make_index(descriptions), "java") == ["b", "a"]


def test_name_ranks_before_description_before_body() -> None:
    skills = [
        make_catalog_skill("a", "x"),
        make_catalog_skill("b", "about tea"),
        make_catalog_skill("my-tea", "x"),
    ]
    skills += [make_catalog_skill(f"other-{number}", "x") for number in range(5)]
    bodies = {"a": b"tea"}
    index = SearchIndex.build(skills, lambda skill: read_head(skill) + bodies.get(skill.name, b""))
    assert search_names(index, "tea") == ["my-tea", "b", "a"]


def test_skills_with_all_terms_rank_first(index: SearchIndex) -> None:
    assert search_names(index, "documents merges")[0] == "merge"
    assert "pdf" in search_names(index, "documents merges")


def test_rare_term_ranks_before_common_terms() -> None:
    descriptions = {f"s-{number:04}": "common words" for number in range(1500)}
    index = make_index(descriptions | {"odd": "rare"})
    assert search_names(index, "common rare")[0] == "odd"


def test_unspaced_sentence_is_found_by_its_bigrams() -> None:
    index = make_index({"a": "生成分析报告", "b": "Other."})
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
    names = search_names(make_index({name: "\0 \udfff", "other": "x"}), name)
    assert names[:1] == [name]


@pytest.mark.parametrize("text", ["分析报告", "分析", "析", "告", "我需要分析数据"])
def test_unspaced_text_is_found_in_a_body(text: str) -> None:
    skills = [make_catalog_skill("a", "x"), make_catalog_skill("b", "y")]
    bodies = {"a": "# 报告\n## 步骤\n生成分析报告", "b": "# 数字\n析数, 告分"}
    index = SearchIndex.build(skills, lambda skill: bodies[skill.name].encode())
    assert search_names(index, text)[0] == "a"


def test_letter_that_the_tokenizer_does_not_know_separates_words() -> None:
    index = SearchIndex.build([make_catalog_skill("a", "x")], lambda _: b"tea")
    assert search_names(index, "tea a\u19b0b") == ["a"]


@pytest.mark.parametrize(
    ("text", "name"),
    [("web scraping", "web-scraper"), ("review of contracts", "contract-review")],
)
def test_name_with_other_forms_of_the_words_is_first(text: str, name: str) -> None:
    descriptions = {f"web-contracts-{n}": "Scraping the web, review." for n in range(20)}
    index = make_index(descriptions | {name: "Something else."})
    assert search_names(index, text)[0] == name


def test_words_next_to_each_other_rank_before_the_same_words_apart() -> None:
    index = make_index({"a": "Days of 90 plans, the first.", "b": "Plans the first 90 days of."})
    assert search_names(index, "first 90 days") == ["b", "a"]


def test_page_has_total_and_has_more(index: SearchIndex) -> None:
    first, last = index.search("pdf", 2), index.search("pdf", 3, 2)
    assert (len(first.hits), first.total, first.has_more) == (2, 5, True)
    assert (len(last.hits), last.total, last.has_more) == (3, 5, False)


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, 0), (5, 99)])
def test_page_out_of_range_is_empty(index: SearchIndex, limit: int, offset: int) -> None:
    assert index.search("pdf", limit, offset).hits == ()
    assert index.search("pdf", limit, offset).total == 5


@pytest.mark.parametrize("text", ["", "secret", "secr", "tea", "te secret", "ecre", "pot tea"])
def test_skill_that_the_caller_excludes_is_not_found(text: str) -> None:
    skills = [
        make_catalog_skill("secret", "A tea pot.", hidden=True),
        make_catalog_skill("open", "A tea pot."),
    ]
    index = SearchIndex.build(skills, lambda skill: read_head(skill) + skill.name.encode())
    assert "secret" in search_names(index, text)
    result = index.search(text, keep=lambda skill: not skill.hidden)
    assert "secret" not in [hit.skill.name for hit in result.hits]
    assert result.total == len(result.hits)


def test_equal_names_are_sorted_by_path() -> None:
    skills = [make_catalog_skill("a", "x", "two"), make_catalog_skill("a", "x", "one")]
    index = SearchIndex.build(skills, lambda skill: skill.folder.encode())
    assert [hit.skill.folder for hit in index.search("a").hits] == ["one", "two"]


def test_copies_are_one_hit() -> None:
    skills = [make_catalog_skill(name, "Brews tea.", name) for name in ("b", "a", "tea", "other")]
    texts = {"other": b"Another text"}
    index = SearchIndex.build(skills, lambda skill: texts.get(skill.name, b"Brew the Tea. "))
    result = index.search("tea")
    assert [hit.skill.name for hit in result.hits] == ["tea", "other"]
    assert [copy.name for copy in result.hits[0].copies] == ["a", "b"]
    assert result.total == 2


def test_skill_with_unreadable_body_is_still_found() -> None:
    def fail(skill: CatalogSkill) -> bytes:
        raise SkillFileNotFound(skill.name)

    index = SearchIndex.build([make_catalog_skill("a", "Tea.")], fail)
    assert [skill.name for skill in index.unreadable_skills] == ["a"]
    assert index.search("a").hits[0].snippet.text == "Tea."


def test_snippet_of_a_body_match_is_from_the_body() -> None:
    index = SearchIndex.build([make_catalog_skill("a", "Tea.")], lambda _: b"# Green\n\npot")
    assert index.search("pot").hits[0].snippet == ("# Green pot", ((8, 11),))
    assert index.search("tea").hits[0].snippet == ("Tea.", ((0, 3),))


def test_concurrent_searches_return_equal_results(index: SearchIndex) -> None:
    texts = ["pdf", "documents merges", "分析", "", "preadsh"] * 40
    expected = [index.search(text) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(index.search, texts)) == expected


def test_empty_catalog_has_no_hits(index: SearchIndex) -> None:
    empty = SearchIndex.build([])
    assert [empty.search(text).total for text in ("", "pdf", "a b", "*")] == [0, 0, 0, 0]


def test_name_that_folds_to_nothing_ranks_before_a_blank_one() -> None:
    names = search_names(make_index({"": "x", "\u00a8": "y"}), "\u00a8")
    assert names[:1] == ["\u00a8"]


@pytest.mark.parametrize(
    "text", ["data analysis", "Data Analysis", "data_analysis", "analysis-data"]
)
def test_name_with_the_words_of_the_query_is_first(text: str) -> None:
    descriptions = {f"data-tool-{n}": "Data analysis of data for analysis." for n in range(20)}
    index = make_index(descriptions | {"data-analysis": "Explores tables."})
    assert search_names(index, text)[0] == "data-analysis"


def test_exact_word_ranks_before_a_name_with_the_same_stem() -> None:
    index = make_index(
        {"slide-excellence": "Excellent slides.", "xlsx": "Edits Excel files and workbooks."}
    )
    assert search_names(index, "excel") == ["xlsx", "slide-excellence"]


@pytest.mark.parametrize(
    "text", ["kubernets", "kuberentes", "kubernettes", "kubernates deploy", "kubarnetas"]
)
def test_mistyped_name_is_found(text: str) -> None:
    index = make_index({"kubernetes-helper": "Runs pods.", "cooking": "Makes soup."})
    assert search_names(index, text)[0] == "kubernetes-helper"


@pytest.mark.parametrize(
    "text", ["instaram captions", "intsagram", "caption instagramm", "lighthuose", "webvitals"]
)
def test_mistyped_word_of_a_description_is_found(text: str) -> None:
    about = "Writes captions for Instagram, and reads Lighthouse reports of web vitals."
    index = make_index({"posts": about, "cooking": "Makes soup."})
    assert search_names(index, text)[0] == "posts"


def test_mistyped_word_of_the_instructions_is_found() -> None:
    skills = [make_catalog_skill("git-rescue", "Helps."), make_catalog_skill("other", "Helps.")]
    bodies = {"git-rescue": b"Use the reflog.", "other": b"Cook."}
    index = SearchIndex.build(skills, lambda skill: bodies[skill.name])
    assert search_names(index, "refolg") == ["git-rescue"]


@pytest.mark.parametrize("text", ["webscraping", "WebScraper", "web scraper"])
def test_two_words_written_as_one_are_found(text: str) -> None:
    index = make_index({"web-scraper": "Web scraping.", "scraping-web": "Cleans a web.", "a": "B."})
    assert search_names(index, text)[0] == "web-scraper"


def test_start_of_a_word_is_not_corrected() -> None:
    index = make_index({"a": "Reads analyses.", "b": "Reads the analyst."})
    assert sorted(search_names(index, "analys")) == ["a", "b"]
    assert search_names(index, "analyse") == ["a"]


def test_word_that_exists_is_neither_corrected_nor_split() -> None:
    index = make_index({"a": "Finds a password.", "b": "Checks that you pass word tests."})
    assert search_names(index, "password") == ["a"]


def test_word_at_the_start_of_a_description_ranks_before_the_same_word_later() -> None:
    late = "Plans a move with boxes, helpers and a van, or packs slides. Slides, slides."
    index = make_index({"a": late, "b": "Makes slides for talks, with notes, layouts and themes."})
    assert search_names(index, "slides") == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("licence check", "license-texts"),
        ("visualize", "visualiser"),
        ("k8s", "kubernetes-help"),
        ("internationalization", "i18n"),
        ("data base", "database"),
        ("pull request", "create-pr"),
        ("pr", "pull-request-help"),
        ("powerpoint", "pptx"),
        ("power point", "pptx"),
    ],
)
def test_word_is_found_in_another_spelling(text: str, name: str) -> None:
    names = ["license-texts", "kubernetes-help", "i18n", "database", "pptx"]
    names.append("create-pr" if text == "pull request" else "pull-request-help")
    descriptions = dict.fromkeys(names, "Helps.")
    index = make_index({**descriptions, "visualiser": "Can visualise."})
    assert search_names(index, text)[0] == name


def test_name_in_another_spelling_ranks_before_a_longer_word() -> None:
    index = make_index({"slide-excellence": "Excellent slides.", "xlsx": "Edits Excel files."})
    assert search_names(index, "excel") == ["xlsx", "slide-excellence"]


def test_plural_ranks_before_another_form_of_a_word() -> None:
    index = make_index({"a": "Present results to managers.", "b": "Makes all presentations."})
    assert search_names(index, "presentation") == ["b", "a"]


def test_name_whose_word_is_in_the_description_ranks_first() -> None:
    index = make_index({"audio-level": "Sets meters of machines.", "audio-mix": "Mixes audio."})
    assert search_names(index, "audio") == ["audio-mix", "audio-level"]


def test_full_name_with_hyphens_is_found_by_its_abbreviation() -> None:
    late = "Reads aloud, with many voices and in any language, as text-to-speech."
    index = make_index({"voices": late, "text": "Writes about a speech."})
    assert search_names(index, "tts") == ["voices"]


def test_both_words_of_an_abbreviation_count() -> None:
    index = make_index({"machine-washing": "Washes.", "ml-models": "Trains.", "learning": "Helps."})
    assert search_names(index, "machine learning")[0] == "ml-models"


def test_long_prompt_finds_the_skill_with_a_fitting_section() -> None:
    skills = [make_catalog_skill(f"tool-{n}", "Helps with spreadsheets.") for n in range(30)]
    section = b"# Guide\nIntro.\n## Reconcile\nCompare bank statements with open invoices.\n"
    index = SearchIndex.build(
        skills, lambda skill: section if skill.name == "tool-7" else b"# Guide\nBank holidays.\n"
    )
    prompt = (
        "Hi, my boss wants to know by Friday which open invoices from the last quarter were paid, "
        "here are the bank statements, please compare them for me and tell me what is missing"
    )
    assert search_names(index, prompt)[0] == "tool-7"
