"""Live catalog: the catalog of roots, updated folder by folder when they change.

Without `watch`, each call compares all folders with the disk. With it, a thread detects changes:
the operating system reports changed folders or, where it cannot, the thread compares all folders
once a second. Either way, only changed folders are read again.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import threading
import time
from bisect import insort
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.background import PollingThread
from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.fingerprint import Fingerprint, read_signature
from skillhall._internal.catalog.head_cache import now_ns
from skillhall._internal.catalog.loader import JudgedScan, build_catalog, scan_folders
from skillhall._internal.fs.folder_watch import FolderWatch, is_on_local_disk
from skillhall._internal.fs.handles import REPLACED_PREFIX
from skillhall._internal.fs.links import read_contained_file
from skillhall._internal.policy.folder_walk_rules import ALWAYS_SKIPPED, STAGING_PREFIX
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES, SKILL_MD, is_skill_md
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.sources.folder.candidate import Signature
    from skillhall._internal.sources.folder.root import Root

POLL_INTERVAL = 1.0  # seconds, where the system does not report changes
HEARTBEAT = 1.0  # seconds between checks of what the system does not report
MIN_SETTLE_TIME = 0.03  # seconds in which further changes are collected
MAX_SETTLE_TIME = 1.0
_SETTLE_FACTOR = 3.0  # settle time / time of the last update
MAX_TRACKED_FILES = 20_000  # per folder of a root; bundles have a lower limit
_THREAD_NAME = "skillhall-folders"
_LOG = logging.getLogger("skillhall.server")


class LoadedCatalog(NamedTuple):
    """A catalog and its revision. The object is the same until a file changes.

    Skills whose files have not changed are the same objects in the next catalog.
    """

    revision: str  # equal for equal skills, on every machine
    catalog: Catalog


class _TrackedFolder(NamedTuple):
    """A folder in a root at the time of its last scan."""

    inode: int
    fingerprint: Fingerprint  # of all its files and folders
    digest: str  # of its SKILL.md and the names of its subfolders
    has_links: bool  # the targets of links are not watched

    def equals(self, other: _TrackedFolder | None) -> bool:
        """Whether no file differs from `other`, as far as file times can tell."""
        return (
            other is not None
            and self.digest == other.digest
            and self.fingerprint.signatures == other.fingerprint.signatures
        )


@dataclass(slots=True)
class _RootState:
    root: Root
    number: int
    is_tracked: bool
    signature: Signature | None = None
    taken_ns: int = 0
    folders: dict[str, _TrackedFolder] = field(default_factory=dict)
    scan: JudgedScan = field(default_factory=lambda: JudgedScan([], [], []))
    linked_names: frozenset[str] = frozenset()  # of the folders with links

    def find_linked_names(self) -> None:
        """Update `linked_names`, so that a check of links need not visit every folder."""
        linked = (name for name, folder in self.folders.items() if folder.has_links)
        self.linked_names = frozenset(linked)

    @property
    def is_stable(self) -> bool:
        """Whether any change since the last check must have changed the signature."""
        if self.signature is None:
            return True
        return max(self.signature[:2]) < self.taken_ns - CLOCK_GRANULARITY

    def replace_folders(
        self, folders: Mapping[str, _TrackedFolder | None], scan: JudgedScan
    ) -> bool:
        """Replace the recorded state of these folders; return whether it changed."""
        if not folders:
            return False
        prefixes = tuple(os.path.join(self.root.path, name) + os.sep for name in folders)
        old = JudgedScan(
            [skill for skill in self.scan.skills if skill.folder in folders],
            [rejected for rejected in self.scan.rejected if rejected.id in folders],
            [j for j in self.scan.findings if f"{j.finding.path}{os.sep}".startswith(prefixes)],
        )
        same_names = {
            name
            for name, folder in folders.items()
            if folder is not None and folder.equals(self.folders.get(name))
        }
        is_same = len(same_names) == len(folders) and old[:3] == scan[:3]
        for name, folder in folders.items():
            if folder is None:
                self.folders.pop(name, None)
            else:
                self.folders[name] = folder
        self.find_linked_names()
        if is_same:
            return False
        removed = {*map(id, (*old.skills, *old.rejected, *old.findings))}
        skills = [skill for skill in self.scan.skills if id(skill) not in removed]
        present = {skill.folder: skill for skill in old.skills if skill.folder in same_names}
        for new in scan.skills:
            skill = present.get(new.folder, new)
            insort(skills, skill if skill == new else new, key=_by_name_and_path)
        rejected = [row for row in self.scan.rejected if id(row) not in removed]
        findings = [row for row in self.scan.findings if id(row) not in removed]
        self.scan = JudgedScan(
            skills,
            sorted([*rejected, *scan.rejected], key=attrgetter("id", "location")),
            sorted([*findings, *scan.findings], key=lambda judged: judged.finding.path),
        )
        return True


def _by_name_and_path(skill: CatalogSkill) -> tuple[str, str, str]:
    return skill.name, skill.folder, skill.file


class LiveCatalog:
    """The current catalog of roots under a profile that scans one level. Thread-safe.

    Only the first `tracked_count` roots are compared with the disk. The owner of the other roots
    calls `mark_changed` after each change.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        profile: Profile,
        tracked_count: int | None = None,
        scan_lock: AbstractContextManager[object] | None = None,
    ) -> None:
        count = len(roots) if tracked_count is None else tracked_count
        self._roots = tuple(roots)
        self._profile = profile
        self._states = [_RootState(root, n, n < count) for n, root in enumerate(roots)]
        self._scan_lock = scan_lock or nullcontext()  # held while folders are read
        self._lock = threading.RLock()
        self._pending_lock = threading.Lock()
        self._pending: set[tuple[int, str]] = set()  # root number and name
        self._is_updating = False  # whether pending folders are being read
        self._needs_full_load = True
        self._loaded: LoadedCatalog | None = None
        self._watch: FolderWatch[tuple[int, str]] | None = None
        self._is_watch_broken = False
        self._is_background = False  # whether a thread notices changes
        self._settle_time = MIN_SETTLE_TIME
        self._thread: PollingThread | None = None
        self._on_change: Callable[[], object] = lambda: None

    def current(self) -> LoadedCatalog:
        """Return the current catalog; the same object while nothing changes."""
        if self._loaded is not None and self._is_background:
            self._compare_roots(strict=False)
            if not self._pending and not self._is_updating and not self._needs_full_load:
                return self._loaded
        return self._refresh(compare=not self._is_background)

    def mark_changed(self, root_number: int, names: Iterable[str]) -> None:
        """Read these folders again on the next call to `current`."""
        with self._pending_lock:
            self._pending.update((root_number, name) for name in names)

    def recheck(self, name: str) -> None:
        """Compare the SKILL.md of one folder with the disk, before it is read."""
        if not self._is_background or "/" in name or os.sep in name or name.startswith("."):
            return
        for state in self._states:
            if not state.is_tracked:
                continue
            tracked, path = state.folders.get(name), os.path.join(state.root.path, name)
            if tracked is None:
                is_changed = os.path.isdir(path)
            else:
                file = os.path.join(path, SKILL_MD)
                is_changed = tracked.fingerprint.signatures.get(file) != read_signature(file)
            if is_changed:
                self.mark_changed(state.number, [name])

    def watch(self, on_change: Callable[[], object]) -> None:
        """Detect changes in a thread, which calls `on_change`. Call `close` when done."""
        self._on_change = on_change
        self._thread = PollingThread(
            self._notice_changes,
            lambda: 0.0 if self._watch is not None else POLL_INTERVAL,
            _THREAD_NAME,
        )

    def close(self) -> None:
        """Stop the thread. Idempotent."""
        if self._thread is not None:
            if self._watch is not None:
                self._watch.interrupt()
            self._thread.close()
            self._thread = None
            self._stop_watching()

    # The thread.

    def _notice_changes(self) -> None:
        before = self._loaded
        try:
            if not self._is_background:
                self._start_watching()
            elif self._watch is None:
                self._refresh(compare=True)
            else:
                self._read_events(self._watch)
            if self._is_watch_broken:
                self._stop_watching()
        except Exception:  # noqa: BLE001 - the thread must survive any error
            _LOG.exception("cannot watch the skills for changes")
            self._stop_watching()
            with self._pending_lock:
                self._needs_full_load = True
        if self._loaded is not before:
            with suppress(Exception):  # the next request gets the error
                self._on_change()

    def _start_watching(self) -> None:
        with self._lock:
            try:
                self._watch = FolderWatch()
            except OSError as error:
                self._report_watch_error(error)
            self._load_all()
            self._is_background = True

    def _report_watch_error(self, error: OSError) -> None:
        """Log the error; the thread stops watching and compares all folders from now on."""
        if self._is_watch_broken:
            return
        self._is_watch_broken = True
        reason = error.strerror or str(error)
        _LOG.info("changes to skills are detected by comparing all folders: %s", reason)

    def _stop_watching(self) -> None:
        with self._lock:
            watch, self._watch = self._watch, None
            if watch is not None:
                watch.close()

    def _read_events(self, watch: FolderWatch[tuple[int, str]]) -> None:
        if self._collect_events(watch, HEARTBEAT):
            time.sleep(self._settle_time)
            self._collect_events(watch, 0.0)
        self._compare_roots(strict=False)
        for state in self._states:
            changed = [
                name
                for name in state.linked_names
                if (folder := state.folders.get(name)) and not folder.fingerprint.is_current()
            ]
            self.mark_changed(state.number, changed)
        started = time.monotonic()
        self._refresh(compare=False)
        cost = _SETTLE_FACTOR * (time.monotonic() - started)
        self._settle_time = min(MAX_SETTLE_TIME, max(MIN_SETTLE_TIME, cost))

    def _collect_events(self, watch: FolderWatch[tuple[int, str]], timeout: float) -> bool:
        """Mark the changed folders; return whether there are any."""
        events = watch.read(timeout)
        if events is None:  # too many at once
            with self._pending_lock:
                self._needs_full_load = True
            return True
        for (number, folder), entry in events:
            name = folder or entry.removeprefix(REPLACED_PREFIX)
            if name and not name.startswith(STAGING_PREFIX):
                self.mark_changed(number, [name])
        return bool(events)

    # Comparing folders with the disk.

    def _compare_roots(self, *, strict: bool) -> None:
        """Mark folders that were added, removed or replaced.

        With `strict`, a root that changed very recently is compared even if its times are the same.
        """
        for state in self._states:
            if state.is_tracked:
                signature = read_signature(state.root.path)
                if signature != state.signature or (strict and not state.is_stable):
                    self._compare_root(state)

    def _compare_root(self, state: _RootState) -> None:
        with self._lock:
            taken, before = now_ns(), state.signature
            signature = read_signature(state.root.path)
            if signature is None or before is None or signature[3] != before[3]:
                # The folder was created, deleted or replaced.
                with self._pending_lock:
                    self._needs_full_load |= signature != before
                return
            listed = self._list_folders(state.root)
            known = {name: folder.inode for name, folder in state.folders.items()}
            state.signature, state.taken_ns = signature, taken
        self.mark_changed(state.number, dict(listed.items() ^ known.items()))

    def _compare_folders(self) -> None:
        """Mark all folders whose files have changed."""
        for state in self._states:
            changed = [
                name
                for name, folder in state.folders.items()
                if not folder.fingerprint.is_current()
            ]
            self.mark_changed(state.number, changed)

    def _list_folders(self, root: Root) -> dict[str, int]:
        """Return the inodes of the folders, and of links to folders, in a root."""
        policy, parent = self._profile.scan_policy, os.path.basename(root.path)
        try:
            with os.scandir(root.path) as entries:
                return {
                    entry.name: entry.inode()
                    for entry in entries
                    if (entry.is_dir(follow_symlinks=False) or entry.is_symlink())
                    and policy.reason_to_skip(entry.name, parent) is None
                }
        except OSError:
            return {}

    def _track(self, state: _RootState, name: str) -> _TrackedFolder | None:
        """Watch a folder and take its fingerprint; `None` if it does not exist."""
        path, taken = os.path.join(state.root.path, name), now_ns()
        try:
            status = os.lstat(path)
        except OSError:
            return None
        walk = _FolderWalk(state.root.path, name, self._watch, (state.number, name))
        walk.visit(path)
        if walk.watch_error is not None:
            self._report_watch_error(walk.watch_error)
        fingerprint = Fingerprint(walk.signatures, taken)
        return _TrackedFolder(status.st_ino, fingerprint, walk.compute_digest(), walk.has_links)

    # Reading folders.

    def _refresh(self, *, compare: bool) -> LoadedCatalog:
        with self._lock:
            if compare and self._loaded is not None:
                self._compare_roots(strict=True)
                self._compare_folders()
            with self._pending_lock:
                # Until they are published, a thread that wrote one of the folders must wait.
                self._is_updating = True
                pending, self._pending = self._pending, set()
                is_full = self._needs_full_load or self._loaded is None
                self._needs_full_load = False
            try:
                if is_full or (pending and not self._update(pending)):
                    self._load_all()
            finally:
                self._is_updating = False
            assert self._loaded is not None  # noqa: S101 - for mypy: one of the two has set it
            return self._loaded

    def _load_all(self) -> None:
        """Read all folders."""
        with self._pending_lock:
            self._pending, self._needs_full_load = set(), False
        for state in self._states:
            if state.is_tracked:
                state.taken_ns = now_ns()
                state.signature = read_signature(state.root.path)
                if self._watch is not None and state.signature is not None:
                    self._watch_root(self._watch, state)
                tracked = {
                    name: self._track(state, name) for name in self._list_folders(state.root)
                }
                state.folders = {name: one for name, one in tracked.items() if one is not None}
                state.find_linked_names()
        with self._scan_lock:
            scans = scan_folders(self._roots, self._profile, [None for _ in self._roots])
        for state, scan in zip(self._states, scans, strict=True):
            state.scan = scan
        self._publish()

    def _watch_root(self, watch: FolderWatch[tuple[int, str]], state: _RootState) -> None:
        if not is_on_local_disk(state.root.path):
            reason = "the file system may be changed by other machines"
            self._report_watch_error(OSError(errno.ENOTSUP, reason))
        try:
            watch.add(state.root.real_path, (state.number, ""))
        except OSError as error:
            self._report_watch_error(error)

    def _update(self, pending: set[tuple[int, str]]) -> bool:
        """Read the pending folders again; return false if all folders must be read."""
        names = [{name for number, name in pending if number == s.number} for s in self._states]
        tracked = [
            {name: self._track(state, name) if state.is_tracked else None for name in some}
            for state, some in zip(self._states, names, strict=True)
        ]
        if any(map(self._needs_complete_scan, self._states, names)):
            return False
        with self._scan_lock:
            scans = scan_folders(self._roots, self._profile, names)
        if any(scan.has_links for scan in scans):
            return False
        is_changed = [
            state.replace_folders(folders, scan)
            for state, folders, scan in zip(self._states, tracked, scans, strict=True)
        ]
        if any(is_changed):
            self._publish()
        return True

    @staticmethod
    def _needs_complete_scan(state: _RootState, names: set[str]) -> bool:
        """Whether these folders may affect findings about other folders."""
        if not names:
            return False
        codes = {judged.finding.code for judged in state.scan.findings}
        if state.scan.has_links or codes & {Code.CASE_COLLISION, Code.BOUND_REACHED}:
            return True
        new = [name for name in names if name not in state.folders]
        if not all(name.isascii() and name.isprintable() for name in new):
            return True
        if not state.is_tracked or not new:
            return False
        present = {name.lower() for name in state.folders}
        return any(name.lower() in present for name in new)

    def _publish(self) -> None:
        catalog = build_catalog(self._roots, self._profile, [state.scan for state in self._states])
        digest = hashlib.sha256()
        for state in self._states:
            rows = [f"{name!a} {folder.digest}" for name, folder in sorted(state.folders.items())]
            digest.update("\n".join((state.root.source, *rows, "")).encode())
        self._loaded = LoadedCatalog(digest.hexdigest(), catalog)


class _FolderWalk:
    """Signatures of all files and folders in one folder of a root."""

    def __init__(
        self,
        root: str,
        name: str,
        watch: FolderWatch[tuple[int, str]] | None,
        key: tuple[int, str],
    ) -> None:
        self.signatures: dict[str, Signature | None] = {}
        self.has_links = False
        self.watch_error: OSError | None = None
        self._root = root
        self._name = name
        self._watch = watch
        self._key = key
        self._subfolders: list[str] = []

    def visit(self, path: str) -> None:
        """Record a folder and everything in it."""
        pending = [path]
        self.has_links = os.path.islink(path)
        while pending and len(self.signatures) < MAX_TRACKED_FILES:
            folder = pending.pop()
            # Watched and recorded before it is listed, so that no later change is missed.
            self._watch_folder(folder)
            self.signatures[folder] = read_signature(folder)
            try:
                with os.scandir(folder) as listed:
                    entries = sorted(listed, key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in ALWAYS_SKIPPED:
                        self._subfolders.append(entry.path)
                        pending.append(entry.path)
                else:
                    self.has_links |= entry.is_symlink()
                    self.signatures[entry.path] = read_signature(entry.path)

    def _watch_folder(self, path: str) -> None:
        if self._watch is None:
            return
        try:
            self._watch.add(path, self._key)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            pass  # removed, a link, or not readable for the scan either
        except OSError as error:
            if error.errno != errno.ELOOP:
                self.watch_error = error

    def compute_digest(self) -> str:
        """Hash the names of the subfolders and the bytes of the SKILL.md."""
        digest = hashlib.sha256()
        start = len(self._root) + 1
        for path in sorted(self._subfolders):
            digest.update(f"{path[start:]!a}\0".encode())
        for path, signature in self.signatures.items():
            parent, _, name = path[start:].replace(os.sep, "/").rpartition("/")
            if parent != self._name or not is_skill_md(name):
                continue
            content = repr(signature).encode()
            with suppress(SkillhallError):
                relative_path = RelativePath.parse(f"{parent}/{name}")
                file = read_contained_file(self._root, relative_path, MAX_SKILL_MD_BYTES)
                content = file.data or content
            digest.update(f"{name!a}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()
