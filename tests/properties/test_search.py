"""Properties of search for any text and any catalog."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.catalog.search.fts import FtsEngine
from skillhall._internal.catalog.search.linear_scan import LinearScanEngine
from skillhall._internal.catalog.search.search_index import SearchIndex
from tests.support.catalogs import ENGINES, make_catalog, make_catalog_skill
from tests.support.strategies import any_text, texts

words = st.sampled_from(
    [
        "pdf",
        "PDF",
        "merge",
        "merging",
        "café",
        "cafe",
        "c++",
        "分析",
        "分析报告",
        "a",
        "b-c",
        "🎉",
        "*",
    ]
)
phrases = st.one_of(st.lists(words, max_size=4).map(" ".join), texts)
skills = st.lists(
    st.builds(make_catalog_skill, phrases, phrases, hidden=st.booleans()),
    max_size=6,
).map(lambda unnamed: [skill._replace(folder=f"f{number}") for number, skill in enumerate(unnamed)])
queries = st.one_of(phrases, any_text, st.text('"*():^-+{}~ ANDORTabx', max_size=12))
engines = pytest.mark.parametrize("engine", ENGINES)
Kind = type[FtsEngine | LinearScanEngine]


def build(catalog_skills: list[CatalogSkill], engine: Kind) -> SearchIndex:
    return SearchIndex.build(
        make_catalog(catalog_skills), lambda skill: skill.description[::-1], engine
    )


def search_skills(index: SearchIndex, text: str) -> list[CatalogSkill]:
    return [hit.skill for hit in index.search(text, 100).hits]


@engines
@given(skills, queries)
def test_search_never_raises_and_has_no_duplicate_hits(
    engine: Kind, catalog_skills: list[CatalogSkill], text: str
) -> None:
    result = build(catalog_skills, engine).search(text, 100)
    folders = [hit.skill.folder for hit in result.hits]
    assert len(set(folders)) == len(folders) == result.total
    for hit in result.hits:
        snippet, marks = hit.snippet
        assert all(0 <= start < end <= len(snippet) for start, end in marks)


@engines
@given(skills, queries)
def test_hit_is_independent_of_other_skills(
    engine: Kind, catalog_skills: list[CatalogSkill], text: str
) -> None:
    for skill in search_skills(build(catalog_skills, engine), text):
        assert search_skills(build([skill], engine), text) == [skill]


@engines
@given(skills, queries.filter(lambda text: text.strip()))
def test_skill_with_the_exact_name_is_first(
    engine: Kind, catalog_skills: list[CatalogSkill], text: str
) -> None:
    name = text.strip()
    index = build([*catalog_skills, make_catalog_skill(name, "", "new")], engine)
    assert index.search(name).hits[0].skill.name.strip() == name


@engines
@given(st.data(), skills, queries)
def test_result_is_independent_of_catalog_order(
    engine: Kind, data: st.DataObject, catalog_skills: list[CatalogSkill], text: str
) -> None:
    other = data.draw(st.permutations(catalog_skills))
    assert build(catalog_skills, engine).search(text) == build(list(other), engine).search(text)


@engines
@given(skills, queries, st.integers(1, 4), st.booleans())
def test_pages_add_up_to_the_complete_result(
    engine: Kind, catalog_skills: list[CatalogSkill], text: str, limit: int, for_models: bool
) -> None:
    index = build(catalog_skills, engine)
    complete = index.search(text, 100, for_models=for_models)
    pages = [
        index.search(text, limit, offset, for_models=for_models)
        for offset in range(0, complete.total + 1, limit)
    ]
    assert tuple(hit for page in pages for hit in page.hits) == complete.hits
    assert [page.has_more for page in pages if page.hits][:-1] == [True] * (
        len([page for page in pages if page.hits]) - 1 if complete.total else 0
    )
