"""Contract of the records' JSON: REST, `--json` and exports have the same keys and values."""

import ast
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import skillhall
from skillhall._internal.asgi import Services
from skillhall._internal.cli.runner import run
from skillhall._internal.settings import ServerSettings, Settings
from skillhall._internal.wiring.workspace import open_lazy_workspace
from skillhall._internal.workspace import Block, BlockContent, SessionBudgets
from skillhall._internal.workspace.serializers import (
    parse_content,
    serialize_content,
    serialize_event,
    serialize_folder_scan,
)
from skillhall._internal.workspace.workspace import Workspace
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import DEADLINE, RunningServer, run_server
from tests.support.skills import make_skill
from tests.support.workspaces import import_upload, skill_md

SESSIONS = "/api/v1/sessions"
RunJson: TypeAlias = Callable[..., Any]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a server and of commands on one database."""
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SKILLHALL_FOLDER_SCAN", "on")
    monkeypatch.chdir(tmp_path)
    return Settings(
        working_directory=str(tmp_path),
        cache_directory=str(tmp_path / "cache"),
        data_directory=str(tmp_path / "data"),
        server=ServerSettings(port="0", folder_scan=True),
    )


@pytest.fixture
def workspace(settings: Settings) -> Iterator[Workspace]:
    with closing(open_lazy_workspace(settings)) as lazy:
        yield lazy.open()


@pytest.fixture
def server(settings: Settings) -> Iterator[RunningServer]:
    with closing(open_lazy_workspace(settings)) as lazy:
        services = Services(MemoryPromptService(), workspace=lazy)
        with run_server(settings=settings, services=services) as running:
            yield running


@pytest.fixture
def run_json(capfd: pytest.CaptureFixture[str], settings: Settings) -> RunJson:
    """Run a command with `--json` and return its data."""
    assert settings.data_directory

    def run_command(*arguments: str) -> Any:  # noqa: ANN401 - JSON
        capfd.readouterr()
        assert run([*arguments, "--json"]) == 0
        return json.loads(capfd.readouterr().out)["data"]

    return run_command


def fetch(server: RunningServer, path: str) -> Any:  # noqa: ANN401 - JSON
    response = server.request("GET", path)
    assert response.status == 200, response.body
    return response.json["data"]


def make_session(workspace: Workspace) -> str:
    """Create a session with a note and a skill; return its id."""
    session = workspace.sessions.create("Research", SessionBudgets(stable=7, total=9)).id
    workspace.blocks.add(session, "note", "Größe 🙂")
    import_upload(workspace.importer, session, skill_md("pdf", "# Steps"), "pdf.md")
    return session


def test_session_is_equal_everywhere(
    workspace: Workspace, server: RunningServer, run_json: RunJson
) -> None:
    session = make_session(workspace)
    fetched = fetch(server, f"{SESSIONS}/{session}")
    zones = fetched.pop("zones")
    assert [zone["blocks"] for zone in zones] == [0, 1, 1]
    assert fetch(server, SESSIONS)["sessions"] == [fetched]
    assert run_json("session", "list")["sessions"] == [fetched]
    exported = json.loads(read_export(server, session)["session.json"])
    assert {key: fetched[key] for key in ("name", "budgets")} == {
        key: exported[key] for key in ("name", "budgets")
    }


def read_export(server: RunningServer, session: str) -> dict[str, bytes]:
    """Return the files of an exported session."""
    archive = server.request("GET", f"{SESSIONS}/{session}/export").body
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_block_is_equal_everywhere(
    workspace: Workspace, server: RunningServer, run_json: RunJson
) -> None:
    session = make_session(workspace)
    fetched = fetch(server, f"{SESSIONS}/{session}/blocks")["blocks"]
    assert [block.get("metadata", {}).get("skillName") for block in fetched] == ["pdf", None]
    assert run_json("session", "show", "Research")["blocks"] == fetched
    for block in fetched:
        assert fetch(server, f"{SESSIONS}/{session}/blocks/{block['id']}") == block
    contents = [serialize_content(block.content) for block in workspace.blocks.list(session)]
    shared = contents[0].keys()
    assert [{key: block[key] for key in block if key in shared} for block in fetched] == contents
    exported = json.loads(read_export(server, session)["blocks/1.json"])
    assert exported == [
        {key: value for key, value in content.items() if key != "tokens"} for content in contents
    ]


def test_serialized_content_can_be_parsed(workspace: Workspace) -> None:
    def parse_again(block: Block) -> BlockContent:
        return parse_content(json.loads(json.dumps(serialize_content(block.content))))

    blocks = workspace.blocks.list(make_session(workspace))
    assert [*map(parse_again, blocks)] == [block.content for block in blocks]


def test_template_is_equal_everywhere(
    workspace: Workspace, server: RunningServer, run_json: RunJson
) -> None:
    workspace.templates.save(make_session(workspace), "Start", "For research.")
    [fetched] = fetch(server, "/api/v1/templates")["templates"]
    assert run_json("session", "template", "list")["templates"] == [fetched]
    detail = fetch(server, f"/api/v1/templates/{fetched['id']}")
    assert len(detail.pop("blocks")) == 2
    assert detail == fetched


def test_snapshot_is_equal_everywhere(
    workspace: Workspace, server: RunningServer, run_json: RunJson
) -> None:
    session = make_session(workspace)
    saved = run_json("session", "snapshot", "Research", "before")["snapshots"]
    assert fetch(server, f"{SESSIONS}/{session}/snapshots")["snapshots"] == saved
    assert run_json("session", "snapshot", "Research")["snapshots"] == saved
    detail = fetch(server, f"{SESSIONS}/{session}/snapshots/{saved[0]['id']}")
    blocks = fetch(server, f"{SESSIONS}/{session}/blocks")["blocks"]
    assert sorted(detail.pop("blocks"), key=str) == sorted(blocks, key=str)
    assert detail == saved[0]


def test_context_is_equal_everywhere(
    workspace: Workspace, server: RunningServer, run_json: RunJson
) -> None:
    fetched = fetch(server, f"{SESSIONS}/{make_session(workspace)}/context")
    printed = run_json("session", "context", "Research")
    assert {key: printed[key] for key in fetched} == fetched
    assert [part["tokens"] for part in printed["spending"]] == [
        *(zone["tokens"] for zone in fetched["zones"]),
        fetched["total"]["tokens"],
    ]


def test_scanned_folder_is_equal_everywhere(
    workspace: Workspace, server: RunningServer, run_json: RunJson, tmp_path: Path
) -> None:
    folder = tmp_path / "skills"
    make_skill(folder, "pdf")
    (folder / "broken").mkdir()
    (folder / "broken" / "SKILL.md").write_text("no frontmatter", encoding="utf-8")
    fetched = fetch(server, f"/api/v1/folder-skills?folder={folder}")
    assert [skill["accepted"] for skill in fetched["skills"]] == [False, True]
    assert run_json("session", "scan", str(folder)) == fetched
    assert serialize_folder_scan(workspace.importer.scan_folder(str(folder))) == fetched


def test_event_is_sent_as_serialized(workspace: Workspace, server: RunningServer) -> None:
    session = make_session(workspace)
    events = workspace.events(0, session)
    path = f"/api/v1/events?after=0&session={session}"
    sent: list[object] = []
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200
        while len(sent) < len(events) and (line := response.readline()):
            if line.startswith(b"data: "):
                sent.append(json.loads(line.removeprefix(b"data: ")))
    assert sent == [serialize_event(event) for event in events]


NOUN_KEYS = {
    "session": {"id", "name", "revision"},
    "block": {"type", "zone", "content"},
    "template": {"id", "name", "description", "version"},
    "snapshot": {"id", "name", "automatic"},
    "event": {"kind", "subject"},
    "context": {"zones", "total"},
    "candidate": {"id", "tokens", "accepted"},
}


def test_records_are_serialized_in_one_module() -> None:
    package = Path(skillhall.__file__).parent / "_internal"
    found = []
    for folder in ("workspace", "rest", "cli", "web", "mcp", "api"):
        for path in sorted((package / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                keys = set()
                if isinstance(node, ast.Dict):
                    keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
                found += [
                    (noun, path.name) for noun, noun_keys in NOUN_KEYS.items() if noun_keys <= keys
                ]
    assert {file for _, file in found} == {"serializers.py"}, found
