"""Table of skills: filters, facets, orders and pages."""

from collections.abc import Mapping

import pytest
from starlette.datastructures import QueryParams

from skillhall._internal.skill_store.input_checks import SkillSummary
from skillhall._internal.skill_store.skill_analysis import PackedFiles, SkillFacts
from skillhall._internal.skill_store.skill_table import (
    SkillQuery,
    SkillTable,
    TablePage,
    TableRow,
)


def make_row(identity: str, name: str = "", source: str = "user", **facts: object) -> TableRow:
    entry = SkillSummary(identity, name or identity, "Does it.", source)
    values = {"risk": "L0", "profiles": ("lenient",), **facts}
    return TableRow(entry, SkillFacts(**values))  # type: ignore[arg-type]  # any facts


TABLE = SkillTable(
    [
        make_row("a", "Zebra", tokens=100, codes=("pipe-to-shell",), warnings=2, risk="L2"),
        make_row("b", "apple", tokens=700, has_scripts=True, risk="L1"),
        make_row(
            "c",
            "Mango",
            "system",
            tokens=700,
            profiles=("specification", "lenient"),
            dropped_by=("codex",),
        ),
        make_row(
            "d", "kiwi", tokens=9_000, packed=PackedFiles("", ("SKILL.md", "evals/evals.json"))
        ),
        TableRow(SkillSummary("e", "unread", "", "user"), None),
    ]
)


def find(matches: list[str] | None = None, **values: object) -> TablePage:
    return TABLE.find(SkillQuery(**values), matches, 0, 10)  # type: ignore[arg-type]


def count(page: TablePage, facet: str) -> Mapping[str, int]:
    return next({v.value: v.total for v in one.values} for one in page.facets if one.name == facet)


@pytest.mark.parametrize(
    ("sort", "order", "ids"),
    [
        ("", "", "bdcea"),
        ("name", "desc", "aecdb"),
        ("tokens", "", "dbcae"),
        ("tokens", "asc", "eabcd"),
        ("findings", "", "abcde"),
        ("risk", "", "abcde"),
        ("id", "desc", "edcba"),
    ],
)
def test_skills_are_sorted_in_both_directions(sort: str, order: str, ids: str) -> None:
    assert "".join(find(sort=sort, order=order).ids) == ids


def test_filters_of_one_facet_add_up_and_of_several_narrow() -> None:
    assert find(filters={"risk": ("L1", "L2")}, sort="id").ids == ("a", "b")
    assert find(filters={"risk": ("L1", "L2"), "scripts": ("yes",)}).ids == ("b",)
    assert find(filters={"findings": ("none",)}, sort="id").ids == ("b", "c", "d")
    assert find(filters={"evals": ("yes",)}).ids == ("d",)
    assert find(filters={"agent": ("specification",)}).ids == ("c",)
    assert find(filters={"risk": ("unknown",)}).ids == ()


def test_agents_are_facets_of_the_skills_that_they_load_and_drop() -> None:
    page = find(filters={"dropped": ("codex",)})
    assert (page.ids, count(page, "dropped")) == (("c",), {"codex": 1})
    assert count(page, "loads")["pi"] == 1
    assert "codex" not in count(page, "loads")
    assert find(filters={"loads": ("codex",)}, sort="id").ids == ("a", "b", "d")  # "e" is unread


def test_counts_of_a_facet_ignore_its_own_filter() -> None:
    page = find(filters={"risk": ("L2",), "source": ("user",)})
    assert page.total == 1
    assert count(page, "risk") == {"L0": 1, "L1": 1, "L2": 1}
    assert count(page, "source") == {"user": 1}
    assert count(page, "size") == {"s": 1}


def test_selected_value_without_skills_is_listed() -> None:
    page = find(filters={"findings": ("bom",), "source": ("system",)})
    assert count(page, "findings") == {"none": 1, "bom": 0}


def test_matches_are_in_the_order_of_relevance_unless_sorted() -> None:
    assert find(["d", "gone", "b"], text="x").ids == ("d", "b")
    assert find(["d", "b"], text="x", sort="name").ids == ("b", "d")
    page = find(["d", "b"], text="x", filters={"scripts": ("yes",)})
    assert (page.ids, page.total, count(page, "scripts")) == (("b",), 1, {"yes": 1, "no": 1})


def test_pages_cover_a_filtered_order() -> None:
    query = SkillQuery(filters={"source": ("user",)}, sort="tokens")
    pages = [TABLE.find(query, None, start, 2).ids for start in (0, 2, 4)]
    assert pages == [("d", "b"), ("a", "e"), ()]


def test_empty_table_has_no_page() -> None:
    assert SkillTable([]).find(SkillQuery("x"), [], 0, 10).total == 0


def test_query_survives_its_url() -> None:
    query = SkillQuery("pdf x", {"risk": ("L1", "L2"), "repository": ("a/b",)}, "tokens", "asc")
    assert SkillQuery.parse(QueryParams(query.parameters).getlist) == query
    unknown = QueryParams("sort=evil&order=up&risk=&colour=red")
    assert SkillQuery.parse(unknown.getlist) == SkillQuery()


def test_value_is_toggled_and_key_is_reversed() -> None:
    query = SkillQuery().toggle("risk", "L1").toggle("risk", "L2")
    assert query.filters == {"risk": ("L1", "L2")}
    assert query.toggle("risk", "L1").toggle("risk", "L2").filters == {}
    assert [SkillQuery().sort_by("name"), SkillQuery().sort_by("tokens")] == [
        SkillQuery(sort="name", order="desc"),
        SkillQuery(sort="tokens"),
    ]
    assert SkillQuery(sort="tokens").sort_by("tokens").sort_by("tokens") == SkillQuery(
        sort="tokens"
    )
