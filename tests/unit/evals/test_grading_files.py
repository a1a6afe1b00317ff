"""`grading.json` as documented, and the stored verdicts."""

from pathlib import Path

import pytest

from skillhall._internal.evals.eval_records import (
    Arm,
    AssertionResult,
    RunKey,
    RunRecord,
    RunStatus,
    RunUsage,
    Verdict,
)
from skillhall._internal.evals.eval_workspace import EvalIteration, EvalWorkspace
from skillhall._internal.evals.grading_files import (
    StoredVerdict,
    StoredVerdicts,
    digest_record,
    parse_grading,
    read_verdicts,
    render_grading,
    write_verdicts,
)

DOCUMENTED = """{
  "assertion_results": [
    {
      "text": "The output includes a bar chart",
      "passed": true,
      "evidence": "Found chart.png (45 KB) – “Top 3”"
    },
    {
      "text": "Both axes are labeled",
      "passed": false,
      "evidence": "The x axis has no label"
    },
    {
      "text": "The chart has 3 bars",
      "passed": true,
      "evidence": "March, July and November"
    },
    {
      "text": "The title names revenue",
      "passed": true,
      "evidence": "\\"Top 3 months by revenue\\""
    }
  ],
  "summary": {
    "passed": 3,
    "failed": 1,
    "total": 4,
    "pass_rate": 0.75
  }
}
""".encode()
RUN = RunRecord(key=RunKey("1", Arm.WITH_SKILL, 1), status=RunStatus.COMPLETED, reply="July")


def test_documented_grading_is_written_back_byte_for_byte() -> None:
    results = parse_grading(DOCUMENTED)

    assert results is not None
    assert [one.passed for one in results] == [True, False, True, True]
    assert render_grading(results) == DOCUMENTED


def test_expectations_of_other_versions_of_the_guide_are_read() -> None:
    other = DOCUMENTED.replace(b"assertion_results", b"expectations")

    assert parse_grading(other) == parse_grading(DOCUMENTED)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"assertion_results": {}}',
        b'{"assertion_results": ["x"]}',
        b'{"assertion_results": [{"text": "x", "passed": "yes"}]}',
        b'{"assertion_results": [], "assertion_results": []}',
    ],
)
def test_other_json_is_no_grading(data: bytes) -> None:
    assert parse_grading(data) is None


def make_verdict(verdict: Verdict) -> StoredVerdict:
    result = AssertionResult(text=verdict.value, verdict=verdict, evidence="e", grader="judge")
    return StoredVerdict(result, f"digest of {verdict}", is_final=verdict is not Verdict.NOT_JUDGED)


@pytest.fixture
def iteration(tmp_path: Path) -> EvalIteration:
    iteration = EvalWorkspace(tmp_path).create_iteration({}, 1)
    iteration.write_run(RUN, "sha256:1", {})
    return iteration


def test_assertion_that_was_not_judged_is_only_in_our_file(iteration: EvalIteration) -> None:
    verdicts = tuple(make_verdict(one) for one in Verdict)
    stored = StoredVerdicts(digest_record(RUN), verdicts, RunUsage(requests=1, cost=0.5), "m:x")
    write_verdicts(iteration, RUN, stored)

    assert read_verdicts(iteration, RUN) == stored
    documented = parse_grading((iteration.run_folder(RUN.key) / "grading.json").read_bytes())
    assert documented is not None
    assert [one.text for one in documented] == ["passed", "failed"]


def test_verdicts_about_another_result_are_not_used(iteration: EvalIteration) -> None:
    write_verdicts(iteration, RUN, StoredVerdicts("another", (), RunUsage()))

    assert read_verdicts(iteration, RUN) is None


def test_new_result_of_a_run_removes_its_grading(iteration: EvalIteration) -> None:
    write_verdicts(iteration, RUN, StoredVerdicts(digest_record(RUN), (), RunUsage()))
    iteration.write_run(RUN, "sha256:1", {})

    assert read_verdicts(iteration, RUN) is None
    assert not (iteration.run_folder(RUN.key) / "grading.json").exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"run_digest": "", "results": [1], "judge_usage": {}}']
)
def test_invalid_verdicts_count_as_missing(iteration: EvalIteration, text: str) -> None:
    (iteration.run_folder(RUN.key) / "verdicts.json").write_text(text)

    assert read_verdicts(iteration, RUN) is None


def test_digest_of_a_result_does_not_depend_on_its_arm_and_repeat() -> None:
    moved = RunRecord(key=RunKey("2", Arm.OLD_SKILL, 3), status=RUN.status, reply="July")
    changed = RunRecord(key=RUN.key, status=RUN.status, reply="May")

    assert digest_record(moved) == digest_record(RUN)
    assert digest_record(changed) != digest_record(RUN)
