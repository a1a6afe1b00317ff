"""Prompts and skills that a server does not serve: each is reported, and never only left out."""

import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.prompts.prompt_model import SourceSelector
from skillhall._internal.prompts.service import PromptService
from skillhall._internal.prompts.source_settings import read_prompt_sources
from skillhall._internal.settings import PromptSettings, Settings
from skillhall._internal.wiring.server_skills import open_collection
from tests.support.git_server import LINK, GitRepo, GitServer, git_repo, run_git_server
from tests.support.prompt_sources import ManualClock, make_upload
from tests.support.servers import RunningServer, make_settings, run_server
from tests.support.skills import make_skill, make_skill_md

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

HTML = {"Accept": "text/html"}
FORM = {**HTML, "Content-Type": "application/x-www-form-urlencoded"}
REFRESH = "/api/v1/prompts/refresh"
GOOD = {"good/SKILL.md": make_skill_md("good")}
# What a repository holds that is not served, and the code that says why.
BROKEN: dict[str, tuple[bytes, str]] = {
    "nameless.md": (b"---\ndescription: Has no name.\n---\nText.\n", "flat-name-missing"),
    "undescribed/SKILL.md": (b"---\nname: undescribed\n---\nText.\n", "description-missing"),
    "plain.md": (b"Only text.\n", "no-frontmatter"),
    "latin/SKILL.md": (make_skill_md("latin", "Caf\u00e9.").decode().encode("latin-1"), "not-utf8"),
    "refresh.md": (make_skill_md("refresh"), "name-reserved"),
    "sources/SKILL.md": (make_skill_md("sources"), "name-reserved"),
    "plan-skill.md": (make_skill_md("plan-skill"), "shadowed"),
    "twice/SKILL.md": (make_skill_md("good"), "shadowed"),
    "linked": (b"good", "link-skipped"),
    "half-linked/SKILL.md": (b"../good/SKILL.md", "link-skipped"),
    "good/large.bin": (bytes(5 * 1024 * 1024 + 1), "file-too-large"),
    "good/alias.txt": (b"/etc/hostname", "file-left-out"),
}
LINKS = {"linked": LINK, "half-linked/SKILL.md": LINK, "good/alias.txt": LINK}
CODES = {path: code for path, (_, code) in BROKEN.items()}


class Hall:
    """A server over one configured repository, and another one that people may follow."""

    def __init__(self, folder: Path, site: GitServer, repo: GitRepo) -> None:
        self.folder, self.site, self.repo = folder, site, repo
        self.time = ManualClock()
        self.url = site.url("team.git")
        self.settings = Settings(
            str(folder / "run"),
            str(folder / "cache"),
            data_directory=str(folder / "data"),
            allowed_networks=("127.0.0.0/8",),
            prompts=PromptSettings(self.url, cache_ttl="3600"),
        )
        self.counter = self.open()

    def open(self, repo: str = "") -> PromptService:
        prompts = self.settings.prompts._replace(repo=repo or self.url)
        supply = read_prompt_sources(self.settings._replace(prompts=prompts))
        return PromptService(replace(supply, clock=self.time.clock))


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Hall]:
    files = {**GOOD, **{path: data for path, (data, _) in BROKEN.items()}}
    repo = git_repo(tmp_path / "served/team.git", files, LINKS)
    (tmp_path / "run").mkdir()
    with run_git_server(repo.folder.parent) as site:
        made = Hall(tmp_path, site, repo)
        yield made
        made.counter.close()


@pytest.fixture
def server(hall: Hall) -> Iterator[RunningServer]:
    collection = open_collection(hall.settings, hall.counter)
    with run_server(settings=make_settings(), services=Services(hall.counter, collection)) as one:
        yield one


def codes_of(skipped: list[dict[str, str]]) -> dict[str, str]:
    return {one["path"]: one["code"] for one in skipped}


def refreshed(server: RunningServer, query: str = "", body: object = None) -> Any:  # noqa: ANN401 - JSON
    reply = server.request("POST", f"{REFRESH}{query}", body)
    assert reply.status == 200, reply.body
    return reply.json["data"]


def warnings(caplog: pytest.LogCaptureFixture, hall: Hall) -> list[str]:
    """The warnings about its repository; servers of earlier tests may still log about theirs."""
    records = {id(one): one for one in caplog.records if one.levelno == logging.WARNING}
    return [line for one in records.values() if hall.url in (line := one.getMessage())]


def test_a_refresh_lists_every_prompt_and_file_that_is_not_served(server: RunningServer) -> None:
    data = refreshed(server)
    assert codes_of(data["skipped"]) == CODES
    assert data["skippedTotal"] == len(CODES)
    by_path = {one["path"]: one for one in data["skipped"]}
    assert by_path["refresh.md"]["name"] == "refresh"
    assert by_path["good/large.bin"]["name"] == "good"
    assert by_path["linked"]["name"] == "linked"
    assert "built-in/plan-skill" in by_path["plan-skill.md"]["message"]
    assert all(one["message"] for one in data["skipped"])


def test_a_folder_of_prompts_reports_what_it_skips_without_a_good_prompt_changing(
    hall: Hall,
) -> None:
    folder = hall.folder / "run/mine"
    make_skill(folder, "good")
    counter = hall.open("./mine")
    assert counter.snapshot().skipped == ()
    (folder / "plain.md").write_bytes(b"Only text.\n")
    (folder / "away").symlink_to(hall.folder)
    found = counter.refresh().skipped
    assert [(one.path, one.code) for one in found] == [
        ("away", "link-skipped"),
        ("plain.md", "no-frontmatter"),
    ]
    counter.close()


def test_an_upload_says_which_of_its_prompts_are_skipped(server: RunningServer) -> None:
    upload = make_upload(files={"bad.md": b"Only text.\n", "hello.md": make_skill_md("hello")})
    files = [{"path": one.path, "content": one.content} for one in upload.files]
    body = {"source": "team", "contentHash": "1", "files": files}
    for status in ("ingested", "unchanged"):
        data = server.request("POST", "/api/v1/prompts/sources", body).json["data"]
        assert data["status"] == status
        assert codes_of(data["skipped"]) == {"bad.md": "no-frontmatter"}
        assert data["skippedTotal"] == 1
    assert codes_of(refreshed(server, "?source=team")["skipped"]) == {"bad.md": "no-frontmatter"}


def test_a_skipped_prompt_is_one_warning_in_the_log_for_each_commit(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    hall.counter.snapshot()
    first = warnings(caplog, hall)
    assert len(first) == len(CODES)
    for path, code in CODES.items():
        [line] = [one for one in first if f" {path} " in one]
        assert code in line
        assert hall.url in line
    caplog.clear()
    hall.counter.refresh()
    hall.counter.snapshot()
    assert warnings(caplog, hall) == []
    hall.repo.commit({**GOOD, "plain.md": b"Only text.\n"})
    hall.counter.refresh()
    hall.counter.refresh()
    assert len(warnings(caplog, hall)) == 1


def test_a_cleared_cache_does_not_repeat_the_warnings_of_a_commit(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    hall.counter.snapshot()
    caplog.clear()
    shutil.rmtree(hall.folder / "cache/prompts")
    hall.counter.snapshot()
    assert warnings(caplog, hall) == []


def test_the_log_has_one_line_for_a_path_with_a_line_break_and_a_limit(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    many = {f"{number:04}.md": b"Only text.\n" for number in range(200)}
    hall.repo.commit({"a\nERROR: forged.md": b"x", **many})
    hall.counter.snapshot()
    lines = warnings(caplog, hall)
    assert len(lines) == 51
    assert all("\n" not in line for line in lines)
    assert "151 more" in lines[-1]


def test_readiness_and_metrics_count_what_is_skipped_by_source(server: RunningServer) -> None:
    refreshed(server)
    [source] = server.request("GET", "/readyz").json["data"]["sources"]
    assert source["skipped"] == len(CODES)
    text = server.request("GET", "/metrics").body.decode()
    label = re.escape(source["source"])
    assert re.search(rf'skillhall_skipped{{source="{label}"}} {len(CODES)}\.0', text)


def test_metrics_have_a_bounded_number_of_source_labels_and_no_credentials(
    hall: Hall, server: RunningServer
) -> None:
    hall.counter.snapshot()
    for number in range(3):
        hall.repo.commit(GOOD, ref=f"refs/heads/b{number}")
        hall.counter.snapshot(SourceSelector(hall.url, branch=f"b{number}"))
        name = f"https://user:hunter{number}@example.com/{number}"
        hall.counter.ingest(make_upload(name))
        hall.counter.snapshot(SourceSelector(source=name))
    text = server.request("GET", "/metrics").body.decode()
    assert "hunter" not in text
    labels = set(re.findall(r'skillhall_prompts{source="([^"]*)"}', text))
    assert labels == {hall.url, "(overrides)", "(uploads)"}
    counts = dict(re.findall(r'skillhall_skipped{source="([^"]*)"} ([0-9]+)', text))
    assert counts == {hall.url: str(len(CODES)), "(overrides)": "0", "(uploads)": "0"}


def test_a_refresh_is_not_called_done_while_the_host_is_down(
    hall: Hall, server: RunningServer
) -> None:
    assert refreshed(server)["refreshed"] is True
    hall.site.status = 503
    reply = server.request("POST", REFRESH)
    data = reply.json["data"]
    assert (reply.status, data["refreshed"]) == (200, False)
    assert data["reason"] == reply.json["meta"]["stale"]["reason"]
    assert data["promptsLoaded"] > 4  # the last copy is still served
    assert server.request("POST", "/api/v1/prompts/good").status == 200


def test_a_refresh_of_a_repository_that_was_never_read_is_not_called_done(
    hall: Hall, server: RunningServer
) -> None:
    hall.site.status = 503
    data = refreshed(server)
    assert data["refreshed"] is False
    assert hall.url in data["reason"]
    assert server.request("POST", f"{REFRESH}?repo={hall.url}&branch=other").status == 502


def test_a_refresh_takes_the_repository_from_its_body(hall: Hall, server: RunningServer) -> None:
    hall.repo.commit({"inner/only/SKILL.md": make_skill_md("only")}, ref="refs/heads/dev")
    body = {"repo": hall.url, "path": "inner", "branch": "dev"}
    data = refreshed(server, body=body)
    assert (data["source"], data["skipped"]) == (hall.url, [])
    assert data == refreshed(server, f"?repo={hall.url}&path=inner&branch=dev")
    without = refreshed(server, body={"repo": hall.url, "path": "", "branch": " "})
    assert without == refreshed(server, f"?repo={hall.url}&path=&branch=")


def page(server: RunningServer, path: str) -> str:
    reply = server.request("GET", path, headers=HTML)
    assert reply.status == 200, reply.body
    return reply.body.decode()


def test_the_page_of_sources_links_to_the_list_of_what_is_skipped(server: RunningServer) -> None:
    refreshed(server)
    link = r'<a href="/sources/skipped#([^"]*)"[^>]*>([^<]*)</a>'
    [(anchor, text)] = re.findall(link, page(server, "/sources"))
    assert text == f"{len(CODES)} entries skipped"
    listed = page(server, "/sources/skipped")
    assert f'id="{anchor}"' in listed
    for path, code in CODES.items():
        assert path in listed
        assert code in listed


def test_nothing_skipped_is_said_on_the_page(hall: Hall, server: RunningServer) -> None:
    hall.repo.commit(GOOD)
    refreshed(server)
    assert "/sources/skipped" not in page(server, "/sources")
    assert "No skipped entries" in page(server, "/sources/skipped")


def test_a_skill_of_a_followed_repository_names_that_repository(
    hall: Hall, server: RunningServer
) -> None:
    added = git_repo(
        hall.folder / "served/added.git", {"skills/extra/SKILL.md": make_skill_md("extra")}
    )
    status = hall.counter.follow(SourceSelector(hall.site.url("added.git"), "skills"))
    listed = server.request("GET", "/api/v1/skills").json["data"]["skills"]
    names = {one["id"]: one.get("repository") for one in listed}
    assert (names["extra"], names["good"]) == (status.source, hall.url)
    one = server.request("GET", "/api/v1/skills/extra").json["data"]
    assert (one["repository"], one["commit"]) == (status.source, added.git("rev-parse", "main"))
    found = server.request("GET", "/api/v1/skills?q=extra").json["data"]["skills"]
    assert found[0]["repository"] == status.source
    for path in ("/skill/extra", "/skills"):
        text = page(server, path)
        assert status.source in text
        assert "built-in" not in text


def test_a_commit_that_changes_no_skill_is_named_on_the_skill_at_once(
    hall: Hall, server: RunningServer
) -> None:
    hall.repo.commit(GOOD)
    before = server.request("GET", "/api/v1/skills/good")
    commit = hall.repo.commit({**GOOD, ".ignored": b"1"})
    hall.counter.refresh()
    tag = {"If-None-Match": before.headers["ETag"]}
    after = server.request("GET", "/api/v1/skills/good", headers=tag)
    assert (after.status, after.json["data"]["commit"]) == (200, commit)


def shadow(hall: Hall) -> Path:
    """A user skill with the id of a system skill."""
    make_skill(hall.folder / "run/.agents/sys.skills", "pdf")
    return make_skill(hall.folder / "run/.agents/skills", "pdf")


def test_a_user_skill_that_a_system_skill_shadows_is_named_by_rest_and_pages(
    hall: Hall, server: RunningServer
) -> None:
    shadow(hall)
    data = server.request("GET", "/api/v1/skills").json["data"]
    rows = {one["path"]: one["code"] for one in data["skipped"]}
    assert rows[".agents/skills/pdf/SKILL.md"] == "shadowed"
    assert str(hall.folder) not in str(data["skipped"])
    one = server.request("GET", "/api/v1/skills/pdf").json["data"]
    assert (one["source"], [lost["source"] for lost in one["shadowed"]]) == ("system", ["user"])
    for path in ("/skills", "/sources/skipped"):
        assert ".agents/skills/pdf/SKILL.md" in page(server, path)
    assert "/skill/pdf/delete?shadowed=true" in page(server, "/skill/pdf")


def test_deleting_a_system_skill_leaves_the_user_skill_that_it_shadows(
    hall: Hall, server: RunningServer
) -> None:
    folder = shadow(hall)
    reply = server.request("DELETE", "/api/v1/skills/pdf")
    assert (reply.status, reply.code) == (403, "READ_ONLY")
    assert "?shadowed=true" in reply.message
    assert server.request("POST", "/skill/pdf/delete", b"", FORM).status == 403
    assert folder.is_dir()
    assert server.request("DELETE", "/api/v1/skills/pdf?shadowed=true").status == 200
    assert not folder.exists()


def test_the_shadowed_user_skill_is_deleted_on_its_own_page(
    hall: Hall, server: RunningServer
) -> None:
    folder = shadow(hall)
    (folder / "more.txt").write_bytes(b"x")
    asked = page(server, "/skill/pdf/delete?shadowed=true")
    assert "2 files" in asked
    done = server.request("POST", "/skill/pdf/delete", b"shadowed=true", FORM)
    assert (done.status, folder.exists()) == (303, False)
    assert server.request("GET", "/skill/pdf", headers=HTML).status == 200


def test_the_command_says_where_it_serves_and_then_what_it_skips(tmp_path: Path) -> None:
    make_skill(tmp_path / "mine", "good")
    (tmp_path / "mine/plain.md").write_bytes(b"Only text.\n")
    folders = {f"SKILLHALL_{name}_DIR": str(tmp_path / name) for name in ("CACHE", "DATA")}
    words = ["serve", "--port", "0", "--run-dir", str(tmp_path), "--repo", "./mine"]
    with subprocess.Popen(
        [sys.executable, "-m", "skillhall", *words],
        env={**os.environ, **folders},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        too_long = threading.Timer(60, process.kill)
        too_long.start()
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
        too_long.cancel()
        process.kill()
    assert lines[0].startswith("http://127.0.0.1:")
    assert lines[1].startswith("WARNING: mine: skipped plain.md (no-frontmatter): ")
