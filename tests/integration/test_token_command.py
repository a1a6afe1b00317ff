"""The command `skillhall token`, and a SQLite server that accepts its tokens."""

import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from tests.support.cli_sandbox import CliSandbox
from tests.support.replicas import SKILLS, ForkedReplica, wait_until


def test_token_is_created_listed_and_revoked(sandbox: CliSandbox) -> None:
    created = sandbox.run("token", "new", "laptop")
    assert created.code == 0
    assert created.out.startswith("skh_")
    assert "shown only once" in created.err
    listed = sandbox.run("token", "list")
    assert "laptop" in listed.out
    assert created.out.strip() not in listed.out
    assert sandbox.run("token", "revoke", "laptop").code == 0
    assert sandbox.run("token", "list").out == ""


def test_json_output_is_one_object(sandbox: CliSandbox) -> None:
    created = sandbox.run("token", "new", "laptop", "--json").json
    assert created["command"] == "token new"
    data = created["data"]
    assert isinstance(data, dict)
    token = str(data.pop("token"))
    assert token.startswith("skh_")
    expected = {
        "label": "laptop",
        "owner": "operator",
        "scopes": ["read", "write", "review", "admin"],
        "expires": None,
        "used": None,
        "state": "active",
    }
    assert data == {"id": data["id"], "created": data["created"], **expected}
    listed = sandbox.run("token", "list", "--json").json["data"]
    assert listed == {"tokens": [data]}
    revoked = sandbox.run("token", "revoke", str(data["id"]), "--json").json
    assert revoked["data"] == {"revoked": data["id"]}


def test_token_has_an_owner_scopes_and_an_expiry(sandbox: CliSandbox) -> None:
    options = ("--owner", "dev1", "--scope", "write", "--scope", "report", "--expires", "90d")
    data = sandbox.run("token", "new", "ci", *options, "--json").json["data"]
    assert isinstance(data, dict)
    assert (data["owner"], data["scopes"]) == ("dev1", ["read", "write", "report"])
    created, expires = (datetime.fromisoformat(str(data[key])) for key in ("created", "expires"))
    assert timedelta(days=90, seconds=-1) < expires - created <= timedelta(days=90)
    row = sandbox.run("token", "list").out.strip().split("\t")
    assert row[3:] == ["dev1", "read,write,report", data["expires"], "-", "active"]


def test_revoked_tokens_are_listed_on_request(sandbox: CliSandbox) -> None:
    sandbox.run("token", "new", "laptop")
    sandbox.run("token", "revoke", "laptop")
    sandbox.run("token", "new", "laptop")
    rows = sandbox.run("token", "list", "--all").out.splitlines()
    assert [row.split("\t")[-1] for row in rows] == ["revoked", "active"]
    assert sandbox.run("token", "list").out.splitlines() == rows[1:]


@pytest.mark.parametrize("text", ["", "0d", "90", "d", "-1d", "1.5h", "1y", "9999999d", "１d"])
def test_invalid_lifetime_is_a_usage_error(text: str, sandbox: CliSandbox) -> None:
    result = sandbox.run("token", "new", "ci", "--expires", text, "--json")
    assert (result.code, result.error["code"]) == (2, "usage")
    assert sandbox.run("token", "list").out == ""


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("new", "ci", "--scope", "root"), 2, "usage"),
        (("new", "ci", "--owner", "two\nlines"), 3, "invalid_argument"),
        (("new", "ci", "--expires", "999999w"), 3, "invalid_argument"),
        (("new", "taken"), 6, "conflict"),
        (("new", "two\nlines"), 3, "invalid_argument"),
        (("revoke", "unknown"), 4, "not_found"),
    ],
)
def test_errors_are_reported_with_code_and_command(
    arguments: tuple[str, ...], code: int, error: str, sandbox: CliSandbox
) -> None:
    sandbox.run("token", "new", "taken")
    result = sandbox.run("token", *arguments, "--json")
    assert (result.code, result.error["code"]) == (code, error)
    assert result.json["command"] == f"token {arguments[0]}"


def test_missing_database_packages_are_reported_with_a_hint(
    sandbox: CliSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name
        for name in sys.modules
        if name.startswith(("skillhall._internal.storage.sql", "skillhall._internal.wiring"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    result = sandbox.run("token", "list", "--json")
    assert (result.code, result.error["code"]) == (2, "usage")
    assert "skillhall[server]" in result.error["hint"]


def test_server_accepts_a_new_token_until_it_is_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replica = ForkedReplica(tmp_path, {"SKILLHALL_AUTH_TOKEN": "the-token-of-the-operator"})
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    replica.start()
    try:
        assert run(["token", "new", "laptop"]) == 0
        token = capsys.readouterr().out.strip()
        replica.headers = {"Authorization": f"Bearer {token}"}
        wait_until(lambda: replica.request("GET", SKILLS).status == 200)
        form = {"id": "pdf", "name": "pdf", "description": "Reads."}
        assert replica.request("POST", SKILLS, form).status == 201
        assert (tmp_path / "run/.agents/skills/pdf/SKILL.md").is_file()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        signed_in = replica.request("POST", "/sign-in", f"token={token}".encode(), form)
        replica.headers = {"Cookie": signed_in.headers["Set-Cookie"].partition(";")[0]}
        with replica.events() as events:
            assert run(["token", "revoke", "laptop"]) == 0
            assert {event["kind"] for event in events} <= {"tokens-changed"}
        # Sign-ins and tokens are refreshed one after the other.
        wait_until(lambda: replica.request("GET", SKILLS).status == 401)
        replica.headers = {"Authorization": f"Bearer {token}"}
        wait_until(lambda: replica.request("GET", SKILLS).status == 401)
    finally:
        replica.stop()
