"""Several servers on one PostgreSQL: what one takes in, all serve."""

import base64
import hashlib
import hmac
import json
import re
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPException
from pathlib import Path

import psycopg
import pytest
from mcp import Client
from mcp_types import TextContent

from skillhall._internal.cli.runner import run
from tests.support.databases import make_postgres_database
from tests.support.git_server import GitRepo, run_git_server
from tests.support.mcp_clients import run_http_client
from tests.support.postgres import PostgresServer
from tests.support.replicas import (
    DEADLINE,
    PROMPTS,
    SKILLS,
    Replica,
    new_name,
    replicas,
    skill_files,
    wait_until,
)
from tests.support.servers import send_request
from tests.support.skills import make_skill, make_skill_md

TOKEN = "correct-horse-battery-staple"  # noqa: S105 - of tests alone
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SECRET = "webhook-secret-of-tests"  # noqa: S105 - of tests alone


@pytest.fixture(scope="module")
def database(postgres: str) -> str:
    """The address of a database that the servers of this module share."""
    return make_postgres_database(postgres, f"replicas_{secrets.token_hex(4)}")


@pytest.fixture(scope="module")
def pair(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Replica]]:
    """Two servers that ask for a token; they outlive their tests."""
    variables = {"SKILLHALL_DATABASE_URL": database, "SKILLHALL_AUTH_TOKEN": TOKEN}
    with replicas(tmp_path_factory.mktemp("pair"), **variables) as both:
        for one in both:
            one.headers = BEARER
        yield both


def body_by_rest(replica: Replica, name: str) -> str:
    return replica.body(name)


def body_by_file(replica: Replica, name: str) -> str:
    reply = replica.request("GET", f"{SKILLS}/{name}/files/data/words.txt")
    return reply.body.decode() if reply.status == 200 else ""


def body_by_mcp(replica: Replica, name: str) -> str:
    async def load(client: Client) -> str:
        # Without any skills there is no such tool.
        if not any(tool.name == "load_skill" for tool in (await client.list_tools()).tools):
            return ""
        loaded = await client.call_tool("load_skill", {"name": name})
        [text] = loaded.content
        assert isinstance(text, TextContent)
        body = re.search(r"^(first|second)$", text.text, re.MULTILINE)
        return body[0] if body else ""

    return run_http_client(replica.port, load, replica.headers)


# How a skill of a server is read; every surface belongs here.
READERS = [body_by_rest, body_by_file, body_by_mcp]


@pytest.mark.parametrize("read", READERS)
def test_a_skill_that_one_imports_is_served_by_the_other(
    pair: list[Replica], read: Callable[[Replica, str], str]
) -> None:
    one, other = pair
    name = new_name()
    assert one.import_skills(skill_files(name, "first")).status == 201
    assert read(one, name) == "first"
    wait_until(lambda: name in other.ids())
    assert read(other, name) == "first"
    assert other.import_skills(skill_files(name, "second"), "?replace=true").json["data"][
        "replaced"
    ] == [name]
    wait_until(lambda: read(one, name) == "second")
    assert one.request("DELETE", f"{SKILLS}/{name}").status == 200
    wait_until(lambda: name not in other.ids())
    assert read(other, name) == ""


def test_no_repository_is_added_that_the_other_would_not_know(pair: list[Replica]) -> None:
    page = pair[0].request("GET", "/sources").body.decode()
    assert "shares its database with other servers" in page
    assert 'action="/sources/follow"' not in page
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    reply = pair[0].request("POST", "/sources/follow", b"repo=acme/skills", kind)
    assert reply.status == 403
    assert b"SKILLHALL_PROMPTS_REPO" in reply.body


def test_both_serve_the_same_bytes_under_the_same_tags(pair: list[Replica]) -> None:
    one, other = pair
    name = new_name()
    files = skill_files(name, "same") | {f"{name}/b.bin": bytes(range(256)), f"{name}/.env": b"x"}
    assert one.import_skills(files).status == 201
    wait_until(lambda: name in other.ids())
    replies = [replica.request("GET", f"{SKILLS}/{name}") for replica in pair]
    assert replies[0].json["data"] == replies[1].json["data"]
    assert replies[0].headers["ETag"] == replies[1].headers["ETag"]
    told = {file["path"]: file["digest"] for file in replies[1].json["data"]["files"]}
    assert told == {
        path.removeprefix(f"{name}/"): f"sha256:{hashlib.sha256(data).hexdigest()}"
        for path, data in files.items()
        if not path.endswith(".env")
    }
    lists = [replica.request("GET", SKILLS).headers["ETag"] for replica in pair]
    assert lists[0] == lists[1]


def test_an_added_skill_is_everywhere_and_its_id_is_taken_everywhere(pair: list[Replica]) -> None:
    one, other = pair
    name = new_name()
    form = {"id": name, "name": name, "description": "Takes notes.", "body": "Take notes."}
    assert one.request("POST", SKILLS, form).status == 201
    assert other.request("POST", SKILLS, form).code == "CONFLICT"
    assert other.import_skills(skill_files(name, "x")).code == "CONFLICT"
    wait_until(lambda: other.body(name) == "Take notes.")


def test_of_many_skills_in_one_archive_all_come_or_none(pair: list[Replica]) -> None:
    one, other = pair
    taken, free = new_name(), new_name("a")
    assert one.import_skills(skill_files(taken, "first")).status == 201
    both = {f"x/{path}": data for path, data in skill_files(free, "x").items()}
    both |= {f"x/{path}": data for path, data in skill_files(taken, "x").items()}
    assert other.import_skills(both).code == "CONFLICT"
    wait_until(lambda: taken in other.ids())
    assert free not in one.ids() | other.ids()
    assert len(other.import_skills(both, "?replace=true").json["data"]["imported"]) == 2
    wait_until(lambda: free in one.ids())
    assert one.body(taken) == "x"


@pytest.mark.parametrize("time", range(3))
def test_of_two_that_import_one_id_at_once_one_wins(time: int, pair: list[Replica]) -> None:
    name = new_name()
    with ThreadPoolExecutor(2) as crowd:
        sent = [crowd.submit(one.import_skills, skill_files(name, one.folder.name)) for one in pair]
        statuses = [done.result().status for done in sent]
    assert sorted(statuses) == [201, 409]
    winner = pair[statuses.index(201)].folder.name
    wait_until(lambda: {one.body(name) for one in pair} == {winner})


def test_an_upload_through_one_is_rendered_by_the_other(pair: list[Replica]) -> None:
    one, other = pair
    source, place = new_name("team"), f"{PROMPTS}/hello?source="

    def upload(replica: Replica, body: str, content_hash: str) -> str:
        data = base64.b64encode(make_skill_md("hello", "Says hello.", body)).decode()
        sent = {"source": source, "contentHash": content_hash}
        files = [{"path": "hello.md", "content": data}]
        reply = replica.request("POST", f"{PROMPTS}/sources", {**sent, "files": files})
        return str(reply.json["data"]["status"])

    def text(replica: Replica) -> str:
        reply = replica.request("POST", f"{place}{source}")
        messages = reply.json["data"]["messages"] if reply.status == 200 else []
        return "".join(message["content"]["text"] for message in messages)

    assert other.request("POST", f"{place}{source}").status == 400
    assert upload(one, "Hello.", "1") == "ingested"
    assert upload(other, "Ignored.", "1") == "unchanged"
    wait_until(lambda: text(other) == "Hello.")
    assert upload(other, "Bye.", "2") == "ingested"
    wait_until(lambda: text(one) == "Bye.")


def test_a_token_opens_both_until_it_is_revoked(
    pair: list[Replica],
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def told(*words: str) -> str:
        assert run(["token", *words]) == 0
        return capsys.readouterr().out.strip()

    def statuses(token: str) -> set[int]:
        headers = {"Authorization": f"Bearer {token}"}
        return {one.request("GET", SKILLS, headers=headers).status for one in pair}

    monkeypatch.setenv("SKILLHALL_DATABASE_URL", database)
    label = new_name("laptop")
    token = told("new", label)
    wait_until(lambda: statuses(token) == {200})
    assert statuses(f"{token}x") == {401}
    told("revoke", label)
    wait_until(lambda: statuses(token) == {401})
    assert statuses(TOKEN) == {200}
    assert not any(token in one.log for one in pair)


def test_revoking_a_token_ends_the_browser_sessions_and_streams_it_opened_on_every_server(
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
    wait_until(lambda: {one.request("GET", SKILLS, headers=bearer).status for one in pair} == {200})
    cookies = [{"Cookie": signed_in(one, token)} for one in pair]
    # A session is valid on every server, whichever one issued it.
    guests = [Replica(one.folder, {}, headers, one.port) for one in pair for headers in cookies]
    guests += [Replica(one.folder, {}, bearer, one.port) for one in pair]
    with ExitStack() as streams:
        open_streams = [streams.enter_context(guest.events()) for guest in guests]
        kept = streams.enter_context(pair[0].events())
        assert run(["token", "revoke", label]) == 0
        for stream in open_streams:
            assert {event["kind"] for event in stream} <= {"tokens-changed"}
        for guest in guests:
            assert guest.request("GET", SKILLS).status == 401
        made = pair[1].request("POST", "/api/v1/sessions", {"name": new_name("desk")}).json["data"]
        assert next(event for event in kept if made["id"] in json.dumps(event))


def signed_in(replica: Replica, token: str) -> str:
    """The cookie that a browser gets for a token."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    reply = send_request(replica.port, "POST", "/sign-in", f"token={token}".encode(), form)
    assert reply.status == 303
    return str(reply.headers["Set-Cookie"]).partition(";")[0]


def test_a_change_of_a_session_through_one_is_heard_at_the_other(pair: list[Replica]) -> None:
    one, other = pair
    with other.events() as heard:
        made = one.request("POST", "/api/v1/sessions", {"name": new_name("desk")}).json["data"]
        found = next(event for event in heard if made["id"] in json.dumps(event))
    assert found["revision"] == made["revision"]
    place = f"/api/v1/sessions/{made['id']}"
    with one.events(f"?session={made['id']}") as heard:
        block = {"type": "note", "content": "Hello."}
        assert other.request("POST", f"{place}/blocks", block).status == 201
        assert next(heard)["revision"] == found["revision"] + 1
    assert "Hello." in one.request("GET", f"{place}/blocks").body.decode()


def test_skills_of_one_machine_are_shared_by_a_command(
    pair: list[Replica], database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = new_name()
    make_skill(tmp_path / ".agents" / "skills", name, files={"words.txt": b"mine"})
    words = ["local", "share", "--root", str(tmp_path)]
    assert run(words) == 3  # there is no PostgreSQL
    monkeypatch.setenv("SKILLHALL_DATABASE_URL", database)
    assert run(words) == 0
    for one in pair:
        wait_until(lambda one=one: name in one.ids())  # type: ignore[misc]
        assert one.request("GET", f"{SKILLS}/{name}/files/words.txt").body == b"mine"
    assert run(words) == 6
    assert run([*words, "--replace"]) == 0


@contextmanager
def held(database: str, table: str) -> Iterator[Callable[[], bool]]:
    """Hold a table: whoever writes into it stops there; the answer tells whether somebody did."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND database ="
    ours = "(SELECT oid FROM pg_database WHERE datname = current_database())"
    with closing(psycopg.connect(database)) as line, psycopg.connect(database) as observer:
        line.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
        observer.autocommit = True
        yield lambda: observer.execute(f"{waiting} {ours}".encode()).fetchone() != (0,)


@pytest.mark.parametrize("table", ["shared_skill_files", "events"])
def test_a_server_that_is_killed_amid_an_import_leaves_nothing_of_it(
    table: str, pair: list[Replica], database: str
) -> None:
    name = new_name()
    one, victim = pair
    new = skill_files(name, "new")
    assert victim.import_skills(skill_files(name, "old")).status == 201
    wait_until(lambda: one.body(name) == "old")
    with held(database, table) as is_reached, ThreadPoolExecutor(1) as crowd:
        sent = crowd.submit(victim.import_skills, new, "?replace=true")
        wait_until(is_reached)
        victim.stop(signal.SIGKILL)
        assert isinstance(sent.exception(DEADLINE), OSError | HTTPException)
    assert one.body(name) == "old"
    # Nothing that the killed one held stands in the way, and it comes back as if nothing was.
    assert one.import_skills(new, "?replace=true").status == 201
    victim.start()
    assert victim.body(name) == "new"


def test_what_was_imported_survives_all_servers_and_their_caches(pair: list[Replica]) -> None:
    one, other = pair
    first, second = new_name(), new_name()
    assert one.import_skills(skill_files(first, "body")).status == 201
    one.stop(signal.SIGKILL)
    wait_until(lambda: other.body(first) == "body")
    assert other.import_skills(skill_files(second, "meanwhile")).status == 201
    other.stop()
    shutil.rmtree(other.folder / "cache")
    one.start()
    other.start()
    assert one.ids() == other.ids() >= {first, second}
    assert (one.body(second), other.body(first)) == ("meanwhile", "body")
    # Caches may be cleared at any time, also of a server that runs.
    shutil.rmtree(one.folder / "cache" / "shared")
    wait_until(lambda: one.body(second) == "meanwhile")


def test_a_database_that_goes_away_is_told_and_comes_back_by_itself(tmp_path: Path) -> None:
    postgres = PostgresServer()
    postgres.start()
    try:
        with replicas(tmp_path, SKILLHALL_DATABASE_URL=postgres.url) as [one, other]:
            assert one.import_skills(skill_files("pdf", "body")).status == 201
            wait_until(lambda: other.body("pdf") == "body")
            postgres.stop()
            for replica in (one, other):
                refused = replica.import_skills(skill_files("new", "x"))
                assert (refused.status, refused.code) == (503, "DB_UNAVAILABLE")
                assert int(refused.headers["Retry-After"]) > 0
                assert replica.body("pdf") == "body"
                assert replica.request("GET", PROMPTS).status == 200
                assert replica.request("GET", "/healthz").status == 200
                assert "database" in replica.get_readiness()["error"]["details"]
            other.stop()
            other.start()  # without a database
            assert other.body("pdf") == "body"
            assert other.import_skills(skill_files("new", "x")).status == 503
            postgres.start()
            wait_until(
                lambda: one.import_skills(skill_files("new", "x"), "?replace=true").status == 201
            )
            wait_until(lambda: other.body("new") == "x")
            assert other.import_skills(skill_files("more", "y")).status == 201
            wait_until(lambda: one.body("more") == "y")
            assert [replica.get_readiness()["success"] for replica in (one, other)] == [True, True]
            assert "Traceback" not in one.log + other.log
    finally:
        postgres.delete()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_a_push_that_one_is_told_of_is_looked_for_by_the_other(
    postgres: str, tmp_path: Path
) -> None:
    database = make_postgres_database(postgres, f"pushes_{secrets.token_hex(4)}")
    repo = GitRepo(tmp_path / "served/acme/prompts.git")

    def commit(text: str) -> None:
        repo.commit({"hello.md": make_skill_md("hello", text, text)})

    def said(replica: Replica) -> str:
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
        with replicas(tmp_path, **variables) as [one, other]:
            wait_until(lambda: said(one) == said(other) == "first")
            commit("second")
            assert one.request("POST", f"{PROMPTS}/refresh").status == 200
            wait_until(lambda: said(other) == "second")
            commit("third")
            payload = {"ref": "refs/heads/main", "repository": {"clone_url": url}}
            body = json.dumps(payload).encode()
            mark = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
            headers = {"X-GitHub-Event": "push", "X-Hub-Signature-256": mark}
            assert other.request("POST", "/api/v1/webhooks/git", body, headers).status == 202
            wait_until(lambda: said(one) == said(other) == "third")
