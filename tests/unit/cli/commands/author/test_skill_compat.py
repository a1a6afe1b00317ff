import json
from pathlib import Path

import pytest

from tests.support.portability.odd_skills import ODD_SKILLS
from tests.support.project_cli import Cli, make_cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return make_cli(tmp_path, monkeypatch, capsys)


def write_skill(folder: str) -> None:
    path = Path(".agents/skills", folder)
    path.mkdir(parents=True)
    (path / "SKILL.md").write_bytes(ODD_SKILLS[folder])


def test_portable_skill_is_loaded_by_all_clients(cli: Cli) -> None:
    write_skill("plain")
    result = cli("compat", "plain", "--json")
    assert result.code == 0
    assert result.data["summary"] == {"skills": 1, "portable": 1, "loss": 0, "dropped": 0}


def test_dropped_skill_is_shown_with_the_reason_and_the_repair(cli: Cli) -> None:
    write_skill("description-colon")
    result = cli("compat", "--agent", "pi", "--agent", "codex")
    assert result.code == 1
    assert "  dropped: Pi " in result.out
    assert "    a value with ': ' is not quoted; quote the value" in result.out
    assert "Codex" not in result.out


def test_lost_field_is_named(cli: Cli) -> None:
    write_skill("other-folder")
    result = cli("compat", ".agents/skills/other-folder", "--agent", "fastmcp")
    assert result.code == 0
    assert "loses name: the name differs from the folder" in result.out


def test_skill_is_found_by_its_name(cli: Cli) -> None:
    write_skill("plain")
    write_skill("bom")
    result = cli("compat", "bom", "--json")
    assert [skill["name"] for skill in result.data["skills"]] == ["bom"]


def test_unknown_name_is_an_error(cli: Cli) -> None:
    result = cli("compat", "nothing")
    assert result.code == 4
    assert "there is no skill 'nothing'" in result.err


def test_unknown_agent_is_an_error(cli: Cli) -> None:
    write_skill("plain")
    assert "there is no agent named 'codx'" in cli("compat", "--agent", "codx").err


def test_markdown_has_a_row_for_each_client(cli: Cli) -> None:
    write_skill("plain")
    lines = cli("compat", "--format", "markdown", "-a", "pi", "-a", "cursor").out.splitlines()
    assert lines[0] == "## plain"
    assert [line.split(" | ")[1] for line in lines[4:6]] == ["loads", "loads"]


def test_sarif_has_a_result_for_each_reason(cli: Cli) -> None:
    write_skill("bom")
    (run,) = json.loads(cli("compat", "--format", "sarif", "-a", "pi").out)["runs"]
    assert [(one["ruleId"], one["level"]) for one in run["results"]] == [("bom", "error")]


def test_fix_rewrites_what_can_be_made_portable(cli: Cli) -> None:
    write_skill("description-colon")
    result = cli("compat", "--fix", "--json")
    assert result.code == 0
    assert result.data["fixed"][0]["changes"] == ["quoted the value of 'description'"]
    assert result.data["summary"]["portable"] == 0  # a client shows the quotes
    assert result.data["summary"]["dropped"] == 0


def test_dry_run_shows_the_diff_and_writes_nothing(cli: Cli) -> None:
    write_skill("folded")
    result = cli("compat", "--fix", "--dry-run")
    assert "+description: Counts words in files.\n" in result.out
    assert Path(".agents/skills/folded/SKILL.md").read_bytes() == ODD_SKILLS["folded"]


def test_dry_run_without_fix_is_a_usage_error(cli: Cli) -> None:
    assert cli("compat", "--dry-run").code == 2


def test_skill_that_no_client_would_load_better_is_not_fixed(cli: Cli) -> None:
    write_skill("other-folder")
    assert cli("compat", "--fix", "--json").data["fixed"] == []
