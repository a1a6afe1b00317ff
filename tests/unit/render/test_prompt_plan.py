from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.agents.config.agent_config import AGENT_TOOL_NAMES
from skillhall._internal.render.listing import InlineSkill, render_inline, render_instructions
from skillhall._internal.render.prompt_plan import (
    MAX_DESCRIPTION_LENGTH,
    DetailLevel,
    PlanRequest,
    PromptPlan,
    plan_prompt,
    shorten,
)
from skillhall._internal.skill.token_count import estimate_tokens


class Row(NamedTuple):
    name: str
    description: str
    location: str


def rows(count: int, words: int = 20) -> list[Row]:
    return [
        Row(
            f"skill-{n:03}",
            f"Does the thing {n}. " + "Use when needed. " * words,
            f"/s/{n}/SKILL.md",
        )
        for n in range(count)
    ]


def detail_levels(plan: PromptPlan) -> set[DetailLevel]:
    return {share.detail for share in plan.skills}


def test_plan_without_budget_is_the_complete_listing() -> None:
    plan = plan_prompt(PlanRequest(rows(3)))
    assert plan.text == render_instructions(rows(3), ())
    assert (plan.reduced_skills, plan.budget, detail_levels(plan)) == ((), None, {DetailLevel.FULL})


def test_plan_without_skills_is_empty() -> None:
    assert plan_prompt(PlanRequest([], introduction="Before a task…"), 10) == PromptPlan(
        "", 0, 10, ()
    )


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (60_000, {DetailLevel.FULL}),
        (12_000, {DetailLevel.SHORTENED}),
        (2_000, {DetailLevel.NAME_ONLY}),
        (200, {DetailLevel.NAME_ONLY, DetailLevel.SEARCHABLE}),
        (35, {DetailLevel.SEARCHABLE}),
        (10, {DetailLevel.OMITTED}),
    ],
)
def test_smaller_budget_gives_less_detail(budget: int, expected: set[DetailLevel]) -> None:
    plan = plan_prompt(PlanRequest(rows(500)), budget)
    assert detail_levels(plan) == expected
    assert plan.tokens == estimate_tokens(plan.text) <= budget


def test_plan_is_deterministic_and_lists_every_name() -> None:
    plans = [plan_prompt(PlanRequest(rows(500)), 2_000) for _ in range(3)]
    assert plans[0] == plans[1] == plans[2]
    assert plans[0].tokens <= 2_000
    assert [share.name for share in plans[0].skills] == [row.name for row in rows(500)]
    assert all(f"- {row.name}\n" in plans[0].text for row in rows(500))


def test_descriptions_use_the_budget() -> None:
    plan = plan_prompt(PlanRequest(rows(50)), 2_000)
    assert detail_levels(plan) == {DetailLevel.SHORTENED}
    assert 1_900 < plan.tokens <= 2_000


def test_short_descriptions_are_not_shortened() -> None:
    skills = [Row("a", "Short.", "/a"), *rows(20, words=60)]
    plan = plan_prompt(PlanRequest(skills), 1_000)
    assert [share.detail for share in plan.skills[:2]] == [DetailLevel.FULL, DetailLevel.SHORTENED]
    assert "- a: Short.\n" in plan.text
    assert len(plan.reduced_skills) == 20


def test_names_that_fit_are_listed_and_others_counted() -> None:
    plans = [plan_prompt(PlanRequest(rows(2_112)), 2_000) for _ in range(2)]
    plan = plans[0]
    assert plans[1] == plan
    assert 1_980 <= plan.tokens == estimate_tokens(plan.text) <= 2_000
    listed = [share.name for share in plan.skills if share.detail is DetailLevel.NAME_ONLY]
    assert listed == [row.name for row in rows(len(listed))]
    _, *lines, last, _ = plan.text.splitlines()
    assert lines == [f"- {name}" for name in listed]
    assert last == (
        f"{2_112 - len(listed)} more skills are not listed here. "
        "Call search_skills with words from the task to find those that help."
    )


def test_larger_budget_never_lists_fewer_skills() -> None:
    counts = [
        sum(
            skill.detail is not DetailLevel.SEARCHABLE
            for skill in plan_prompt(PlanRequest(rows(60)), budget).skills
        )
        for budget in range(40, 260, 7)
    ]
    assert counts == sorted(counts)
    assert counts[-1] == 60


@pytest.mark.parametrize(
    ("tools", "last"),
    [
        (("load_skill", "list_skills"), " not listed here. Call list_skills to see them."),
        (("load_skill",), " not listed here."),
    ],
)
def test_search_hint_names_only_available_tools(tools: tuple[str, ...], last: str) -> None:
    plan = plan_prompt(PlanRequest.for_tools(tools, rows(500)), 200)
    assert plan.text.splitlines()[-2].endswith(last)
    assert "search_skills" not in plan.text
    assert DetailLevel.NAME_ONLY in detail_levels(plan)


@pytest.mark.parametrize(
    ("tools", "hint"),
    [
        (("load_skill", "read_skill_file", "ReadFile"), "call load_skill with its name, "),
        (("read_skill_file", "ReadFile"), "call read_skill_file with its name and the path "),
        (("ReadFile",), "call ReadFile with its location, "),
    ],
)
def test_usage_hint_names_an_available_tool(tools: tuple[str, ...], hint: str) -> None:
    introduction, _, _ = plan_prompt(PlanRequest.for_tools(tools, rows(2))).text.partition("\n\n")
    assert hint in introduction
    assert not any(tool in introduction for tool in AGENT_TOOL_NAMES if tool not in tools)


def test_agent_without_tools_gets_no_hints() -> None:
    assert plan_prompt(PlanRequest.for_tools((), rows(2))).text == render_instructions(rows(2), ())


@pytest.mark.parametrize("tools", [("ReadFile",), ()])
@pytest.mark.parametrize("budget", [12_000, 7_000, 600])
def test_shortened_listing_has_locations_if_no_tool_takes_names(
    tools: tuple[str, ...], budget: int
) -> None:
    plan = plan_prompt(PlanRequest.for_tools(tools, rows(500)), budget)
    listed_skills = [
        skill
        for skill in plan.skills
        if skill.detail in {DetailLevel.SHORTENED, DetailLevel.NAME_ONLY}
    ]
    assert len(listed_skills) > 20
    assert all(f"({skill.location})" in plan.text for skill in listed_skills)


def test_plan_with_only_inline_skills_has_no_usage_hint() -> None:
    (row,) = rows(1)
    inlined = [(row, InlineSkill(row.name, row.location, "/s/0", "Do it."))]
    plan = plan_prompt(PlanRequest.for_tools(("load_skill",), [], inlined))
    assert plan.text == render_inline(*inlined[0][1])


def test_inline_skill_that_does_not_fit_is_listed() -> None:
    small, large = rows(2)
    inlined = [
        (small, InlineSkill(small.name, small.location, "/s/0", "Do it.")),
        (large, InlineSkill(large.name, large.location, "/s/1", "Do it. " * 900)),
    ]
    plan = plan_prompt(PlanRequest([], inlined), 400)
    assert render_inline(*inlined[0][1]) in plan.text
    assert {share.name: share.detail for share in plan.skills} == {
        "skill-000": DetailLevel.INLINE,
        "skill-001": DetailLevel.FULL,
    }


def test_introduction_precedes_skills_and_counts() -> None:
    plan = plan_prompt(PlanRequest(rows(2), introduction="Call load_skill."), 5_000)
    assert plan.text.startswith("Call load_skill.\n\n<available_skills>\n")
    assert plan.tokens == estimate_tokens(plan.text)


def test_tokens_of_skills_add_up_to_the_total() -> None:
    for budget in (60_000, 12_000, 2_000):
        plan = plan_prompt(PlanRequest(rows(500)), budget)
        assert abs(sum(share.tokens for share in plan.skills) - plan.tokens) < 0.1 * plan.tokens


def leading_request(count: int, *leading: int, words: int = 20) -> PlanRequest:
    return PlanRequest(
        rows(count, words), find_leading=lambda: [f"/s/{number}/SKILL.md" for number in leading]
    )


@pytest.mark.parametrize("budget", [None, 60_000, 40_000])
def test_complete_listing_is_the_same_with_leading_skills(budget: int | None) -> None:
    plain = plan_prompt(PlanRequest(rows(300)), budget)
    assert plan_prompt(leading_request(300, 250), budget).text == plain.text


def test_leading_skills_are_not_searched_for_if_everything_fits() -> None:
    def fail() -> list[str]:
        raise AssertionError

    assert plan_prompt(PlanRequest(rows(3), find_leading=fail), 60_000).reduced_skills == ()


def test_leading_skills_replace_the_first_names_of_a_cut_listing() -> None:
    plan = plan_prompt(leading_request(2_112, 2_000, 7, 1_500), 600)
    complete = [f"- {row.name}: {row.description}" for row in rows(2_112)]
    lines = plan.text.splitlines()
    assert lines[1:4] == [complete[2_000], complete[7], complete[1_500]]
    assert lines[4:6] == ["- skill-000", "- skill-001"]
    listed = len(lines) - 3
    assert lines[-2].startswith(f"{2_112 - listed} more skills are not listed here. Call search_")
    assert 590 <= plan.tokens <= 600
    assert plan.skills[7].detail is DetailLevel.FULL
    assert plan.skills[9].detail is DetailLevel.NAME_ONLY


def test_many_leading_skills_are_shortened_rather_than_left_out() -> None:
    plan = plan_prompt(leading_request(2_112, *range(2_000, 2_100)), 2_000)
    by_detail = [skill.detail for skill in plan.skills[2_000:2_100]]
    assert by_detail.count(DetailLevel.FULL) >= 8
    assert by_detail.count(DetailLevel.SHORTENED) >= 20
    assert by_detail.index(DetailLevel.SHORTENED) == by_detail.count(DetailLevel.FULL)
    assert 1_990 <= plan.tokens <= 2_000


@pytest.mark.parametrize("budget", [2_000, 3_000, 8_000])
def test_skills_that_fit_stay_in_the_listing_of_a_task(budget: int) -> None:
    plain = plan_prompt(PlanRequest(rows(300)), budget)
    plan = plan_prompt(leading_request(300, 250, 299), budget)
    assert DetailLevel.SEARCHABLE not in detail_levels(plain) | detail_levels(plan)
    assert [plan.skills[number].detail for number in (250, 299)] == [DetailLevel.FULL] * 2
    assert plain.skills[250].detail is not DetailLevel.FULL
    assert budget - 90 <= plan.tokens <= budget


ANY_ROW = st.builds(Row, st.text(max_size=40), st.text(max_size=200), st.text(max_size=20))


@given(
    st.lists(ANY_ROW, max_size=8), st.integers(1, 600), st.sets(st.sampled_from(AGENT_TOOL_NAMES))
)
def test_plan_never_exceeds_budget_and_covers_every_skill(
    skills: list[Row], budget: int, tools: set[str]
) -> None:
    half = len(skills) // 2
    inlined = [
        (skill, InlineSkill(skill.name, skill.location, "/", skill.description))
        for skill in skills[half:]
    ]
    request = PlanRequest.for_tools(tools, skills[:half], inlined)
    plan = plan_prompt(request, budget)
    assert plan.tokens == estimate_tokens(plan.text) <= budget
    assert sorted(share.location for share in plan.skills) == sorted(s.location for s in skills)


@given(st.text(max_size=300), st.integers(2, MAX_DESCRIPTION_LENGTH))
def test_shortened_text_never_exceeds_the_length(text: str, length: int) -> None:
    assert len(shorten(text, length)) <= length


def test_text_is_cut_between_words() -> None:
    assert shorten("Reads PDF files and more.", 12) == "Reads PDF…"
    assert shorten("Donaudampfschiff", 6) == "Donau…"
