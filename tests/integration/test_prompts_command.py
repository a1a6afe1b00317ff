"""`skillhall prompts` and its client, against a local server."""

import hashlib
import json
import ssl
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.cli.runner import run
from skillhall._internal.net.connection import NetworkSettings
from skillhall._internal.settings import Secret, Settings
from skillhall._internal.sources.server_api.prompt_client import PromptClient
from skillhall._internal.sources.server_api.rest_client import ServerConnection, ServerTimeouts
from skillhall.errors import ConfigInvalid, SourceTimedOut, SourceUnavailable
from tests.support.http_server import make_certificate, run_http_server
from tests.support.http_server import respond as respond_plain
from tests.support.projects import read_tree
from tests.support.prompt_server import (
    PROMPTS,
    FakePromptServer,
    make_file,
    respond,
    respond_error,
    respond_raw,
    run_prompt_server,
)

EMPTY = b'{"success": true, "data": {"prompts": [], "source": "x"}}'


class Prompts:
    """Runs the command, and keeps its last output."""

    def __init__(self, site: FakePromptServer, capsys: pytest.CaptureFixture[str]) -> None:
        self.site = site
        self.out = ""
        self.err = ""
        self._capsys = capsys

    def __call__(self, *arguments: str) -> int:
        code = run(["prompts", *arguments, "--server", self.site.url])
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *arguments: str) -> dict[str, Any]:
        assert self(*arguments, "--json") == 0, self.out
        report: dict[str, Any] = json.loads(self.out)
        assert report["command"] == f"prompts {arguments[0]}"
        data: dict[str, Any] = report["data"]
        return data


@pytest.fixture
def prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Prompts]:
    monkeypatch.chdir(tmp_path)
    with run_prompt_server() as site:
        yield Prompts(site, capsys)


def test_prompts_are_listed_with_their_arguments(prompts: Prompts) -> None:
    prompts.site.add_prompt("pdf", arguments=[{"name": "file", "required": True}])
    prompts.site.add_prompt("doc", description="Two\nlines \x1b[31m")
    assert prompts("list") == 0
    assert prompts.out == "pdf\tDoes it.\tfile\ndoc\tTwo lines \\x1b[31m\t\n"
    assert prompts.json("list", "--source", "team") == {
        "prompts": [
            {
                "name": "pdf",
                "description": "Does it.",
                "arguments": [{"name": "file", "description": "", "required": True}],
            },
            {"name": "doc", "description": "Two\nlines \x1b[31m", "arguments": []},
        ],
        "source": "team",
    }


def test_get_renders_the_arguments(prompts: Prompts) -> None:
    prompts.site.add_prompt(
        "a/b c", "Read {{file}}.", arguments=[{"name": "file", "required": True}]
    )
    assert prompts("get", "a/b c", "--arg", "file=x=y") == 0
    assert prompts.out == "Read x=y.\n"
    assert prompts.site.requests[-1].path == f"{PROMPTS}/a%2Fb%20c"
    assert prompts("get", "a/b c") == 3
    assert "Missing required arguments: file" in prompts.err
    assert prompts("get", "a/b c", "--arg", "file") == 2


@pytest.mark.parametrize("name", ["nope", "refresh", "sources", ".."])
def test_get_of_an_unknown_prompt_is_not_found(prompts: Prompts, name: str) -> None:
    assert prompts("get", name) == 4
    assert f"Prompt not found: {name}" in prompts.err


def test_get_writes_files_to_a_new_folder(prompts: Prompts, tmp_path: Path) -> None:
    prompts.site.add_prompt(
        "pdf", "Do.", make_file("run.sh", b"x"), make_file("a/b.bin", b"\0\xff")
    )
    assert prompts("get", "pdf", "--files", "deep/out") == 0
    expected = {"a/b.bin": (b"\0\xff", False), "run.sh": (b"x", True)}
    assert read_tree(tmp_path / "deep/out") == expected
    assert prompts("get", "pdf", "--files", "deep/out") == 6
    assert prompts.json("get", "pdf")["files"] == [
        {"path": "run.sh", "size": 1},
        {"path": "a/b.bin", "size": 2},
    ]


def test_get_with_a_hostile_path_writes_nothing(prompts: Prompts, tmp_path: Path) -> None:
    prompts.site.add_prompt("pdf", "Do.", make_file("ok", b"x"), make_file("../out.txt", b"x"))
    assert prompts("get", "pdf", "--files", "out") == 3
    assert list(tmp_path.iterdir()) == []


def test_refresh_reports_the_number_of_prompts(prompts: Prompts) -> None:
    prompts.site.add_prompt("pdf")
    assert prompts.json("refresh") == {
        "refreshed": True,
        "promptsLoaded": 1,
        "source": "built-in",
        "skipped": [],
    }
    assert prompts("refresh") == 0
    assert prompts.err == "1 prompt from built-in\n"


SKIPPED = {"name": "x", "path": "x\n.md", "code": "no-frontmatter", "message": "no block"}


def test_refresh_reports_skipped_prompts(prompts: Prompts) -> None:
    data = {"refreshed": True, "promptsLoaded": 1, "source": "team", "skipped": [SKIPPED]}
    prompts.site.overrides[f"{PROMPTS}/refresh"] = respond({**data, "skippedTotal": 1201})
    assert prompts("refresh") == 0
    assert prompts.err == (
        "x .md: skipped[no-frontmatter]: no block\n"
        "1200 more skipped\n"
        "1 prompt from team; 1201 skipped\n"
    )
    assert prompts.json("refresh")["skipped"] == [SKIPPED]


def test_refresh_fails_if_the_repository_is_unreachable(prompts: Prompts) -> None:
    data = {"refreshed": False, "reason": "the host is down", "promptsLoaded": 2, "source": "team"}
    prompts.site.overrides[f"{PROMPTS}/refresh"] = respond({**data, "skipped": []})
    assert prompts("refresh") == 5
    assert "not refreshed: the host is down" in prompts.err
    assert "2 prompts from team (a cached version)" in prompts.err
    assert prompts("refresh", "--json") == 5
    data = json.loads(prompts.out)["data"]
    assert (data["refreshed"], data["reason"]) == (False, "the host is down")


def test_upload_reports_skipped_prompts(prompts: Prompts, tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team/x.md").write_bytes(b"no block")
    data = {"source": "team", "fileCount": 1, "status": "ingested", "skipped": [SKIPPED]}
    prompts.site.overrides[f"{PROMPTS}/sources"] = respond(data)
    assert prompts("upload", "team", "--source", "team") == 0
    assert "x .md: skipped[no-frontmatter]: no block" in prompts.err
    assert prompts.json("upload", "team", "--source", "team")["skipped"] == [SKIPPED]


def test_list_reports_stale_prompts(prompts: Prompts) -> None:
    prompts.site.meta["stale"] = {"reason": "the host is down", "since": "2026-01-01T00:00:00Z"}
    assert prompts("list") == 0
    assert "a cached version: the host is down" in prompts.err
    assert prompts.json("list")["stale"] == "the host is down"


def test_upload_sends_all_files_with_one_hash(prompts: Prompts, tmp_path: Path) -> None:
    folder = tmp_path / "team"
    (folder / "pdf").mkdir(parents=True)
    (folder / "pdf/SKILL.md").write_bytes(b"\xff\0")
    (folder / "pdf/run.sh").write_bytes(b"x")
    (folder / "pdf/run.sh").chmod(0o755)
    (folder / ".hidden").write_bytes(b"x")
    (folder / "link.md").symlink_to("/etc/hostname")
    data = prompts.json("upload", "team", "--source", "acme")
    assert "link.md" in prompts.err
    body = prompts.site.requests[-1].body
    files = [(item["path"], b64decode(item["content"]), item["mode"]) for item in body["files"]]
    assert files == [("pdf/SKILL.md", b"\xff\0", 0o644), ("pdf/run.sh", b"x", 0o755)]
    lines = "".join(f"{p}\0{m:o}\0{hashlib.sha256(d).hexdigest()}\n" for p, d, m in files)
    expected = f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"
    assert body["contentHash"] == expected
    assert data == {
        "source": "acme",
        "contentHash": expected,
        "fileCount": 2,
        "status": "ingested",
        "skipped": [],
    }


@pytest.mark.parametrize(("count", "size"), [(101, 1), (2, 128 * 1024 + 1), (0, 0)])
def test_upload_beyond_the_limits_is_not_sent(
    prompts: Prompts, tmp_path: Path, count: int, size: int
) -> None:
    (tmp_path / "team").mkdir()
    for number in range(count):
        (tmp_path / f"team/{number}.md").write_bytes(b"x" * size)
    assert prompts("upload", "team", "--source", "acme") == 3
    assert prompts.site.requests == []


def test_upload_with_credentials_in_its_name_is_not_sent(prompts: Prompts, tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team/a.md").write_bytes(b"x")
    source = "https://me:pass-word@git.example.org/x"
    assert prompts("upload", "team", "--source", source) == 3
    assert prompts.site.requests == []
    assert "pass-word" not in prompts.err
    assert prompts("upload", "team", "--source", "alice@laptop") == 0
    assert prompts("list", "--source", "alice@laptop") == 0


@pytest.mark.parametrize(
    ("status", "code"), [(400, 3), (403, 8), (404, 4), (413, 3), (429, 5), (500, 5), (502, 5)]
)
def test_server_error_is_shown_with_its_exit_code(prompts: Prompts, status: int, code: int) -> None:
    prompts.site.overrides[PROMPTS] = respond_error(status, "X", "because\x1b[1m " + "long " * 100)
    assert prompts("list") == code
    assert prompts.err.startswith("error: 127.0.0.1: because\\x1b[1m long")
    assert len(prompts.err) < 400


def test_server_url_may_have_a_path(prompts: Prompts) -> None:
    prompts.site.overrides[f"/team{PROMPTS}"] = respond_raw(200, EMPTY)
    prompts.site.url += "/team/"
    assert prompts("list") == 0


def test_server_and_token_are_read_from_the_environment() -> None:
    assert Settings.read({}).client.server == "http://127.0.0.1:8321"
    env = {"SKILLHALL_SERVER": "https://a.example", "SKILLHALL_AUTH_TOKEN": "own"}
    client = Settings.read(env).client
    assert (client.server, client.token and client.token.reveal()) == ("https://a.example", "own")
    client = Settings.read({**env, "SKILLHALL_SERVER_TOKEN": "other"}).client
    assert client.token is not None
    assert client.token.reveal() == "other"
    assert "other" not in repr(ServerConnection.from_url(client.server, client.token))


def test_token_with_line_breaks_is_rejected() -> None:
    with pytest.raises(ConfigInvalid, match="SKILLHALL_SERVER_TOKEN") as error_info:
        ServerConnection.from_url("http://127.0.0.1", Secret("a\r\nX: y"))
    assert "X: y" not in str(error_info.value)


def test_slow_server_times_out(prompts: Prompts) -> None:
    prompts.site.overrides[PROMPTS] = prompts.site.never_respond
    timeouts = ServerTimeouts(response=NetworkSettings(total=0.2, idle=0.2))
    with pytest.raises(SourceTimedOut):
        PromptClient(ServerConnection.from_url(prompts.site.url, timeouts=timeouts)).list_prompts()


def test_response_beyond_the_limit_is_rejected(prompts: Prompts) -> None:
    prompts.site.overrides[PROMPTS] = respond({"prompts": [], "source": "x" * 2_000_000})
    server = ServerConnection(
        ServerConnection.from_url(prompts.site.url).url, max_response_bytes=1_000_000
    )
    with pytest.raises(SourceUnavailable, match="larger than 1000000 bytes"):
        PromptClient(server).list_prompts()


def test_certificate_is_verified(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    trusted = ssl.create_default_context(cafile=str(certificate))
    with run_http_server(context) as site:
        site.routes[PROMPTS] = respond_plain(body=EMPTY)
        url = site.url("", "localhost")
        with pytest.raises(SourceUnavailable, match="certificate"):
            PromptClient(ServerConnection.from_url(url)).list_prompts()
        timeouts = ServerTimeouts(connect=NetworkSettings(tls=trusted))
        client = PromptClient(ServerConnection.from_url(url, timeouts=timeouts))
        assert client.list_prompts().prompts == ()


@pytest.mark.parametrize(
    ("url", "git_token"),
    [
        ("https://prompts.example", "t"),
        ("http://127.0.0.1:1", "t"),
        ("http://[::1]:1", "t"),
        ("http://localhost", "t"),
        ("http://prompts.example", ""),
        ("http://127.0.0.1.example", ""),
    ],
)
def test_git_token_is_sent_only_over_secure_connections(url: str, git_token: str) -> None:
    server = ServerConnection.from_url(url).with_git_token(Secret("t"))
    assert server.git_token == git_token
    assert "'t'" not in repr(server)
