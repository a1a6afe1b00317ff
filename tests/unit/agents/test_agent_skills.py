import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skillhall._internal.agents.agent_skills import AgentSkills, estimate_load_tokens
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.instruction_skills import InstructionSkills, InstructionSource
from skillhall._internal.policy.selection import Globs
from skillhall._internal.render.prompt_plan import USAGE_HINTS, DetailLevel
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall.errors import ConfigInvalid
from tests.support.agents import make_agent, make_settings
from tests.support.skills import make_skill, make_skill_md


def names(skills: AgentSkills) -> list[str]:
    return [*skills.current_view().skills]


def codes(skills: AgentSkills) -> list[Code]:
    return [judged.finding.code for judged in skills.findings]


def test_an_agent_is_told_its_instructions_then_how_to_load_then_its_skills(
    tmp_path: Path,
) -> None:
    make_skill(tmp_path / "skills", "pdf")
    skills = make_agent(tmp_path, instructions="Be brief.")
    listing = InstructionSkills(skills.agent.skills, skills.settings).text
    assert skills.system_prompt() == f"Be brief.\n\n{USAGE_HINTS['load_skill']}\n\n{listing}"


def test_an_agent_without_skills_is_told_nothing_of_them(tmp_path: Path) -> None:
    assert make_agent(tmp_path, instructions="Be brief.").system_prompt() == "Be brief."
    assert make_agent(tmp_path).system_prompt() == ""


def test_an_agent_that_cannot_load_is_not_told_to(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    text = make_agent(tmp_path, tools=("ReadFile",)).system_prompt()
    assert text.startswith(f"{USAGE_HINTS['ReadFile']}\n\n<available_skills>")
    assert "load_skill" not in text
    assert make_agent(tmp_path, tools=()).system_prompt().startswith("<available_skills>")


def test_a_skill_that_another_process_adds_or_deletes_is_seen(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    skills = make_agent(tmp_path)
    assert names(skills) == ["pdf"]
    script = (
        "import sys; from pathlib import Path; from tests.support.skills import make_skill;"
        "make_skill(Path(sys.argv[1]), 'csv')"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "skills")], check=True)
    assert names(skills) == ["csv", "pdf"]
    assert "<name>csv</name>" in skills.system_prompt()
    shutil.rmtree(tmp_path / "skills" / "pdf")
    assert names(skills) == ["csv"]
    assert "<name>pdf</name>" not in skills.system_prompt()


def test_an_edited_description_is_seen(tmp_path: Path) -> None:
    place = make_skill(tmp_path / "skills", "pdf")
    skills = make_agent(tmp_path)
    assert "Reads PDF files." in skills.system_prompt()
    (place / "SKILL.md").write_bytes(make_skill_md("pdf", "Writes PDF files."))
    assert "Writes PDF files." in skills.system_prompt()


def test_nothing_is_built_again_when_nothing_changed(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    skills = make_agent(tmp_path)
    first = skills.snapshot()
    assert skills.snapshot().plan is first.plan
    assert skills.snapshot().skill_view is first.skill_view


def test_a_skill_of_the_same_name_in_two_sources_has_two_names_for_the_tools(
    tmp_path: Path,
) -> None:
    make_skill(tmp_path / "one", "pdf")
    make_skill(tmp_path / "two", "pdf")
    skills = make_agent(tmp_path, InstructionSource("one"), InstructionSource("two"))
    first, second = names(skills)
    assert first == "pdf"
    assert f"<name>{second}</name>" in skills.system_prompt()
    assert Code.SAME_NAME in codes(skills)


def test_the_usual_folders_let_the_first_of_a_name_win(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "pdf")
    make_skill(tmp_path / ".claude/skills", "pdf")
    make_skill(Path.home() / ".agents/skills", "csv")
    skills = AgentSkills.of(settings=make_settings(tmp_path))
    assert names(skills) == ["pdf", "csv"]
    assert codes(skills) == [Code.SHADOWED]


def test_a_skill_that_misses_a_program_is_hidden_with_a_reason(tmp_path: Path) -> None:
    needs = "{openclaw: {requires: {bins: [no-such-program], env: [NO_SUCH_VARIABLE]}}}"
    make_skill(tmp_path / "skills", "pdf", data=make_skill_md("pdf", metadata=needs))
    skills = make_agent(tmp_path)
    assert skills.system_prompt() == ""
    assert Code.REQUIREMENT_UNMET in codes(skills)


def test_a_skill_finds_the_variables_that_are_set(tmp_path: Path) -> None:
    needs = "{openclaw: {requires: {env: [API_KEY]}}}"
    make_skill(tmp_path / "skills", "pdf", data=make_skill_md("pdf", metadata=needs))
    settings = make_settings(tmp_path, variable_names=frozenset({"API_KEY"}))
    assert names(AgentSkills.of("skills", settings=settings)) == ["pdf"]


def test_a_hidden_skill_is_for_people_alone(tmp_path: Path) -> None:
    data = make_skill_md("pdf", disable_model_invocation="true")
    make_skill(tmp_path / "skills", "pdf", data=data)
    skills = make_agent(tmp_path)
    assert (skills.system_prompt(), names(skills)) == ("", [])
    assert [one.name for one in skills.snapshot().instructions.hidden] == ["pdf"]


def test_a_budget_cuts_the_listing_and_the_report_says_what(tmp_path: Path) -> None:
    for number in range(40):
        make_skill(tmp_path / "skills", f"skill-{number:02}")
    plan = make_agent(tmp_path, catalog_budget=200).snapshot().plan
    assert {share.detail for share in plan.skills} == {DetailLevel.NAME_ONLY}
    assert plan.tokens <= 200
    assert len(plan.reduced_skills) == 40


def test_an_inlined_skill_can_be_loaded_too(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    skills = make_agent(tmp_path, InstructionSource("skills", Globs(None, ("*",))))
    assert names(skills) == ["pdf"]
    assert '<skill name="pdf"' in skills.system_prompt()


def test_what_a_load_costs_is_what_the_model_gets(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf", files={"a.md": b"x"})
    skills = make_agent(tmp_path)
    (row,) = skills.current_view()
    given = AgentTools(skills).call("load_skill", {"name": "pdf"}).content
    assert estimate_load_tokens(row.skill, skills.profile) == estimate_tokens(str(given)) > 20
    (tmp_path / "skills/pdf/SKILL.md").unlink()
    assert estimate_load_tokens(row.skill, skills.profile) is None


def test_an_agent_is_found_in_the_config_of_its_folder(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    config = {"agents": [{"id": "a", "skills": [{"root": "skills"}]}]}
    (tmp_path / "skillhall.json").write_text(json.dumps(config), encoding="utf-8")
    skills = AgentSkills.from_config("a", settings=make_settings(tmp_path))
    assert names(skills) == ["pdf"]


def test_a_folder_without_a_config_says_which_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"skillhall\.toml: it cannot be read"):
        AgentSkills.from_config("a", settings=make_settings(tmp_path))
