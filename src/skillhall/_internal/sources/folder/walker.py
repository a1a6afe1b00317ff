"""Folder walker: finds the candidates below a root.

A subfolder is probed for SKILL.md before its entries are listed. Only the head of that file is
read, and not even that if its stat signature is known. Every skipped entry becomes a finding.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from unicodedata import normalize

from skillhall._internal.fs.handles import (
    REPLACED_PREFIX,
    EntryKind,
    Folder,
    FolderHandle,
    mode_to_entry_kind,
    open_folder_at,
    subfolder_at,
)
from skillhall._internal.fs.kubernetes_volumes import (
    is_volume_link,
    open_volume,
)
from skillhall._internal.fs.signatures import pack_signature
from skillhall._internal.policy.folder_walk_rules import (
    INSTALL_FOLDER_NAMES,
    SKILLS_FOLDER,
    EmptyFolderPolicy,
    installed_prefix_length,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import SKILL_MD, is_skill_md
from skillhall._internal.sources.folder.candidate import (
    HEAD_SIZE,
    Candidate,
    RawHead,
    build_broken_candidate,
    format_os_error,
    read_head,
    to_read_finding,
)
from skillhall._internal.sources.folder.link_resolver import (
    LINK_NOT_CHECKED,
    LINK_SKIPPED,
    LinkResolver,
)
from skillhall.errors import NotAFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.fs.signatures import PackedSignature
    from skillhall._internal.policy.folder_walk_rules import ScanPolicy
    from skillhall._internal.skill.parsed import KeyCase
    from skillhall._internal.sources.folder.parsed_heads import ParsedHeads
    from skillhall._internal.sources.folder.root import Root

    Entries: TypeAlias = list[tuple[str, EntryKind]]
    ScanProgress: TypeAlias = Callable[[int], None]

_UNSAFE_NAME = "[\x00-\x1f\x7f-\x9f\ud800-\udfff]"  # compiled on first use, by `re`
# Heads are read and parsed in batches; alternating for each file is 20 % slower.
_BATCH_SIZE = 256
_MAX_ATTEMPTS = 20  # for a folder that is replaced repeatedly

# Globals are faster than attributes.
_FOLDER, _FILE, _LINK = EntryKind.FOLDER, EntryKind.FILE, EntryKind.LINK
_NO_SKILL_MD = Code.NO_SKILL_MD, "the folder has no SKILL.md", "add one"


class Scan(NamedTuple):
    """Candidates below one root, unordered, and findings about skipped entries."""

    candidates: list[Candidate]
    findings: list[Finding]
    reused_count: int = 0  # candidates from the head cache
    # Signatures of all folders that were listed, by path below the root; `None` if the result also
    # depends on something else, such as the target of a link. While these and the signatures of
    # the candidates are unchanged, another scan gives the same result.
    folders: dict[str, PackedSignature] | None = None
    is_unchanged: bool = False  # taken from the head cache as a whole


class ScanContext(NamedTuple):
    """Options of a scan, besides its root and policy."""

    key_case: KeyCase
    real_roots: Sequence[str]  # real paths that links may point into
    known_candidates: Mapping[str, Candidate]  # by folder; reused if the signature is unchanged
    keep_signatures: bool = True  # needed to write the head cache
    parse_heads: bool = True  # without it, candidates have no content, only a location
    progress: ScanProgress | None = None
    names: Iterable[str] | None = None  # entries of the root to scan; all without it
    # A time before the scan. A folder that changed before it is not being replaced.
    settled_before_ns: int = 0
    parsed_heads: ParsedHeads | None = None  # stores the heads that are parsed


def scan_root(root: Root, policy: ScanPolicy, context: ScanContext) -> Scan:
    """Scan a root under a policy.

    Unreadable or unsafe content is reported as findings, not raised.
    """
    walker = _FolderWalker(root, policy, context)
    walker.walk()
    folders = walker.listed_folders if walker.is_repeatable else None
    return Scan(walker.candidates, walker.findings, walker.reused_count, folders)


class _FolderStep(NamedTuple):
    """Folder of the walk: path below the root, depth, and target if it is linked."""

    path: str
    depth: int
    real_folder: FolderHandle | None = None

    def child(self, name: str) -> _FolderStep:
        path = f"{self.path}/{name}" if self.path else name
        real_folder = self.real_folder.child(name) if self.real_folder else None
        return _FolderStep(path, self.depth + 1, real_folder)


class _ReplacedDuringScan(Exception):
    """The folder was replaced during the scan, so a missing SKILL.md proves nothing."""


def _is_replaced(parent: Folder, name: str, identity: tuple[int, int]) -> bool:
    """Whether `parent` now has a different folder with this name."""
    try:
        status = parent.stat(name)
    except FileNotFoundError:
        # Between two renames of a replacement, the backup has the name's place.
        with suppress(OSError), parent.open_folder(name) as current:
            return current.device_and_inode() != identity
    except OSError:
        return False
    else:
        is_folder = stat.S_ISDIR(status.st_mode)
        return is_folder and (status.st_dev, status.st_ino) != identity
    return False


class _FolderWalker:
    """Walks one root and collects candidates and findings."""

    def __init__(self, root: Root, policy: ScanPolicy, context: ScanContext) -> None:
        self.root = root
        self.policy = policy
        self.key_case = context.key_case
        self.keep_signatures = context.keep_signatures
        self.parse_heads = context.parse_heads
        self.links = LinkResolver(root, policy, context.real_roots)
        self.known_candidates = context.known_candidates
        self.progress = context.progress
        self.names = context.names
        self.parsed_heads = context.parsed_heads
        self.settled_before_ns = context.settled_before_ns
        self.candidates: list[Candidate] = []
        self.pending_heads: list[RawHead] = []
        self.findings: list[Finding] = []
        self.visited_folders: set[tuple[int, int]] = set()
        self.pending_links: list[_FolderStep] = []
        self.reused_count = 0
        self.listed_folders: dict[str, PackedSignature] = {}
        self.is_repeatable = context.names is None and context.keep_signatures
        # Whether the last folder had no SKILL.md. Neighbors are mostly of one kind, and a folder is
        # opened differently if it will be listed.
        self.expects_group = False
        self.too_deep_count = 0  # folders beyond the depth limit
        self.root_folders: list[str] = []  # empty if the root is a skill
        self.is_repository = False

    def walk(self) -> None:
        """Walk the root; report it if it cannot be opened, unless it is optional and missing."""
        try:
            folder = open_folder_at(self.root.location)
        except (OSError, ValueError) as error:
            reason = format_os_error(error) if isinstance(error, OSError) else "invalid path"
            if self.root.is_required or not isinstance(error, FileNotFoundError):
                message = f"the folder cannot be searched: {reason}"
                self._report(Code.ROOT_MISSING, message, "", "check the path")
            return
        with folder:
            self._start(folder)
            self._finish(folder)

    def _start(self, folder: Folder) -> None:
        top = _FolderStep("", 0)
        entries = self._list_entries(folder, top)
        if entries is None:
            return
        if self.policy.include_root:
            name = os.path.basename(self.root.path)
            candidate = self._probe(folder, top, name)
            candidate = candidate or self._probe_case_variant(folder, top, name, entries)
            if candidate is not None:
                self._add_candidate(candidate)
                if not self.policy.search_inside_skills:
                    return
        self.root_folders = [name for name, kind in entries if kind is _FOLDER]
        self.is_repository = any(name == ".git" for name, _ in entries)
        self._scan_entries(folder, top, entries)
        self._follow_links()

    @staticmethod
    def _find_entries(folder: Folder, names: Iterable[str]) -> Iterator[tuple[str, EntryKind]]:
        """Yield these entries of the root, or the backups of those being replaced."""
        for name in names:
            for candidate in (name, f"{REPLACED_PREFIX}{name}"):
                with suppress(OSError):
                    yield candidate, mode_to_entry_kind(folder.stat(candidate).st_mode)
                    break

    def _finish(self, folder: Folder) -> None:
        """Parse pending heads, search agents' install folders, report skipped folders."""
        self.parse_pending()
        if self.policy.search_as_repository and not any(c.file for c in self.candidates):
            self.is_repeatable = False
            self._scan_installed_folders(folder)
            self._follow_links()
            self.parse_pending()
        if self.policy.empty_folders is EmptyFolderPolicy.REJECT_AMONG_SKILLS:
            self._report_empty_folders()
        if count := self.too_deep_count:
            subject = "1 folder was" if count == 1 else f"{count} folders were"
            message = f"{subject} not searched: deeper than {self.policy.max_depth} levels"
            self._report(
                Code.BOUND_REACHED, message, "", "raise --depth, or use deeper folders as roots"
            )

    def _scan_installed_folders(self, root: Folder) -> None:
        """Search `.claude/skills` and similar folders, if there are no other skills."""
        for name in self.root_folders:
            if not installed_prefix_length([name, SKILLS_FOLDER]):
                continue
            for inner in ("",) if installed_prefix_length([name]) else INSTALL_FOLDER_NAMES:
                path = f"{name}/{inner}" if inner else name
                with suppress(OSError), subfolder_at(root, path.split("/")) as folder:
                    step = _FolderStep(path, path.count("/") + 1)
                    # The first search reported the hidden folder as skipped; now it is searched.
                    skipped = self._absolute_path(name)
                    self.findings = [f for f in self.findings if f.path != skipped]
                    self._scan_entries(folder, step, self._list_entries(folder, step) or [])

    def _report_empty_folders(self) -> None:
        """Report folders in the root without a skill; reject those next to skills."""
        parents = {c.folder.rpartition("/")[0] for c in self.candidates if c.file}
        has_siblings = "" in parents and not self.is_repository
        is_rejected = self._root_name() == SKILLS_FOLDER or has_siblings
        known = {c.folder.partition("/")[0] for c in self.candidates}
        for name in self.root_folders:
            if name in known or self._reason_to_skip(name, name):
                continue
            if is_rejected:
                self._add_rejected(name, *_NO_SKILL_MD)
            else:
                self._report(Code.SKIPPED, "skipped: it has no SKILL.md", name)

    def _root_name(self) -> str:
        """Return the root's name; "" for a clone, whose folder can have any name."""
        return "" if self.is_repository else os.path.basename(self.root.path)

    def _scan_entries(
        self,
        folder: Folder,
        step: _FolderStep,
        entries: Entries,
        identity: tuple[int, int] | None = None,
    ) -> None:
        """Visit every entry of an open folder, up to the folder limit."""
        limit = self.policy.max_folders
        if len(self.visited_folders) >= limit:
            message = f"the search stopped after {limit} folders; the rest was not searched"
            hint = "use the folders that contain the skills as roots"
            self._report(Code.BOUND_REACHED, message, step.path, hint)
            return
        self.visited_folders.add(identity or folder.device_and_inode())
        if len(entries) > 1:
            self._check_collisions([name for name, _ in entries], step.path)
        is_cacheable = step.real_folder is None and not self.policy.search_inside_skills
        if self.known_candidates and is_cacheable:
            entries = self._reuse_unchanged(folder, step, entries)
        self._visit_entries(folder, step, entries)

    def _visit_entries(self, folder: Folder, step: _FolderStep, entries: Entries) -> None:
        """Visit the entries in order, and empty the list to free its memory."""
        prefix = f"{step.path}/" if step.path else ""
        is_plain = step.real_folder is None and not self.policy.search_inside_skills
        entries.reverse()
        while entries:
            name, kind = entries.pop()
            if kind is _FOLDER:
                path = prefix + name
                if not is_plain or not self._visit_plain_folder(folder, name, path, step.depth + 1):
                    self._visit_folder(folder, name, step.child(name))
            elif kind is _LINK:
                self.is_repeatable = False
                self.pending_links.append(step.child(name))
            elif (
                self.policy.include_flat_files
                and name.endswith(".md")
                and not self._is_skipped(name, name)
            ):
                try:
                    self._add_candidate(read_head(folder, "", None, name))
                except (OSError, NotAFile) as error:
                    finding = to_read_finding(error)
                    self._add_candidate(build_broken_candidate("", finding, name, is_flat=True))

    def _reuse_unchanged(self, folder: Folder, step: _FolderStep, entries: Entries) -> Entries:
        """Reuse candidates whose signature is unchanged; return the other entries."""
        prefix = f"{step.path}/" if step.path else ""
        known, skip_names = self.known_candidates, self.policy.skip_names
        remaining, before = [], len(self.candidates)
        for entry in entries:
            name, kind = entry
            candidate = known.get(prefix + name)
            if (
                candidate is None
                or kind is not EntryKind.FOLDER
                or name in skip_names
                or name[0] == "."
            ):
                remaining.append(entry)
                continue
            try:
                is_unchanged = (
                    pack_signature(folder.stat(f"{name}/{SKILL_MD}")) == candidate.signature
                )
            except OSError:
                is_unchanged = False
            if is_unchanged:
                self.candidates.append(candidate)
            else:
                remaining.append(entry)
        self.reused_count += len(self.candidates) - before
        return remaining

    def _visit_plain_folder(self, parent: Folder, name: str, path: str, depth: int) -> bool:
        """Visit an ordinary folder; return `False` if it needs `_visit_folder`.

        `_visit_folder` handles every folder. This is the fast path for nearly all of them.
        """
        if name[0] in "._" or name in self.policy.skip_names or not name.isprintable():
            return False
        try:
            found = parent.read_start_below(
                name,
                SKILL_MD,
                HEAD_SIZE,
                with_status=self.keep_signatures,
                will_list=self.expects_group,
            )
        except (OSError, NotAFile):
            return False
        if isinstance(found, Folder):
            try:
                step = _FolderStep(path, depth)
                self._scan_opened_folder(found, name, step, parent, is_probed=True)
            except (OSError, _ReplacedDuringScan):
                return False
            finally:
                found.close()
                self.expects_group = True
            return True
        self.expects_group = False
        data, size, status = found
        if len(data) == HEAD_SIZE and (data[:4] != b"---\n" or data.find(b"\n---\n", 3) < 0):
            return False  # the frontmatter may be longer
        signature = None if status is None else pack_signature(status)
        # As `RawHead(…)`, in half the time.
        head = (path, SKILL_MD, name, data, size, signature, None, None, None)
        self.pending_heads.append(tuple.__new__(RawHead, head))
        if len(self.pending_heads) >= _BATCH_SIZE:
            self.parse_pending()
        return True

    def _visit_folder(self, parent: Folder, name: str, step: _FolderStep) -> None:
        if self._is_skipped(name, step.path):
            self._visit_backup(parent, name, step)
            return
        for _ in range(_MAX_ATTEMPTS):
            try:
                folder = parent.open_folder(name)
            except OSError as error:
                self._add_unreadable(step.path, error)
                return
            try:
                self._scan_opened_folder(folder, name, step, parent)
            except _ReplacedDuringScan:
                continue
            except OSError as error:
                self._add_unreadable(step.path, error)
            finally:
                folder.close()
            return
        message = "the folder was replaced repeatedly while it was read"
        self._add_rejected(step.path, Code.UNREADABLE, message, "try again")

    def _visit_backup(self, parent: Folder, name: str, step: _FolderStep) -> None:
        """Visit the backup of a folder that is missing while it is being replaced."""
        original = name.removeprefix(REPLACED_PREFIX)
        if original == name:
            return
        self.is_repeatable = False
        try:
            parent.stat(original)
        except FileNotFoundError:
            path = step.path.removesuffix(name) + original
            self._visit_folder(parent, original, step._replace(path=path))
        except OSError:
            return

    def _scan_opened_folder(
        self,
        folder: Folder,
        name: str,
        step: _FolderStep,
        parent: Folder | None = None,
        *,
        is_probed: bool = False,
    ) -> None:
        """Probe an open folder and descend where the policy allows it.

        `is_probed` means that it was probed already and has no SKILL.md.

        Raises: OSError, _ReplacedDuringScan if `parent` now has a different folder with this name.
        """
        if step.real_folder is not None and folder.device_and_inode() in self.visited_folders:
            message = "the link points to a folder that was already searched"
            self._report(Code.SAME_FILE, message, step.path)
            return
        if name[0] == "." and self.policy.is_hidden_group(name, self._parent_name(step.path)):
            self._scan_group(folder, step)
            return
        candidate = None if is_probed else self._probe(folder, step, name)
        if candidate is not None and not self.policy.search_inside_skills:
            self._add_candidate(candidate)
            return
        status = folder.status()
        entries = self._list_entries(folder, step, status)
        if entries is None:
            return
        candidate = candidate or self._probe_case_variant(folder, step, name, entries)
        # A folder that is being replaced may have lost its SKILL.md already: the caller retries.
        identity = status.st_dev, status.st_ino
        if (
            candidate is None
            and parent is not None
            and status.st_ctime_ns >= self.settled_before_ns
            and _is_replaced(parent, name, identity)
        ):
            raise _ReplacedDuringScan
        if candidate is not None:
            self._add_candidate(candidate)
        elif self.policy.empty_folders is EmptyFolderPolicy.REJECT:
            self._add_rejected(step.path, *_NO_SKILL_MD)
        if candidate is None or self.policy.search_inside_skills:
            self._descend(folder, step, entries, identity)

    def _scan_group(self, folder: Folder, step: _FolderStep) -> None:
        """Search a group such as `skills/.curated`, without agents' install folders."""
        entries = []
        for name, kind in self._list_entries(folder, step) or []:
            if name in INSTALL_FOLDER_NAMES:
                path = step.child(name).path
                self._report(Code.SKIPPED, "skipped: installed by an agent", path)
            else:
                entries.append((name, kind))
        self._descend(folder, step, entries)

    def _descend(
        self,
        folder: Folder,
        step: _FolderStep,
        entries: Entries,
        identity: tuple[int, int] | None = None,
    ) -> None:
        if step.depth < self.policy.max_depth:
            self._scan_entries(folder, step, entries, identity)
        elif self.policy.empty_folders is not EmptyFolderPolicy.REJECT:
            names = [name for name, kind in entries if kind is EntryKind.FOLDER]
            skipped = (self._reason_to_skip(name, f"{step.path}/{name}") for name in names)
            self.too_deep_count += sum(reason is None for reason in skipped)

    def _probe(self, folder: Folder, step: _FolderStep, name: str) -> Candidate | RawHead | None:
        """Return the candidate of an open folder; `None` if it contains no SKILL.md."""
        try:
            return read_head(folder, step.path, name, real_folder=step.real_folder)
        except FileNotFoundError:
            return None
        except NotAFile as error:
            return build_broken_candidate(step.path, to_read_finding(error))
        except OSError as error:
            if error.errno == errno.ELOOP:  # SKILL.md is a link
                return self._probe_volume(folder, step, name) or self._probe_link(step, name)
            return build_broken_candidate(step.path, to_read_finding(error))

    def _probe_case_variant(
        self, folder: Folder, step: _FolderStep, name: str, entries: Entries
    ) -> Candidate | RawHead | None:
        """Return the candidate if its file has a name like `skill.md`, else `None`."""
        variants = [
            entry
            for entry, kind in entries
            if kind is _FILE and len(entry) == len(SKILL_MD) and is_skill_md(entry)
        ]
        if not variants:
            return None
        if SKILL_MD in variants:  # created after the probe
            return self._probe(folder, step, name)
        try:
            head = read_head(folder, step.path, name, variants[0], step.real_folder)
        except (OSError, NotAFile) as error:
            return build_broken_candidate(step.path, to_read_finding(error), variants[0])
        message, hint = f"the file is named {variants[0]!r}", f"rename it to {SKILL_MD!r}"
        return head._replace(finding=Finding(Code.CASE_VARIANT, message, 1, hint))

    def _probe_volume(self, folder: Folder, step: _FolderStep, name: str) -> RawHead | None:
        """Read a SKILL.md that is a link into a Kubernetes volume, else return `None`.

        Such a link never leads out of the skill's folder.
        """
        if not is_volume_link(folder, SKILL_MD):
            return None
        try:
            with open_volume(folder) as volume:
                return read_head(volume, step.path, name, real_folder=step.real_folder)
        except (OSError, NotAFile):
            return None

    def _probe_link(self, step: _FolderStep, name: str) -> Candidate | RawHead:
        """Read a SKILL.md that is a link; if it is not followed, the candidate is broken."""
        target = self.links.resolve_file(os.path.join(self._real_path(step), SKILL_MD))
        if isinstance(target, Finding):
            return build_broken_candidate(step.path, target)
        parent, _, file = target.relative_path.rpartition("/")
        try:
            with open_folder_at(FolderHandle(target.root, parent)) as folder:
                head = read_head(folder, step.path, name, file, step.real_folder)
        except (OSError, NotAFile) as error:
            return build_broken_candidate(step.path, to_read_finding(error))
        return head._replace(file=SKILL_MD, real_file=target)

    def _follow_links(self) -> None:
        """Visit pending links after all folders, so that a folder's own path wins."""
        while self.pending_links:
            links, self.pending_links = sorted(self.pending_links), []
            for step in links:
                self._visit_link(step.path.rpartition("/")[2], step)

    def _visit_link(self, name: str, step: _FolderStep) -> None:
        if self._is_skipped(name, step.path):
            return
        path = self._real_path(step)
        if os.path.isfile(path):
            if self.policy.include_flat_files and name.endswith(".md"):
                self.candidates.append(build_broken_candidate("", LINK_SKIPPED, name, is_flat=True))
            return
        target = self.links.resolve_folder(path, step.real_folder)
        if isinstance(target, Finding):
            is_checked = self.policy.empty_folders is EmptyFolderPolicy.REJECT_AMONG_SKILLS
            if is_checked and target is LINK_SKIPPED:
                if step.depth > 1 and not os.path.lexists(f"{path}/{SKILL_MD}"):
                    message = "skipped: a link to a folder without a SKILL.md"
                    self._report(Code.SKIPPED, message, step.path)
                    return
                target = LINK_NOT_CHECKED
            self.candidates.append(build_broken_candidate(step.path, target, ""))
            return
        try:
            with open_folder_at(target) as folder:
                self._scan_opened_folder(folder, name, step._replace(real_folder=target))
        except OSError as error:
            self._add_unreadable(step.path, error)

    def _list_entries(
        self, folder: Folder, step: _FolderStep, status: os.stat_result | None = None
    ) -> Entries | None:
        if self.names is not None and not step.depth:
            return sorted(self._find_entries(folder, self.names))
        try:
            # Before the entries: a change in between must not look like the listed state.
            if self.is_repeatable:
                self.listed_folders[step.path] = pack_signature(status or folder.status())
            return sorted(folder.list_entries())
        except OSError as error:
            self._add_unreadable(step.path, error)
            return None

    def _parent_name(self, path: str) -> str:
        """Return the name of the folder that contains the entry at `path`."""
        parent = path.rpartition("/")[0]
        return parent.rpartition("/")[2] if parent else self._root_name()

    def _reason_to_skip(self, name: str, path: str) -> str | None:
        return self.policy.reason_to_skip(name, self._parent_name(path) if name[0] == "." else "")

    def _is_skipped(self, name: str, path: str) -> bool:
        if name[0] not in "._" and name not in self.policy.skip_names and name.isprintable():
            return False
        reason = self._reason_to_skip(name, path)
        if reason is not None:
            self._report(Code.SKIPPED, f"skipped: {reason}", path)
            return True
        if not name.isprintable() and re.search(_UNSAFE_NAME, name):
            message = f"the name {name!a} contains control characters or is not UTF-8"
            self._report(Code.UNSAFE_PATH, message, "", "rename it")
            return True
        return False

    def _check_collisions(self, names: list[str], path: str) -> None:
        if len({name.lower() for name in names}) == len(names) and all(map(str.isascii, names)):
            return
        folded: dict[str, str] = {}
        for name in sorted(names):
            other = folded.setdefault(normalize("NFC", name).casefold(), name)
            if other != name:
                message = f"{other!r} and {name!r} are the same name on some systems"
                self._report(Code.CASE_COLLISION, message, path, "rename one of them")

    def _add_candidate(self, candidate: Candidate | RawHead) -> None:
        if isinstance(candidate, Candidate):
            self.candidates.append(candidate)
            return
        self.pending_heads.append(candidate)
        if len(self.pending_heads) >= _BATCH_SIZE:
            self.parse_pending()

    def parse_pending(self) -> None:
        """Parse the heads that were read since the last call."""
        if not self.pending_heads:
            return
        if not self.parse_heads:
            self.candidates += [head.to_location() for head in self.pending_heads]
            self.pending_heads.clear()
            return
        # A scan from the head cache never needs the parser, whose import would add 7 ms of CPU to
        # the 45 ms of a small listing.
        from skillhall._internal.sources.folder.candidate_parser import parse_candidates  # noqa: PLC0415

        self.candidates += parse_candidates(
            self.pending_heads,
            self.key_case,
            keep_signatures=self.keep_signatures,
            parsed_heads=self.parsed_heads,
        )
        self.pending_heads.clear()
        if self.progress is not None:
            self.progress(len(self.candidates))

    def _add_rejected(self, path: str, code: Code, message: str, hint: str) -> None:
        self.candidates.append(build_broken_candidate(path, Finding(code, message, 1, hint), ""))

    def _add_unreadable(self, path: str, error: OSError) -> None:
        message = f"the folder cannot be read: {format_os_error(error)}"
        self._add_rejected(path, Code.UNREADABLE, message, "check its permissions")

    def _report(self, code: Code, message: str, path: str, hint: str = "") -> None:
        self._add_finding(Finding(code, message, hint=hint, path=self._absolute_path(path)))

    def _add_finding(self, finding: Finding) -> None:
        """Add a finding, unless it is about a limit and not the first such finding."""
        is_limit = finding.code is Code.BOUND_REACHED
        if not is_limit or not any(other.code is finding.code for other in self.findings):
            self.findings.append(finding)

    def _real_path(self, step: _FolderStep) -> str:
        return step.real_folder.path if step.real_folder else self._absolute_path(step.path)

    def _absolute_path(self, path: str) -> str:
        return os.path.join(self.root.path, path) if path else self.root.path
