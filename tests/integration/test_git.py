"""Skills read with real git from a real server: results, rejections and leftovers."""

import json
import os
import random
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillhall._internal.hints import TOKEN_HINTS, find_hint
from skillhall._internal.net.addresses import PUBLIC_ONLY, AddressPolicy
from skillhall._internal.settings import Secret
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.finding import Code
from skillhall._internal.sources.git.git_ref import GitRef
from skillhall._internal.sources.git.process import is_git_available
from skillhall._internal.sources.git.remote import GitAccess, GitLimits
from skillhall._internal.sources.git.source import read_git, resolve_commit
from skillhall._internal.sources.repo_layout import RepositorySkills
from skillhall.errors import (
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
from tests.support.git_server import (
    EXECUTABLE,
    FOLDER,
    LINK,
    SUBMODULE,
    GitRepo,
    GitServer,
    git_repo,
    run_git_server,
)
from tests.support.http_server import ScriptedResolver, make_certificate
from tests.support.skills import make_skill_md

LOOPBACK = AddressPolicy.from_cidrs("127.0.0.0/8")
TOKEN = "s3cr3t-t0ken-0123456789"  # noqa: S105 - a fake token
NOISE = random.Random(1).randbytes(1_000_000)  # noqa: S311 - incompressible bytes
PDF = make_skill_md("pdf")
FILES = {"skills/pdf/SKILL.md": PDF, "skills/csv/SKILL.md": make_skill_md("csv"), "big.bin": NOISE}
REQUESTS_PER_READ = 5  # capabilities, refs and trees; capabilities and files

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture
def served(tmp_path: Path) -> GitRepo:
    return git_repo(tmp_path / "served/acme/skills.git", FILES)


@pytest.fixture
def site(served: GitRepo) -> Iterator[GitServer]:
    with run_git_server(served.folder.parents[1]) as running:
        yield running


@pytest.fixture
def access(tmp_path: Path) -> GitAccess:
    return GitAccess(str(tmp_path / "cache"), LOOPBACK)


def with_token(access: GitAccess, site: GitServer, token: str = TOKEN) -> GitAccess:
    tokens = {f"127.0.0.1:{site.port}": Secret(token)}
    return GitAccess(access.cache_directory, LOOPBACK, tokens, access.limits)


def read(
    site: GitServer, access: GitAccess, path: str = "", ref: str = "", repo: str = "acme/skills.git"
) -> RepositorySkills:
    return read_git(GitRef(site.url(repo), path, ref), access, source_text="acme/skills")


def contents(bundle: Bundle) -> dict[str, bytes]:
    return {path: file.read() for path, file in bundle.files.items()}


def list_cached_files(access: GitAccess) -> list[str]:
    """Return all files in the cache except locks."""
    paths = Path(access.cache_directory).rglob("*")
    return sorted(str(path) for path in paths if path.is_file() and path.name != "lock")


def list_git_processes(site: GitServer) -> list[str]:
    """Return the command lines of git processes that use the server."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [command for command in commands if f":{site.port}/" in command and "git" in command]


def wait_for_git_processes(site: GitServer) -> bool:
    """Wait until killed git processes are gone; return whether they are."""
    moment = threading.Event()
    return any(not list_git_processes(site) or moment.wait(0.02) for _ in range(6000))


@pytest.fixture
def recording_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wrapper of git on PATH that records arguments and environment; returns its folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    real = shutil.which("git")
    script = f'#!/bin/sh\necho "$@" >> {folder}/arguments\nenv >> {folder}/variables\n'
    (folder / "git").write_text(f'{script}exec {real} "$@"\n', encoding="utf-8")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


# Content


def test_one_skill_is_fetched_without_the_rest(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    skills = read(site, access, "skills/pdf")
    assert skills.commit == (served.folder / "refs/heads/main").read_text("ascii").strip()
    assert skills.stale == ""
    [bundle] = skills.bundles
    assert bundle.folder == "skills/pdf"
    assert contents(bundle) == {"SKILL.md": PDF}
    assert site.bytes_sent < 10_000
    assert len(site.requests) == REQUESTS_PER_READ


def test_reference_without_path_returns_all_skills(site: GitServer, access: GitAccess) -> None:
    assert [bundle.folder for bundle in read(site, access).bundles] == ["skills/csv", "skills/pdf"]


def test_root_skill_has_all_files_and_no_name(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    served.commit({"SKILL.md": PDF, "scripts/run.sh": b"#!/bin/sh\n"})
    [bundle] = read(site, access).bundles
    assert bundle.folder == ""
    assert list(bundle.files) == ["SKILL.md", "scripts/run.sh"]


def test_bytes_and_modes_are_those_of_commit(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    odd = bytes(range(256)) + b"\r\n\0"
    files = {"a/SKILL.md": PDF, "a/.gitattributes": b"* text eol=crlf filter=lfs\n"}
    served.commit({**files, "a/odd": odd, "a/go": b"x"}, {"a/go": EXECUTABLE})
    [bundle] = read(site, access).bundles
    assert bundle.files["odd"].read() == odd
    assert bundle.files["odd"].size == len(odd)
    assert [path for path, file in bundle.files.items() if file.executable] == ["go"]


def test_links_and_submodules_are_skipped_with_findings(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    hooked = b'[submodule "x"]\n\tpath = x\n\turl = https://example.com/x.git\n'
    served.commit(
        {
            ".gitmodules": hooked,
            "a/SKILL.md": PDF,
            "a/secrets": b"/etc/passwd",
            "a/up": b"../../config",
            "a/other": b"1" * 40,
        },
        {"a/secrets": LINK, "a/up": LINK, "a/other": SUBMODULE},
    )
    [bundle] = read(site, access).bundles
    assert list(bundle.files) == ["SKILL.md"]
    assert [(f.code, f.path) for f in bundle.findings] == [
        (Code.FILE_LEFT_OUT, "other"),
        (Code.FILE_LEFT_OUT, "secrets"),
        (Code.FILE_LEFT_OUT, "up"),
    ]


def test_unsafe_names_are_skipped_and_escaped(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    names = ["a\\b", "c:x", "end.", "con.txt", "x\x1b[31m", "caf\udce9"]
    served.commit({"a/SKILL.md": PDF, **{f"a/{name}": b"x" for name in names}})
    [bundle] = read(site, access).bundles
    assert list(bundle.files) == ["SKILL.md"]
    assert [finding.code for finding in bundle.findings] == [Code.FILE_LEFT_OUT] * len(names)
    assert all(finding.message.isprintable() for finding in bundle.findings)


def test_colliding_names_are_reported(site: GitServer, access: GitAccess, served: GitRepo) -> None:
    served.commit({"a/SKILL.md": PDF, "a/README": b"1", "a/readme": b"2", "a/Data/x": b"3"})
    [bundle] = read(site, access).bundles
    assert [(f.code, f.path) for f in bundle.findings] == [(Code.CASE_COLLISION, "readme")]
    assert len(bundle.files) == 4


def test_huge_file_is_skipped(site: GitServer, access: GitAccess, served: GitRepo) -> None:
    served.commit({"a/SKILL.md": PDF, "a/huge": bytes(10 * 1024 * 1024 + 1)})
    [bundle] = read(site, access).bundles
    assert list(bundle.files) == ["SKILL.md"]
    assert [(f.code, f.path) for f in bundle.findings] == [(Code.FILE_TOO_LARGE, "huge")]


def test_files_beyond_limit_are_skipped(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    blob = served.blob(b"x")
    many = served.tree([("100644", blob, f"{number:04}") for number in range(2_000)])
    skill = [("100644", served.blob(PDF), "SKILL.md"), (FOLDER, many, "many")]
    served.commit_tree(served.tree([(FOLDER, served.tree(skill), "a")]))
    [bundle] = read(site, access).bundles
    assert len(bundle.files) == 2_000
    assert [f.code for f in bundle.findings] == [Code.TOO_MANY_FILES]


def test_server_without_filters_gives_the_same(site: GitServer, access: GitAccess) -> None:
    site.filters = False
    [bundle] = read(site, access, "pdf").bundles
    assert contents(bundle) == {"SKILL.md": PDF}


@pytest.mark.parametrize("filters", [True, False])
def test_server_with_old_protocol_gives_the_same(
    site: GitServer, access: GitAccess, filters: bool
) -> None:
    site.filters, site.newest_protocol = filters, False
    [bundle] = read(site, access, "pdf").bundles
    assert contents(bundle) == {"SKILL.md": PDF}


def test_sha256_repository_is_read(site: GitServer, access: GitAccess) -> None:
    repo = GitRepo(site.root / "long.git", "sha256")
    commit = repo.commit({"a/SKILL.md": PDF})
    assert len(commit) == 64
    assert read(site, access, repo="long.git").commit == commit
    assert read(site, access, ref=commit, repo="long.git").commit == commit


def test_missing_skill_and_repository_without_skills_raise(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    with pytest.raises(SkillNotFound) as caught:
        read(site, access, "pfd")
    assert caught.value.close == ("pdf",)
    served.commit({"README.md": b"x"}, ref="refs/heads/bare")
    with pytest.raises(NoSkillThere):
        read(site, access, ref="bare")


def test_progress_is_reported(site: GitServer, access: GitAccess) -> None:
    reports: list[tuple[str, int, int]] = []
    noisy = GitAccess(access.cache_directory, LOOPBACK, progress=lambda *a: reports.append(a))
    read(site, noisy)
    assert ("Receiving objects", 5, 5) in reports


# Refs


def test_head_can_have_any_name(site: GitServer, access: GitAccess, served: GitRepo) -> None:
    commit = served.commit({"a/SKILL.md": PDF}, ref="refs/heads/trunk")
    (served.folder / "HEAD").write_text("ref: refs/heads/trunk\n", encoding="ascii")
    assert read(site, access).commit == commit
    assert resolve_commit(GitRef(site.url("acme/skills.git")), access) == commit


def test_tag_takes_precedence_over_branch(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    served.commit({"a/SKILL.md": PDF}, ref="refs/heads/v1")
    tagged = served.commit({"b/SKILL.md": PDF}, ref="refs/heads/other")
    served.git("tag", "-a", "-m", "One", "v1", tagged)
    assert read(site, access, ref="v1").commit == tagged
    assert resolve_commit(GitRef(site.url("acme/skills.git"), "", "v1"), access) == tagged


def test_branch_with_slashes_is_found_from_page(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    commit = served.commit({"skills/a/SKILL.md": PDF}, ref="refs/heads/feature/new/x")
    page = GitRef(site.url("acme/skills.git"), "new/x/skills/a", "feature")
    skills = read_git(page, access, source_text="page")
    assert (skills.commit, skills.bundles[0].folder) == (commit, "skills/a")
    assert resolve_commit(page, access) == commit


def test_commit_id_is_read_from_cache_without_network(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    commit = served.commit(FILES)
    served.commit({"x/SKILL.md": PDF})
    first = read(site, access, ref=commit)
    assert first.commit == commit
    requests = len(site.requests)
    again = GitAccess(access.cache_directory, LOOPBACK, resolve=ScriptedResolver())
    host = GitRef(site.url("acme/skills.git"), "", commit)
    assert contents(read_git(host, again, source_text="x").bundles[0]) == contents(first.bundles[0])
    assert len(site.requests) == requests


@pytest.mark.parametrize("ref", ["nope", "1" * 40, "blob-tag"])
def test_unknown_ref_is_not_found_and_leaves_no_files(
    site: GitServer, access: GitAccess, served: GitRepo, ref: str
) -> None:
    (served.folder / "refs/tags/blob-tag").write_text(served.blob(b"x"), encoding="ascii")
    with pytest.raises(SourceNotFound, match="'acme/skills'"):
        read(site, access, ref=ref)
    assert not (Path(access.cache_directory) / "git").exists()


def test_unknown_repository_is_not_found(site: GitServer, access: GitAccess) -> None:
    with pytest.raises(SourceNotFound):
        read(site, access, repo="acme/none.git")
    with pytest.raises(SourceNotFound):
        resolve_commit(GitRef(site.url("acme/skills.git"), "", "none"), access)


# Rejections before a connection


@pytest.mark.parametrize(
    "reference",
    [
        GitRef("ext::sh -c id"),
        GitRef("ext::sh"),
        GitRef("file:///etc"),
        GitRef("/etc"),
        GitRef("git://127.0.0.1/x.git"),
        GitRef("--upload-pack=id"),
        GitRef("-oProxyCommand=id@host:x"),
        GitRef("ssh://-oProxyCommand=id/x.git"),
        GitRef("ssh://git@host/-x"),
        GitRef("https://user:pw@host/x.git"),
        GitRef("https://host/x.git?a=b"),
        GitRef("https://host/x.git", "", "--upload-pack=id"),
        GitRef("https://host/x.git", "", "+refs/heads/*:refs/heads/*"),
        GitRef("https://127.0.0.1/x.git"),
        GitRef("https://10.0.0.1/x.git"),
        GitRef("https://[::1]/x.git"),
        GitRef("ssh://git@192.168.0.1/x.git"),
        GitRef("git@169.254.169.254:x.git"),
        GitRef("http://93.184.215.14/x.git"),
    ],
    ids=lambda reference: f"{reference.url} {reference.ref}",
)
def test_hostile_references_start_no_process(
    access: GitAccess, recording_git: Path, reference: GitRef
) -> None:
    public = GitAccess(access.cache_directory, PUBLIC_ONLY)
    with pytest.raises(SourceRejected):
        read_git(reference, public, source_text="x")
    with pytest.raises(SourceRejected):
        resolve_commit(reference, public)
    assert not (recording_git / "arguments").exists()
    assert not Path(access.cache_directory).exists()


def test_git_connects_to_checked_address(site: GitServer, access: GitAccess) -> None:
    resolver = ScriptedResolver(["127.0.0.1"])
    pinned = GitAccess(access.cache_directory, LOOPBACK, resolve=resolver)
    skills = read_git(
        GitRef(site.url("acme/skills.git", "skills.invalid")), pinned, source_text="x"
    )
    assert len(skills.bundles) == 2
    assert resolver.hosts == ["skills.invalid"]
    assert site.requests[0].headers["host"] == f"skills.invalid:{site.port}"


def test_https_verifies_certificate_of_host_name(served: GitRepo, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "skills.invalid")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with run_git_server(served.folder.parents[1], context) as site:
        here = GitAccess(
            str(tmp_path / "cache"),
            LOOPBACK,
            resolve=lambda *_: ["127.0.0.1"],
            ca_file=str(certificate),
        )
        good = GitRef(site.url("acme/skills.git", "skills.invalid"))
        assert len(read_git(good, here, source_text="x").bundles) == 2
        with pytest.raises(SourceUnavailable, match="invalid certificate"):
            read_git(GitRef(site.url("acme/skills.git", "other.invalid")), here, source_text="x")


def test_host_with_private_address_is_rejected(access: GitAccess, recording_git: Path) -> None:
    resolver = ScriptedResolver(["93.184.215.14", "10.0.0.1"])
    with pytest.raises(SourceRejected):
        read_git(
            GitRef("https://skills.invalid/x.git"),
            GitAccess(access.cache_directory, resolve=resolver),
            source_text="x",
        )
    assert not (recording_git / "arguments").exists()


# Redirects


def test_renamed_repository_is_found(site: GitServer, access: GitAccess) -> None:
    site.redirects["/old/"] = site.url("acme/skills.git")
    assert len(read(site, access, repo="old/name").bundles) == 2


def test_token_is_not_sent_after_redirect(site: GitServer, access: GitAccess) -> None:
    with run_git_server(site.root) as other:
        site.redirects["/old/"] = other.url("acme/skills.git")
        tokens = {f"127.0.0.1:{item.port}": Secret(TOKEN) for item in (site, other)}
        holder = GitAccess(access.cache_directory, LOOPBACK, tokens)
        assert len(read(site, holder, repo="old/name").bundles) == 2
        assert "authorization" in site.requests[0].headers
        assert other.requests
        assert all("authorization" not in request.headers for request in other.requests)


def test_redirect_to_private_address_is_rejected(site: GitServer, access: GitAccess) -> None:
    site.redirects["/old/"] = "http://10.0.0.1/x.git"
    with pytest.raises(SourceRejected):
        read(site, access, repo="old/name")
    assert list_cached_files(access) == []


# Tokens


def test_token_opens_repository_and_is_not_stored(
    site: GitServer, access: GitAccess, recording_git: Path
) -> None:
    site.token = TOKEN
    assert len(read(site, with_token(access, site)).bundles) == 2
    assert all("authorization" in request.headers for request in site.requests)
    assert TOKEN not in (recording_git / "arguments").read_text(encoding="utf-8")
    assert TOKEN not in (recording_git / "variables").read_text(
        encoding="utf-8"
    )  # only base64-encoded
    contents = [Path(path).read_bytes() for path in list_cached_files(access)]
    hidden = site.requests[0].headers["authorization"].removeprefix("Basic ")
    assert not [data for data in contents if TOKEN.encode() in data or hidden.encode() in data]
    assert hidden not in (recording_git / "arguments").read_text(encoding="utf-8")


def test_git_gets_clean_environment(
    site: GitServer, access: GitAccess, recording_git: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_TOKEN", "https_proxy", "GIT_DIR", "GIT_SSL_NO_VERIFY", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "leaked")
    read(site, access)
    assert "leaked" not in (recording_git / "variables").read_text(encoding="utf-8")


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc")
def test_token_is_not_in_process_arguments(site: GitServer, access: GitAccess) -> None:
    site.release_event = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read, site, with_token(access, site))
        assert site.is_waiting.wait(120)
        commands = list_git_processes(site)
        site.release_event.set()
        assert len(reading.result(20).bundles) == 2
    assert commands
    assert not [command for command in commands if TOKEN in command or "Basic" in command]


@pytest.mark.parametrize(("token", "words"), [("", "asks for credentials"), ("no", "the token")])
def test_missing_or_wrong_credentials_fail_without_prompt(
    site: GitServer, access: GitAccess, token: str, words: str
) -> None:
    site.token = TOKEN
    asker = with_token(access, site, token) if token else access
    with pytest.raises(SourceUnavailable, match=words) as caught:
        read(site, asker)
    hint = find_hint(caught.value, TOKEN_HINTS)
    assert ("SKILLHALL_GIT_TOKEN" in hint) is (token == "")
    assert list_cached_files(access) == []


def test_token_of_other_host_is_not_sent(site: GitServer, access: GitAccess) -> None:
    tokens = {"127.0.0.1": Secret(TOKEN), "github.com": Secret(TOKEN)}
    read(site, GitAccess(access.cache_directory, LOOPBACK, tokens))
    assert all("authorization" not in request.headers for request in site.requests)


def test_cache_is_not_shared_between_tokens(site: GitServer, access: GitAccess) -> None:
    site.token = TOKEN
    read(site, with_token(access, site))
    site.status = 503
    assert read(site, with_token(access, site)).stale
    for other in (access, with_token(access, site, "another")):
        with pytest.raises(SourceUnavailable):
            read(site, other)


# Failures


@pytest.mark.parametrize("status", [403, 429, 500, 503])
def test_failing_host_without_cache_raises(site: GitServer, access: GitAccess, status: int) -> None:
    site.status = status
    with pytest.raises(RateLimited if status == 429 else SourceUnavailable):
        read(site, access)
    assert list_cached_files(access) == []


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_failing_host_with_cache_gives_stale_version(
    site: GitServer, access: GitAccess, status: int
) -> None:
    fresh = read(site, access)
    site.status = status
    skills = read(site, access)
    assert "cached version from 20" in skills.stale
    assert skills.commit == fresh.commit
    assert contents(skills.bundles[0]) == contents(fresh.bundles[0])


def test_unreachable_host_with_cache_gives_stale_version(
    site: GitServer, access: GitAccess
) -> None:
    resolver = ScriptedResolver(["127.0.0.1"], ["127.0.0.2"])
    named = GitAccess(access.cache_directory, LOOPBACK, resolve=resolver)
    reference = GitRef(site.url("acme/skills.git", "skills.invalid"), "pdf")
    read_git(reference, named, source_text="x")
    assert "the connection failed" in read_git(reference, named, source_text="x").stale
    lost = GitAccess(access.cache_directory, LOOPBACK, resolve=_fail)
    assert "DNS lookup failed" in read_git(reference, lost, source_text="x").stale


def _fail(_host: str, _port: int) -> list[str]:
    raise OSError


def test_stale_version_has_only_skills_read_before(site: GitServer, access: GitAccess) -> None:
    read(site, access, "pdf")
    site.status = 503
    with pytest.raises(SourceUnavailable):
        read(site, access, "csv")


def test_rewritten_branch_is_followed_and_deleted_is_not_found(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    first = served.commit({"a/SKILL.md": PDF, "a/x": b"1"}, ref="refs/heads/b")
    assert read(site, access, ref="b").commit == first
    second = served.commit({"a/SKILL.md": PDF, "a/x": b"2"}, ref="refs/heads/b")
    skills = read(site, access, ref="b")
    assert (skills.commit, skills.stale) == (second, "")
    assert skills.bundles[0].files["x"].read() == b"2"
    (served.folder / "refs/heads/b").unlink()
    for _ in range(2):
        with pytest.raises(SourceNotFound):
            read(site, access, ref="b")
    site.status = 503
    with pytest.raises(SourceUnavailable):
        read(site, access, ref="b")


@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", ".."])
def test_hostile_tree_is_rejected_and_cache_stays(
    site: GitServer, access: GitAccess, served: GitRepo, name: str
) -> None:
    good = read(site, access)
    evil = served.tree([(FOLDER, served.files({"config": b"x"}), name)])
    before = list_cached_files(access)
    served.commit_tree(evil, "refs/heads/evil")
    with pytest.raises(SourceUnavailable, match="git rejected its objects"):
        read(site, access, ref="evil")
    assert list_cached_files(access) == before
    served.commit_tree(evil)
    skills = read(site, access)
    assert (skills.commit, bool(skills.stale)) == (good.commit, True)


@pytest.mark.parametrize("damage", ["cut", "emptied", "removed", "head", "objects"])
def test_damaged_clone_is_replaced(site: GitServer, access: GitAccess, damage: str) -> None:
    good = read(site, access)
    [repository] = Path(access.cache_directory).glob("git/*/repository")
    for pack in repository.glob("objects/pack/*.pack"):
        pack.chmod(0o644)
        data = pack.read_bytes()
        if damage == "cut":
            pack.write_bytes(data[: len(data) // 2])
        elif damage == "emptied":
            pack.write_bytes(bytes(len(data)))
        elif damage == "removed":
            pack.unlink()
    if damage == "head":
        (repository / "HEAD").unlink()
    if damage == "objects":
        shutil.rmtree(repository / "objects")
    skills = read(site, access)
    assert (skills.commit, skills.stale) == (good.commit, "")
    assert contents(skills.bundles[1]) == {"SKILL.md": PDF}


def test_clone_with_damaged_files_is_replaced(site: GitServer, access: GitAccess) -> None:
    read(site, access)
    packs = Path(access.cache_directory).glob("git/*/repository/objects/pack/*.pack")
    files = max(packs, key=lambda pack: pack.stat().st_mtime_ns)  # fetched after the trees
    data = files.read_bytes()
    files.chmod(0o644)
    files.write_bytes(data[:30] + bytes(len(data) - 50) + data[-20:])
    skills = read(site, access)
    assert skills.stale == ""
    assert contents(skills.bundles[1]) == {"SKILL.md": PDF}
    assert len(site.requests) == REQUESTS_PER_READ + 3 + REQUESTS_PER_READ


LOCKS = ("HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock", "refs/skillhall/*.lock")


@pytest.mark.parametrize("lock", LOCKS)
def test_a_leftover_lock_of_git_does_not_stop_the_next_reader(
    site: GitServer, access: GitAccess, served: GitRepo, lock: str
) -> None:
    read(site, access)
    [repository] = Path(access.cache_directory).glob("git/*/repository")
    [ref] = (repository / "refs/skillhall").iterdir()
    left = repository / lock.replace("*", ref.name)
    left.write_bytes(b"")
    before = repository.stat().st_ino
    commit = served.commit(FILES)
    found = read(site, access)
    assert (found.commit, found.stale) == (commit, "")
    assert repository.stat().st_ino == before  # not fetched again from the start
    assert not left.exists()


def test_leftovers_of_interrupted_run_are_removed(site: GitServer, access: GitAccess) -> None:
    read(site, access)
    [entry] = Path(access.cache_directory).glob("git/*")
    (entry / "new").mkdir()
    (entry / "new/HEAD").write_bytes(b"")
    (entry / "repository/objects/pack/tmp_pack_x").write_bytes(b"x")
    (entry / "repository/shallow.lock").write_bytes(b"")
    assert read(site, access).stale == ""
    assert not [
        path
        for path in list_cached_files(access)
        if "tmp_" in path or path.endswith("shallow.lock")
    ]
    assert not (entry / "new").exists()


def test_oversized_clone_is_replaced(site: GitServer, access: GitAccess, served: GitRepo) -> None:
    read(site, access)
    [entry] = Path(access.cache_directory).glob("git/*")
    (entry / "repository/objects/pack/old.keep").write_bytes(NOISE)
    limited = GitAccess(access.cache_directory, LOOPBACK, limits=GitLimits(max_bytes=500_000))
    assert read(site, limited).stale == ""
    assert not (entry / "repository/objects/pack/old.keep").exists()


def test_slow_host_times_out_and_processes_are_killed(site: GitServer, access: GitAccess) -> None:
    site.release_event = threading.Event()
    hasty = GitAccess(access.cache_directory, LOOPBACK, limits=GitLimits(total_seconds=0.5))
    with pytest.raises(SourceTimedOut):
        read(site, hasty)
    assert wait_for_git_processes(site)
    assert list_cached_files(access) == []


def test_slow_host_with_cache_gives_stale_version(site: GitServer, access: GitAccess) -> None:
    read(site, access)
    site.release_event = threading.Event()
    hasty = GitAccess(access.cache_directory, LOOPBACK, limits=GitLimits(total_seconds=0.5))
    assert "timed out" in read(site, hasty).stale


@pytest.mark.parametrize("filters", [True, False])
def test_oversized_repository_is_rejected_and_leaves_no_files(
    site: GitServer, access: GitAccess, served: GitRepo, filters: bool
) -> None:
    site.filters = filters
    served.commit({"a/SKILL.md": PDF, "a/noise" if filters else "noise": NOISE})
    limited = GitAccess(access.cache_directory, LOOPBACK, limits=GitLimits(max_bytes=500_000))
    with pytest.raises(TooLarge):
        read(site, limited)
    assert wait_for_git_processes(site)
    assert list_cached_files(access) == []


def test_files_that_unpack_beyond_limit_are_rejected(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    served.commit({"a/SKILL.md": PDF, "a/blank": bytes(600_000)})
    limited = GitAccess(access.cache_directory, LOOPBACK, limits=GitLimits(max_bytes=500_000))
    with pytest.raises(TooLarge):
        read(site, limited)
    assert list_cached_files(access) == []


def test_clone_stays_if_repository_grows_too_large(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    good = read(site, access)
    served.commit({"a/SKILL.md": PDF, "a/noise": NOISE})
    limited = GitAccess(access.cache_directory, LOOPBACK, limits=GitLimits(max_bytes=500_000))
    with pytest.raises(TooLarge):
        read(site, limited)
    site.status = 503
    assert read(site, access).commit == good.commit


def test_endless_tree_is_rejected(site: GitServer, access: GitAccess, served: GitRepo) -> None:
    tree = served.files({"SKILL.md": PDF})
    for _ in range(12):
        tree = served.tree([(FOLDER, tree, str(number)) for number in range(10)])
    served.commit_tree(tree)
    with pytest.raises(TooLarge):
        read(site, access)
    assert wait_for_git_processes(site)


def test_interrupt_kills_git_and_leaves_no_files(site: GitServer, access: GitAccess) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(site, GitAccess(access.cache_directory, LOOPBACK, progress=interrupt))
    assert wait_for_git_processes(site)
    assert list_cached_files(access) == []


KILLED = """
import json, sys
from skillhall._internal.net.addresses import AddressPolicy
from skillhall._internal.sources.git.remote import GitAccess
from skillhall._internal.sources.git.source import read_git
from skillhall._internal.sources.git.git_ref import GitRef
url, cache = json.loads(sys.argv[1])
read_git(GitRef(url), GitAccess(cache, AddressPolicy.from_cidrs("127.0.0.0/8")), source_text="x")
"""


@contextmanager
def killed_reader(site: GitServer, access: GitAccess, path: str = "") -> Iterator[None]:
    """A reader that is killed with SIGKILL at the end of the block; its git runs on."""
    given = json.dumps([site.url("acme/skills.git"), access.cache_directory])
    variables = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    reader = subprocess.Popen([sys.executable, "-c", KILLED, given], env=variables)
    try:
        yield
    finally:
        reader.send_signal(signal.SIGKILL)
        reader.wait(120)


@pytest.mark.parametrize("is_known", [False, True])
def test_killed_reader_does_not_block_next(
    site: GitServer, access: GitAccess, is_known: bool
) -> None:
    if is_known:
        read(site, access)
    site.release_event = threading.Event()
    with killed_reader(site, access):
        assert site.is_waiting.wait(120)
    hasty = GitAccess(access.cache_directory, LOOPBACK, limits=GitLimits(total_seconds=0.5))
    with pytest.raises(SourceTimedOut, match="timed out waiting for another process"):
        read(site, hasty)
    site.release_event.set()
    found = read(site, access)
    assert (len(found.bundles), found.stale) == (2, "")


# It locks the repository whenever there is one, as a fetch does for a moment.
LOCKING = """#!/bin/sh
for word; do
    case $word in
    --git-dir=*) lock=${word#*=}/shallow.lock ;;
    fetch) : > %(folder)s/locked
        while test ! -e %(folder)s/end; do (: > "$lock"); sleep 0.01; done 2> /dev/null
        rm -f "$lock"
        exit 1 ;;
    esac
done
exec %(git)s "$@"
"""


def test_the_git_of_a_killed_reader_does_not_lock_out_the_next(
    site: GitServer, access: GitAccess, tmp_path: Path
) -> None:
    folder = tmp_path / "locking"
    folder.mkdir()
    git = shutil.which("git")
    (folder / "git").write_text(LOCKING % {"folder": folder, "git": git}, encoding="utf-8")
    (folder / "git").chmod(0o755)
    moment = threading.Event()
    with killed_reader(site, access, str(folder)):
        assert any((folder / "locked").exists() or moment.wait(0.02) for _ in range(6000))
    end = threading.Timer(1, (folder / "end").touch)
    end.start()
    try:
        assert len(read(site, access).bundles) == 2
        assert (folder / "end").exists()
    finally:
        end.join()


def test_concurrent_readers_fetch_once(site: GitServer, access: GitAccess) -> None:
    site.release_event = threading.Event()
    with ThreadPoolExecutor(8) as pool:
        readings = [pool.submit(read, site, access) for _ in range(8)]
        assert site.is_waiting.wait(120)
        site.release_event.set()
        result = [reading.result(60) for reading in readings]
    assert len({snapshot.commit for snapshot in result}) == 1
    assert all(len(snapshot.bundles) == 2 for snapshot in result)
    assert len(site.requests) == REQUESTS_PER_READ


def test_errors_have_no_local_paths_and_no_token(
    site: GitServer, access: GitAccess, served: GitRepo
) -> None:
    (served.folder / "objects").rename(served.folder / "lost")  # makes git fail with a message
    site.token = TOKEN
    for variant in (access, with_token(access, site), with_token(access, site, "wrong")):
        with pytest.raises(SkillhallError) as caught:
            read(site, variant)
        output = f"{caught.value} {caught.value.hint}"
        assert access.cache_directory not in output
        assert TOKEN not in output


# Git versions


@pytest.mark.parametrize("version", ["", "2.30.2", "2.38.9", "nonsense"])
def test_missing_or_old_git_raises(
    site: GitServer,
    access: GitAccess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    if version:
        (folder / "git").write_text(f"#!/bin/sh\necho git version {version}\n", encoding="utf-8")
        (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    assert not is_git_available()
    with pytest.raises(SourceUnavailable, match=r"git 2\.39 or newer") as caught:
        read(site, access)
    assert "install or update git" in caught.value.hint
    assert site.requests == []
    assert list_cached_files(access) == []


# ssh


def test_ssh_gets_address_and_does_not_prompt(
    site: GitServer, access: GitAccess, recording_git: Path
) -> None:
    prefix = f"{recording_git}/ssh"
    script = f'#!/bin/sh\necho "$@" > {prefix}-arguments\nenv > {prefix}-variables\n'
    script += f'for last; do :; done\ncd {site.root} && exec sh -c "$last"\n'
    (recording_git / "ssh").write_text(script, encoding="utf-8")
    (recording_git / "ssh").chmod(0o755)
    agent = GitAccess(
        access.cache_directory,
        LOOPBACK,
        {"127.0.0.1": Secret(TOKEN)},
        ssh_agent_socket="/run/agent",
    )
    skills = read_git(GitRef("git@127.0.0.1:acme/skills.git", "pdf"), agent, source_text="x")
    assert contents(skills.bundles[0]) == {"SKILL.md": PDF}
    arguments = (recording_git / "ssh-arguments").read_text(encoding="utf-8").split()
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "HostName=127.0.0.1"):
        assert f"-o{option}" in arguments
    assert "-oHostKeyAlias=127.0.0.1" in arguments
    variables = (recording_git / "ssh-variables").read_text(encoding="utf-8")
    assert "SSH_AUTH_SOCK=/run/agent" in variables
    assert "Basic" not in variables
