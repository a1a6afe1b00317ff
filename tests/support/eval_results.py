"""Factories for the results of evals."""

from collections.abc import Sequence

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
from skillhall._internal.evals.gates import Gate, GateResult
from skillhall._internal.evals.grading_files import (
    StoredVerdict,
    StoredVerdicts,
    digest_record,
    write_verdicts,
)
from skillhall._internal.evals.reports.skill_results import SkillResults
from skillhall._internal.evals.summary_files import summarize_iteration, write_summary
from skillhall._internal.evals.triggers.trigger_files import TriggerResult
from skillhall._internal.evals.triggers.trigger_records import TriggerReply, TriggerRun
from skillhall._internal.skill.evals.eval_file import TriggerQuery

HOSTILE = "</script><img src=x onerror=alert(1)> `|` **b** @team \x00\ud7ff &amp; ]]>"
DIGEST = f"sha256:{'0' * 64}"


def make_graded_run(  # noqa: PLR0913 - each is a field of its own
    case_id: str,
    arm: Arm,
    repeat: int,
    *verdicts: Verdict,
    status: RunStatus = RunStatus.COMPLETED,
    text: str = "The sum is 6",
    evidence: str = "the reply says 6",
    reply: str = "It is 6.",
) -> GradedRun:
    """Create a run with a result for each verdict."""
    usage = RunUsage(requests=2, input_tokens=900, output_tokens=100, duration_ms=1500, cost=0.002)
    record = RunRecord(
        key=RunKey(case_id, arm, repeat),
        status=status,
        reason="" if status is RunStatus.COMPLETED else f"it {status}",
        reply=reply,
        usage=usage,
    )
    results = tuple(
        AssertionResult(
            text=text if number == 0 else f"{text} ({number})",
            verdict=verdict,
            evidence=evidence,
            grader="check",
        )
        for number, verdict in enumerate(verdicts)
    )
    return GradedRun(run=record, results=results)


def make_helpful_runs(cases: int = 6, repeats: int = 3) -> list[GradedRun]:
    """Create runs that pass with the skill and, except for the first case, fail without it."""
    return [
        make_graded_run(
            str(case),
            arm,
            repeat,
            Verdict.PASSED if arm is Arm.WITH_SKILL or case == 1 else Verdict.FAILED,
        )
        for repeat in range(1, repeats + 1)
        for case in range(1, cases + 1)
        for arm in (Arm.WITH_SKILL, Arm.WITHOUT_SKILL)
    ]


def make_summary(
    runs: Sequence[GradedRun], skill_name: str = "csv", repeats: int = 3
) -> EvalSummary:
    """Sum up runs."""
    subject = EvalSubject(
        skill_name=skill_name, skill_digest=DIGEST, agent="openai-chat:gpt-5", repeats=repeats
    )
    return summarize(runs, subject)


def make_trigger_result(
    loaded: str = "csv", other: str = "", skill: str = "csv", queries: int = 6
) -> TriggerResult:
    """Create three runs of each query; `loaded` and `other` are the skills of the two kinds."""
    runs = [
        TriggerRun(
            query=TriggerQuery(f"Query {number}, {'own' if should else 'other'}", should),
            repeat=repeat,
            digest=DIGEST,
            reply=TriggerReply(status=RunStatus.COMPLETED, loaded_skills=(name,) if name else ()),
        )
        for should, name in ((True, loaded), (False, other))
        for number in range(1, queries + 1)
        for repeat in (1, 2, 3)
    ]
    return TriggerResult(
        skill=skill,
        skill_digest=DIGEST,
        model="openai-chat:gpt-5",
        repeats=3,
        catalog=("csv", "pdf"),
        runs=tuple(runs),
    )


def make_results() -> SkillResults:
    """Create results of a skill that helps, but triggers for every query."""
    runs = make_helpful_runs()
    return SkillResults(
        skill_name="csv",
        summary=make_summary(runs),
        runs=runs,
        prompts={"1": "Sum a.csv"},
        triggers=make_trigger_result(loaded="csv", other="csv"),
        gates=[
            GateResult(Gate("pass_rate", ">=", 0.8), passed=True, value=1.0),
            GateResult(Gate("triggers.recall", ">=", 0.9), passed=False, value=0.5),
        ],
        read_transcript=lambda _: [
            {"role": "user", "content": "Sum a.csv"},
            {"role": "assistant", "content": "", "calls": [{"tool": "ReadFile", "arguments": {}}]},
            {"role": "tool", "tool": "ReadFile", "content": "1,2,3"},
        ],
    )


def make_hostile_results() -> SkillResults:
    """Create results in which every text is `HOSTILE`."""
    runs = [
        make_graded_run(
            HOSTILE, arm, 1, Verdict.FAILED, text=HOSTILE, evidence=HOSTILE, reply=HOSTILE
        )
        for arm in Arm
    ]
    return SkillResults(
        skill_name=HOSTILE,
        summary=make_summary(runs, HOSTILE, repeats=1),
        runs=runs,
        prompts={HOSTILE: HOSTILE},
        triggers=make_trigger_result(loaded=HOSTILE, other=HOSTILE, skill=HOSTILE),
        gates=[GateResult(Gate(HOSTILE, ">", 1), passed=False, value=None, reason=HOSTILE)],
        read_transcript=lambda _: [{"role": HOSTILE, "tool": HOSTILE, "content": HOSTILE}],
    )


def store_runs(
    workspace: EvalWorkspace,
    runs: Sequence[GradedRun],
    digest: str = DIGEST,
    repeats: int = 3,
    **plan_fields: object,
) -> EvalIteration:
    """Store runs with their verdicts, transcripts and summary in a new iteration."""
    plan = {
        "skill_name": "csv",
        "skill_digest": digest,
        "agent": {"model": "openai-chat:gpt-5"},
        "repeats": repeats,
        "cases": [{"id": "1", "prompt": "Sum a.csv"}],
        **plan_fields,
    }
    iteration = workspace.create_iteration(plan, repeats)
    for graded in runs:
        transcript = [{"role": "user", "content": f"Case {graded.run.key.case_id}"}]
        iteration.write_run(graded.run, "sha256:00", {}, transcript)
        verdicts = tuple(StoredVerdict(one, "sha256:01") for one in graded.results)
        stored = StoredVerdicts(digest_record(graded.run), verdicts, graded.judge_usage)
        write_verdicts(iteration, graded.run, stored)
    write_summary(iteration, summarize_iteration(iteration))
    return iteration
