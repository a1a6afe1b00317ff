"""The layout of eval results on disk."""

import json
from pathlib import Path

import pytest

from skillhall._internal.evals.eval_records import Arm, RunKey, RunRecord, RunStatus, RunUsage
from skillhall._internal.evals.eval_workspace import EvalWorkspace, build_slug

KEY = RunKey("top-months", Arm.WITH_SKILL, 1)
RECORD = RunRecord(
    key=KEY,
    status=RunStatus.COMPLETED,
    reply="Done.",
    loaded_skills=("csv",),
    usage=RunUsage(requests=2, input_tokens=3700, output_tokens=152, duration_ms=45332, cost=0.01),
)


def test_run_is_written_in_the_documented_layout(tmp_path: Path) -> None:
    workspace = EvalWorkspace.of_skill(str(tmp_path / "csv"))
    iteration = workspace.create_iteration({"repeats": 1}, 1)

    iteration.write_run(RECORD, "sha256:1", {"charts/top.png": (b"png", 0o644)})

    run = tmp_path / "csv-workspace/iteration-1/eval-top-months/with_skill"
    assert (run / "timing.json").read_text() == (
        '{\n  "total_tokens": 3852,\n  "duration_ms": 45332\n}\n'
    )
    assert (run / "outputs/charts/top.png").read_bytes() == b"png"
    assert json.loads((run / "run.json").read_text())["digest"] == "sha256:1"


def test_runs_of_several_repeats_have_their_own_folders(tmp_path: Path) -> None:
    iteration = EvalWorkspace(tmp_path).create_iteration({"repeats": 2}, 2)

    assert iteration.run_path(KEY) == "eval-top-months/with_skill/run-1"


def test_stored_run_is_read_back_equal(tmp_path: Path) -> None:
    iteration = EvalWorkspace(tmp_path).create_iteration({"repeats": 2}, 2)
    iteration.write_run(RECORD, "sha256:1", {})

    (found,) = EvalWorkspace(tmp_path).iterations()
    (stored,) = found.iter_runs()

    assert stored.record == RECORD
    assert stored.digest == "sha256:1"
    assert found.read_run(KEY) == stored


def test_second_result_of_a_run_replaces_the_first(tmp_path: Path) -> None:
    iteration = EvalWorkspace(tmp_path).create_iteration({}, 1)
    iteration.write_run(RECORD, "sha256:1", {"old.txt": (b"", 0o644)})
    iteration.write_run(RECORD, "sha256:2", {"new.txt": (b"", 0o644)})

    assert [file.name for file in iteration.outputs_folder(KEY).iterdir()] == ["new.txt"]
    stored = iteration.read_run(KEY)
    assert stored is not None
    assert stored.digest == "sha256:2"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"case_id": 1}', "not JSON"])
def test_invalid_run_file_counts_as_missing(tmp_path: Path, text: str) -> None:
    iteration = EvalWorkspace(tmp_path).create_iteration({}, 1)
    iteration.write_run(RECORD, "sha256:1", {})
    (iteration.run_folder(KEY) / "run.json").write_text(text)

    assert iteration.read_run(KEY) is None
    assert [*iteration.iter_runs()] == []


def test_iterations_are_numbered_in_order(tmp_path: Path) -> None:
    workspace = EvalWorkspace(tmp_path / "w")
    for _ in range(11):
        workspace.create_iteration({}, 1)
    (tmp_path / "w" / "iteration-x").mkdir()

    assert [one.number for one in workspace.iterations()] == [*range(1, 12)]


def test_link_in_a_workspace_is_not_followed(tmp_path: Path) -> None:
    iteration = EvalWorkspace(tmp_path / "w").create_iteration({}, 1)
    (tmp_path / "out").mkdir()
    (iteration.path / "eval-top-months").symlink_to(tmp_path / "out")

    with pytest.raises(OSError, match="eval-top-months"):
        iteration.write_run(RECORD, "sha256:1", {})
    assert [*(tmp_path / "out").iterdir()] == []


@pytest.mark.parametrize(
    ("case_id", "slug"),
    [("1", "1"), ("top-months", "top-months"), ("Top Months", "top-months-"), ("..", "")],
)
def test_slug_of_an_unusual_id_has_a_digest(case_id: str, slug: str) -> None:
    assert build_slug(case_id).startswith(slug)
    assert (build_slug(case_id) == case_id) is (slug == case_id)
    assert "/" not in build_slug(case_id)


def test_slugs_of_different_ids_differ() -> None:
    ids = ["A b", "a-b", "a b", "a_b", "é", "è", "x" * 100, "x" * 101]
    assert len({build_slug(one) for one in ids}) == len(ids)
