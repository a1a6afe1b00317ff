"""Work on skills that is broken off at every step; each leaves a whole skill, old or new."""

from pathlib import Path
from shutil import rmtree
from typing import TypeAlias

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import read_lock
from skillhall._internal.installer.preflight import add
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import undo
from skillhall._internal.installer.update import update
from skillhall._internal.skill_store.folder_store import LocalSkills
from skillhall._internal.sources.opener import open_source
from tests.support.projects import Workbench, tree, workbench

Tree: TypeAlias = dict[str, tuple[bytes, bool]]

_OLD, _NEW = "old\n", "new\n"
PDF = ".agents/skills/pdf"
LINK = ".claude/skills/pdf"


class _Case:
    """A skill that is there in its old version, and a source with the new one."""

    is_installed = True

    def prepare(self, folder: Path) -> None:
        bench = workbench(folder)
        self._write(bench, _OLD)
        if self.is_installed:
            bench.add("universal", "claude-code")
        self._write(bench, _NEW)

    def _write(self, bench: Workbench, text: str) -> Tree:
        rmtree(bench.source, ignore_errors=True)
        bench.skill("pdf", text)
        bench.write("pdf/scripts/run.sh", f"#!/bin/sh\n# {text}", executable=True)
        bench.write(f"pdf/{text.strip()}.md", text)
        return tree(bench.source / "pdf")

    def work(self, folder: Path) -> None:
        raise NotImplementedError

    def check(self, folder: Path) -> None:
        bench = workbench(folder)
        self._next_start(bench)
        left = tree(bench.installed(PDF)) if bench.installed(PDF).is_dir() else {}
        assert left in self.allowed(bench), sorted(left)
        self._clears_up(bench)

    def _next_start(self, bench: Workbench) -> None:
        if (place := bench.installed(".agents/skills")).is_dir():
            with WritableFolder(str(place)) as target:
                target.recover()

    def allowed(self, bench: Workbench) -> list[Tree]:
        """Every whole version."""
        old = self._write(bench, _OLD) if self.is_installed else {}
        return [old, self._write(bench, _NEW)]

    def _clears_up(self, bench: Workbench) -> None:
        """The next work finds nothing in its way, and leaves nothing of the old one behind."""
        bench.add("universal", "claude-code", overwrite=True)
        assert tree(bench.installed(PDF)) == tree(bench.source / "pdf")
        assert PDF in read_lock(str(bench.project)).entries
        assert bench.installed(LINK).is_symlink()
        assert list(bench.project.rglob(".skillhall-*")) == []


class Add(_Case):
    """A skill that was not there."""

    is_installed = False

    def work(self, folder: Path) -> None:
        workbench(folder).add("universal", "claude-code")


class Replace(_Case):
    """A skill over its old version."""

    def work(self, folder: Path) -> None:
        workbench(folder).add("universal", "claude-code", overwrite=True)


class Update(_Case):
    """A skill brought up to date."""

    def work(self, folder: Path) -> None:
        update(workbench(folder).shelf)


class Remove(_Case):
    """A skill that is removed: it is there whole, or not at all."""

    def work(self, folder: Path) -> None:
        remove(workbench(folder).shelf, ["pdf"])

    def allowed(self, bench: Workbench) -> list[Tree]:
        return [*super().allowed(bench), {}]


class Rollback(_Case):
    """An update that is taken back."""

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        update(workbench(folder).shelf)

    def work(self, folder: Path) -> None:
        undo(workbench(folder).shelf, "pdf")


class Plain(_Case):
    """A skill over its old version, in a folder without a lock."""

    def prepare(self, folder: Path) -> None:
        bench = workbench(folder)
        self._write(bench, _OLD)
        self.work(folder)
        self._write(bench, _NEW)

    def work(self, folder: Path) -> None:
        bench = workbench(folder)
        bundles = open_source(str(bench.source), bench.settings).bundles
        add(bundles, str(bench.installed(".agents/skills")), overwrite=True)

    def _clears_up(self, bench: Workbench) -> None:
        self.work(bench.folder)
        assert tree(bench.installed(PDF)) == tree(bench.source / "pdf")
        assert list(bench.project.rglob(".skillhall-*")) == []


class _Local(_Case):
    """Skills of a run directory, which keeps no lock."""

    def prepare(self, folder: Path) -> None:
        bench = workbench(folder)
        self._write(bench, _OLD)
        if self.is_installed:
            self._import(bench)
        self._write(bench, _NEW)

    def _import(self, bench: Workbench) -> None:
        bundles = open_source(str(bench.source), bench.settings).bundles
        LocalSkills(str(bench.project)).import_(bundles, replace=True)

    def _next_start(self, bench: Workbench) -> None:
        LocalSkills(str(bench.project)).sweep()
        assert list(bench.project.rglob(".skillhall-*")) == []

    def _clears_up(self, bench: Workbench) -> None:
        self._import(bench)
        assert tree(bench.installed(PDF)) == tree(bench.source / "pdf")


class LocalImport(_Local):
    """A skill that was not there."""

    is_installed = False

    def work(self, folder: Path) -> None:
        self._import(workbench(folder))


class LocalReplace(_Local):
    """A skill over its old version."""

    def work(self, folder: Path) -> None:
        self._import(workbench(folder))


class LocalDelete(_Local):
    """A skill that is deleted."""

    def work(self, folder: Path) -> None:
        LocalSkills(str(folder / "project")).delete("pdf")

    def allowed(self, bench: Workbench) -> list[Tree]:
        return [*super().allowed(bench), {}]


class Setup:
    """The skills that come with the product: each is there whole, or not at all."""

    def prepare(self, folder: Path) -> None:
        (folder / "whole").mkdir()
        LocalSkills(str(folder / "whole")).install_system_skills()

    def work(self, folder: Path) -> None:
        (folder / "run").mkdir(exist_ok=True)
        LocalSkills(str(folder / "run")).install_system_skills()

    def check(self, folder: Path) -> None:
        whole, run = (folder / name / ".agents/sys.skills" for name in ("whole", "run"))
        for skill in whole.iterdir():
            assert tree(run / skill.name) in ({}, tree(skill))
        self.work(folder)
        assert tree(run) == tree(whole)
