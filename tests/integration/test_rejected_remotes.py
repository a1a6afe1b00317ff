"""What is refused leaves one clear error and every folder as it was: hosts that answer badly."""

import gzip
import shutil
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from skillhall._internal.net.connection import Network, _system_trust
from skillhall._internal.net.fetch import fetch
from skillhall._internal.sources import opener as intake
from skillhall._internal.sources.archive.source import LIMITS
from skillhall._internal.sources.git.source import GitAccess, GitLimits
from tests.support.archives import SKILL, zip_of
from tests.support.cli_sandbox import ADD, IMPORT, PASSWORD, SECRETS, Sandbox
from tests.support.git_server import FOLDER, LINK, GitRepo, GitSite, git_repo, git_site
from tests.support.github_api_server import GitHubSite, RepoFile, Repository, github_site
from tests.support.http_server import (
    Route,
    Site,
    answer,
    chunked,
    endless,
    http_site,
    make_certificate,
    redirect,
    silent,
)

HONEST = zip_of({"SKILL.md": SKILL})
HASTY = Network(overall=0.5, idle=0.2)
PAGE = b"<html>Sign in</html>"
BOMB = gzip.compress(bytes(2_000_000))
GZIP = {"Content-Encoding": "gzip"}
GREETING = b"HTTP/1.1 200 OK\r\n\r\n"
PROMISED = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n"


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow the servers of these tests; all other private addresses stay forbidden."""
    monkeypatch.setenv("SKILLHALL_ALLOW_NETWORKS", "127.0.0.1/32")


# Files by their address


@pytest.fixture
def site() -> Iterator[Site]:
    with http_site() as running:
        yield running


ANSWERS: dict[str, tuple[Route, str]] = {
    "nothing there": (answer("404 Not Found", PAGE), "not_found"),
    "gone": (answer("410 Gone"), "not_found"),
    "a fault": (answer("500 Oh", PASSWORD.encode()), "upstream_error"),
    "out of order": (answer("503 Service Unavailable"), "upstream_error"),
    "not allowed": (answer("401 Unauthorized"), "upstream_error"),
    "too many requests": (answer("429 No", headers={"Retry-After": "9"}), "rate_limited"),
    "a page": (answer(body=PAGE), "archive_rejected"),
    "less than promised": (answer(body=HONEST, length=len(HONEST) + 1), "upstream_error"),
    "half a chunk": (chunked(HONEST, end=b"ff\r\nx"), "upstream_error"),
    "more than is taken": (endless(PROMISED), "too_large"),
    "damaged gzip": (answer(body=b"junk", headers=GZIP), "upstream_error"),
    "no HTTP": (lambda talk: talk.send(b"SSH-2.0-x\r\n\r\n"), "upstream_error"),
    "hanging up": (lambda _: None, "upstream_error"),
    "a circle": (redirect("/x.zip"), "upstream_error"),
    "to nowhere": (answer("302 Found"), "upstream_error"),
    "to a private host": (redirect("http://10.0.0.1/x.zip"), "source_rejected"),
    "to metadata": (redirect("http://169.254.169.254/x.zip"), "source_rejected"),
    "to another loopback": (redirect("http://[::1]/x.zip"), "source_rejected"),
    "to a number": (redirect("http://2130706433/x.zip"), "source_rejected"),
    "to a file": (redirect("file:///etc/passwd"), "source_rejected"),
    "to a password": (redirect(f"https://a:{PASSWORD}@b.example/x"), "source_rejected"),
}


@pytest.mark.parametrize(("route", "code"), ANSWERS.values(), ids=ANSWERS)
def test_a_host_that_answers_badly_is_one_error(
    sandbox: Sandbox, site: Site, route: Route, code: str
) -> None:
    site.routes["/x.zip"] = route
    for command in (ADD, IMPORT):
        sandbox.refuses(command, [site.url("/x.zip")], code)
    assert all("authorization" not in asked.headers for asked in site.asked)


@pytest.mark.parametrize("body", [PAGE, b"", b"\xff\xfe\x00", b"---\nname: [\n---\n"])
def test_a_page_in_place_of_a_skill_is_refused(sandbox: Sandbox, site: Site, body: bytes) -> None:
    site.routes["/SKILL.md"] = answer(body=body)
    for command in (ADD, IMPORT):
        sandbox.refuses(command, [site.url("/SKILL.md")], "invalid_skill")


@pytest.mark.parametrize("route", [silent, lambda talk: talk.drip(GREETING + HONEST, 0.1)])
def test_a_host_that_takes_too_long_is_given_up(
    sandbox: Sandbox, site: Site, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "fetch", partial(fetch, network=HASTY))  # nobody waits 30 seconds
    site.routes["/x.zip"] = route
    sandbox.refuses(ADD, [site.url("/x.zip")], "upstream_timeout")


@pytest.mark.parametrize("route", [endless(GREETING), answer(body=BOMB, headers=GZIP)])
def test_a_body_without_end_is_given_up(
    sandbox: Sandbox, site: Site, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "LIMITS", replace(LIMITS, total=1_000_000))
    site.routes["/x.zip"] = route
    sandbox.refuses(ADD, [site.url("/x.zip")], "too_large")


def test_a_redirect_from_https_to_http_is_refused(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = make_certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("SKILLHALL_ALLOW_NETWORKS", "127.0.0.0/8 ::1/128")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    _system_trust.cache_clear()
    with http_site(context) as safe:
        safe.routes["/x.zip"] = redirect("http://127.0.0.1:1/x.zip")
        told = sandbox.refuses(ADD, [safe.url("/x.zip", "localhost")], "source_rejected")
    _system_trust.cache_clear()
    assert "from https to http" in told.error["message"]


# Repositories by git


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    return git_repo(tmp_path / "served/skills.git", {"pdf/SKILL.md": SKILL})


@pytest.fixture
def served(repository: GitRepo, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitSite]:
    with git_site(repository.folder.parent) as running:
        monkeypatch.setenv("SKILLHALL_GIT_TOKEN_HOSTS", f"127.0.0.1:{running.port}")
        yield running


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("none.git", "not_found"),
        ("skills.git@none", "not_found"),
        (f"skills.git@{'1' * 40}", "not_found"),
        ("private/x.git", "source_rejected"),
        ("metadata/x.git", "source_rejected"),
        ("elsewhere/x.git", "source_rejected"),
    ],
)
def test_what_a_git_host_does_not_have_or_sends_away_is_refused(
    sandbox: Sandbox, served: GitSite, source: str, code: str
) -> None:
    served.redirects |= {
        "/private/": "http://10.0.0.1/x.git",
        "/metadata/": "http://169.254.169.254/x.git",
        "/elsewhere/": f"https://a:{PASSWORD}@b.example/x.git",
    }
    for command in (ADD, IMPORT):
        sandbox.refuses(command, [served.url(source)], code)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "upstream_error"),
        (403, "upstream_error"),
        (404, "not_found"),
        (429, "rate_limited"),
        (500, "upstream_error"),
        (503, "upstream_error"),
    ],
)
def test_a_git_host_that_fails_is_one_error(
    sandbox: Sandbox, served: GitSite, status: int, code: str
) -> None:
    served.status = status
    sandbox.refuses(ADD, [served.url("skills.git")], code)


@pytest.mark.parametrize("token", ["", SECRETS["SKILLHALL_GIT_TOKEN"]])
def test_a_git_host_that_wants_another_token_is_shown_none(
    sandbox: Sandbox, served: GitSite, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.token = "another"  # noqa: S105 - of nobody
    monkeypatch.setenv("SKILLHALL_GIT_TOKEN", token)
    told = sandbox.refuses(ADD, [served.url("skills.git")], "upstream_error")
    assert "token" in told.error["message"] or "credentials" in told.error["message"]


def _evil(name: str) -> Callable[[GitRepo], object]:
    return lambda repo: repo.commit_tree(
        repo.tree([(FOLDER, repo.files({"config": b"x", "SKILL.md": SKILL}), name)])
    )


def _lose_file(repo: GitRepo) -> None:
    name = repo.blob(SKILL)
    (repo.folder / "objects" / name[:2] / name[2:]).unlink()


TREES: dict[str, tuple[Callable[[GitRepo], object], str]] = {
    "the inside of git": (_evil(".git"), "upstream_error"),
    "the inside of git in capitals": (_evil(".GIT"), "upstream_error"),
    "the inside of git by its short name": (_evil("git~1"), "upstream_error"),
    "a way up": (_evil(".."), "upstream_error"),
    "a file that is missing": (_lose_file, "upstream_error"),
}
EMPTY_TREES: dict[str, Callable[[GitRepo], object]] = {
    "no skill": lambda repo: repo.commit({"README.md": b"x"}),
    "a SKILL.md that is a link": lambda repo: repo.commit(
        {"pdf/SKILL.md": b"/etc/passwd"}, {"pdf/SKILL.md": LINK}
    ),
    "a folder that is a link": lambda repo: repo.commit({"pdf": b"/etc"}, {"pdf": LINK}),
}


@pytest.mark.parametrize(("build", "code"), TREES.values(), ids=TREES)
def test_a_hostile_tree_is_refused(
    sandbox: Sandbox,
    served: GitSite,
    repository: GitRepo,
    build: Callable[[GitRepo], object],
    code: str,
) -> None:
    build(repository)
    sandbox.refuses(ADD, [served.url("skills.git")], code)


@pytest.mark.parametrize("build", EMPTY_TREES.values(), ids=EMPTY_TREES)
def test_a_repository_without_a_skill_is_kept_in_the_cache_alone(
    sandbox: Sandbox, served: GitSite, repository: GitRepo, build: Callable[[GitRepo], object]
) -> None:
    build(repository)
    sandbox.refuses(ADD, [served.url("skills.git")], "not_found", keeps=["cache"])


def test_a_git_host_that_takes_too_long_is_given_up(
    sandbox: Sandbox, served: GitSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = partial(GitAccess, limits=GitLimits(overall=0.5))
    monkeypatch.setattr(intake, "GitAccess", hasty)  # nobody waits 120 seconds
    served.hold = threading.Event()
    sandbox.refuses(ADD, [served.url("skills.git")], "upstream_timeout")


def test_a_repository_that_is_too_large_is_refused(
    sandbox: Sandbox, served: GitSite, repository: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = partial(GitAccess, limits=GitLimits(size=50_000))
    monkeypatch.setattr(intake, "GitAccess", small)  # nobody sends 500 MiB
    repository.commit({"pdf/SKILL.md": SKILL, "pdf/blank": bytes(60_000)})
    sandbox.refuses(ADD, [served.url("skills.git")], "too_large")


# GitHub without git


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubSite]:
    with github_site() as running:
        running.tokens.add(SECRETS["GITHUB_TOKEN"])
        running.repositories["acme/skills"] = Repository()
        running.repositories["acme/skills"].commit({"pdf/SKILL.md": SKILL})
        monkeypatch.setenv("SKILLHALL_GIT", "off")
        monkeypatch.setenv("SKILLHALL_GITHUB_API_URL", running.api_url)
        yield running


HEAD = "/repos/acme/skills/commits/HEAD"


@pytest.mark.parametrize(
    ("source", "route", "code"),
    [
        ("acme/none", None, "not_found"),
        ("acme/skills@none", None, "not_found"),
        ("acme/skills", answer("500 Oh", PASSWORD.encode()), "upstream_error"),
        ("acme/skills", answer("403 No", headers={"Retry-After": "9"}), "rate_limited"),
        ("acme/skills", answer("401 No"), "upstream_error"),
        ("acme/skills", answer(body=PAGE), "upstream_error"),
        ("acme/skills", redirect("http://10.0.0.1/x"), "source_rejected"),
        ("acme/skills", redirect("http://169.254.169.254/x"), "source_rejected"),
        ("acme/skills", answer("409 Empty"), "not_found"),
    ],
)
def test_a_github_that_answers_badly_is_one_error(
    sandbox: Sandbox, github: GitHubSite, source: str, route: Route | None, code: str
) -> None:
    if route is not None:
        github.instead[HEAD] = route
    for command in (ADD, IMPORT):
        sandbox.refuses(command, [source], code)


@pytest.mark.parametrize("kind", ["trees", "blobs"])
@pytest.mark.parametrize("route", [answer(body=b"lies"), answer("404 No"), answer("502 No")])
def test_a_github_that_fails_later_leaves_answers_in_the_cache_alone(
    sandbox: Sandbox, github: GitHubSite, kind: str, route: Route
) -> None:
    [(sha, files)] = github.repositories["acme/skills"].commits.items()
    one = sha if kind == "trees" else files["pdf/SKILL.md"].sha
    github.instead[f"/repos/acme/skills/git/{kind}/{one}"] = route
    told = sandbox.run(*ADD, "--json", "acme/skills")
    code = told.error["code"]
    assert code in ("upstream_error", "not_found")
    sandbox.refuses(ADD, ["acme/skills"], code, keeps=["cache"])


def test_a_skill_md_that_is_a_link_is_none_on_github_either(
    sandbox: Sandbox, github: GitHubSite
) -> None:
    github.repositories["acme/skills"].commit(
        {"pdf/SKILL.md": RepoFile(b"/etc/passwd", LINK), "README.md": b"x"}
    )
    sandbox.refuses(ADD, ["acme/skills"], "not_found", keeps=["cache"])
