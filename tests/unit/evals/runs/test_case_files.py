"""Input files of cases and output files of runs."""

from pathlib import Path

import pytest

from skillhall._internal.evals.runs.case_files import (
    collect_output_files,
    select_input_files,
    write_input_files,
)
from skillhall._internal.skill.evals.eval_file import EvalCase, FileMention
from skillhall.errors import UnsafePath

DATA = (b"1\n", 0o644)
FILES = {"evals/files/a.csv": DATA, "evals/files/deep/b.csv": DATA, "evals/c.csv": DATA}
FILES |= {"notes/a.csv": DATA, "SKILL.md": DATA}
LIMIT = 1000


def make_case(*files: str) -> EvalCase:
    return EvalCase("1", "Do it.", "", tuple(FileMention(path, 1) for path in files), ())


@pytest.mark.parametrize(
    ("mentioned", "paths"),
    [
        ("evals/files/a.csv", ["a.csv"]),
        ("evals/files/deep/b.csv", ["deep/b.csv"]),
        ("evals/c.csv", ["c.csv"]),
        ("notes/a.csv", ["notes/a.csv"]),
        ("evals/files", ["a.csv", "deep/b.csv"]),
        ("./evals/c.csv", ["c.csv"]),
    ],
)
def test_input_files_have_short_paths(mentioned: str, paths: list[str]) -> None:
    assert [*select_input_files(make_case(mentioned), FILES)] == paths


@pytest.mark.parametrize(
    "path",
    [
        *("../secret", "/etc/passwd", "evals/../../secret", "~/secret", "evals\\a.csv"),
        *("evals/files/missing.csv", "", "C:/secret", "evals//a.csv", "nul"),
    ],
)
def test_path_that_leaves_the_skill_is_refused(path: str) -> None:
    with pytest.raises(UnsafePath):
        select_input_files(make_case(path), FILES)


def test_two_input_files_with_one_path_are_refused() -> None:
    files = {"evals/files/a.csv": DATA, "evals/a.csv": (b"2\n", 0o644)}
    with pytest.raises(UnsafePath, match="another input file is named"):
        select_input_files(make_case(*files), files)


def test_same_file_twice_is_one_input_file() -> None:
    mentions = ("evals/files/a.csv", "evals/files")
    assert [*select_input_files(make_case(*mentions), FILES)] == ["a.csv", "deep/b.csv"]


def test_unchanged_input_files_are_no_outputs(tmp_path: Path) -> None:
    inputs = {"same.csv": DATA, "deep/changed.csv": DATA}
    write_input_files(tmp_path, inputs)
    (tmp_path / "deep/changed.csv").write_text("2\n")
    (tmp_path / "new.txt").write_text("new")

    outputs = collect_output_files(tmp_path, inputs, LIMIT)

    assert {path: data for path, (data, _) in outputs.files.items()} == {
        "deep/changed.csv": b"2\n",
        "new.txt": b"new",
    }
    assert outputs.problem == ""


def test_links_and_hidden_files_are_no_outputs(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / ".cache").mkdir()
    (folder / ".cache/a").write_text("a")

    assert collect_output_files(folder, {}, LIMIT).files == {}


def test_outputs_above_the_limit_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 600)
    (tmp_path / "b.txt").write_text("b" * 600)

    outputs = collect_output_files(tmp_path, {}, LIMIT)

    assert [*outputs.files] == ["a.txt"]
    assert outputs.problem == "'outputs' exceeds the limit of 1000 bytes"
