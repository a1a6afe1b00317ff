"""The JSON Schemas accept what Skillhall writes and documents, and reject other files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema_rs import Draft202012Validator, meta

from skillhall._internal.evals.eval_records import Arm, RunKey, RunRecord, RunStatus, RunUsage
from skillhall._internal.evals.eval_schemas import SCHEMAS, read_schema
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.pair_comparison import Choice, OrderedChoice, PairComparison
from skillhall._internal.evals.preference_summary import summarize_preferences
from skillhall._internal.evals.run_files import render_run, render_timing
from skillhall._internal.evals.summary_files import serialize_summary, summarize_iteration
from skillhall._internal.evals.triggers.trigger_files import TriggerResult, serialize_result
from skillhall._internal.evals.triggers.trigger_records import TriggerReply, TriggerRun
from skillhall._internal.skill.evals.eval_draft import build_template
from skillhall._internal.skill.evals.eval_file import TriggerQuery
from skillhall._internal.skill.parser import parse_skill
from tests.support.eval_results import make_helpful_runs, store_runs

GUIDE = Path(__file__).parents[3] / "docs/guides/evals.md"
# The examples in the guide of agentskills.io.
GRADING = """{
  "assertion_results": [
    {"text": "The output includes a bar chart", "passed": true, "evidence": "Found chart.png"}
  ],
  "summary": {"passed": 3, "failed": 1, "total": 4, "pass_rate": 0.75}
}"""
BENCHMARK = """{
  "run_summary": {
    "with_skill": {
      "pass_rate": {"mean": 0.83, "stddev": 0.06},
      "time_seconds": {"mean": 45.0, "stddev": 12.0},
      "tokens": {"mean": 3800, "stddev": 400}
    },
    "without_skill": {
      "pass_rate": {"mean": 0.33, "stddev": 0.1},
      "time_seconds": {"mean": 32.0, "stddev": 8.0},
      "tokens": {"mean": 2100, "stddev": 300}
    },
    "delta": {"pass_rate": 0.5, "time_seconds": 13.0, "tokens": 1700}
  }
}"""


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(read_schema(name)))


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_valid(name: str) -> None:
    meta.validate(json.loads(read_schema(name)))


def test_examples_of_the_guide_are_valid() -> None:
    blocks = re.findall(r"```json\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    evals, triggers = (json.loads(block) for block in blocks[:2])
    validator("evals").validate(evals)
    validator("triggers").validate(triggers)


@pytest.mark.parametrize(("name", "text"), [("grading", GRADING), ("benchmark", BENCHMARK)])
def test_documented_results_are_valid(name: str, text: str) -> None:
    validator(name).validate(json.loads(text))


def test_template_is_valid() -> None:
    parsed = parse_skill(b"---\nname: csv\ndescription: Sums.\n---\n## Sum a column\n", "csv")
    draft = build_template("csv", parsed)
    validator("evals").validate(json.loads(draft.evals))
    validator("triggers").validate(json.loads(draft.triggers))


def test_files_of_a_run_are_valid() -> None:
    usage = RunUsage(requests=1, input_tokens=10, cost=0.5)
    record = RunRecord(key=RunKey("1", Arm.WITH_SKILL, 1), status=RunStatus.COMPLETED, usage=usage)
    validator("run").validate(json.loads(render_run(record, "sha256:00")))
    validator("timing").validate(json.loads(render_timing(usage)))


@pytest.mark.parametrize("cases", [0, 2, 6])
def test_files_of_a_graded_iteration_are_valid(tmp_path: Path, cases: int) -> None:
    iteration = store_runs(EvalWorkspace(tmp_path), make_helpful_runs(cases))
    key = RunKey("1", Arm.WITHOUT_SKILL, 1)
    if cases:
        validator("verdicts").validate(
            iteration.read_json(f"{iteration.run_path(key)}/verdicts.json")
        )
    choice = OrderedChoice(Choice.FIRST, "Because.")
    pair = PairComparison(
        key=key, digest="sha256:0", skill_first=choice, skill_second=choice, usage=RunUsage()
    )
    preference = summarize_preferences(Arm.WITHOUT_SKILL, [pair])
    assert preference is not None
    summary = replace(summarize_iteration(iteration), preferences=(preference,))
    value = json.loads(json.dumps(serialize_summary(summary)))
    validator("summary").validate(value)
    assert not validator("summary").is_valid({**value, "differences": [{}]})


def test_documented_timing_is_written_byte_for_byte() -> None:
    usage = RunUsage(input_tokens=80_000, output_tokens=4852, duration_ms=23_332)
    documented = b'{\n  "total_tokens": 84852,\n  "duration_ms": 23332\n}\n'
    assert render_timing(usage) == documented


def test_result_of_triggers_is_valid() -> None:
    reply = TriggerReply(status=RunStatus.COMPLETED, loaded_skills=("pdf",))
    query = TriggerQuery("Sum it", should_trigger=True)
    result = TriggerResult(
        skill="csv",
        skill_digest="sha256:00",
        model="openai-chat:gpt-5",
        repeats=1,
        catalog=("csv", "pdf"),
        runs=(TriggerRun(query=query, repeat=1, digest="sha256:01", reply=reply),),
    )
    validator("trigger-result").validate(serialize_result(result))


@pytest.mark.parametrize(
    "assertion",
    [
        "The sum is 6",
        {"text": "The sum is 6"},
        {"type": "llm", "text": "The sum is 6"},
        {"type": "regex", "value": "6$"},
        {"type": "json-schema", "path": "out.json", "value": {"type": "object"}},
        {"type": "file-exists", "path": "out.csv"},
        {"type": "row-count", "path": "out.csv", "min": 3},
        {"type": "script", "value": "evals/check.py"},
    ],
)
def test_assertions_are_valid(assertion: object) -> None:
    case = {"id": 1, "prompt": "p", "assertions": [assertion]}
    validator("evals").validate({"skill_name": "csv", "evals": [case]})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("evals", []),
        ("evals", {"skill_name": "csv", "evals": [{"id": 1}]}),
        ("evals", {"skill_name": "csv", "evals": [{"id": 1, "prompt": " "}]}),
        ("evals", {"skill_name": "c", "evals": [{"id": 1, "prompt": "p", "assertions": [1]}]}),
        ("triggers", [{"query": "q"}]),
        ("triggers", {"queries": []}),
        ("timing", {"total_tokens": -1, "duration_ms": 1}),
        ("grading", {"assertion_results": []}),
    ],
)
def test_invalid_files_are_rejected(name: str, value: object) -> None:
    assert not validator(name).is_valid(value)
