"""The audit log of a server: what is recorded, and how it is read."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from skillhall._internal.asgi import Services
from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.settings import Secret, ServerSettings, Settings, read_os_user
from skillhall._internal.storage.sql.audit_rows import allow_audit_deletion
from skillhall._internal.wiring.database import DatabaseServices, open_database_services
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection
from skillhall._internal.wiring.workspace import open_lazy_workspace
from tests.support.cli_sandbox import CliSandbox
from tests.support.replicas import SKILLS, wait_until
from tests.support.servers import MemoryTokens, RunningServer, run_server

OPERATOR_TOKEN = "correct-horse-battery-staple"  # noqa: S105 - only for tests
AUDIT = "/api/v1/audit"
PDF = {"id": "pdf", "name": "pdf", "description": "Reads.", "body": "old"}


@pytest.fixture
def services(tmp_path: Path) -> Iterator[DatabaseServices]:
    with closing(open_database_services(make_settings(tmp_path))) as opened:
        yield opened


@pytest.fixture
def tokens() -> MemoryTokens:
    return MemoryTokens()


@pytest.fixture
def server(
    tmp_path: Path, services: DatabaseServices, tokens: MemoryTokens
) -> Iterator[RunningServer]:
    settings = make_settings(tmp_path)
    with (
        closing(open_prompt_service(settings, services=services)) as prompts,
        closing(open_collection(settings, prompts, services)) as collection,
        run_server(
            settings=settings,
            services=Services(
                prompts,
                collection,
                open_lazy_workspace(settings, services),
                accepted_tokens=tokens,
                sign_ins=services.sign_ins,
                audit=services.audit,
            ),
        ) as running,
    ):
        yield running


def make_settings(folder: Path) -> Settings:
    (folder / "run").mkdir(exist_ok=True)
    return Settings(
        working_directory=str(folder / "run"),
        cache_directory=str(folder / "cache"),
        data_directory=str(folder / "data"),
        server=ServerSettings(port="0", auth_token=Secret(OPERATOR_TOKEN)),
    )


def read_rows(server: RunningServer, query: str = "") -> list[dict[str, Any]]:
    reply = server.request("GET", f"{AUDIT}?{query}")
    assert reply.status == 200, reply.body
    return [json.loads(line) for line in reply.body.splitlines()]


def list_actions(server: RunningServer) -> list[tuple[str, str]]:
    return [(row["action"], row["subject"]) for row in read_rows(server)]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_changes_by_rest_have_rows_with_their_actor(
    server: RunningServer, tokens: MemoryTokens
) -> None:
    tokens.add("skh_writer", scopes=(AccessScope.READ, AccessScope.WRITE))
    headers = {**bearer("skh_writer"), "X-Request-Id": "request-1"}
    assert server.request("POST", SKILLS, PDF, headers).status == 201
    digest = server.request("GET", f"{SKILLS}/pdf").json["data"]["digest"]
    edit = {"name": "pdf", "description": "Reads.", "body": "new", "digest": digest}
    change = server.request("PUT", f"{SKILLS}/pdf", edit).json["data"]["change"]
    assert server.request("POST", f"/api/v1/changes/{change}/undo").status == 200
    assert server.request("DELETE", f"{SKILLS}/pdf").status == 200
    session = server.request("POST", "/api/v1/sessions", {"name": "s"}).json["data"]["id"]
    block = {"type": "note", "content": "not recorded"}
    assert server.request("POST", f"/api/v1/sessions/{session}/blocks", block).status == 201
    files = [{"path": "a.md", "content": "QQ=="}]
    upload = {"source": "up", "files": files}
    assert server.request("POST", "/api/v1/prompts/sources", upload).status == 200
    assert list_actions(server) == [
        ("skill.add", "pdf"),
        ("skill.edit", "pdf"),
        ("skill.undo", "pdf"),
        ("skill.delete", "pdf"),
        ("session.create", session),
        ("source.upload", "up"),
    ]
    first, second, third, *_ = read_rows(server)
    assert (first["token"] != "", first["via"], first["address"]) == (True, "rest", "127.0.0.1")
    assert (first["request_id"], first["digest_after"]) == ("request-1", digest)
    assert (second["actor"], second["token"], second["digest_before"]) == ("operator", "", digest)
    assert third["digest_after"] == digest


def test_changes_by_page_have_rows(server: RunningServer) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    body = b"id=pdf&name=pdf&description=Reads.&body=x"
    assert server.request("POST", "/skills/add", body, form).status == 303
    assert server.request("POST", "/skill/pdf/delete", b"", form).status == 303
    assert server.request("POST", "/sessions", b"name=s", form).status == 303
    rows = read_rows(server)
    assert [row["action"] for row in rows] == ["skill.add", "skill.delete", "session.create"]
    assert {row["via"] for row in rows} == {"web"}


def test_refused_request_is_recorded_once(
    server: RunningServer, services: DatabaseServices, tokens: MemoryTokens
) -> None:
    tokens.add("skh_reader", scopes=(AccessScope.READ,))
    for _ in range(3):
        assert server.request("POST", SKILLS, PDF, bearer("skh_reader")).status == 403
    [row] = wait_until(lambda: read_rows(server, "outcome=refused"))
    assert (row["action"], row["detail"]) == ("write-skills", {"method": "POST", "path": SKILLS})
    assert server.request("GET", AUDIT, headers=bearer("skh_reader")).status == 403
    services.audit.refusals.close()
    assert [row["detail"].get("repeated") for row in read_rows(server, "action=write-skills")] == [
        None,
        2,
    ]


def test_refused_mcp_request_names_the_token(server: RunningServer, tokens: MemoryTokens) -> None:
    tokens.add("skh_reporter", scopes=(AccessScope.REPORT,))
    body = {"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": {}}
    headers = {**bearer("skh_reporter"), "Accept": "application/json, text/event-stream"}
    assert server.request("POST", "/mcp", body, headers).status == 403
    [row] = wait_until(lambda: read_rows(server, "outcome=refused"))
    assert (row["via"], row["action"], row["token"] != "") == ("mcp", "read", True)


def test_log_is_exported_in_pages_as_json_lines_or_csv(server: RunningServer) -> None:
    for name in "abc":
        assert server.request("POST", SKILLS, {**PDF, "id": name}).status == 201
    reply = server.request("GET", f"{AUDIT}?limit=2&since=1h&action=skill")
    assert reply.headers["content-type"] == "application/jsonl"
    url = reply.headers["link"].removeprefix("<").partition(">")[0]
    last = server.request("GET", url)
    assert [json.loads(line)["subject"] for line in last.body.splitlines()] == ["c"]
    assert "link" not in last.headers
    text = server.request("GET", f"{AUDIT}?format=csv").body.decode()
    rows = [*csv.DictReader(io.StringIO(text))]
    assert [row["subject"] for row in rows] == ["a", "b", "c"]
    assert json.loads(rows[0]["detail"])
    for query in ("format=xml", "since=x", "after=-1", "limit=0"):
        assert server.request("GET", f"{AUDIT}?{query}").status in (400, 422), query


def test_page_shows_rows_and_filters_them(server: RunningServer) -> None:
    for name in ("first", "second"):
        server.request("POST", SKILLS, {**PDF, "id": name})
    page = server.request("GET", "/audit", headers={"Accept": "text/html"})
    assert page.status == 200
    assert page.body.index(b"second") < page.body.index(b"first")
    filtered = server.request("GET", "/audit?subject=first&action=skill.add&via=rest").body
    assert b"<bdi>first</bdi>" in filtered
    assert b"<bdi>second</bdi>" not in filtered
    assert b"subject=first&amp;action" in filtered or b"action=skill.add&amp;subject" in filtered
    assert server.request("GET", "/audit?since=never").status == 422
    assert server.request("GET", "/unknown", headers={"Accept": "text/html"}).status == 404
    chinese = server.request("GET", "/audit", headers={"Accept-Language": "zh"}).body.decode()
    assert "审计日志" in chinese


def test_readiness_tells_a_broken_chain(server: RunningServer, services: DatabaseServices) -> None:
    server.request("POST", SKILLS, PDF)
    assert server.request("GET", "/readyz").json["data"]["audit"] == "ok"
    wait_until(lambda: read_rows(server)[0]["hash"])

    def tamper(connection: Any) -> None:  # noqa: ANN401 - a connection
        with allow_audit_deletion(connection):
            connection.execute(text("UPDATE audit SET actor = 'x'"))

    services.database.write(tamper)
    services.audit.sealer.verify()
    reply = server.request("GET", "/readyz")
    assert (reply.status, reply.json["data"]["audit"]) == (200, "broken")
    assert "skillhall audit verify" in server.request("GET", "/audit").body.decode()


def test_skill_does_not_change_if_its_row_cannot_be_written(
    server: RunningServer, services: DatabaseServices
) -> None:
    services.database.write(lambda connection: connection.execute(text("DROP TABLE audit_seals")))
    services.database.write(lambda connection: connection.execute(text("DROP TABLE audit")))
    assert server.request("POST", SKILLS, PDF).status >= 500
    assert server.request("GET", f"{SKILLS}/pdf").status == 404


def test_commands_list_export_and_verify_the_log(sandbox: CliSandbox) -> None:
    assert sandbox.run("session", "new", "s").code == 0
    assert sandbox.run("session", "new", "t").code == 0
    listed = sandbox.run("audit", "list", "--action", "session", "--since", "1h")
    rows = [line.split("\t") for line in listed.out.splitlines()]
    actor = f"operator/{read_os_user()}"
    assert [row[2:5] for row in rows] == [[actor, "cli", "session.create"]] * 2
    assert sandbox.run("audit", "list", "--until", "2020-01-01").out == ""
    exported = sandbox.run("audit", "export").out.splitlines()
    assert [json.loads(line)["id"] for line in exported] == [1, 2]
    assert sandbox.run("audit", "export", "--format", "csv").out.startswith("id,at,actor,")
    assert len(sandbox.run("audit", "export", "--json").json["data"]["rows"]) == 2  # type: ignore[index]
    verified = sandbox.run("audit", "verify")
    # No server is running: commands seal their rows.
    assert (verified.code, verified.err) == (0, "2 rows verified, 0 not sealed yet\n")
    assert all(json.loads(line)["hash"] for line in exported)
    assert sandbox.run("audit", "list", "--since", "soon").code == 3


def test_every_command_that_changes_data_names_the_os_user(
    sandbox: CliSandbox, tmp_path: Path
) -> None:
    backup = str(tmp_path / "all.backup")
    commands = [
        "user add dev1",
        "user role dev1 author",
        "user disable dev1",
        "user enable dev1",
        "user link dev1",
        "token new ci --owner dev1",
        "token revoke ci",
        "user remove dev1",
        f"revoke sha256:{'0' * 64} --reason bad",
        f"revoke sha256:{'0' * 64} --reason good --undo",
        "session new s",
        "session delete s --yes",
        f"backup {backup}",
        f"restore {backup} --overwrite",
    ]
    for command in commands:
        assert sandbox.run(*command.split()).code == 0, command
    rows = [json.loads(line) for line in sandbox.run("audit", "export").out.splitlines()]
    assert {(row["actor"], row["token"], row["via"]) for row in rows} == {
        ("operator", read_os_user(), "cli")
    }
    assert [row["action"] for row in rows] == [
        *(f"user.{verb}" for verb in ("add", "role", "disable", "enable", "link")),
        *("token.create", "token.revoke", "user.remove", "skill.revoke", "skill.restore"),
        *("session.create", "session.delete", "backup.restore"),
    ]
    assert sandbox.run("audit", "verify").err.endswith("verified, 0 not sealed yet\n")


def test_verify_exits_with_1_and_names_the_row(
    sandbox: CliSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = make_settings(tmp_path)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", settings.data_directory)
    sandbox.run("session", "new", "s")
    with closing(open_database_services(settings)) as services:
        wait_until(lambda: services.audit.log.newest()[0]["hash"])
        head = services.audit.log.newest()[0]["hash"]
    assert sandbox.run("audit", "verify", "--head", head).code == 0
    missing = sandbox.run("audit", "verify", "--head", "0" * 64)
    assert (missing.code, "not in the chain" in missing.err) == (1, True)
    with closing(open_database_services(settings)) as services:

        def tamper(connection: Any) -> None:  # noqa: ANN401 - a connection
            with allow_audit_deletion(connection):
                connection.execute(text("UPDATE audit SET actor = 'x'"))

        services.database.write(tamper)
    broken = sandbox.run("audit", "verify", "--json")
    assert broken.code == 1
    assert broken.json["data"] == {
        **dict.fromkeys(("verified", "pending", "position"), 0),
        "hash": "",
        "valid": False,
        "row": 1,
        "problem": "this row or its seal was changed, or a row before it was removed",
    }


def test_tokens_and_sign_ins_have_rows(
    server: RunningServer, sandbox: CliSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SKILLHALL_DATA_DIR", make_settings(tmp_path).data_directory)
    assert sandbox.run("token", "new", "ci", "--scope", "read").code == 0
    assert sandbox.run("token", "revoke", "ci").code == 0
    form = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": ""}
    secret = b"token=not-the-right-one-at-all"
    assert server.request("POST", "/sign-in", secret, form).status == 401
    signed_in = server.request("POST", "/sign-in", f"token={OPERATOR_TOKEN}".encode(), form)
    assert signed_in.status == 303
    cookie = {**form, "Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
    assert server.request("POST", "/sign-out", b"", cookie).status == 303
    wait_until(lambda: read_rows(server, "outcome=refused"))
    rows = read_rows(server)
    found = {(row["action"], row["subject"], row["via"], row["outcome"]) for row in rows}
    assert found == {
        ("token.create", "ci", "cli", "done"),
        ("token.revoke", "ci", "cli", "done"),
        ("sign-in", "", "web", "refused"),
        ("sign-in", "operator", "web", "done"),
        ("sign-out", "operator", "web", "done"),
    }
    assert "not-the-right" not in json.dumps(rows)
