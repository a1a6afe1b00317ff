"""The command `skillhall user`, and a server with users."""

from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from skillhall._internal.cli.runner import run
from tests.support.cli_sandbox import CliSandbox
from tests.support.replicas import SKILLS, ForkedReplica, Replica, wait_until
from tests.support.servers import HttpResponse

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HTML = {"Accept": "text/html"}
PASSWORD = "purple ladder winter"  # noqa: S105 - of tests alone


def test_user_is_added_changed_and_removed(sandbox: CliSandbox) -> None:
    added = sandbox.run("user", "add", "dev1", "--role", "author", "--display", "Dev One")
    assert added.code == 0
    assert added.out.startswith("http://127.0.0.1:8321/join#")
    assert "works once, within 24 hours" in added.err
    assert sandbox.run("user", "list").out.split("\t")[:3] == ["dev1", "author", "invited"]
    assert "dev1 is now reviewer" in sandbox.run("user", "role", "dev1", "reviewer").err
    assert sandbox.run("user", "disable", "dev1").code == 0
    assert sandbox.run("user", "list").out.split("\t")[:3] == ["dev1", "reviewer", "disabled"]
    assert sandbox.run("user", "enable", "dev1").code == 0
    link = sandbox.run("user", "link", "dev1").out
    assert link.startswith("http://127.0.0.1:8321/join#")
    assert link != added.out
    assert sandbox.run("user", "remove", "dev1").code == 0
    assert sandbox.run("user", "list").out == ""


def test_json_output_has_no_secrets_but_the_link(sandbox: CliSandbox) -> None:
    data = sandbox.run("user", "add", "dev1", "--json").json["data"]
    assert isinstance(data, dict)
    link = data.pop("link")
    assert "/join#" in str(link)
    assert data.pop("tokens") == 0
    user = {"name": "dev1", "display": "", "role": "reader", "state": "invited", "issuer": ""}
    assert data == {**user, "subject": "", "created": data["created"], "seen": None}
    assert sandbox.run("user", "list", "--json").json["data"] == {"users": [data]}


def test_person_of_the_identity_provider_is_added_by_subject_or_link(
    sandbox: CliSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = sandbox.run("user", "add", "dev1", "--subject", "s1", "--json")
    assert (refused.code, refused.error["code"]) == (3, "invalid_argument")
    monkeypatch.setenv("SKILLHALL_OIDC_ISSUER", "https://id.example.org")
    added = sandbox.run("user", "add", "dev1", "--role", "author", "--subject", "s1")
    assert (added.code, added.out) == (0, "")
    assert "dev1 can now sign in at https://id.example.org" in added.err
    row = sandbox.run("user", "list").out.split("\t")
    assert row[:4] == ["dev1", "author", "invited", "https://id.example.org"]
    assert sandbox.run("user", "add", "dev2", "--subject", "s1").code == 6
    assert "sign in at https://id.example.org or set" in sandbox.run("user", "add", "dev2").err


def test_last_administrator_is_not_removed_while_there_are_users(sandbox: CliSandbox) -> None:
    sandbox.run("user", "add", "ada", "--role", "administrator")
    sandbox.run("user", "add", "dev1")
    result = sandbox.run("user", "remove", "ada", "--json")
    assert (result.code, result.error["code"]) == (3, "invalid_argument")
    assert "make another user an administrator first" in str(result.error)


def test_existing_tokens_of_the_new_user_are_mentioned(sandbox: CliSandbox) -> None:
    sandbox.run("token", "new", "ci", "--owner", "dev1")
    assert "1 existing token of dev1" in sandbox.run("user", "add", "dev1").err


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("add", "dev2", "--role", "root"), 2, "usage"),
        (("add", "Dev"), 3, "invalid_argument"),
        (("add", "operator"), 3, "invalid_argument"),
        (("add", "taken"), 6, "conflict"),
        (("role", "unknown", "author"), 4, "not_found"),
        (("role", "taken", "boss"), 2, "usage"),
        (("disable", "unknown"), 4, "not_found"),
        (("link", "unknown"), 4, "not_found"),
        (("remove", "unknown"), 4, "not_found"),
    ],
)
def test_errors_are_reported_with_code_and_command(
    arguments: tuple[str, ...], code: int, error: str, sandbox: CliSandbox
) -> None:
    sandbox.run("user", "add", "taken")
    result = sandbox.run("user", *arguments, "--json")
    assert (result.code, result.error["code"]) == (code, error)
    assert result.json["command"] == f"user {arguments[0]}"


def post(replica: Replica, path: str, **fields: str) -> HttpResponse:
    return replica.request("POST", path, urlencode(fields).encode(), FORM)


def test_first_user_turns_sign_in_on_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replica = ForkedReplica(tmp_path, {})
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    replica.start()
    try:
        assert replica.request("GET", SKILLS).status == 200
        assert replica.request("GET", "/sign-in").headers["Location"] == "/"
        assert run(["user", "add", "dev1", "--role", "author"]) == 0
        code = urlsplit(capsys.readouterr().out.strip()).fragment
        wait_until(lambda: replica.request("GET", SKILLS).status == 401)
        page = replica.request("GET", "/skills", headers=HTML)
        assert page.headers["Location"] == "/sign-in?next=/skills"
        assert b'name="password"' in replica.request("GET", "/sign-in", headers=HTML).body

        # The link sets a password and signs in, once.
        weak = post(replica, "/join", code=code, password=PASSWORD[:6], repeated=PASSWORD[:6])
        assert weak.status == 400
        assert b"at least 12 characters" in weak.body
        differing = post(replica, "/join", code=code, password=PASSWORD, repeated="x")
        assert b"passwords differ" in differing.body
        joined = post(replica, "/join", code=code, password=PASSWORD, repeated=PASSWORD)
        assert joined.status == 303
        again = post(replica, "/join", code=code, password=PASSWORD, repeated=PASSWORD)
        assert again.status == 404
        cookies = joined.headers.get_all("Set-Cookie") or []
        [cookie] = [text for text in cookies if text.startswith("skillhall_session=")]
        replica.headers = {"Cookie": cookie.partition(";")[0]}
        skill = {"id": "pdf", "name": "pdf", "description": "Reads."}
        assert replica.request("POST", SKILLS, skill).status == 201
        refused = post(replica, "/sources/refresh")
        assert refused.status == 403
        assert b"role &#39;author&#39; cannot change sources" in refused.body
        replica.headers = {}

        # Later, the name and the password do.
        wrong = post(replica, "/sign-in", name="dev1", password=PASSWORD[1:])
        assert wrong.status == 401
        assert b"Wrong name or password" in wrong.body
        wait_until(lambda: post(replica, "/sign-in", name="dev1", password=PASSWORD).status == 303)
        assert "Wrong" not in replica.log
        assert code not in replica.log
    finally:
        replica.stop()
