"""Token scope: the server's git token is sent to the operator's repositories only."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.policy.access.access_scopes import AccessScope, expand_scopes
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection
from skillhall._internal.wiring.workspace import open_lazy_workspace
from skillhall.errors import SkillhallError
from tests.support.git_server import GitServer, git_repo, run_git_server
from tests.support.servers import HttpResponse, MemoryTokens, RunningServer, run_server
from tests.support.team_server import LIST, make_commit_files, team_settings

GIT_TOKEN = "git-token-of-the-operator"  # noqa: S105 - a fake token
OPERATOR_TOKEN = "correct-horse-battery-staple"  # noqa: S105 - only for tests
FORM = {"Content-Type": "application/x-www-form-urlencoded"}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[GitServer]:
    for name in ("configured", "private"):
        git_repo(tmp_path / f"served/acme/{name}.git", make_commit_files(1))
    with run_git_server(tmp_path / "served") as started:
        started.token = GIT_TOKEN
        yield started


@pytest.fixture
def start(tmp_path: Path, site: GitServer) -> Iterator[Callable[..., RunningServer]]:
    """Return a function that starts the server, with additional variables."""
    closers: list[Callable[[], object]] = []

    def start(tokens: MemoryTokens | None = None, **variables: str) -> RunningServer:
        settings = team_settings(
            tmp_path,
            site.url("acme/configured.git"),
            SKILLHALL_GIT_TOKEN=GIT_TOKEN,
            SKILLHALL_GIT_TOKEN_HOSTS=f"127.0.0.1:{site.port}",
            **variables,
        )
        prompts, workspace = open_prompt_service(settings), open_lazy_workspace(settings)
        collection = open_collection(settings, prompts)
        services = Services(prompts, collection, workspace, accepted_tokens=tokens)
        server = run_server(settings=settings, services=services)
        closers.extend((prompts.close, workspace.close, lambda: server.__exit__(None, None, None)))
        return server.__enter__()

    yield start
    for close in reversed(closers):
        close()


def by_query(server: RunningServer, url: str) -> HttpResponse:
    return server.request("GET", f"{LIST}?repo={quote(url, safe='')}")


def by_prompt(server: RunningServer, url: str) -> HttpResponse:
    return server.request("POST", f"{LIST}/hello?repo={quote(url, safe='')}")


def by_refresh(server: RunningServer, url: str) -> HttpResponse:
    return server.request("POST", f"{LIST}/refresh?repo={quote(url, safe='')}")


def by_import(server: RunningServer, url: str) -> HttpResponse:
    return server.request("POST", "/api/v1/skills/import", {"source": url, "replace": True})


def by_preview(server: RunningServer, url: str) -> HttpResponse:
    return server.request("POST", "/api/v1/skill-previews", {"source": url})


def by_following(server: RunningServer, url: str) -> HttpResponse:
    return server.request("POST", "/sources/follow", urlencode({"repo": url}).encode(), FORM)


# Every way to name a repository as a client.
WAYS = [by_query, by_prompt, by_refresh, by_import, by_preview, by_following]


@pytest.mark.parametrize("name", WAYS)
def test_server_token_is_not_sent_to_clients_repository(
    start: Callable[..., RunningServer],
    site: GitServer,
    name: Callable[[RunningServer, str], HttpResponse],
) -> None:
    server = start()
    assert server.request("GET", LIST).json["data"]["source"] == site.url("acme/configured.git")
    reply = name(server, site.url("acme/private.git"))
    assert reply.status == 502
    assert b"SKILLHALL_GIT_TOKEN_REPOS" in reply.body
    requests = [item for item in site.requests if item.target.startswith("/acme/private.git")]
    assert requests
    assert not [item for item in requests if "authorization" in item.headers]


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("scope", ["acme/private", "acme/*"])
def test_operator_can_allow_private_repositories(
    start: Callable[..., RunningServer],
    site: GitServer,
    name: Callable[[RunningServer, str], HttpResponse],
    scope: str,
) -> None:
    server = start(SKILLHALL_GIT_TOKEN_REPOS=site.url(scope))
    assert name(server, site.url("acme/private.git")).status in (200, 201, 303)


@pytest.fixture
def scoped(start: Callable[..., RunningServer], site: GitServer) -> RunningServer:
    """A server with private repositories, and a token for each scope, named like it."""
    tokens = MemoryTokens()
    for scope in AccessScope:
        tokens.add(scope, tuple(expand_scopes([scope])))
    return start(
        tokens, SKILLHALL_GIT_TOKEN_REPOS=site.url("acme/*"), SKILLHALL_AUTH_TOKEN=OPERATOR_TOKEN
    )


@pytest.mark.parametrize("name", WAYS)
def test_only_administrators_use_the_server_token(
    scoped: RunningServer, site: GitServer, name: Callable[[RunningServer, str], HttpResponse]
) -> None:
    url = site.url("acme/private.git")
    for token in (OPERATOR_TOKEN, "admin"):
        scoped.headers = {"Authorization": f"Bearer {token}"}
        assert name(scoped, url).status in (200, 201, 303, 409)
    seen = len(site.requests)
    for scope in ("write", "read", "report"):
        scoped.headers = {"Authorization": f"Bearer {scope}"}
        reply = name(scoped, url)
        assert reply.status == 403
        assert b"it needs the scope" in reply.body
        assert b"admin" in reply.body or scope != "write"
    assert len(site.requests) == seen  # neither fetched nor served from the cache


def test_reader_may_name_the_served_repository_but_no_other_folder_or_branch(
    scoped: RunningServer, site: GitServer
) -> None:
    scoped.headers = {"Authorization": "Bearer read"}
    assert scoped.request("GET", LIST).status == 200
    assert by_query(scoped, site.url("acme/configured.git")).status == 200
    for query in ("path=pdf", "branch=other"):
        assert scoped.request("GET", f"{LIST}?{query}").status == 403


def test_reader_may_use_a_git_token_of_their_own(scoped: RunningServer, site: GitServer) -> None:
    scoped.headers = {"Authorization": "Bearer read", "X-Skillhall-Git-Token": GIT_TOKEN}
    assert by_query(scoped, site.url("acme/private.git")).status == 200


def test_server_token_is_sent_to_configured_repository(
    start: Callable[..., RunningServer], site: GitServer
) -> None:
    server = start()
    assert by_query(server, site.url("acme/configured.git")).status == 200
    assert server.request("GET", f"{LIST}?path=pdf").status == 200


def test_request_token_opens_any_repository(
    start: Callable[..., RunningServer], site: GitServer
) -> None:
    query = f"?repo={quote(site.url('acme/private.git'), safe='')}"
    values = {"X-Skillhall-Git-Token": GIT_TOKEN}
    assert start().request("GET", LIST + query, headers=values).status == 200


@pytest.mark.parametrize("name", [by_query, by_import, by_preview, by_following])
def test_clients_cannot_use_ssh_keys_of_server(
    start: Callable[..., RunningServer], name: Callable[[RunningServer, str], HttpResponse]
) -> None:
    reply = name(start(), "git@127.0.0.1:acme/private.git")
    assert reply.status == 400
    assert b"reserved for the operator" in reply.body.replace(b"&#39;", b"'")


def test_invalid_scope_is_rejected_at_start(start: Callable[..., RunningServer]) -> None:
    with pytest.raises(SkillhallError, match="SKILLHALL_GIT_TOKEN_REPOS"):
        start(SKILLHALL_GIT_TOKEN_REPOS="git@h:a/b.git")  # noqa: S106 - no password
