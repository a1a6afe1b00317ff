"""Skills from a fake GitHub: results, requests and rejections."""

import gzip
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from skillhall._internal.hints import TOKEN_HINTS, find_hint
from skillhall._internal.net.addresses import PUBLIC_ONLY, AddressPolicy
from skillhall._internal.net.connection import NetworkSettings
from skillhall._internal.settings import Secret
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.finding import Code
from skillhall._internal.sources.github.client import GitHubAccess
from skillhall._internal.sources.github.github_ref import GitHubRef
from skillhall._internal.sources.github.source import read_github
from skillhall._internal.sources.opener import parse_source_ref
from skillhall._internal.sources.repo_layout import RepositorySkills
from skillhall.errors import (
    ArchiveRejected,
    NoSkillThere,
    RateLimited,
    SkillhallError,
    SkillNotFound,
    SourceNotFound,
    SourceRejected,
    SourceTimedOut,
    SourceUnavailable,
    TooLarge,
)
from tests.support.archives import TarEntry, make_tar, make_tgz, pax
from tests.support.github_api_server import (
    EXECUTABLE,
    FILE,
    LINK,
    SUBMODULE,
    GitHubApiServer,
    RepoFile,
    Repository,
    archive_of,
    load_git_repository,
    run_github_api_server,
    tree_of,
)
from tests.support.http_server import Route, never_respond, respond, respond_endlessly
from tests.support.skills import make_skill_md

LOOPBACK = AddressPolicy.from_cidrs("127.0.0.0/8")
TOKEN, OTHER = "s3cr3t-t0ken", "0ther-t0ken"
HASTY = NetworkSettings(total=0.5, idle=0.2)
SKILL = make_skill_md("pdf")
MANY = {f"skills/pdf/references/{n}.md": b"%d" % n for n in range(20)}
FEW: dict[str, bytes | RepoFile] = {"README.md": b"Hello", "skills/pdf/SKILL.md": SKILL}
Reader = Callable[..., RepositorySkills]


@pytest.fixture
def github() -> Iterator[GitHubApiServer]:
    with run_github_api_server() as site:
        site.repositories["acme/skills"] = Repository()
        yield site


@pytest.fixture
def read(github: GitHubApiServer, tmp_path: Path) -> Reader:
    """Return a function that reads a reference with a cache."""

    def read(text: str, token: str = "", **changes: object) -> RepositorySkills:
        tokens = {f"127.0.0.1:{github.api.port}": Secret(token)} if token else {}
        fields: dict[str, object] = {"policy": LOOPBACK, "tokens": tokens}
        fields |= {"cache_directory": str(tmp_path / "cache"), **changes}
        access = GitHubAccess(github.api_url, **fields)  # type: ignore[arg-type] # fields by name
        reference = parse_source_ref(text)
        assert isinstance(reference, GitHubRef)
        return read_github(reference, access, source_text=text)

    return read


def commit(
    github: GitHubApiServer, files: Mapping[str, bytes | RepoFile], ref: str = "main"
) -> str:
    return github.repositories["acme/skills"].commit(files, ref)


def contents(bundle: Bundle) -> dict[str, bytes]:
    return {path: file.read() for path, file in bundle.files.items()}


def only(snapshot: RepositorySkills) -> Bundle:
    [bundle] = snapshot.bundles
    return bundle


# Content


def test_few_files_are_fetched_one_by_one(github: GitHubApiServer, read: Reader) -> None:
    script = RepoFile(b"\x00\xff", EXECUTABLE)
    sha = commit(github, FEW | {"skills/pdf/run": script, "skills/other/SKILL.md": b"x"})
    skills = read("acme/skills/pdf")
    assert (skills.commit, skills.stale) == (sha, "")
    assert only(skills).folder == "skills/pdf"
    assert contents(only(skills)) == {"SKILL.md": SKILL, "run": b"\x00\xff"}
    assert [file.executable for file in only(skills).files.values()] == [False, True]
    assert github.requested_targets[:2] == ["commits/HEAD", f"git/trees/{sha}?recursive=1"]
    assert len(github.requested_targets) == 4


def test_many_files_are_fetched_as_archive(github: GitHubApiServer, read: Reader) -> None:
    sha = commit(github, FEW | MANY | {"other/big": b"x" * 500_000})
    bundle = only(read("acme/skills/skills/pdf"))
    expected = {path.removeprefix("skills/pdf/"): data for path, data in MANY.items()}
    assert contents(bundle) == expected | {"SKILL.md": SKILL}
    assert github.requested_targets[2:] == [f"tarball/{sha}"]


def test_archive_of_git_is_read(github: GitHubApiServer, read: Reader, tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    skill = folder / "skills" / "pdf"
    (skill / ("deep" * 20) / ("deeper" * 20)).mkdir(parents=True)
    (skill / "SKILL.md").write_bytes(SKILL)
    for number in range(12):
        (skill / f"{number}.txt").write_text(f"{number}\n", encoding="utf-8")
    (skill / ("deep" * 20) / ("deeper" * 20) / "ünïcode.md").write_bytes(b"deep")
    (skill / "run.sh").write_bytes(b"#!/bin/sh\n")
    (skill / "run.sh").chmod(0o755)
    (skill / "link").symlink_to("/etc/passwd" + "x" * 150)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q", "-b", "trunk"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=folder, check=True, timeout=120)
    github.repositories["acme/skills"] = load_git_repository(folder)
    bundle = only(read("acme/skills/pdf"))
    assert len(bundle.files) == 15
    assert bundle.files["run.sh"].executable
    assert bundle.files[f"{'deep' * 20}/{'deeper' * 20}/ünïcode.md"].read() == b"deep"
    assert [(f.code, f.path) for f in bundle.findings] == [(Code.FILE_LEFT_OUT, "link")]
    assert "blobs" not in " ".join(github.requested_targets)


def test_root_skill_has_all_files_and_no_name(github: GitHubApiServer, read: Reader) -> None:
    commit(github, {"SKILL.md": SKILL, "a/b.md": b"b"})
    bundle = only(read("acme/skills"))
    assert (bundle.folder, sorted(bundle.files)) == ("", ["SKILL.md", "a/b.md"])


def test_all_skills_are_returned_in_order(github: GitHubApiServer, read: Reader) -> None:
    commit(github, {f"skills/{name}/SKILL.md": make_skill_md(name) for name in "cab"})
    skills = read("acme/skills")
    assert [bundle.folder for bundle in skills.bundles] == ["skills/a", "skills/b", "skills/c"]


@pytest.mark.parametrize("ref", ["v1", "feature/new", "0.1.x"])
def test_branch_or_tag_is_resolved(github: GitHubApiServer, read: Reader, ref: str) -> None:
    commit(github, {"pdf/SKILL.md": b"old"}, ref)
    commit(github, {"pdf/SKILL.md": b"new"})
    assert contents(only(read(f"acme/skills/pdf@{ref}"))) == {"SKILL.md": b"old"}


def test_full_commit_id_is_not_resolved(github: GitHubApiServer, read: Reader) -> None:
    sha = commit(github, FEW)
    assert read(f"acme/skills/pdf@{sha}").commit == sha
    assert github.requested_targets[0].startswith("git/trees/")


def test_page_of_branch_with_slashes_is_resolved(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW, "release/2.x")
    skills = read("https://github.com/acme/skills/tree/release/2.x/skills/pdf")
    assert only(skills).folder == "skills/pdf"
    assert github.requested_targets[:2] == ["commits/release", "commits/release/2.x"]


def test_renamed_repository_is_found(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW | MANY)
    github.renamed["acme/former"] = "acme/skills"
    assert len(only(read("acme/former/pdf")).files) == 21


def test_self_hosted_api_with_path_prefix_is_used(tmp_path: Path) -> None:
    with run_github_api_server("/api/v3") as site:
        site.repositories["acme/skills"] = Repository()
        commit(site, FEW)
        access = GitHubAccess(site.api_url, LOOPBACK)
        skills = read_github(
            GitHubRef("acme", "skills", "pdf"), access, source_text="acme/skills/pdf"
        )
        assert contents(only(skills)) == {"SKILL.md": SKILL}


def test_progress_of_archive_is_reported(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW | MANY)
    reports: list[tuple[int, int]] = []
    read("acme/skills/pdf", progress=lambda *counts: reports.append(counts))
    assert reports
    assert all(0 < count <= size for count, size in reports)


# Skipped files


def test_links_and_submodules_are_skipped_with_findings(
    github: GitHubApiServer, read: Reader
) -> None:
    odd = {
        "skills/pdf/link": RepoFile(b"/etc/passwd", LINK),
        "skills/pdf/module": RepoFile(b"1" * 40, SUBMODULE),
        "skills/pdf/odd": RepoFile(b"x", "100000"),
    }
    commit(github, FEW | MANY | odd)
    bundle = only(read("acme/skills/pdf"))
    assert not {"link", "module", "odd"} & set(bundle.files)
    result = [(finding.code, finding.path) for finding in bundle.findings]
    assert result == [(Code.FILE_LEFT_OUT, path) for path in ("link", "module", "odd")]


@pytest.mark.parametrize(
    "path",
    [
        "../up",
        "a/../../up",
        "/etc/passwd",
        "a//b",
        "./a",
        "C:\\x",
        "a\\b",
        "nul.txt",
        "a\x00b",
        ".git/config",
        ".GIT/hooks/x",
        "d/" * 33 + "x",
        "ends ",
    ],
)
def test_unsafe_path_is_skipped_with_finding(
    github: GitHubApiServer, read: Reader, path: str
) -> None:
    commit(github, FEW | {f"skills/pdf/{path}": b"x"})
    bundle = only(read("acme/skills/pdf"))
    assert sorted(bundle.files) == ["SKILL.md"]
    assert [finding.code for finding in bundle.findings] == [Code.FILE_LEFT_OUT]


def test_colliding_names_are_kept_and_reported(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW | {"skills/pdf/A/x": b"1", "skills/pdf/a/x": b"2", "skills/pdf/a/y": b"3"})
    bundle = only(read("acme/skills/pdf"))
    assert sorted(bundle.files) == ["A/x", "SKILL.md", "a/x", "a/y"]
    assert [(f.code, f.path) for f in bundle.findings] == [(Code.CASE_COLLISION, "a")]


def test_oversized_file_is_skipped_and_not_fetched(github: GitHubApiServer, read: Reader) -> None:
    sha = commit(github, FEW | {"skills/pdf/huge": b""})
    tree = tree_of(github.repositories["acme/skills"].commits[sha])
    huge = [
        e | ({"size": 11 << 20, "sha": "2" * 40} if e["path"] == "skills/pdf/huge" else {})
        for e in tree
    ]
    github.route_overrides[f"/repos/acme/skills/git/trees/{sha}"] = respond_json(
        {"tree": huge, "truncated": False}
    )
    bundle = only(read("acme/skills/pdf"))
    assert [(f.code, f.path) for f in bundle.findings] == [(Code.FILE_TOO_LARGE, "huge")]
    assert len(github.requested_targets) == 3


def test_oversized_skills_are_rejected_before_fetching(
    github: GitHubApiServer, read: Reader
) -> None:
    sha = commit(github, FEW)
    tree = [
        {"path": f"{name}/{file}", "mode": FILE, "sha": f"{n:040x}", "size": 9 << 20}
        for name in "abc"
        for n, file in enumerate(["SKILL.md", *"123456789"])
    ]
    github.route_overrides[f"/repos/acme/skills/git/trees/{sha}"] = respond_json(
        {"tree": tree, "truncated": False}
    )
    with pytest.raises(TooLarge):
        read("acme/skills")
    assert len(github.requested_targets) == 2


def respond_json(value: object) -> Route:
    return respond(body=json.dumps(value).encode())


# Missing sources


def test_missing_repository_is_named_in_error(github: GitHubApiServer, read: Reader) -> None:
    with pytest.raises(SourceNotFound, match="acme/nothing") as caught:
        read("acme/nothing/pdf")
    assert "GITHUB_TOKEN" in find_hint(caught.value, TOKEN_HINTS)


def test_missing_ref_is_named_in_error(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW)
    with pytest.raises(SourceNotFound, match="acme/skills@v9'"):
        read("acme/skills/pdf@v9")


def test_missing_commit_is_named_in_error(github: GitHubApiServer, read: Reader) -> None:
    with pytest.raises(SourceNotFound, match=f"acme/skills@{'1' * 40}"):
        read(f"acme/skills/pdf@{'1' * 40}")


def test_missing_skill_error_suggests_close_matches(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW)
    with pytest.raises(SkillNotFound) as caught:
        read("acme/skills/pdg")
    assert caught.value.close == ("pdf",)


def test_folder_without_skill_raises_no_skill(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW | {"docs/a.md": b"x"})
    with pytest.raises(NoSkillThere, match=r"No SKILL.md found in 'acme/skills/docs'"):
        read("acme/skills/docs")


def test_empty_repository_raises_no_skill(github: GitHubApiServer, read: Reader) -> None:
    with pytest.raises(NoSkillThere):
        read("acme/skills")


# Tokens


def test_private_repository_needs_token(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW)
    github.private.add("acme/skills")
    github.tokens.add(TOKEN)
    with pytest.raises(SourceNotFound):
        read("acme/skills/pdf")
    assert contents(only(read("acme/skills/pdf", TOKEN))) == {"SKILL.md": SKILL}
    with pytest.raises(SourceNotFound):
        read("acme/skills/pdf")


@pytest.mark.parametrize("ref", ["main", "commit"])
def test_cache_is_not_shared_between_tokens(
    github: GitHubApiServer, read: Reader, ref: str
) -> None:
    sha = commit(github, FEW)
    text = f"acme/skills/pdf@{sha if ref == 'commit' else ref}"
    github.private.add("acme/skills")
    github.tokens.add(TOKEN)
    read(text, TOKEN)
    github.outage_route = respond("503 Down")
    assert only(read(text, TOKEN)).files
    for stranger in ("", OTHER):
        with pytest.raises(SourceUnavailable):
            read(text, stranger)


def test_token_is_not_sent_to_archive_host(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW | MANY)
    github.tokens.add(TOKEN)
    read("acme/skills/pdf", TOKEN)
    assert all(
        request.headers["authorization"] == f"Bearer {TOKEN}" for request in github.api.requests
    )
    [request] = github.archives.requests
    assert "authorization" not in request.headers


def test_token_of_other_host_is_not_sent(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW)
    read("acme/skills/pdf", tokens={"api.github.com": Secret(TOKEN), "127.0.0.1": Secret(TOKEN)})
    assert not any("authorization" in request.headers for request in github.api.requests)


def test_rejected_token_raises_without_stale_version(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW)
    github.tokens.add(TOKEN)
    read("acme/skills/pdf", TOKEN)
    github.tokens.clear()
    with pytest.raises(SourceUnavailable, match="rejected the token") as caught:
        read("acme/skills/pdf", TOKEN)
    assert "GITHUB_TOKEN" in find_hint(caught.value, TOKEN_HINTS)
    assert TOKEN not in f"{caught.value} {caught.value.hint}"


def test_token_with_line_break_is_rejected_and_not_repeated(
    github: GitHubApiServer, read: Reader
) -> None:
    with pytest.raises(SourceUnavailable, match="not a single line") as caught:
        read("acme/skills/pdf", f"{TOKEN}\n")
    assert TOKEN not in str(caught.value)
    assert github.api.requests == []


def test_cache_does_not_contain_token(
    github: GitHubApiServer, read: Reader, tmp_path: Path
) -> None:
    commit(github, FEW)
    github.tokens.add(TOKEN)
    read("acme/skills/pdf", TOKEN)
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert files
    assert not any(TOKEN.encode() in path.read_bytes() + str(path).encode() for path in files)
    assert {path.stat().st_mode & 0o077 for path in files} == {0} or os.name == "nt"


# Cache


def test_unchanged_skill_needs_one_conditional_request(
    github: GitHubApiServer, read: Reader
) -> None:
    sha = commit(github, FEW | MANY)
    first = read("acme/skills/pdf")
    del github.api.requests[:], github.archives.requests[:]
    second = read("acme/skills/pdf")
    assert contents(only(second)) == contents(only(first))
    assert github.requested_targets == ["commits/HEAD"]
    assert github.api.requests[0].headers["if-none-match"] == f'"{sha}"'


def test_new_commit_does_not_refetch_unchanged_skills(
    github: GitHubApiServer, read: Reader
) -> None:
    commit(github, FEW | MANY)
    read("acme/skills/pdf")
    new = commit(github, FEW | MANY | {"README.md": b"New"})
    del github.api.requests[:]
    assert read("acme/skills/pdf").commit == new
    assert github.requested_targets == ["commits/HEAD", f"git/trees/{new}?recursive=1"]


def test_disabled_cache_fetches_everything_again(
    github: GitHubApiServer, read: Reader, tmp_path: Path
) -> None:
    commit(github, FEW)
    for _ in range(2):
        read("acme/skills/pdf", cache_directory="")
    assert len(github.requested_targets) == 6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["nothing", "noise", "folder", "unwritable"])
def test_damaged_cache_is_ignored(
    github: GitHubApiServer, read: Reader, tmp_path: Path, what: str
) -> None:
    commit(github, FEW)
    read("acme/skills/pdf")
    for path in list((tmp_path / "cache" / "github").iterdir()):
        path.unlink()
        if what == "noise":
            path.write_bytes(b"noise" * 20)
        elif what == "folder":
            path.mkdir()
    if what == "unwritable":
        (tmp_path / "cache" / "github").rmdir()
        (tmp_path / "cache" / "github").write_bytes(b"")
    assert contents(only(read("acme/skills/pdf"))) == {"SKILL.md": SKILL}


# Outages


@pytest.mark.parametrize(
    "down",
    [
        respond("503 Down"),
        respond("429 Slow down", headers={"Retry-After": "7"}),
        respond(body=b"<!DOCTYPE html><p>Sign in"),
        never_respond,
        lambda _: None,
    ],
)
@pytest.mark.parametrize("text", ["acme/skills/pdf", "acme/skills/pdf@main"])
def test_outage_gives_stale_version(
    github: GitHubApiServer, read: Reader, text: str, down: Route
) -> None:
    sha = commit(github, FEW | MANY)
    first = read(text)
    github.outage_route = down
    second = read(text, network=HASTY)
    assert (second.commit, contents(only(second))) == (sha, contents(only(first)))
    assert "127.0.0.1" in second.stale


def test_new_commit_without_files_gives_stale_version(
    github: GitHubApiServer, read: Reader
) -> None:
    old = commit(github, FEW)
    read("acme/skills/pdf")
    new = commit(github, {"skills/pdf/SKILL.md": SKILL + b"new"})
    github.route_overrides[f"/repos/acme/skills/git/trees/{new}"] = respond("500 Broken")
    skills = read("acme/skills/pdf")
    assert (skills.commit, "status 500" in skills.stale) == (old, True)


def test_outage_without_cache_raises(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW | {"skills/docx/SKILL.md": make_skill_md("docx")})
    read("acme/skills/pdf")
    github.is_rate_limited = True
    with pytest.raises(RateLimited) as caught:
        read("acme/skills/docx")
    assert caught.value.seconds > 0
    assert "GITHUB_TOKEN" in find_hint(caught.value, TOKEN_HINTS)


def test_rate_limit_with_token_does_not_suggest_token(
    github: GitHubApiServer, read: Reader
) -> None:
    github.tokens.add(TOKEN)
    github.is_rate_limited = True
    with pytest.raises(RateLimited) as caught:
        read("acme/skills/pdf", TOKEN)
    assert "GITHUB_TOKEN" not in find_hint(caught.value, TOKEN_HINTS)


def test_removed_repository_is_not_served_from_cache(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW)
    read("acme/skills/pdf")
    del github.repositories["acme/skills"]
    with pytest.raises(SourceNotFound):
        read("acme/skills/pdf")


def test_silent_api_times_out(github: GitHubApiServer, read: Reader) -> None:
    github.outage_route = never_respond
    with pytest.raises(SourceTimedOut):
        read("acme/skills/pdf", network=HASTY)


# Hostile responses


def test_api_at_private_address_is_rejected(github: GitHubApiServer, read: Reader) -> None:
    commit(github, FEW)
    with pytest.raises(SourceRejected) as caught:
        read("acme/skills/pdf", policy=PUBLIC_ONLY)
    assert caught.value.reason == "host"
    assert github.api.requests == []


def test_archive_redirect_to_private_address_is_rejected(
    github: GitHubApiServer, read: Reader
) -> None:
    sha = commit(github, FEW | MANY)
    location = {"Location": "http://169.254.169.254/latest"}
    github.route_overrides[f"/repos/acme/skills/tarball/{sha}"] = respond(
        "302 Found", headers=location
    )
    with pytest.raises(SourceRejected):
        read("acme/skills/pdf")


@pytest.mark.parametrize(
    "body",
    [b"", b"<!DOCTYPE html><title>Sign in</title>", b"main", b"\xff" * 40, b"{}", b"a" * 39],
)
def test_invalid_commit_id_is_malformed(github: GitHubApiServer, read: Reader, body: bytes) -> None:
    github.route_overrides["/repos/acme/skills/commits/HEAD"] = respond(body=body)
    with pytest.raises(SourceUnavailable, match="the response is malformed"):
        read("acme/skills/pdf")


ENTRY = {"path": "skills/pdf/SKILL.md", "mode": FILE, "sha": "1" * 40, "size": 1}


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><title>Sign in</title>",
        b"",
        b"null",
        b"[]",
        b'{"tree": {}}',
        b'{"tree": [1], "truncated": false}',
        b"[" * 200_000,
        json.dumps({"tree": [ENTRY, ENTRY], "truncated": False}).encode(),
        json.dumps({"tree": [ENTRY | {"sha": "../../x"}], "truncated": False}).encode(),
        json.dumps({"tree": [ENTRY | {"size": -1}], "truncated": False}).encode(),
        json.dumps({"tree": [ENTRY | {"size": "1"}], "truncated": False}).encode(),
        json.dumps({"tree": [ENTRY | {"path": None}], "truncated": False}).encode(),
        json.dumps({"tree": [{"path": "x"}], "truncated": False}).encode(),
        b'{"tree": [], "truncated": false, "x": ' + b"9" * 5000 + b"}",
    ],
)
def test_invalid_tree_is_malformed(github: GitHubApiServer, read: Reader, body: bytes) -> None:
    sha = commit(github, FEW)
    github.route_overrides[f"/repos/acme/skills/git/trees/{sha}"] = respond(body=body)
    with pytest.raises(SourceUnavailable, match="the response is malformed"):
        read("acme/skills/pdf")


@pytest.mark.parametrize("path", ["commits/HEAD", "git/trees/{sha}", "git/blobs/{blob}"])
def test_endless_response_is_rejected(github: GitHubApiServer, read: Reader, path: str) -> None:
    sha = commit(github, FEW)
    target = path.format(sha=sha, blob=RepoFile(SKILL).sha)
    github.route_overrides[f"/repos/acme/skills/{target}"] = respond_endlessly(
        b"HTTP/1.1 200 OK\r\n\r\n"
    )
    with pytest.raises(SkillhallError) as caught:
        read("acme/skills/pdf")
    assert caught.value.code in {"too_large", "upstream_error"}


@pytest.mark.parametrize(
    "route",
    [
        respond(body=b"x" * len(SKILL)),
        respond(body=SKILL[:-1]),
        respond(body=SKILL + b"x"),
        respond(body=b""),
        respond(body=b"<!DOCTYPE html>"),
        respond("404 Gone"),
        respond("500 Broken"),
    ],
)
def test_file_that_does_not_match_commit_raises(
    github: GitHubApiServer, read: Reader, route: Route
) -> None:
    commit(github, FEW | {"skills/pdf/a": b"a"})
    github.route_overrides[f"/repos/acme/skills/git/blobs/{RepoFile(SKILL).sha}"] = route
    with pytest.raises(SourceUnavailable):
        read("acme/skills/pdf")


TOP = "acme-skills-1234567"
ALL_FILES = FEW | MANY


def members(*more: TarEntry) -> list[TarEntry]:
    files = [
        TarEntry(f"{TOP}/{path}", data)
        for path, data in ALL_FILES.items()
        if isinstance(data, bytes)
    ]
    return [*more, *files]


@pytest.mark.parametrize(
    "strange",
    [
        TarEntry(f"{TOP}/skills/pdf/link", b"", b"2", link=b"/etc/passwd"),
        TarEntry(f"{TOP}/skills/pdf/SKILL.md", b"", b"2", link=b"/etc/passwd"),
        TarEntry(f"{TOP}/skills/pdf/SKILL.md", b"", b"1", link=b"/etc/passwd"),
        TarEntry(f"{TOP}/other/device", b"", b"3"),
        TarEntry(f"{TOP}/skills/pdf/pipe", b"", b"6"),
        TarEntry(f"{TOP}/../../etc/passwd", b"x"),
        TarEntry(f"{TOP}/skills/pdf/../../../up", b"x"),
        TarEntry(f"{TOP}/skills/pdf/SKILL.md", b"another content"),
        TarEntry(f"{TOP}/skills/pdf/not-in-the-tree", b"x"),
        TarEntry(TOP.encode() + b"/\xff\xfe", b"x"),
    ],
)
def test_unexpected_archive_members_are_ignored(
    github: GitHubApiServer, read: Reader, strange: TarEntry
) -> None:
    sha = commit(github, ALL_FILES)
    github.repositories["acme/skills"].archives[sha] = make_tgz(*members(strange))
    bundle = only(read("acme/skills/pdf"))
    assert contents(bundle)["SKILL.md"] == SKILL
    assert len(bundle.files) == 21
    assert len(github.requested_targets) == 3


@pytest.mark.parametrize(
    "data",
    [
        b"<!DOCTYPE html><title>Sign in</title>",
        make_tar(*members()),
        gzip.compress(make_tar(*members()))[:-100],
        gzip.compress(make_tar(*members()[:5], end=b"")),
        make_tgz(TarEntry("elsewhere/x"), *members()),
        make_tgz(TarEntry(f"{TOP}/x", kind=b"S"), *members()),
        make_tgz(TarEntry(f"{TOP}/x", kind=b"2", link=b"x"), *members()),
        make_tgz(pax({"GNU.sparse.map": "0,1"}), *members()),
        make_tgz(pax({"size": "7"}), *members()),
        make_tgz(pax({"path": f"{TOP}/skills/pdf/SKILL.md"}, b"g"), *members()),
        make_tgz(TarEntry(f"{TOP}/x", checksum=b"000000\x00 "), *members()),
        gzip.compress(b"") + gzip.compress(make_tar(*members())),
    ],
)
def test_malformed_archive_is_rejected(github: GitHubApiServer, read: Reader, data: bytes) -> None:
    sha = commit(github, ALL_FILES)
    github.repositories["acme/skills"].archives[sha] = data
    with pytest.raises(ArchiveRejected):
        read("acme/skills/pdf")


def test_archive_bomb_is_rejected(github: GitHubApiServer, read: Reader) -> None:
    sha = commit(github, ALL_FILES)
    bomb = make_tgz(*members(TarEntry(f"{TOP}/a", bytes(66 << 20))))
    github.repositories["acme/skills"].archives[sha] = bomb
    with pytest.raises(TooLarge, match="times its packed size"):
        read("acme/skills/pdf")


def test_files_missing_in_archive_are_fetched(github: GitHubApiServer, read: Reader) -> None:
    sha = commit(github, ALL_FILES)
    github.repositories["acme/skills"].archives[sha] = make_tgz(*members()[:-3])
    assert len(only(read("acme/skills/pdf")).files) == 21
    assert len([target for target in github.requested_targets if "blobs" in target]) == 3


def test_missing_file_raises(github: GitHubApiServer, read: Reader) -> None:
    sha = commit(github, ALL_FILES)
    github.repositories["acme/skills"].archives[sha] = make_tgz(*members()[:-1])
    lost = RepoFile(MANY["skills/pdf/references/19.md"]).sha
    github.route_overrides[f"/repos/acme/skills/git/blobs/{lost}"] = respond("404 Not Found")
    with pytest.raises(SourceUnavailable, match=r"references/19\.md"):
        read("acme/skills/pdf")


def test_archive_without_most_files_raises(github: GitHubApiServer, read: Reader) -> None:
    sha = commit(github, FEW | {f"skills/pdf/{n}": b"%d" % n for n in range(50)})
    github.repositories["acme/skills"].archives[sha] = make_tgz(TarEntry(f"{TOP}/x"))
    with pytest.raises(SourceUnavailable, match="51 files are missing"):
        read("acme/skills/pdf")


def test_endless_archive_is_read_only_as_needed(github: GitHubApiServer, read: Reader) -> None:
    sha = commit(github, ALL_FILES)
    data = archive_of(github.repositories["acme/skills"].commits[sha], sha, TOP)
    github.route_overrides[f"/acme/skills/legacy.tar.gz/{sha}"] = respond_endlessly(
        b"HTTP/1.1 200 OK\r\n\r\n" + data
    )
    assert len(only(read("acme/skills/pdf")).files) == 21


def test_truncated_tree_is_read_from_archive(github: GitHubApiServer, read: Reader) -> None:
    odd = {"skills/pdf/run": RepoFile(b"r", EXECUTABLE), "skills/pdf/l": RepoFile(b"x", LINK)}
    commit(github, ALL_FILES | odd)
    github.repositories["acme/skills"].is_truncated = True
    bundle = only(read("acme/skills/pdf"))
    assert len(bundle.files) == 22
    assert bundle.files["run"].executable
    assert [finding.path for finding in bundle.findings] == ["l"]


def test_concurrent_readers_share_cache(github: GitHubApiServer, read: Reader) -> None:
    commit(github, ALL_FILES)
    result: list[RepositorySkills] = []
    threads = [
        threading.Thread(target=lambda: result.append(read("acme/skills/pdf"))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [len(only(snapshot).files) for snapshot in result] == [21] * 6
