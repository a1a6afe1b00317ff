"""Operations on eval results that are killed at every step."""

from pathlib import Path

from skillhall._internal.evals.eval_records import Arm, RunKey, RunRecord, RunStatus
from skillhall._internal.evals.eval_workspace import EvalIteration, EvalWorkspace

KEY = RunKey("sum", Arm.WITH_SKILL, 1)
OLD = RunRecord(key=KEY, status=RunStatus.COMPLETED, reply="old")
NEW = RunRecord(key=KEY, status=RunStatus.COMPLETED, reply="new")


def store(iteration: EvalIteration, record: RunRecord) -> None:
    """Store a run whose files contain its reply."""
    outputs = {f"{name}.txt": (record.reply.encode(), 0o644) for name in ("a", "b/c")}
    transcript = [{"role": "assistant", "content": record.reply}]
    iteration.write_run(record, f"sha256:{record.reply}", outputs, transcript)


def check_complete(iteration: EvalIteration, record: RunRecord) -> None:
    """Check that all files of a stored run belong to it."""
    outputs = iteration.outputs_folder(KEY)
    texts = {path.name: path.read_text() for path in outputs.rglob("*") if path.is_file()}
    assert texts == {"a.txt": record.reply, "c.txt": record.reply}
    transcript = iteration.read_json(f"{iteration.run_path(KEY)}/transcript.json")
    assert transcript == [{"role": "assistant", "content": record.reply}]


class StoreRun:
    """A second result of a run replaces the first."""

    def prepare(self, folder: Path) -> None:
        store(EvalWorkspace(folder / "w").create_iteration({"repeats": 1}, 1), OLD)

    def run(self, folder: Path) -> None:
        (iteration,) = EvalWorkspace(folder / "w").iterations()
        store(iteration, NEW)

    def check(self, folder: Path) -> None:
        (iteration,) = EvalWorkspace(folder / "w").iterations()
        stored = iteration.read_run(KEY)
        if stored is not None:
            check_complete(iteration, stored.record)
        store(iteration, NEW)  # the next command continues
        check_complete(iteration, NEW)


class CreateIteration:
    """A new iteration has its plan, or does not exist."""

    def prepare(self, folder: Path) -> None:
        (folder / "w").mkdir()

    def run(self, folder: Path) -> None:
        EvalWorkspace(folder / "w").create_iteration({"repeats": 2}, 2)

    def check(self, folder: Path) -> None:
        workspace = EvalWorkspace(folder / "w")
        assert all(one.repeats == 2 for one in workspace.iterations())
        assert workspace.create_iteration({"repeats": 2}, 2).read_plan() == {"repeats": 2}
