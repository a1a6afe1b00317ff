"""Several servers on one PostgreSQL database serve the same data."""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from mcp import Client
from mcp_types import TextContent

from skillhall._internal.cli.runner import run
from tests.support.databases import make_postgres_database
from tests.support.freezing_server import FREEZE_FILE, NEVER
from tests.support.git_server import GitRepo, run_git_server
from tests.support.mcp_clients import run_http_client
from tests.support.postgres import PostgresServer
from tests.support.replicas import (
    DEADLINE,
    PROMPTS,
    ROOT,
    SKILLS,
    ForkedReplica,
    Replica,
    new_name,
    replicas,
    skill_files,
    wait_until,
)
from tests.support.servers import send_request
from tests.support.skills import make_skill, make_skill_md

TOKEN = "correct-horse-battery-staple"  # noqa: S105 - only for tests
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SESSIONS = "/api/v1/sessions"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PASSWORD = "purple ladder winter"  # noqa: S105 - only for tests
SLACK = 2.0  # seconds for the requests of a loaded machine
SECRET = "webhook-secret-of-tests"  # noqa: S105 - only for tests


@pytest.fixture(scope="module")
def database(postgres: str) -> str:
    """URL of a database that the servers of this module share."""
    return make_postgres_database(postgres, f"replicas_{secrets.token_hex(4)}")


@pytest.fixture(scope="module")
def pair(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Replica]]:
    """Two servers with authentication, shared by the tests of this module."""
    variables = {"SKILLHALL_DATABASE_URL": database, "SKILLHALL_AUTH_TOKEN": TOKEN}
    with replicas(tmp_path_factory.mktemp("pair"), **variables) as servers:
        for server in servers:
            server.headers = BEARER
        yield servers


def read_by_rest(replica: Replica, name: str) -> str:
    return replica.body(name)


def read_by_file(replica: Replica, name: str) -> str:
    reply = replica.request("GET", f"{SKILLS}/{name}/files/data/words.txt")
    return reply.body.decode() if reply.status == 200 else ""


def read_by_mcp(replica: Replica, name: str) -> str:
    async def load(client: Client) -> str:
        # Without skills, the tool does not exist.
        if not any(tool.name == "load_skill" for tool in (await client.list_tools()).tools):
            return ""
        loaded = await client.call_tool("load_skill", {"name": name})
        [text] = loaded.content
        assert isinstance(text, TextContent)
        body = re.search(r"^(first|second)$", text.text, re.MULTILINE)
        return body[0] if body else ""

    return run_http_client(replica.port, load, replica.headers)


# Ways to read a skill; every surface belongs here.
READERS = [read_by_rest, read_by_file, read_by_mcp]


@pytest.mark.parametrize("read", READERS)
def test_imported_skill_is_served_by_both_servers(
    pair: list[Replica], read: Callable[[Replica, str], str]
) -> None:
    first, second = pair
    name = new_name()
    assert first.import_skills(skill_files(name, "first")).status == 201
    assert read(first, name) == "first"
    wait_until(lambda: name in second.ids())
    assert read(second, name) == "first"
    assert second.import_skills(skill_files(name, "second"), "?replace=true").json["data"][
        "replaced"
    ] == [name]
    wait_until(lambda: read(first, name) == "second")
    assert first.request("DELETE", f"{SKILLS}/{name}").status == 200
    wait_until(lambda: name not in second.ids())
    assert read(second, name) == ""


def test_following_is_disabled_on_a_shared_database(pair: list[Replica]) -> None:
    page = pair[0].request("GET", "/sources").body.decode()
    assert "shares its database with other servers" in page
    assert 'action="/sources/follow"' not in page
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    reply = pair[0].request("POST", "/sources/follow", b"repo=acme/skills", kind)
    assert reply.status == 403
    assert b"SKILLHALL_PROMPTS_REPO" in reply.body


def test_both_servers_send_equal_bytes_and_etags(pair: list[Replica]) -> None:
    first, second = pair
    name = new_name()
    files = skill_files(name, "same") | {f"{name}/b.bin": bytes(range(256)), f"{name}/.env": b"x"}
    assert first.import_skills(files).status == 201
    wait_until(lambda: name in second.ids())
    replies = [replica.request("GET", f"{SKILLS}/{name}") for replica in pair]
    assert replies[0].json["data"] == replies[1].json["data"]
    assert replies[0].headers["ETag"] == replies[1].headers["ETag"]
    digests = {file["path"]: file["digest"] for file in replies[1].json["data"]["files"]}
    assert digests == {
        path.removeprefix(f"{name}/"): f"sha256:{hashlib.sha256(data).hexdigest()}"
        for path, data in files.items()
        if not path.endswith(".env")
    }
    lists = [replica.request("GET", SKILLS).headers["ETag"] for replica in pair]
    assert lists[0] == lists[1]


def test_added_skill_reserves_its_id_on_both_servers(pair: list[Replica]) -> None:
    first, second = pair
    name = new_name()
    form = {"id": name, "name": name, "description": "Takes notes.", "body": "Take notes."}
    assert first.request("POST", SKILLS, form).status == 201
    assert second.request("POST", SKILLS, form).code == "CONFLICT"
    assert second.import_skills(skill_files(name, "x")).code == "CONFLICT"
    wait_until(lambda: second.body(name) == "Take notes.")


def test_archive_with_several_skills_is_imported_atomically(pair: list[Replica]) -> None:
    first, second = pair
    taken, free = new_name(), new_name("a")
    assert first.import_skills(skill_files(taken, "first")).status == 201
    both = {f"x/{path}": data for path, data in skill_files(free, "x").items()}
    both |= {f"x/{path}": data for path, data in skill_files(taken, "x").items()}
    assert second.import_skills(both).code == "CONFLICT"
    wait_until(lambda: taken in second.ids())
    assert free not in first.ids() | second.ids()
    assert len(second.import_skills(both, "?replace=true").json["data"]["imported"]) == 2
    wait_until(lambda: free in first.ids())
    assert first.body(taken) == "x"


@pytest.mark.parametrize("time", range(3))
def test_concurrent_imports_of_one_id_have_one_winner(time: int, pair: list[Replica]) -> None:
    name = new_name()
    with ThreadPoolExecutor(2) as pool:
        futures = [
            pool.submit(item.import_skills, skill_files(name, item.folder.name)) for item in pair
        ]
        statuses = [future.result().status for future in futures]
    assert sorted(statuses) == [201, 409]
    winner = pair[statuses.index(201)].folder.name
    wait_until(lambda: {item.body(name) for item in pair} == {winner})


def test_upload_is_rendered_by_both_servers(pair: list[Replica]) -> None:
    first, second = pair
    source, path = new_name("team"), f"{PROMPTS}/hello?source="

    def upload(replica: Replica, body: str, content_hash: str) -> str:
        data = base64.b64encode(make_skill_md("hello", "Says hello.", body)).decode()
        upload_fields = {"source": source, "contentHash": content_hash}
        files = [{"path": "hello.md", "content": data}]
        reply = replica.request("POST", f"{PROMPTS}/sources", {**upload_fields, "files": files})
        return str(reply.json["data"]["status"])

    def text(replica: Replica) -> str:
        reply = replica.request("POST", f"{path}{source}")
        messages = reply.json["data"]["messages"] if reply.status == 200 else []
        return "".join(message["content"]["text"] for message in messages)

    assert second.request("POST", f"{path}{source}").status == 400
    assert upload(first, "Hello.", "1") == "ingested"
    assert upload(second, "Ignored.", "1") == "unchanged"
    wait_until(lambda: text(second) == "Hello.")
    assert upload(second, "Bye.", "2") == "ingested"
    wait_until(lambda: text(first) == "Bye.")


def test_token_is_valid_on_both_servers_until_revoked(
    pair: list[Replica],
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run_token_command(*arguments: str) -> str:
        assert run(["token", *arguments]) == 0
        return capsys.readouterr().out.strip()

    def statuses(token: str) -> set[int]:
        headers = {"Authorization": f"Bearer {token}"}
        return {item.request("GET", SKILLS, headers=headers).status for item in pair}

    monkeypatch.setenv("SKILLHALL_DATABASE_URL", database)
    label = new_name("laptop")
    token = run_token_command("new", label)
    wait_until(lambda: statuses(token) == {200})
    assert statuses(f"{token}x") == {401}
    run_token_command("revoke", label)
    wait_until(lambda: statuses(token) == {401})
    assert statuses(TOKEN) == {200}
    assert not any(token in item.log for item in pair)


def test_revoked_token_ends_its_sessions_and_streams_everywhere(
    pair: list[Replica],
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SKILLHALL_DATABASE_URL", database)
    label = new_name("laptop")
    assert run(["token", "new", label]) == 0
    token = capsys.readouterr().out.strip()
    bearer = {"Authorization": f"Bearer {token}"}
    wait_until(
        lambda: {item.request("GET", SKILLS, headers=bearer).status for item in pair} == {200}
    )
    cookies = [{"Cookie": sign_in(item, token)} for item in pair]
    # A session is valid on every server, whichever of them issued it.
    clients = [Replica(item.folder, {}, headers, item.port) for item in pair for headers in cookies]
    clients += [Replica(item.folder, {}, bearer, item.port) for item in pair]
    with ExitStack() as stack:
        open_streams = [stack.enter_context(client.events()) for client in clients]
        remaining = stack.enter_context(pair[0].events())
        assert run(["token", "revoke", label]) == 0
        for stream in open_streams:
            assert {event["kind"] for event in stream} <= {"tokens-changed"}
        for client in clients:
            assert client.request("GET", SKILLS).status == 401
        session = pair[1].request("POST", SESSIONS, {"name": new_name("session")}).json["data"]
        assert next(event for event in remaining if session["id"] in json.dumps(event))


def test_sign_out_ends_copies_of_the_cookie_on_both_servers(pair: list[Replica]) -> None:
    cookie, other = ({"Cookie": sign_in(item, TOKEN)} for item in pair)
    clients = [Replica(item.folder, {}, cookie, item.port) for item in pair]
    others = [Replica(item.folder, {}, other, item.port) for item in pair]
    with ExitStack() as stack:
        open_streams = [stack.enter_context(client.events()) for client in clients]
        reply = clients[0].request("POST", "/sign-out", b"", FORM)
        assert (reply.status, reply.headers["Location"]) == (303, "/sign-in")
        for stream in open_streams:  # they end
            assert {event["kind"] for event in stream} <= {"tokens-changed"}
    assert [client.request("GET", SKILLS).status for client in clients] == [401, 401]
    assert [client.request("GET", SKILLS).status for client in others] == [200, 200]


def test_sign_ins_survive_kills_and_ended_ones_stay_ended(database: str, tmp_path: Path) -> None:
    variables = {"SKILLHALL_DATABASE_URL": database, "SKILLHALL_AUTH_TOKEN": TOKEN}
    replica = ForkedReplica(tmp_path, variables)
    replica.start()
    try:
        cookies = [{"Cookie": sign_in(replica, TOKEN)} for _ in range(2)]
        assert replica.request("POST", "/sign-out", b"", {**FORM, **cookies[0]}).status == 303
        replica.stop(signal.SIGKILL)
        replica.start()
        statuses = [replica.request("GET", SKILLS, headers=cookie).status for cookie in cookies]
        assert statuses == [401, 200]
        replica.stop(signal.SIGKILL)
        replica.variables = {**variables, "SKILLHALL_AUTH_TOKEN": "another-token-of-the-operator"}
        replica.start()
        assert replica.request("GET", SKILLS, headers=cookies[1]).status == 401
    finally:
        replica.stop()


def test_use_on_any_server_is_listed(
    pair: list[Replica],
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SKILLHALL_DATABASE_URL", database)
    label = new_name("ci")

    def read_use() -> str | None:
        assert run(["token", "list", "--json"]) == 0
        tokens = json.loads(capsys.readouterr().out)["data"]["tokens"]
        [used] = [token["used"] for token in tokens if token["label"] == label]
        return None if used is None else str(used)

    assert run(["token", "new", label, "--scope", "read"]) == 0
    bearer = {"Authorization": f"Bearer {capsys.readouterr().out.strip()}"}
    assert read_use() is None
    before = datetime.now(UTC).replace(microsecond=0)
    wait_until(lambda: pair[1].request("GET", SKILLS, headers=bearer).status == 200)
    assert pair[1].request("POST", SKILLS, {"id": "x"}, bearer).status == 403
    used = datetime.fromisoformat(str(wait_until(read_use)))
    assert before <= used <= datetime.now(UTC)


def test_change_of_a_user_reaches_both_servers_within_a_second(
    pair: list[Replica],
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SKILLHALL_DATABASE_URL", database)
    name = new_name("dev")

    def call(*arguments: str) -> str:
        assert run([*arguments]) == 0
        return capsys.readouterr().out.strip()

    code = call("user", "add", name, "--role", "author").partition("#")[2]
    fields = {"code": code, "password": PASSWORD, "repeated": PASSWORD}
    joined = send_request(pair[0].port, "POST", "/join", urlencode(fields).encode(), FORM)
    cookies = joined.headers.get_all("Set-Cookie") or []
    [cookie] = [text for text in cookies if text.startswith("skillhall_session=")]
    bearer = call("token", "new", name, "--owner", name)
    clients = [
        (replica.port, headers)
        for replica in pair
        for headers in ({"Cookie": cookie.partition(";")[0]}, {"Authorization": f"Bearer {bearer}"})
    ]

    def statuses(method: str = "GET") -> set[int]:
        body = {"id": "", "name": "x", "description": "x"} if method == "POST" else None
        return {
            send_request(port, method, SKILLS, body, headers).status for port, headers in clients
        }

    def expect(method: str, status: int) -> None:
        changed = time.monotonic()
        wait_until(lambda: statuses(method) == {status})
        assert time.monotonic() - changed < 1 + SLACK

    wait_until(lambda: statuses() == {200})
    assert statuses("POST") == {400}  # the role allows it; the id does not
    call("user", "role", name, "reader")
    expect("POST", 403)
    assert statuses() == {200}
    call("user", "disable", name)
    expect("GET", 401)
    call("user", "remove", name)


def sign_in(replica: Replica, token: str) -> str:
    """Sign in with a token and return the cookie."""
    reply = send_request(replica.port, "POST", "/sign-in", f"token={token}".encode(), FORM)
    assert reply.status == 303
    return str(reply.headers["Set-Cookie"]).partition(";")[0]


def test_session_events_reach_both_servers(pair: list[Replica]) -> None:
    first, second = pair
    with second.events() as events:
        session = first.request("POST", SESSIONS, {"name": new_name("session")}).json["data"]
        event = next(event for event in events if session["id"] in json.dumps(event))
    assert event["revision"] == session["revision"]
    path = f"{SESSIONS}/{session['id']}"
    with first.events(f"?session={session['id']}") as events:
        block = {"type": "note", "content": "Hello."}
        assert second.request("POST", f"{path}/blocks", block).status == 201
        assert next(events)["revision"] == event["revision"] + 1
    assert "Hello." in first.request("GET", f"{path}/blocks").body.decode()


def test_share_command_copies_local_skills_to_the_database(
    pair: list[Replica], database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = new_name()
    make_skill(tmp_path / ".agents" / "skills", name, files={"words.txt": b"mine"})
    arguments = ["local", "share", "--root", str(tmp_path)]
    assert run(arguments) == 3  # no PostgreSQL is configured
    monkeypatch.setenv("SKILLHALL_DATABASE_URL", database)
    assert run(arguments) == 0
    for item in pair:
        wait_until(lambda item=item: name in item.ids())  # type: ignore[misc]
        assert item.request("GET", f"{SKILLS}/{name}/files/words.txt").body == b"mine"
    assert run(arguments) == 6
    assert run([*arguments, "--replace"]) == 0


@contextmanager
def lock_table(database: str, table: str) -> Iterator[Callable[[], bool]]:
    """Lock a table; yield a function that returns whether a writer waits for it."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND database ="
    current = "(SELECT oid FROM pg_database WHERE datname = current_database())"
    with closing(psycopg.connect(database)) as holder, psycopg.connect(database) as observer:
        holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
        observer.autocommit = True
        yield lambda: observer.execute(f"{waiting} {current}".encode()).fetchone() != (0,)


@pytest.mark.parametrize("table", ["shared_skill_files", "events"])
def test_server_killed_during_an_import_leaves_nothing(
    table: str, pair: list[Replica], database: str
) -> None:
    name = new_name()
    first, victim = pair
    new = skill_files(name, "new")
    assert victim.import_skills(skill_files(name, "old")).status == 201
    wait_until(lambda: first.body(name) == "old")
    with lock_table(database, table) as is_reached, ThreadPoolExecutor(1) as pool:
        future = pool.submit(victim.import_skills, new, "?replace=true")
        wait_until(is_reached)
        victim.stop(signal.SIGKILL)
        assert isinstance(future.exception(DEADLINE), OSError | HTTPException)
    assert first.body(name) == "old"
    # The killed server holds no locks, and it can be started again.
    assert first.import_skills(new, "?replace=true").status == 201
    victim.start()
    assert victim.body(name) == "new"


def test_imported_skills_survive_restarts_and_cleared_caches(pair: list[Replica]) -> None:
    first, second = pair
    name, other_name = new_name(), new_name()
    assert first.import_skills(skill_files(name, "body")).status == 201
    first.stop(signal.SIGKILL)
    wait_until(lambda: second.body(name) == "body")
    assert second.import_skills(skill_files(other_name, "later")).status == 201
    second.stop()
    shutil.rmtree(second.folder / "cache")
    first.start()
    second.start()
    assert first.ids() == second.ids() >= {name, other_name}
    assert (first.body(other_name), second.body(name)) == ("later", "body")
    # Caches may be cleared at any time, even while the server runs.
    shutil.rmtree(first.folder / "cache" / "shared")
    wait_until(lambda: first.body(other_name) == "later")


@pytest.fixture
def freezing(pair: list[Replica], database: str, tmp_path: Path) -> Iterator[Replica]:
    """Third server, which stops itself in its next change."""
    variables = {
        **pair[0].variables,
        FREEZE_FILE: str(tmp_path / "freeze"),
        "SKILLHALL_DATABASE_TIMEOUT": "4",
        "PYTHONPATH": str(ROOT),
    }
    command = (sys.executable, "-m", "tests.support.freezing_server")
    server = Replica(tmp_path / "third", variables, BEARER, command=command)
    try:
        server.start()
        yield server
    finally:
        server.stop(signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux has /proc")
def test_frozen_server_stops_no_other_server(pair: list[Replica], freezing: Replica) -> None:
    def create_session() -> str:
        reply = pair[0].request("POST", SESSIONS, {"name": new_name("session")})
        return f"{SESSIONS}/{reply.json['data']['id']}/blocks"

    block = {"type": "note", "content": "Hello."}
    locked, other = create_session(), create_session()
    file = Path(freezing.variables[FREEZE_FILE])
    file.write_text(str(NEVER), encoding="ascii")
    assert freezing.request("POST", locked, block).status == 201
    last = file.with_suffix(".count").read_text(encoding="ascii")
    file.write_text(last, encoding="ascii")  # all locks are held before the commit
    with ThreadPoolExecutor(1) as pool:
        change = pool.submit(freezing.request, "POST", locked, block)
        wait_until(lambda: process_state(freezing.pid) == "T")
        assert pair[0].request("POST", other, block).status == 201
        assert pair[0].request("POST", locked, block).status == 201
        assert pair[0].get_readiness()["success"]
        os.kill(freezing.pid, signal.SIGCONT)
        assert change.result(DEADLINE).status == 503
    assert len(pair[1].request("GET", locked).json["data"]["blocks"]) == 2


def process_state(pid: int) -> str:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return stat.rpartition(")")[2].split()[0]


def test_database_outage_is_reported_and_recovered(tmp_path: Path) -> None:
    postgres = PostgresServer()
    postgres.start()
    try:
        variables = {"SKILLHALL_DATABASE_URL": postgres.url, "SKILLHALL_AUTH_TOKEN": TOKEN}
        with replicas(tmp_path, **variables) as [first, second]:
            first.headers = second.headers = BEARER
            assert first.import_skills(skill_files("pdf", "body")).status == 201
            wait_until(lambda: second.body("pdf") == "body")
            postgres.stop()
            for replica in (first, second):
                response = replica.import_skills(skill_files("new", "x"))
                assert (response.status, response.code) == (503, "DB_UNAVAILABLE")
                assert int(response.headers["Retry-After"]) > 0
                assert replica.body("pdf") == "body"
                assert replica.request("GET", PROMPTS).status == 200
                assert replica.request("GET", "/healthz").status == 200
                assert "database" in replica.get_readiness()["error"]["details"]
            second.stop()
            second.start()  # without a database
            assert second.body("pdf") == "body"
            assert second.import_skills(skill_files("new", "x")).status == 503
            postgres.start()
            wait_until(
                lambda: first.import_skills(skill_files("new", "x"), "?replace=true").status == 201
            )
            wait_until(lambda: second.body("new") == "x")
            assert second.import_skills(skill_files("more", "y")).status == 201
            wait_until(lambda: first.body("more") == "y")
            assert all(replica.get_readiness()["success"] for replica in (first, second))
            assert "Traceback" not in first.log + second.log
    finally:
        postgres.delete()


def test_server_that_cannot_know_whether_it_has_users_requires_a_credential(
    tmp_path: Path,
) -> None:
    unreachable = "postgresql://nobody@127.0.0.1:1/none"
    replica = ForkedReplica(tmp_path, {"SKILLHALL_DATABASE_URL": unreachable})
    replica.start()
    try:
        assert replica.request("GET", SKILLS).status == 401
        assert replica.request("GET", "/healthz").status == 200
    finally:
        replica.stop()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_push_refreshes_both_servers(postgres: str, tmp_path: Path) -> None:
    database = make_postgres_database(postgres, f"pushes_{secrets.token_hex(4)}")
    repo = GitRepo(tmp_path / "served/acme/prompts.git")

    def commit(text: str) -> None:
        repo.commit({"hello.md": make_skill_md("hello", text, text)})

    def get_description(replica: Replica) -> str:
        return str(replica.request("POST", f"{PROMPTS}/hello").json["data"]["description"])

    commit("first")
    with run_git_server(tmp_path / "served") as site:
        url = site.url("acme/prompts.git")
        variables = {
            "SKILLHALL_ALLOW_NETWORKS": "127.0.0.0/8",
            "SKILLHALL_PROMPTS_REPO": url,
            "SKILLHALL_WEBHOOK_SECRET": SECRET,
            "SKILLHALL_DATABASE_URL": database,
        }
        with replicas(tmp_path, **variables) as [first, second]:
            wait_until(lambda: get_description(first) == get_description(second) == "first")
            commit("second")
            assert first.request("POST", f"{PROMPTS}/refresh").status == 200
            wait_until(lambda: get_description(second) == "second")
            commit("third")
            payload = {"ref": "refs/heads/main", "repository": {"clone_url": url}}
            body = json.dumps(payload).encode()
            signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
            headers = {"X-GitHub-Event": "push", "X-Hub-Signature-256": signature}
            assert second.request("POST", "/api/v1/webhooks/git", body, headers).status == 202
            wait_until(lambda: get_description(first) == get_description(second) == "third")
