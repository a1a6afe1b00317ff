"""`skillhall eval run` against scripted models, with the files of each run."""

import gc
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.eval_skills import (
    MODEL,
    MODELS,
    EvalResult,
    make_case,
    make_eval_skill,
    run_eval,
    use_model,
)
from tests.support.model_server import (
    HttpFailure,
    ModelRequest,
    ModelServer,
    RawReply,
    ToolCall,
    Turn,
    model_server,
)

SALES = b"amount\n1\n2\n3\n"


def work_with_files(request: ModelRequest) -> Turn:
    """Read the input, load the skill if there is one, write a file, reply."""
    turns: list[Turn] = [ToolCall("ReadFile", {"path": "sales.csv"})]
    if "load_skill" in request.tools:
        turns.append(ToolCall("load_skill", {"name": "csv-report"}))
    turns.append(ToolCall("WriteFile", {"path": "out/total.txt", "content": "6"}))
    turns.append("TOTAL 6" if "load_skill" in request.tools else "six")
    return turns[len(request.tool_results)]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with model_server(function=work_with_files, max_requests=10_000) as running:
        use_model(monkeypatch, running)
        yield running


@pytest.fixture
def skill(project: Path) -> Path:
    case = make_case(files=["evals/files/sales.csv"])
    return make_eval_skill(project / "skills", [case], files={"evals/files/sales.csv": SALES})


def read_run(skill: Path, arm: str, repeat: int = 1, iteration: int = 1) -> Path:
    folder = skill.with_name(f"{skill.name}-workspace")
    return folder / f"iteration-{iteration}/eval-sum/{arm}/run-{repeat}"


def read_json(path: Path) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(path.read_text())


@pytest.mark.parametrize("model", MODELS)
def test_case_runs_with_the_skill_and_without_it(
    skill: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    with model_server(function=work_with_files, max_requests=100) as server:
        use_model(monkeypatch, server, model)
        result = run_eval(capsys, skill, "--model", model)

    assert result.code == 0, result.err
    assert result.skill["statuses"] == {"completed": 6}
    assert len(server.requests) == 3 * (4 + 3)
    with_skill = read_json(read_run(skill, "with_skill") / "run.json")
    assert (with_skill["reply"], with_skill["loaded_skills"]) == ("TOTAL 6", ["csv-report"])
    assert with_skill["usage"]["requests"] == 4
    assert (with_skill["usage"]["input_tokens"], with_skill["usage"]["output_tokens"]) == (40, 20)
    without_skill = read_json(read_run(skill, "without_skill") / "run.json")
    assert (without_skill["reply"], without_skill["loaded_skills"]) == ("six", [])


def test_transcript_has_all_messages_and_tool_calls(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    run_eval(capsys, skill, "--model", MODEL, "--repeats", "3")

    transcript = read_json(read_run(skill, "with_skill", 3) / "transcript.json")
    assert [entry["role"] for entry in transcript] == [
        *("system", "user"),
        *("assistant", "tool") * 3,
        "assistant",
    ]
    assert "<name>csv-report</name>" in transcript[0]["content"]
    assert transcript[1]["content"] == "Sum it."
    assert transcript[2]["calls"] == [{"tool": "ReadFile", "arguments": {"path": "sales.csv"}}]
    assert transcript[3]["content"] == SALES.decode()
    assert "Reply with TOTAL first." in transcript[5]["content"]
    assert transcript[-1]["content"] == "TOTAL 6"


def test_prompt_of_a_run_never_contains_the_text_of_the_skill(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    run_eval(capsys, skill, "--model", MODEL, "--repeats", "1")

    first = [request for request in server.requests if not request.tool_results]
    with_skill, without_skill = sorted(first, key=lambda request: "load_skill" in request.tools)[
        ::-1
    ]
    assert "csv-report" in with_skill.system
    assert "csv-report" not in without_skill.system
    for request in first:
        assert "Reply with TOTAL first." not in f"{request.system}{request.user_messages}"


def test_outputs_are_the_new_and_changed_files(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    run_eval(capsys, skill, "--model", MODEL)

    outputs = read_run(skill, "with_skill") / "outputs"
    files = [path.relative_to(outputs).as_posix() for path in outputs.rglob("*") if path.is_file()]
    assert files == ["out/total.txt"]
    assert (outputs / "out/total.txt").read_text() == "6"


def test_agent_cannot_read_the_evals_of_the_skill(
    project: Path, skill: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []

    def read_evals(request: ModelRequest) -> Turn:
        results.extend(request.tool_results)
        if request.tool_results or "read_skill_file" not in request.tools:
            return "Done."
        arguments = {"name": "csv-report", "path": "evals/evals.json"}
        return ToolCall("read_skill_file", arguments)

    with model_server(function=read_evals) as server:
        use_model(monkeypatch, server)
        run_eval(capsys, skill, "--model", MODEL, "--repeats", "1")

    assert results[0].startswith("Error: ")


def test_second_command_runs_nothing_again(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    run_eval(capsys, skill, "--model", MODEL)
    before = len(server.requests)

    result = run_eval(capsys, skill, "--model", MODEL)

    assert len(server.requests) == before
    assert (result.skill["reused"], result.data["tokens"]) == (6, 0)
    assert result.skill["iteration"].endswith("iteration-1")


def test_changed_skill_runs_only_its_own_arm_again(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    run_eval(capsys, skill, "--model", MODEL)
    text = (skill / "SKILL.md").read_text()
    (skill / "SKILL.md").write_text(f"{text}Be brief.\n")

    result = run_eval(capsys, skill, "--model", MODEL)

    assert result.skill["reused"] == 3
    assert result.skill["iteration"].endswith("iteration-2")
    reused = read_run(skill, "without_skill", 2, iteration=2)
    assert (reused / "outputs/out/total.txt").read_text() == "6"
    assert read_json(reused / "transcript.json")[-1]["content"] == "six"


def test_changed_assertion_needs_no_run(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    run_eval(capsys, skill, "--model", MODEL)
    before = len(server.requests)
    evals = json.loads((skill / "evals/evals.json").read_text())
    evals["evals"][0]["assertions"] = ["The total comes first"]
    (skill / "evals/evals.json").write_text(json.dumps(evals))

    result = run_eval(capsys, skill, "--model", MODEL, "--no-judge")

    assert len(server.requests) == before
    assert result.skill["iteration"].endswith("iteration-2")


def test_fresh_runs_everything_again(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    run_eval(capsys, skill, "--model", MODEL)

    result = run_eval(capsys, skill, "--model", MODEL, "--fresh")

    assert result.skill["reused"] == 0
    assert result.skill["iteration"].endswith("iteration-2")


def test_old_version_is_a_third_arm(
    project: Path, skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    old = make_eval_skill(project / "old", [], body="Reply with the sum.\n")

    result = run_eval(capsys, skill, "--model", MODEL, "--against", old)

    assert result.skill["statuses"] == {"completed": 9}
    transcript = read_json(read_run(skill, "old_skill") / "transcript.json")
    assert "Reply with the sum." in transcript[5]["content"]


def test_garbage_is_collected_so_that_memory_does_not_grow_with_the_runs(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_eval_skill(project / "skills", [make_case()])
    gc.disable()  # as the program does for short commands
    try:
        run_eval(capsys, skill, "--model", MODEL, "--repeats", "1")
        assert gc.isenabled()
    finally:
        gc.enable()


def test_plan_says_whether_it_has_all_cases(
    project: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = make_eval_skill(project / "skills", [make_case("a"), make_case("b")])
    found = []
    for selected in (["--case", "a"], ["--case", "a", "--case", "b"], []):
        result = run_eval(capsys, skill, "--model", MODEL, "--repeats", "1", *selected)
        plan = read_json(Path(result.skill["iteration"]) / "plan.json")
        found.append((len(plan["cases"]), plan["complete"], result.skill["summary"]["complete"]))

    assert found == [(1, False, False), (2, True, True), (2, True, True)]


def test_dry_run_counts_without_requests(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run_eval(capsys, skill, "--model", MODEL, "--dry-run", "--price", "3,15")

    assert server.requests == []
    assert not read_run(skill, "with_skill").exists()
    assert (first.skill["runs"], first.skill["requests"], first.skill["measured"]) == (6, 18, 0)
    assert first.skill["cost"] > 0
    judge = first.skill["judge"]
    assert judge is not None
    assert judge["requests"] == 0  # the case has no assertions


def test_dry_run_needs_no_api_key(
    skill: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    result = run_eval(capsys, skill, "--model", "openai-chat:gpt-5", "--dry-run")

    assert (result.skill["runs"], result.skill["requests"]) == (6, 18)


def test_dry_run_estimates_from_earlier_runs(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    run_eval(capsys, skill, "--model", MODEL)

    result = run_eval(capsys, skill, "--model", MODEL, "--dry-run", "--repeats", "5")

    assert (result.skill["runs"], result.skill["measured"]) == (4, 4)
    assert (result.skill["requests"], result.skill["input_tokens"]) == (14, 140)


def test_failed_run_is_reported_and_repeated_by_the_next_command(
    skill: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replies: Iterator[Turn | HttpFailure] = iter([HttpFailure(400), *["Done."] * 20])
    with model_server(function=lambda _: next(replies), max_requests=100) as server:
        use_model(monkeypatch, server)
        first = run_eval(capsys, skill, "--model", MODEL, "--jobs", "1")
        second = run_eval(capsys, skill, "--model", MODEL)

    assert (first.code, first.skill["statuses"]) == (1, {"completed": 5, "failed": 1})
    assert "case sum, with_skill, run 1: failed" in first.err
    assert (second.code, second.skill["statuses"], second.skill["reused"]) == (
        *(0, {"completed": 6}),
        5,
    )
    assert len(server.requests) == 7


def test_rejected_api_key_stops_at_once(
    skill: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_server(function=lambda _: HttpFailure(401)) as server:
        use_model(monkeypatch, server)
        result = run_eval(capsys, skill, "--model", MODEL, "--jobs", "1")

    assert result.code == 8
    assert len(server.requests) == 1


def test_provider_that_is_down_is_not_asked_for_every_run(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = lambda _: HttpFailure(404)
    result = run_eval(capsys, skill, "--model", MODEL, "--jobs", "1", "--repeats", "20")

    assert (result.code, result.skill["statuses"]) == (1, {"failed": 10})
    assert result.data["stop_reason"].startswith("10 runs in a row failed: the model")
    assert len(server.requests) == 10


def test_provider_that_limits_the_rate_is_asked_again(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = lambda _: HttpFailure(429, "0.01") if len(server.requests) == 1 else "Done."
    result = run_eval(capsys, skill, "--model", MODEL, "--repeats", "1")

    assert (result.code, len(server.requests)) == (0, 3)


@pytest.mark.parametrize("reply", [b"[1, 2]", b'{"choices": 5}', b"{", b""])
def test_reply_that_is_not_in_the_format_of_the_provider_fails_its_run_only(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str], reply: bytes
) -> None:
    server.script = lambda _: RawReply(reply) if len(server.requests) == 1 else "Done."
    result = run_eval(capsys, skill, "--model", MODEL, "--repeats", "1", "--jobs", "1")

    assert (result.code, result.skill["statuses"]) == (1, {"completed": 1, "failed": 1})
    assert "unusable reply" in result.err


def test_report_in_a_missing_folder_is_rejected_before_anything_is_paid_for(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run_eval(capsys, skill, "--model", MODEL, "--html", "missing/report.html")

    assert (result.code, server.requests) == (2, [])
    assert "the folder of the report 'missing/report.html' does not exist" in result.out


def test_eval_file_with_a_problem_is_not_run(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (skill / "evals/files/sales.csv").unlink()

    result = run_eval(capsys, skill, "--model", MODEL)

    assert result.code == 3
    assert json.loads(result.out)["error"]["hint"].endswith(f"skillhall eval check {skill}")
    assert server.requests == []


def run_limited(
    skill: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[EvalResult, Any]:
    """Run one repeat in order; return the result and the run with the skill."""
    argv = (str(skill), "--model", MODEL, "--repeats", "1", "--jobs", "1", *options)
    result = run_eval(capsys, *argv)
    path = read_run(skill, "with_skill").parent / "run.json"
    return result, read_json(path) if path.exists() else None


def test_model_that_never_stops_is_limited(
    skill: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_server(function=lambda _: ToolCall("ListFiles", {}), max_requests=100) as server:
        use_model(monkeypatch, server)
        result, run = run_limited(skill, capsys, "--max-requests", "5")

    assert (result.code, result.skill["statuses"]) == (0, {"limited": 2})
    assert run["reason"] == "the limit of 5 requests was reached"
    assert (run["usage"]["requests"], run["usage"]["input_tokens"]) == (5, 50)
    assert len(server.requests) == 10


def test_reply_of_10_megabytes_is_limited(
    skill: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    big = " ".join(["x" * 64 * 1024] * 160)  # each word is one event
    with model_server(function=lambda _: big) as server:
        use_model(monkeypatch, server)
        result, run = run_limited(skill, capsys)

    assert (result.code, result.skill["statuses"]) == (0, {"limited": 2})
    assert run["reason"] == "the limit of 4194304 bytes of output was reached"
    assert len(run["reply"]) <= 128 * 1024


def test_slow_model_is_limited(
    skill: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_server("A slow reply.") as server, server.pause_replies():
        use_model(monkeypatch, server)
        result, run = run_limited(skill, capsys, "--timeout", "0.2")

    assert (result.code, result.skill["statuses"]) == (0, {"limited": 2})
    assert run["reason"] == "the limit of 0.2 seconds was reached"
    assert run["usage"]["duration_ms"] >= 200


def test_limit_of_all_tokens_stops_and_the_next_command_continues(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    # A run with the skill uses 60 tokens, one without it 45.
    argv = (skill, "--model", MODEL, "--jobs", "1")
    first = run_eval(capsys, *argv, "--max-tokens", "130")
    used = len(server.requests)
    second = run_eval(capsys, *argv)

    assert (first.code, first.skill["statuses"], first.skill["not_run"]) == (
        *(1, {"completed": 2}),
        4,
    )
    assert first.data["stop_reason"] == "the limit of 130 tokens is reached"
    assert first.data["tokens"] == 60 + 45 + 30
    assert used == 4 + 3 + 2
    assert (second.code, second.skill["reused"]) == (0, 2)


def test_limit_of_cost_needs_a_price(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run_eval(capsys, skill, "--model", MODEL, "--max-cost", "1")

    assert result.code == 2
    assert "--max-cost needs the price of the model, which is not known" in result.out
    assert server.requests == []


def test_limit_of_cost_stops(
    skill: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = ("--price", "1000000,1000000")  # a dollar for each token
    result = run_eval(capsys, skill, "--model", MODEL, "--jobs", "1", *prices, "--max-cost", "50")

    assert (result.code, result.data["cost"]) == (1, 60)
    assert read_json(read_run(skill, "with_skill") / "run.json")["usage"]["cost"] == 60


class Effect(NamedTuple):
    body: str  # of the skill
    right_without: int  # of six cases
    difference: float
    verdict: str


def follow_loaded_skill(request: ModelRequest, right_without: int) -> Turn:
    """Do as the loaded skill says; without instructions, get the first cases right."""
    if "load_skill" in request.tools and not request.tool_results:
        return ToolCall("load_skill", {"name": "csv-report"})
    text = "".join(request.tool_results)
    if "Reply with the total" in text:
        return "TOTAL 6"
    is_right = int(request.user_messages[0].split()[1]) <= right_without
    return "TOTAL 6" if is_right and "Reply in one word" not in text else "six"


@pytest.mark.parametrize(
    "effect",
    [
        Effect("Reply with the total.\n", 1, 5 / 6, "better"),
        Effect("Be polite.\n", 3, 0.0, "unclear"),
        Effect("Reply in one word.\n", 5, -5 / 6, "worse"),
    ],
    ids=["helps", "does nothing", "harms"],
)
def test_effect_of_the_loaded_skill_has_the_right_verdict(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    effect: Effect,
) -> None:
    check = {"type": "contains", "value": "TOTAL"}
    cases = [make_case(f"{n}", f"Sum {n}", assertions=[check]) for n in range(1, 7)]
    skill = make_eval_skill(project / "skills", cases, body=effect.body)
    model = "anthropic:scripted"
    reply = partial(follow_loaded_skill, right_without=effect.right_without)
    with model_server(function=reply, max_requests=1000) as server:
        use_model(monkeypatch, server, model)
        result = run_eval(capsys, skill, "--model", model)

    (difference,) = result.skill["summary"]["differences"]
    assert difference["verdict"] == effect.verdict
    assert difference["difference"] == pytest.approx(effect.difference)
    assert difference["low"] <= effect.difference <= difference["high"]
    run = skill.with_name("csv-report-workspace") / "iteration-1/eval-1/with_skill/run-1"
    transcript = read_json(run / "transcript.json")
    assert transcript[2]["calls"] == [{"tool": "load_skill", "arguments": {"name": "csv-report"}}]
    assert effect.body.strip() in transcript[3]["content"]
