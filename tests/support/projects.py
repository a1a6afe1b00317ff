"""A project with a source beside it, for the verbs on installed skills."""

import os
from dataclasses import dataclass
from pathlib import Path

from skillhall._internal.installer.install import install
from skillhall._internal.installer.preflight import AddReport
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.targets import resolve_targets
from skillhall._internal.settings import Settings
from skillhall._internal.sources.opener import open_source
from tests.support.skills import make_skill_md

LOOPBACK = ("127.0.0.0/8",)


def make_project_settings(folder: Path) -> Settings:
    """Settings that keep everything below `folder`; the project is `folder/project`."""
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
    """One project, one home, and a folder of skills to add from."""

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
        """A file in the source; a SKILL.md is made if only its folder is named."""
        file = self.source / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755 if executable else 0o644)
        return file

    def skill(self, name: str, body: str = "Do it.\n") -> Path:
        """A skill in the source."""
        data = make_skill_md(name=name, body=body)
        return self.write(f"{name}/SKILL.md", data.decode())

    def add(
        self, *agents: str, copy: bool = False, overwrite: bool = False, user: bool = False
    ) -> AddReport:
        """All skills of the source, added for some agents."""
        shelf = self.user_project if user else self.installer_project
        opened = open_source(str(self.source), self.settings)
        placement = resolve_targets(shelf, agents, copy=copy)
        return install(shelf, opened, opened.bundles, placement, overwrite=overwrite)

    def installed_path(self, path: str) -> Path:
        return self.project / path


def make_project(folder: Path) -> ProjectFixture:
    return ProjectFixture(folder, make_project_settings(folder))


def read_tree(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Every file below a folder, with its bytes and whether it can be run."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
