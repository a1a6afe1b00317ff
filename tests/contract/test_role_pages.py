"""Pages show only links and buttons that the role and the token's scopes allow."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from starlette.routing import compile_path

from skillhall._internal.cli.runner import run
from skillhall._internal.policy.access.access_scopes import AccessScope, expand_scopes
from skillhall._internal.policy.access.roles import Action, Role, is_allowed
from skillhall._internal.web.routes import ROUTES
from tests.support.account_server import AccountServer, account_settings, run_account_server
from tests.support.actors import ACTOR
from tests.support.servers import TOKEN
from tests.support.skills import make_skill

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PATTERNS = [(row[0], compile_path(row[1])[0], row[2]) for row in ROUTES]
MAX_PAGES = 200
NO_PAGES = ("/api/", "/.well-known/", "/docs", "/mcp", "/readyz")


class Target(NamedTuple):
    """Where a link or a button leads."""

    method: str
    path: str

    @property
    def action(self) -> Action | None:
        """The action of the page, None if it is public or no page."""
        for method, pattern, action in PATTERNS:
            if method == self.method and pattern.fullmatch(self.path):
                return action
        assert self.path.startswith(NO_PAGES), self
        return None


class Targets(HTMLParser):
    """Collects the links and buttons of a page."""

    def __init__(self, path: str, html: str) -> None:
        super().__init__()
        self.path, self.found = path, set[Target]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a":
            self.add("GET", values.get("href"))
        elif tag == "form":
            self.add((values.get("method") or "get").upper(), values.get("action") or self.path)
        self.add((values.get("formmethod") or "post").upper(), values.get("formaction"))
        self.add("POST", values.get("hx-post"))
        self.add("GET", values.get("hx-get"))

    def add(self, method: str, url: str | None) -> None:
        parts = urlsplit(url or "")
        if url and not parts.scheme and not parts.netloc and parts.path.startswith("/"):
            self.found.add(Target(method, unquote(parts.path)))


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountServer]:
    folder = tmp_path_factory.mktemp("pages")
    make_skill(folder / "work/.agents/skills", "served")
    make_skill(folder / "work/.agents/skills", "writing-skills")
    assert run(["local", "setup", "--root", str(folder / "work")]) == 0  # shadows that skill
    settings = account_settings(folder, SKILLHALL_REVIEW="one", SKILLHALL_MODEL="test:model")
    with run_account_server(settings) as server:
        fill(server, folder)
        yield server


def fill(hall: AccountServer, folder: Path) -> None:
    """Create something of every kind."""
    hall.server.headers = {"Authorization": f"Bearer {TOKEN}"}

    def post(path: str, body: object = None) -> dict[str, str]:
        reply = hall.server.request("POST", f"/api/v1{path}", body)
        assert reply.status in {200, 201}, reply.body
        data: dict[str, str] = reply.json["data"]
        return data

    for name in ("draft", "waiting"):
        post("/skills", {"id": name, "name": name, "description": "Reads.", "body": "x"})
    post("/skills/waiting/versions/1/submit")
    for digit in "12":
        item = {"name": f"stray-{digit}", "digest": f"sha256:{digit * 64}", "state": "new"}
        post("/inventories", {"label": f"laptop-{digit}", "skills": [item]})
    post("/revocations", {"digest": f"sha256:{'1' * 64}", "reason": "x"})
    session = f"/sessions/{post('/sessions', {'name': 'Research'})['id']}"
    block = post(f"{session}/blocks", {"type": "note", "content": "x"})
    post(f"{session}/snapshots", {"name": "before"})
    post("/templates", {"name": "Basic", "session": session.rpartition("/")[2]})
    hall.server.request("DELETE", f"/api/v1{session}/blocks/{block['id']}")
    post(f"{session}/blocks", {"type": "note", "content": "y"})
    assert folder.exists()


def sign_in(hall: AccountServer, role: Role, scopes: tuple[AccessScope, ...]) -> dict[str, str]:
    label = f"{role} {' '.join(scopes)}"
    created = hall.accounts.tokens.create(label, role.value, scopes, actor=ACTOR)
    hall.database.token_cache.try_refresh()
    reply = hall.server.request("POST", "/sign-in", f"token={created.text}".encode(), FORM)
    assert reply.status == 303
    return {"Cookie": str(reply.headers["Set-Cookie"]).partition(";")[0]}


def crawl(hall: AccountServer, headers: dict[str, str]) -> dict[Target, str]:
    """Visit all pages that pages lead to; return where they lead, with the page that does."""
    waiting, seen, leads = ["/skills"], set[str](), dict[Target, str]()
    while waiting:
        path = waiting.pop()
        if path in seen or path.startswith((*NO_PAGES, "/static")):
            continue
        seen.add(path)
        assert len(seen) < MAX_PAGES
        reply = hall.server.request("GET", path, headers={**headers, "Accept": "text/html"})
        if reply.status != 200 or "text/html" not in str(reply.headers["Content-Type"]):
            leads.setdefault(Target("GET", path), f"{path}: {reply.status}")
            continue
        for target in Targets(path, reply.body.decode()).found:
            leads.setdefault(target, path)
            if target.method == "GET":
                waiting.append(target.path)
    return leads


SCOPES = [
    (AccessScope.READ,),
    (AccessScope.WRITE,),
    (AccessScope.WRITE, AccessScope.REVIEW),
    (AccessScope.READ, AccessScope.AUDIT),
    (*AccessScope,),
]


@pytest.mark.parametrize("scopes", SCOPES, ids=" ".join)
@pytest.mark.parametrize("role", [Role.READER, Role.ADMINISTRATOR])
def test_pages_lead_only_where_role_and_scopes_allow(
    hall: AccountServer, role: Role, scopes: tuple[AccessScope, ...]
) -> None:
    hall.server.headers = {}
    leads = crawl(hall, sign_in(hall, role, scopes))
    granted = expand_scopes(scopes)
    refused = {
        f"{target.method} {target.path} on {page}"
        for target, page in leads.items()
        if (action := target.action) is not None and not is_allowed(action, role, granted)
    }
    assert refused == set()


@pytest.mark.parametrize("role", Role)
def test_pages_lead_everywhere_that_the_role_allows(hall: AccountServer, role: Role) -> None:
    hall.server.headers = {}
    leads = crawl(hall, hall.cookie(role))
    found = {target.action for target in leads}
    assert not [one for one in found if one is not None and not is_allowed(one, role)]
    shown = {row[2] for row in ROUTES} - {None, Action.CHAT, Action.REFRESH}
    assert {one for one in shown if one is not None and is_allowed(one, role)} <= found
    is_shadowed = Target("GET", "/skill/writing-skills/delete") in leads
    assert is_shadowed == is_allowed(Action.WRITE_SKILLS, role)
