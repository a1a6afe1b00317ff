"""Repositories that people add on the page of sources: their skills, come what may."""

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
from skillhall._internal.hints import find_hint
from skillhall._internal.prompts.followed_file import FILE
from skillhall._internal.prompts.prompt_model import SourceSelector, SourceStatus
from skillhall._internal.prompts.refreshing_source import RETRY_INTERVAL
from skillhall._internal.prompts.service import PromptService
from skillhall._internal.prompts.source_settings import read_prompt_sources
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
from tests.support.git_server import GitRepo, GitServer, git_repo, run_git_server
from tests.support.prompt_sources import BUILT_IN, ManualClock
from tests.support.replicas import wait_until
from tests.support.servers import HttpResponse, RunningServer, make_settings, run_server
from tests.support.skills import make_skill_md

DEADLINE = 120  # seconds
TTL = 3600
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


class Hall:
    """A counter and its collection, over a site with three repositories."""

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
        self.counter, self.collection = self.open()

    @property
    def file(self) -> Path:
        return self.folder / "data" / FILE

    def open(self, *, watch: bool = False) -> tuple[PromptService, Collection]:
        supply = replace(read_prompt_sources(self.settings), clock=self.time.clock)
        counter = PromptService(supply, poll=watch)
        self.opened.append(counter)
        return counter, open_collection(self.settings, counter)

    def follow(self) -> SourceStatus:
        return self.counter.follow(SourceSelector(self.other, "skills"))

    def followed(self) -> list[SourceStatus]:
        return [one for one in self.counter.status() if one.followed is not None]


@pytest.fixture
def other(tmp_path: Path) -> GitRepo:
    git_repo(tmp_path / "served/team.git", {"a/SKILL.md": make_skill_md("a", "Of the team.")})
    files = {f"skills/{name}/SKILL.md": make_skill_md(name, "Of others.") for name in ("a", "b")}
    return git_repo(tmp_path / "served/other.git", files)


@pytest.fixture
def hall(tmp_path: Path, other: GitRepo) -> Iterator[Hall]:
    with run_git_server(other.folder.parent) as site:
        made = Hall(tmp_path, site)
        yield made
        for counter in made.opened:
            counter.close()


def names(collection: Collection) -> list[str]:
    return [*collection.snapshot().ids]


def test_skills_of_a_followed_repository_come_after_those_of_the_configured_one(
    hall: Hall, other: GitRepo
) -> None:
    before = hall.collection.snapshot().revision
    status = hall.follow()
    assert (status.source, status.prompts) == (f"{hall.other}/skills", 2)
    assert status.commit == other.git("rev-parse", "main")
    shown = hall.collection.snapshot()
    assert shown.revision != before
    assert {one: shown.skills[one].description for one in shown.ids} == {
        "a": "Of the team.",
        "b": "Of others.",
    }
    hidden = [one.finding for one in shown.findings if one.finding.code is Code.SHADOWED]
    assert [one.message for one in hidden] == [
        f"'a' of {hall.other}/skills is shadowed by the skill of {hall.team} with the same id"
    ]
    assert [*hall.counter.snapshot().names] == [*BUILT_IN, "a"]  # prompts are the configured ones


def test_what_is_followed_stays_when_the_server_starts_again(hall: Hall) -> None:
    hall.follow()
    counter, collection = hall.open()
    assert names(collection) == ["a"]  # nobody waits for what was not read yet
    counter.refresh_followed()
    assert names(collection) == ["a", "b"]
    assert "token" not in hall.file.read_text(encoding="ascii")


def test_what_is_removed_is_gone_with_git_s_copy_of_it(hall: Hall) -> None:
    hall.follow()
    [status] = hall.followed()
    assert status.followed is not None
    copies = {*(hall.folder / "cache/git").iterdir()}
    assert hall.counter.unfollow(status.followed.key).repo == hall.other
    assert names(hall.collection) == ["a"]
    assert len(copies - {*(hall.folder / "cache/git").iterdir()}) == 1
    assert names(hall.open()[1]) == ["a"]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (("team.git", ""), Conflict),
        (("none.git", ""), PromptsSourceError),
        (("other.git", ""), NoSkillThere),
        (("other.git", "none"), PromptsSourceError),
        (("other.git?token=x", ""), SourceRejected),
    ],
)
def test_what_cannot_be_read_or_has_no_skill_is_not_kept(
    hall: Hall, asked: tuple[str, str], error: type[SkillhallError]
) -> None:
    with pytest.raises(error) as told:
        hall.counter.follow(SourceSelector(hall.site.url(asked[0]), asked[1]))
    assert find_hint(told.value, {})
    assert not hall.file.exists()
    assert hall.followed() == []
    assert not any((hall.folder / "cache").glob("git/*/repository"))


def test_while_its_host_is_away_the_last_copy_serves_and_says_why(
    hall: Hall, other: GitRepo
) -> None:
    hall.follow()
    assert names(hall.collection) == ["a", "b"]
    hall.site.status = 503
    hall.counter.refresh_followed()
    [status] = hall.followed()
    assert status.stale is not None
    assert status.stale.since
    assert hall.collection.details("b").body
    hall.site.status = 0
    other.commit({"skills/c/SKILL.md": make_skill_md("c")})
    hall.counter.refresh_followed()
    assert hall.followed()[0].stale is None
    assert names(hall.collection) == ["a", "c"]


def test_one_that_cannot_be_read_at_the_start_is_told_and_tried_again(hall: Hall) -> None:
    hall.follow()
    hall.counter.close()
    shutil.rmtree(hall.folder / "cache")
    hall.site.status = 503
    hall.counter, collection = hall.open()
    hall.counter.refresh_followed()
    [status] = hall.followed()
    assert (status.commit, status.prompts) == ("", 0)
    assert status.stale is not None
    assert status.stale.reason
    assert status.stale.since == ""
    assert names(collection) == []
    hall.site.status = 0
    hall.time.seconds += RETRY_INTERVAL
    hall.counter.refresh_followed()
    assert "b" in names(collection)


def test_nobody_waits_while_one_is_read(hall: Hall) -> None:
    hall.follow()
    hall.settings = hall.settings._replace(prompts=PromptSettings())
    hall.site.release_event = threading.Event()
    _, collection = hall.open(watch=True)
    assert hall.site.is_waiting.wait(DEADLINE)
    assert names(collection) == []
    hall.site.release_event.set()
    wait_until(lambda: names(collection) == ["a", "b"])


def test_the_watch_reads_at_the_start_after_a_push_and_when_the_time_is_over(
    hall: Hall, other: GitRepo
) -> None:
    hall.follow()
    counter, collection = hall.open(watch=True)
    wait_until(lambda: names(collection) == ["a", "b"])
    other.commit({"skills/c/SKILL.md": make_skill_md("c")})
    assert not counter.handle_push([hall.site.url("unknown.git")], "refs/heads/main")
    assert counter.handle_push([hall.other], "refs/heads/main")
    wait_until(lambda: names(collection) == ["a", "c"])
    other.commit({"skills/d/SKILL.md": make_skill_md("d")})
    git_repo(hall.folder / "served/third.git", {"e/SKILL.md": make_skill_md("e")})
    hall.time.seconds += TTL
    counter.follow(SourceSelector(hall.site.url("third.git")))
    wait_until(lambda: names(collection) == ["a", "d", "e"])
    counter.close()
    assert not [one for one in threading.enumerate() if one.name == "skillhall-followed"]


def test_what_a_cleared_cache_held_is_read_again_by_the_watch(hall: Hall) -> None:
    hall.follow()
    _, collection = hall.open(watch=True)
    wait_until(lambda: names(collection) == ["a", "b"])
    shutil.rmtree(hall.folder / "cache/prompts")
    wait_until(lambda: names(collection) == ["a", "b"])
    assert collection.details("b").body


def test_a_commit_elsewhere_in_the_repository_leaves_skills_as_they_are(
    hall: Hall, other: GitRepo
) -> None:
    hall.follow()
    revision, offer = hall.collection.snapshot().revision, hall.collection.current_view()
    files = {f"skills/{name}/SKILL.md": make_skill_md(name, "Of others.") for name in ("a", "b")}
    other.commit({**files, "elsewhere.txt": b"x"})
    hall.counter.refresh_followed()
    assert hall.collection.snapshot().revision == revision
    assert hall.collection.current_view() is offer
    assert hall.collection.details("b").body


def test_skills_can_be_read_after_the_cache_was_cleared(hall: Hall) -> None:
    hall.follow()
    assert hall.collection.details("a").body
    shutil.rmtree(hall.folder / "cache")
    hall.counter.refresh_followed()
    assert hall.collection.details("a").body
    assert hall.collection.details("b").body


def test_a_broken_list_is_told_and_what_is_followed_stays(hall: Hall) -> None:
    hall.follow()
    hall.file.write_bytes(b"{")
    hall.counter.refresh_followed()
    assert "followed.json" in str(hall.counter.follow_error)
    assert names(hall.collection) == ["a", "b"]
    with pytest.raises(SkillhallError, match=FILE):
        hall.counter.follow(SourceSelector(hall.site.url("team.git"), "a"))
    assert hall.file.read_bytes() == b"{"
    hall.file.unlink()
    hall.counter.refresh_followed()
    assert hall.counter.follow_error is None
    assert hall.followed() == []


def test_one_that_the_operator_no_longer_allows_is_shown_with_the_reason(hall: Hall) -> None:
    hall.follow()
    hall.settings = hall.settings._replace(allowed_networks=())
    hall.settings = hall.settings._replace(prompts=PromptSettings())
    hall.counter, collection = hall.open()
    hall.counter.refresh_followed()
    [status] = hall.followed()
    assert status.stale is not None
    assert "not safe" in status.stale.reason
    assert names(collection) == []


def test_a_secret_that_somebody_wrote_into_the_list_is_not_told(hall: Hall) -> None:
    hall.follow()
    text = hall.file.read_text(encoding="ascii").replace("http://", "https://me:s3cr3t@")
    hall.file.write_text(text, encoding="ascii")
    hall.counter.refresh_followed()
    [status] = hall.followed()
    assert status.stale is not None
    assert "s3cr3t" not in f"{status.source}{status.stale}"
    with run_server(services=Services(hall.counter, hall.collection)) as server:
        for place in ("/sources", "/readyz"):
            assert b"s3cr3t" not in server.request("GET", place).body
        assert status.followed is not None
        page = told(server, send(server, "/sources/unfollow", key=status.followed.key))
        assert "s3cr3t" not in page


def test_many_are_added_at_once_and_none_is_lost(hall: Hall) -> None:
    for number in range(6):
        file = {f"s{number}/SKILL.md": make_skill_md(f"s{number}")}
        git_repo(hall.folder / f"served/{number}.git", file)
    threads = [
        threading.Thread(
            target=hall.counter.follow, args=[SourceSelector(hall.site.url(f"{number}.git"))]
        )
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert names(hall.collection) == ["a", *(f"s{number}" for number in range(6))]
    assert len(json.loads(hall.file.read_bytes())["repositories"]) == 6


def test_servers_that_share_a_database_follow_nothing(hall: Hall) -> None:
    hall.follow()
    supply = replace(read_prompt_sources(hall.settings), can_follow=False)
    with closing(PromptService(supply)) as counter:
        assert isinstance(counter.follow_error, FollowingOff)
        assert [one.source for one in counter.status()] == [hall.team]
        with pytest.raises(FollowingOff):
            counter.follow(SourceSelector(hall.other, "skills"))
        with pytest.raises(FollowingOff):
            counter.unfollow("x")


# The page


@pytest.fixture
def server(hall: Hall) -> Iterator[RunningServer]:
    settings = make_settings()._replace(prompts=hall.settings.prompts)
    with run_server(settings=settings, services=Services(hall.counter, hall.collection)) as one:
        yield one


def send(server: RunningServer, place: str, /, **given: str) -> HttpResponse:
    return server.request("POST", place, urlencode(given).encode(), FORM)


def told(server: RunningServer, done: HttpResponse) -> str:
    """The page that a form leads to."""
    assert done.status == 303, done.body
    cookie = done.headers["Set-Cookie"].partition(";")[0]
    return server.request("GET", done.headers["Location"], headers={"Cookie": cookie}).body.decode()


def test_a_repository_is_added_removed_and_brought_back_on_the_page(
    hall: Hall, server: RunningServer
) -> None:
    page = told(server, send(server, "/sources/follow", repo=hall.other, path="skills"))
    assert "Added" in page
    [status] = hall.followed()
    assert status.followed is not None
    assert f"Remove {hall.other}" in page
    assert f"Remove {hall.team}" not in page
    assert server.request("GET", "/api/v1/skills/b").status == 200
    listed = server.request("GET", "/api/v1/prompts").json["data"]["prompts"]
    assert "b" not in [one["name"] for one in listed]
    page = told(server, send(server, "/sources/unfollow", key=status.followed.key))
    assert server.request("GET", "/api/v1/skills/b").status == 404
    _, _, undo = page.partition('action="/sources/follow?')
    undo = undo.partition('"')[0].replace("&amp;", "&")
    assert "Added" in told(server, send(server, f"/sources/follow?{undo}"))
    assert server.request("GET", "/api/v1/skills/b").status == 200


def test_what_cannot_be_added_is_told_beside_the_form_with_what_was_typed(
    hall: Hall, server: RunningServer
) -> None:
    reply = send(server, "/sources/follow", repo=hall.other, path="none", branch="v9")
    page = reply.body.decode()
    assert reply.status == 502
    assert page.index("Add a repository") < page.index('role="alert"')
    for value in (hall.other, "none", "v9"):
        assert f'value="{value}"' in page
    assert send(server, "/sources/follow", repo="git@example.com:x/y.git").status == 400
    secret = send(server, "/sources/follow", repo="https://me:s3cr3t@example.com/x.git")
    assert (secret.status, b"s3cr3t" in secret.body) == (400, False)
    assert send(server, "/sources/unfollow", key="none").status == 404
    foreign = {**FORM, "Origin": "https://elsewhere.example"}
    body = urlencode({"repo": hall.other, "path": "skills"}).encode()
    assert server.request("POST", "/sources/follow", body, foreign).status == 403
    assert hall.followed() == []


def test_a_refresh_on_the_page_looks_at_what_is_followed(
    hall: Hall, server: RunningServer, other: GitRepo
) -> None:
    hall.follow()
    commit = other.commit({"skills/c/SKILL.md": make_skill_md("c")})
    assert commit[:12] in told(server, send(server, "/sources/refresh"))
    shutil.rmtree(other.folder)
    reply = send(server, "/sources/refresh")
    assert (reply.status, b"An older copy is served" in reply.body) == (502, True)


def test_the_page_has_no_form_while_nothing_can_be_added(hall: Hall) -> None:
    hall.file.parent.mkdir(exist_ok=True)
    hall.file.write_bytes(b"{")
    shared = PromptService(replace(read_prompt_sources(hall.settings), can_follow=False))
    hall.opened.append(shared)
    for counter, text in ((hall.open()[0], FILE), (shared, "Several servers share")):
        with run_server(services=Services(counter, hall.collection)) as server:
            page = server.request("GET", "/sources").body.decode()
            assert text in page
            assert 'action="/sources/follow"' not in page
