"""Playground over HTTP: access, limits, errors and shutdown."""

import html
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import pytest

from skillhall._internal.agents import chat
from skillhall._internal.agents.chat.conversations import MAX_MESSAGE_LENGTH
from skillhall._internal.asgi import Services
from skillhall._internal.cli.runner import run
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from tests.support.model_server import ModelServer, ToolCall, model_server
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import (
    DEADLINE,
    HttpResponse,
    RunningServer,
    make_settings,
    make_token_settings,
    run_server,
)
from tests.support.skills import make_skill, make_skill_md

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
MODEL = "openai-chat:scripted"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with model_server("Well then.") as running:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{running.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        yield running


Start = Callable[..., RunningServer]


@pytest.fixture
def start(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Start]:
    contexts = []
    chat.load_chat_class()  # the first import may exceed the timeout of a request

    def begin(settings: Settings | None = None, model: str = MODEL) -> RunningServer:
        make_skill(tmp_path / ".agents/skills", "pdf")
        chosen = (settings or make_settings())._replace(
            working_directory=str(tmp_path), data_directory=str(tmp_path / "data"), model=model
        )
        services = Services(MemoryPromptService(), Collection(FolderStore(tmp_path), chosen))
        context = run_server(settings=chosen, services=services)
        contexts.append(context)
        return context.__enter__()

    yield begin
    for context in contexts:
        context.__exit__(None, None, None)


def send(
    server: RunningServer, message: str = "Hello.", cookie: str = "", **fields: str
) -> HttpResponse:
    body = urlencode({"message": message, **fields}).encode()
    return server.request("POST", "/playground/send", body, {**FORM, "Cookie": cookie})


def alert_text(reply: HttpResponse) -> str:
    alert = re.search(r'role="alert">(.*?)</div>', reply.body.decode(), re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>|&#39;", "", alert[1])).strip() if alert else ""


def test_reply_is_shown_only_to_its_browser(start: Start, model: ModelServer) -> None:
    server = start()
    sent = send(server)
    assert (sent.status, sent.headers["Location"]) == (303, "/playground")
    header = sent.headers["Set-Cookie"]
    assert "HttpOnly; SameSite=Strict" in header
    cookie = header.partition(";")[0]
    assert b"Well then." in server.request("GET", "/playground", headers={"Cookie": cookie}).body
    for other in ("", "skillhall_conversation=x"):
        page = server.request("GET", "/playground", headers={"Cookie": other})
        assert (page.status, b"Well then." in page.body) == (200, False)
    send(server, cookie=cookie)
    assert model.requests[1].user_messages == ["Hello.", "Hello."]


CONFIG = """
[[agents]]
id = "coding"
instructions = "Be “brief”.\\n"
tools = ["ReadFile", "search_skills"]
budgets = { catalog = 120 }
[[agents.skills]]
root = ".agents/skills"
"""


def pre_text(page: HttpResponse, element_id: str) -> str:
    """Return the text of the `pre` element with this id."""
    pattern = f'<pre id="{element_id}" tabindex="0">(.*?)</pre>'
    element = re.search(pattern, page.body.decode(), re.DOTALL)
    assert element is not None
    return html.unescape(element[1])


def test_playground_prompt_equals_prompt_command(
    start: Start,
    model: ModelServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "skillhall.toml").write_text(CONFIG, encoding="utf-8")
    for number in range(20):
        make_skill(tmp_path / ".agents/skills", f"skill-{number}")
    server = start()
    send(server, agent="coding")
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert run(["prompt", "--agent", "coding"]) == 0
    printed = capsys.readouterr().out.removesuffix("\n")
    page = server.request("GET", "/playground/prompt?agent=coding")
    assert page.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert model.requests[0].system == printed == page.body.decode()
    assert "load_skill" not in printed


def test_skill_page_shows_text_sent_to_default_agent(
    start: Start, model: ModelServer, tmp_path: Path
) -> None:
    server = start()
    model.script = (ToolCall("load_skill", {"name": "pdf"}), "Well then.")
    send(server)
    first, last = model.requests
    page = server.request("GET", "/skill/pdf")
    assert pre_text(page, "listing") == first.system
    assert pre_text(page, "activation") == last.tool_results[0]
    assert server.request("GET", "/playground/prompt").body.decode() == first.system
    assert "<location>.agents/skills/pdf/SKILL.md</location>" in first.system
    assert str(tmp_path) not in first.system + last.tool_results[0]


def test_default_agent_can_read_listed_locations(start: Start, model: ModelServer) -> None:
    model.script = (ToolCall("ReadFile", {"path": ".agents/skills/pdf/SKILL.md"}), "Well then.")
    send(start())
    assert model.requests[1].tool_results[0].startswith("---\nname: pdf\n")


def test_skill_page_explains_why_skill_is_not_listed(start: Start, tmp_path: Path) -> None:
    needs = "{openclaw: {requires: {bins: [no-such-program]}}}"
    folder = tmp_path / ".agents/skills"
    make_skill(folder, "unmet", data=make_skill_md("unmet", metadata=needs))
    hidden = make_skill_md("quiet", disable_model_invocation="true", body="# Ship it")
    make_skill(folder, "quiet", data=hidden)
    server = start()
    reasons = {"unmet": b"does not meet the skill", "quiet": b"hidden from models"}
    for name, reason in reasons.items():
        page = server.request("GET", f"/skill/{name}")
        assert reason in page.body
        assert b'id="listing"' not in page.body
    assert pre_text(page, "activation").startswith('<skill_content name="quiet">\n# Ship it\n')


def test_prompt_of_unknown_agent_is_rejected(start: Start) -> None:
    assert start().request("GET", "/playground/prompt?agent=nobody").status == 400


@pytest.mark.parametrize(
    ("fields", "status", "problem"),
    [
        ({"message": "  "}, 422, "Enter a message first."),
        (
            {"message": "x" * (MAX_MESSAGE_LENGTH + 1)},
            422,
            f"exceeds the limit of {MAX_MESSAGE_LENGTH} characters",
        ),
        ({"agent": "nobody"}, 422, "Agent not found: nobody"),
        ({"model": "anthropic:dearest"}, 422, "is not configured"),
    ],
)
def test_rejected_message_is_shown_in_the_form(
    start: Start, model: ModelServer, fields: dict[str, str], status: int, problem: str
) -> None:
    reply = send(start(), **fields)
    assert reply.status == status
    assert problem in alert_text(reply)
    assert model.requests == []


def test_without_model_no_request_is_sent(start: Start, model: ModelServer) -> None:
    server = start(model="")
    reply = send(server)
    assert reply.status == 503
    assert "This agent has no model." in alert_text(reply)
    assert b"No model is configured" in server.request("GET", "/playground").body


def test_missing_api_key_is_named_in_the_error(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    reply = send(start())
    assert reply.status == 422
    assert "OPENAI_API_KEY is not set" in alert_text(reply)
    assert b"Hello." in reply.body


def test_missing_chat_extra_names_install_command(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "skillhall._internal.web.playground.playground_pages.load_chat_class", lambda: None
    )
    reply = send(start())
    assert reply.status == 503
    assert chat.INSTALL_COMMAND.replace("'", "") in alert_text(reply)


def test_invalid_config_leaves_default_agent_usable(
    start: Start, model: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "skillhall.toml").write_text("agents = 3")
    server = start()
    page = server.request("GET", "/playground")
    assert page.status == 200
    assert "skillhall.toml" in alert_text(page)
    assert send(server).status == 303


def test_cross_site_and_anonymous_messages_are_rejected(start: Start, model: ModelServer) -> None:
    server = start(make_token_settings())
    foreign = {**FORM, "Sec-Fetch-Site": "cross-site", "Cookie": "skillhall_session=x"}
    server.headers = {}
    body = urlencode({"message": "Hello."}).encode()
    assert server.request("POST", "/playground/send", body, foreign).status == 403
    assert server.request("POST", "/playground/send", body, FORM).status in (303, 401)
    assert server.request("GET", "/playground/send").status == 401
    assert model.requests == []


def test_conversation_rejects_second_message_while_replying(
    start: Start, model: ModelServer
) -> None:
    server = start()
    cookie = send(server).headers["Set-Cookie"].partition(";")[0]
    with (
        model.pause_replies() as release,
        closing(HTTPConnection("127.0.0.1", server.port)) as connection,
    ):
        headers = {**FORM, "Accept": "application/x-ndjson", "Cookie": cookie}
        connection.request("POST", "/playground/send", urlencode({"message": "Slow."}), headers)
        response = connection.getresponse()
        assert b'"text":"Well "' in response.readline()
        reply = send(server, cookie=cookie)
        assert reply.status == 429
        assert "A reply is in progress." in alert_text(reply)
        release.set()
        assert b'"kind":"over"' in response.read().splitlines()[-1]


def test_shutdown_ends_running_replies(start: Start, model: ModelServer) -> None:
    server = start()
    with (
        model.pause_replies(),
        closing(HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)) as connection,
    ):
        headers = {**FORM, "Accept": "application/x-ndjson"}
        connection.request("POST", "/playground/send", urlencode({"message": "Slow."}), headers)
        response = connection.getresponse()
        response.readline()
        server.stop()
        assert b"over" not in response.read()
