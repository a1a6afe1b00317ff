"""`skillhall eval grade`: stored runs and a scripted judge, up to verdicts and gates."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from skillhall._internal.evals.eval_records import Arm
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.grading_files import parse_grading
from skillhall._internal.evals.runs.evaluated_skill import read_evaluated_skill
from skillhall._internal.evals.triggers.trigger_files import write_trigger_result
from tests.support.eval_results import make_trigger_result
from tests.support.eval_skills import MODEL, make_case, make_eval_skill, run_eval, use_model
from tests.support.eval_verdicts import store_runs
from tests.support.model_server import HttpFailure, ModelRequest, ModelServer, Turn, model_server
from tests.support.scripted_judge import is_judge, judge, read_block

GOOD, BAD = "TOTAL 6 euros", "a number"
CHECK = {"text": "starts with TOTAL", "type": "regex", "value": "^TOTAL"}
CASES = [f"c{number}" for number in range(5)]
Behavior = Callable[[bool, int], bool]  # whether a run is good: has the skill, number of the run


def reply_as_judge(request: ModelRequest) -> str:
    """Judge by the start of the reply, and prefer the good answer, else the first."""
    if request.system.startswith("You compare"):
        second = read_block(request, "answer-2-reply") == GOOD
        better = 2 if second and read_block(request, "answer-1-reply") == BAD else 1
        return json.dumps({"better": better, "reason": "It has the total."})
    good = read_block(request, "reply").startswith("TOTAL")
    return judge(request, lambda _: ("passed", "euros") if good else ("failed", "a number"))


def behave(is_good: Behavior) -> Callable[[ModelRequest], Turn]:
    """Return the replies of an agent and of a judge."""
    runs = {True: 0, False: 0}

    def reply(request: ModelRequest) -> Turn:
        if is_judge(request):
            return reply_as_judge(request)
        has_skill = "load_skill" in request.tools
        runs[has_skill] += 1
        return GOOD if is_good(has_skill, runs[has_skill]) else BAD

    return reply


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with model_server(function=reply_as_judge, max_requests=10_000) as running:
        use_model(monkeypatch, running)
        yield running


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    cases = [make_case(one, assertions=[CHECK, "The unit is named"]) for one in CASES]
    return make_eval_skill(tmp_path / "skills", cases)


@pytest.fixture
def stored(skill: Path) -> Path:
    """The skill with runs: all good with it, two of three bad without it."""
    replies: Mapping[Arm, Mapping[str, Sequence[str]]] = {
        Arm.WITH_SKILL: dict.fromkeys(CASES, (GOOD, GOOD, GOOD)),
        Arm.WITHOUT_SKILL: dict.fromkeys(CASES, (BAD, GOOD, BAD)),
    }
    store_runs(skill, replies)
    return skill


def grade(
    capsys: pytest.CaptureFixture[str], skill: Path, *argv: str, judge: str = MODEL
) -> tuple[int, Any]:
    capsys.readouterr()
    judges = ["--judge", judge] if judge else []
    code = run(["eval", "grade", str(skill), *judges, *argv, "--json"])
    (graded,) = json.loads(capsys.readouterr().out)["data"]["skills"]
    return code, graded


@pytest.mark.parametrize(
    ("is_good", "expected"),
    [
        (lambda has_skill, number: has_skill or number % 5 == 0, (0.8, "better")),
        (lambda _, number: number % 3 != 0, (0.0, "unclear")),
        (lambda has_skill, number: not has_skill or number % 5 == 0, (-0.8, "worse")),
    ],
    ids=["helps", "does nothing", "harms"],
)
def test_interval_of_the_difference_contains_the_real_effect(
    skill: Path,
    server: ModelServer,
    capsys: pytest.CaptureFixture[str],
    is_good: Behavior,
    expected: tuple[float, str],
) -> None:
    effect, verdict = expected
    server.script = behave(is_good)
    result = run_eval(capsys, skill, "--model", MODEL, "--jobs", "1")

    assert result.code == 0, result.err
    (difference,) = result.skill["summary"]["differences"]
    assert (difference["verdict"], difference["cases"]) == (verdict, 5)
    assert difference["low"] <= effect <= difference["high"]


def test_grading_writes_the_documented_files(
    stored: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, graded = grade(capsys, stored)

    assert code == 0
    iteration = Path(graded["iteration"])
    data = (iteration / "eval-c0/without_skill/run-1/grading.json").read_bytes()
    assert parse_grading(data) == (
        ("starts with TOTAL", False, "reply has no match: 'a number'"),
        ("The unit is named", False, '"a number" (reply): Because.'),
    )
    benchmark = (iteration / "benchmark.json").read_text()
    assert '"delta": {\n      "pass_rate": 0.67,' in benchmark
    assert json.loads((iteration / "summary.json").read_text()) == graded["summary"]
    assert graded["summary"]["judge_usage"]["requests"] == 30


def test_verdicts_are_not_paid_twice(
    stored: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first = grade(capsys, stored)
    count = len(server.requests)
    _, second = grade(capsys, stored)
    _, without_judge = grade(capsys, stored, judge="")

    assert (len(server.requests), second["grades_reused"]) == (count, 30)
    assert first["summary"] == second["summary"] == without_judge["summary"]


def test_new_assertion_is_judged_alone(
    stored: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    grade(capsys, stored)
    server.requests.clear()
    case = make_case("c0", assertions=[CHECK, "The unit is named", "It is short"])
    (stored / "evals/evals.json").write_text(json.dumps({"evals": [case]}))
    _, graded = grade(capsys, stored)

    assert len(server.requests) == 6
    assert "The unit is named" not in read_block(server.requests[0], "assertions")
    assert graded["summary"]["arms"]["with_skill"]["assertions"]["passed"] == 33


def test_judge_that_was_not_available_is_asked_again(
    stored: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = lambda _: HttpFailure(400)
    _, failed = grade(capsys, stored)
    server.script = reply_as_judge
    _, graded = grade(capsys, stored)

    counts = failed["summary"]["arms"]["with_skill"]["assertions"]
    assert counts == {"passed": 15, "failed": 0, "not_judged": 15}
    assert graded["summary"]["arms"]["with_skill"]["assertions"]["passed"] == 30


@pytest.mark.parametrize(
    "gate",
    [
        ("pass_rate>=0.9, delta>=0.5, delta.low>0", True, ""),
        ("pass_rate>=0.9, tokens<10", False, ""),
        ("triggers.recall>=0.9", False, "'eval triggers' has not been run"),
        ("cost<1", False, "the price is not known"),
    ],
)
def test_gate_decides_the_exit_code(
    stored: Path,
    server: ModelServer,
    capsys: pytest.CaptureFixture[str],
    gate: tuple[str, bool, str],
) -> None:
    text, passed, reason = gate
    code, graded = grade(capsys, stored, "--gate", text)

    assert code == (0 if passed else 1)
    assert graded["gates"][-1]["passed"] is passed
    assert graded["gates"][-1]["reason"] == reason


def test_missing_verdicts_fail_the_gate(
    stored: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, graded = grade(capsys, stored, "--no-judge", "--gate", "pass_rate>=0.1", judge="")

    assert code == 1
    assert graded["gates"][0]["reason"] == "only 50% of the assertions were judged"
    assert server.requests == []


def test_invalid_gate_is_a_usage_error(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "grade", str(stored), "--gate", "speed>=1"]) == 2
    assert "unknown metric 'speed'; use one of: pass_rate," in capsys.readouterr().err


def test_blind_comparison_counts_only_what_holds_in_both_orders(
    stored: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    _, graded = grade(capsys, stored, "--blind-compare")
    count = len(server.requests)
    _, again = grade(capsys, stored, "--blind-compare")

    # The judge takes the first of two equal answers: that is its bias, not a preference.
    (preference,) = graded["summary"]["preferences"]
    assert preference["counts"] == {"skill": 10, "inconsistent": 5}
    assert preference["preference"]["value"] == pytest.approx(2 / 3)
    assert preference["order_bias"]["value"] == pytest.approx(1 / 3)
    assert preference["verdict"] == "better"
    assert (len(server.requests), again["summary"]) == (count, graded["summary"])
    compared = [one for one in server.requests if one.system.startswith("You compare")]
    assert len(compared) == 30
    assert not any("with_skill" in str(one) or "csv-report" in str(one) for one in compared)


def test_text_names_flaky_and_useless_assertions(
    stored: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "grade", str(stored), "--judge", MODEL]) == 0
    out = capsys.readouterr().out

    assert "difference from runs without the skill: +66.7 points [" in out
    assert "5 cases: better" in out
    assert f"  judged by {MODEL} with 30 requests, 450 tokens, unknown cost\n" in out
    assert "10 assertions flaky:" in out
    assert (
        "case c0: 'starts with TOTAL' (with the skill: 3 passed, 0 failed; without the skill: 1"
        in out
    )


def test_skill_without_runs_is_not_found(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "grade", str(skill)]) == 4
    assert "csv-report has no stored runs" in capsys.readouterr().err


def test_run_applies_gates_and_a_replay_needs_no_model(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server.script = behave(lambda has_skill, _: has_skill)
    gates = ["--gate", "pass_rate>=0.9, delta.low>0, triggers.recall>=0.9"]
    junit = tmp_path / "evals.xml"
    triggers = make_trigger_result(skill="csv-report", loaded="csv-report")
    triggers = replace(triggers, skill_digest=read_evaluated_skill("", str(skill)).digest)
    iteration = EvalWorkspace.of_skill(str(skill)).create_iteration({}, 1)
    write_trigger_result(iteration, triggers)
    first = run_eval(capsys, skill, "--model", MODEL, *gates, "--junit", junit)
    count = len(server.requests)
    recording = skill.with_name("csv-report-workspace")
    replayed = run_eval(capsys, skill, "--replay", recording, "--results", tmp_path / "r", *gates)

    assert (first.code, replayed.code, len(server.requests)) == (0, 0, count)
    assert count == 60
    assert replayed.skill["summary"]["differences"] == first.skill["summary"]["differences"]
    assert replayed.skill["gates"] == first.skill["gates"]
    assert b"pass_rate&gt;=0.9" in junit.read_bytes()


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        (["--max-tokens", "40"], "the limit of 40 tokens is reached"),
        (["--max-cost", "0.05", "--price", "1000,2000"], "the limit of $0.05 is reached"),
    ],
)
def test_limit_stops_the_judge_and_the_next_command_continues(
    stored: Path,
    server: ModelServer,
    capsys: pytest.CaptureFixture[str],
    limits: list[str],
    problem: str,
) -> None:
    argv = ["eval", "grade", str(stored), "--judge", MODEL, "--jobs", "1", *limits, "--json"]
    code = run(argv)
    output = json.loads(capsys.readouterr().out)

    assert (code, len(server.requests)) == (1, 3)
    assert output["error"]["message"] == f"judging stopped: {problem}"
    code, _ = grade(capsys, stored)
    assert (code, len(server.requests)) == (0, 30)


def test_limit_of_the_cost_needs_the_price_of_the_judge(
    stored: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "grade", str(stored), "--judge", MODEL, "--max-cost", "1"]) == 2
    assert "--max-cost needs the price" in capsys.readouterr().err
    assert server.requests == []


def test_second_command_does_not_pay_for_verdicts_in_progress(
    stored: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (iteration,) = EvalWorkspace.of_skill(str(stored)).iterations()
    with iteration.lock():
        assert run(["eval", "grade", str(stored), "--judge", MODEL]) == 5
    assert "another command is running these evals" in capsys.readouterr().err
    assert server.requests == []


def test_tokens_of_the_judge_count_for_the_limit(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = behave(lambda has_skill, _: has_skill)
    runs = run_eval(capsys, skill, "--model", MODEL, "--no-judge").data["tokens"]
    limited = run_eval(capsys, skill, "--model", MODEL, "--max-tokens", "60", "--jobs", "1")

    assert runs == 450
    assert limited.data["tokens"] == 60
    counts = limited.skill["summary"]["arms"]["with_skill"]["assertions"]
    assert counts["not_judged"] > 0
    assert (limited.code, json.loads(limited.out)["error"]["message"]) == (
        1,
        "judging stopped: the limit of 60 tokens is reached",
    )


def test_script_checks_outputs_only_with_consent(
    tmp_path: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    check = {"type": "script", "value": "evals/check.py"}
    script = b"import sys\nprint('found', sys.stdin.read())\nopen('canary', 'w')\n"
    case = make_case("c0", assertions=[check])
    skill = make_eval_skill(tmp_path / "skills", [case], files={"evals/check.py": script})
    iteration = store_runs(skill, {Arm.WITH_SKILL: {"c0": (GOOD,)}}, repeats=1)
    _, without = grade(capsys, skill, judge="")
    _, allowed = grade(capsys, skill, "--allow-scripts", judge="")

    counts = [one["summary"]["arms"]["with_skill"]["assertions"] for one in (without, allowed)]
    assert [one["not_judged"] for one in counts] == [1, 0]
    verdicts = iteration.read_json("eval-c0/with_skill/verdicts.json")
    assert isinstance(verdicts, dict)
    assert verdicts["results"][0]["evidence"] == f"exit code 0: found {GOOD}"
    assert [*tmp_path.rglob("canary")] == []


def test_graded_runs_are_reported_with_gates_and_transcripts(
    stored: Path, server: ModelServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    junit, page = tmp_path / "junit.xml", tmp_path / "report.html"
    gate = ("--gate", "delta>=0.9")
    code, _ = grade(capsys, stored, *gate, "--junit", str(junit), "--html", str(page))

    assert code == 1
    # The runs with the skill pass; the gate fails.
    assert 'failures="1"' in junit.read_text()
    assert "delta is 0.6667" in page.read_text()
    assert run(["eval", "report", str(stored), "--format", "markdown", *gate]) == 1
    assert "| with the skill | 15 of 15 | 1.00 | 0.57 to 1.00 |" in capsys.readouterr().out
