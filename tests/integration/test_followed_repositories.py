"""Followed repositories: their skills, refreshes, failures and the sources page."""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.prompt_server.followed_file import FILE
from skillhall._internal.prompt_server.prompt_model import SourceSelector, SourceStatus
from skillhall._internal.prompt_server.refreshing_source import RETRY_INTERVAL
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.prompt_server.source_settings import read_prompt_sources
from skillhall._internal.settings import PromptSettings, Settings
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.wiring.server_skills import open_collection
from skillhall.errors import (
    Conflict,
    FollowingOff,
    NoSkillThere,
    PromptsSourceError,
    SkillhallError,
    SourceRejected,
)
from tests.support.actors import ACTOR
from tests.support.git_server import GitRepo, GitServer, git_repo, run_git_server
from tests.support.prompt_sources import BUILT_IN, ManualClock
from tests.support.replicas import wait_until
from tests.support.servers import HttpResponse, RunningServer, make_settings, run_server
from tests.support.skills import make_skill_md

DEADLINE = 120  # seconds
TTL = 3600
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


class FollowSetup:
    """Prompt service and its collection, over a git server."""

    def __init__(self, folder: Path, site: GitServer) -> None:
        self.folder = folder
        self.site = site
        self.time = ManualClock()
        self.team = site.url("team.git")
        self.other = site.url("other.git")
        self.settings = Settings(
            str(folder / "run"),
            str(folder / "cache"),
            data_directory=str(folder / "data"),
            allowed_networks=("127.0.0.0/8",),
            prompts=PromptSettings(self.team, cache_ttl=str(TTL)),
        )
        self.opened: list[PromptService] = []
        self.service, self.collection = self.open()

    @property
    def file(self) -> Path:
        return self.folder / "data" / FILE

    def open(self, *, poll: bool = False) -> tuple[PromptService, Collection]:
        sources = replace(read_prompt_sources(self.settings), clock=self.time.clock)
        service = PromptService(sources, poll=poll)
        self.opened.append(service)
        return service, open_collection(self.settings, service)

    def follow(self) -> SourceStatus:
        return self.service.follow(SourceSelector(self.other, "skills"), actor=ACTOR)

    def followed(self) -> list[SourceStatus]:
        return [item for item in self.service.status() if item.followed is not None]


@pytest.fixture
def other(tmp_path: Path) -> GitRepo:
    git_repo(tmp_path / "served/team.git", {"a/SKILL.md": make_skill_md("a", "Of the team.")})
    files = {f"skills/{name}/SKILL.md": make_skill_md(name, "Of others.") for name in ("a", "b")}
    return git_repo(tmp_path / "served/other.git", files)


@pytest.fixture
def setup(tmp_path: Path, other: GitRepo) -> Iterator[FollowSetup]:
    with run_git_server(other.folder.parent) as site:
        setup = FollowSetup(tmp_path, site)
        yield setup
        for service in setup.opened:
            service.close()


def list_ids(collection: Collection) -> list[str]:
    return [*collection.snapshot().ids]


def test_configured_repository_takes_precedence_over_followed_ones(
    setup: FollowSetup, other: GitRepo
) -> None:
    before = setup.collection.snapshot().revision
    status = setup.follow()
    assert (status.source, status.prompts) == (f"{setup.other}/skills", 2)
    assert status.commit == other.git("rev-parse", "main")
    snapshot = setup.collection.snapshot()
    assert snapshot.revision != before
    assert {item: snapshot.skills[item].description for item in snapshot.ids} == {
        "a": "Of the team.",
        "b": "Of others.",
    }
    findings = [judged.finding for judged in snapshot.findings]
    assert [finding.message for finding in findings if finding.code is Code.SHADOWED] == [
        f"'a' from {setup.other}/skills is shadowed by the skill from {setup.team} with the same id"
    ]
    # Prompts come only from the configured repository.
    assert [*setup.service.snapshot().names] == [*BUILT_IN, "a"]


def test_followed_repository_survives_a_restart(setup: FollowSetup) -> None:
    setup.follow()
    service, collection = setup.open()
    assert list_ids(collection) == ["a"]  # requests do not wait for the first refresh
    service.refresh_followed()
    assert list_ids(collection) == ["a", "b"]
    assert "token" not in setup.file.read_text(encoding="ascii")


def test_unfollow_deletes_the_clone(setup: FollowSetup) -> None:
    setup.follow()
    [status] = setup.followed()
    assert status.followed is not None
    clones = {*(setup.folder / "cache/git").iterdir()}
    assert setup.service.unfollow(status.followed.key, actor=ACTOR).repo == setup.other
    assert list_ids(setup.collection) == ["a"]
    assert len(clones - {*(setup.folder / "cache/git").iterdir()}) == 1
    assert list_ids(setup.open()[1]) == ["a"]


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (("team.git", ""), Conflict),
        (("none.git", ""), PromptsSourceError),
        (("other.git", ""), NoSkillThere),
        (("other.git", "none"), PromptsSourceError),
        (("other.git?token=x", ""), SourceRejected),
    ],
)
def test_unreadable_or_empty_repository_is_not_added(
    setup: FollowSetup, source: tuple[str, str], error: type[SkillhallError]
) -> None:
    with pytest.raises(error) as error_info:
        setup.service.follow(SourceSelector(setup.site.url(source[0]), source[1]), actor=ACTOR)
    assert error_info.value.hint
    assert not setup.file.exists()
    assert setup.followed() == []
    assert not any((setup.folder / "cache").glob("git/*/repository"))


def test_outage_serves_stale_skills_with_the_reason(setup: FollowSetup, other: GitRepo) -> None:
    setup.follow()
    assert list_ids(setup.collection) == ["a", "b"]
    setup.site.status = 503
    setup.service.refresh_followed()
    [status] = setup.followed()
    assert status.stale is not None
    assert status.stale.since
    assert setup.collection.details("b").body
    setup.site.status = 0
    other.commit({"skills/c/SKILL.md": make_skill_md("c")})
    setup.service.refresh_followed()
    assert setup.followed()[0].stale is None
    assert list_ids(setup.collection) == ["a", "c"]


def test_repository_unreadable_at_startup_is_retried(setup: FollowSetup) -> None:
    setup.follow()
    setup.service.close()
    shutil.rmtree(setup.folder / "cache")
    setup.site.status = 503
    setup.service, collection = setup.open()
    setup.service.refresh_followed()
    [status] = setup.followed()
    assert (status.commit, status.prompts) == ("", 0)
    assert status.stale is not None
    assert status.stale.reason
    assert status.stale.since == ""
    assert list_ids(collection) == []
    setup.site.status = 0
    setup.time.seconds += RETRY_INTERVAL
    setup.service.refresh_followed()
    assert "b" in list_ids(collection)


def test_requests_do_not_wait_for_a_refresh(setup: FollowSetup) -> None:
    setup.follow()
    setup.settings = setup.settings._replace(prompts=PromptSettings())
    setup.site.release_event = threading.Event()
    _, collection = setup.open(poll=True)
    assert setup.site.is_waiting.wait(DEADLINE)
    assert list_ids(collection) == []
    setup.site.release_event.set()
    wait_until(lambda: list_ids(collection) == ["a", "b"])


def test_polling_refreshes_at_startup_after_push_and_after_ttl(
    setup: FollowSetup, other: GitRepo
) -> None:
    setup.follow()
    service, collection = setup.open(poll=True)
    wait_until(lambda: list_ids(collection) == ["a", "b"])
    other.commit({"skills/c/SKILL.md": make_skill_md("c")})
    assert not service.handle_push([setup.site.url("unknown.git")], "refs/heads/main")
    assert service.handle_push([setup.other], "refs/heads/main")
    wait_until(lambda: list_ids(collection) == ["a", "c"])
    other.commit({"skills/d/SKILL.md": make_skill_md("d")})
    git_repo(setup.folder / "served/third.git", {"e/SKILL.md": make_skill_md("e")})
    setup.time.seconds += TTL
    service.follow(SourceSelector(setup.site.url("third.git")), actor=ACTOR)
    wait_until(lambda: list_ids(collection) == ["a", "d", "e"])
    service.close()
    assert not [item for item in threading.enumerate() if item.name == "skillhall-followed"]


def test_polling_restores_a_cleared_cache(setup: FollowSetup) -> None:
    setup.follow()
    _, collection = setup.open(poll=True)
    wait_until(lambda: list_ids(collection) == ["a", "b"])
    shutil.rmtree(setup.folder / "cache/prompts")
    wait_until(lambda: list_ids(collection) == ["a", "b"])
    assert collection.details("b").body


def test_unrelated_commit_does_not_change_the_revision(setup: FollowSetup, other: GitRepo) -> None:
    setup.follow()
    revision, view = setup.collection.snapshot().revision, setup.collection.current_view()
    files = {f"skills/{name}/SKILL.md": make_skill_md(name, "Of others.") for name in ("a", "b")}
    other.commit({**files, "elsewhere.txt": b"x"})
    setup.service.refresh_followed()
    assert setup.collection.snapshot().revision == revision
    assert setup.collection.current_view() is view
    assert setup.collection.details("b").body


def test_skills_are_readable_after_the_cache_was_cleared(setup: FollowSetup) -> None:
    setup.follow()
    assert setup.collection.details("a").body
    shutil.rmtree(setup.folder / "cache")
    setup.service.refresh_followed()
    assert setup.collection.details("a").body
    assert setup.collection.details("b").body


def test_invalid_list_is_reported_and_keeps_the_repositories(setup: FollowSetup) -> None:
    setup.follow()
    setup.file.write_bytes(b"{")
    setup.service.refresh_followed()
    assert "followed.json" in str(setup.service.follow_error)
    assert list_ids(setup.collection) == ["a", "b"]
    with pytest.raises(SkillhallError, match=FILE):
        setup.service.follow(SourceSelector(setup.site.url("team.git"), "a"), actor=ACTOR)
    assert setup.file.read_bytes() == b"{"
    setup.file.unlink()
    setup.service.refresh_followed()
    assert setup.service.follow_error is None
    assert setup.followed() == []


def test_repository_that_is_no_longer_allowed_shows_the_reason(setup: FollowSetup) -> None:
    setup.follow()
    setup.settings = setup.settings._replace(allowed_networks=())
    setup.settings = setup.settings._replace(prompts=PromptSettings())
    setup.service, collection = setup.open()
    setup.service.refresh_followed()
    [status] = setup.followed()
    assert status.stale is not None
    assert "not safe" in status.stale.reason
    assert list_ids(collection) == []


def test_secret_in_the_list_is_never_shown(setup: FollowSetup) -> None:
    setup.follow()
    text = setup.file.read_text(encoding="ascii").replace("http://", "https://me:s3cr3t@")
    setup.file.write_text(text, encoding="ascii")
    setup.service.refresh_followed()
    [status] = setup.followed()
    assert status.stale is not None
    assert "s3cr3t" not in f"{status.source}{status.stale}"
    with run_server(services=Services(setup.service, setup.collection)) as server:
        for path in ("/sources", "/readyz"):
            assert b"s3cr3t" not in server.request("GET", path).body
        assert status.followed is not None
        page = follow_redirect(server, send(server, "/sources/unfollow", key=status.followed.key))
        assert "s3cr3t" not in page


def test_concurrent_follows_are_all_saved(setup: FollowSetup) -> None:
    for number in range(6):
        file = {f"s{number}/SKILL.md": make_skill_md(f"s{number}")}
        git_repo(setup.folder / f"served/{number}.git", file)
    threads = [
        threading.Thread(
            target=setup.service.follow,
            args=[SourceSelector(setup.site.url(f"{number}.git"))],
            kwargs={"actor": ACTOR},
        )
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert list_ids(setup.collection) == ["a", *(f"s{number}" for number in range(6))]
    assert len(json.loads(setup.file.read_bytes())["repositories"]) == 6


def test_shared_database_disables_following(setup: FollowSetup) -> None:
    setup.follow()
    sources = replace(read_prompt_sources(setup.settings), can_follow=False)
    with closing(PromptService(sources)) as service:
        assert isinstance(service.follow_error, FollowingOff)
        assert [item.source for item in service.status()] == [setup.team]
        with pytest.raises(FollowingOff):
            service.follow(SourceSelector(setup.other, "skills"), actor=ACTOR)
        with pytest.raises(FollowingOff):
            service.unfollow("x", actor=ACTOR)


# The page


@pytest.fixture
def server(setup: FollowSetup) -> Iterator[RunningServer]:
    settings = make_settings()._replace(prompts=setup.settings.prompts)
    services = Services(setup.service, setup.collection)
    with run_server(settings=settings, services=services) as running:
        yield running


def send(server: RunningServer, path: str, /, **fields: str) -> HttpResponse:
    return server.request("POST", path, urlencode(fields).encode(), FORM)


def follow_redirect(server: RunningServer, response: HttpResponse) -> str:
    """Return the page that a form redirects to."""
    assert response.status == 303, response.body
    cookie = response.headers["Set-Cookie"].partition(";")[0]
    location = response.headers["Location"]
    return server.request("GET", location, headers={"Cookie": cookie}).body.decode()


def test_page_adds_removes_and_restores_a_repository(
    setup: FollowSetup, server: RunningServer
) -> None:
    response = send(server, "/sources/follow", repo=setup.other, path="skills")
    page = follow_redirect(server, response)
    assert "Added" in page
    [status] = setup.followed()
    assert status.followed is not None
    assert f"Remove {setup.other}" in page
    assert f"Remove {setup.team}" not in page
    assert server.request("GET", "/api/v1/skills/b").status == 200
    listed = server.request("GET", "/api/v1/prompts").json["data"]["prompts"]
    assert "b" not in [item["name"] for item in listed]
    page = follow_redirect(server, send(server, "/sources/unfollow", key=status.followed.key))
    assert server.request("GET", "/api/v1/skills/b").status == 404
    _, _, undo = page.partition('action="/sources/follow?')
    undo = undo.partition('"')[0].replace("&amp;", "&")
    assert "Added" in follow_redirect(server, send(server, f"/sources/follow?{undo}"))
    assert server.request("GET", "/api/v1/skills/b").status == 200


def test_page_shows_the_error_and_the_submitted_values(
    setup: FollowSetup, server: RunningServer
) -> None:
    reply = send(server, "/sources/follow", repo=setup.other, path="none", branch="v9")
    page = reply.body.decode()
    assert reply.status == 502
    form = page.index("Add a repository")
    assert page.index('role="alert"', form) < page.index("</form>", form)
    for value in (setup.other, "none", "v9"):
        assert f'value="{value}"' in page
    assert send(server, "/sources/follow", repo="git@example.com:x/y.git").status == 400
    secret = send(server, "/sources/follow", repo="https://me:s3cr3t@example.com/x.git")
    assert (secret.status, b"s3cr3t" in secret.body) == (400, False)
    assert send(server, "/sources/unfollow", key="none").status == 404
    foreign = {**FORM, "Origin": "https://elsewhere.example"}
    body = urlencode({"repo": setup.other, "path": "skills"}).encode()
    assert server.request("POST", "/sources/follow", body, foreign).status == 403
    assert setup.followed() == []


def test_page_refreshes_followed_repositories(
    setup: FollowSetup, server: RunningServer, other: GitRepo
) -> None:
    setup.follow()
    commit = other.commit({"skills/c/SKILL.md": make_skill_md("c")})
    assert commit[:12] in follow_redirect(server, send(server, "/sources/refresh"))
    shutil.rmtree(other.folder)
    reply = send(server, "/sources/refresh")
    assert (reply.status, b"Serving a cached version" in reply.body) == (502, True)


def test_page_has_no_form_while_following_is_disabled(setup: FollowSetup) -> None:
    setup.file.parent.mkdir(exist_ok=True)
    setup.file.write_bytes(b"{")
    shared = PromptService(replace(read_prompt_sources(setup.settings), can_follow=False))
    setup.opened.append(shared)
    for service, text in ((setup.open()[0], FILE), (shared, "This server shares its da")):
        with run_server(services=Services(service, setup.collection)) as server:
            page = server.request("GET", "/sources").body.decode()
            assert text in page
            assert 'action="/sources/follow"' not in page
