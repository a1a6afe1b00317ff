"""Operations that are interrupted at every step and must leave a complete skill."""

from pathlib import Path
from shutil import rmtree
from typing import TypeAlias

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.install import add_to_folder
from skillhall._internal.installer.lock import read_lock
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import roll_back
from skillhall._internal.installer.update import update
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.sources.opener import open_source
from tests.support.projects import ProjectFixture, make_project, read_tree

Tree: TypeAlias = dict[str, tuple[bytes, bool]]

_OLD, _NEW = "old\n", "new\n"
PDF = ".agents/skills/pdf"
LINK = ".claude/skills/pdf"


class _InstallCase:
    """Old version installed, new version in the source."""

    is_installed = True

    def prepare(self, folder: Path) -> None:
        bench = make_project(folder)
        self._write(bench, _OLD)
        if self.is_installed:
            bench.add("universal", "claude-code")
        self._write(bench, _NEW)

    def _write(self, bench: ProjectFixture, text: str) -> Tree:
        rmtree(bench.source, ignore_errors=True)
        bench.skill("pdf", text)
        bench.write("pdf/scripts/run.sh", f"#!/bin/sh\n# {text}", executable=True)
        bench.write(f"pdf/{text.strip()}.md", text)
        return read_tree(bench.source / "pdf")

    def run(self, folder: Path) -> None:
        raise NotImplementedError

    def check(self, folder: Path) -> None:
        bench = make_project(folder)
        self._recover(bench)
        files = read_tree(bench.installed_path(PDF)) if bench.installed_path(PDF).is_dir() else {}
        assert files in self.allowed_states(bench), sorted(files)
        self._check_next_run(bench)

    def _recover(self, bench: ProjectFixture) -> None:
        if (folder := bench.installed_path(".agents/skills")).is_dir():
            with WritableFolder(str(folder)) as target:
                target.recover()

    def allowed_states(self, bench: ProjectFixture) -> list[Tree]:
        """Return every complete version."""
        old = self._write(bench, _OLD) if self.is_installed else {}
        return [old, self._write(bench, _NEW)]

    def _check_next_run(self, bench: ProjectFixture) -> None:
        """Check that the next operation succeeds and leaves no old files behind."""
        bench.add("universal", "claude-code", overwrite=True)
        assert read_tree(bench.installed_path(PDF)) == read_tree(bench.source / "pdf")
        assert PDF in read_lock(str(bench.project)).entries
        assert bench.installed_path(LINK).is_symlink()
        assert list(bench.project.rglob(".skillhall-*")) == []


class Add(_InstallCase):
    """Install a new skill."""

    is_installed = False

    def run(self, folder: Path) -> None:
        make_project(folder).add("universal", "claude-code")


class Replace(_InstallCase):
    """Install over the old version."""

    def run(self, folder: Path) -> None:
        make_project(folder).add("universal", "claude-code", overwrite=True)


class Update(_InstallCase):
    """Update a skill."""

    def run(self, folder: Path) -> None:
        update(make_project(folder).installer_project)


class Remove(_InstallCase):
    """Remove a skill: it stays complete, or is gone."""

    def run(self, folder: Path) -> None:
        remove(make_project(folder).installer_project, ["pdf"])

    def allowed_states(self, bench: ProjectFixture) -> list[Tree]:
        return [*super().allowed_states(bench), {}]


class Rollback(_InstallCase):
    """Roll back an update."""

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        update(make_project(folder).installer_project)

    def run(self, folder: Path) -> None:
        roll_back(make_project(folder).installer_project, "pdf")


class AddWithoutLock(_InstallCase):
    """Install over the old version, in a folder without a lock file."""

    def prepare(self, folder: Path) -> None:
        bench = make_project(folder)
        self._write(bench, _OLD)
        self.run(folder)
        self._write(bench, _NEW)

    def run(self, folder: Path) -> None:
        bench = make_project(folder)
        bundles = open_source(str(bench.source), bench.settings).bundles
        add_to_folder(bundles, str(bench.installed_path(".agents/skills")), overwrite=True)

    def _check_next_run(self, bench: ProjectFixture) -> None:
        self.run(bench.folder)
        assert read_tree(bench.installed_path(PDF)) == read_tree(bench.source / "pdf")
        assert list(bench.project.rglob(".skillhall-*")) == []


class _LocalCase(_InstallCase):
    """Skill store, which has no lock file."""

    def prepare(self, folder: Path) -> None:
        bench = make_project(folder)
        self._write(bench, _OLD)
        if self.is_installed:
            self._import(bench)
        self._write(bench, _NEW)

    def _import(self, bench: ProjectFixture) -> None:
        bundles = open_source(str(bench.source), bench.settings).bundles
        FolderStore(str(bench.project)).import_(bundles, replace=True)

    def _recover(self, bench: ProjectFixture) -> None:
        FolderStore(str(bench.project)).sweep()
        assert list(bench.project.rglob(".skillhall-*")) == []

    def _check_next_run(self, bench: ProjectFixture) -> None:
        self._import(bench)
        assert read_tree(bench.installed_path(PDF)) == read_tree(bench.source / "pdf")


class LocalImport(_LocalCase):
    """Import a new skill."""

    is_installed = False

    def run(self, folder: Path) -> None:
        self._import(make_project(folder))


class LocalReplace(_LocalCase):
    """Import over the old version."""

    def run(self, folder: Path) -> None:
        self._import(make_project(folder))


class LocalDelete(_LocalCase):
    """Delete a skill."""

    def run(self, folder: Path) -> None:
        FolderStore(str(folder / "project")).delete("pdf")

    def allowed_states(self, bench: ProjectFixture) -> list[Tree]:
        return [*super().allowed_states(bench), {}]


class InstallSystemSkills:
    """Install the system skills: each is complete or missing."""

    def prepare(self, folder: Path) -> None:
        (folder / "complete").mkdir()
        FolderStore(str(folder / "complete")).install_system_skills()

    def run(self, folder: Path) -> None:
        (folder / "run").mkdir(exist_ok=True)
        FolderStore(str(folder / "run")).install_system_skills()

    def check(self, folder: Path) -> None:
        complete, run = (folder / name / ".agents/sys.skills" for name in ("complete", "run"))
        for skill in complete.iterdir():
            assert read_tree(run / skill.name) in ({}, read_tree(skill))
        self.run(folder)
        assert read_tree(run) == read_tree(complete)
