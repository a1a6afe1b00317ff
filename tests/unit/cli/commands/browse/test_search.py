"""`skillhall search`: rows, JSON, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from tests.support.skills import make_skill, make_skill_md


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    make_skill(folder, "pdf-tools", data=make_skill_md("pdf-tools", "Reads forms."))
    make_skill(folder, "merge", data=make_skill_md("merge", "Joins pdf files.", "Uses qpdf.\n"))
    quiet = make_skill_md("quiet", "Sleeps.", disable_model_invocation="true")
    make_skill(folder, "quiet", data=quiet)
    return folder


def read_report(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_search_rows_match_those_of_list(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "pdf", "-r", str(root)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"pdf-tools\tReads forms.\t{root}/pdf-tools/SKILL.md",
        f"merge\tJoins pdf files.\t{root}/merge/SKILL.md",
    ]


def test_search_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["find", "joins", "PDF", "--limit", "1", "-r", str(root), "--json"]) == 0
    report = read_report(capsys)
    assert (report["command"], report["ok"], report["data"]["total"]) == ("search", True, 2)
    (hit,) = report["data"]["hits"]
    assert 0 < hit.pop("score") < 1
    assert hit == {
        "name": "merge",
        "description": "Joins pdf files.",
        "location": f"{root}/merge/SKILL.md",
        "snippet": {"text": "Joins pdf files.", "marks": [[0, 5], [6, 9]]},
        "copies": [],
    }


def test_search_reports_hits_beyond_the_limit(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["search", "", "--limit", "2", "-r", str(root)]) == 0
    assert capsys.readouterr().err == "2 of 3 shown; --limit and --offset show more\n"


def test_search_without_hits_exits_with_1(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "zebra", "-r", str(root)]) == 1
    assert capsys.readouterr() == ("", "no skills found\n")
    assert run(["search", "zebra", "-r", str(root), "--json"]) == 1
    assert read_report(capsys)["data"] == {"hits": [], "total": 0}


def test_search_finds_hidden_skills(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "sleeps", "-r", str(root)]) == 0
    assert capsys.readouterr().out.startswith("quiet\t")


@pytest.mark.parametrize("option", [(), ("--body",)])
def test_search_finds_words_of_bodies(
    root: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    assert run(["search", "qpdf", *option, "-r", str(root), "--json"]) == 0
    (hit,) = read_report(capsys)["data"]["hits"]
    assert hit["snippet"] == {"text": "Uses qpdf.", "marks": [[5, 9]]}


def test_search_explains_hits(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "joined pdf", "--explain", "--limit", "1", "-r", str(root)]) == 0
    line = capsys.readouterr().out
    assert line.endswith("description: Joins, pdf; ranks: head 1, sections 1, early words 1\n")
    assert run(["search", "qpdf", "--explain", "-r", str(root), "--json"]) == 0
    (hit,) = read_report(capsys)["data"]["hits"]
    assert hit["explanation"] == {"words": {"body": ["qpdf"]}, "ranks": {"sections": 1}}


def test_search_shows_the_next_page(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "", "--limit", "2", "--offset", "2", "-r", str(root)]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["quiet"]


def test_search_shows_copies_once(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = make_skill_md("merge-copy", "Joins pdf files.", "Uses qpdf.\n")
    make_skill(root, "merge-copy", data=copy)
    assert run(["search", "qpdf", "-r", str(root)]) == 0
    shown = capsys.readouterr()
    assert [line.split("\t")[0] for line in shown.out.splitlines()] == ["merge"]
    assert shown.err == "1 copy of these skills not shown; --json lists them\n"


@pytest.mark.parametrize("text", ['foo"', "c++ (x", "name:", "*", "\ud800", "🎉", "AND"])
def test_any_query_is_valid(text: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", text, "-r", str(root)]) in (0, 1)
    assert "error" not in capsys.readouterr().err


def test_search_without_query_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search"]) == 2
    assert "QUERY" in capsys.readouterr().err
