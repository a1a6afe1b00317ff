"""`Installer`: the public class that installs, updates and removes skills."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.installer.agent_folders import resolve_targets
from skillhall._internal.installer.install import install, select_bundles
from skillhall._internal.installer.locked_install import install_locked
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import roll_back
from skillhall._internal.installer.update import find_outdated, update
from skillhall._internal.installer.verify import verify
from skillhall._internal.settings import Settings
from skillhall._internal.sources.opener import open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillhall._internal.installer.install import AddReport
    from skillhall._internal.installer.locked_install import LockedInstallResult
    from skillhall._internal.installer.rollback import Change
    from skillhall._internal.installer.update import ConflictChoice, UpdateResult
    from skillhall._internal.installer.verify import VerifyResult

    StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a download, for `Installer.project(progress=…)`.

    ```python
    from skillhall import Installer
    from skillhall.types import Progress


    def show(progress: Progress) -> None:
        print(progress.step, progress.completed, progress.total)


    installer = Installer.project(progress=show)
    ```
    """

    step: str
    completed: int
    """Number of bytes or files, depending on the step."""
    total: int
    """Number of bytes or files; 0 if it is not known."""


class Installer:
    """Installs skills into a project or home folder and records them in a lock file.

    Its methods do the same as `skillhall add`, `update`, `remove` and the other commands. Every
    change to a skill is written completely or not at all, and `rollback` undoes it.

    ```python
    from skillhall import Installer

    installer = Installer.project()
    report = installer.add("acme/skills", skills=["pdf-tools"], agents=["claude-code"])
    print([skill.name for skill in report.added], installer.installed)
    ```
    """

    def __init__(
        self, project: Project, progress: Callable[[Progress], None] | None = None
    ) -> None:
        """Private: use `Installer.project` or `Installer.user`."""
        self._project = project
        self._progress: Callable[[str, int, int], None] | None = None
        if progress is not None:
            self._progress = lambda step, completed, total: progress(
                Progress(step=step, completed=completed, total=total)
            )

    @classmethod
    def project(
        cls, path: StrPath = ".", *, progress: Callable[[Progress], None] | None = None
    ) -> Installer:
        """Return the installer of the project at `path`. Downloads report to `progress`."""
        settings = Settings.read()
        root = os.path.abspath(os.path.join(settings.working_directory, path))  # noqa: PTH100, PTH118 - `..` is resolved without following links
        return cls(Project.from_settings(settings._replace(working_directory=root)), progress)

    @classmethod
    def user(cls, *, progress: Callable[[Progress], None] | None = None) -> Installer:
        """Return the installer of the user's home folder, whose skills all projects share."""
        return cls(Project.from_settings(Settings.read(), user=True), progress)

    @property
    def installed(self) -> tuple[str, ...]:
        """The names of the skills in the lock file, sorted. Raises: LockInvalid."""
        return tuple(sorted(entry.name for entry in self._project.read_lock().entries.values()))

    def add(  # noqa: PLR0913 - one parameter for each option of the command
        self,
        source: StrPath,
        *,
        skills: Iterable[str] = (),
        agents: Iterable[str] = (),
        overwrite: bool = False,
        dry_run: bool = False,
        unsigned: bool = False,
    ) -> AddReport:
        """Install the skills of a source, by default all of them.

        A path object is always a local folder or archive. A string means the same as on the
        command line; an existing folder takes precedence over a repository. Skills that already
        exist are skipped unless you set `overwrite`. All skills are checked before the first is
        written. A skill with a broken signature is rejected unless you set `unsigned`.
        Raises: SourceError, SkillNotFound, UnknownAgent, InstallError.
        """
        text = source if isinstance(source, str) else os.path.abspath(source)  # noqa: PTH100 - as above
        opened = open_source(text, self._project.settings, self._progress)
        return install(
            self._project,
            opened,
            select_bundles(opened.bundles, skills),
            resolve_targets(self._project, agents),
            overwrite=overwrite,
            dry_run=dry_run,
            unsigned=unsigned,
        )

    def update(
        self, *names: str, conflicts: ConflictChoice | None = None, unsigned: bool = False
    ) -> list[UpdateResult]:
        """Update skills, by default all, and merge local edits.

        A skill with conflicts is not changed, unless `conflicts` says which version wins. If a
        skill cannot be updated, its result contains the error. With `unsigned`, a broken signature
        counts as none.
        Raises: LockNotFound, LockInvalid, SkillNotFound.
        """
        return update(
            self._project, names, conflicts=conflicts, unsigned=unsigned, progress=self._progress
        )

    def outdated(self, *names: str) -> list[UpdateResult]:
        """Compare skills with their sources, by default all, without changing anything.

        If a source cannot be read, the result contains the error.
        Raises: LockNotFound, LockInvalid, SkillNotFound.
        """
        return find_outdated(self._project, names, self._progress)

    def remove(self, *names: str, force: bool = False) -> list[str]:
        """Remove skills from all agents' folders; return the paths of the removed skills.

        Edited skills and those not in the lock file are removed only with `force`.
        Raises: SkillNotFound, NotInstalledError, Edited, LockInvalid.
        """
        return remove(self._project, names, force=force)

    def rollback(self, name: str, *, force: bool = False) -> Change:
        """Undo the last change to a skill and return that change.

        Files that were edited after that change are overwritten only with `force`.
        Raises: NothingToUndo, Edited, UnsavedFilesError.
        """
        return roll_back(self._project, name, force=force)

    def verify(self, *names: str) -> list[VerifyResult]:
        """Compare installed files with the lock file, by default those of all skills.

        Raises: LockNotFound, LockInvalid, SkillNotFound.
        """
        return verify(self._project, names)

    def install(self, *, frozen: bool = False, unsigned: bool = False) -> list[LockedInstallResult]:
        """Install the skills in the lock file that are not installed yet.

        With `frozen`, a skill that was edited or has changed upstream fails. The result of a skill
        that fails contains the error. With `unsigned`, a broken signature counts as none.
        Raises: LockInvalid.
        """
        return install_locked(
            self._project, frozen=frozen, unsigned=unsigned, progress=self._progress
        )
