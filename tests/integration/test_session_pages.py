"""Session pages over HTTP: statuses, headers and rejected input."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.web.assets import load_assets
from skillhall._internal.web.rendering import CSP
from skillhall._internal.web.translations import load_translations
from skillhall._internal.wiring.workspace import open_lazy_workspace
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES, BlockType
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import HttpResponse, RunningServer, make_settings, run_server
from tests.support.skills import make_skill

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}


def make_services(folder: Path, *, has_sessions: bool) -> Services:
    data = str(folder / "data")
    settings = Settings(str(folder), str(folder / "cache"), data_directory=data)
    workspace = open_lazy_workspace(settings) if has_sessions else None
    return Services(MemoryPromptService(), Collection(FolderStore(folder), settings), workspace)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    services = make_services(tmp_path, has_sessions=True)
    with run_server(settings=make_settings(), services=services) as running:
        yield running
    assert services.workspace is not None
    services.workspace.close()


def send(server: RunningServer, path: str, **fields: str) -> HttpResponse:
    return server.request("POST", path, urlencode(fields).encode(), FORM)


def test_server_without_workspace_answers_not_found(tmp_path: Path) -> None:
    services = make_services(tmp_path, has_sessions=False)
    with run_server(settings=make_settings(), services=services) as running:
        for path in ("/sessions", "/templates", "/session/x", "/session/x/import"):
            reply = running.request("GET", path)
            assert reply.status == 404
            assert b"Sessions are not enabled" in reply.body


def test_new_session_page_has_strict_csp(server: RunningServer) -> None:
    created = send(server, "/sessions", name="Research")
    assert created.status == 303
    page = server.request("GET", created.headers["location"])
    assert page.status == 200
    assert page.headers["content-security-policy"] == CSP
    assert b"style=" not in page.body


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201])
def test_invalid_session_name_is_shown_in_the_form(server: RunningServer, name: str) -> None:
    reply = send(server, "/sessions", name=name)
    assert 400 <= reply.status < 500
    assert b'class="problem"' in reply.body


@pytest.mark.parametrize(
    "path", ["", "/read", "/context", "/saved-states", "/settings", "/import", "/delete", "/add"]
)
@pytest.mark.parametrize("identity", ["none", "%2e%2e", "%00", "%F0%9F%98%80"])
def test_unknown_session_is_not_found(server: RunningServer, path: str, identity: str) -> None:
    assert server.request("GET", f"/session/{identity}{path}").status == 404


@pytest.mark.parametrize(
    "placement", ["", "after", "after,none", "end,,NOWHERE", "x,y,z,a", ",,,,"]
)
def test_invalid_placement_or_version_keeps_blocks_unchanged(
    server: RunningServer, placement: str
) -> None:
    url = send(server, "/sessions", name="Odd").headers["location"]
    send(server, f"{url}/add", type="note", text="One")
    api_url = f"/api/v1/sessions/{url.rpartition('/')[2]}/blocks"
    [block] = server.request("GET", api_url).json["data"]["blocks"]
    move_url = f"{url}/blocks/{block['id']}/move"
    assert send(server, move_url, placement=placement, version="x").status in (400, 412)
    reply = send(server, move_url, placement=placement, version=str(block["version"]))
    assert reply.status in (303, 400, 409)
    blocks = server.request("GET", f"{api_url}?zone=WORKING").json["data"]["blocks"]
    assert [row["content"] for row in blocks] == ["One"]


def test_new_block_type_needs_only_its_row_and_its_texts(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    diagram = BlockType("diagram", Zone.STABLE, "◇", "#123456", "M8 2l6 6-6 6-6-6z")
    monkeypatch.setitem(BLOCK_TYPES, diagram.id, diagram)
    monkeypatch.setitem(load_translations("en").messages, "type.diagram", "Diagram")
    load_assets.cache_clear()
    try:
        url = send(server, "/sessions", name="New type").headers["location"]
        form = server.request("GET", f"{url}/add?type=diagram").body.decode()
        assert '<option value="diagram" selected>Diagram</option>' in form
        assert '<option value="STABLE" selected>' in form
        assert send(server, f"{url}/add", type="diagram", text="A to B").status == 303
        board = server.request("GET", url).body.decode()
        assert 'class="block type-diagram"' in board
        assert '<span class="card-type">Diagram</span>' in board
        icon = (
            '<symbol id="type-diagram" viewBox="0 0 16 16"><path d="M8 2l6 6-6 6-6-6z"/></symbol>'
        )
        assert icon in board
        stylesheet = re.search(r'href="(/static/block-types.css[^"]+)"', board)
        assert stylesheet
        colors = server.request("GET", stylesheet[1])
        assert b".type-diagram { --type: #123456; }" in colors.body
        assert colors.headers["content-type"].startswith("text/css")
        [block] = server.request("GET", f"/api/v1/sessions/{url[9:]}/blocks").json["data"]["blocks"]
        assert (block["type"], block["zone"]) == ("diagram", "STABLE")
    finally:
        monkeypatch.undo()
        load_assets.cache_clear()


def test_former_url_of_saved_states_redirects(server: RunningServer) -> None:
    reply = server.request("GET", "/session/x/keep")
    assert (reply.status, reply.headers["location"]) == (303, "/session/x/saved-states")


def test_skills_stay_selected_in_another_search(server: RunningServer, tmp_path: Path) -> None:
    for name in ("csv-report", "pdf-tools"):
        make_skill(tmp_path / ".agents/skills", name)
    session = send(server, "/sessions", name="Research").headers["location"]
    page = server.request("GET", f"{session}/import?q=csv&skill=pdf-tools")
    rows = re.findall(rb'name="skill" value="([\w-]+)"( checked)?', page.body)
    assert rows == [(b"pdf-tools", b" checked"), (b"csv-report", b"")]


def test_several_skills_are_added_to_a_session(server: RunningServer, tmp_path: Path) -> None:
    for name in ("csv-report", "pdf-tools"):
        make_skill(tmp_path / ".agents/skills", name)
    session = send(server, "/sessions", name="Research").headers["location"]
    query = "skill=csv-report&skill=pdf-tools"
    page = server.request("GET", f"/sessions/choose?{query}")
    assert b"Add 2 skills to a session" in page.body
    form = f"session={session.rpartition('/')[2]}&{query}".encode()
    reply = server.request("POST", "/sessions/choose", form, FORM)
    assert reply.status == 307
    server.request("POST", reply.headers["location"], form, FORM)
    board = server.request("GET", session)
    assert all(name in board.body for name in (b"csv-report", b"pdf-tools"))
    assert server.request("GET", "/sessions/choose").status == 400
