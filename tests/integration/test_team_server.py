"""Complete server over a real socket, with real git repositories."""

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
FROM_REQUEST = "request-t0ken-CCCCCCCCCCCCC"
WEBHOOK = "webhook-s3cret-DDDDDDDDDDDD"
PASSWORD = "userinfo-p4ssword-EEEEEEEEEE"  # noqa: S105 - only for tests
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


def list_prompts(server: RunningServer, query: str = "", **headers: str) -> HttpResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return server.request("GET", f"{LIST}{query}", headers=named)


def get_prompt(server: RunningServer, name: str, query: str = "") -> Any:  # noqa: ANN401 - JSON
    reply = server.request("POST", f"{LIST}/{name}{query}")
    assert reply.status == 200, reply.body
    return reply.json["data"]


def refresh(server: RunningServer) -> Any:  # noqa: ANN401 - JSON
    reply = server.request("POST", REFRESH)
    assert reply.status == 200, reply.body
    return reply.json["meta"]


def read_number(server: RunningServer, query: str = "") -> str:
    """Return the number of the commit that all responses show."""
    texts = list_descriptions(list_prompts(server, query).json["data"])
    for name in ("hello", "pdf"):
        texts |= list_prompt_texts(get_prompt(server, name, query))
    assert len(texts) == 1, texts
    return texts.pop().removeprefix("commit ")


def build_query(url: str, **others: str) -> str:
    parameters = {"repo": url, **others}
    return "?" + "&".join(f"{name}={quote(text, safe='')}" for name, text in parameters.items())


def get_sources(server: RunningServer) -> Any:  # noqa: ANN401 - JSON
    return server.request("GET", "/readyz").json["data"]["sources"]


# Prompts


def test_public_repository_is_served_with_its_files(
    server: RunningServer, repo: GitRepo, url: str
) -> None:
    binary = bytes(range(256))
    commit = repo.commit({**make_commit_files(2), "pdf/data/all.bin": binary})
    refresh(server)
    response = list_prompts(server).json
    assert [item["name"] for item in response["data"]["prompts"]] == [*BUILT_IN, "hello", "pdf"]
    assert response["data"]["source"] == url
    assert response["meta"]["commit"] == commit
    assert "stale" not in response["meta"]
    assert decode_files(get_prompt(server, "pdf")) == {
        "data/all.bin": binary,
        "data/number.txt": b"commit 2",
        "data/deep/again.txt": b"commit 2",
    }


def test_repository_skills_have_the_same_bytes(server: RunningServer) -> None:
    skills = server.request("GET", "/api/v1/skills").json["data"]["skills"]
    skill_id = next(skill["id"] for skill in skills if skill["name"] == "pdf")
    reply = server.request("GET", f"/api/v1/skills/{skill_id}/files/data/number.txt")
    assert (reply.status, reply.body) == (200, b"commit 1")


def test_links_and_submodules_are_skipped(server: RunningServer, repo: GitRepo) -> None:
    files = {
        "pdf/SKILL.md": make_skill_md("pdf"),
        "pdf/plain.txt": b"plain",
        "pdf/passwd": b"/etc/passwd",
        "pdf/vendor": b"1" * 40,
        "link.md": b"/etc/passwd",
        "up": b"../..",
        "library": b"2" * 40,
    }
    links = dict.fromkeys(("pdf/passwd", "link.md", "up"), LINK)
    repo.commit(files, {**links, "pdf/vendor": SUBMODULE, "library": SUBMODULE})
    assert "stale" not in refresh(server)
    names = [item["name"] for item in list_prompts(server).json["data"]["prompts"]]
    assert names == [*BUILT_IN, "pdf"]
    assert decode_files(get_prompt(server, "pdf")) == {"plain.txt": b"plain"}


def test_private_repository_needs_the_token_of_the_request(
    server: RunningServer, site: GitServer
) -> None:
    git_repo(site.root / "acme/private.git", make_commit_files(4))
    site.token = FROM_REQUEST
    query = build_query(site.url("acme/private.git"))
    response = list_prompts(server, query, X_Skillhall_Git_Token=FROM_REQUEST)
    assert (response.status, list_descriptions(response.json["data"])) == (200, {"commit 4"})
    for headers in ({}, {"X_Skillhall_Git_Token": "wrong"}):
        response = list_prompts(server, query, **headers)
        assert (response.status, response.code) == (502, "PROMPTS_SOURCE_ERROR")
        assert b"commit 4" not in response.body


def test_request_can_name_repository_branch_and_path(
    server: RunningServer, site: GitServer
) -> None:
    other = git_repo(site.root / "acme/other.git", make_commit_files(2))
    deep = {f"a/b/{path}": data for path, data in make_commit_files(3).items()}
    other.commit(deep, ref="refs/heads/next")
    url = site.url("acme/other.git")
    assert read_number(server, build_query(url)) == "2"
    assert read_number(server, build_query(url, branch="next", path="a/b")) == "3"
    assert read_number(server) == "1"
    for wrong in ({"branch": "gone"}, {"path": "a/c"}):
        response = list_prompts(server, build_query(url, **wrong))
        assert (response.status, response.code) == (502, "PROMPTS_SOURCE_ERROR")


# Changes of the repository


def test_rewritten_history_is_served_after_a_refresh(server: RunningServer, repo: GitRepo) -> None:
    first = repo.git("rev-parse", "main")
    repo.commit(make_commit_files(2), parent=first)
    refresh(server)
    assert read_number(server) == "2"
    rewritten = repo.commit(make_commit_files(3))  # without a parent, like a force push
    assert read_number(server) == "2"
    assert refresh(server)["commit"] == rewritten
    assert read_number(server) == "3"


def test_deleted_branch_is_served_stale_until_it_returns(
    server: RunningServer, repo: GitRepo
) -> None:
    assert read_number(server) == "1"
    (repo.folder / "refs/heads/main").unlink()
    assert_stale(server, refresh(server)["stale"])
    repo.commit(make_commit_files(2))
    assert "stale" not in refresh(server)
    assert read_number(server) == "2"
    assert "stale" not in get_sources(server)[0]


def test_deleted_repository_is_served_stale_until_it_returns(
    server: RunningServer, repo: GitRepo, url: str
) -> None:
    assert read_number(server) == "1"
    moved = repo.folder.rename(repo.folder.with_name("moved"))
    assert_stale(server, refresh(server)["stale"])
    response = list_prompts(server, build_query(url, branch="next"))
    assert (response.status, response.code) == (502, "PROMPTS_SOURCE_ERROR")
    moved.rename(repo.folder)
    assert "stale" not in refresh(server)
    assert read_number(server) == "1"


def test_unreachable_host_is_served_stale_until_a_push(
    server: RunningServer, repo: GitRepo, site: GitServer, url: str
) -> None:
    assert read_number(server) == "1"
    site.status = 503
    assert_stale(server, refresh(server)["stale"])
    site.status = 0
    newest = repo.commit(make_commit_files(2))
    reply = send_push(server, WEBHOOK, url)
    assert (reply.status, reply.json["data"]["known"]) == (202, True)
    wait_for_commit(server, newest)
    assert read_number(server) == "2"
    assert "stale" not in get_sources(server)[0]


def test_push_with_a_wrong_signature_is_rejected(
    server: RunningServer, repo: GitRepo, url: str
) -> None:
    assert read_number(server) == "1"
    repo.commit(make_commit_files(2))
    assert send_push(server, "wrong", url).status == 401
    assert read_number(server) == "1"


def assert_stale(server: RunningServer, stale: dict[str, str]) -> None:
    """Check that the first commit is served, and marked as stale everywhere."""
    assert stale["reason"]
    assert stale["since"].endswith("Z")
    assert read_number(server) == "1"
    assert list_prompts(server).json["meta"]["stale"] == stale
    assert server.request("GET", "/readyz").status == 200
    assert get_sources(server)[0]["stale"] == stale


def wait_for_commit(server: RunningServer, commit: str) -> None:
    """Poll until the commit is served; requests during a refresh get the stale one."""
    moment = threading.Event()
    for _ in range(DEADLINE * 50):
        if list_prompts(server).json["meta"].get("commit") == commit:
            return
        moment.wait(0.02)
    pytest.fail("the commit was not served")


# Limits


def add_many_bytes(repo: GitRepo) -> None:
    """Commit six skills of 100 MiB each, made of one blob."""
    zeros = [(REGULAR, repo.blob(bytes(MAX_FILE_SIZE)), f"{number}.bin") for number in range(9)]
    skill = repo.tree([(REGULAR, repo.blob(make_skill_md("pdf")), "SKILL.md"), *zeros])
    repo.commit_tree(repo.tree([(FOLDER, skill, f"pdf-{number}") for number in range(6)]))


def add_many_files(repo: GitRepo) -> None:
    """Commit more files than a repository may have, made of two blobs."""
    empty = repo.blob(b"")
    skill_md = (REGULAR, repo.blob(make_skill_md("pdf")), "SKILL.md")
    skill = repo.tree([skill_md, *((REGULAR, empty, str(number)) for number in range(1999))])
    repo.commit_tree(repo.tree([(FOLDER, skill, f"pdf-{number}") for number in range(101)]))


@pytest.mark.parametrize(
    ("fill", "why"),
    [(add_many_bytes, "limit of 524288000 bytes"), (add_many_files, "limit of 200000 files")],
)
def test_huge_repository_is_rejected_and_leaves_nothing(
    tmp_path: Path, repo: GitRepo, site: GitServer, fill: Callable[[GitRepo], None], why: str
) -> None:
    fill(GitRepo(site.root / "acme/huge.git"))
    huge, fine = site.url("acme/huge.git"), site.url("acme/prompts.git")
    with team_server(team_settings(tmp_path, huge)) as server:
        response = list_prompts(server).json
        assert [item["name"] for item in response["data"]["prompts"]] == BUILT_IN
        assert response["data"]["source"] == "built-in"
        assert why in response["meta"]["stale"]["reason"]
        assert why in get_sources(server)[0]["stale"]["reason"]
        assert server.request("GET", "/readyz").status == 200
        response = list_prompts(server, build_query(huge))
        assert (response.status, response.code) == (502, "PROMPTS_SOURCE_ERROR")
        assert why in response.message
        assert read_number(server, build_query(fine)) == "1"
        checkouts = [*(tmp_path / "cache/prompts").glob("*/*/*")]
        assert {path.name for path in checkouts} == {"hello.md", "pdf"}


# Concurrency


def test_responses_are_of_one_commit_during_pushes(tmp_path: Path) -> None:
    with run_loaded_server(tmp_path) as (server, repositories):
        tally = run_clients(server, repositories, lambda turn: turn < 25)
    assert tally.inconsistent == []
    assert tally.unexpected == []
    assert tally.responses.total() == 16 * 25
    assert tally.pushes > 0


# Secrets


class ResponseRecorder:
    """Records every response, to be searched."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self.responses: list[bytes] = []

    def request(self, method: str, path: str, body: object = None, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.record(self._server.request(method, path, body, named))

    def record(self, reply: HttpResponse) -> int:
        self.responses.append(str(reply.headers).encode() + reply.body)
        return reply.status


def encode_secret(secret: str) -> list[bytes]:
    """Return the ways a secret may be written: plain, or as git and clients send it."""
    pairs = (f"{user}:{secret}".encode() for user in ("x-access-token", "ada", ""))
    return [secret.encode(), *(base64.b64encode(pair).rstrip(b"=") for pair in pairs)]


def find_secrets(places: dict[str, bytes]) -> list[tuple[str, str]]:
    """Return the places that contain a secret, with the secret."""
    secrets = (AUTH, CONFIGURED, FROM_REQUEST, WEBHOOK, PASSWORD)
    return [
        (name, secret)
        for name, data in places.items()
        for secret in secrets
        if any(form in data for form in encode_secret(secret))
    ]


def list_processes() -> bytes:
    """Return the command lines of all processes."""
    result = subprocess.run(
        ["ps", "-eww", "-o", "args"], check=True, capture_output=True, timeout=DEADLINE
    )
    return result.stdout


def list_processes_during_clone(
    server: RunningServer, site: GitServer, query: str
) -> tuple[bytes, HttpResponse]:
    """Return the command lines during a slow clone, and the response."""
    site.release_event = threading.Event()
    replies: list[HttpResponse] = []

    def call() -> None:
        replies.append(list_prompts(server, query, X_Skillhall_Git_Token=FROM_REQUEST))

    client = threading.Thread(target=call)
    client.start()
    try:
        assert site.is_waiting.wait(DEADLINE)
        output = list_processes()
    finally:
        site.release_event.set()
        client.join(DEADLINE)
    return output, replies[0]


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_secrets_are_never_shown_logged_stored_or_in_arguments(
    tmp_path: Path, repo: GitRepo, site: GitServer, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "skillhall")
    git_repo(tmp_path / "private/acme/mine.git", make_commit_files(2))
    with ExitStack() as stack:
        private = stack.enter_context(run_git_server(tmp_path / "private"))
        site.token, private.token = CONFIGURED, FROM_REQUEST
        settings = team_settings(
            tmp_path,
            url,
            SKILLHALL_AUTH_TOKEN=AUTH,
            SKILLHALL_WEBHOOK_SECRET=WEBHOOK,
            SKILLHALL_GIT_TOKEN=CONFIGURED,
            SKILLHALL_GIT_TOKEN_HOSTS=f"127.0.0.1:{site.port}",
        )
        server = stack.enter_context(team_server(settings))
        assert read_number(server) == "1"  # with the configured token
        mine_url = private.url("acme/mine.git")
        recorder, mine = ResponseRecorder(server), build_query(mine_url)
        running, reply = list_processes_during_clone(server, private, mine)
        assert mine_url.encode() in running  # git is running, with its arguments
        assert recorder.record(reply) == 200
        for query in ("", mine):
            for status, token in ((200, FROM_REQUEST), (502, f"{FROM_REQUEST}-wrong")):
                expected = status if query else 502  # the configured host has another token
                assert (
                    recorder.request("GET", LIST + query, X_Skillhall_Git_Token=token) == expected
                )
        for start in ("http://ada:", "https://ada:", "https://", "ssh://ada:", "ada:"):
            with_password = build_query(f"{start}{PASSWORD}@127.0.0.1:{site.port}/acme/prompts.git")
            for method, path in (("GET", LIST), ("POST", REFRESH), ("POST", f"{LIST}/pdf")):
                assert recorder.request(method, path + with_password) in (400, 502)
        recorder.request("GET", LIST, Authorization=f"Bearer {AUTH}x")
        recorder.request("GET", f"/{AUTH}/{CONFIGURED}/{WEBHOOK}")
        recorder.request("POST", REFRESH, {"token": 1}, X_Gitlab_Token=WEBHOOK)
        (repo.folder / "refs/heads/main").unlink()
        recorder.record(send_push(server, WEBHOOK, url))
        for path in ("/readyz", "/healthz", "/metrics", "/api/v1/openapi.json", "/api/v1/skills"):
            assert recorder.request("GET", path) == 200
        assert recorder.request("POST", REFRESH) == 200
        stored = read_folders(tmp_path / "cache", tmp_path / "data", tmp_path / "work")
    assert stored
    assert "skillhall.access" in {record.name for record in caplog.records}
    logs = "\n".join(f"{record.getMessage()} {record.exc_text}" for record in caplog.records)
    responses = {f"response {number}": data for number, data in enumerate(recorder.responses)}
    assert find_secrets({**responses, **stored, "logs": logs.encode(), "processes": running}) == []


def read_folders(*folders: Path) -> dict[str, bytes]:
    """Return the contents and names of all files and folders."""
    contents = {}
    for folder in folders:
        for path in folder.rglob("*"):
            contents[str(path)] = str(path).encode() + (
                path.read_bytes() if path.is_file() else b""
            )
    return contents
