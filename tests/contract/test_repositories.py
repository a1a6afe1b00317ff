"""Contract of repository readers: git and GitHub's API give the same skills."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

from skillhall._internal.net.addresses import AddressPolicy
from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.bundle_reader import MAX_DEPTH, MAX_FILE_SIZE, MAX_FILES
from skillhall._internal.sources.git.git_ref import GitRef
from skillhall._internal.sources.git.remote import GitAccess
from skillhall._internal.sources.git.source import read_git, read_git_level, resolve_commit
from skillhall._internal.sources.github.client import GitHubAccess
from skillhall._internal.sources.github.github_ref import GitHubRef
from skillhall._internal.sources.github.source import (
    read_github,
    read_github_level,
    resolve_github_commit,
)
from skillhall._internal.sources.repo_layout import FileTree, RepositorySkills
from skillhall.errors import NoSkillThere, SkillhallError, SkillNotInSource, SourceNotFound
from tests.support.git_server import EXECUTABLE, FOLDER, LINK, SUBMODULE, GitRepo, run_git_server
from tests.support.github_api_server import load_git_repository, run_github_api_server
from tests.support.skills import make_skill_md

LOOPBACK = AddressPolicy.from_cidrs("127.0.0.0/8")
TEXT = "acme/skills"
SKILL = make_skill_md("pdf")
FINE = {
    "README.md": b"Hello",
    "skills/pdf/SKILL.md": SKILL,
    "skills/pdf/run.sh": b"#!/bin/sh\n",
    "skills/pdf/empty": b"",
    "skills/pdf/again.sh": b"#!/bin/sh\n",
    "skills/pdf/.hidden/\xfcn\xefcode.md": b"\x00\xff\r\n",
}
MANY = {f"skills/pdf/references/{number}.md": b"%d" % number for number in range(12)}
ODD = {
    "skills/pdf/link": b"/etc/passwd",
    "skills/pdf/module": b"1" * 40,
    "skills/pdf/.DS_Store": b"x",
    "skills/pdf/._run.sh": b"x",
    "skills/pdf/.svn/entries": b"x",
    "skills/pdf/.svn/format": b"x",
    "skills/pdf/.hg": b"/elsewhere",
    "skills/pdf/README": b"1",
    "skills/pdf/readme": b"2",
    "skills/pdf/Data/x": b"3",
    "skills/pdf/data/x": b"4",
    "skills/pdf/data/y": b"5",
    "skills/pdf/caf\xe9": b"6",
    "skills/pdf/cafe\u0301": b"7",
    f"skills/pdf/{'d/' * MAX_DEPTH}x": b"deep",
    f"skills/pdf/{'d/' * MAX_DEPTH}d/x": b"too deep",
    "skills/pdf/a\\b": b"x",
    "skills/pdf/c:x": b"x",
    "skills/pdf/con.txt": b"x",
    "skills/pdf/ends ": b"x",
    "skills/pdf/nul/link": b"/etc/passwd",
    "skills/pdf/huge": bytes(MAX_FILE_SIZE + 1),
    "skills/pdf/large": bytes(MAX_FILE_SIZE),
}
MODES = {
    "skills/pdf/run.sh": EXECUTABLE,
    "skills/pdf/link": LINK,
    "skills/pdf/nul/link": LINK,
    "skills/pdf/.hg": LINK,
    "skills/pdf/module": SUBMODULE,
}
BundleSummary: TypeAlias = tuple[str, list[tuple[str, bytes, int, bool]], tuple[Finding, ...]]

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


class Outcome(NamedTuple):
    """Outcome of a read: a commit and its skills, or an error."""

    commit: str
    bundles: list[BundleSummary]
    error: tuple[type[SkillhallError], str] | None = None


def summarize(bundle: Bundle) -> BundleSummary:
    files = [(path, f.read(), f.size, f.executable) for path, f in bundle.files.items()]
    return bundle.folder, files, bundle.findings


def capture(read: Callable[[], RepositorySkills]) -> Outcome:
    try:
        skills = read()
    except SkillhallError as error:
        return Outcome("", [], (type(error), str(error)))
    return Outcome(skills.commit, [summarize(bundle) for bundle in skills.bundles])


def by_git(repo: GitRepo, path: str, cache: Path) -> Outcome:
    with run_git_server(repo.folder.parents[1]) as site:
        reference = GitRef(site.url(f"{TEXT}.git"), path)
        access = GitAccess(str(cache), LOOPBACK)
        return capture(lambda: read_git(reference, access, source_text=TEXT))


def by_github(repo: GitRepo, path: str, cache: Path, *, truncated: bool = False) -> Outcome:
    with run_github_api_server() as site:
        site.repositories[TEXT] = load_git_repository(repo.folder, TEXT)
        site.repositories[TEXT].is_truncated = truncated
        reference = GitHubRef("acme", "skills", path)
        access = GitHubAccess(site.api_url, LOOPBACK, cache_directory=str(cache))
        return capture(lambda: read_github(reference, access, source_text=TEXT))


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    return GitRepo(tmp_path / f"served/{TEXT}.git")


def read_both(repo: GitRepo, cache: Path, path: str = "") -> Outcome:
    """Read with both, and check that the outcomes are equal."""
    result = by_git(repo, path, cache)
    assert by_github(repo, path, cache) == result
    return result


def paths(one: BundleSummary) -> list[str]:
    return [path for path, *_ in one[1]]


def list_findings(one: BundleSummary) -> list[tuple[Code, str]]:
    return [(finding.code, finding.path) for finding in one[2]]


@pytest.mark.parametrize("more", [{}, MANY], ids=["few files", "an archive"])
def test_regular_and_executable_files(
    repo: GitRepo, tmp_path: Path, more: dict[str, bytes]
) -> None:
    commit = repo.commit(FINE | more, MODES)
    result = read_both(repo, tmp_path)
    assert (result.commit, len(result.bundles)) == (commit, 1)
    assert len(result.bundles[0][1]) == 5 + len(more)
    assert result.bundles[0][2] == ()


def test_links_submodules_and_unsafe_names(repo: GitRepo, tmp_path: Path) -> None:
    repo.commit(FINE | MANY | ODD, MODES)
    [pdf] = read_both(repo, tmp_path).bundles
    expected = {"README", "readme", "Data/x", "data/x", "data/y", "caf\xe9", "cafe\u0301", "large"}
    assert expected | {"d/" * MAX_DEPTH + "x"} <= set(paths(pdf))
    assert paths(pdf) == sorted(paths(pdf))
    assert len(paths(pdf)) == 5 + len(MANY) + len(expected) + 1
    assert list_findings(pdf) == [
        (Code.FILE_LEFT_OUT, ".hg"),
        (Code.FILE_LEFT_OUT, ".svn"),
        (Code.FILE_LEFT_OUT, ""),  # a\b
        (Code.FILE_LEFT_OUT, ""),  # c:x
        (Code.CASE_COLLISION, "caf\xe9"),
        (Code.FILE_LEFT_OUT, ""),  # con.txt
        (Code.FILE_LEFT_OUT, "d/" * MAX_DEPTH + "d/x"),
        (Code.CASE_COLLISION, "data"),
        (Code.FILE_LEFT_OUT, ""),  # ends in a space
        (Code.FILE_LEFT_OUT, "link"),
        (Code.FILE_LEFT_OUT, "module"),
        (Code.FILE_LEFT_OUT, ""),  # nul/link
        (Code.CASE_COLLISION, "readme"),
        (Code.FILE_TOO_LARGE, "huge"),
    ]


def test_tree_truncated_by_github(repo: GitRepo, tmp_path: Path) -> None:
    # In an archive, a submodule is an empty folder.
    files = {path: data for path, data in (FINE | MANY | ODD).items() if "module" not in path}
    repo.commit(files, MODES)
    complete = by_git(repo, "", tmp_path)
    assert len(complete.bundles) == 1
    assert by_github(repo, "", tmp_path, truncated=True) == complete


def test_root_skill_with_nested_skill(repo: GitRepo, tmp_path: Path) -> None:
    repo.commit({"SKILL.md": SKILL, "a/b.md": b"b", "skills/inner/SKILL.md": SKILL})
    [top] = read_both(repo, tmp_path).bundles
    assert top[0] == ""
    assert paths(top) == ["SKILL.md", "a/b.md", "skills/inner/SKILL.md"]


def test_several_skills_and_other_files(repo: GitRepo, tmp_path: Path) -> None:
    locations = ["b/c/d", "a", "b", ".claude/skills/x", "node_modules/y", "B", "skills/.curated/z"]
    repo.commit({"x.md": b"x", "n/x.md": b"x"} | {f"{item}/SKILL.md": SKILL for item in locations})
    result = read_both(repo, tmp_path).bundles
    assert [item[0] for item in result] == ["B", "a", "b", "skills/.curated/z"]
    assert paths(result[2]) == ["SKILL.md", "c/d/SKILL.md"]


@pytest.mark.parametrize("folder", ["con", "a:b", "a\\b", "end.", "~", "x/nul", ".svn", "x/.hg"])
def test_skill_in_unsafe_folder(repo: GitRepo, tmp_path: Path, folder: str) -> None:
    repo.commit({f"{folder}/SKILL.md": SKILL, "skills/pdf/SKILL.md": SKILL})
    assert [bundle[0] for bundle in read_both(repo, tmp_path).bundles] == ["skills/pdf"]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("pdf", NoSkillThere),
        ("fdp", SkillNotInSource),
        ("skills/fdp", SkillNotInSource),
        ("", None),
    ],
)
def test_missing_skills_and_refs(
    repo: GitRepo, tmp_path: Path, path: str, error: type[SkillhallError] | None
) -> None:
    files = {"pdf/SKILL.md": b"/etc/passwd", "pdf/x": b"x", "skills/csv/SKILL.md": SKILL}
    repo.commit(files, {"pdf/SKILL.md": LINK})
    result = read_both(repo, tmp_path, path)
    assert (result.error[0] if result.error else None) is error


def test_file_limit(repo: GitRepo, tmp_path: Path) -> None:
    huge, small = repo.blob(bytes(MAX_FILE_SIZE + 1)), repo.blob(b"x")
    names = [f"{number:04}" for number in range(MAX_FILES)]
    many = repo.tree([("100644", huge if name == "0000" else small, name) for name in names])
    skill = repo.tree([("100644", repo.blob(SKILL), "SKILL.md"), (FOLDER, many, "many")])
    repo.commit_tree(repo.tree([(FOLDER, skill, "a")]))
    [bundle] = read_both(repo, tmp_path).bundles
    assert len(bundle[1]) == MAX_FILES - 1
    assert list_findings(bundle) == [(Code.TOO_MANY_FILES, ""), (Code.FILE_TOO_LARGE, "many/0000")]


def read_levels(repo: GitRepo, cache: Path, path: str = "", ref: str = "") -> list[FileTree]:
    """Read a level with git and GitHub, without the time of the read."""
    scan = PROMPT_REPOSITORY.scan_policy
    with run_git_server(repo.folder.parents[1]) as site, run_github_api_server() as github:
        github.repositories[TEXT] = load_git_repository(repo.folder, TEXT)
        by_url = GitRef(site.url(f"{TEXT}.git"), path, ref)
        by_name = GitHubRef("acme", "skills", path, ref)
        git = GitAccess(str(cache), LOOPBACK)
        api = GitHubAccess(github.api_url, LOOPBACK, cache_directory=str(cache))
        trees = [
            read_git_level(by_url, git, scan, source_text=TEXT),
            read_github_level(by_name, api, scan, source_text=TEXT),
        ]
        assert resolve_commit(by_url, git) == resolve_github_commit(by_name, api) == trees[0].commit
    return [tree._replace(checked_at=0.0) for tree in trees]


@pytest.mark.parametrize("path", ["", "skills"])
def test_level_of_prompts_is_equal(repo: GitRepo, tmp_path: Path, path: str) -> None:
    repo.commit({**FINE, **MANY, **ODD, "hello.md": SKILL, "skills/a.md": b"x"}, MODES)
    by_git_itself, by_api = read_levels(repo, tmp_path / "cache", path)
    assert by_api == by_git_itself
    assert by_api.files != {}
    assert by_api.findings


def test_missing_level_gives_the_same_error(repo: GitRepo, tmp_path: Path) -> None:
    repo.commit(FINE, MODES)
    with run_github_api_server() as github, run_git_server(repo.folder.parents[1]) as site:
        github.repositories[TEXT] = load_git_repository(repo.folder, TEXT)
        api = GitHubAccess(github.api_url, LOOPBACK)
        git, scan = GitAccess(str(tmp_path / "cache"), LOOPBACK), PROMPT_REPOSITORY.scan_policy
        for path, ref in (("nowhere", ""), ("", "nowhere")):
            named, placed = GitHubRef("acme", "skills", path, ref), site.url(f"{TEXT}.git")
            with pytest.raises(SourceNotFound):
                read_github_level(named, api, scan, source_text=TEXT)
            with pytest.raises(SourceNotFound):
                read_git_level(GitRef(placed, path, ref), git, scan, source_text=TEXT)
