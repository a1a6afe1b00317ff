"""The split of queries and the suggested descriptions of skills."""

from __future__ import annotations

import json

import pytest

from skillhall._internal.evals.triggers.description_improvement import (
    build_request,
    clean_description,
    split_queries,
)
from skillhall._internal.evals.triggers.trigger_score import score_triggers
from skillhall._internal.skill.evals.eval_file import TriggerQuery
from skillhall.errors import SkillRejected

QUERIES = [TriggerQuery(f"query {n}", should_trigger=n < 10) for n in range(20)]


def test_halves_are_disjoint_and_have_both_kinds_equally_often() -> None:
    training, held_out = split_queries(QUERIES)
    assert {*training, *held_out} == {*QUERIES}
    assert (len(training), len(held_out)) == (10, 10)
    assert sum(one.should_trigger for one in training) == 5


def test_half_of_a_query_does_not_depend_on_its_place() -> None:
    assert {*split_queries(QUERIES[::-1]).training} == {*split_queries(QUERIES).training}


@pytest.mark.parametrize(
    ("reply", "description"),
    [
        ("Reads CSV files.\n", "Reads CSV files."),
        ('"Reads CSV\n  files."', "Reads CSV files."),
        ("description: Reads CSV files.", "Reads CSV files."),
    ],
)
def test_suggested_description_is_cleaned(reply: str, description: str) -> None:
    assert clean_description(reply, "csv") == description


@pytest.mark.parametrize("reply", ["", "  \n", "x" * 1025, "<b>Reads</b>", "a\u202eb"])
def test_unusable_suggestion_is_rejected(reply: str) -> None:
    with pytest.raises(SkillRejected):
        clean_description(reply, "csv")


def test_request_has_the_description_of_each_other_skill_as_data() -> None:
    request = build_request(score_triggers("csv", []), "Reads.", "# Steps", {"pdf": "Forms."})
    assert json.loads(request)["other_skills"] == {"pdf": "Forms."}
