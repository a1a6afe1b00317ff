"""Work on skills that is broken off at every step; each leaves a whole skill, old or new."""

from pathlib import Path
from shutil import rmtree
from typing import TypeAlias

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import read_lock
from skillhall._internal.installer.preflight import add_to_folder
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
    """A skill that is there in its old version, and a source with the new one."""

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
        left = read_tree(bench.installed_path(PDF)) if bench.installed_path(PDF).is_dir() else {}
        assert left in self.allowed_states(bench), sorted(left)
        self._check_next_run(bench)

    def _recover(self, bench: ProjectFixture) -> None:
        if (place := bench.installed_path(".agents/skills")).is_dir():
            with WritableFolder(str(place)) as target:
                target.recover()

    def allowed_states(self, bench: ProjectFixture) -> list[Tree]:
        """Every whole version."""
        old = self._write(bench, _OLD) if self.is_installed else {}
        return [old, self._write(bench, _NEW)]

    def _check_next_run(self, bench: ProjectFixture) -> None:
        """The next work finds nothing in its way, and leaves nothing of the old one behind."""
        bench.add("universal", "claude-code", overwrite=True)
        assert read_tree(bench.installed_path(PDF)) == read_tree(bench.source / "pdf")
        assert PDF in read_lock(str(bench.project)).entries
        assert bench.installed_path(LINK).is_symlink()
        assert list(bench.project.rglob(".skillhall-*")) == []


class Add(_InstallCase):
    """A skill that was not there."""

    is_installed = False

    def run(self, folder: Path) -> None:
        make_project(folder).add("universal", "claude-code")


class Replace(_InstallCase):
    """A skill over its old version."""

    def run(self, folder: Path) -> None:
        make_project(folder).add("universal", "claude-code", overwrite=True)


class Update(_InstallCase):
    """A skill brought up to date."""

    def run(self, folder: Path) -> None:
        update(make_project(folder).installer_project)


class Remove(_InstallCase):
    """A skill that is removed: it is there whole, or not at all."""

    def run(self, folder: Path) -> None:
        remove(make_project(folder).installer_project, ["pdf"])

    def allowed_states(self, bench: ProjectFixture) -> list[Tree]:
        return [*super().allowed_states(bench), {}]


class Rollback(_InstallCase):
    """An update that is taken back."""

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        update(make_project(folder).installer_project)

    def run(self, folder: Path) -> None:
        roll_back(make_project(folder).installer_project, "pdf")


class AddWithoutLock(_InstallCase):
    """A skill over its old version, in a folder without a lock."""

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
    """Skills of a run directory, which keeps no lock."""

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
    """A skill that was not there."""

    is_installed = False

    def run(self, folder: Path) -> None:
        self._import(make_project(folder))


class LocalReplace(_LocalCase):
    """A skill over its old version."""

    def run(self, folder: Path) -> None:
        self._import(make_project(folder))


class LocalDelete(_LocalCase):
    """A skill that is deleted."""

    def run(self, folder: Path) -> None:
        FolderStore(str(folder / "project")).delete("pdf")

    def allowed_states(self, bench: ProjectFixture) -> list[Tree]:
        return [*super().allowed_states(bench), {}]


class InstallSystemSkills:
    """The skills that come with the product: each is there whole, or not at all."""

    def prepare(self, folder: Path) -> None:
        (folder / "whole").mkdir()
        FolderStore(str(folder / "whole")).install_system_skills()

    def run(self, folder: Path) -> None:
        (folder / "run").mkdir(exist_ok=True)
        FolderStore(str(folder / "run")).install_system_skills()

    def check(self, folder: Path) -> None:
        whole, run = (folder / name / ".agents/sys.skills" for name in ("whole", "run"))
        for skill in whole.iterdir():
            assert read_tree(run / skill.name) in ({}, read_tree(skill))
        self.run(folder)
        assert read_tree(run) == read_tree(whole)
