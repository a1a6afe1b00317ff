"""Repository that is one skill: added, updated and restored, with and without git."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from skillhall._internal.installer.agent_folders import resolve_targets
from skillhall._internal.installer.install import install
from skillhall._internal.installer.locked_install import install_locked
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.update import UpdateStatus, find_outdated, update
from skillhall._internal.sources.opener import open_source
from skillhall.errors import SkillNotFound
from tests.support.git_server import GitRepo, run_git_server
from tests.support.github_api_server import (
    GitHubApiServer,
    load_git_repository,
    run_github_api_server,
)
from tests.support.projects import make_project_settings, read_tree
from tests.support.skills import make_skill_md

PDF = ".agents/skills/pdf-tools"  # named by its frontmatter

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@dataclass(frozen=True)
class Hosted:
    """The repository acme/repo on a host, and a project that reads it in one of two ways."""

    repo: GitRepo
    github: GitHubApiServer
    project: Project

    def commit(self, files: dict[str, bytes]) -> None:
        self.repo.commit(files)
        self.github.repositories["acme/repo"] = load_git_repository(self.repo.folder, "acme/repo")

    def add(self) -> None:
        opened = open_source("acme/repo", self.project.settings)
        install(self.project, opened, opened.bundles, resolve_targets(self.project, ()))

    def installed(self, path: str) -> Path:
        return Path(self.project.root) / path


@pytest.fixture(params=[True, False], ids=["git", "GitHub"])
def hosted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hosted]:
    repo = GitRepo(tmp_path / "served/acme/repo.git")
    with run_git_server(tmp_path / "served") as git, run_github_api_server() as github:
        settings = make_project_settings(tmp_path)._replace(
            use_git=request.param, github_url=git.url("").rstrip("/"), github_api_url=github.api_url
        )
        made = Hosted(repo, github, Project.from_settings(settings))
        made.commit({"SKILL.md": make_skill_md("pdf-tools"), "a/b.md": b"one"})
        yield made


def test_root_skill_is_named_by_frontmatter_and_locked(hosted: Hosted) -> None:
    hosted.add()
    assert sorted(read_tree(hosted.installed(PDF))) == ["SKILL.md", "a/b.md"]
    entry = hosted.project.read_lock().entries[PDF]
    assert (entry.source, entry.path) == ("acme/repo", "")
    noted = json.loads(hosted.installed("skills-lock.json").read_bytes())["skills"]["pdf-tools"]
    assert (noted["source"], noted["skillPath"]) == ("acme/repo", "SKILL.md")


def test_root_skill_is_updated(hosted: Hosted) -> None:
    hosted.add()
    assert [item.status for item in find_outdated(hosted.project)] == [UpdateStatus.CURRENT]
    hosted.commit({"SKILL.md": make_skill_md("pdf-tools"), "a/b.md": b"two"})
    assert [item.status for item in update(hosted.project)] == [UpdateStatus.UPDATED]
    assert hosted.installed(f"{PDF}/a/b.md").read_bytes() == b"two"


@pytest.mark.parametrize("lost", ["", "skillhall-lock.json"])
def test_root_skill_is_restored_from_either_lock(hosted: Hosted, lost: str) -> None:
    hosted.add()
    shutil.rmtree(hosted.installed(PDF))
    if lost:
        hosted.installed(lost).unlink()
    assert [item.status for item in install_locked(hosted.project, frozen=True)] == ["installed"]
    assert sorted(read_tree(hosted.installed(PDF))) == ["SKILL.md", "a/b.md"]


def test_moved_root_skill_is_named_in_error(hosted: Hosted) -> None:
    hosted.add()
    hosted.commit({"skills/pdf-tools/SKILL.md": make_skill_md("pdf-tools")})
    [result] = find_outdated(hosted.project)
    assert isinstance(result.error, SkillNotFound)
    assert result.error.name == "pdf-tools"
