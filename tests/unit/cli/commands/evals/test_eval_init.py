"""`skillhall eval init` and `eval schema`, run in this process."""

import json
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from tests.support.model_server import ModelRequest, model_server
from tests.support.skills import make_skill, make_skill_md

BODY = "# CSV\n\n## Sum a column\n\n```\n# no heading\n```\n\n## Draw a chart ##\n"
QUERIES = [
    {"query": "Add up these numbers", "should_trigger": True},
    {"query": "Convert to PDF", "should_trigger": False},
    {"query": "odd"},
]
REPLY = {
    "evals": [
        {"prompt": "Sum a.csv", "expected_output": "6", "assertions": ["6", 1, " "], "files": ["/"]}
    ],
    "queries": QUERIES,
}


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    return make_skill(tmp_path, "csv", data=make_skill_md("csv", "Sums CSV files.", BODY))


def test_template_names_the_headings_and_fails_the_check_until_it_is_completed(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "init", str(skill)]) == 0
    out, err = capsys.readouterr()
    files = [skill / "evals/evals.json", skill / "evals/triggers.json"]
    assert out.splitlines() == [str(file) for file in files]
    assert "5 cases, 20 trigger queries" in err  # fewer cases have no verdict
    cases = json.loads(files[0].read_bytes())["evals"]
    assert [case["id"] for case in cases] == [1, 2, 3, 4, 5]
    assert "'Sum a column'" in cases[1]["prompt"]
    assert "no heading" not in files[0].read_text()
    queries = json.loads(files[1].read_bytes())
    assert [one["should_trigger"] for one in queries] == [True] * 10 + [False] * 10

    assert run(["eval", "check", str(skill)]) == 1
    out = capsys.readouterr().out
    assert "evals.json:6: reject[eval-todo]: 'prompt' is still a TODO\n" in out
    assert out.count("reject[eval-todo]") == 5 * 3 + 20
    for file in files:
        file.write_text(file.read_text().replace("TODO: ", ""))
    assert run(["eval", "check", str(skill)]) == 0
    assert "csv: 5 cases, 5 assertions, 20 trigger queries\n" in capsys.readouterr().out


def test_existing_file_is_replaced_only_with_force(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (skill / "evals").mkdir()
    (skill / "evals/triggers.json").write_text("mine")
    assert run(["eval", "init", str(skill)]) == 6
    assert "use --force to replace it" in capsys.readouterr().err
    assert [file.name for file in (skill / "evals").iterdir()] == ["triggers.json"]
    assert (skill / "evals/triggers.json").read_text() == "mine"

    assert run(["eval", "init", str(skill), "--force"]) == 0
    assert json.loads((skill / "evals/triggers.json").read_bytes())


def test_link_is_not_followed(skill: Path, tmp_path: Path) -> None:
    (skill / "evals").mkdir()
    (tmp_path / "elsewhere").write_text("mine")
    (skill / "evals/evals.json").symlink_to(tmp_path / "elsewhere")
    assert run(["eval", "init", str(skill), "--force"]) != 0
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_folder_without_a_skill_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "init", str(tmp_path)]) == 6
    assert "no SKILL.md found" in capsys.readouterr().err


def test_skill_is_found_by_name(skill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "init", "csv", "--root", str(skill.parent), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["name"] == "csv"


@pytest.mark.parametrize("reply", [json.dumps(REPLY), f"Sure!\n```json\n{json.dumps(REPLY)}\n```"])
def test_model_writes_the_draft_from_the_skill(
    skill: Path, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    with model_server(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        assert run(["eval", "init", str(skill), "--model", "openai-chat:scripted"]) == 0
    (request,) = server.requests
    assert json.loads(request.user_messages[0])["description"] == "Sums CSV files."
    assert json.loads((skill / "evals/evals.json").read_bytes()) == {
        "skill_name": "csv",
        "evals": [{"id": 1, "prompt": "Sum a.csv", "expected_output": "6", "assertions": ["6"]}],
    }
    assert json.loads((skill / "evals/triggers.json").read_bytes()) == QUERIES[:2]


@pytest.mark.parametrize("reply", ["I cannot.", '{"evals": []}', "{", '{"evals": [{"prompt": 1}]}'])
def test_unusable_draft_of_a_model_writes_nothing(
    skill: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reply: str,
) -> None:
    def answer(_: ModelRequest) -> str:
        return reply

    with model_server(function=answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        assert run(["eval", "init", str(skill), "--model", "openai-chat:scripted"]) == 5
    assert "did not write usable test cases" in capsys.readouterr().err
    assert not (skill / "evals").exists()


def test_schema_is_printed_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "schema", "triggers"]) == 0
    assert json.loads(capsys.readouterr().out)["title"].startswith("Trigger queries")
    assert run(["eval", "schema"]) == 0
    assert "trigger-result\ttriggers.json of an iteration\n" in capsys.readouterr().out
