"""Pages over HTTP, without a browser: statuses, headers, fragments and who is let in."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from jinja2 import meta

from skillhall._internal import web
from skillhall._internal.asgi import Services
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.web.rendering import CSP_HEADER, jinja_environment
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import (
    TOKEN,
    HttpResponse,
    RunningServer,
    make_settings,
    make_token_settings,
    run_server,
)
from tests.support.skills import make_skill, make_skill_md

FOLDER = Path(web.__file__).parent
HTML = {"Accept": "text/html"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", **HTML}


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    make_skill(folder / ".agents/sys.skills", "shipped")
    make_skill(folder / ".agents/skills", "pdf", files={"a b/run.sh": b"#!/bin/sh\necho\n"})
    return folder


def services(run_directory: Path) -> Services:
    data = str(run_directory.parent / "data")
    settings = Settings(str(run_directory), str(run_directory / "cache"), data_directory=data)
    return Services(MemoryPromptService(), Collection(FolderStore(run_directory), settings))


@pytest.fixture
def server(run_directory: Path) -> Iterator[RunningServer]:
    with run_server(settings=make_settings(), services=services(run_directory)) as one:
        yield one


@pytest.fixture
def locked(run_directory: Path) -> Iterator[RunningServer]:
    with run_server(settings=make_token_settings(), services=services(run_directory)) as one:
        one.headers = {}
        yield one


def send(
    server: RunningServer, path: str, headers: dict[str, str] | None = None, **given: str
) -> HttpResponse:
    return server.request("POST", path, urlencode(given).encode(), {**FORM, **(headers or {})})


class Tags(HTMLParser):
    """Every element of a page, by name, with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


PAGES = [
    "/skills",
    "/skills?q=pdf&source=user&sort=name&page=7",
    "/skills/add",
    "/skills/import",
    "/skill/pdf",
    "/skill/shipped",
    "/skill/pdf/edit",
    "/skill/pdf/delete",
    "/skill/pdf/files",
    "/skill/pdf/files/a%20b/run.sh",
    "/sources",
]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_html_under_a_policy_without_inline_code(
    server: RunningServer, path: str
) -> None:
    reply = server.request("GET", path, headers=HTML)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert reply.headers["Content-Security-Policy"] == CSP_HEADER[1].decode()
    assert reply.headers["X-Frame-Options"] == "DENY"
    for tag, attributes in Tags(reply.body.decode()).found:
        assert tag != "style"
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert tag != "script" or (attributes.get("src") or "").startswith("/static/")
        address = attributes.get("href") or attributes.get("src") or ""
        assert not address.startswith(("http:", "https:", "//"))


def test_the_first_page_leads_to_the_skills(server: RunningServer) -> None:
    reply = server.request("GET", "/")
    assert (reply.status, reply.headers["Location"]) == (303, "/skills")
    assert server.request("HEAD", "/skills").status == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/skill/none", 404),
        ("/skill/pdf/files/none.md", 404),
        ("/skill/pdf/files/..%2f..%2fsys.skills%2fshipped%2fSKILL.md", 400),
        ("/skill/%ff", 404),
        ("/skill/shipped/edit", 403),
        ("/skills/import/unknown", 404),
        ("/static/none.css", 404),
        ("/static/..%2ftexts.py", 404),
        ("/skills?page=x&q=%00&sort=no&source=no", 200),
    ],
)
def test_what_is_not_there_or_not_allowed_is_told_as_a_page(
    server: RunningServer, path: str, status: int
) -> None:
    reply = server.request("GET", path, headers=HTML)
    assert reply.status == status
    assert b"<h1" in reply.body
    assert b"Traceback" not in reply.body


def test_a_form_that_cannot_be_written_comes_back_with_what_was_typed(
    server: RunningServer,
) -> None:
    reply = send(server, "/skills/add", name="X", description="", body="Keep <this>.")
    assert reply.status == 422
    assert b"Keep &lt;this&gt;." in reply.body
    taken = send(server, "/skills/add", id="pdf", name="pdf", description="d")
    assert taken.status == 409


def test_a_check_writes_nothing(server: RunningServer, run_directory: Path) -> None:
    reply = send(server, "/skills/add/check", name="Notes", description="Takes notes.")
    assert reply.status == 200
    assert b"&lt;location&gt;.agents/skills/notes/SKILL.md&lt;/location&gt;" in reply.body
    assert not (run_directory / ".agents/skills/notes").exists()


def test_what_was_done_is_told_once(server: RunningServer) -> None:
    made = send(server, "/skills/add", name="Notes", description="Takes notes.")
    assert (made.status, made.headers["Location"]) == (303, "/skill/notes")
    cookie = made.headers["Set-Cookie"].partition(";")[0]
    page = server.request("GET", "/skill/notes", headers={**HTML, "Cookie": cookie})
    assert b"Added" in page.body
    assert "skillhall_notice=;" in page.headers["Set-Cookie"]
    for forged in ("x", "W10", "bm8", "%%%"):
        given = {**HTML, "Cookie": f"skillhall_notice={forged}"}
        assert server.request("GET", "/skills", headers=given).status == 200


def test_a_system_skill_is_not_deleted(server: RunningServer, run_directory: Path) -> None:
    assert send(server, "/skill/shipped/delete").status == 403
    assert (run_directory / ".agents/sys.skills/shipped").exists()


@pytest.mark.parametrize("path", ["/skill/pdf/delete", "/skills/add", "/sign-in", "/settings"])
def test_a_page_of_another_site_changes_nothing(server: RunningServer, path: str) -> None:
    for header in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://elsewhere.example"}):
        assert send(server, path, header, name="x", description="y").status == 403


def test_the_folder_of_the_machine_is_not_read_unless_it_is_allowed(
    server: RunningServer, run_directory: Path
) -> None:
    reply = send(server, "/skills/import/folder", folder=str(run_directory))
    assert reply.status == 422
    assert b"SKILLHALL_FOLDER_SCAN" in reply.body


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("multipart/form-data; boundary=x", b"no parts", 400),
        ("multipart/form-data", b"x", 400),
        ("multipart/form-data; boundary=x", b"--x--\r\n", 422),
        ("application/json", b"{}", 415),
        ("application/x-www-form-urlencoded", b"\xff=1", 400),
    ],
)
def test_a_form_that_cannot_be_read_is_refused(
    server: RunningServer, kind: str, body: bytes, status: int
) -> None:
    headers = {"Content-Type": kind, **HTML}
    assert server.request("POST", "/skills/import/files", body, headers).status == status


def test_the_list_is_news_only_after_a_change(server: RunningServer, run_directory: Path) -> None:
    page = server.request("GET", "/skills", headers=HTML).body.decode()
    found = re.search(r"/skills/changes\?revision=(\w+)", page)
    assert found
    assert "HX-Trigger" not in server.request("GET", found[0]).headers
    send(server, "/skills/add", name="Notes", description="Takes notes.")
    assert server.request("GET", found[0]).headers["HX-Trigger"] == "skills-changed"


def test_static_files_never_change_under_the_address_that_pages_use(server: RunningServer) -> None:
    page = server.request("GET", "/skills", headers=HTML).body.decode()
    for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
        reply = server.request("GET", address)
        assert (reply.status, "immutable" in reply.headers["Cache-Control"]) == (200, True)
    assert server.request("GET", "/static/style.css").headers["Cache-Control"] == "no-cache"


def test_a_stranger_is_asked_for_the_token_and_led_back(locked: RunningServer) -> None:
    reply = locked.request("GET", "/skill/a%20b", headers=HTML)
    assert (reply.status, reply.headers["Location"]) == (303, "/sign-in?next=/skill/a%2520b")
    assert locked.request("GET", "/api/v1/skills", headers=HTML).status == 401
    by_script = locked.request("GET", "/skills", headers={"HX-Request": "true"})
    assert (by_script.status, by_script.headers["HX-Redirect"]) == (401, "/sign-in")
    assert locked.request("GET", "/static/style.css").status == 200


def test_the_cookie_opens_pages_and_calls_and_no_page_of_another_site_can_use_it(
    locked: RunningServer,
) -> None:
    entered = send(locked, "/sign-in", token=TOKEN, next="/skill/pdf")
    assert (entered.status, entered.headers["Location"]) == (303, "/skill/pdf")
    cookie = {"Cookie": entered.headers["Set-Cookie"].partition(";")[0]}
    assert locked.request("GET", "/skills", headers={**HTML, **cookie}).status == 200
    assert locked.request("GET", "/api/v1/skills", headers=cookie).status == 200
    foreign = {**cookie, "Sec-Fetch-Site": "cross-site"}
    assert send(locked, "/skill/pdf/delete", foreign).status == 403
    out = send(locked, "/sign-out", cookie)
    assert "Max-Age=0" in out.headers["Set-Cookie"]


@pytest.mark.parametrize(
    "place", ["//elsewhere.example", "https://elsewhere.example", "/\\x", "x", "/\r\nX: y"]
)
def test_signing_in_leads_nowhere_else(locked: RunningServer, place: str) -> None:
    assert send(locked, "/sign-in", token=TOKEN, next=place).headers["Location"] == "/"


def test_guessing_the_token_in_the_form_comes_to_an_end(locked: RunningServer) -> None:
    replies = [send(locked, "/sign-in", token="wrong").status for _ in range(31)]  # noqa: S106
    assert (replies[0], replies[-1]) == (401, 429)
    assert send(locked, "/sign-in", token=TOKEN).status == 303


def test_a_skill_with_an_odd_id_is_reached(server: RunningServer, run_directory: Path) -> None:
    odd = "a&b ü?#"
    make_skill(run_directory / ".agents/skills", odd, data=make_skill_md("odd"))
    page = server.request("GET", "/skills", headers=HTML).body.decode()
    assert f'href="/skill/{quote(odd, safe="")}"' in page
    assert server.request("GET", f"/skill/{quote(odd, safe='')}", headers=HTML).status == 200


def test_edits_and_undo_have_a_twin_in_rest(server: RunningServer, run_directory: Path) -> None:
    before = server.request("GET", "/api/v1/skills/pdf").json["data"]
    words = {"digest": before["digest"], "name": "pdf", "description": "New.", "body": "New."}
    made = server.request("PUT", "/api/v1/skills/pdf", words).json["data"]
    assert made["description"] == "New."
    assert server.request("PUT", "/api/v1/skills/pdf", words).code == "PRECONDITION_FAILED"
    undo = f"/api/v1/changes/{made['change']}/undo"
    assert server.request("POST", undo).json["data"]["skills"] == ["pdf"]
    assert server.request("GET", "/api/v1/skills/pdf").json["data"]["digest"] == before["digest"]
    assert server.request("POST", undo).status == 404
    assert server.request("PUT", "/api/v1/skills/shipped", words).code == "READ_ONLY"
    change = server.request("DELETE", "/api/v1/skills/pdf").json["data"]["change"]
    assert server.request("POST", f"/api/v1/changes/{change}/undo").status == 200


def test_a_check_and_the_sources_have_a_twin_in_rest(server: RunningServer) -> None:
    given = {"id": "PDF", "name": "pdf", "description": "Reads."}
    told = server.request("POST", "/api/v1/skills/check", given).json["data"]
    assert (told["id"], told["taken"], told["problems"]) == ("pdf", True, [])
    assert "<location>.agents/skills/pdf/SKILL.md</location>" in told["prompt"]
    listed = server.request("GET", "/api/v1/skills?source=system").json["data"]
    assert [one["id"] for one in listed["skills"]] == ["shipped"]
    assert server.request("GET", "/api/v1/skills?source=x").status == 400


def test_a_template_gets_one_dataclass_and_asks_for_nothing_else() -> None:
    made = jinja_environment()
    for name in made.list_templates():
        assert made.loader is not None
        source = made.loader.get_source(made, name)[0]
        wanted = meta.find_undeclared_variables(made.parse(source))
        assert wanted <= {"page", "t", "frame", "parts"}, name


def test_every_page_is_a_frozen_dataclass_of_its_own() -> None:
    from skillhall._internal.web.rendering import Page  # noqa: PLC0415

    for page in Page.__subclasses__():
        assert is_dataclass(page)
        assert fields(page)[0].name == "frame"


@pytest.mark.parametrize("path", ["/skills/add", "/skills/import/source"])
def test_a_choice_after_a_refused_form_leads_to_a_page(server: RunningServer, path: str) -> None:
    refused = send(server, path, id="..", source="..")
    assert 400 <= refused.status < 500
    fields = [at for tag, at in Tags(refused.body.decode()).found if tag == "input"]
    assert [at["value"] for at in fields if at.get("name") == "next"] == ["/skills"]


def test_pages_are_counted_by_their_routes_and_not_by_what_was_asked_for(
    server: RunningServer,
) -> None:
    server.request("GET", "/skill/pdf")
    server.request("HEAD", "/static/style.css")
    figures = server.request("GET", "/metrics").body.decode()
    assert 'skillhall_requests_total{method="GET",route="/skill/{id}",status="200"} 1.0' in figures
    assert 'skillhall_requests_total{method="HEAD",route="/static/{path}",status="200"}' in figures
