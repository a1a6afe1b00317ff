"""`skillhall token`, and a server on SQLite that accepts what it made."""

import sys
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from tests.support.cli_sandbox import CliSandbox
from tests.support.replicas import SKILLS, Replica, wait_until


def test_a_token_is_made_listed_and_revoked(sandbox: CliSandbox) -> None:
    made = sandbox.run("token", "new", "laptop")
    assert made.code == 0
    assert made.out.startswith("skh_")
    assert "shown only once" in made.err
    listed = sandbox.run("token", "list")
    assert "laptop" in listed.out
    assert made.out.strip() not in listed.out
    assert sandbox.run("token", "revoke", "laptop").code == 0
    assert sandbox.run("token", "list").out == ""


def test_scripts_get_one_object(sandbox: CliSandbox) -> None:
    made = sandbox.run("token", "new", "laptop", "--json").json
    assert made["command"] == "token new"
    data = made["data"]
    assert isinstance(data, dict)
    assert sorted(data) == ["created", "id", "label", "token"]
    listed = sandbox.run("token", "list", "--json").json["data"]
    assert listed == {"tokens": [{key: data[key] for key in ("id", "label", "created")}]}
    gone = sandbox.run("token", "revoke", str(data["id"]), "--json").json
    assert gone["data"] == {"revoked": data["id"]}


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("new", "taken"), 6, "conflict"),
        (("new", "two\nlines"), 3, "invalid_argument"),
        (("revoke", "nobody"), 4, "not_found"),
    ],
)
def test_what_cannot_be_done_is_told(
    words: tuple[str, ...], code: int, error: str, sandbox: CliSandbox
) -> None:
    sandbox.run("token", "new", "taken")
    told = sandbox.run("token", *words, "--json")
    assert (told.code, told.error["code"]) == (code, error)
    assert told.json["command"] == f"token {words[0]}"


def test_without_the_packages_for_it_the_database_says_how_to_get_them(
    sandbox: CliSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name for name in sys.modules if name.startswith("skillhall._internal.storage.sql")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    told = sandbox.run("token", "list", "--json")
    assert (told.code, told.error["code"]) == (2, "usage")
    assert "skillhall[server]" in told.error["hint"]


def test_a_server_on_sqlite_lets_in_whoever_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replica = Replica(tmp_path, {"SKILLHALL_AUTH_TOKEN": "the-token-of-the-operator"})
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    replica.start()
    try:
        assert run(["token", "new", "laptop"]) == 0
        token = capsys.readouterr().out.strip()
        replica.headers = {"Authorization": f"Bearer {token}"}
        wait_until(lambda: replica.request("GET", SKILLS).status == 200)
        form = {"id": "pdf", "name": "pdf", "description": "Reads."}
        assert replica.request("POST", SKILLS, form).status == 201
        assert (tmp_path / "work/.agents/skills/pdf/SKILL.md").is_file()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        signed_in = replica.request("POST", "/sign-in", f"token={token}".encode(), form)
        replica.headers = {"Cookie": signed_in.headers["Set-Cookie"].partition(";")[0]}
        with replica.events() as events:
            assert run(["token", "revoke", "laptop"]) == 0
            assert {event["kind"] for event in events} <= {"tokens-changed"}
        assert replica.request("GET", SKILLS).status == 401
        replica.headers = {"Authorization": f"Bearer {token}"}
        assert replica.request("GET", SKILLS).status == 401
    finally:
        replica.stop()
