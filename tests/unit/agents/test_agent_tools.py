from datetime import UTC, datetime
from pathlib import Path

import pytest

from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.agents.chat.events import FileRead, SkillLoaded, ToolEvent, ToolFailed
from skillhall._internal.agents.usage_stats import DayUsage, SkillUsage, count_usage
from skillhall._internal.storage.usage_log import UsageLog, UsageRecord
from skillhall.errors import SkillNotFound
from tests.support.agents import make_agent, make_settings
from tests.support.skills import make_skill, make_skill_md

NOON = "2026-01-01T12:00:00+00:00"


def make_tools(folder: Path, events: list[ToolEvent] | None = None) -> AgentTools:
    noticed = [] if events is None else events
    skills = make_agent(folder)
    return AgentTools(skills, noticed.append, lambda: datetime(2026, 1, 1, 12, tzinfo=UTC))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_skill(tmp_path / "skills", "pdf", files={"forms.md": b"Forms."})
    hidden = make_skill_md("deploy", disable_model_invocation="true", body="# Ship it\n")
    make_skill(tmp_path / "skills", "deploy", data=hidden, files={"how.md": b"So."})
    return tmp_path


def test_agent_has_the_configured_tools(folder: Path) -> None:
    every = ["list_skills", "search_skills", "load_skill", "read_skill_file", "ReadFile"]
    assert [tool.name for tool in make_tools(folder).tools()] == every
    few = AgentTools(make_agent(folder, tools=("load_skill",))).tools()
    assert [tool.name for tool in few] == ["load_skill"]


def test_no_skill_tools_without_skills(tmp_path: Path) -> None:
    assert [tool.name for tool in make_tools(tmp_path).tools()] == ["ReadFile"]


def test_load_and_read_events_have_token_counts(folder: Path) -> None:
    events: list[ToolEvent] = []
    tools = make_tools(folder, events)
    tools.call("load_skill", {"name": "pdf"})
    tools.call("read_skill_file", {"name": "pdf", "path": "forms.md"})
    loaded, read = events
    assert isinstance(loaded, SkillLoaded)
    assert (loaded.skill, loaded.by_user) == ("pdf", False)
    assert loaded.tokens > 20
    assert read == FileRead(skill="pdf", path="forms.md", tokens=1)
    assert tools.loaded_names == ("pdf",)


def test_section_is_a_file_read(folder: Path) -> None:
    events: list[ToolEvent] = []
    tools = make_tools(folder, events)
    tools.call("load_skill", {"name": "pdf", "heading": "Steps"})
    (read,) = events
    assert isinstance(read, FileRead)
    assert (read.skill, read.path) == ("pdf", "SKILL.md")
    assert tools.loaded_names == ()


def test_second_load_emits_no_event(folder: Path) -> None:
    events: list[ToolEvent] = []
    tools = make_tools(folder, events)
    tools.call("load_skill", {"name": "pdf"})
    again = tools.call("load_skill", {"name": "pdf"})
    assert "already loaded" in str(again.content)
    assert len(events) == 1


def test_truncated_conversation_loads_the_text_again(folder: Path) -> None:
    tools = make_tools(folder)
    text = str(tools.call("load_skill", {"name": "pdf"}).content)
    tools.sync_history([text, "more"])
    assert "already loaded" in str(tools.call("load_skill", {"name": "pdf"}).content)
    tools.sync_history(["Summary: a skill was loaded."])
    assert tools.loaded_names == ()
    assert tools.call("load_skill", {"name": "pdf"}).content == text


def test_tool_errors_and_unknown_tools_emit_events(folder: Path) -> None:
    events: list[ToolEvent] = []
    tools = make_tools(folder, events)
    assert tools.call("load_skill", {"name": "pdg"}).is_error
    assert events[0] == ToolFailed(
        tool="load_skill", message="there is no skill 'pdg'. Similar names: 'pdf'."
    )
    assert str(tools.call("shell", {}).content).startswith("Error: unknown tool 'shell'.")


def test_run_directory_file_event_has_no_skill(folder: Path) -> None:
    events: list[ToolEvent] = []
    (folder / "notes.md").write_bytes(b"Notes.")
    make_tools(folder, events).call("ReadFile", {"path": "notes.md"})
    assert events == [FileRead(skill="", path="notes.md", tokens=1)]


@pytest.mark.parametrize(
    "message", ["/pdf Fill it in.", "/skill:pdf Fill it in.", "/pdf  Fill it in. "]
)
def test_user_calls_a_skill_by_name(folder: Path, message: str) -> None:
    events: list[ToolEvent] = []
    expanded = make_tools(folder, events).expand_message(message)
    assert expanded.text.startswith('<skill_content name="pdf">\n# Steps\n')
    assert expanded.text.endswith("</skill_content>\n\nFill it in.")
    assert expanded.skill == "pdf"
    assert isinstance(events[0], SkillLoaded)
    assert events[0].by_user


def test_user_calls_a_hidden_skill_and_the_model_reads_its_files(
    folder: Path,
) -> None:
    tools = make_tools(folder)
    assert tools.call("load_skill", {"name": "deploy"}).is_error
    assert "# Ship it" in tools.expand_message("/deploy").text
    arguments = {"name": "deploy", "path": "how.md"}
    assert tools.call("read_skill_file", arguments).content == "So."
    assert tools.user_invocable_names() == ("pdf", "deploy")
    tools.reset()
    assert tools.call("read_skill_file", arguments).is_error


@pytest.mark.parametrize("message", ["/etc/passwd is missing", "What is /pdf?", "/", "", "/ pdf"])
def test_other_text_with_a_slash_is_unchanged(folder: Path, message: str) -> None:
    assert make_tools(folder).expand_message(message) == (message, "")


def test_explicit_call_of_an_unknown_skill_fails(folder: Path) -> None:
    with pytest.raises(SkillNotFound):
        make_tools(folder).expand_message("/skill:pdg x")


def test_invalid_skill_is_not_sent_to_the_model(folder: Path) -> None:
    tools = make_tools(folder)
    tools.tools()
    (folder / "skills/pdf/SKILL.md").write_bytes(b"---\nname: pdf\ndescription: x\n---\n\0")
    assert tools.expand_message("/pdf") == ("/pdf", "")
    with pytest.raises(SkillNotFound):
        tools.expand_message("/skill:pdf")


def test_usage_log_records_offered_loaded_read_and_failed(folder: Path) -> None:
    tools = make_tools(folder)
    tools.system_prompt()
    tools.system_prompt()
    tools.call("load_skill", {"name": "pdf"})
    tools.call("read_skill_file", {"name": "pdf", "path": "forms.md"})
    tools.call("read_skill_file", {"name": "pdf", "path": "nothing.md"})
    tools.call("load_skill", {"name": "no-such-skill"})
    offered, loaded, read, failed = UsageLog(str(folder / "data")).read()
    assert (offered.event, offered.skills, offered.agent) == ("offered", ("pdf",), "coding")
    assert (loaded.event, loaded.skills, loaded.at) == ("loaded", ("pdf",), NOON)
    assert read == UsageRecord(NOON, "coding", "read", ("pdf",), 1)
    assert (failed.event, failed.skills) == ("failed", ("pdf",))
    (use,) = count_usage(make_settings(folder))
    assert use == SkillUsage(
        "pdf", 1, 1, 1, loaded.tokens + 1, NOON, 1, {NOON[:10]: DayUsage(1, loaded.tokens + 1, 1)}
    )
    assert count_usage(make_settings(folder), "other") == []


def test_usage_log_has_no_content_and_can_be_disabled(folder: Path) -> None:
    skills = make_agent(folder)
    skills.settings = skills.settings._replace(log_usage=False)
    AgentTools(skills).call("load_skill", {"name": "pdf"})
    assert not (folder / "data").exists()
    make_tools(folder).call("load_skill", {"name": "pdf"})
    written = b"".join(file.read_bytes() for file in (folder / "data").rglob("*.jsonl"))
    assert b"Steps" not in written
    assert b"Reads PDF" not in written
