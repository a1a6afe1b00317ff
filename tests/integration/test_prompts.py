"""The counter over real repositories on a real server: what is handed out, come what may."""

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
from skillhall._internal.prompts.prompt_model import (
    PromptServiceProtocol,
    PromptSnapshot,
    SourceSelector,
)
from skillhall._internal.prompts.refreshing_source import RETRY_INTERVAL
from skillhall._internal.prompts.service import PromptService, PromptSources
from skillhall._internal.prompts.source_settings import read_prompt_sources
from skillhall._internal.settings import PromptSettings, Secret, Settings
from skillhall._internal.skill.finding import Code
from skillhall._internal.sources.git.source import GitLimits
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall.errors import (
    PromptsSourceError,
    SkillhallError,
    SourceRejected,
    SourceUnknown,
)
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
TOKEN = "s3cr3t-t0ken-0123456789"  # noqa: S105 - no secret of anyone

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


def numbered(number: int) -> dict[str, bytes]:
    """The files of one commit: its number is in every one of them."""
    text = f"commit {number}"
    return {
        "hello.md": make_skill_md("hello", text, text),
        "pdf/SKILL.md": make_skill_md("pdf", text, text),
        "pdf/data/number.txt": text.encode(),
        "docs/readme.txt": b"no prompt",
    }


def number_in(snapshot: PromptSnapshot) -> str:
    """The one number that everything in a snapshot says."""
    said: set[str] = {prompt["description"] for prompt in list_prompts(snapshot).values()}
    said |= {get_prompt_text(snapshot, "hello"), get_prompt_text(snapshot, "pdf")}
    said.add(snapshot.prompt("pdf").files[0].data.decode())
    assert len(said) == 1, said
    return said.pop().removeprefix("commit ")


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    return git_repo(tmp_path / "served/acme/prompts.git", numbered(1))


@pytest.fixture
def site(repo: GitRepo) -> Iterator[GitServer]:
    with run_git_server(repo.folder.parents[1]) as running:
        yield running


@pytest.fixture
def time() -> ManualClock:
    return ManualClock()


class Shop:
    """Makes counters over one site, and closes them."""

    def __init__(self, folder: Path, site: GitServer, time: ManualClock) -> None:
        self.folder = folder
        self.site = site
        self.time = time
        self.opened: list[PromptService] = []
        self.url = site.url("acme/prompts.git")

    def supply(self, repo: str | None = None, **texts: str) -> PromptSources:
        settings = Settings(
            str(self.folder),
            str(self.folder / "cache"),
            data_directory=str(self.folder / "data"),
            allowed_networks=("127.0.0.0/8",),
            prompts=PromptSettings(
                self.url if repo is None else repo, **{"cache_ttl": str(TTL), **texts}
            ),
        )
        return replace(read_prompt_sources(settings), clock=self.time.clock)

    def open(self, supply: PromptSources | None = None, *, watch: bool = False) -> PromptService:
        counter = PromptService(supply or self.supply(), poll=watch)
        self.opened.append(counter)
        return counter

    def copies(self) -> list[Path]:
        return sorted((self.folder / "cache/prompts").glob("*/*"))


@pytest.fixture
def shop(tmp_path: Path, site: GitServer, time: ManualClock) -> Iterator[Shop]:
    made = Shop(tmp_path, site, time)
    yield made
    for counter in made.opened:
        counter.close()


def codes(snapshot: PromptSnapshot) -> list[tuple[Code, str]]:
    found = [judged.finding for judged in snapshot.findings if judged.effect is not Effect.ACCEPT]
    return [(item.code, item.path) for item in found]


# What is handed out


def test_the_prompts_of_a_repository_follow_the_built_in_ones(shop: Shop, repo: GitRepo) -> None:
    snapshot = shop.open().snapshot()
    assert list(snapshot.names) == [*BUILT_IN, "hello", "pdf"]
    assert snapshot.source == shop.url
    assert snapshot.commit == repo.git("rev-parse", "main")
    assert snapshot.stale is None
    assert number_in(snapshot) == "1"
    assert codes(snapshot) == [(Code.NO_SKILL_MD, "docs")]


def test_without_a_repository_the_built_in_prompts_are_handed_out(shop: Shop) -> None:
    counter = shop.open(shop.supply(""))
    assert list(counter.snapshot().names) == BUILT_IN
    assert counter.refresh().source == "built-in"
    assert [item.source for item in counter.status()] == ["built-in"]
    assert shop.site.requests == []


def test_a_path_in_the_repository_is_the_root(shop: Shop, repo: GitRepo) -> None:
    repo.commit({f"a/b/{path}": data for path, data in numbered(7).items()})
    counter = shop.open(shop.supply(path="a/b"))
    assert number_in(counter.snapshot()) == "7"
    assert number_in(shop.open().snapshot(SourceSelector(path="a/b"))) == "7"
    with pytest.raises(PromptsSourceError, match="nothing at"):
        counter.snapshot(SourceSelector(path="a/c"))


def test_links_and_hidden_files_stay_in_the_repository(shop: Shop, repo: GitRepo) -> None:
    files = {
        "pdf/SKILL.md": make_skill_md("pdf"),
        "pdf/passwd": b"/etc/passwd",
        "pdf/.env": b"SECRET=1",
        "link.md": b"/etc/passwd",
        "folder": b"../..",
        ".github/x.md": make_skill_md("x"),
    }
    repo.commit(files, {"pdf/passwd": LINK, "link.md": LINK, "folder": LINK})
    snapshot = shop.open().snapshot()
    assert list(list_prompts(snapshot)) == ["pdf"]
    assert "files" not in get_prompt(snapshot, "pdf")
    assert snapshot.summary("pdf").has_files
    assert sorted(codes(snapshot)) == [
        (Code.FILE_LEFT_OUT, "pdf/passwd"),
        (Code.LINK_SKIPPED, "folder"),
        (Code.LINK_SKIPPED, "link.md"),
    ]


def test_what_no_system_could_hold_or_is_far_too_large_is_left_out(
    shop: Shop, repo: GitRepo
) -> None:
    files = {
        "pdf/SKILL.md": make_skill_md("pdf"),
        "pdf/huge": bytes(10 * 1024 * 1024 + 1),
        "con/SKILL.md": make_skill_md("con"),
        f"{'x' * 256}.md": make_skill_md("long"),
    }
    repo.commit(files)
    snapshot = shop.open().snapshot()
    assert list(list_prompts(snapshot)) == ["pdf"]
    assert snapshot.summary("pdf").has_files
    assert sorted(codes(snapshot)) == [
        (Code.FILE_LEFT_OUT, ""),
        (Code.FILE_TOO_LARGE, "pdf/huge"),
        (Code.UNSAFE_PATH, ""),
    ]


def test_without_a_main_branch_the_default_one_is_used_and_said(shop: Shop, repo: GitRepo) -> None:
    repo.commit(numbered(5), ref="refs/heads/trunk")
    (repo.folder / "HEAD").write_text("ref: refs/heads/trunk\n", encoding="ascii")
    (repo.folder / "refs/heads/main").unlink()
    counter = shop.open()
    assert number_in(counter.snapshot()) == "5"
    assert (Code.BRANCH_MISSING, "") in codes(counter.snapshot())
    repo.commit(numbered(6), ref="refs/heads/trunk")
    assert number_in(counter.refresh()) == "6"
    with pytest.raises(PromptsSourceError):
        counter.snapshot(SourceSelector(branch="main"))


def test_a_folder_of_the_operator_is_read_as_it_was_at_one_moment(shop: Shop) -> None:
    folder = shop.folder / "mine"
    folder.mkdir()
    (folder / "hello.md").write_bytes(make_skill_md("hello", "1", "1"))
    (folder / "bad.md").write_bytes(b"x")
    (folder / "link.md").symlink_to("/etc/passwd")
    counter = shop.open(shop.supply("./mine"))
    first = counter.snapshot()
    (folder / "hello.md").write_bytes(make_skill_md("hello", "2", "2"))
    assert (first.source, get_prompt_text(first, "hello")) == ("mine", "1")
    assert sorted(codes(first)) == [(Code.LINK_SKIPPED, "link.md"), (Code.NO_FRONTMATTER, "bad.md")]
    assert get_prompt_text(counter.refresh(), "hello") == "2"
    assert counter.refresh().contents is counter.snapshot().contents
    shutil.rmtree(folder)
    stale = counter.refresh().stale
    assert stale is not None
    assert str(shop.folder) not in stale.reason


# When it is looked at


def test_nothing_is_asked_before_its_time_is_over_and_nothing_fetched_without_news(
    shop: Shop, time: ManualClock
) -> None:
    counter = shop.open()
    first = counter.snapshot()
    shop.site.requests.clear()
    assert counter.snapshot() is first
    assert shop.site.requests == []
    time.seconds += TTL
    assert counter.snapshot().contents is first.contents
    assert 1 <= len(shop.site.requests) <= 2  # a greeting and the refs


def test_news_come_when_the_time_is_over_or_with_a_refresh(
    shop: Shop, repo: GitRepo, time: ManualClock
) -> None:
    counter = shop.open()
    old = counter.snapshot()
    repo.commit(numbered(2))
    assert number_in(counter.snapshot()) == "1"
    time.seconds += TTL
    new = counter.snapshot()
    assert (number_in(old), number_in(new)) == ("1", "2")
    assert old.digest != new.digest
    repo.commit(numbered(3))
    assert number_in(counter.refresh()) == "3"


def test_a_rewritten_history_is_followed(shop: Shop, repo: GitRepo) -> None:
    counter = shop.open()
    first = repo.git("rev-parse", "main")
    repo.commit(numbered(2), parent=first)
    assert number_in(counter.refresh()) == "2"
    repo.commit(numbered(3))  # without a parent: what a force push leaves
    assert number_in(counter.refresh()) == "3"


def test_a_deleted_branch_keeps_the_last_copy_marked(shop: Shop, repo: GitRepo) -> None:
    counter = shop.open()
    counter.snapshot()
    (repo.folder / "refs/heads/main").unlink()
    stale = counter.refresh().stale
    assert stale is not None
    assert stale.since == "2023-11-14T22:30:00Z"
    assert number_in(counter.snapshot()) == "1"


def test_a_site_that_is_down_is_marked_and_not_asked_again_at_once(
    shop: Shop, repo: GitRepo, time: ManualClock
) -> None:
    counter = shop.open()
    counter.snapshot()
    repo.commit(numbered(2))
    shop.site.status = 503
    time.seconds += TTL
    older = counter.snapshot()
    assert older.stale is not None
    assert "127.0.0.1" in older.stale.reason
    asked = len(shop.site.requests)
    assert counter.snapshot().stale == older.stale
    assert len(shop.site.requests) == asked
    shop.site.status = 0
    time.seconds += RETRY_INTERVAL
    assert counter.snapshot().stale is None
    assert number_in(counter.snapshot()) == "2"


def test_a_repository_that_cannot_be_read_at_start_leaves_the_built_in_prompts(
    shop: Shop, time: ManualClock
) -> None:
    shop.site.status = 500
    counter = shop.open()
    first = counter.snapshot()
    assert list(first.names) == BUILT_IN
    assert first.source == "built-in"
    assert first.stale is not None
    assert shop.url in first.stale.reason
    (status,) = counter.status()
    assert (status.source, status.stale) == (shop.url, first.stale)
    shop.site.status = 0
    assert list(counter.snapshot().names) == BUILT_IN
    time.seconds += RETRY_INTERVAL
    assert number_in(counter.snapshot()) == "1"


def test_after_a_restart_the_last_copy_serves_while_the_site_is_down(shop: Shop) -> None:
    shop.open().snapshot()
    shop.site.status = 503
    snapshot = shop.open().snapshot()
    assert number_in(snapshot) == "1"
    assert snapshot.stale is not None
    assert snapshot.stale.since


def test_a_repository_that_grows_too_large_keeps_the_last_copy(shop: Shop, repo: GitRepo) -> None:
    supply = shop.supply()
    limits = GitLimits(max_bytes=200_000)
    counter = shop.open(replace(supply, git_access=replace(supply.git_access, limits=limits)))
    counter.snapshot()
    noise = random.Random(1).randbytes(1_000_000)  # noqa: S311 - bytes that do not shrink
    repo.commit({**numbered(2), "pdf/noise": noise})
    snapshot = counter.refresh()
    assert snapshot.stale is not None
    assert "larger than 200000" in snapshot.stale.reason
    assert number_in(snapshot) == "1"


def test_a_slow_site_keeps_nobody_waiting_who_can_have_the_last_copy(
    shop: Shop, repo: GitRepo, time: ManualClock
) -> None:
    counter = shop.open()
    counter.snapshot()
    repo.commit(numbered(2))
    shop.site.release_event = threading.Event()
    time.seconds += TTL
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(counter.snapshot)
        assert shop.site.is_waiting.wait(DEADLINE)
        assert [number_in(counter.snapshot()) for _ in range(3)] == ["1"] * 3
        shop.site.release_event.set()
        assert number_in(looking.result(DEADLINE)) == "2"


# Pushes and the watch


def test_a_push_makes_the_next_call_look(shop: Shop, repo: GitRepo) -> None:
    counter = shop.open()
    counter.snapshot()
    repo.commit(numbered(2))
    assert not counter.handle_push([shop.site.url("acme/other.git")], "main")
    assert number_in(counter.snapshot()) == "1"
    assert counter.handle_push(["git@127.0.0.1:acme/prompts.git"], "refs/heads/main")
    assert number_in(counter.snapshot()) == "2"


def until(counter: PromptService, commit: str) -> bool:
    """Whether the commit is handed out within the deadline; the watch needs a moment."""
    moment = threading.Event()
    return any(counter.status()[0].commit == commit or moment.wait(0.02) for _ in range(6000))


def test_the_watch_reads_at_the_start_and_after_a_push(shop: Shop, repo: GitRepo) -> None:
    counter = shop.open(watch=True)
    assert until(counter, repo.git("rev-parse", "main"))
    second = repo.commit(numbered(2))
    counter.handle_push([shop.url], "main")
    assert until(counter, second)
    counter.close()
    assert not [item for item in threading.enumerate() if item.name == "skillhall-prompts"]


def test_wiring_opens_a_counter_from_settings(shop: Shop) -> None:
    settings = Settings(
        str(shop.folder),
        str(shop.folder / "cache"),
        data_directory=str(shop.folder / "data"),
        allowed_networks=("127.0.0.0/8",),
        prompts=PromptSettings(shop.url),
    )
    opened = open_prompt_service(settings, poll=False)
    shop.opened.append(opened)
    counter: PromptServiceProtocol = opened
    assert number_in(counter.snapshot(SourceSelector())) == "1"


# Overrides and tokens


def test_another_repository_can_be_asked_for(shop: Shop) -> None:
    git_repo(shop.site.root / "acme/other.git", numbered(9))
    counter = shop.open()
    other = shop.site.url("acme/other.git")
    assert number_in(counter.snapshot(SourceSelector(repo=other))) == "9"
    assert counter.snapshot(SourceSelector(repo=other)).source == other
    assert number_in(counter.snapshot()) == "1"
    assert [item.source for item in counter.status()] == [shop.url, other]


@pytest.mark.parametrize("text", ["./mine", "/etc", "git@127.0.0.1:a/b.git", "file:///etc", "-x"])
def test_a_call_cannot_name_this_machine(shop: Shop, text: str) -> None:
    with pytest.raises(SourceRejected):
        shop.open().snapshot(SourceSelector(repo=text))
    assert shop.site.requests == []


def test_a_call_cannot_reach_networks_that_are_not_allowed(shop: Shop) -> None:
    with pytest.raises(SourceRejected):
        shop.open().snapshot(SourceSelector(repo="https://10.0.0.1/acme/prompts.git"))


def test_another_repository_that_cannot_be_read_is_an_error_and_not_remembered(shop: Shop) -> None:
    counter = shop.open()
    asked = SourceSelector(repo=shop.site.url("acme/later.git"))
    with pytest.raises(PromptsSourceError) as raised:
        counter.snapshot(asked)
    assert str(shop.folder) not in str(raised.value)
    git_repo(shop.site.root / "acme/later.git", numbered(4))
    assert number_in(counter.snapshot(asked)) == "4"


def test_a_token_is_for_its_call_alone(shop: Shop) -> None:
    shop.site.token = TOKEN
    counter = shop.open()
    asked = SourceSelector(repo=shop.url, token=Secret(TOKEN))
    assert number_in(counter.snapshot(asked)) == "1"
    for other in (SourceSelector(repo=shop.url), asked._replace(token=Secret("wrong"))):
        with pytest.raises(PromptsSourceError) as raised:
            counter.snapshot(other)
        assert TOKEN not in f"{raised.value!r} {raised.value.hint}"
    assert list(counter.snapshot().names) == BUILT_IN
    assert number_in(counter.snapshot(SourceSelector(token=Secret(TOKEN)))) == "1"


def test_no_file_holds_a_token(shop: Shop) -> None:
    shop.site.token = TOKEN
    counter = shop.open()
    counter.snapshot(SourceSelector(repo=shop.url, token=Secret(TOKEN)))
    held = [p for p in shop.folder.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]
    assert held == []
    assert TOKEN not in repr(counter.status())


def test_only_so_many_other_repositories_are_kept(shop: Shop) -> None:
    for number in range(4):
        git_repo(shop.site.root / f"acme/r{number}.git", numbered(number))
    counter = shop.open(replace(shop.supply(), max_overrides=2))
    counter.snapshot()
    for number in range(4):
        asked = SourceSelector(repo=shop.site.url(f"acme/r{number}.git"))
        assert number_in(counter.snapshot(asked)) == str(number)
    gc.collect()
    assert [item.source.rpartition("/")[2] for item in counter.status()] == [
        "prompts.git",
        "r2.git",
        "r3.git",
    ]
    assert len(shop.copies()) == 3
    assert len(list((shop.folder / "cache/git").iterdir())) == 3


# Uploads


def test_an_upload_is_handed_out_under_its_name(shop: Shop) -> None:
    counter = shop.open()
    with pytest.raises(SourceUnknown):
        counter.snapshot(SourceSelector(source="team"))
    counter.ingest(make_upload(files=numbered(3)))
    first = counter.snapshot(SourceSelector(source="team"))
    assert (number_in(first), first.source, first.commit) == ("3", "team", "")
    counter.ingest(make_upload(files=numbered(4)))
    assert number_in(counter.snapshot(SourceSelector(source="team"))) == "4"
    assert number_in(shop.open().refresh(SourceSelector(source="team"))) == "4"
    assert number_in(first) == "3"
    with pytest.raises(SourceRejected):
        counter.snapshot(SourceSelector(source="team", repo=shop.url))


# Folders and threads


def test_folders_do_not_pile_up(shop: Shop, repo: GitRepo) -> None:
    counter = shop.open()
    for number in range(20):
        repo.commit(numbered(number // 2))
        assert number_in(counter.refresh()) == str(number // 2)
    gc.collect()
    assert len(shop.copies()) == 1
    counter.close()
    assert list((shop.folder / "cache/prompts").iterdir()) == []


def test_what_a_killed_process_left_is_swept_and_a_living_one_is_left_alone(shop: Shop) -> None:
    left = shop.folder / "cache/prompts/0123456789abcdef/copy"
    left.mkdir(parents=True)
    one, other = shop.open(), shop.open()
    one.snapshot()
    other.snapshot()
    assert not left.exists()
    assert number_in(one.snapshot()) == number_in(other.snapshot()) == "1"


def test_a_cache_that_is_cleared_is_made_again(shop: Shop) -> None:
    counter = shop.open()
    counter.snapshot()
    shutil.rmtree(shop.folder / "cache")
    assert number_in(counter.snapshot()) == "1"


def test_every_answer_is_of_one_commit_whatever_happens_at_once(
    shop: Shop, time: ManualClock
) -> None:
    repos = [git_repo(shop.site.root / f"acme/h{n}.git", numbered(0)) for n in range(3)]
    counter = shop.open(shop.supply(shop.site.url("acme/h0.git")))
    asked = [
        SourceSelector(),
        *(SourceSelector(repo=shop.site.url(f"acme/h{n}.git")) for n in (1, 2)),
    ]
    rounds, over = 3, threading.Event()

    def customer(number: int) -> int:
        """How many answers somebody gets who asks until all is over; they never go back."""
        last, seen = [0, 0, 0], 0
        while not over.wait(0.005):
            which = (number + seen) % 3
            call = counter.refresh if seen % 20 == number else counter.snapshot
            found = int(number_in(call(asked[which])))
            assert last[which] <= found <= rounds
            last[which], seen = found, seen + 1
        return seen

    with ThreadPoolExecutor(16) as pool:
        customers = [pool.submit(customer, number) for number in range(16)]
        try:
            for number in range(1, rounds + 1):
                time.seconds += TTL
                for repo, one in zip(repos, asked, strict=True):
                    repo.commit(numbered(number))
                    assert int(number_in(counter.refresh(one))) == number
        finally:
            over.set()
        assert all(customer.result(DEADLINE) for customer in customers)
    gc.collect()
    assert len(shop.copies()) == 3


def test_a_list_is_json_that_says_its_source(shop: Shop) -> None:
    data = json.loads(shop.open().snapshot().list_json())
    assert sorted(data) == ["prompts", "source"]


def test_errors_of_a_call_are_ours(shop: Shop) -> None:
    with pytest.raises(SkillhallError):
        shop.open(shop.supply("")).snapshot(SourceSelector(path="a"))
