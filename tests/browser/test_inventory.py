"""Inventory, revoked skills and the security checklist in a browser."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browsers import BrowserSession, ServeProcess, run_server
from tests.support.servers import send_request
from tests.support.skills import make_skill, make_skill_md

ITEM = {"source": "github.com/acme/skills", "state": "approved", "risk": "L1"}
STRANGE = f"sha256:{'1' * 64}"


def post(server: ServeProcess, path: str, body: object) -> None:
    port = int(server.url.rpartition(":")[2])
    response = send_request(port, "POST", path, body, {})
    assert response.status == 201, response.body


def read_digest(server: ServeProcess, name: str) -> str:
    port = int(server.url.rpartition(":")[2])
    response = send_request(port, "GET", f"/api/v1/skills/{name}", None, {})
    digest: str = response.json["data"]["digest"]
    return digest


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """Server with a revoked skill, and reports of two machines."""
    folder = tmp_path_factory.mktemp("reported")
    for name in ("pdf-tools", "csv-tools"):
        make_skill(folder / ".agents/skills", name, data=make_skill_md(name, "Reads files."))
    with run_server(folder) as server:
        port = int(server.url.rpartition(":")[2])
        digests = {
            name: send_request(port, "GET", f"/api/v1/skills/{name}", None, {}).json["data"][
                "digest"
            ]
            for name in ("pdf-tools", "csv-tools")
        }
        items = [{**ITEM, "name": name, "digest": digest} for name, digest in digests.items()]
        other = {**ITEM, "name": "<b>odd</b>", "digest": STRANGE, "state": "new", "risk": "L3"}
        post(server, "/api/v1/inventories", {"label": "laptop-7", "skills": items})
        post(server, "/api/v1/inventories", {"label": "ci", "skills": [items[0], other]})
        revocation = {"skill": "pdf-tools", "reason": "sends keys away", "instead": "pdf-tools@2"}
        post(server, "/api/v1/revocations", revocation)
        yield server


@pytest.fixture(params=[True, False], ids=["with scripts", "without scripts"])
def visitor(
    request: pytest.FixtureRequest, browser: Browser, reported: ServeProcess
) -> Iterator[BrowserSession]:
    session = BrowserSession.open(browser, reported.url, java_script_enabled=request.param)
    yield session
    session.close()


def test_visitor_finds_the_machines_with_a_revoked_skill_by_keyboard(
    visitor: BrowserSession,
) -> None:
    page = visitor.open_page("/skills")
    page.get_by_role("link", name="Inventory").press("Enter")
    rows = page.get_by_role("region", name="3 versions").get_by_role("row")
    expect(rows).to_have_count(4)
    expect(rows.nth(1)).to_contain_text("pdf-tools")
    expect(rows.nth(1)).to_contain_text("sends keys away; use pdf-tools@2 instead")
    expect(page.get_by_text("<b>odd</b>")).to_be_visible()
    page.get_by_label("State").select_option("revoked")
    page.get_by_role("button", name="Filter").press("Enter")
    expect(page.get_by_role("region", name="1 version").get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="Show all").press("Enter")
    page.get_by_label("Name, digest, source or machine").fill("111111")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="1 version")).to_contain_text("Not on this server")
    page.get_by_role("link", name="ci").first.press("Enter")
    expect(page.get_by_role("region", name="2 versions")).to_be_visible()


def test_revoked_skill_is_marked_on_its_page_and_in_the_list(visitor: BrowserSession) -> None:
    page = visitor.open_page("/skills")
    row = page.get_by_role("row").filter(has_text="pdf-tools")
    expect(row.get_by_text("Revoked")).to_be_visible()
    row.get_by_role("link", name="pdf-tools").first.click()
    expect(page.get_by_role("note")).to_contain_text("Reason: sends keys away")
    expect(page.get_by_text("pdf-tools@2", exact=True)).to_be_visible()


def test_files_that_only_machines_have_are_revoked_and_given_back(
    visitor: BrowserSession,
) -> None:
    page = visitor.open_page("/inventory")
    page.get_by_role("link", name="Revoke <b>odd</b>").press("Enter")
    expect(page.get_by_text(STRANGE)).to_be_visible()
    page.get_by_label("Reason").fill("mines coins")
    page.get_by_role("button", name="Revoke").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Revoked: <b>odd</b>")
    row = page.get_by_role("row").filter(has_text="mines coins")
    expect(row).to_contain_text("<b>odd</b>")
    row.get_by_role("link", name="Undo the revocation").press("Enter")
    page.get_by_label("Reason").fill("a mistake")
    page.get_by_role("button", name="Undo the revocation").press("Enter")
    expect(page.get_by_role("link", name="Revoke <b>odd</b>")).to_be_visible()
    visitor.open_page("/inventory/sha256:unknown/revoke")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()


def test_checklist_is_answered_for_the_server_and_for_a_skill(visitor: BrowserSession) -> None:
    page = visitor.open_page("/checklist")
    expect(page.get_by_role("heading", name="Security checklist", level=1)).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="6.6")).to_contain_text("Evidence against it")
    page = visitor.open_page("/skill/pdf-tools")
    page.get_by_role("main").get_by_role("link", name="Security checklist").press("Enter")
    heading = page.get_by_role("heading", name=re.compile("checklist for pdf-tools"), level=1)
    expect(heading).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="7.6")).to_contain_text("not revoked")


def test_pages_are_translated(browser: Browser, reported: ServeProcess) -> None:
    session = BrowserSession.open(browser, reported.url, locale="zh-CN")
    page = session.open_page("/inventory")
    expect(page.get_by_role("heading", name="清单", level=1)).to_be_visible()
    expect(page.get_by_text("(新)")).to_be_visible()
    page = session.open_page("/checklist")
    expect(page.get_by_text("是否验证了文件的签名？")).to_be_visible()
    session.close()
