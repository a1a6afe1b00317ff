from skillhall._internal.evals.eval_records import (
    Arm,
    AssertionResult,
    GradedRun,
    RunKey,
    RunRecord,
    RunStatus,
    RunUsage,
    Verdict,
    add_usages,
)


def grade(*verdicts: Verdict, status: RunStatus = RunStatus.COMPLETED) -> GradedRun:
    run = RunRecord(key=RunKey("1", Arm.WITH_SKILL, 1), status=status)
    results = [
        AssertionResult(text="a", verdict=verdict, evidence="", grader="check")
        for verdict in verdicts
    ]
    return GradedRun(run=run, results=tuple(results))


def test_pass_rate_leaves_out_assertions_that_were_not_judged() -> None:
    assert grade(Verdict.PASSED, Verdict.FAILED, Verdict.NOT_JUDGED).pass_rate == 0.5


def test_pass_rate_without_judged_assertions_is_unknown() -> None:
    assert grade(Verdict.NOT_JUDGED).pass_rate is None


def test_task_is_solved_if_the_run_completed_and_every_assertion_passed() -> None:
    assert grade(Verdict.PASSED).outcome is True
    assert grade(Verdict.PASSED, Verdict.FAILED).outcome is False
    assert grade(Verdict.PASSED, status=RunStatus.LIMITED).outcome is False


def test_outcome_is_unknown_without_a_verdict_for_every_assertion() -> None:
    assert grade(Verdict.PASSED, Verdict.NOT_JUDGED).outcome is None
    assert grade(Verdict.FAILED, Verdict.NOT_JUDGED).outcome is False
    assert grade(Verdict.PASSED, status=RunStatus.FAILED).outcome is None
    assert grade().outcome is None


def test_total_tokens_are_those_of_input_and_output() -> None:
    assert RunUsage(input_tokens=10, output_tokens=5).total_tokens == 15


def test_cost_is_unknown_if_one_price_is() -> None:
    known, unknown, unused = (
        RunUsage(input_tokens=1, cost=0.5),
        RunUsage(input_tokens=1),
        RunUsage(),
    )

    assert add_usages([known, known, unused]).cost == 1.0
    assert add_usages([known, unknown]).cost is None
    assert add_usages([]).cost == 0


def test_cost_of_an_external_agent_is_unknown() -> None:
    assert add_usages([RunUsage(duration_ms=1200)]).cost is None
