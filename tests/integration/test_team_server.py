"""The whole server over a real socket, with its real counter over real git repositories."""

import base64
import logging
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from skillhall._internal.sources.folder.bundle_reader import MAX_FILE_SIZE
from tests.support.git_server import (
    FOLDER,
    LINK,
    REGULAR,
    SUBMODULE,
    GitRepo,
    GitServer,
    git_repo,
    run_git_server,
)
from tests.support.prompt_sources import BUILT_IN
from tests.support.server_concurrency import run_clients, run_loaded_server
from tests.support.servers import DEADLINE, HttpResponse, RunningServer
from tests.support.skills import make_skill_md
from tests.support.team_server import (
    LIST,
    decode_files,
    list_descriptions,
    list_prompt_texts,
    make_commit_files,
    send_push,
    team_server,
    team_settings,
)

AUTH = "auth-t0ken-AAAAAAAAAAAAAAAA"
CONFIGURED = "configured-t0ken-BBBBBBBBBB"
OF_REQUEST = "request-t0ken-CCCCCCCCCCCCC"
WEBHOOK = "webhook-s3cret-DDDDDDDDDDDD"
PASSWORD = "userinfo-p4ssword-EEEEEEEEEE"  # noqa: S105 - planted, of nobody
REFRESH = f"{LIST}/refresh"
TOKEN = "X-Skillhall-Git-Token"  # noqa: S105 - the name of a header

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    return git_repo(tmp_path / "served/acme/prompts.git", make_commit_files(1))


@pytest.fixture
def site(repo: GitRepo) -> Iterator[GitServer]:
    with run_git_server(repo.folder.parents[1]) as running:
        yield running


@pytest.fixture
def url(site: GitServer) -> str:
    return site.url("acme/prompts.git")


@pytest.fixture
def server(tmp_path: Path, url: str) -> Iterator[RunningServer]:
    settings = team_settings(tmp_path, url, SKILLHALL_WEBHOOK_SECRET=WEBHOOK)
    with team_server(settings) as running:
        yield running


def listed(server: RunningServer, query: str = "", **headers: str) -> HttpResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return server.request("GET", f"{LIST}{query}", headers=named)


def read(server: RunningServer, name: str, query: str = "") -> Any:  # noqa: ANN401 - JSON
    reply = server.request("POST", f"{LIST}/{name}{query}")
    assert reply.status == 200, reply.body
    return reply.json["data"]


def refreshed(server: RunningServer) -> Any:  # noqa: ANN401 - JSON
    reply = server.request("POST", REFRESH)
    assert reply.status == 200, reply.body
    return reply.json["meta"]


def shown(server: RunningServer, query: str = "") -> str:
    """The number of the commit that everything shows."""
    said = list_descriptions(listed(server, query).json["data"])
    for name in ("hello", "pdf"):
        said |= list_prompt_texts(read(server, name, query))
    assert len(said) == 1, said
    return said.pop().removeprefix("commit ")


def overriding(url: str, **further: str) -> str:
    given = {"repo": url, **further}
    return "?" + "&".join(f"{name}={quote(text, safe='')}" for name, text in given.items())


def sources(server: RunningServer) -> Any:  # noqa: ANN401 - JSON
    return server.request("GET", "/readyz").json["data"]["sources"]


# What is handed out


def test_a_public_repository_is_listed_and_read_with_its_files(
    server: RunningServer, repo: GitRepo, url: str
) -> None:
    binary = bytes(range(256))
    commit = repo.commit({**make_commit_files(2), "pdf/data/all.bin": binary})
    refreshed(server)
    answer = listed(server).json
    assert [item["name"] for item in answer["data"]["prompts"]] == [*BUILT_IN, "hello", "pdf"]
    assert answer["data"]["source"] == url
    assert answer["meta"]["commit"] == commit
    assert "stale" not in answer["meta"]
    assert decode_files(read(server, "pdf")) == {
        "data/all.bin": binary,
        "data/number.txt": b"commit 2",
        "data/deep/again.txt": b"commit 2",
    }


def test_the_skills_of_the_repository_are_shown_with_the_same_bytes(server: RunningServer) -> None:
    skills = server.request("GET", "/api/v1/skills").json["data"]["skills"]
    found = next(skill["id"] for skill in skills if skill["name"] == "pdf")
    reply = server.request("GET", f"/api/v1/skills/{found}/files/data/number.txt")
    assert (reply.status, reply.body) == (200, b"commit 1")


def test_links_and_submodules_are_left_out(server: RunningServer, repo: GitRepo) -> None:
    files = {
        "pdf/SKILL.md": make_skill_md("pdf"),
        "pdf/kept.txt": b"kept",
        "pdf/passwd": b"/etc/passwd",
        "pdf/vendor": b"1" * 40,
        "link.md": b"/etc/passwd",
        "up": b"../..",
        "library": b"2" * 40,
    }
    links = dict.fromkeys(("pdf/passwd", "link.md", "up"), LINK)
    repo.commit(files, {**links, "pdf/vendor": SUBMODULE, "library": SUBMODULE})
    assert "stale" not in refreshed(server)
    names = [item["name"] for item in listed(server).json["data"]["prompts"]]
    assert names == [*BUILT_IN, "pdf"]
    assert decode_files(read(server, "pdf")) == {"kept.txt": b"kept"}


def test_a_protected_repository_opens_for_the_token_of_a_request_alone(
    server: RunningServer, site: GitServer
) -> None:
    git_repo(site.root / "acme/private.git", make_commit_files(4))
    site.token = OF_REQUEST
    query = overriding(site.url("acme/private.git"))
    opened = listed(server, query, X_Skillhall_Git_Token=OF_REQUEST)
    assert (opened.status, list_descriptions(opened.json["data"])) == (200, {"commit 4"})
    for headers in ({}, {"X_Skillhall_Git_Token": "wrong"}):
        refused = listed(server, query, **headers)
        assert (refused.status, refused.code) == (502, "PROMPTS_SOURCE_ERROR")
        assert b"commit 4" not in refused.body


def test_another_repository_branch_and_path_can_be_asked_for(
    server: RunningServer, site: GitServer
) -> None:
    other = git_repo(site.root / "acme/other.git", make_commit_files(2))
    deep = {f"a/b/{path}": data for path, data in make_commit_files(3).items()}
    other.commit(deep, ref="refs/heads/next")
    url = site.url("acme/other.git")
    assert shown(server, overriding(url)) == "2"
    assert shown(server, overriding(url, branch="next", path="a/b")) == "3"
    assert shown(server) == "1"
    for wrong in ({"branch": "gone"}, {"path": "a/c"}):
        refused = listed(server, overriding(url, **wrong))
        assert (refused.status, refused.code) == (502, "PROMPTS_SOURCE_ERROR")


# What changes far away


def test_a_rewritten_history_is_shown_after_a_refresh(server: RunningServer, repo: GitRepo) -> None:
    first = repo.git("rev-parse", "main")
    repo.commit(make_commit_files(2), parent=first)
    refreshed(server)
    assert shown(server) == "2"
    rewritten = repo.commit(make_commit_files(3))  # without a parent: what a force push leaves
    assert shown(server) == "2"
    assert refreshed(server)["commit"] == rewritten
    assert shown(server) == "3"


def test_a_deleted_branch_leaves_the_last_copy_until_it_returns(
    server: RunningServer, repo: GitRepo
) -> None:
    assert shown(server) == "1"
    (repo.folder / "refs/heads/main").unlink()
    assert_marked(server, refreshed(server)["stale"])
    repo.commit(make_commit_files(2))
    assert "stale" not in refreshed(server)
    assert shown(server) == "2"
    assert "stale" not in sources(server)[0]


def test_a_deleted_repository_leaves_the_last_copy_until_it_returns(
    server: RunningServer, repo: GitRepo, url: str
) -> None:
    assert shown(server) == "1"
    moved = repo.folder.rename(repo.folder.with_name("moved"))
    assert_marked(server, refreshed(server)["stale"])
    asked = listed(server, overriding(url, branch="next"))
    assert (asked.status, asked.code) == (502, "PROMPTS_SOURCE_ERROR")
    moved.rename(repo.folder)
    assert "stale" not in refreshed(server)
    assert shown(server) == "1"


def test_an_unreachable_host_leaves_the_last_copy_until_a_push_is_told(
    server: RunningServer, repo: GitRepo, site: GitServer, url: str
) -> None:
    assert shown(server) == "1"
    site.status = 503
    assert_marked(server, refreshed(server)["stale"])
    site.status = 0
    newest = repo.commit(make_commit_files(2))
    reply = send_push(server, WEBHOOK, url)
    assert (reply.status, reply.json["data"]["known"]) == (202, True)
    wait_for(server, newest)
    assert shown(server) == "2"
    assert "stale" not in sources(server)[0]


def test_a_push_with_a_wrong_signature_changes_nothing(
    server: RunningServer, repo: GitRepo, url: str
) -> None:
    assert shown(server) == "1"
    repo.commit(make_commit_files(2))
    assert send_push(server, "wrong", url).status == 401
    assert shown(server) == "1"


def assert_marked(server: RunningServer, stale: dict[str, str]) -> None:
    """Answers go on from the first commit, and everywhere it is said that they are old."""
    assert stale["reason"]
    assert stale["since"].endswith("Z")
    assert shown(server) == "1"
    assert listed(server).json["meta"]["stale"] == stale
    assert server.request("GET", "/readyz").status == 200
    assert sources(server)[0]["stale"] == stale


def wait_for(server: RunningServer, commit: str) -> None:
    """Ask until the commit is handed out: while one look is under way, others get the copy."""
    moment = threading.Event()
    for _ in range(DEADLINE * 50):
        if listed(server).json["meta"].get("commit") == commit:
            return
        moment.wait(0.02)
    pytest.fail("the commit was never handed out")


# What is too much


def of_many_bytes(repo: GitRepo) -> None:
    """Six skills of 100 MiB each, all out of one file of zeros."""
    zeros = [(REGULAR, repo.blob(bytes(MAX_FILE_SIZE)), f"{number}.bin") for number in range(9)]
    skill = repo.tree([(REGULAR, repo.blob(make_skill_md("pdf")), "SKILL.md"), *zeros])
    repo.commit_tree(repo.tree([(FOLDER, skill, f"pdf-{number}") for number in range(6)]))


def of_many_files(repo: GitRepo) -> None:
    """More files than a repository may have, all out of two."""
    empty = repo.blob(b"")
    own = (REGULAR, repo.blob(make_skill_md("pdf")), "SKILL.md")
    skill = repo.tree([own, *((REGULAR, empty, str(number)) for number in range(1999))])
    repo.commit_tree(repo.tree([(FOLDER, skill, f"pdf-{number}") for number in range(101)]))


@pytest.mark.parametrize(
    ("fill", "why"),
    [(of_many_bytes, "larger than 524288000 bytes"), (of_many_files, "larger than 200000 files")],
)
def test_a_huge_repository_is_refused_and_leaves_nothing_behind(
    tmp_path: Path, repo: GitRepo, site: GitServer, fill: Callable[[GitRepo], None], why: str
) -> None:
    fill(GitRepo(site.root / "acme/huge.git"))
    huge, fine = site.url("acme/huge.git"), site.url("acme/prompts.git")
    with team_server(team_settings(tmp_path, huge)) as server:
        answer = listed(server).json
        assert [item["name"] for item in answer["data"]["prompts"]] == BUILT_IN
        assert answer["data"]["source"] == "built-in"
        assert why in answer["meta"]["stale"]["reason"]
        assert why in sources(server)[0]["stale"]["reason"]
        assert server.request("GET", "/readyz").status == 200
        asked = listed(server, overriding(huge))
        assert (asked.status, asked.code) == (502, "PROMPTS_SOURCE_ERROR")
        assert why in asked.message
        assert shown(server, overriding(fine)) == "1"
        copies = [*(tmp_path / "cache/prompts").glob("*/*/*")]
        assert {path.name for path in copies} == {"hello.md", "pdf"}


# Many at once


def test_every_answer_is_from_one_commit_while_commits_are_pushed(tmp_path: Path) -> None:
    with run_loaded_server(tmp_path) as (server, stocks):
        tally = run_clients(server, stocks, lambda turn: turn < 25)
    assert tally.inconsistent == []
    assert tally.unexpected == []
    assert tally.responses.total() == 16 * 25
    assert tally.pushes > 0


# Secrets


class Ears:
    """Every answer that came, to be searched."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self.heard: list[bytes] = []

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.keep(self._server.request(method, path, body, named))

    def keep(self, reply: HttpResponse) -> int:
        self.heard.append(str(reply.headers).encode() + reply.body)
        return reply.status


def forms(secret: str) -> list[bytes]:
    """How a secret may be written: as it is, or as git and clients send it."""
    pairs = (f"{user}:{secret}".encode() for user in ("x-access-token", "ada", ""))
    return [secret.encode(), *(base64.b64encode(pair).rstrip(b"=") for pair in pairs)]


def found_in(places: dict[str, bytes]) -> list[tuple[str, str]]:
    """Where a secret stands, and which."""
    secrets = (AUTH, CONFIGURED, OF_REQUEST, WEBHOOK, PASSWORD)
    return [
        (place, secret)
        for place, data in places.items()
        for secret in secrets
        if any(form in data for form in forms(secret))
    ]


def processes() -> bytes:
    """The command lines of everything that runs here."""
    done = subprocess.run(
        ["ps", "-eww", "-o", "args"], check=True, capture_output=True, timeout=DEADLINE
    )
    return done.stdout


def during_a_slow_clone(
    server: RunningServer, site: GitServer, query: str
) -> tuple[bytes, HttpResponse]:
    """The command lines while git waits for an answer, and what the client then got."""
    site.release_event = threading.Event()
    replies: list[HttpResponse] = []

    def call() -> None:
        replies.append(listed(server, query, X_Skillhall_Git_Token=OF_REQUEST))

    client = threading.Thread(target=call)
    client.start()
    try:
        assert site.is_waiting.wait(DEADLINE)
        seen = processes()
    finally:
        site.release_event.set()
        client.join(DEADLINE)
    return seen, replies[0]


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_no_secret_is_shown_logged_kept_or_in_a_command_line(
    tmp_path: Path, repo: GitRepo, site: GitServer, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "skillhall")
    git_repo(tmp_path / "private/acme/mine.git", make_commit_files(2))
    with ExitStack() as stack:
        private = stack.enter_context(run_git_server(tmp_path / "private"))
        site.token, private.token = CONFIGURED, OF_REQUEST
        settings = team_settings(
            tmp_path,
            url,
            SKILLHALL_AUTH_TOKEN=AUTH,
            SKILLHALL_WEBHOOK_SECRET=WEBHOOK,
            SKILLHALL_GIT_TOKEN=CONFIGURED,
            SKILLHALL_GIT_TOKEN_HOSTS=f"127.0.0.1:{site.port}",
        )
        server = stack.enter_context(team_server(settings))
        assert shown(server) == "1"  # by the configured token
        mine_url = private.url("acme/mine.git")
        ears, mine = Ears(server), overriding(mine_url)
        running, reply = during_a_slow_clone(server, private, mine)
        assert mine_url.encode() in running  # git is there, with all of its words
        assert ears.keep(reply) == 200
        for query in ("", mine):
            for status, given in ((200, OF_REQUEST), (502, f"{OF_REQUEST}-wrong")):
                wanted = status if query else 502  # that host knows another one
                assert ears.ask("GET", LIST + query, X_Skillhall_Git_Token=given) == wanted
        for start in ("http://ada:", "https://ada:", "https://", "ssh://ada:", "ada:"):
            with_password = overriding(f"{start}{PASSWORD}@127.0.0.1:{site.port}/acme/prompts.git")
            for method, path in (("GET", LIST), ("POST", REFRESH), ("POST", f"{LIST}/pdf")):
                assert ears.ask(method, path + with_password) in (400, 502)
        ears.ask("GET", LIST, Authorization=f"Bearer {AUTH}x")
        ears.ask("GET", f"/{AUTH}/{CONFIGURED}/{WEBHOOK}")
        ears.ask("POST", REFRESH, {"token": 1}, X_Gitlab_Token=WEBHOOK)
        (repo.folder / "refs/heads/main").unlink()
        ears.keep(send_push(server, WEBHOOK, url))
        for path in ("/readyz", "/healthz", "/metrics", "/api/v1/openapi.json", "/api/v1/skills"):
            assert ears.ask("GET", path) == 200
        assert ears.ask("POST", REFRESH) == 200
        kept = files_below(tmp_path / "cache", tmp_path / "data", tmp_path / "work")
    assert kept
    assert "skillhall.access" in {record.name for record in caplog.records}
    logs = "\n".join(f"{record.getMessage()} {record.exc_text}" for record in caplog.records)
    answers = {f"answer {number}": data for number, data in enumerate(ears.heard)}
    assert found_in({**answers, **kept, "logs": logs.encode(), "processes": running}) == []


def files_below(*folders: Path) -> dict[str, bytes]:
    """Everything that is kept, names included."""
    found = {}
    for folder in folders:
        for path in folder.rglob("*"):
            found[str(path)] = str(path).encode() + (path.read_bytes() if path.is_file() else b"")
    return found
