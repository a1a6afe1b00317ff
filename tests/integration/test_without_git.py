"""A team's server where git is not to be used: GitHub is read by its API, nothing else at all."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.settings import Settings
from tests.support.github_server import GitHubServer, run_github_server
from tests.support.http_server import respond
from tests.support.prompt_sources import BUILT_IN
from tests.support.servers import RunningServer
from tests.support.skills import make_skill_md
from tests.support.team_server import (
    LIST,
    list_descriptions,
    list_prompt_texts,
    make_commit_files,
    team_server,
)
from tests.support.team_server import team_settings as settings_of_a_team

NAME = "acme/prompts"
TOKEN = "per-request-t0ken-AAAAAA"  # noqa: S105 - planted, of nobody
DOWN = respond("503 Service Unavailable")

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHubServer]:
    with run_github_server(tmp_path / "host") as running:
        running.commit(NAME, make_commit_files(1))
        yield running


@pytest.fixture
def started(tmp_path: Path, host: GitHubServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there as soon as somebody starts a git."""
    assert host.repos  # they are made by git, which is still there then
    mark, programs = tmp_path / "started", tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text(f"#!/bin/sh\n/bin/echo git >> {mark}\nexit 1\n", "utf-8")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    return mark


def team_settings(folder: Path, host: GitHubServer, repo: str = NAME) -> Settings:
    environment = {**host.environment(), "SKILLHALL_GIT": "off"}
    return settings_of_a_team(folder, repo, **environment)


def shown(server: RunningServer, query: str = "") -> set[str]:
    """What everything says that belongs to a numbered commit."""
    said = list_descriptions(server.request("GET", LIST + query).json["data"])
    for name in ("hello", "pdf"):
        said |= list_prompt_texts(server.request("POST", f"{LIST}/{name}{query}").json["data"])
    return said


def source(server: RunningServer) -> Any:  # noqa: ANN401 - JSON
    return server.request("GET", "/readyz").json["data"]["sources"][0]


def test_a_repository_on_github_is_read_and_refreshed_by_its_api(
    tmp_path: Path, host: GitHubServer, started: Path
) -> None:
    tip = host.github.repositories[NAME].refs["main"]
    with team_server(team_settings(tmp_path, host)) as server:
        assert shown(server) == {"commit 1"}
        assert (source(server)["source"], source(server)["commit"]) == (NAME, tip)
        refreshed = server.request("POST", f"{LIST}/refresh").json
        assert refreshed["data"]["promptsLoaded"] == len(BUILT_IN) + 2
        host.github.repositories[NAME].commit(make_commit_files(2))
        server.request("POST", f"{LIST}/refresh")
        assert shown(server) == {"commit 2"}
    assert not started.exists()


def test_an_unreachable_github_leaves_the_last_copy_also_after_a_restart(
    tmp_path: Path, host: GitHubServer, started: Path
) -> None:
    settings = team_settings(tmp_path, host)
    with team_server(settings) as server:
        assert shown(server) == {"commit 1"}
        host.outage_route = DOWN
        assert "503" in server.request("POST", f"{LIST}/refresh").json["meta"]["stale"]["reason"]
        assert shown(server) == {"commit 1"}
    with team_server(settings) as server:
        assert shown(server) == {"commit 1"}
        assert source(server)["stale"]["since"] > "2020"
    assert not started.exists()


def test_a_branch_that_nobody_named_and_that_is_not_there_is_the_default_one(
    tmp_path: Path, host: GitHubServer, started: Path
) -> None:
    repository = host.github.repositories[NAME]
    repository.refs["trunk"] = repository.refs.pop("main")
    repository.default = "trunk"
    with team_server(team_settings(tmp_path, host)) as server:
        assert shown(server) == {"commit 1"}
    assert not started.exists()


def test_a_private_repository_opens_for_the_token_of_a_request_alone(
    tmp_path: Path, host: GitHubServer, started: Path
) -> None:
    host.github.repositories["acme/closed"] = host.github.repositories[NAME]
    host.make_private("acme/closed", TOKEN)
    query = "?repo=acme%2Fclosed"
    with team_server(team_settings(tmp_path, host)) as server:
        assert server.request("GET", LIST + query).code == "PROMPTS_SOURCE_ERROR"
        given = {"X-Skillhall-Git-Token": TOKEN}
        opened = server.request("GET", LIST + query, headers=given)
        assert list_descriptions(opened.json["data"]) == {"commit 1"}
        assert server.request("GET", LIST + query).code == "PROMPTS_SOURCE_ERROR"
    assert not started.exists()


def test_any_other_repository_is_told_to_need_git_and_none_is_started(
    tmp_path: Path, host: GitHubServer, started: Path
) -> None:
    elsewhere = "https://git.example.org/acme/prompts.git"
    with team_server(team_settings(tmp_path, host, elsewhere)) as server:
        data = server.request("GET", LIST).json
        assert [one["name"] for one in data["data"]["prompts"]] == BUILT_IN
        assert "only GitHub repositories can be read" in data["meta"]["stale"]["reason"]
        assert "only GitHub repositories can be read" in source(server)["stale"]["reason"]
        reply = server.request("GET", f"{LIST}?repo={elsewhere}")
        assert (reply.status, reply.code) == (502, "PROMPTS_SOURCE_ERROR")
        assert "SKILLHALL_GIT" in reply.message
    assert not started.exists()


def test_a_repository_without_prompts_or_with_one_alone_is_served(
    tmp_path: Path, host: GitHubServer, started: Path
) -> None:
    host.github.repositories[NAME].commit({"README.txt": b"x"})
    host.github.repositories["acme/one"] = one = type(host.github.repositories[NAME])()
    one.commit({"deep/er/one.md": make_skill_md("one")})
    with team_server(team_settings(tmp_path, host)) as server:
        assert source(server)["prompts"] == len(BUILT_IN)
        found = server.request("GET", f"{LIST}?repo=acme%2Fone&path=deep%2Fer").json["data"][
            "prompts"
        ]
        assert [prompt["name"] for prompt in found][-1] == "one"
    assert not started.exists()
