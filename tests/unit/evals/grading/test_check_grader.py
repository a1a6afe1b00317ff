"""Checks of outputs without a model. The process for patterns is a real one."""

import asyncio
from pathlib import Path

import pytest

from skillhall._internal.evals.eval_records import Arm, RunKey, RunRecord, RunStatus, Verdict
from skillhall._internal.evals.grading.check_grader import CheckGrader
from skillhall._internal.evals.grading.check_process import CheckProcess
from skillhall._internal.evals.grading.grader import GradingTask
from skillhall._internal.evals.grading.run_outputs import MAX_TEXT, RunOutputs
from skillhall._internal.evals.run_files import StoredRun
from skillhall._internal.skill.evals.eval_assertion import EvalAssertion, EvalCheck, parse_check
from skillhall._internal.skill.evals.eval_file import EvalCase

FILES = {
    "a.csv": b"month,revenue\nJuly,3\nMarch,2\n\n",
    "a.jsonl": '{"a": 1}\n"\u2028"\n'.encode(),
    "bad.jsonl": b"{}\n{\n",
    "bad.csv": b'a\n"' + b"x" * 200_000,
    "report.md": b"# Report\n\nJuly was best.\n",
    "charts/top.png": b"\xff\x00",
    "o.json": b'{"months": ["July"]}',
}


@pytest.fixture
def outputs(tmp_path: Path) -> RunOutputs:
    for name, data in FILES.items():
        path = tmp_path / "outputs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "secret").write_text("July")
    (tmp_path / "outputs" / "link").symlink_to(tmp_path / "secret")
    run = RunRecord(
        key=RunKey("1", Arm.WITH_SKILL, 1), status=RunStatus.COMPLETED, reply="It was July.\n"
    )
    return RunOutputs.of_run(StoredRun(run, "", tmp_path))


def check_all(
    outputs: RunOutputs, *checks: dict[str, object], cpu_limit: float = 2.0
) -> list[tuple[Verdict, str]]:
    assertions = []
    for fields in checks:
        check = parse_check(fields)
        assert isinstance(check, EvalCheck)
        assertions.append(EvalAssertion("a", check))
    case = EvalCase("1", "p", "", (), tuple(assertions))

    async def grade() -> list[tuple[Verdict, str]]:
        async with CheckProcess(cpu_limit) as process:
            grader = CheckGrader(process)
            assert all(map(grader.accepts, assertions))
            grades = await grader.grade(GradingTask(case, outputs), assertions)
            return [(one.verdict, one.evidence) for one in grades.judgments]

    return asyncio.run(grade())


@pytest.mark.parametrize(
    ("check", "verdict", "evidence"),
    [
        ({"type": "contains", "value": "July"}, Verdict.PASSED, "reply: 'It was July.\\n'"),
        ({"type": "contains", "value": "May"}, Verdict.FAILED, "reply has no match"),
        ({"type": "not-contains", "value": "May"}, Verdict.PASSED, "reply has no match"),
        ({"type": "not-contains", "value": "July"}, Verdict.FAILED, "reply: 'It was"),
        ({"type": "contains", "value": "best", "path": "report.md"}, Verdict.PASSED, "July was"),
        ({"type": "equals", "value": "It was July."}, Verdict.PASSED, "reply"),
        ({"type": "equals", "value": "July"}, Verdict.FAILED, "It was July."),
        ({"type": "contains", "value": "x", "path": "no.md"}, Verdict.FAILED, "no output file"),
        ({"type": "contains", "value": "x", "path": "charts/top.png"}, Verdict.FAILED, "not UTF-8"),
        ({"type": "contains", "value": "July", "path": "link"}, Verdict.FAILED, "no output file"),
        ({"type": "file-exists", "path": "charts/*.png"}, Verdict.PASSED, "charts/top.png"),
        ({"type": "file-exists", "path": "*.pdf"}, Verdict.FAILED, "output files: a.csv, a.jsonl"),
        ({"type": "row-count", "path": "a.csv", "value": 2}, Verdict.PASSED, "a.csv has 2 rows"),
        ({"type": "row-count", "path": "a.csv", "min": 3}, Verdict.FAILED, "a.csv has 2 rows"),
        ({"type": "row-count", "path": "a.csv", "max": 1}, Verdict.FAILED, "a.csv has 2 rows"),
        ({"type": "row-count", "path": "a.jsonl", "value": 2}, Verdict.PASSED, "has 2 rows"),
        ({"type": "row-count", "path": "bad.jsonl", "min": 1}, Verdict.FAILED, "row 2"),
        ({"type": "row-count", "path": "bad.csv", "min": 1}, Verdict.FAILED, "not a CSV file"),
    ],
)
def test_check_has_a_verdict_and_evidence(
    outputs: RunOutputs, check: dict[str, object], verdict: Verdict, evidence: str
) -> None:
    ((found, text),) = check_all(outputs, check)

    assert found is verdict
    assert evidence in text


def test_large_output_is_not_read(outputs: RunOutputs, tmp_path: Path) -> None:
    (tmp_path / "outputs" / "o.json").write_bytes(b"x" * (MAX_TEXT + 1))

    ((verdict, evidence),) = check_all(
        outputs_again(tmp_path), {"type": "contains", "value": "x", "path": "o.json"}
    )

    assert verdict is Verdict.FAILED
    assert "larger than" in evidence


def outputs_again(folder: Path) -> RunOutputs:
    run = RunRecord(key=RunKey("1", Arm.WITH_SKILL, 1), status=RunStatus.COMPLETED)
    return RunOutputs.of_run(StoredRun(run, "", folder))


def test_patterns_and_schemas_are_checked_by_one_process(outputs: RunOutputs) -> None:
    schema = {"type": "object", "properties": {"months": {"maxItems": 1}}, "required": ["months"]}
    results = check_all(
        outputs,
        {"type": "regex", "value": r"J\w+y"},
        {"type": "regex", "value": "^July"},
        {"type": "not-regex", "value": "June"},
        {"type": "json-schema", "value": schema, "path": "o.json"},
        {"type": "json-schema", "value": {**schema, "required": ["total"]}, "path": "o.json"},
        {"type": "json-schema", "value": schema},
        {"type": "json-schema", "value": {"type": "nonsense"}, "path": "o.json"},
        {"type": "json-schema", "value": {"$ref": "http://127.0.0.1:1/s"}, "path": "o.json"},
    )

    assert [verdict.value for verdict, _ in results] == [
        *("passed", "failed", "passed"),
        *("passed", "failed", "failed"),
        *("not_judged", "not_judged"),
    ]
    assert results[0][1] == "reply: 'It was July.\\n'"
    assert results[4][1] == "$: 'total' is a required property"
    assert results[5][1] == "it is not valid JSON"
    assert "does not contain" in results[7][1]


def test_endless_pattern_is_stopped_and_the_next_one_works(outputs: RunOutputs) -> None:
    text = RunOutputs("a" * 5000, outputs.files)
    endless, quick = check_all(
        text,
        {"type": "regex", "value": "(a+)+b"},
        {"type": "regex", "value": "a+"},
        cpu_limit=0.2,
    )

    assert endless == (Verdict.NOT_JUDGED, "the check took more than 0.2 seconds of CPU time")
    assert quick[0] is Verdict.PASSED
