"""`skillhall eval check`, run in this process: output and exit code."""

import json
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill

GOOD = '{"skill_name": "csv", "evals": [{"id": 1, "prompt": "p", "assertions": ["a"]}]}'


def add_evals(folder: Path, text: str) -> Path:
    file = folder / "evals" / "evals.json"
    file.parent.mkdir()
    file.write_text(text)
    return file


def test_eval_check_counts_cases_and_names_skills_without_evals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_evals(make_skill(tmp_path, "csv"), GOOD)
    make_skill(tmp_path, "pdf")

    assert run(["eval", "check", str(tmp_path)]) == 0

    out, err = capsys.readouterr()
    assert out == "csv: 1 case, 1 assertion, 0 trigger queries\n"
    assert err == "1 without evals: pdf\n2 skills: 1 with evals\n"


def test_eval_check_names_only_the_first_skills_without_evals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(12):
        make_skill(tmp_path, f"s{number:02}")

    assert run(["eval", "check", str(tmp_path)]) == 0
    assert "12 without evals: s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, …\n" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("output_format", ["text", "json", "sarif", "github"])
def test_eval_check_fails_for_a_problem_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output_format: str
) -> None:
    add_evals(make_skill(tmp_path, "csv"), '{"evals": [\n{"id": 1}]}')

    assert run(["eval", "check", str(tmp_path), "--format", output_format]) == 1
    assert "'prompt' is missing" in capsys.readouterr().out


def test_eval_check_reports_the_line_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = add_evals(make_skill(tmp_path, "csv"), GOOD[:-1] + ",\n}")
    run(["eval", "check", str(tmp_path), "--json"])

    report = json.loads(capsys.readouterr().out)
    (finding,) = report["data"]["skills"][0]["findings"]
    assert (finding["code"], finding["path"]) == ("eval-json", str(file))
    assert report["data"]["problems"] == 1


def test_eval_check_refuses_a_linked_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_skill(tmp_path / "skills", "csv")
    outside = tmp_path / "outside.json"
    outside.write_text(GOOD)
    (folder / "evals").mkdir()
    (folder / "evals" / "evals.json").symlink_to(outside)

    assert run(["eval", "check", str(tmp_path / "skills")]) == 1
    assert "reject[eval-unreadable]" in capsys.readouterr().out


def test_skill_is_found_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("csv", "pdf"):
        add_evals(make_skill(tmp_path / ".agents/skills", name), GOOD)

    assert run(["eval", "check", "csv"]) == 0
    assert capsys.readouterr().out.startswith("csv: 1 case")
    assert run(["eval", "check", "cvs"]) == 4
    assert "did you mean 'csv'?" in capsys.readouterr().err
    assert run(["eval", "check", "./csv"]) == 4
    assert "there is no file './csv'" in capsys.readouterr().err


def test_eval_check_of_a_folder_without_skills_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "check", str(tmp_path)]) == 1
    assert "contains no SKILL.md" in capsys.readouterr().out


def test_validate_does_not_report_evals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_evals(make_skill(tmp_path, "csv"), "{")

    assert run(["validate", str(tmp_path)]) == 0
    assert "eval-" not in capsys.readouterr().out
