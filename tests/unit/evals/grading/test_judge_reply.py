"""What counts as the verdict of a judge, and as evidence."""

import json

import pytest

from skillhall._internal.evals.eval_records import Verdict
from skillhall._internal.evals.grading.judge_reply import (
    JudgeResult,
    UnusableReply,
    find_quote,
    judge_result,
    parse_results,
)
from skillhall._internal.evals.grading.run_outputs import RunOutputs
from skillhall._internal.skill.bundle import RelativePath, SkillFile

REPORT = SkillFile(
    RelativePath.parse("report.md"), 30, executable=False, read=lambda: b"Revenue:\n  July  3\n"
)
OUTPUTS = RunOutputs("July was the best month.\nTotal\n6", {"report.md": REPORT})


def entry(number: object, verdict: object = "passed", /, **fields: object) -> dict[str, object]:
    return {"number": number, "verdict": verdict, "quote": "July", "reason": "r", **fields}


def parse(*entries: object) -> dict[int, JudgeResult]:
    return parse_results(json.dumps({"results": entries}))


def test_json_in_a_code_block_is_read() -> None:
    reply = f"Here it is:\n```json\n{json.dumps({'results': [entry(1)]})}\n```\nDone."

    assert parse_results(reply) == {1: JudgeResult(Verdict.PASSED, "July", "r")}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "it is not JSON"),
        ("I cannot help with that.", "it is not JSON"),
        ("}{", "it is not JSON"),
        ('{"results": [', "it is not JSON"),
        ('{"results": [}', "it is not valid JSON"),
        ('{"results": NaN}', "it is not valid JSON"),
        ("{" * 100_000 + "}", "it is not valid JSON"),
        ('{"verdict": "passed"}', "it has no list 'results'"),
        ('{"results": {}}', "it has no list 'results'"),
    ],
)
def test_reply_without_results_is_unusable(reply: str, reason: str) -> None:
    with pytest.raises(UnusableReply, match=reason):
        parse_results(reply)


@pytest.mark.parametrize(
    "bad",
    [1, None, {}, entry("1"), entry(1.5), entry(1, "great"), entry(1, None), {"number": True}],
)
def test_unusable_results_are_left_out(bad: object) -> None:
    assert [*parse(bad, entry(2))] == [2]


def test_two_verdicts_about_one_assertion_are_left_out() -> None:
    assert [*parse(entry(1), entry(1, "failed"), entry(2), entry(2))] == [2]


@pytest.mark.parametrize(
    ("quote", "source"),
    [
        ("best month", "reply"),
        ("month. Total", "reply"),
        ("July 3", "report.md"),
        ("report.md (30 bytes)", "files"),
        ("6", "reply"),
        ("Best month", None),
        ("June", None),
        ("July … month", None),
        ("a", None),
        ("...", None),
        ("", None),
    ],
)
def test_quote_is_looked_up_in_all_outputs(quote: str, source: str | None) -> None:
    assert find_quote(quote, OUTPUTS) == source


@pytest.mark.parametrize(
    ("result", "verdict", "evidence"),
    [
        (JudgeResult(Verdict.PASSED, "best", "yes"), Verdict.PASSED, '"best" (reply): yes'),
        (JudgeResult(Verdict.FAILED, "July", "late"), Verdict.FAILED, '"July" (reply): late'),
        (JudgeResult(Verdict.FAILED, "", "no chart"), Verdict.FAILED, "no chart"),
        (JudgeResult(Verdict.PASSED, "", "sure"), Verdict.NOT_JUDGED, "without a quote: sure"),
        (JudgeResult(Verdict.PASSED, "May", "x"), Verdict.NOT_JUDGED, 'not in the outputs: "May"'),
        (JudgeResult(Verdict.FAILED, "May", "x"), Verdict.NOT_JUDGED, 'not in the outputs: "May"'),
        (JudgeResult(Verdict.NOT_JUDGED, "July", "why"), Verdict.NOT_JUDGED, "unclear to the"),
    ],
)
def test_verdict_counts_only_with_real_evidence(
    result: JudgeResult, verdict: Verdict, evidence: str
) -> None:
    judgment = judge_result(result, OUTPUTS)

    assert judgment.verdict is verdict
    assert evidence in judgment.evidence
