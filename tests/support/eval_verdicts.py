"""Graded runs and summaries from short texts of verdicts, and workspaces with stored runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from skillhall._internal.evals.eval_aggregation import summarize
from skillhall._internal.evals.eval_records import (
    Arm,
    AssertionResult,
    GradedRun,
    RunKey,
    RunRecord,
    RunStatus,
    RunUsage,
    Verdict,
)
from skillhall._internal.evals.eval_summary import EvalSubject, EvalSummary
from skillhall._internal.evals.eval_workspace import EvalIteration, EvalWorkspace

SUBJECT = EvalSubject(skill_name="csv", skill_digest="sha256:1", agent="test", repeats=3)
LETTERS = {"p": Verdict.PASSED, "f": Verdict.FAILED, "n": Verdict.NOT_JUDGED}


def grade(
    case: str, arm: Arm, repeat: int, verdicts: str, status: RunStatus = RunStatus.COMPLETED
) -> GradedRun:
    usage = RunUsage(input_tokens=100 * repeat, output_tokens=10, duration_ms=1000, cost=0.01)
    run = RunRecord(key=RunKey(case, arm, repeat), status=status, usage=usage)
    results = [
        AssertionResult(text=f"a{at}", verdict=LETTERS[letter], evidence="", grader="check")
        for at, letter in enumerate(verdicts)
    ]
    return GradedRun(run=run, results=tuple(results))


def summarize_cases(*cases: tuple[str, str], repeats: int = 3) -> EvalSummary:
    """Each case has the verdicts of its runs with and without the skill, separated by spaces."""
    runs = [
        grade(f"c{number}", arm, repeat, verdicts)
        for number, case in enumerate(cases)
        for arm, texts in zip((Arm.WITH_SKILL, Arm.WITHOUT_SKILL), case, strict=True)
        for repeat, verdicts in enumerate(texts.split()[:repeats], 1)
    ]
    return summarize(runs, SUBJECT)


HELPS = ("p p p", "f f p")
NOTHING = ("p f p", "f p p")
HARMS = ("f f p", "p p p")


def store_runs(
    skill: Path, replies: Mapping[Arm, Mapping[str, Sequence[str]]], repeats: int = 3
) -> EvalIteration:
    """Write an iteration with the replies of each arm and case, without running an agent."""
    plan = {
        "skill_name": skill.name,
        "skill_digest": "sha256:1",
        "agent": {"kind": "chat", "model": "test"},
        "repeats": repeats,
    }
    iteration = EvalWorkspace.of_skill(str(skill)).create_iteration(plan, repeats)
    for arm, cases in replies.items():
        for case_id, texts in cases.items():
            for repeat, reply in enumerate(texts, 1):
                record = RunRecord(
                    key=RunKey(case_id, arm, repeat),
                    status=RunStatus.COMPLETED,
                    reply=reply,
                    usage=RunUsage(requests=1, input_tokens=10, output_tokens=5, duration_ms=100),
                )
                iteration.write_run(record, f"sha256:{arm}", {})
    return iteration
