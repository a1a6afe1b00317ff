"""`skillhall chat` against a scripted model server, and without a model."""

import asyncio
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.chat.events import ChatEvent, Done, SkillLoaded, TextDelta
from skillhall._internal.cli.runner import run
from skillhall.errors import ModelUnavailable
from tests.support.agents import make_settings
from tests.support.model_server import ModelServer, ToolCall, model_server
from tests.support.skills import make_skill, make_skill_md

MODEL = "openai-chat:scripted"
DEADLINE = 120
SCRIPT = (
    ToolCall("load_skill", {"name": "csv-report"}),
    ToolCall("read_skill_file", {"name": "csv-report", "path": "layout.md"}),
    "Totals come first.",
)


class CliResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever the command says
        return json.loads(self.out)


Chat = Callable[..., CliResult]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with model_server(*SCRIPT) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{running.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        yield running


@pytest.fixture
def chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Chat:
    """Runs the command in this process, in a folder with one skill."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SKILLHALL_TRUST_PROJECT", "on")
    data = make_skill_md("csv-report", "Summarises CSV files.", "# Read the layout\n")
    make_skill(tmp_path / ".agents/skills", "csv-report", data=data, files={"layout.md": b"Top."})

    def ask(*argv: str, typed: str = "") -> CliResult:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        code = run(["chat", *argv])
        return CliResult(code, *capsys.readouterr())

    return ask


def test_reply_shows_the_loaded_skills(chat: Chat, server: ModelServer) -> None:
    result = chat("Summarise it.", "--model", MODEL)
    assert (result.code, result.out) == (0, "Totals come first.\n")
    loaded, read, cost = result.err.splitlines()
    assert loaded.startswith("· loaded csv-report (")
    assert read == "· read csv-report/layout.md (1 token)"
    assert cost == "· 3 requests, 30 tokens in, 15 out"
    assert "<name>csv-report</name>" in server.requests[0].system
    assert [len(item.tool_results) for item in server.requests] == [0, 1, 2]
    assert server.requests[2].tool_results[1] == "Top."


def test_unapproved_skill_is_in_no_request_to_the_model(
    chat: Chat, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SKILLHALL_TRUST_PROJECT")
    result = chat("Summarise it.", "--model", MODEL)
    assert result.code == 0
    assert "1 skill is not approved: csv-report." in result.err
    sent = repr([(one.system, one.tools, one.tool_results) for one in server.requests])
    assert not [text for text in ("Summarises", "the layout", "Top.", "<name>") if text in sent]


def test_json_has_the_reply_and_its_events(chat: Chat, server: ModelServer) -> None:
    answer = chat("--model", MODEL, "--json", typed="Summarise it.").json
    assert (answer["command"], answer["ok"]) == ("chat", True)
    assert answer["data"]["answer"] == "Totals come first."
    assert [item["event"] for item in answer["data"]["events"]] == ["loaded", "read"]
    assert answer["data"]["usage"] == {"requests": 3, "inputTokens": 30, "outputTokens": 15}
    assert server.requests[0].user_messages == ["Summarise it."]


def test_next_message_uses_added_and_deleted_skills(
    chat: Chat, server: ModelServer, tmp_path: Path
) -> None:
    folder = tmp_path / ".agents/skills"
    server.script = ("Yes.",)
    with subprocess.Popen(
        [sys.executable, "-m", "skillhall", "chat", "--model", MODEL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def say(line: str) -> str:
            process.stdin.write(f"{line}\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            return process.stdout.readline()  # type: ignore[union-attr]

        try:
            assert say("One.") == "Yes.\n"
            make_skill(folder, "pdf")
            assert say("Two.") == "Yes.\n"
            shutil.rmtree(folder / "csv-report")
            assert say("Three.") == "Yes.\n"
            assert say("Four.") == "Yes.\n"
            process.stdin.close()
            assert process.wait(DEADLINE) == 0
        finally:
            process.kill()
    names = ["csv-report", "pdf"]
    listed = [
        [name for name in names if f"<name>{name}<" in item.system] for item in server.requests
    ]
    assert listed == [["csv-report"], ["csv-report", "pdf"], ["pdf"], ["pdf"]]
    assert server.requests[2].system == server.requests[3].system
    assert server.requests[3].user_messages == ["One.", "Two.", "Three.", "Four."]


def test_user_calls_and_lists_skills(chat: Chat, server: ModelServer) -> None:
    server.script = ("Done.",)
    result = chat("--model", MODEL, typed="/skills\n/csv-report now\n/new\nhello\n/quit\nnever\n")
    assert result.out == "/csv-report\nDone.\nDone.\n"
    first, second = server.requests
    assert first.user_messages[0].startswith('<skill_content name="csv-report">')
    assert first.user_messages[0].endswith("</skill_content>\n\nnow")
    assert second.user_messages == ["hello"]


def test_configured_agent_uses_its_model_instructions_and_budget(
    chat: Chat, server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "skillhall.toml").write_text(
        f'[[agents]]\nid = "coding"\nmodel = "{MODEL}"\ninstructions = "Be brief."\n'
        'tools = ["load_skill"]\nbudgets = { requests = 2 }\n'
        '[[agents.skills]]\nroot = ".agents/skills"\n',
        encoding="utf-8",
    )
    result = chat("Summarise it.", "--agent", "coding")
    assert result.code == 5
    assert "the budget for one message is exceeded" in result.err
    assert server.requests[0].system.startswith("Be brief.\n\n")
    assert [*server.requests[0].tools] == ["load_skill"]


def test_chat_lists_the_skills_for_its_first_message(
    chat: Chat, server: ModelServer, tmp_path: Path
) -> None:
    for number in range(60):
        make_skill(tmp_path / ".agents/skills", f"a-{number:02}")
    (tmp_path / "skillhall.toml").write_text(
        f'[[agents]]\nid = "coding"\nmodel = "{MODEL}"\nbudgets = {{ catalog = 120 }}\n'
        '[[agents.skills]]\nroot = ".agents/skills"\n',
        encoding="utf-8",
    )
    server.script = ("Yes.",)
    typed = "Summarise sales.csv.\nNow fill in a-59.\n/new\nFill in a-59.\n"
    assert chat("--agent", "coding", typed=typed).out == "Yes.\n" * 3
    first, second, third = (request.system for request in server.requests)
    assert "<available_skills>\n- csv-report: Summarises CSV files.\n" in first
    assert second == first
    assert "<available_skills>\n- a-59: " in third


@pytest.mark.parametrize("agent", ["coding", "default"])
def test_chat_sends_exactly_the_printed_prompt(
    chat: Chat, server: ModelServer, tmp_path: Path, agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "skillhall.toml").write_text(
        '[[agents]]\nid = "coding"\ninstructions = """\nBe “brief”.\n"""\n'
        'tools = ["ReadFile"]\n[[agents.skills]]\nroot = ".agents/skills"\n',
        encoding="utf-8",
    )
    server.script = ("Yes.",)
    assert chat("Hello.", "--agent", agent, "--model", MODEL).code == 0
    assert run(["prompt", "--agent", agent]) == 0
    assert capsys.readouterr().out == f"{server.requests[0].system}\n"


@pytest.mark.parametrize(
    ("status", "code", "problem"),
    [
        (401, 8, "the provider rejected the API key (status 401)"),
        (404, 5, "the provider has no such model (status 404)"),
        (400, 5, "the provider rejected the request (status 400)"),
    ],
)
def test_provider_error_is_explained_without_the_key(
    chat: Chat, server: ModelServer, status: int, code: int, problem: str
) -> None:
    server.status = status
    result = chat("Hello.", "--model", MODEL)
    assert result.code == code
    assert problem in result.err
    assert "hint: " in result.err
    assert "sk-secret" not in result.err


def test_unreachable_provider_fails_fast(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    result = chat("Hello.", "--model", MODEL)
    assert (result.code, result.out) == (5, "")
    assert "cannot connect to the provider" in result.err


@pytest.mark.parametrize(
    ("argv", "code", "problem", "hint"),
    [
        ([], 2, "no model selected", "name one with --model or SKILLHALL_MODEL"),
        (["--model", "gpt-5"], 3, "no provider in its name", "write provider:name, such as "),
        (["--model", "unknown:x"], 3, "unknown provider", "write provider:name, such as "),
        (["--model", MODEL], 8, "OPENAI_API_KEY is not set", "set OPENAI_API_KEY"),
        (["--model", "anthropic:x"], 8, "ANTHROPIC_API_KEY is not set", "set ANTHROPIC_API_KEY"),
        (["--model", "ollama:x"], 8, "OLLAMA_BASE_URL is not set", "set OLLAMA_BASE_URL"),
        (["--agent", "coding"], 4, "agent 'coding' not found", "name the config with --config"),
    ],
)
def test_missing_model_or_key_has_a_hint(  # noqa: PLR0913, PLR0917 - a table
    chat: Chat,
    argv: list[str],
    code: int,
    problem: str,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    result = chat("Hello.", *argv)
    assert result.code == code
    assert problem in result.err
    assert f"hint: {hint}" in result.err


def test_missing_extra_has_an_install_hint(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "skillhall._internal.agents.chat.chat", raising=False)
    result = chat("Hello.", "--model", MODEL)
    assert result.code == 2
    assert "hint: pip install 'skillhall[pydantic-ai]'" in result.err


def test_failed_message_does_not_change_the_conversation(
    chat: Chat, server: ModelServer, tmp_path: Path
) -> None:
    module = import_module("skillhall._internal.agents.chat.chat")
    server.script = ("Fine.",)
    skills = AgentSkills.of(settings=make_settings(tmp_path))
    talk = module.Chat(skills, MODEL)

    async def say(message: str) -> list[ChatEvent]:
        return [event async for event in talk.send(message)]

    server.status = 400
    with pytest.raises(ModelUnavailable):
        asyncio.run(say("/csv-report one"))
    server.status = 200
    events = asyncio.run(say("/csv-report two"))
    assert [type(event) for event in events] == [SkillLoaded, TextDelta, Done]
    assert events[-1] == Done(text="Fine.", requests=1, input_tokens=10, output_tokens=5)
    (result,) = server.requests[0].user_messages
    assert result.endswith("</skill_content>\n\ntwo")
    asyncio.run(say("/csv-report three"))
    assert (
        server.requests[1].user_messages[1].startswith("The skill 'csv-report' is already loaded")
    )
