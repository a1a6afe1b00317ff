"""The playground over HTTP: who may spend, how much at once, and that it ends with the server."""

import html
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import pytest

from skillhall._internal.agents import chat as opening
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
    with model_server("Well then.") as one:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{one.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        yield one


Start = Callable[..., RunningServer]


@pytest.fixture
def start(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Start]:
    opened = []
    opening.load_chat_class()  # its first import may take longer than a request is given

    def begin(settings: Settings | None = None, model: str = MODEL) -> RunningServer:
        make_skill(tmp_path / ".agents/skills", "pdf")
        chosen = (settings or make_settings())._replace(
            working_directory=str(tmp_path), data_directory=str(tmp_path / "data"), model=model
        )
        services = Services(MemoryPromptService(), Collection(FolderStore(tmp_path), chosen))
        context = run_server(settings=chosen, services=services)
        opened.append(context)
        return context.__enter__()

    yield begin
    for context in opened:
        context.__exit__(None, None, None)


def say(
    server: RunningServer, message: str = "Hello.", cookie: str = "", **given: str
) -> HttpResponse:
    body = urlencode({"message": message, **given}).encode()
    return server.request("POST", "/playground/send", body, {**FORM, "Cookie": cookie})


def told(reply: HttpResponse) -> str:
    found = re.search(r'role="alert">(.*?)</div>', reply.body.decode(), re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>|&#39;", "", found[1])).strip() if found else ""


def test_an_answer_is_on_the_page_of_this_browser_alone(start: Start, model: ModelServer) -> None:
    server = start()
    sent = say(server)
    assert (sent.status, sent.headers["Location"]) == (303, "/playground")
    header = sent.headers["Set-Cookie"]
    assert "HttpOnly; SameSite=Strict" in header
    cookie = header.partition(";")[0]
    assert b"Well then." in server.request("GET", "/playground", headers={"Cookie": cookie}).body
    for other in ("", "skillhall_conversation=x"):
        page = server.request("GET", "/playground", headers={"Cookie": other})
        assert (page.status, b"Well then." in page.body) == (200, False)
    say(server, cookie=cookie)
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


def shown(page: HttpResponse, identity: str) -> str:
    """What a page shows in the element with that id."""
    found = re.search(
        f'<pre id="{identity}" tabindex="0">(.*?)</pre>', page.body.decode(), re.DOTALL
    )
    assert found is not None
    return html.unescape(found[1])


def test_the_playground_sends_what_prompt_prints_and_its_page_shows(
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
    say(server, agent="coding")
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert run(["prompt", "--agent", "coding"]) == 0
    printed = capsys.readouterr().out.removesuffix("\n")
    page = server.request("GET", "/playground/prompt?agent=coding")
    assert page.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert model.requests[0].system == printed == page.body.decode()
    assert "load_skill" not in printed


def test_the_page_of_a_skill_shows_what_the_servers_agent_is_sent(
    start: Start, model: ModelServer, tmp_path: Path
) -> None:
    server = start()
    model.script = (ToolCall("load_skill", {"name": "pdf"}), "Well then.")
    say(server)
    first, last = model.requests
    page = server.request("GET", "/skill/pdf")
    assert shown(page, "listing") == first.system
    assert shown(page, "activation") == last.tool_results[0]
    assert server.request("GET", "/playground/prompt").body.decode() == first.system
    assert "<location>.agents/skills/pdf/SKILL.md</location>" in first.system
    assert str(tmp_path) not in first.system + last.tool_results[0]


def test_the_servers_agent_reads_every_location_it_is_told(
    start: Start, model: ModelServer
) -> None:
    model.script = (ToolCall("ReadFile", {"path": ".agents/skills/pdf/SKILL.md"}), "Well then.")
    say(start())
    assert model.requests[1].tool_results[0].startswith("---\nname: pdf\n")


def test_the_page_of_a_skill_says_why_models_are_not_told_of_it(
    start: Start, tmp_path: Path
) -> None:
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
    assert shown(page, "activation").startswith('<skill_content name="quiet">\n# Ship it\n')


def test_the_prompt_of_an_unknown_agent_is_an_error(start: Start) -> None:
    assert start().request("GET", "/playground/prompt?agent=nobody").status == 400


@pytest.mark.parametrize(
    ("given", "status", "problem"),
    [
        ({"message": "  "}, 422, "Enter a message first."),
        (
            {"message": "x" * (MAX_MESSAGE_LENGTH + 1)},
            422,
            f"larger than {MAX_MESSAGE_LENGTH} characters",
        ),
        ({"agent": "nobody"}, 422, "agent not found: nobody"),
        ({"model": "anthropic:dearest"}, 422, "is not configured"),
    ],
)
def test_what_is_not_sent_is_told_beside_the_form(
    start: Start, model: ModelServer, given: dict[str, str], status: int, problem: str
) -> None:
    reply = say(start(), **given)
    assert reply.status == status
    assert problem in told(reply)
    assert model.requests == []


def test_without_a_model_nothing_is_sent(start: Start, model: ModelServer) -> None:
    server = start(model="")
    reply = say(server)
    assert reply.status == 503
    assert "SKILLHALL_MODEL" in told(reply)
    assert b"No model is configured" in server.request("GET", "/playground").body


def test_a_missing_key_is_told_by_its_name(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    reply = say(start())
    assert reply.status == 422
    assert "OPENAI_API_KEY is not set" in told(reply)
    assert b"Hello." in reply.body


def test_without_the_extra_the_page_says_what_to_install(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "skillhall._internal.web.playground.playground_pages.load_chat_class", lambda: None
    )
    reply = say(start())
    assert reply.status == 503
    assert opening.INSTALL_COMMAND.replace("'", "") in told(reply)


def test_a_config_that_cannot_be_read_leaves_the_servers_own_agent(
    start: Start, model: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "skillhall.toml").write_text("agents = 3")
    server = start()
    page = server.request("GET", "/playground")
    assert page.status == 200
    assert "skillhall.toml" in told(page)
    assert say(server).status == 303


def test_pages_of_other_sites_and_strangers_spend_nothing(start: Start, model: ModelServer) -> None:
    server = start(make_token_settings())
    foreign = {**FORM, "Sec-Fetch-Site": "cross-site", "Cookie": "skillhall_session=x"}
    server.headers = {}
    body = urlencode({"message": "Hello."}).encode()
    assert server.request("POST", "/playground/send", body, foreign).status == 403
    assert server.request("POST", "/playground/send", body, FORM).status in (303, 401)
    assert server.request("GET", "/playground/send").status == 401
    assert model.requests == []


def test_one_conversation_answers_once_at_a_time(start: Start, model: ModelServer) -> None:
    server = start()
    cookie = say(server).headers["Set-Cookie"].partition(";")[0]
    with model.pause_replies() as hold, closing(HTTPConnection("127.0.0.1", server.port)) as line:
        headers = {**FORM, "Accept": "application/x-ndjson", "Cookie": cookie}
        line.request("POST", "/playground/send", urlencode({"message": "Slow."}), headers)
        answer = line.getresponse()
        assert b'"text":"Well "' in answer.readline()
        reply = say(server, cookie=cookie)
        assert reply.status == 429
        assert "an answer is on its way" in told(reply)
        hold.set()
        assert b'"kind":"over"' in answer.read().splitlines()[-1]


def test_a_server_that_stops_ends_the_answers(start: Start, model: ModelServer) -> None:
    server = start()
    with (
        model.pause_replies(),
        closing(HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)) as line,
    ):
        headers = {**FORM, "Accept": "application/x-ndjson"}
        line.request("POST", "/playground/send", urlencode({"message": "Slow."}), headers)
        answer = line.getresponse()
        answer.readline()
        server.stop()
        assert b"over" not in answer.read()
