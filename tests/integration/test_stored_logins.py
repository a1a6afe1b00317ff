"""`skillhall add` from private hosts, with the logins that the user stored."""

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall._internal.settings import ServerSettings, Settings
from skillhall._internal.sources.token_scope import open_client_source
from skillhall.errors import SourceUnavailable
from tests.support.archives import SKILL, tgz_of
from tests.support.cli_sandbox import ADD, PASSWORD, CliSandbox
from tests.support.git_server import git_repo, run_git_server
from tests.support.http_server import HttpServer, ReceivedRequest, Route, respond, run_http_server

BASIC = f"Basic {base64.b64encode(f'ada:{PASSWORD}'.encode()).decode()}"
ARCHIVE = tgz_of({"package/skills/pdf/SKILL.md": SKILL})
HELPER = f"""\
[credential]
    helper = "!f() {{ echo username=ada; echo password={PASSWORD}; }}; f"
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLHALL_ALLOW_NETWORKS", "127.0.0.1/32")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("NETRC", "GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "NPM_CONFIG_USERCONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site() -> Iterator[HttpServer]:
    """A private site: an index, an archive, and a registry of npm packages."""
    with run_http_server() as running:
        files = {
            "/pdf.tgz": ARCHIVE,
            "/index.json": json.dumps(
                {"skills": [{"name": "pdf", "files": ["SKILL.md"]}]}
            ).encode(),
            "/pdf/SKILL.md": SKILL,
        }

        def answer(request: ReceivedRequest) -> Route:
            if request.headers.get("authorization") != BASIC:
                return respond("401 No", headers={"WWW-Authenticate": 'Basic realm="acme"'})
            data = files.get(request.target)
            return respond("404 Not Found") if data is None else respond(body=data)

        running.default_route = answer
        yield running


def store_netrc(sandbox: CliSandbox, host: str = "127.0.0.1") -> None:
    text = f"machine {host} login ada password {PASSWORD}\n"
    (sandbox.folder / "home/.netrc").write_text(text, encoding="utf-8")


def add(sandbox: CliSandbox, source: str) -> None:
    """Add a skill; the password must not be in any output or file."""
    result = sandbox.run(*ADD, "--json", source)
    assert result.code == 0, result.out
    assert PASSWORD not in result.out + result.err
    written = [path for path in sandbox.folder.rglob("*") if path.is_file()]
    holders = [path.name for path in written if PASSWORD.encode() in path.read_bytes()]
    assert {*holders} <= {".netrc", ".gitconfig"}
    assert (sandbox.project / ".agents/skills/pdf/SKILL.md").read_bytes() == SKILL


@pytest.mark.parametrize("path", ["/pdf.tgz", "/index.json"])
def test_netrc_opens_private_site(sandbox: CliSandbox, site: HttpServer, path: str) -> None:
    store_netrc(sandbox)
    add(sandbox, site.url(path))
    # The host asks once; from then on, the login is sent at once.
    sent = [request.headers.get("authorization") for request in site.requests]
    assert sent == [None, *[BASIC] * (len(sent) - 1)]


def test_netrc_of_another_host_is_not_used(sandbox: CliSandbox, site: HttpServer) -> None:
    store_netrc(sandbox, "other.example")
    result = sandbox.check_rejected(ADD, [site.url("/pdf.tgz")], "upstream_error")
    assert "asks for credentials" in result.error["message"]
    assert "~/.netrc" in result.error["hint"]


def test_setting_disables_stored_logins(
    sandbox: CliSandbox, site: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLHALL_STORED_LOGINS", "off")
    store_netrc(sandbox)
    sandbox.check_rejected(ADD, [site.url("/pdf.tgz")], "upstream_error")
    assert all("authorization" not in request.headers for request in site.requests)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize("kind", ["netrc", "helper"])
def test_stored_login_opens_private_git_repository(
    sandbox: CliSandbox, tmp_path: Path, kind: str
) -> None:
    if kind == "netrc":
        store_netrc(sandbox)
    else:
        (sandbox.folder / "home/.gitconfig").write_text(HELPER, encoding="utf-8")
    git_repo(tmp_path / "served/skills.git", {"pdf/SKILL.md": SKILL})
    with run_git_server(tmp_path / "served") as served:
        served.login = BASIC
        add(sandbox, served.url("skills.git"))
        assert served.requests[0].headers.get("authorization") is None
        assert served.requests[-1].headers["authorization"] == BASIC
    assert os.environ["HOME"] == str(sandbox.folder / "home")


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_server_uses_stored_logins_for_administrators_and_named_repositories_only(
    sandbox: CliSandbox, tmp_path: Path
) -> None:
    store_netrc(sandbox)
    git_repo(tmp_path / "served/skills.git", {"pdf/SKILL.md": SKILL})
    with run_git_server(tmp_path / "served") as served:
        served.login, url = BASIC, served.url("skills.git")
        settings = Settings.read()
        named = settings._replace(server=ServerSettings(git_token_repos=(url,)))
        for used, allow_tokens in ((settings, True), (named, False)):
            with pytest.raises(SourceUnavailable, match="asks for credentials"):
                open_client_source(url, used, allow_tokens=allow_tokens)
        assert all(request.headers.get("authorization") is None for request in served.requests)
        opened = open_client_source(url, named, allow_tokens=True)
        assert [bundle.folder for bundle in opened.bundles] == ["pdf"]
