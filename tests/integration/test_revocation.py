"""Revoked skills: a server stops serving them, and clients block them at the next check."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from skillhall import AgentSkills, Skills, discover_skills
from skillhall._internal.policy.trust.revocations import LIST_PATH
from tests.support.mcp_clients import list_all, open_stdio, run_client, stdio_command
from tests.support.project_cli import Cli, make_cli
from tests.support.servers import TOKEN
from tests.support.signatures import KEYS
from tests.support.skills import make_skill, make_skill_md
from tests.support.trust_server import TrustServer, run_trust_server

REASON = "sends keys to a stranger"
PDF = make_skill_md("pdf", "Reads PDF files.", "Read it.\n")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setenv("SKILLHALL_ALLOW_NETWORKS", "127.0.0.0/8")
    return make_cli(tmp_path, monkeypatch, capsys)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TrustServer]:
    """A server with one skill."""
    folder = tmp_path / "server"
    make_skill(folder / ".agents/skills", "pdf", data=PDF)
    with run_trust_server(folder) as running:
        yield running


@pytest.fixture
def added(cli: Cli, server: TrustServer) -> str:
    """The digest of the skill, which is installed from the server."""
    result = cli("add", f"{server.url}/api/v1/skills/pdf/files/SKILL.md", "--json")
    assert result.code == 0, result.err
    digest: str = server.http.request("GET", "/api/v1/skills/pdf").json["data"]["digest"]
    return digest


def revoke(server: TrustServer, **values: object) -> dict[str, Any]:
    body = {"skill": "pdf", "reason": REASON, **values}
    response = server.http.request("POST", "/api/v1/revocations", body)
    assert response.status == 201, response.body
    data: dict[str, Any] = response.json["data"]
    return data


def list_states(cli: Cli, *roots: str) -> dict[str, str]:
    skills = cli("list", "--json", *roots).data["skills"]
    return {skill["name"]: skill.get("trust", "") for skill in skills}


def test_server_stops_serving_a_revoked_skill(server: TrustServer) -> None:
    get, index = server.http.request, "/.well-known/agent-skills/index.json"
    assert [one["name"] for one in get("GET", index).json["skills"]] == ["pdf"]
    entry = revoke(server, instead="pdf@4")
    assert (entry["by"], entry["revoked"], entry["instead"]) == ("operator", True, "pdf@4")
    assert get("GET", index).json["skills"] == []
    for path in ("/api/v1/skills/pdf/archive", "/api/v1/skills/pdf/files/SKILL.md"):
        refused = get("GET", path)
        assert (refused.status, refused.json["error"]["code"]) == (403, "NOT_APPROVED")
        assert REASON in refused.json["error"]["message"]
    assert get("GET", "/.well-known/skills/pdf/SKILL.md").status == 403
    [row] = get("GET", "/api/v1/skills").json["data"]["skills"]
    assert row["revoked"]["reason"] == REASON
    assert get("GET", "/skill/pdf").status == 200
    held = get("GET", "/policy?show=held").body.decode()
    assert 'href="/skill/pdf"' in held
    assert 'Held <span class="count">1</span>' in held
    revoke(server, skill="", digest=entry["digest"], revoked=False)
    assert get("GET", "/api/v1/skills/pdf/archive").status == 200
    history = get("GET", "/api/v1/revocations").json["data"]["revocations"]
    assert [one["revoked"] for one in history] == [True, False]


def test_published_list_is_public_and_cached(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "pdf", data=PDF)
    with run_trust_server(tmp_path, token=TOKEN) as server:
        revoke(server)
        server.http.headers.clear()
        assert server.http.request("GET", "/api/v1/revocations").status == 401
        assert server.http.request("POST", "/api/v1/revocations", {}).status == 401
        answer = server.http.request("GET", LIST_PATH)
        document = json.loads(answer.body)
        assert [one["reason"] for one in document["revoked"]] == [REASON]
        assert b"operator" not in answer.body
        headers = {"If-None-Match": answer.headers["etag"]}
        same = server.http.request("GET", LIST_PATH, headers=headers)
        assert (same.status, same.body) == (304, b"")


def test_digest_with_hidden_files_and_without_them_are_revoked(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills", "pdf", data=PDF, files={".hidden": b"x"})
    with run_trust_server(tmp_path) as server:
        revoke(server)
        document = json.loads(server.http.request("GET", LIST_PATH).body)
        assert len({one["digest"] for one in document["revoked"]}) == 2


@pytest.mark.usefixtures("added")
def test_client_blocks_a_revoked_skill_at_the_next_check(
    cli: Cli, server: TrustServer, tmp_path: Path
) -> None:
    assert list_states(cli) == {"pdf": "approved"}
    revoke(server, instead="pdf@4")
    outdated = cli("outdated")
    assert f"pdf is revoked: {REASON}; use pdf@4 instead" in outdated.err
    assert list_states(cli) == {"pdf": "blocked"}
    assert cli("prompt").out == ""
    assert cli("read", "pdf").code == 3
    transport = open_stdio(stdio_command(), tmp_path / "log")
    assert run_client(transport, list_skill_names) == []


async def list_skill_names(client: Any) -> list[str]:  # noqa: ANN401 - the SDK's client
    return [row["name"] for row in await list_all(client, "skills/list", "skills")]


def test_revoked_skill_is_blocked_in_every_scope(
    cli: Cli, server: TrustServer, added: str, tmp_path: Path
) -> None:
    for folder in (tmp_path / "named", Path.home() / ".agents/skills", Path(".agents/skills")):
        make_skill(folder, "copy", data=PDF)
    named = str(tmp_path / "named")
    assert cli("trust", "copy", "--mine", "--yes").code == 0
    assert "Read it." in cli("read", "pdf", "--root", named).out
    assert revoke(server)["digest"] == added
    assert cli("advisories", "--check").code == 0
    assert {*list_states(cli).values()} == {"blocked"}
    assert list_states(cli, named) == {"pdf": "blocked"}
    assert cli("read", "pdf", "--root", named).code == 3
    assert cli("prompt", named).out == cli("prompt", "--profile", "skills-module", named).out == ""
    assert [*Skills.load(named)] == []
    assert [*discover_skills(named)] == []
    assert "pdf" not in AgentSkills.of(named).prompt()


def test_revoked_skill_is_not_installed(cli: Cli, server: TrustServer, tmp_path: Path) -> None:
    make_skill(tmp_path / "copy", "pdf", data=PDF)
    make_skill(server.skills, "other", data=make_skill_md("other", "Other."))
    assert cli("add", f"{server.url}/api/v1/skills/other/files/SKILL.md").code == 0
    revoke(server)
    result = cli("add", str(tmp_path / "copy" / "pdf"), "--json")
    assert result.code == 3
    assert "it is revoked" in result.out
    assert not Path(".agents/skills/pdf").exists()


def test_list_from_a_file_blocks_without_a_network(
    cli: Cli, server: TrustServer, added: str, tmp_path: Path
) -> None:
    old = server.http.request("GET", LIST_PATH).body
    revoke(server)
    new, file = server.http.request("GET", LIST_PATH).body, tmp_path / "revoked.json"
    file.write_bytes(new)
    server.http.stop()
    result = cli("advisories", str(file), "--json")
    assert [one["digest"] for one in result.data["revoked"]] == [added]
    assert [one["path"] for one in result.data["installed"]] == [".agents/skills/pdf"]
    assert cli("advisories").err.count(".agents/skills/pdf is revoked") == 1
    assert list_states(cli) == {"pdf": "blocked"}
    file.write_bytes(old)
    older = cli("advisories", str(file))
    assert (older.code, "is lower than the last known" in older.err) == (3, True)
    assert list_states(cli) == {"pdf": "blocked"}


@pytest.mark.usefixtures("added")
def test_older_and_malformed_lists_keep_the_last_one(cli: Cli, server: TrustServer) -> None:
    revoke(server)
    cli("outdated")
    known = json.loads(Path("../data/revocations.json").read_bytes())
    stored = known["servers"][server.url]
    stored["revocations"]["number"] += 10**9
    stored["etag"] = ""
    Path("../data/revocations.json").write_text(json.dumps(known), encoding="utf-8")
    assert f"{server.url}: the list of revocations is rejected" in cli("outdated").err
    assert list_states(cli) == {"pdf": "blocked"}


def test_mcp_starts_within_two_seconds_if_the_server_hangs(cli: Cli, tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        write_policy(f'[[server]]\nurl = "http://127.0.0.1:{silent.getsockname()[1]}"\n')
        make_skill(tmp_path / "named", "pdf", data=PDF)
        started = time.monotonic()
        assert cli("mcp", "--json", str(tmp_path / "named")).code == 0
        # Two seconds of waiting, and a slow machine. Other requests wait for ten seconds or more.
        assert time.monotonic() - started < 8
        silent.settimeout(0)
        silent.accept()[0].close()
        assert cli("mcp", "--json", str(tmp_path / "named")).code == 0
        with pytest.raises(BlockingIOError):  # it is not asked again for an hour
            silent.accept()


def write_policy(text: str) -> None:
    config = Path.home() / ".config/skillhall/policy.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"version = 1\n{text}", encoding="utf-8")


def test_policy_requires_a_signed_list(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "server.key").write_bytes(KEYS.private)
    folder = tmp_path / "server"
    make_skill(folder / ".agents/skills", "pdf", data=PDF)
    make_skill(tmp_path / "named", "pdf", data=PDF)
    with run_trust_server(folder, signing_key=str(tmp_path / "server.key")) as server:
        revoke(server)
        signer = '[[signer]]\nname = "acme"\nkey = "acme.pub"\n'
        write_policy(f'[[server]]\nurl = "{server.url}"\nsigner = ["acme"]\n{signer}')
        key = Path.home() / ".config/skillhall/acme.pub"
        key.write_bytes(KEYS.public)
        [one] = cli("advisories", "--check", "--json").data["lists"]
        assert (one["signer"], one["expired"]) == ("acme", False)
        assert list_states(cli, str(tmp_path / "named")) == {"pdf": "blocked"}
        file = tmp_path / "revoked.json"
        document = json.loads(server.http.request("GET", LIST_PATH).body)
        document["signatures"][0]["sig"] = document["signatures"][0]["sig"][:-8] + "AAAAAAA="
        file.write_text(json.dumps(document), encoding="utf-8")
        broken = cli("advisories", str(file), "--server", server.url)
        assert (broken.code, str(file) in broken.err, "signature" in broken.err) == (3, True, True)
        file.write_text('{"number": 9999999999}', encoding="utf-8")
        unsigned = cli("advisories", str(file), "--server", server.url)
        assert "the list is not signed by acme" in unsigned.err
        assert list_states(cli, str(tmp_path / "named")) == {"pdf": "blocked"}


def test_expired_list_warns_or_holds(cli: Cli, tmp_path: Path) -> None:
    make_skill(Path.home() / ".agents/skills", "pdf", data=PDF)
    document = {"number": 1, "issued": "2020-01-01T00:00:00Z", "expires": "2020-01-08T00:00:00Z"}
    file = tmp_path / "revoked.json"
    file.write_text(json.dumps({**document, "revoked": []}), encoding="utf-8")
    assert cli("advisories", str(file)).code == 0
    assert "has expired" in cli("mcp", "--check").err
    assert "pdf" in cli("prompt").out
    write_policy('stale = "hold"\n')
    held = cli("prompt")
    assert (held.out, "the list of revocations has expired: file" in held.err) == ("", True)
