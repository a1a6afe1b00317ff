"""Pages of sessions over HTTP, without a browser: statuses, headers, and what is refused."""

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


def served(folder: Path, *, has_sessions: bool) -> Services:
    data = str(folder / "data")
    settings = Settings(str(folder), str(folder / "cache"), data_directory=data)
    door = open_lazy_workspace(settings) if has_sessions else None
    return Services(MemoryPromptService(), Collection(FolderStore(folder), settings), door)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    services = served(tmp_path, has_sessions=True)
    with run_server(settings=make_settings(), services=services) as one:
        yield one
    assert services.workspace is not None
    services.workspace.close()


def send(server: RunningServer, path: str, **given: str) -> HttpResponse:
    return server.request("POST", path, urlencode(given).encode(), FORM)


def test_a_server_without_sessions_says_so(tmp_path: Path) -> None:
    services = served(tmp_path, has_sessions=False)
    with run_server(settings=make_settings(), services=services) as one:
        for path in ("/sessions", "/templates", "/session/x", "/session/x/import"):
            reply = one.request("GET", path)
            assert reply.status == 404
            assert b"has no sessions" in reply.body


def test_a_made_session_is_shown_under_the_policy(server: RunningServer) -> None:
    made = send(server, "/sessions", name="Research")
    assert made.status == 303
    page = server.request("GET", made.headers["location"])
    assert page.status == 200
    assert page.headers["content-security-policy"] == CSP_HEADER[1].decode()
    assert b"style=" not in page.body


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201])
def test_a_name_that_cannot_be_one_is_refused_beside_the_form(
    server: RunningServer, name: str
) -> None:
    reply = send(server, "/sessions", name=name)
    assert 400 <= reply.status < 500
    assert b'class="problem"' in reply.body


@pytest.mark.parametrize(
    "path", ["", "/context", "/saved-states", "/settings", "/import", "/delete", "/add"]
)
@pytest.mark.parametrize("identity", ["none", "%2e%2e", "%00", "%F0%9F%98%80"])
def test_no_session_is_not_found(server: RunningServer, path: str, identity: str) -> None:
    assert server.request("GET", f"/session/{identity}{path}").status == 404


@pytest.mark.parametrize(
    "placement", ["", "after", "after,none", "end,,NOWHERE", "x,y,z,a", ",,,,"]
)
def test_odd_places_and_versions_change_nothing_else(server: RunningServer, placement: str) -> None:
    address = send(server, "/sessions", name="Odd").headers["location"]
    send(server, f"{address}/add", type="note", text="One")
    identity = address.rpartition("/")[2]
    [block] = server.request("GET", f"/api/v1/sessions/{identity}/blocks").json["data"]["blocks"]
    moving = f"{address}/blocks/{block['id']}/move"
    assert send(server, moving, placement=placement, version="x").status in (400, 412)
    reply = send(server, moving, placement=placement, version=str(block["version"]))
    assert reply.status in (303, 400, 409)
    found = server.request("GET", f"/api/v1/sessions/{identity}/blocks?zone=WORKING").json["data"]
    assert [one["content"] for one in found["blocks"]] == ["One"]
