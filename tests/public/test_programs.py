"""Ten short programs that a reader of the reference would write."""

import asyncio
import os
from pathlib import Path

import pytest

from skillhall import Installer, Skills, SourceError, scan, validate
from tests.support.github_api_server import Repository
from tests.support.skills import make_skill, make_skill_md


@pytest.fixture(autouse=True)
def in_project(project: Path) -> None:
    (project / ".agents").mkdir()
    (project / ".agents" / "skills").symlink_to("../skills")


def test_program_lists_the_skills_of_the_default_folders() -> None:
    found = {name: skill.description for name, skill in Skills.load().items()}
    assert found == {"csv-report": "Reads PDF files.", "pdf-tools": "Fills in PDF forms."}


def test_program_prints_one_skill() -> None:
    skills = Skills.load(Path("skills"))
    assert "pdf-tools" in skills
    assert skills["pdf-tools"].body == "# Steps"


def test_program_puts_a_listing_into_a_system_prompt_within_a_budget() -> None:
    skills = Skills.load("skills")
    assert "<name>pdf-tools</name>" in "You are helpful.\n\n" + skills.listing(max_tokens=2_000)
    assert "- pdf-tools" in skills.listing(max_tokens=40)
    assert "deploy" not in skills.listing()


def test_program_runs_its_own_tool_loop() -> None:
    tools = {tool.name: tool for tool in Skills.load("skills").tools()}
    result = tools["load_skill"].call({"name": "pdf-tools"})
    assert result.text.startswith('<skill_content name="pdf-tools">')
    assert not result.is_error
    assert tools["load_skill"].call({"name": "deploy"}).is_error


def test_program_searches() -> None:
    hits = Skills.load("skills").search("fill in a form", limit=3)
    assert [(hit.skill.name, hit.snippet) for hit in hits] == [("pdf-tools", "Fills in PDF forms.")]


def test_program_lets_a_person_call_a_hidden_skill() -> None:
    assert "# Ship it" in Skills.load("skills").hidden["deploy"].activate()


def test_program_checks_skills_in_ci() -> None:
    report = validate("skills")
    assert report.accepted, [str(finding) for finding in report.findings]
    assert not [risk for risk in scan("skills").risks if risk.tier == "high"]


def test_program_installs_verifies_and_rolls_back(github: Repository, project: Path) -> None:
    (project / ".agents" / "skills").unlink()
    installer = Installer.project()
    report = installer.add("acme/skills", skills=["pdf-tools"], agents=["claude-code"])
    assert [skill.name for skill in report.added] == ["pdf-tools"]
    assert list(installer.installed) == ["pdf-tools"]
    assert [result.status for result in installer.outdated()] == ["current"]
    assert all(result.is_intact for result in installer.verify())
    installer.rollback("pdf-tools")
    assert not installer.installed
    with pytest.raises(SourceError):
        installer.add("acme/no-such-repository")


def test_program_sees_edits_before_every_turn(project: Path) -> None:
    skills = Skills.load("skills")
    assert skills.refresh() is skills
    edited = make_skill_md("csv-report", "Sums up CSV files.")
    (project / "skills" / "csv-report" / "SKILL.md").write_bytes(edited)
    assert "Sums up CSV files." in skills.refresh().listing()
    assert "Sums up CSV files." not in skills.listing()


def test_program_loads_in_async_code_and_serves_a_framework() -> None:
    from pydantic_ai import Agent  # noqa: PLC0415 - slow to import, needed here only
    from pydantic_ai.models.test import TestModel  # noqa: PLC0415

    from skillhall.adapters.pydantic_ai import SkillsToolset  # noqa: PLC0415

    async def ask() -> str:
        skills = await asyncio.to_thread(Skills.load, "skills")
        model = TestModel(call_tools=["list_skills"])
        return (await Agent(model, toolsets=[SkillsToolset(skills)]).run("Hello")).output

    assert "pdf-tools" in asyncio.run(ask())


def test_body_edit_changes_the_revision(project: Path) -> None:
    skills = Skills.load("skills")
    before = skills.revision
    path = project / "skills" / "csv-report" / "SKILL.md"
    path.write_bytes(make_skill_md("csv-report", body="# Other steps\n"))
    refreshed = skills.refresh()
    assert refreshed is not skills
    assert refreshed.revision != before


def test_new_skill_appears_after_a_refresh(project: Path) -> None:
    skills = Skills.load("skills").select("csv-*", "new-*")
    make_skill(project / "skills", "new-skill")
    assert list(skills.refresh()) == ["csv-report", "new-skill"]


def test_bytes_of_a_path_are_not_a_path() -> None:
    with pytest.raises(TypeError):
        Skills.load(os.fsencode("skills"))  # type: ignore[arg-type]  # the mistake itself
