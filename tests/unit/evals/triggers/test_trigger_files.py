"""The stored runs and results of trigger evals."""

from __future__ import annotations

from pathlib import Path

from skillhall._internal.evals.eval_records import RunStatus, RunUsage
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.triggers.trigger_files import (
    JOURNAL_FILE,
    TriggerJournal,
    TriggerResult,
    find_result,
    open_trigger_iteration,
    read_known_replies,
    read_trigger_result,
    write_trigger_result,
)
from skillhall._internal.evals.triggers.trigger_records import (
    TriggerReply,
    TriggerRun,
    TriggerTarget,
)
from skillhall._internal.skill.evals.eval_file import TriggerQuery

QUERY = TriggerQuery("Sum the “column”", should_trigger=True)
TARGET = TriggerTarget(name="csv", folder="csv", digest="sha256:1", queries=(QUERY,))


def make_run(repeat: int = 1, status: RunStatus = RunStatus.COMPLETED) -> TriggerRun:
    usage = RunUsage(requests=1, input_tokens=10, output_tokens=5, cost=0.25)
    reply = TriggerReply(status=status, loaded_skills=("pdf", "csv"), reply="Done.", usage=usage)
    return TriggerRun(query=QUERY, repeat=repeat, digest="sha256:q", reply=reply)


def test_runs_in_a_journal_are_read_back(tmp_path: Path) -> None:
    iteration = open_trigger_iteration(EvalWorkspace(tmp_path), TARGET)
    journal = TriggerJournal(iteration)
    journal.append(make_run(1))
    journal.append(make_run(2))
    assert journal.read() == [make_run(1), make_run(2)]


def test_half_a_line_of_a_killed_command_is_skipped(tmp_path: Path) -> None:
    iteration = open_trigger_iteration(EvalWorkspace(tmp_path), TARGET)
    journal = TriggerJournal(iteration)
    journal.append(make_run(1))
    with (iteration.path / JOURNAL_FILE).open("ab") as file:
        file.write(b'{"query": "Su')
    journal.append(make_run(2))
    assert journal.read() == [make_run(1), make_run(2)]


def test_only_complete_replies_are_reused(tmp_path: Path) -> None:
    workspace = EvalWorkspace(tmp_path)
    journal = TriggerJournal(open_trigger_iteration(workspace, TARGET))
    journal.append(make_run(1))
    journal.append(make_run(2, RunStatus.FAILED))
    assert read_known_replies(workspace.iterations()) == {("sha256:q", 1): make_run().reply}


def test_journal_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    workspace = EvalWorkspace(tmp_path / "workspace")
    iteration = open_trigger_iteration(workspace, TARGET)
    TriggerJournal(iteration).append(make_run())
    (iteration.path / JOURNAL_FILE).rename(tmp_path / "elsewhere")
    (iteration.path / JOURNAL_FILE).symlink_to(tmp_path / "elsewhere")
    assert TriggerJournal(iteration).read() == []


def test_iteration_is_continued_for_the_same_files_of_the_skill(tmp_path: Path) -> None:
    workspace = EvalWorkspace(tmp_path)
    changed = TriggerTarget(name="csv", folder="csv", digest="sha256:2", queries=(QUERY,))
    numbers = [open_trigger_iteration(workspace, one).number for one in (TARGET, TARGET, changed)]
    assert numbers == [1, 1, 2]


def test_result_is_read_back_and_found_in_the_newest_iteration(tmp_path: Path) -> None:
    workspace = EvalWorkspace(tmp_path)
    result = TriggerResult(
        skill="csv",
        skill_digest="sha256:1",
        model="openai-chat:gpt-5",
        repeats=1,
        catalog=("csv", "pdf"),
        runs=(make_run(),),
    )
    iteration = open_trigger_iteration(workspace, TARGET)
    assert read_trigger_result(iteration) is None
    write_trigger_result(iteration, result)
    workspace.create_iteration({}, 1)
    assert find_result(workspace.iterations()) == result


def test_invalid_result_is_missing(tmp_path: Path) -> None:
    iteration = open_trigger_iteration(EvalWorkspace(tmp_path), TARGET)
    for text in ("[]", '{"runs": [1]}', '{"runs": [{"status": "odd"}]}', "{"):
        (iteration.path / "triggers.json").write_text(text)
        assert read_trigger_result(iteration) is None
