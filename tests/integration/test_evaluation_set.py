"""The evaluation set of `benchmarks finding`: its shape, its halves and its measures."""

import re
from statistics import median

import pytest

from benchmarks.finding.baselines import PlainSearch, SkillTexts, match_expression
from benchmarks.finding.distractors import Collection, CollectionSkill
from benchmarks.finding.evaluation_set import (
    Half,
    Query,
    half_of,
    load_more_keywords,
    load_set,
)
from benchmarks.finding.recall import RecallReport, RecallRow, ask, mean_reciprocal_rank, recall
from benchmarks.finding.selection import TASKS, choose_tasks

SKILLS = 700


@pytest.fixture(scope="module")
def collection() -> list[CollectionSkill]:
    return list(Collection().write(SKILLS))


def query(name: str) -> Query:
    return Query("any text", frozenset([name]), Half.REPORTING)


def test_the_set_has_enough_targets_prompts_languages_and_keyword_queries() -> None:
    evaluation = load_set()
    prompts = [one for one in evaluation.queries if not one.is_keyword]
    assert len(evaluation.targets) >= 90
    assert len({target.name for target in evaluation.targets}) == len(evaluation.targets)
    assert len(prompts) >= 200
    assert sum(one.language != "en" for one in prompts) >= 30
    assert len({one.language for one in prompts}) >= 8
    assert 18 <= median(one.words for one in prompts) <= 28
    assert min(len(domain.neighbours) for domain in evaluation.domains) >= 4


@pytest.mark.parametrize("half", list(Half))
def test_each_half_has_enough_prompts_and_keyword_queries(half: Half) -> None:
    assert len(load_set().prompts(half)) >= 150
    assert len(load_set().keywords(half)) >= 40


def test_further_keyword_queries_are_all_new_and_of_the_tuning_half() -> None:
    more = load_more_keywords()
    assert {one.half for one in more} == {Half.TUNING}
    assert not {one.text for one in more} & {one.text for one in load_set().queries}


def test_the_half_of_a_target_depends_on_its_name_alone() -> None:
    assert [half_of(name) for name in ("xlsx", "pdf", "docx")] == [
        Half.REPORTING,
        Half.TUNING,
        Half.REPORTING,
    ]
    assert all({half_of(name) for name in one.right} == {one.half} for one in load_set().queries)


def test_the_same_collection_is_written_each_time_and_contains_every_target(
    collection: list[CollectionSkill],
) -> None:
    names = [skill.name for skill in collection]
    assert list(Collection().write(SKILLS)) == collection
    assert len(collection) == SKILLS
    assert all(names.count(target.name) == 1 for target in load_set().targets)


def test_no_generated_name_has_all_words_of_a_keyword_query(
    collection: list[CollectionSkill],
) -> None:
    evaluation = load_set()
    written = {target.name for target in evaluation.targets}
    written |= {name for domain in evaluation.domains for name, _ in domain.neighbours}
    queries = [set(re.findall(r"\w+", one.text)) for one in evaluation.queries if one.is_keyword]
    names = {skill.name for skill in collection} - written
    assert not [name for name in names if any(words <= {*name.split("-")} for words in queries)]


def test_recall_and_reciprocal_rank_count_the_first_right_hit() -> None:
    answers = ask(lambda _: ["a", "b", "c", "d"], [query("a"), query("d"), query("missing")])
    assert [answer.rank for answer in answers] == [1, 4, None]
    assert recall(answers, 1) == pytest.approx(1 / 3)
    assert recall(answers, 5) == pytest.approx(2 / 3)
    assert mean_reciprocal_rank(answers) == pytest.approx((1 + 1 / 4) / 3)


def test_a_report_tells_whether_every_bar_is_met() -> None:
    answers = ask(lambda _: ["a", "b"], [query("a"), query("b")])
    met, missed = RecallRow("met", answers, {1: 0.5, 3: 1.0}), RecallRow("no", answers, {1: 0.6})
    report = RecallReport("title", (met, missed))
    assert (met.verdict, missed.verdict) == ("ok", "MISSED")
    assert "@1 0.5 @3 1" in report.render()
    assert [record["verdict"] for record in report.records()] == ["ok", "MISSED"]


def test_plain_searches_rank_by_bm25_and_fuse_both_rankings() -> None:
    skills = [
        SkillTexts("pdf", "Merge files", "Pages and forms."),
        SkillTexts("notes", "Write notes", "Export them as pdf, pdf or pdf."),
        SkillTexts("garden", "Grow plants", "Water them."),
    ]
    plain = PlainSearch(skills)
    assert plain.search_heads("the pdf") == ["pdf"]
    assert {*plain.search_texts("a pdf")} == {"pdf", "notes"}
    assert plain.search_fused("pdf")[0] == "pdf"
    assert match_expression("I want the PDF") == '"pdf"'
    assert plain.search_fused("the") == []


def test_tasks_for_the_selection_come_from_many_domains() -> None:
    tasks = choose_tasks(load_set().prompts(Half.REPORTING))
    assert len({task.text for task in tasks}) == TASKS
    assert len({name for task in tasks for name in task.right}) >= 18
