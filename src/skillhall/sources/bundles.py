"""One folder's files as a bundle: listed through handles, read on demand, under limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from skillhall.errors import SkillFileNotFound, UnsafePath
from skillhall.policy.scanning import LITTER
from skillhall.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall.skill.finding import Code, Finding
from skillhall.sources.candidate import reason
from skillhall.sources.safety import Folder, Kind, Place, opened_place, read_beneath

if TYPE_CHECKING:
    import os

    from skillhall.policy.scanning import ScanPolicy

MAX_FILES = 2000  # in one skill
MAX_FILE = 10 * 1024 * 1024  # bytes in one file
MAX_TOTAL = 100 * 1024 * 1024  # bytes in all files of a skill
MAX_DEPTH = 32  # folders inside a skill
_EXECUTABLE = 0o100


def open_bundle(place: Place, policy: ScanPolicy) -> Bundle:
    """The files of the folder at `place`, in path order.

    Raises: SkillFileNotFound if there is no such folder.
    """
    listing = _Listing(place, policy)
    try:
        with opened_place(place) as folder:
            listing.add(folder, "", 0)
    except OSError:
        raise SkillFileNotFound(place.name) from None
    files = {file.path.text: file for file in sorted(listing.files, key=lambda f: f.path)}
    return Bundle(place.path, files, tuple(listing.findings))


def open_flat(place: Place, name: str) -> Bundle:
    """The bundle of a single file in the folder at `place`. Raises: SkillFileNotFound."""
    relative = RelativePath.parse(name)
    try:
        with opened_place(place) as folder:
            stat = folder.peek(name)
    except OSError:
        raise SkillFileNotFound(name) from None
    return Bundle(place.path, {name: _skill_file(place, relative, stat)})


def _skill_file(place: Place, path: RelativePath, stat: os.stat_result) -> SkillFile:
    read = partial(read_in_place, place, path)
    return SkillFile(path, stat.st_size, bool(stat.st_mode & _EXECUTABLE), read)


def read_in_place(place: Place, path: RelativePath, at_most: int = MAX_FILE) -> bytes:
    """The bytes of one file. Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
    try:
        with opened_place(place) as folder:
            return read_beneath(folder, path, at_most)
    except OSError:
        raise SkillFileNotFound(path.text) from None


@dataclass(slots=True)
class _Listing:
    place: Place
    policy: ScanPolicy
    files: list[SkillFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    full: bool = False
    total: int = 0  # bytes

    def add(self, folder: Folder, prefix: str, depth: int) -> None:
        """Everything in an open folder."""
        try:
            entries = sorted(folder.entries(), key=lambda entry: entry[0])
        except OSError as error:
            self._leave_out(f"it cannot be read ({reason(error)})", prefix)
            return
        for name, kind in entries:
            path = prefix + name
            if self._passed_over(name) or self._refused(path, kind):
                continue
            if kind is Kind.FOLDER:
                self._add_folder(folder, name, path, depth)
            elif not self.full:
                self._add_file(folder, name, path)

    def _passed_over(self, name: str) -> bool:
        if name in LITTER or name.startswith("._"):
            return True
        return name.startswith(".") and not self.policy.hidden_in_bundles

    def _refused(self, path: str, kind: Kind) -> bool:
        if kind is Kind.LINK:
            self._leave_out("it is a link", path, "copy the file instead")
            return True
        if kind is Kind.OTHER:
            self._leave_out("it is not a regular file", path, "remove it")
            return True
        try:
            RelativePath.parse(path)
        except UnsafePath as error:
            self._leave_out(f"{path!a}: {error.reason}", "", "rename it")
            return True
        return False

    def _add_folder(self, parent: Folder, name: str, path: str, depth: int) -> None:
        if depth >= MAX_DEPTH:
            self._leave_out(f"folders nest deeper than {MAX_DEPTH} levels", path)
            return
        try:
            folder = parent.folder(name)
        except OSError as error:
            self._leave_out(f"it cannot be read ({reason(error)})", path)
            return
        try:
            self.add(folder, f"{path}/", depth + 1)
        finally:
            folder.close()

    def _add_file(self, parent: Folder, name: str, path: str) -> None:
        if len(self.files) >= MAX_FILES:
            self.full = True
            self._note(Code.TOO_MANY_FILES, f"only the first {MAX_FILES} files are used", "")
            return
        try:
            stat = parent.peek(name)
        except OSError as error:
            self._leave_out(f"it cannot be read ({reason(error)})", path)
            return
        if stat.st_size > MAX_FILE:
            self._note(Code.FILE_TOO_LARGE, f"the file has more than {MAX_FILE} bytes", path)
            return
        self.total += stat.st_size
        if self.total > MAX_TOTAL:
            self.full = True
            message = f"the skill's files have more than {MAX_TOTAL} bytes; the rest is left out"
            self._note(Code.FILE_TOO_LARGE, message, path)
            return
        self.files.append(_skill_file(self.place, RelativePath.parse(path), stat))

    def _leave_out(self, why: str, path: str, hint: str = "") -> None:
        self._note(Code.FILE_LEFT_OUT, f"left out of the skill's files: {why}", path, hint)

    def _note(self, code: Code, message: str, path: str, hint: str = "") -> None:
        self.findings.append(Finding(code, message, hint=hint, path=path.rstrip("/")))
