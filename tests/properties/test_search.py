"""Searching holds for any text and any catalog."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.catalog.catalog import Skill
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
).map(lambda found: [one._replace(folder=f"f{number}") for number, one in enumerate(found)])
queries = st.one_of(phrases, any_text, st.text('"*():^-+{}~ ANDORTabx', max_size=12))
engines = pytest.mark.parametrize("engine", ENGINES)
Kind = type[FtsEngine | LinearScanEngine]


def build(found: list[Skill], engine: Kind) -> SearchIndex:
    return SearchIndex.build(make_catalog(found), lambda skill: skill.description[::-1], engine)


def found_by(index: SearchIndex, text: str) -> list[Skill]:
    return [hit.skill for hit in index.search(text, 100).hits]


@engines
@given(skills, queries)
def test_no_text_raises_and_no_skill_is_told_twice(
    engine: Kind, given_skills: list[Skill], text: str
) -> None:
    found = build(given_skills, engine).search(text, 100)
    places = [hit.skill.folder for hit in found.hits]
    assert len(set(places)) == len(places) == found.total
    for hit in found.hits:
        shown, marks = hit.snippet
        assert all(0 <= start < end <= len(shown) for start, end in marks)


@engines
@given(skills, queries)
def test_a_hit_matches_by_itself_whatever_else_the_catalog_holds(
    engine: Kind, given_skills: list[Skill], text: str
) -> None:
    for skill in found_by(build(given_skills, engine), text):
        assert found_by(build([skill], engine), text) == [skill]


@engines
@given(skills, queries.filter(lambda text: text.strip()))
def test_a_skill_of_that_very_name_comes_first(
    engine: Kind, given_skills: list[Skill], text: str
) -> None:
    name = text.strip()
    index = build([*given_skills, make_catalog_skill(name, "", "new")], engine)
    assert index.search(name).hits[0].skill.name.strip() == name


@engines
@given(st.data(), skills, queries)
def test_the_answer_does_not_depend_on_the_order_of_the_catalog(
    engine: Kind, data: st.DataObject, given_skills: list[Skill], text: str
) -> None:
    other = data.draw(st.permutations(given_skills))
    assert build(given_skills, engine).search(text) == build(list(other), engine).search(text)


@engines
@given(skills, queries, st.integers(1, 4), st.booleans())
def test_pages_together_are_the_whole_answer(
    engine: Kind, given_skills: list[Skill], text: str, limit: int, for_models: bool
) -> None:
    index = build(given_skills, engine)
    whole = index.search(text, 100, for_models=for_models)
    pages = [
        index.search(text, limit, offset, for_models=for_models)
        for offset in range(0, whole.total + 1, limit)
    ]
    assert tuple(hit for page in pages for hit in page.hits) == whole.hits
    assert [page.has_more for page in pages if page.hits][:-1] == [True] * (
        len([page for page in pages if page.hits]) - 1 if whole.total else 0
    )
