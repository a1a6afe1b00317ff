"""A project and a source of skills, for tests of the installer."""

import os
from dataclasses import dataclass
from pathlib import Path

from skillhall._internal.installer.agent_folders import resolve_targets
from skillhall._internal.installer.install import AddReport, install
from skillhall._internal.installer.project import Project
from skillhall._internal.settings import Settings
from skillhall._internal.sources.opener import open_source
from tests.support.skills import make_skill_md

LOOPBACK = ("127.0.0.0/8",)


def make_project_settings(folder: Path) -> Settings:
    """Create settings with all folders below `folder`, such as `folder/project`."""
    project, home = folder / "project", folder / "home"
    project.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    return Settings(
        str(project),
        str(folder / "cache"),
        data_directory=str(folder / "data"),
        home=str(home),
        allowed_networks=LOOPBACK,
    )


@dataclass(frozen=True)
class ProjectFixture:
    """A project, a home folder, and a source of skills."""

    folder: Path
    settings: Settings

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def source(self) -> Path:
        return self.folder / "source"

    @property
    def installer_project(self) -> Project:
        return Project.from_settings(self.settings)

    @property
    def user_project(self) -> Project:
        return Project.from_settings(self.settings, user=True)

    def write(self, path: str, text: str = "", *, executable: bool = False) -> Path:
        """Write a file of the source."""
        file = self.source / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755 if executable else 0o644)
        return file

    def skill(self, name: str, body: str = "Do it.\n") -> Path:
        """Write a skill of the source."""
        data = make_skill_md(name=name, body=body)
        return self.write(f"{name}/SKILL.md", data.decode())

    def add(
        self, *agents: str, copy: bool = False, overwrite: bool = False, user: bool = False
    ) -> AddReport:
        """Install all skills of the source for some agents."""
        project = self.user_project if user else self.installer_project
        opened = open_source(str(self.source), self.settings)
        targets = resolve_targets(project, agents, copy=copy)
        return install(project, opened, opened.bundles, targets, overwrite=overwrite)

    def installed_path(self, path: str) -> Path:
        return self.project / path


def make_project(folder: Path) -> ProjectFixture:
    return ProjectFixture(folder, make_project_settings(folder))


def read_tree(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Return all files below a folder: content and executable bit, by path."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
