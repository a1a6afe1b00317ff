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
from skillhall._internal.storage.usage_log import UsageLog
from skillhall.errors import ConfigInvalid
from tests.support.agents import make_agent, make_settings
from tests.support.skills import make_skill, make_skill_md


def names(skills: AgentSkills) -> list[str]:
    return [*skills.current_view().skills]


def codes(skills: AgentSkills) -> list[Code]:
    return [judged.finding.code for judged in skills.findings]


def test_prompt_has_instructions_then_tool_usage_then_skills(
    tmp_path: Path,
) -> None:
    make_skill(tmp_path / "skills", "pdf")
    skills = make_agent(tmp_path, instructions="Be brief.")
    listing = InstructionSkills(skills.agent.skills, skills.settings).text
    assert skills.system_prompt() == f"Be brief.\n\n{USAGE_HINTS['load_skill']}\n\n{listing}"


def test_prompt_without_skills_does_not_mention_them(tmp_path: Path) -> None:
    assert make_agent(tmp_path, instructions="Be brief.").system_prompt() == "Be brief."
    assert make_agent(tmp_path).system_prompt() == ""


def test_prompt_omits_loading_if_the_agent_cannot_load(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    text = make_agent(tmp_path, tools=("ReadFile",)).system_prompt()
    assert text.startswith(f"{USAGE_HINTS['ReadFile']}\n\n<available_skills>")
    assert "load_skill" not in text
    assert make_agent(tmp_path, tools=()).system_prompt().startswith("<available_skills>")


def test_skills_added_or_deleted_by_others_are_noticed(tmp_path: Path) -> None:
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


def test_edited_description_is_noticed(tmp_path: Path) -> None:
    folder = make_skill(tmp_path / "skills", "pdf")
    skills = make_agent(tmp_path)
    assert "Reads PDF files." in skills.system_prompt()
    (folder / "SKILL.md").write_bytes(make_skill_md("pdf", "Writes PDF files."))
    assert "Writes PDF files." in skills.system_prompt()


def test_snapshot_is_reused_when_nothing_changed(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    skills = make_agent(tmp_path)
    first = skills.snapshot()
    assert skills.snapshot().plan is first.plan
    assert skills.snapshot().skill_view is first.skill_view


def test_same_name_in_two_sources_gets_distinct_tool_names(
    tmp_path: Path,
) -> None:
    make_skill(tmp_path / "one", "pdf")
    make_skill(tmp_path / "two", "pdf")
    skills = make_agent(tmp_path, InstructionSource("one"), InstructionSource("two"))
    first, second = names(skills)
    assert first == "pdf"
    assert f"<name>{second}</name>" in skills.system_prompt()
    assert Code.SAME_NAME in codes(skills)


def test_default_folders_prefer_the_first_skill_of_a_name(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "pdf")
    make_skill(tmp_path / ".claude/skills", "pdf")
    make_skill(Path.home() / ".agents/skills", "csv")
    skills = AgentSkills.of(settings=make_settings(tmp_path))
    assert names(skills) == ["pdf", "csv"]
    assert codes(skills) == [Code.SHADOWED]


def test_skill_with_missing_program_is_omitted_with_a_finding(tmp_path: Path) -> None:
    needs = "{openclaw: {requires: {bins: [no-such-program], env: [NO_SUCH_VARIABLE]}}}"
    make_skill(tmp_path / "skills", "pdf", data=make_skill_md("pdf", metadata=needs))
    skills = make_agent(tmp_path)
    assert skills.system_prompt() == ""
    assert Code.REQUIREMENT_UNMET in codes(skills)


def test_skill_requirement_on_set_variable_is_met(tmp_path: Path) -> None:
    needs = "{openclaw: {requires: {env: [API_KEY]}}}"
    make_skill(tmp_path / "skills", "pdf", data=make_skill_md("pdf", metadata=needs))
    settings = make_settings(tmp_path, variable_names=frozenset({"API_KEY"}))
    assert names(AgentSkills.of("skills", settings=settings)) == ["pdf"]


def test_hidden_skill_is_available_to_users_only(tmp_path: Path) -> None:
    data = make_skill_md("pdf", disable_model_invocation="true")
    make_skill(tmp_path / "skills", "pdf", data=data)
    skills = make_agent(tmp_path)
    assert (skills.system_prompt(), names(skills)) == ("", [])
    assert [one.name for one in skills.snapshot().instructions.hidden] == ["pdf"]


def test_budget_cuts_the_listing_and_reports_it(tmp_path: Path) -> None:
    for number in range(40):
        make_skill(tmp_path / "skills", f"skill-{number:02}")
    plan = make_agent(tmp_path, catalog_budget=200).snapshot().plan
    assert {share.detail for share in plan.skills} == {DetailLevel.NAME_ONLY}
    assert plan.tokens <= 200
    assert len(plan.reduced_skills) == 40


def test_inlined_skill_can_be_loaded(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    skills = make_agent(tmp_path, InstructionSource("skills", Globs(None, ("*",))))
    assert names(skills) == ["pdf"]
    assert '<skill name="pdf"' in skills.system_prompt()


def test_load_tokens_match_the_loaded_text(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf", files={"a.md": b"x"})
    skills = make_agent(tmp_path)
    (row,) = skills.current_view()
    text = AgentTools(skills).call("load_skill", {"name": "pdf"}).content
    assert estimate_load_tokens(row.skill, skills.profile) == estimate_tokens(str(text)) > 20
    (tmp_path / "skills/pdf/SKILL.md").unlink()
    assert estimate_load_tokens(row.skill, skills.profile) is None


def test_agent_is_found_in_the_folders_config(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    config = {"agents": [{"id": "a", "skills": [{"root": "skills"}]}]}
    (tmp_path / "skillhall.json").write_text(json.dumps(config), encoding="utf-8")
    skills = AgentSkills.from_config("a", settings=make_settings(tmp_path))
    assert names(skills) == ["pdf"]


def test_missing_config_error_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"skillhall\.toml: cannot be read"):
        AgentSkills.from_config("a", settings=make_settings(tmp_path))


def make_many(root: Path, count: int = 120) -> None:
    for number in range(count):
        text = f"Handles the routine chores of department {number}. Use it on weekdays."
        make_skill(root, f"chore-{number:03}", data=make_skill_md(f"chore-{number:03}", text))
    data = make_skill_md(
        "tide-tables", "Computes when a harbour is high or low.", "# Ebb and flow\n"
    )
    make_skill(root / "sea", "tide-tables", data=data)


@pytest.mark.parametrize("task", ["When is high water in the harbour?", "ebb and flow"])
def test_prompt_for_a_task_lists_the_skill_for_it_first(tmp_path: Path, task: str) -> None:
    make_many(tmp_path / "skills")
    skills = make_agent(tmp_path, catalog_budget=300)
    assert "tide-tables" not in skills.system_prompt()
    prompt = skills.prompt(task)
    lines = prompt.splitlines()
    start = lines.index("<available_skills>")
    assert lines[start + 1] == "- tide-tables: Computes when a harbour is high or low."
    assert lines[-2].endswith(
        "Call search_skills with words from the task to find those that help."
    )
    assert 290 <= skills.plan(task).tokens <= 300
    assert prompt == make_agent(tmp_path, catalog_budget=300).prompt(task)


def test_prompt_for_a_task_is_the_system_prompt_if_everything_fits(tmp_path: Path) -> None:
    make_many(tmp_path / "skills")
    skills = make_agent(tmp_path, catalog_budget=60_000)
    assert skills.prompt("harbour") == skills.prompt(" ") == skills.system_prompt()
    assert "- tide-tables: Computes" in skills.prompt("harbour", max_tokens=300)


def test_edited_skill_is_found_for_a_task(tmp_path: Path) -> None:
    make_many(tmp_path / "skills")
    skills = make_agent(tmp_path, catalog_budget=300)
    assert "chore-077: " not in skills.prompt("zeppelin")
    data = make_skill_md("chore-077", "Steers.", "# Zeppelin maintenance\n")
    (tmp_path / "skills/chore-077/SKILL.md").write_bytes(data)
    assert "<available_skills>\n- chore-077: Steers." in skills.prompt("zeppelin")


def test_pinned_skills_are_first_and_excluded_ones_absent(tmp_path: Path) -> None:
    make_many(tmp_path / "skills")
    skills = make_agent(
        tmp_path, catalog_budget=300, pinned=("chore-05?", "sea/*"), excluded=("chore-00*",)
    )
    lines = skills.prompt().splitlines()
    start = lines.index("<available_skills>") + 1
    assert [line[2:11] for line in lines[start : start + 10]] == [f"chore-05{n}" for n in range(10)]
    assert lines[start + 10].startswith("- tide-tables")
    assert lines[start + 11].startswith("- chore-010")
    by_task = skills.prompt("What are the chores of department 7 and department 100?").splitlines()
    assert [line[:11] for line in by_task[start : start + 10]] == [
        line[:11] for line in lines[start : start + 10]
    ]
    assert any(line.startswith("- chore-100: ") for line in by_task)
    assert not any(name.startswith("chore-00") for name in names(skills))
    assert AgentTools(skills).call("load_skill", {"name": "chore-007"}).code == "not_found"
    assert codes(skills) == []


def test_pattern_that_matches_no_skill_is_a_finding(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    skills = make_agent(tmp_path, pinned=("pfd",), excluded=("sea/*",))
    assert codes(skills) == [Code.PATTERN_UNMATCHED] * 2
    assert names(skills) == ["pdf"]


def test_conversation_keeps_the_skills_for_its_task(tmp_path: Path) -> None:
    make_many(tmp_path / "skills")
    tools = AgentTools(make_agent(tmp_path, catalog_budget=300))
    tools.task = "harbour"
    first = tools.system_prompt()
    assert "- tide-tables: " in first
    assert tools.system_prompt() == first
    make_skill(tmp_path / "skills", "harbour-fees")
    assert "<available_skills>\n- harbour-fees: " in tools.system_prompt()
    tools.reset()
    assert "- tide-tables: " not in tools.system_prompt()


def test_usage_log_records_the_skills_that_a_prompt_lists(tmp_path: Path) -> None:
    make_many(tmp_path / "skills")
    tools = AgentTools(make_agent(tmp_path, catalog_budget=300))
    tools.task = "harbour"
    prompt = tools.system_prompt()
    assert tools.system_prompt() == prompt
    (offered,) = UsageLog(str(tmp_path / "data")).read()
    listed = {line[2:].partition(":")[0] for line in prompt.splitlines() if line[:2] == "- "}
    assert {*offered.skills} == listed
    assert "tide-tables" in listed
