"""Eval runs that are killed: results stay complete, and no run is paid for twice."""

import os
import signal
import subprocess
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest

from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.fs.write import WritableFolder
from tests.support.eval_skills import (
    MODEL,
    PROGRAM,
    build_model_environment,
    make_case,
    make_eval_skill,
    run_eval,
    use_model,
)
from tests.support.fault_injection import run_faults
from tests.support.model_server import HttpFailure, ModelRequest, ToolCall, Turn, model_server

DEADLINE = 120
CASES, REPEATS, JOBS = 5, 2, 2
RUNS = CASES * REPEATS * 2


@pytest.mark.parametrize("case", ["StoreRun", "CreateIteration"])
@pytest.mark.parametrize("kind", ["kill", "full"])
def test_stored_results_are_complete_after_every_step(case: str, kind: str) -> None:
    assert run_faults("tests.support.eval_fault_cases", case, kind) > 5


def work(request: ModelRequest) -> Turn:
    return "Done." if request.tool_results else ToolCall("ListFiles", {})


def make_skill_with_cases(folder: Path) -> Path:
    cases = [make_case(f"case-{number}", f"Do {number}.") for number in range(CASES)]
    return make_eval_skill(folder / "skills", cases)


def test_killed_command_continues_and_pays_for_no_run_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = make_skill_with_cases(tmp_path)
    argv = ("--model", MODEL, "--repeats", str(REPEATS), "--jobs", str(JOBS))
    paid: Counter[tuple[str, bool]] = Counter()  # first requests, by prompt and arm
    ready_to_kill = threading.Event()
    kill_at = 0

    def count(request: ModelRequest) -> Turn:
        if not request.tool_results:
            paid[request.user_messages[0], "load_skill" in request.tools] += 1
        if kill_at and len(server.requests) == kill_at:
            ready_to_kill.set()
            process.wait(DEADLINE)
        return work(request)

    with model_server(function=count, max_requests=1000) as server:
        environment = {**os.environ, **build_model_environment(server), "TMPDIR": str(tmp_path)}
        for step in (3, 17):
            ready_to_kill.clear()
            kill_at = len(server.requests) + step
            with subprocess.Popen(
                (*PROGRAM, "eval", "run", str(skill), *argv),
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                assert ready_to_kill.wait(DEADLINE)
                process.send_signal(signal.SIGKILL)
            kill_at = 0
            completed = count_completed(skill)
            before = paid.copy()
        use_model(monkeypatch, server)
        result = run_eval(capsys, skill, *argv)

    assert result.code == 0, result.err
    assert result.skill["reused"] == completed.total() > 0
    # The last command did exactly the runs without a result.
    last = paid - before
    assert last.total() == RUNS - completed.total()
    assert all(last[key] + completed[key] == REPEATS for key in paid)
    # The only runs that were started twice were in progress when the process was killed.
    assert paid.total() <= RUNS + 2 * JOBS


def count_completed(skill: Path) -> Counter[tuple[str, bool]]:
    iterations = EvalWorkspace.of_skill(str(skill)).iterations()
    assert len(iterations) == 1  # the second command continued the first
    keys = (stored.record.key for stored in iterations[0].iter_runs())
    return Counter(
        (f"Do {key.case_id.removeprefix('case-')}.", key.arm == "with_skill") for key in keys
    )


def test_second_command_does_not_pay_for_runs_in_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = make_skill_with_cases(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with model_server("Done.", max_requests=1000) as server:
        use_model(monkeypatch, server)
        result = run_eval(capsys, skill, "--model", MODEL, "--repeats", "1")
        count = len(server.requests)
        (iteration,) = EvalWorkspace.of_skill(str(skill)).iterations()
        with iteration.open_folder("") as folder, folder.lock():
            second = run_eval(capsys, skill, "--model", MODEL, "--repeats", "1")

    assert result.code == 0
    assert (second.code, len(server.requests)) == (5, count)
    assert "another command is running these evals" in second.out


def test_folders_of_killed_commands_are_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = make_skill_with_cases(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned, used, new = (tmp_path / f"skillhall-eval-{name}" for name in ("1", "2", "3"))
    for folder in (abandoned, used, new):
        folder.mkdir()
        if folder != new:
            os.utime(folder, (0, 0))
    with model_server("Done.", max_requests=1000) as server, WritableFolder(str(used)) as locked:
        use_model(monkeypatch, server)
        with locked.lock():
            assert run_eval(capsys, skill, "--model", MODEL, "--repeats", "1").code == 0

    assert sorted(tmp_path.glob("skillhall-eval-*")) == [used, new]


def test_model_that_fails_every_third_time_is_paid_once_for_each_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = make_skill_with_cases(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    first_requests: list[ModelRequest] = []

    def fail_often(request: ModelRequest) -> Turn | HttpFailure:
        if len(server.requests) % 3 == 0:
            return HttpFailure(400)
        first_requests.append(request)
        return "Done."

    argv = (skill, "--model", MODEL, "--repeats", str(REPEATS), "--jobs", "1")
    with model_server(function=fail_often, max_requests=1000) as server:
        use_model(monkeypatch, server)
        results = [run_eval(capsys, *argv) for _ in range(4)]

    assert [result.code for result in results] == [1, 1, 1, 0]
    assert [result.skill["statuses"].get("failed", 0) for result in results] == [6, 2, 1, 0]
    assert len(first_requests) == RUNS  # each run was answered once
