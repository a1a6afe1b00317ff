"""Prompts and skills that a server skips are always reported."""

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
from skillhall._internal.prompt_server.prompt_model import SourceSelector
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.prompt_server.source_settings import read_prompt_sources
from skillhall._internal.settings import PromptSettings, Settings
from skillhall._internal.wiring.server_skills import open_collection
from tests.support.actors import ACTOR
from tests.support.git_server import LINK, GitRepo, GitServer, git_repo, run_git_server
from tests.support.prompt_sources import ManualClock, make_upload
from tests.support.servers import RunningServer, make_settings, run_server
from tests.support.skills import make_skill, make_skill_md

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

HTML = {"Accept": "text/html"}
FORM = {**HTML, "Content-Type": "application/x-www-form-urlencoded"}
REFRESH = "/api/v1/prompts/refresh"
GOOD = {"good/SKILL.md": make_skill_md("good")}
# Files of a repository that are not served, with the expected code.
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


class SkippedSetup:
    """Prompt service over one configured repository."""

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
        self.service = self.open()

    def open(self, repo: str = "") -> PromptService:
        prompts = self.settings.prompts._replace(repo=repo or self.url)
        sources = read_prompt_sources(self.settings._replace(prompts=prompts))
        return PromptService(replace(sources, clock=self.time.clock))


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[SkippedSetup]:
    files = {**GOOD, **{path: data for path, (data, _) in BROKEN.items()}}
    repo = git_repo(tmp_path / "served/team.git", files, LINKS)
    (tmp_path / "run").mkdir()
    with run_git_server(repo.folder.parent) as site:
        setup = SkippedSetup(tmp_path, site, repo)
        yield setup
        setup.service.close()


@pytest.fixture
def server(setup: SkippedSetup) -> Iterator[RunningServer]:
    collection = open_collection(setup.settings, setup.service)
    services = Services(setup.service, collection)
    with run_server(settings=make_settings(), services=services) as running:
        yield running


def codes_of(skipped: list[dict[str, str]]) -> dict[str, str]:
    return {item["path"]: item["code"] for item in skipped}


def refresh(server: RunningServer, query: str = "", body: object = None) -> Any:  # noqa: ANN401 - JSON
    reply = server.request("POST", f"{REFRESH}{query}", body)
    assert reply.status == 200, reply.body
    return reply.json["data"]


def warnings(caplog: pytest.LogCaptureFixture, setup: SkippedSetup) -> list[str]:
    """Return the warnings about this repository; servers of earlier tests may still log."""
    records = {id(record): record for record in caplog.records if record.levelno == logging.WARNING}
    return [line for record in records.values() if setup.url in (line := record.getMessage())]


def test_refresh_lists_all_skipped_prompts_and_files(server: RunningServer) -> None:
    data = refresh(server)
    assert codes_of(data["skipped"]) == CODES
    assert data["skippedTotal"] == len(CODES)
    by_path = {item["path"]: item for item in data["skipped"]}
    assert by_path["refresh.md"]["name"] == "refresh"
    assert by_path["good/large.bin"]["name"] == "good"
    assert by_path["linked"]["name"] == "linked"
    assert "built-in/plan-skill" in by_path["plan-skill.md"]["message"]
    assert all(item["message"] for item in data["skipped"])


def test_configured_folder_reports_skipped_prompts(setup: SkippedSetup) -> None:
    folder = setup.folder / "run/mine"
    make_skill(folder, "good")
    service = setup.open("./mine")
    assert service.snapshot().skipped == ()
    (folder / "plain.md").write_bytes(b"Only text.\n")
    (folder / "away").symlink_to(setup.folder)
    skipped = service.refresh().skipped
    assert [(item.path, item.code) for item in skipped] == [
        ("away", "link-skipped"),
        ("plain.md", "no-frontmatter"),
    ]
    service.close()


def test_upload_reports_skipped_prompts(server: RunningServer) -> None:
    upload = make_upload(files={"bad.md": b"Only text.\n", "hello.md": make_skill_md("hello")})
    files = [{"path": file.path, "content": file.content} for file in upload.files]
    body = {"source": "team", "contentHash": "1", "files": files}
    for status in ("ingested", "unchanged"):
        data = server.request("POST", "/api/v1/prompts/sources", body).json["data"]
        assert data["status"] == status
        assert codes_of(data["skipped"]) == {"bad.md": "no-frontmatter"}
        assert data["skippedTotal"] == 1
    assert codes_of(refresh(server, "?source=team")["skipped"]) == {"bad.md": "no-frontmatter"}


def test_skipped_prompt_is_logged_once_per_commit(
    setup: SkippedSetup, caplog: pytest.LogCaptureFixture
) -> None:
    setup.service.snapshot()
    first = warnings(caplog, setup)
    assert len(first) == len(CODES)
    for path, code in CODES.items():
        [line] = [item for item in first if f" {path} " in item]
        assert code in line
        assert setup.url in line
    caplog.clear()
    setup.service.refresh()
    setup.service.snapshot()
    assert warnings(caplog, setup) == []
    setup.repo.commit({**GOOD, "plain.md": b"Only text.\n"})
    setup.service.refresh()
    setup.service.refresh()
    assert len(warnings(caplog, setup)) == 1


def test_cleared_cache_does_not_repeat_warnings(
    setup: SkippedSetup, caplog: pytest.LogCaptureFixture
) -> None:
    setup.service.snapshot()
    caplog.clear()
    shutil.rmtree(setup.folder / "cache/prompts")
    setup.service.snapshot()
    assert warnings(caplog, setup) == []


def test_log_lines_are_escaped_and_limited(
    setup: SkippedSetup, caplog: pytest.LogCaptureFixture
) -> None:
    many = {f"{number:04}.md": b"Only text.\n" for number in range(200)}
    setup.repo.commit({"a\nERROR: forged.md": b"x", **many})
    setup.service.snapshot()
    lines = warnings(caplog, setup)
    assert len(lines) == 51
    assert all("\n" not in line for line in lines)
    assert "151 more" in lines[-1]


def test_readiness_and_metrics_count_skipped_items(server: RunningServer) -> None:
    refresh(server)
    [source] = server.request("GET", "/readyz").json["data"]["sources"]
    assert source["skipped"] == len(CODES)
    text = server.request("GET", "/metrics").body.decode()
    label = re.escape(source["source"])
    assert re.search(rf'skillhall_skipped{{source="{label}"}} {len(CODES)}\.0', text)


def test_metrics_have_few_source_labels_and_no_credentials(
    setup: SkippedSetup, server: RunningServer
) -> None:
    setup.service.snapshot()
    for number in range(3):
        setup.repo.commit(GOOD, ref=f"refs/heads/b{number}")
        setup.service.snapshot(SourceSelector(setup.url, branch=f"b{number}"))
        name = f"https://user:hunter{number}@example.com/{number}"
        setup.service.ingest(make_upload(name), actor=ACTOR)
        setup.service.snapshot(SourceSelector(source=name))
    text = server.request("GET", "/metrics").body.decode()
    assert "hunter" not in text
    labels = set(re.findall(r'skillhall_prompts{source="([^"]*)"}', text))
    assert labels == {setup.url, "(overrides)", "(uploads)"}
    counts = dict(re.findall(r'skillhall_skipped{source="([^"]*)"} ([0-9]+)', text))
    assert counts == {setup.url: str(len(CODES)), "(overrides)": "0", "(uploads)": "0"}


def test_refresh_during_an_outage_is_not_reported_as_done(
    setup: SkippedSetup, server: RunningServer
) -> None:
    assert refresh(server)["refreshed"] is True
    setup.site.status = 503
    reply = server.request("POST", REFRESH)
    data = reply.json["data"]
    assert (reply.status, data["refreshed"]) == (200, False)
    assert data["reason"] == reply.json["meta"]["stale"]["reason"]
    assert data["promptsLoaded"] > 4  # the stale snapshot is served
    assert server.request("POST", "/api/v1/prompts/good").status == 200


def test_failed_first_refresh_is_not_reported_as_done(
    setup: SkippedSetup, server: RunningServer
) -> None:
    setup.site.status = 503
    data = refresh(server)
    assert data["refreshed"] is False
    assert setup.url in data["reason"]
    assert server.request("POST", f"{REFRESH}?repo={setup.url}&branch=other").status == 502


def test_refresh_accepts_the_repository_in_its_body(
    setup: SkippedSetup, server: RunningServer
) -> None:
    setup.repo.commit({"inner/only/SKILL.md": make_skill_md("only")}, ref="refs/heads/dev")
    body = {"repo": setup.url, "path": "inner", "branch": "dev"}
    data = refresh(server, body=body)
    assert (data["source"], data["skipped"]) == (setup.url, [])
    assert data == refresh(server, f"?repo={setup.url}&path=inner&branch=dev")
    empty = refresh(server, body={"repo": setup.url, "path": "", "branch": " "})
    assert empty == refresh(server, f"?repo={setup.url}&path=&branch=")


def page(server: RunningServer, path: str) -> str:
    reply = server.request("GET", path, headers=HTML)
    assert reply.status == 200, reply.body
    return reply.body.decode()


def test_sources_page_links_to_skipped_items(server: RunningServer) -> None:
    refresh(server)
    link = r'<a href="/sources/skipped#([^"]*)"[^>]*>([^<]*)</a>'
    [(anchor, text)] = re.findall(link, page(server, "/sources"))
    assert text == f"{len(CODES)} entries skipped"
    listed = page(server, "/sources/skipped")
    assert f'id="{anchor}"' in listed
    for path, code in CODES.items():
        assert path in listed
        assert code in listed


def test_page_says_that_nothing_is_skipped(setup: SkippedSetup, server: RunningServer) -> None:
    setup.repo.commit(GOOD)
    refresh(server)
    assert "/sources/skipped" not in page(server, "/sources")
    assert "No skipped entries" in page(server, "/sources/skipped")


def test_skill_of_a_followed_repository_shows_its_repository(
    setup: SkippedSetup, server: RunningServer
) -> None:
    added = git_repo(
        setup.folder / "served/added.git", {"skills/extra/SKILL.md": make_skill_md("extra")}
    )
    status = setup.service.follow(
        SourceSelector(setup.site.url("added.git"), "skills"), actor=ACTOR
    )
    listed = server.request("GET", "/api/v1/skills").json["data"]["skills"]
    names = {item["id"]: item.get("repository") for item in listed}
    assert (names["extra"], names["good"]) == (status.source, setup.url)
    details = server.request("GET", "/api/v1/skills/extra").json["data"]
    assert details["repository"] == status.source
    assert details["commit"] == added.git("rev-parse", "main")
    results = server.request("GET", "/api/v1/skills?q=extra").json["data"]["skills"]
    assert results[0]["repository"] == status.source
    for path in ("/skill/extra", "/skills"):
        text = page(server, path)
        assert status.source in text
        assert "built-in" not in text


def test_unrelated_commit_is_shown_on_the_skill(setup: SkippedSetup, server: RunningServer) -> None:
    setup.repo.commit(GOOD)
    before = server.request("GET", "/api/v1/skills/good")
    commit = setup.repo.commit({**GOOD, ".ignored": b"1"})
    setup.service.refresh()
    tag = {"If-None-Match": before.headers["ETag"]}
    after = server.request("GET", "/api/v1/skills/good", headers=tag)
    assert (after.status, after.json["data"]["commit"]) == (200, commit)


def shadow(setup: SkippedSetup) -> Path:
    """Create a user skill with the id of a system skill."""
    make_skill(setup.folder / "run/.agents/sys.skills", "pdf")
    return make_skill(setup.folder / "run/.agents/skills", "pdf")


def test_shadowed_user_skill_is_shown_by_rest_and_pages(
    setup: SkippedSetup, server: RunningServer
) -> None:
    shadow(setup)
    data = server.request("GET", "/api/v1/skills").json["data"]
    rows = {item["path"]: item["code"] for item in data["skipped"]}
    assert rows[".agents/skills/pdf/SKILL.md"] == "shadowed"
    assert str(setup.folder) not in str(data["skipped"])
    details = server.request("GET", "/api/v1/skills/pdf").json["data"]
    assert details["source"] == "system"
    assert [item["source"] for item in details["shadowed"]] == ["user"]
    for path in ("/skills", "/sources/skipped"):
        assert ".agents/skills/pdf/SKILL.md" in page(server, path)
    assert "/skill/pdf/delete?shadowed=true" in page(server, "/skill/pdf")


def test_delete_of_a_system_skill_keeps_the_shadowed_user_skill(
    setup: SkippedSetup, server: RunningServer
) -> None:
    folder = shadow(setup)
    reply = server.request("DELETE", "/api/v1/skills/pdf")
    assert (reply.status, reply.code) == (403, "READ_ONLY")
    assert "?shadowed=true" in reply.message
    assert server.request("POST", "/skill/pdf/delete", b"", FORM).status == 403
    assert folder.is_dir()
    assert server.request("DELETE", "/api/v1/skills/pdf?shadowed=true").status == 200
    assert not folder.exists()


def test_shadowed_user_skill_can_be_deleted_on_its_page(
    setup: SkippedSetup, server: RunningServer
) -> None:
    folder = shadow(setup)
    (folder / "more.txt").write_bytes(b"x")
    confirmation = page(server, "/skill/pdf/delete?shadowed=true")
    assert "2 files" in confirmation
    response = server.request("POST", "/skill/pdf/delete", b"shadowed=true", FORM)
    assert (response.status, folder.exists()) == (303, False)
    assert server.request("GET", "/skill/pdf", headers=HTML).status == 200


def test_serve_prints_its_url_and_skipped_prompts(tmp_path: Path) -> None:
    make_skill(tmp_path / "mine", "good")
    (tmp_path / "mine/plain.md").write_bytes(b"Only text.\n")
    folders = {f"SKILLHALL_{name}_DIR": str(tmp_path / name) for name in ("CACHE", "DATA")}
    arguments = ["serve", "--port", "0", "--run-dir", str(tmp_path), "--repo", "./mine"]
    with subprocess.Popen(
        [sys.executable, "-m", "skillhall", *arguments],
        env={**os.environ, **folders},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        timer = threading.Timer(60, process.kill)
        timer.start()
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
        timer.cancel()
        process.kill()
    assert lines[0].startswith("http://127.0.0.1:")
    assert lines[1].startswith("WARNING: mine: skipped plain.md (no-frontmatter): ")
