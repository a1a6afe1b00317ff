"""Prompt service over real repositories on a git server."""

import gc
import json
import random
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from skillhall._internal.policy.effects import Effect
from skillhall._internal.prompt_server.prompt_model import (
    SourceSelector,
)
from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot
from skillhall._internal.prompt_server.refreshing_source import RETRY_INTERVAL
from skillhall._internal.prompt_server.service import PromptService, PromptSources
from skillhall._internal.prompt_server.source_settings import read_prompt_sources
from skillhall._internal.settings import PromptSettings, Secret, Settings
from skillhall._internal.skill.finding import Code
from skillhall._internal.sources.git.remote import GitLimits
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall.errors import (
    PromptsSourceError,
    SkillhallError,
    SourceRejected,
    SourceUnknown,
)
from tests.support.actors import ACTOR
from tests.support.git_server import LINK, GitRepo, GitServer, git_repo, run_git_server
from tests.support.prompt_sources import (
    BUILT_IN,
    ManualClock,
    get_prompt,
    get_prompt_text,
    list_prompts,
    make_upload,
)
from tests.support.skills import make_skill_md

DEADLINE = 120  # seconds
TTL = 3600
TOKEN = "s3cr3t-t0ken-0123456789"  # noqa: S105 - only for tests

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


def make_files(number: int) -> dict[str, bytes]:
    """Return the files of one commit, each with its number."""
    text = f"commit {number}"
    return {
        "hello.md": make_skill_md("hello", text, text),
        "pdf/SKILL.md": make_skill_md("pdf", text, text),
        "pdf/data/number.txt": text.encode(),
        "docs/readme.txt": b"no prompt",
    }


def read_number(snapshot: PromptSnapshot) -> str:
    """Return the number that everything in a snapshot contains."""
    texts: set[str] = {prompt["description"] for prompt in list_prompts(snapshot).values()}
    texts |= {get_prompt_text(snapshot, "hello"), get_prompt_text(snapshot, "pdf")}
    texts.add(snapshot.prompt("pdf").files[0].data.decode())
    assert len(texts) == 1, texts
    return texts.pop().removeprefix("commit ")


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    return git_repo(tmp_path / "served/acme/prompts.git", make_files(1))


@pytest.fixture
def site(repo: GitRepo) -> Iterator[GitServer]:
    with run_git_server(repo.folder.parents[1]) as running:
        yield running


@pytest.fixture
def time() -> ManualClock:
    return ManualClock()


class ServiceSetup:
    """Opens prompt services over one git server, and closes them."""

    def __init__(self, folder: Path, site: GitServer, time: ManualClock) -> None:
        self.folder = folder
        self.site = site
        self.time = time
        self.opened: list[PromptService] = []
        self.url = site.url("acme/prompts.git")

    def sources(self, repo: str | None = None, **settings_fields: str) -> PromptSources:
        prompt_settings = {"cache_ttl": str(TTL), **settings_fields}
        settings = Settings(
            str(self.folder),
            str(self.folder / "cache"),
            data_directory=str(self.folder / "data"),
            allowed_networks=("127.0.0.0/8",),
            prompts=PromptSettings(self.url if repo is None else repo, **prompt_settings),
        )
        return replace(read_prompt_sources(settings), clock=self.time.clock)

    def open(self, sources: PromptSources | None = None, *, poll: bool = False) -> PromptService:
        service = PromptService(sources or self.sources(), poll=poll)
        self.opened.append(service)
        return service

    def list_checkouts(self) -> list[Path]:
        return sorted((self.folder / "cache/prompts").glob("*/*"))


@pytest.fixture
def setup(tmp_path: Path, site: GitServer, time: ManualClock) -> Iterator[ServiceSetup]:
    setup = ServiceSetup(tmp_path, site, time)
    yield setup
    for service in setup.opened:
        service.close()


def codes(snapshot: PromptSnapshot) -> list[tuple[Code, str]]:
    findings = [
        judged.finding for judged in snapshot.findings if judged.effect is not Effect.ACCEPT
    ]
    return [(item.code, item.path) for item in findings]


# Prompts


def test_repository_prompts_follow_the_built_in_ones(setup: ServiceSetup, repo: GitRepo) -> None:
    snapshot = setup.open().snapshot()
    assert list(snapshot.names) == [*BUILT_IN, "hello", "pdf"]
    assert snapshot.source == setup.url
    assert snapshot.commit == repo.git("rev-parse", "main")
    assert snapshot.stale is None
    assert read_number(snapshot) == "1"
    assert codes(snapshot) == [(Code.NO_SKILL_MD, "docs")]


def test_built_in_prompts_are_served_without_a_repository(setup: ServiceSetup) -> None:
    service = setup.open(setup.sources(""))
    assert list(service.snapshot().names) == BUILT_IN
    assert service.refresh().source == "built-in"
    assert [item.source for item in service.status()] == ["built-in"]
    assert setup.site.requests == []


def test_path_in_the_repository_is_the_root(setup: ServiceSetup, repo: GitRepo) -> None:
    repo.commit({f"a/b/{path}": data for path, data in make_files(7).items()})
    service = setup.open(setup.sources(path="a/b"))
    assert read_number(service.snapshot()) == "7"
    assert read_number(setup.open().snapshot(SourceSelector(path="a/b"))) == "7"
    with pytest.raises(PromptsSourceError, match="nothing was found at"):
        service.snapshot(SourceSelector(path="a/c"))


def test_links_and_hidden_files_are_skipped(setup: ServiceSetup, repo: GitRepo) -> None:
    files = {
        "pdf/SKILL.md": make_skill_md("pdf"),
        "pdf/passwd": b"/etc/passwd",
        "pdf/.env": b"SECRET=1",
        "link.md": b"/etc/passwd",
        "folder": b"../..",
        ".github/x.md": make_skill_md("x"),
    }
    repo.commit(files, {"pdf/passwd": LINK, "link.md": LINK, "folder": LINK})
    snapshot = setup.open().snapshot()
    assert list(list_prompts(snapshot)) == ["pdf"]
    assert "files" not in get_prompt(snapshot, "pdf")
    assert snapshot.summary("pdf").has_files
    assert sorted(codes(snapshot)) == [
        (Code.FILE_LEFT_OUT, "pdf/passwd"),
        (Code.LINK_SKIPPED, "folder"),
        (Code.LINK_SKIPPED, "link.md"),
    ]


def test_unsafe_names_and_huge_files_are_skipped(setup: ServiceSetup, repo: GitRepo) -> None:
    files = {
        "pdf/SKILL.md": make_skill_md("pdf"),
        "pdf/huge": bytes(10 * 1024 * 1024 + 1),
        "con/SKILL.md": make_skill_md("con"),
        f"{'x' * 256}.md": make_skill_md("long"),
    }
    repo.commit(files)
    snapshot = setup.open().snapshot()
    assert list(list_prompts(snapshot)) == ["pdf"]
    assert snapshot.summary("pdf").has_files
    assert sorted(codes(snapshot)) == [
        (Code.FILE_LEFT_OUT, ""),
        (Code.FILE_TOO_LARGE, "pdf/huge"),
        (Code.UNSAFE_PATH, ""),
    ]


def test_missing_main_branch_falls_back_to_head_with_a_finding(
    setup: ServiceSetup, repo: GitRepo
) -> None:
    repo.commit(make_files(5), ref="refs/heads/trunk")
    (repo.folder / "HEAD").write_text("ref: refs/heads/trunk\n", encoding="ascii")
    (repo.folder / "refs/heads/main").unlink()
    service = setup.open()
    assert read_number(service.snapshot()) == "5"
    assert (Code.BRANCH_MISSING, "") in codes(service.snapshot())
    repo.commit(make_files(6), ref="refs/heads/trunk")
    assert read_number(service.refresh()) == "6"
    with pytest.raises(PromptsSourceError):
        service.snapshot(SourceSelector(branch="main"))


def test_configured_folder_is_read_as_a_snapshot(setup: ServiceSetup) -> None:
    folder = setup.folder / "mine"
    folder.mkdir()
    (folder / "hello.md").write_bytes(make_skill_md("hello", "1", "1"))
    (folder / "bad.md").write_bytes(b"x")
    (folder / "link.md").symlink_to("/etc/passwd")
    service = setup.open(setup.sources("./mine"))
    first = service.snapshot()
    (folder / "hello.md").write_bytes(make_skill_md("hello", "2", "2"))
    assert (first.source, get_prompt_text(first, "hello")) == ("mine", "1")
    assert sorted(codes(first)) == [(Code.LINK_SKIPPED, "link.md"), (Code.NO_FRONTMATTER, "bad.md")]
    assert get_prompt_text(service.refresh(), "hello") == "2"
    assert service.refresh() is service.snapshot()
    shutil.rmtree(folder)
    stale = service.refresh().stale
    assert stale is not None
    assert str(setup.folder) not in stale.reason


# Refreshes


def test_unchanged_repository_is_not_fetched_again(setup: ServiceSetup, time: ManualClock) -> None:
    service = setup.open()
    first = service.snapshot()
    setup.site.requests.clear()
    assert service.snapshot() is first
    assert setup.site.requests == []
    time.seconds += TTL
    assert service.snapshot() is first
    assert 1 <= len(setup.site.requests) <= 2  # protocol negotiation and the refs


def test_new_commit_is_served_after_ttl_or_refresh(
    setup: ServiceSetup, repo: GitRepo, time: ManualClock
) -> None:
    service = setup.open()
    old = service.snapshot()
    repo.commit(make_files(2))
    assert read_number(service.snapshot()) == "1"
    time.seconds += TTL
    new = service.snapshot()
    assert (read_number(old), read_number(new)) == ("1", "2")
    assert old.digest != new.digest
    repo.commit(make_files(3))
    assert read_number(service.refresh()) == "3"


def test_rewritten_history_is_served(setup: ServiceSetup, repo: GitRepo) -> None:
    service = setup.open()
    first = repo.git("rev-parse", "main")
    repo.commit(make_files(2), parent=first)
    assert read_number(service.refresh()) == "2"
    repo.commit(make_files(3))  # without a parent, like a force push
    assert read_number(service.refresh()) == "3"


def test_deleted_branch_serves_the_stale_snapshot(setup: ServiceSetup, repo: GitRepo) -> None:
    service = setup.open()
    service.snapshot()
    (repo.folder / "refs/heads/main").unlink()
    stale = service.refresh().stale
    assert stale is not None
    assert stale.since == "2023-11-14T22:30:00Z"
    assert read_number(service.snapshot()) == "1"


def test_outage_serves_stale_snapshot_and_delays_retries(
    setup: ServiceSetup, repo: GitRepo, time: ManualClock
) -> None:
    service = setup.open()
    service.snapshot()
    repo.commit(make_files(2))
    setup.site.status = 503
    time.seconds += TTL
    stale = service.snapshot()
    assert stale.stale is not None
    assert "127.0.0.1" in stale.stale.reason
    count = len(setup.site.requests)
    assert service.snapshot().stale == stale.stale
    assert len(setup.site.requests) == count
    setup.site.status = 0
    time.seconds += RETRY_INTERVAL
    assert service.snapshot().stale is None
    assert read_number(service.snapshot()) == "2"


def test_repository_unreadable_at_startup_leaves_built_in_prompts(
    setup: ServiceSetup, time: ManualClock
) -> None:
    setup.site.status = 500
    service = setup.open()
    first = service.snapshot()
    assert list(first.names) == BUILT_IN
    assert first.source == "built-in"
    assert first.stale is not None
    assert setup.url in first.stale.reason
    (status,) = service.status()
    assert (status.source, status.stale) == (setup.url, first.stale)
    setup.site.status = 0
    assert list(service.snapshot().names) == BUILT_IN
    time.seconds += RETRY_INTERVAL
    assert read_number(service.snapshot()) == "1"


def test_restart_during_an_outage_serves_the_stale_clone(setup: ServiceSetup) -> None:
    setup.open().snapshot()
    setup.site.status = 503
    snapshot = setup.open().snapshot()
    assert read_number(snapshot) == "1"
    assert snapshot.stale is not None
    assert snapshot.stale.since


def test_too_large_repository_serves_the_stale_snapshot(setup: ServiceSetup, repo: GitRepo) -> None:
    sources = setup.sources()
    limits = GitLimits(max_bytes=200_000)
    service = setup.open(replace(sources, git_access=replace(sources.git_access, limits=limits)))
    service.snapshot()
    noise = random.Random(1).randbytes(1_000_000)  # noqa: S311 - bytes that do not shrink
    repo.commit({**make_files(2), "pdf/noise": noise})
    snapshot = service.refresh()
    assert snapshot.stale is not None
    assert "limit of 200000" in snapshot.stale.reason
    assert read_number(snapshot) == "1"


def test_slow_refresh_does_not_block_other_requests(
    setup: ServiceSetup, repo: GitRepo, time: ManualClock
) -> None:
    service = setup.open()
    service.snapshot()
    repo.commit(make_files(2))
    setup.site.release_event = threading.Event()
    time.seconds += TTL
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(service.snapshot)
        assert setup.site.is_waiting.wait(DEADLINE)
        assert [read_number(service.snapshot()) for _ in range(3)] == ["1"] * 3
        setup.site.release_event.set()
        assert read_number(future.result(DEADLINE)) == "2"


# Pushes and polling


def test_push_makes_the_next_request_refresh(setup: ServiceSetup, repo: GitRepo) -> None:
    service = setup.open()
    service.snapshot()
    repo.commit(make_files(2))
    assert not service.handle_push([setup.site.url("acme/other.git")], "main")
    assert read_number(service.snapshot()) == "1"
    assert service.handle_push(["git@127.0.0.1:acme/prompts.git"], "refs/heads/main")
    assert read_number(service.snapshot()) == "2"


def wait_for_commit(service: PromptService, commit: str) -> bool:
    """Whether the commit is served within the deadline."""
    moment = threading.Event()
    return any(service.status()[0].commit == commit or moment.wait(0.02) for _ in range(6000))


def test_polling_refreshes_at_startup_and_after_a_push(setup: ServiceSetup, repo: GitRepo) -> None:
    service = setup.open(poll=True)
    assert wait_for_commit(service, repo.git("rev-parse", "main"))
    second = repo.commit(make_files(2))
    service.handle_push([setup.url], "main")
    assert wait_for_commit(service, second)
    service.close()
    assert not [item for item in threading.enumerate() if item.name == "skillhall-prompts"]


def test_wiring_opens_a_service_from_settings(setup: ServiceSetup) -> None:
    settings = Settings(
        str(setup.folder),
        str(setup.folder / "cache"),
        data_directory=str(setup.folder / "data"),
        allowed_networks=("127.0.0.0/8",),
        prompts=PromptSettings(setup.url),
    )
    opened = open_prompt_service(settings, poll=False)
    setup.opened.append(opened)
    assert read_number(opened.snapshot(SourceSelector())) == "1"


# Overrides and tokens


def test_request_can_name_another_repository(setup: ServiceSetup) -> None:
    git_repo(setup.site.root / "acme/other.git", make_files(9))
    service = setup.open()
    other = setup.site.url("acme/other.git")
    assert read_number(service.snapshot(SourceSelector(repo=other))) == "9"
    assert service.snapshot(SourceSelector(repo=other)).source == other
    assert read_number(service.snapshot()) == "1"
    assert [item.source for item in service.status()] == [setup.url, other]


@pytest.mark.parametrize("text", ["./mine", "/etc", "git@127.0.0.1:a/b.git", "file:///etc", "-x"])
def test_request_cannot_name_local_sources(setup: ServiceSetup, text: str) -> None:
    with pytest.raises(SourceRejected):
        setup.open().snapshot(SourceSelector(repo=text))
    assert setup.site.requests == []


def test_request_cannot_reach_disallowed_networks(setup: ServiceSetup) -> None:
    with pytest.raises(SourceRejected):
        setup.open().snapshot(SourceSelector(repo="https://10.0.0.1/acme/prompts.git"))


def test_unreadable_override_is_an_error_and_not_cached(setup: ServiceSetup) -> None:
    service = setup.open()
    selector = SourceSelector(repo=setup.site.url("acme/later.git"))
    with pytest.raises(PromptsSourceError) as error_info:
        service.snapshot(selector)
    assert str(setup.folder) not in str(error_info.value)
    git_repo(setup.site.root / "acme/later.git", make_files(4))
    assert read_number(service.snapshot(selector)) == "4"


def test_token_is_used_only_for_its_request(setup: ServiceSetup) -> None:
    setup.site.token = TOKEN
    service = setup.open()
    selector = SourceSelector(repo=setup.url, token=Secret(TOKEN))
    assert read_number(service.snapshot(selector)) == "1"
    for other in (SourceSelector(repo=setup.url), selector._replace(token=Secret("wrong"))):
        with pytest.raises(PromptsSourceError) as error_info:
            service.snapshot(other)
        assert TOKEN not in f"{error_info.value!r} {error_info.value.hint}"
    assert list(service.snapshot().names) == BUILT_IN
    assert read_number(service.snapshot(SourceSelector(token=Secret(TOKEN)))) == "1"


def test_token_is_never_written_to_disk(setup: ServiceSetup) -> None:
    setup.site.token = TOKEN
    service = setup.open()
    service.snapshot(SourceSelector(repo=setup.url, token=Secret(TOKEN)))
    leaks = [p for p in setup.folder.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]
    assert leaks == []
    assert TOKEN not in repr(service.status())


def test_number_of_cached_overrides_is_limited(setup: ServiceSetup) -> None:
    for number in range(4):
        git_repo(setup.site.root / f"acme/r{number}.git", make_files(number))
    service = setup.open(replace(setup.sources(), max_overrides=2))
    service.snapshot()
    for number in range(4):
        selector = SourceSelector(repo=setup.site.url(f"acme/r{number}.git"))
        assert read_number(service.snapshot(selector)) == str(number)
    gc.collect()
    assert [item.source.rpartition("/")[2] for item in service.status()] == [
        "prompts.git",
        "r2.git",
        "r3.git",
    ]
    assert len(setup.list_checkouts()) == 3
    assert len(list((setup.folder / "cache/git").iterdir())) == 3


# Uploads


def test_upload_is_served_under_its_name(setup: ServiceSetup) -> None:
    service = setup.open()
    with pytest.raises(SourceUnknown):
        service.snapshot(SourceSelector(source="team"))
    service.ingest(make_upload(files=make_files(3)), actor=ACTOR)
    first = service.snapshot(SourceSelector(source="team"))
    assert (read_number(first), first.source, first.commit) == ("3", "team", "")
    service.ingest(make_upload(files=make_files(4)), actor=ACTOR)
    assert read_number(service.snapshot(SourceSelector(source="team"))) == "4"
    assert read_number(setup.open().refresh(SourceSelector(source="team"))) == "4"
    assert read_number(first) == "3"
    with pytest.raises(SourceRejected):
        service.snapshot(SourceSelector(source="team", repo=setup.url))


# Folders and threads


def test_old_checkouts_are_deleted(setup: ServiceSetup, repo: GitRepo) -> None:
    service = setup.open()
    for number in range(20):
        repo.commit(make_files(number // 2))
        assert read_number(service.refresh()) == str(number // 2)
    gc.collect()
    assert len(setup.list_checkouts()) == 1
    service.close()
    assert list((setup.folder / "cache/prompts").iterdir()) == []


def test_checkouts_of_killed_processes_are_deleted(setup: ServiceSetup) -> None:
    leftover = setup.folder / "cache/prompts/0123456789abcdef/copy"
    leftover.mkdir(parents=True)
    first, second = setup.open(), setup.open()
    first.snapshot()
    second.snapshot()
    assert not leftover.exists()
    assert read_number(first.snapshot()) == read_number(second.snapshot()) == "1"


def test_cleared_cache_is_rebuilt(setup: ServiceSetup) -> None:
    service = setup.open()
    service.snapshot()
    shutil.rmtree(setup.folder / "cache")
    assert read_number(service.snapshot()) == "1"


def test_concurrent_responses_are_always_of_one_commit(
    setup: ServiceSetup, time: ManualClock
) -> None:
    repos = [git_repo(setup.site.root / f"acme/h{n}.git", make_files(0)) for n in range(3)]
    service = setup.open(setup.sources(setup.site.url("acme/h0.git")))
    selectors = [
        SourceSelector(),
        *(SourceSelector(repo=setup.site.url(f"acme/h{n}.git")) for n in (1, 2)),
    ]
    rounds, done = 3, threading.Event()

    def request_until_done(number: int) -> int:
        """Send requests until done; check that numbers never decrease; return the count."""
        last, count = [0, 0, 0], 0
        while not done.wait(0.005):
            index = (number + count) % 3
            call = service.refresh if count % 20 == number else service.snapshot
            commit_number = int(read_number(call(selectors[index])))
            assert last[index] <= commit_number <= rounds
            last[index], count = commit_number, count + 1
        return count

    with ThreadPoolExecutor(16) as pool:
        futures = [pool.submit(request_until_done, number) for number in range(16)]
        try:
            for number in range(1, rounds + 1):
                time.seconds += TTL
                for repo, selector in zip(repos, selectors, strict=True):
                    repo.commit(make_files(number))
                    assert int(read_number(service.refresh(selector))) == number
        finally:
            done.set()
        assert all(future.result(DEADLINE) for future in futures)
    gc.collect()
    assert len(setup.list_checkouts()) == 3


def test_list_json_includes_the_source(setup: ServiceSetup) -> None:
    data = json.loads(setup.open().snapshot().list_json)
    assert sorted(data) == ["prompts", "source"]


def test_path_without_repository_is_rejected(setup: ServiceSetup) -> None:
    with pytest.raises(SkillhallError):
        setup.open(setup.sources("")).snapshot(SourceSelector(path="a"))
