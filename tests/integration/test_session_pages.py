"""Session pages over HTTP: statuses, headers and rejected input."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.web.rendering import CSP_HEADER
from skillhall._internal.wiring.workspace import open_lazy_workspace
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import HttpResponse, RunningServer, make_settings, run_server

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
            assert b"has no sessions" in reply.body


def test_new_session_page_has_strict_csp(server: RunningServer) -> None:
    created = send(server, "/sessions", name="Research")
    assert created.status == 303
    page = server.request("GET", created.headers["location"])
    assert page.status == 200
    assert page.headers["content-security-policy"] == CSP_HEADER[1].decode()
    assert b"style=" not in page.body


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201])
def test_invalid_session_name_is_shown_in_the_form(server: RunningServer, name: str) -> None:
    reply = send(server, "/sessions", name=name)
    assert 400 <= reply.status < 500
    assert b'class="problem"' in reply.body


@pytest.mark.parametrize(
    "path", ["", "/context", "/saved-states", "/settings", "/import", "/delete", "/add"]
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


def test_former_url_of_saved_states_redirects(server: RunningServer) -> None:
    reply = server.request("GET", "/session/x/keep")
    assert (reply.status, reply.headers["location"]) == (303, "/session/x/saved-states")
