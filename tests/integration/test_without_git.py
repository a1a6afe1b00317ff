"""Team server without git: GitHub is read through its API."""

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
TOKEN = "per-request-t0ken-AAAAAA"  # noqa: S105 - a fake token
DOWN = respond("503 Service Unavailable")

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHubServer]:
    with run_github_server(tmp_path / "host") as running:
        running.commit(NAME, make_commit_files(1))
        yield running


@pytest.fixture
def started(tmp_path: Path, host: GitHubServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that exists once git was started."""
    assert host.repos  # created by git, before PATH is changed
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
    """Return the texts that belong to a numbered commit."""
    output = list_descriptions(server.request("GET", LIST + query).json["data"])
    for name in ("hello", "pdf"):
        output |= list_prompt_texts(server.request("POST", f"{LIST}/{name}{query}").json["data"])
    return output


def source(server: RunningServer) -> Any:  # noqa: ANN401 - JSON
    return server.request("GET", "/readyz").json["data"]["sources"][0]


def test_github_repository_is_read_and_refreshed_by_api(
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


def test_unreachable_github_serves_stale_version_after_restart(
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


def test_missing_main_falls_back_to_default_branch(
    tmp_path: Path, host: GitHubServer, started: Path
) -> None:
    repository = host.github.repositories[NAME]
    repository.refs["trunk"] = repository.refs.pop("main")
    repository.default = "trunk"
    with team_server(team_settings(tmp_path, host)) as server:
        assert shown(server) == {"commit 1"}
    assert not started.exists()


def test_private_repository_needs_token_of_request(
    tmp_path: Path, host: GitHubServer, started: Path
) -> None:
    host.github.repositories["acme/closed"] = host.github.repositories[NAME]
    host.make_private("acme/closed", TOKEN)
    query = "?repo=acme%2Fclosed"
    with team_server(team_settings(tmp_path, host)) as server:
        assert server.request("GET", LIST + query).code == "PROMPTS_SOURCE_ERROR"
        values = {"X-Skillhall-Git-Token": TOKEN}
        opened = server.request("GET", LIST + query, headers=values)
        assert list_descriptions(opened.json["data"]) == {"commit 1"}
        assert server.request("GET", LIST + query).code == "PROMPTS_SOURCE_ERROR"
    assert not started.exists()


def test_other_repositories_need_git(tmp_path: Path, host: GitHubServer, started: Path) -> None:
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


def test_repository_with_zero_or_one_prompt_is_served(
    tmp_path: Path, host: GitHubServer, started: Path
) -> None:
    host.github.repositories[NAME].commit({"README.txt": b"x"})
    host.github.repositories["acme/one"] = repository = type(host.github.repositories[NAME])()
    repository.commit({"deep/er/one.md": make_skill_md("one")})
    with team_server(team_settings(tmp_path, host)) as server:
        assert source(server)["prompts"] == len(BUILT_IN)
        result = server.request("GET", f"{LIST}?repo=acme%2Fone&path=deep%2Fer").json["data"][
            "prompts"
        ]
        assert [prompt["name"] for prompt in result][-1] == "one"
    assert not started.exists()
