"""Properties of search for any text and any catalog."""

from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.catalog.search.search_index import SearchIndex
from tests.support.catalogs import make_catalog_skill
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


def build(catalog_skills: list[CatalogSkill]) -> SearchIndex:
    return SearchIndex.build(
        catalog_skills, lambda skill: skill.description[::-1].encode("utf-8", "surrogatepass")
    )


def search_skills(index: SearchIndex, text: str) -> list[CatalogSkill]:
    return [hit.skill for hit in index.search(text, 100).hits]


@given(skills, queries)
def test_search_never_raises_and_has_no_duplicate_hits(
    catalog_skills: list[CatalogSkill], text: str
) -> None:
    result = build(catalog_skills).search(text, 100)
    folders = [hit.skill.folder for hit in result.hits]
    assert len(set(folders)) == len(folders) == result.total
    for hit in result.hits:
        snippet, marks = hit.snippet
        assert all(0 <= start < end <= len(snippet) for start, end in marks)


@given(skills, queries)
def test_hit_is_independent_of_other_skills(catalog_skills: list[CatalogSkill], text: str) -> None:
    for skill in search_skills(build(catalog_skills), text):
        assert search_skills(build([skill]), text) == [skill]


@given(skills, queries.filter(lambda text: text.strip()))
def test_skill_with_the_exact_name_is_first(catalog_skills: list[CatalogSkill], text: str) -> None:
    name = text.strip()
    index = build([*catalog_skills, make_catalog_skill(name, "", "new")])
    assert index.search(name).hits[0].skill.name.strip() == name


@given(st.data(), skills, queries)
def test_result_is_independent_of_catalog_order(
    data: st.DataObject, catalog_skills: list[CatalogSkill], text: str
) -> None:
    other = data.draw(st.permutations(catalog_skills))
    assert build(catalog_skills).search(text) == build(list(other)).search(text)


@given(skills, queries, st.integers(1, 4), st.booleans())
def test_pages_add_up_to_the_complete_result(
    catalog_skills: list[CatalogSkill], text: str, limit: int, for_models: bool
) -> None:
    index = build(catalog_skills)
    keep = (lambda skill: not skill.hidden) if for_models else None
    complete = index.search(text, 100, keep=keep)
    pages = [
        index.search(text, limit, offset, keep) for offset in range(0, complete.total + 1, limit)
    ]
    assert tuple(hit for page in pages for hit in page.hits) == complete.hits
    assert [page.has_more for page in pages if page.hits][:-1] == [True] * (
        len([page for page in pages if page.hits]) - 1 if complete.total else 0
    )
