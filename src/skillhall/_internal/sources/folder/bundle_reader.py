"""One folder's files as a bundle: listed through handles, read on demand, under limits."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skillhall._internal.fs.handles import (
    Folder,
    Kind,
    Place,
    kind_of_mode,
    opened_place,
    read_beneath,
)
from skillhall._internal.fs.kubernetes_volumes import leads_into_volume, volume_version
from skillhall._internal.policy.readable_files import is_hidden
from skillhall._internal.policy.scan_rules import LITTER, is_volume_entry
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.candidate import reason, signature_of
from skillhall.errors import SkillFileNotFound, UnsafePath

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from skillhall._internal.policy.scan_rules import ScanPolicy

MAX_FILES = 2000  # in one skill
MAX_FILE = 10 * 1024 * 1024  # bytes in one file
MAX_TOTAL = 100 * 1024 * 1024  # bytes in all files of a skill
MAX_DEPTH = 32  # folders inside a skill
_EXECUTABLE = 0o100
_TRIES = 100  # for a folder that is replaced again and again
_PATIENT_FROM = 5  # tries without a pause
_PAUSE = 0.01  # seconds
_T = TypeVar("_T")


def open_bundle(place: Place, policy: ScanPolicy) -> Bundle:
    """The files of the folder at `place`, in path order.

    Raises: SkillFileNotFound if there is no such folder.
    """
    return use_bundle(place, policy, lambda bundle: bundle)


def use_bundle(place: Place, policy: ScanPolicy, work: Callable[[Bundle], _T]) -> _T:
    """The result of `work` on the files of one version.

    If the folder is replaced in between, `work` is called again with the new files.
    Raises: SkillFileNotFound if there is no such folder, and what `work` raises.
    """
    for attempt in range(_TRIES):
        try:
            with _listed(place, policy) as bundle:
                return work(bundle)
        except _Swapped:
            _wait(attempt)
    raise SkillFileNotFound(place.name)


def _wait(attempt: int) -> None:
    """Give a writer that replaces the folder in a loop time to finish."""
    if attempt >= _PATIENT_FROM:
        time.sleep(_PAUSE)


@contextmanager
def _listed(place: Place, policy: ScanPolicy) -> Iterator[Bundle]:
    """The files there; for as long as it is held, no other folder gets the number of this one.

    Raises: SkillFileNotFound, _Swapped.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(opened_place(place))
            listing = _Listing(place, policy, folder.identity())
            stack.callback(listing.close)
            listing.start(folder)
            # What was swapped away may have lost files while they were listed.
            stack.enter_context(_unchanged(place, listing.version))
        except _Swapped:
            raise
        except OSError:
            raise SkillFileNotFound(place.name) from None
        files = {file.path.text: file for file in sorted(listing.files, key=lambda f: f.path)}
        try:
            yield Bundle(place.path, files, tuple(listing.findings))
        except SkillFileNotFound:
            if _is_current(place, listing.version):
                raise
            raise _Swapped from None


def read_bundle(place: Place, policy: ScanPolicy) -> Bundle:
    """The same with all bytes, of one version.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    return use_bundle(place, policy, in_memory)


def in_memory(bundle: Bundle) -> Bundle:
    """The bundle with the bytes that its files have now. Raises: SkillhallError."""
    files = {path: _taken(file) for path, file in bundle.files.items()}
    return replace(bundle, files=files)


def _taken(file: SkillFile) -> SkillFile:
    data = file.read()
    return replace(file, size=len(data), read=lambda: data)


class _Swapped(OSError):
    """Another folder stands where one was listed."""


class _Version(NamedTuple):
    """What tells one version of a skill's files from the next."""

    identity: tuple[int, int]  # of the folder
    volume: str = ""  # the dated folder of a mounted volume


@contextmanager
def _unchanged(place: Place, version: _Version) -> Iterator[Folder]:
    """The folder that was listed: files of two folders are no skill. Raises: OSError, _Swapped."""
    with opened_place(place) as folder:
        if folder.identity() != version.identity:
            raise _Swapped
        if version.volume and volume_version(folder) != version.volume:
            raise _Swapped
        yield folder


def _is_current(place: Place, version: _Version) -> bool:
    """Whether the files of that version are still the ones at `place`, or none are."""
    try:
        with _unchanged(place, version):
            return True
    except _Swapped:
        return False
    except OSError:
        return True


def open_flat(place: Place, name: str) -> Bundle:
    """The bundle of a single file in the folder at `place`. Raises: SkillFileNotFound."""
    relative = RelativePath.parse(name)
    try:
        with opened_place(place) as folder:
            stat = folder.peek(name)
    except OSError:
        raise SkillFileNotFound(name) from None
    return Bundle(place.path, {name: _skill_file(relative, stat, partial(read_in_place, place))})


def _skill_file(
    path: RelativePath, stat: os.stat_result, read: Callable[[RelativePath], bytes]
) -> SkillFile:
    is_program = bool(stat.st_mode & _EXECUTABLE)
    signature = signature_of(stat)
    return SkillFile(path, stat.st_size, is_program, partial(read, path), signature)


def read_in_place(place: Place, path: RelativePath, at_most: int = MAX_FILE) -> bytes:
    """The bytes of one file; if its folder is replaced in between, of the new one.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    for attempt in range(_TRIES):
        try:
            with opened_place(place) as folder:
                try:
                    return read_beneath(folder, path, at_most)
                except SkillFileNotFound:
                    if _is_current(place, _Version(folder.identity())):
                        raise
        except OSError:
            break
        _wait(attempt)
    raise SkillFileNotFound(path.text) from None


def _read_listed(place: Place, version: _Version, path: RelativePath) -> bytes:
    try:
        with _unchanged(place, version) as folder:
            return read_beneath(folder, path, MAX_FILE)
    except OSError:
        raise SkillFileNotFound(path.text) from None


@dataclass(slots=True)
class _Listing:
    place: Place
    policy: ScanPolicy
    identity: tuple[int, int]
    files: list[SkillFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    full: bool = False
    total: int = 0  # bytes
    volume: Folder | None = None  # where the links of a mounted volume lead
    volume_name: str = ""

    @property
    def version(self) -> _Version:
        """What the files that were listed belong to."""
        return _Version(self.identity, self.volume_name)

    def start(self, folder: Folder) -> None:
        """Everything in the skill's own folder. Raises: OSError."""
        with suppress(OSError):
            self.volume_name = volume_version(folder)
        if self.volume_name:
            try:
                self.volume = folder.folder(self.volume_name)
            except FileNotFoundError:  # the volume was updated in between
                raise _Swapped from None
        self.add(folder, "", 0)

    def close(self) -> None:
        """Give the volume's handle back."""
        if self.volume is not None:
            self.volume.close()

    def add(self, folder: Folder, prefix: str, depth: int) -> None:
        """Everything in an open folder."""
        try:
            entries = sorted(folder.entries(), key=lambda entry: entry[0])
        except OSError as error:
            self._leave_out(f"it cannot be read ({reason(error)})", prefix)
            return
        for name, kind in entries:
            if self._passed_over(name):
                continue
            if kind is Kind.LINK and not depth and self._is_mounted(folder, name):
                self._add_mounted(name)
            else:
                self._add_entry(folder, name, kind, prefix + name, depth)

    def _add_entry(self, folder: Folder, name: str, kind: Kind, path: str, depth: int) -> None:
        if self._refused(path, kind):
            return
        if kind is Kind.FOLDER:
            self._add_folder(folder, name, path, depth)
        elif not self.full:
            self._add_file(folder, name, path)

    def _is_mounted(self, folder: Folder, name: str) -> bool:
        return self.volume is not None and leads_into_volume(folder, name)

    def _add_mounted(self, name: str) -> None:
        """A file or folder of the volume, under the name of the link to it."""
        assert self.volume is not None  # noqa: S101 - as `_is_mounted` found
        try:
            kind = kind_of_mode(self.volume.peek(name).st_mode)
        except OSError as error:
            self._leave_out(f"it cannot be read ({reason(error)})", name)
            return
        self._add_entry(self.volume, name, kind, name, 0)

    def _passed_over(self, name: str) -> bool:
        if name in LITTER or name.startswith("._"):
            return True
        if self.volume is not None and is_volume_entry(name):
            return True  # its files are listed by the links to them
        return is_hidden(name) and not self.policy.hidden_in_bundles

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
        read = partial(_read_listed, self.place, self.version)
        self.files.append(_skill_file(RelativePath.parse(path), stat, read))

    def _leave_out(self, why: str, path: str, hint: str = "") -> None:
        self._note(Code.FILE_LEFT_OUT, f"left out of the skill's files: {why}", path, hint)

    def _note(self, code: Code, message: str, path: str, hint: str = "") -> None:
        self.findings.append(Finding(code, message, hint=hint, path=path.rstrip("/")))
