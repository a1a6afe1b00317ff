"""Plans: their order, and which changes change the digest of a run."""

from dataclasses import replace

import pytest

from skillhall._internal.evals.eval_records import Arm
from skillhall._internal.evals.runs.case_files import select_input_files
from skillhall._internal.evals.runs.eval_plan import EvalPlan, PlannedCase
from skillhall._internal.evals.runs.evaluated_skill import EvaluatedSkill
from skillhall._internal.evals.runs.run_limits import RunLimits
from skillhall._internal.skill.evals.eval_assertion import EvalAssertion
from skillhall._internal.skill.evals.eval_file import EvalCase, FileMention

CASE = EvalCase("1", "Sum it.", "6", (FileMention("evals/a.csv", 1),), (EvalAssertion("It is 6"),))
FILES = {"SKILL.md": (b"text", 0o644), "evals/a.csv": (b"1", 0o644), "run.py": (b"", 0o644)}


def make_skill_version(**files: bytes) -> EvaluatedSkill:
    changed = {path.replace("__", "/"): (data, 0o644) for path, data in files.items()}
    return EvaluatedSkill.of_files("csv", "csv", "csv", {**FILES, **changed})


def make_plan(skill: EvaluatedSkill | None = None, *cases: EvalCase, **fields: object) -> EvalPlan:
    skill = skill or make_skill_version()
    values = {"repeats": 1, "agent": {"kind": "chat", "model": "m"}, "limits": RunLimits()}
    planned = tuple(
        PlannedCase(case=case, inputs=select_input_files(case, skill.files))
        for case in cases or (CASE,)
    )
    return EvalPlan(skill=skill, cases=planned, **{**values, **fields})  # type: ignore[arg-type]  # any field of a plan


def get_digests(plan: EvalPlan) -> tuple[str, str]:
    """Return the digests of the first run with the skill and without it."""
    by_arm = {run.key.arm: run.digest for run in reversed(plan.runs)}
    return by_arm[Arm.WITH_SKILL], by_arm[Arm.WITHOUT_SKILL]


def test_repeats_come_one_after_the_other_so_that_arms_stay_balanced() -> None:
    plan = make_plan(None, CASE, replace(CASE, id="2"), repeats=2)

    keys = [(run.key.repeat, run.key.case_id, run.key.arm) for run in plan.runs]
    assert keys == [
        (repeat, case, arm)
        for repeat in (1, 2)
        for case in ("1", "2")
        for arm in (Arm.WITH_SKILL, Arm.WITHOUT_SKILL)
    ]


def test_skill_changes_only_the_runs_with_it() -> None:
    before = get_digests(make_plan())
    after = get_digests(make_plan(make_skill_version(**{"run.py": b"1"})))

    assert before[0] != after[0]
    assert before[1] == after[1]


def test_evals_of_the_skill_do_not_change_a_run() -> None:
    plan = make_plan(make_skill_version(**{"evals__evals.json": b"[]"}))

    assert get_digests(plan) == get_digests(make_plan())
    assert plan.digest != make_plan().digest  # so that results of another file have a new place


@pytest.mark.parametrize(
    "other",
    [
        make_plan(None, replace(CASE, prompt="Add it.")),
        make_plan(None, replace(CASE, id="2")),
        make_plan(make_skill_version(**{"evals__a.csv": b"2"})),
        make_plan(agent={"kind": "chat", "model": "other"}),
        make_plan(limits=RunLimits(max_requests=2)),
        make_plan(other_skills=(replace(make_skill_version(), name="other"),)),
    ],
)
def test_everything_that_a_run_depends_on_changes_its_digest(other: EvalPlan) -> None:
    assert not set(get_digests(other)) & set(get_digests(make_plan()))


def test_assertions_do_not_change_a_run() -> None:
    other = make_plan(
        None, replace(CASE, assertions=(EvalAssertion("It is 7"),), expected_output="7")
    )

    assert get_digests(other) == get_digests(make_plan())


def test_old_version_that_is_equal_has_the_same_digest() -> None:
    plan = make_plan(old_skill=make_skill_version())
    by_arm = {run.key.arm: run.digest for run in plan.runs}

    assert by_arm[Arm.OLD_SKILL] == by_arm[Arm.WITH_SKILL] != by_arm[Arm.WITHOUT_SKILL]
