"""Skills in folders: one walk below a root gives the candidates.

A child is probed for SKILL.md before it is listed, only the head of that file is read, and a head
whose stat signature is known is not read at all. Every entry passed over leaves one finding.
"""

from __future__ import annotations

import errno
import marshal
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.fs.handles import (
    REPLACED_PREFIX,
    EntryKind,
    Folder,
    FolderHandle,
    folder_at,
    is_inside,
    open_folder,
    subfolder_at,
)
from skillhall._internal.fs.kubernetes_volumes import (
    is_volume_link,
    is_volume_link_path,
    open_volume,
    to_stable_parts,
)
from skillhall._internal.policy.scan_rules import (
    ALWAYS_SKIPPED,
    INSTALL_FOLDER_NAMES,
    SKILLS_FOLDER,
    EmptyFolderPolicy,
    LinkPolicy,
    installed_prefix_length,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall._internal.sources.folder.candidate import (
    Candidate,
    build_broken_candidate,
    format_os_error,
    read_head,
    to_read_finding,
)
from skillhall._internal.sources.folder.candidate_codec import (
    decode_candidates,
    decode_findings,
    encode_candidates,
    encode_findings,
)
from skillhall._internal.sources.folder.helper_process import HelperProcess, can_fork
from skillhall._internal.sources.folder.stat_prefetch import read_signature
from skillhall.errors import NotAFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall._internal.policy.scan_rules import ScanPolicy
    from skillhall._internal.skill.parsed import KeyCase
    from skillhall._internal.sources.folder.candidate import RawHead
    from skillhall._internal.sources.folder.root import Root
    from skillhall._internal.sources.folder.stat_prefetch import PrefetchedStats

    Entries: TypeAlias = list[tuple[str, EntryKind]]
    ScanProgress: TypeAlias = Callable[[int], None]

_UNSAFE_NAME = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Heads are read in runs and then parsed in runs: taking turns costs a fifth more.
_BATCH_SIZE = 256
# Entries of one folder from which a second process is worth its start.
_HELPER_THRESHOLD = 15_000
_PARENT_SHARE = 0.55  # the helper also has to encode what it finds
_MAX_ATTEMPTS = 20  # for a folder that is replaced again and again

_LINK_BROKEN = Finding(Code.LINK_BROKEN, "the link leads nowhere", 1, "remove or mend it")
_LINK_SKIPPED = Finding(
    Code.LINK_SKIPPED, "links are not followed here", 1, "copy what it leads to instead"
)
_LINK_OUTSIDE = Finding(
    Code.LINK_OUTSIDE,
    "the link leads out of the searched folders",
    1,
    "copy the folder, or allow links: --follow-links, SKILLHALL_FOLLOW_LINKS=on, or followLinks in"
    " an agent's config",
)
_LINK_NOT_CHECKED = _LINK_SKIPPED._replace(
    hint="copy what it leads to instead, or allow links with --follow-links"
)
_FILE_OUTSIDE = _LINK_OUTSIDE._replace(hint="copy what it leads to instead")


_NO_SKILL_MD = Code.NO_SKILL_MD, "the folder holds no SKILL.md", "add one"


class Scan(NamedTuple):
    """The candidates below one root, in no particular order, and what was passed over."""

    candidates: list[Candidate]
    findings: list[Finding]
    reused_count: int = 0  # candidates whose head was known


class ScanContext(NamedTuple):
    """What a walk is told beside its root and policy."""

    key_case: KeyCase
    real_roots: Sequence[str]  # the real paths that links may lead to
    known_candidates: Mapping[str, Candidate]  # by folder: not read again while the signature holds
    keep_signatures: bool = True  # whether somebody will remember the signatures
    prefetched_stats: PrefetchedStats | None = None  # of the root, if they were taken ahead
    progress: ScanProgress | None = None


def scan_root(root: Root, policy: ScanPolicy, context: ScanContext) -> Scan:
    """Everything below `root` that the policy looks at. Never raises on what it finds there."""
    walk = _FolderWalker(root, policy, context)
    try:
        folder = open_folder(root.location)
    except (OSError, ValueError) as error:
        walk.report_missing_root(error)
    else:
        try:
            walk.start(folder)
            walk.finish(folder)
        finally:
            folder.close()
    return Scan(walk.candidates, walk.findings, walk.reused_count)


class _FolderStep(NamedTuple):
    """A folder on the way: its path below the root, its depth, and where a link led."""

    path: str
    depth: int
    real_folder: FolderHandle | None = None

    def child(self, name: str) -> _FolderStep:
        return _FolderStep(
            f"{self.path}/{name}" if self.path else name,
            self.depth + 1,
            self.real_folder.child(name) if self.real_folder else None,
        )


class _ReplacedDuringScan(Exception):
    """The folder was replaced while it was looked at: its SKILL.md may be gone already."""


def _is_replaced(parent: Folder, name: str, folder: Folder) -> bool:
    try:
        now = parent.open_folder(name)
    except OSError:
        return False
    try:
        return now.device_and_inode() != folder.device_and_inode()
    finally:
        now.close()


class _FolderWalker:
    """One walk below one root; it collects candidates and findings."""

    def __init__(self, root: Root, policy: ScanPolicy, context: ScanContext) -> None:
        self.root = root
        self.policy = policy
        self.key_case = context.key_case
        self.keep_signatures = context.keep_signatures
        self.prefetched_stats = context.prefetched_stats
        self.real_roots = context.real_roots
        self.known_candidates = context.known_candidates
        self.progress = context.progress
        self.candidates: list[Candidate] = []
        self.pending_heads: list[RawHead] = []
        self.findings: list[Finding] = []
        self.visited_folders: set[tuple[int, int]] = set()
        self.pending_links: list[_FolderStep] = []
        self.reused_count = 0
        self.too_deep_count = 0  # folders below the depth of the search
        self.root_entries: Entries = []  # what the root holds, unless the root is a skill
        self.outside_folders: list[str] = []  # real folders that links led to, outside of the roots

    def report_missing_root(self, error: OSError | ValueError) -> None:
        """Say that there is nothing to walk, if somebody expected it."""
        if self.root.is_required or not isinstance(error, FileNotFoundError):
            why = format_os_error(error) if isinstance(error, OSError) else "no such path can exist"
            message = f"the folder cannot be searched: {why}"
            self._report(Code.ROOT_MISSING, message, "", "check the path")

    def start(self, folder: Folder) -> None:
        """Walk from the root."""
        top = _FolderStep("", 0)
        entries = (
            self.prefetched_stats.entries
            if self.prefetched_stats
            else self._list_entries(folder, top)
        )
        if entries is None:
            return
        if self.policy.include_root:
            name = os.path.basename(self.root.path)
            found = self._probe(folder, top, name)
            found = found or self._probe_case_variant(folder, top, name, entries)
            if found is not None:
                self._add_candidate(found)
                if not self.policy.search_inside_skills:
                    return
        self.root_entries = entries
        self._scan_entries(folder, top, entries)
        self._follow_links()

    def finish(self, folder: Folder) -> None:
        """Parse what is left, look where agents install skills, and report what was not seen."""
        self.parse_pending()
        if self.policy.search_as_repository and not any(found.file for found in self.candidates):
            self._scan_installed_folders(folder)
            self._follow_links()
            self.parse_pending()
        if self.policy.empty_folders is EmptyFolderPolicy.REJECT_AMONG_SKILLS:
            self._report_empty_folders()
        if self.too_deep_count:
            self._report_depth()

    def _scan_installed_folders(self, root: Folder) -> None:
        """Search `.claude/skills` and its like: a repository may hold nothing but these."""
        for name, kind in self.root_entries:
            if kind is not EntryKind.FOLDER or not installed_prefix_length([name, SKILLS_FOLDER]):
                continue
            inner = ("",) if installed_prefix_length([name]) else INSTALL_FOLDER_NAMES
            for below in inner:
                path = f"{name}/{below}" if below else name
                with suppress(OSError), subfolder_at(root, path.split("/")) as folder:
                    step = _FolderStep(path, path.count("/") + 1)
                    self.findings = [
                        f for f in self.findings if f.path != self._absolute_path(name)
                    ]
                    self._scan_entries(folder, step, self._list_entries(folder, step) or [])

    def _report_empty_folders(self) -> None:
        """Name the folders without a skill; among skills, each of them should be one."""
        parents = {found.folder.rpartition("/")[0] for found in self.candidates if found.file}
        among_skills = self._root_name() == SKILLS_FOLDER or (
            "" in parents and not self._is_repository()
        )
        seen = {found.folder.partition("/")[0] for found in self.candidates}
        for name, kind in self.root_entries:
            if kind is not EntryKind.FOLDER or name in seen or self._reason_to_skip(name, name):
                continue
            if among_skills:
                self._add_rejected(name, *_NO_SKILL_MD)
            else:
                self._report(Code.SKIPPED, "passed over: it holds no SKILL.md", name)

    def _report_depth(self) -> None:
        count, depth = self.too_deep_count, self.policy.max_depth
        what = "1 folder was" if count == 1 else f"{count} folders were"
        message = f"{what} not searched: deeper than {depth} levels"
        self._report(Code.BOUND_REACHED, message, "", "raise --depth, or name deeper folders")

    def _is_repository(self) -> bool:
        return any(name == ".git" for name, _ in self.root_entries)

    def _root_name(self) -> str:
        """The root's name; that of a clone is its owner's choice and says nothing."""
        return "" if self._is_repository() else os.path.basename(self.root.path)

    def _scan_entries(self, folder: Folder, step: _FolderStep, entries: Entries) -> None:
        """Look at every entry of an open folder."""
        if self._is_at_folder_limit(folder, step):
            return
        self._check_collisions([name for name, _ in entries], step.path)
        if (
            self.known_candidates
            and step.real_folder is None
            and not self.policy.search_inside_skills
        ):
            entries = self._reuse_unchanged(folder, step, entries)
        if len(entries) >= _HELPER_THRESHOLD and not step.depth and can_fork():
            self._walk_with_helper(folder, step, entries)
        else:
            self._visit_entries(folder, step, entries)

    def _walk_with_helper(self, folder: Folder, step: _FolderStep, entries: Entries) -> None:
        """A second process walks a part of a large folder; should it fail, we do it ourselves."""
        share = int(len(entries) * _PARENT_SHARE)
        mine, theirs = entries[:share], entries[share:]
        try:
            helper = HelperProcess(lambda: self._walk_in_helper(folder, step, theirs))
        except OSError:
            self._visit_entries(folder, step, entries)
            return
        try:
            self._visit_entries(folder, step, mine)
            self.parse_pending()
        finally:
            answer = helper.result()
        if answer is None or not self._merge_helper_result(answer):
            self._visit_entries(folder, step, theirs)

    def _walk_in_helper(self, folder: Folder, step: _FolderStep, entries: Entries) -> bytes:
        self.candidates, self.pending_heads, self.findings, self.pending_links = [], [], [], []
        self.progress, self.reused_count, self.too_deep_count = None, 0, 0
        self._visit_entries(folder, step, entries)
        self.parse_pending()
        links = [link.path for link in self.pending_links]
        notes = encode_findings(self.findings)
        candidates = b"".join(encode_candidates(self.candidates))
        counts = self.reused_count, self.too_deep_count
        return marshal.dumps((candidates, notes, links, list(self.visited_folders), counts))

    def _merge_helper_result(self, answer: bytes) -> bool:
        """Take over what the helper found, unless both together went past a bound."""
        candidates, notes, links, listed, counts = marshal.loads(answer)  # noqa: S302 - our helper's
        both = self.visited_folders.union(listed)
        if len(both) > self.policy.max_folders:
            return False
        self.visited_folders = both
        self.reused_count += counts[0]
        self.too_deep_count += counts[1]
        self.candidates += decode_candidates(candidates)
        for found in decode_findings(notes):
            self._add_finding(found)
        self.pending_links += [_FolderStep(path, path.count("/") + 1) for path in links]
        return True

    def _visit_entries(self, folder: Folder, step: _FolderStep, entries: Entries) -> None:
        for name, kind in entries:
            if kind is EntryKind.FOLDER:
                self._visit_folder(folder, name, step.child(name))
            elif kind is EntryKind.LINK:
                self.pending_links.append(step.child(name))
            elif self.policy.include_flat_files and name.endswith(".md"):
                self._visit_flat_file(folder, name)

    def _reuse_unchanged(self, folder: Folder, step: _FolderStep, entries: Entries) -> Entries:
        """The entries that need a look; skills whose stat is as it was are kept unread."""
        prefix = f"{step.path}/" if step.path else ""
        stats = (
            self.prefetched_stats.signatures if self.prefetched_stats and not step.depth else None
        )
        known, skip_names = self.known_candidates, self.policy.skip_names
        left, before = [], len(self.candidates)
        for entry in entries:
            name, kind = entry
            row = known.get(prefix + name)
            if row is None or kind is not EntryKind.FOLDER or name in skip_names or name[0] == ".":
                left.append(entry)
                continue
            found = read_signature(folder, name) if stats is None else stats.get(name)
            if found == row.signature:
                self.candidates.append(row)
            else:
                left.append(entry)
        self.reused_count += len(self.candidates) - before
        return left

    def _visit_folder(self, parent: Folder, name: str, step: _FolderStep) -> None:
        if self._is_skipped(name, step.path):
            self._visit_set_aside(parent, name, step)
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
        message = "the folder was replaced again and again while it was read"
        self._add_rejected(step.path, Code.UNREADABLE, message, "try again")

    def _visit_set_aside(self, parent: Folder, name: str, step: _FolderStep) -> None:
        """A folder that was put aside, while nothing is at its own name yet."""
        own = name.removeprefix(REPLACED_PREFIX)
        if own == name:
            return
        try:
            parent.stat(own)
        except FileNotFoundError:
            above = step.path.removesuffix(name)
            self._visit_folder(parent, own, step._replace(path=above + own))
        except OSError:
            return

    def _scan_opened_folder(
        self, folder: Folder, name: str, step: _FolderStep, parent: Folder | None = None
    ) -> None:
        """Probe an open folder, and look deeper where the policy says so.

        Raises: OSError, _Replaced if another folder is at its name in `parent` by now.
        """
        if step.real_folder is not None and folder.device_and_inode() in self.visited_folders:
            self._report(Code.SAME_FILE, "the link leads to a folder already searched", step.path)
            return
        if name[0] == "." and self.policy.is_hidden_group(name, self._parent_name(step.path)):
            self._scan_group(folder, step)
            return
        found = self._probe(folder, step, name)
        if found is not None and not self.policy.search_inside_skills:
            self._add_candidate(found)
            return
        entries = self._list_entries(folder, step)
        if entries is None:
            return
        found = found or self._probe_case_variant(folder, step, name, entries)
        if found is None and parent is not None and _is_replaced(parent, name, folder):
            raise _ReplacedDuringScan
        if found is not None:
            self._add_candidate(found)
        elif self.policy.empty_folders is EmptyFolderPolicy.REJECT:
            self._add_rejected(step.path, *_NO_SKILL_MD)
        if found is None or self.policy.search_inside_skills:
            self._descend(folder, step, entries)

    def _scan_group(self, folder: Folder, step: _FolderStep) -> None:
        """Look into `skills/.curated`; what agents installed is not part of a group."""
        entries = []
        for name, kind in self._list_entries(folder, step) or []:
            if name in INSTALL_FOLDER_NAMES:
                path = step.child(name).path
                self._report(Code.SKIPPED, "passed over: installed by an agent", path)
            else:
                entries.append((name, kind))
        self._descend(folder, step, entries)

    def _descend(self, folder: Folder, step: _FolderStep, entries: Entries) -> None:
        if step.depth < self.policy.max_depth:
            self._scan_entries(folder, step, entries)
        elif self.policy.empty_folders is not EmptyFolderPolicy.REJECT:
            below = [name for name, kind in entries if kind is EntryKind.FOLDER]
            paths = ((name, f"{step.path}/{name}") for name in below)
            self.too_deep_count += sum(self._reason_to_skip(*one) is None for one in paths)

    def _probe(self, folder: Folder, step: _FolderStep, name: str) -> Candidate | RawHead | None:
        """The candidate in an open folder, if there is anything named SKILL.md."""
        try:
            return read_head(folder, step.path, name, real_folder=step.real_folder)
        except FileNotFoundError:
            return None
        except NotAFile as error:
            return build_broken_candidate(step.path, to_read_finding(error))
        except OSError as error:
            if error.errno == errno.ELOOP:
                mounted = self._probe_volume(folder, step, name)
                return mounted or self._probe_link(step, name)
            return build_broken_candidate(step.path, to_read_finding(error))

    def _probe_case_variant(
        self, folder: Folder, step: _FolderStep, name: str, entries: Entries
    ) -> Candidate | RawHead | None:
        """The candidate whose file is `skill.md` in some other case."""
        variants = [
            entry for entry, kind in entries if kind is EntryKind.FILE and is_skill_md(entry)
        ]
        if not variants:
            return None
        if SKILL_MD in variants:  # it came after the probe
            return self._probe(folder, step, name)
        try:
            found = read_head(folder, step.path, name, variants[0], step.real_folder)
        except (OSError, NotAFile) as error:
            return build_broken_candidate(step.path, to_read_finding(error), variants[0])
        note = Finding(
            Code.CASE_VARIANT, f"the file is named {variants[0]!r}", 1, f"rename it to {SKILL_MD!r}"
        )
        return found._replace(finding=note)

    def _probe_volume(self, folder: Folder, step: _FolderStep, name: str) -> RawHead | None:
        """A SKILL.md of a mounted volume: the link does not leave the skill's folder."""
        if not is_volume_link(folder, SKILL_MD):
            return None
        try:
            volume = open_volume(folder)
        except OSError:
            return None
        try:
            return read_head(volume, step.path, name, real_folder=step.real_folder)
        except (OSError, NotAFile):
            return None
        finally:
            volume.close()

    def _probe_link(self, step: _FolderStep, name: str) -> Candidate | RawHead:
        """A SKILL.md that is a link: read where it leads, if that is inside."""
        target = self._resolve_link(os.path.join(self._real_path(step), SKILL_MD))
        if isinstance(target, Finding):
            return build_broken_candidate(
                step.path, _FILE_OUTSIDE if target is _LINK_OUTSIDE else target
            )
        below, _, file = target.relative_path.rpartition("/")
        try:
            with folder_at(FolderHandle(target.root, below)) as folder:
                found = read_head(folder, step.path, name, file, step.real_folder)
        except (OSError, NotAFile) as error:
            return build_broken_candidate(step.path, to_read_finding(error))
        return found._replace(file=SKILL_MD, real_file=target)

    def _follow_links(self) -> None:
        """Links come last, so that a folder's own path never depends on the directory's order."""
        while self.pending_links:
            links, self.pending_links = sorted(self.pending_links), []
            for step in links:
                self._visit_link(step.path.rpartition("/")[2], step)

    def _visit_link(self, name: str, step: _FolderStep) -> None:
        if self._is_skipped(name, step.path):
            return
        where = self._real_path(step)
        if os.path.isfile(where):
            if self.policy.include_flat_files and name.endswith(".md"):
                self.candidates.append(
                    build_broken_candidate("", _LINK_SKIPPED, name, is_flat=True)
                )
            return
        target = self._resolve_link(where)
        if target is _LINK_OUTSIDE and self._may_follow_outside(step):
            target = self._resolve_outside_link(where)
        if isinstance(target, Finding):
            self._reject_link(step, where, target)
            return
        try:
            with folder_at(target) as folder:
                self._scan_opened_folder(folder, name, step._replace(real_folder=target))
        except OSError as error:
            self._add_unreadable(step.path, error)

    def _reject_link(self, step: _FolderStep, link_path: str, finding: Finding) -> None:
        is_checked = self.policy.empty_folders is EmptyFolderPolicy.REJECT_AMONG_SKILLS
        if is_checked and finding is _LINK_SKIPPED:
            if step.depth > 1 and not os.path.lexists(f"{link_path}/{SKILL_MD}"):
                message = "passed over: a link to a folder without SKILL.md"
                self._report(Code.SKIPPED, message, step.path)
                return
            finding = _LINK_NOT_CHECKED
        self.candidates.append(build_broken_candidate(step.path, finding, ""))

    def _may_follow_outside(self, step: _FolderStep) -> bool:
        """Whether a link may lead out of the roots: if allowed, and if it is itself inside."""
        if not self.root.follow_links:
            return False
        where = self.root.real_path if step.real_folder is None else step.real_folder.path
        return any(is_inside(where, base) for base in self.real_roots)

    def _resolve_link(self, link_path: str) -> FolderHandle | Finding:
        """The place inside the roots that a link leads to, or why it is not followed."""
        if not os.path.exists(link_path):
            return _LINK_BROKEN
        is_followed = (
            self.root.follow_links or self.policy.link_policy is not LinkPolicy.DO_NOT_FOLLOW
        )
        if not is_followed and not is_volume_link_path(link_path):
            return _LINK_SKIPPED
        try:
            real = os.path.realpath(link_path)
        except OSError:  # it vanished in between
            return _LINK_BROKEN
        for base in self.real_roots:
            if is_inside(real, base):
                return _to_location(base, real)
        if any(is_inside(real, base) for base in self.outside_folders):
            return _to_absolute_location(real)
        return _LINK_OUTSIDE

    def _resolve_outside_link(self, link_path: str) -> FolderHandle | Finding:
        """The folder outside of the roots that a link leads to."""
        try:
            real = os.path.realpath(link_path)
        except OSError:
            return _LINK_BROKEN
        self.outside_folders.append(real)
        return _to_absolute_location(real)

    def _visit_flat_file(self, folder: Folder, name: str) -> None:
        if self._is_skipped(name, name):
            return
        try:
            self._add_candidate(read_head(folder, "", None, name))
        except (OSError, NotAFile) as error:
            self._add_candidate(
                build_broken_candidate("", to_read_finding(error), name, is_flat=True)
            )

    def _list_entries(self, folder: Folder, step: _FolderStep) -> Entries | None:
        try:
            return sorted(folder.list_entries())
        except OSError as error:
            self._add_unreadable(step.path, error)
            return None

    def _parent_name(self, path: str) -> str:
        """The name of the folder that the entry at `path` is in."""
        above = path.rpartition("/")[0]
        return above.rpartition("/")[2] if above else self._root_name()

    def _reason_to_skip(self, name: str, path: str) -> str | None:
        return self.policy.reason_to_skip(name, self._parent_name(path) if name[0] == "." else "")

    def _is_skipped(self, name: str, path: str) -> bool:
        if name[0] not in "._" and name not in self.policy.skip_names and name.isprintable():
            return False
        skip = self._reason_to_skip(name, path)
        if skip is not None:
            self._report(Code.SKIPPED, f"passed over: {skip}", path)
            return True
        if _UNSAFE_NAME.search(name):
            message = f"the name {name!a} holds control characters or is not UTF-8"
            self._report(Code.UNSAFE_PATH, message, "", "rename it")
            return True
        return False

    def _is_at_folder_limit(self, folder: Folder, step: _FolderStep) -> bool:
        """Whether this folder is one too many; counts it if not."""
        if len(self.visited_folders) >= self.policy.max_folders:
            bound = self.policy.max_folders
            self._report_limit(
                f"the search stopped after {bound} folders; what follows was not seen", step
            )
            return True
        self.visited_folders.add(folder.device_and_inode())
        return False

    def _report_limit(self, message: str, step: _FolderStep) -> None:
        hint = "name the folders that hold the skills as roots"
        self._report(Code.BOUND_REACHED, message, step.path, hint)

    def _check_collisions(self, names: list[str], path: str) -> None:
        if len({name.lower() for name in names}) == len(names) and all(map(str.isascii, names)):
            return
        from unicodedata import normalize  # noqa: PLC0415 - few folders need it

        seen: dict[str, str] = {}
        for name in sorted(names):
            other = seen.setdefault(normalize("NFC", name).casefold(), name)
            if other != name:
                message = f"{other!r} and {name!r} are one name on some systems"
                self._report(Code.CASE_COLLISION, message, path, "rename one of them")

    def _add_candidate(self, found: Candidate | RawHead) -> None:
        if isinstance(found, Candidate):
            self.candidates.append(found)
            return
        self.pending_heads.append(found)
        if len(self.pending_heads) >= _BATCH_SIZE:
            self.parse_pending()

    def parse_pending(self) -> None:
        """Parse the heads that were read since the last time."""
        if not self.pending_heads:
            return
        # Where everything is known, nothing is parsed and the parser need not be loaded.
        from skillhall._internal.sources.folder.candidate_parser import parse_candidate  # noqa: PLC0415

        keys = self.key_case
        self.candidates += [
            parse_candidate(raw, keys, keep_signature=self.keep_signatures)
            for raw in self.pending_heads
        ]
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

    def _add_finding(self, found: Finding) -> None:
        """Keep a finding; of the bounds, the first one says enough."""
        is_bound = found.code is Code.BOUND_REACHED
        if not is_bound or not any(other.code is found.code for other in self.findings):
            self.findings.append(found)

    def _real_path(self, step: _FolderStep) -> str:
        return step.real_folder.path if step.real_folder else self._absolute_path(step.path)

    def _absolute_path(self, path: str) -> str:
        return os.path.join(self.root.path, path) if path else self.root.path


def _to_location(base: str, real: str) -> FolderHandle | Finding:
    """A real path as a place below a root, unless it is never part of a skill."""
    below = os.path.relpath(real, base)
    parts = [] if below == os.curdir else below.split(os.sep)
    if not ALWAYS_SKIPPED.isdisjoint(parts):
        return _LINK_SKIPPED
    return FolderHandle(base, "/".join(to_stable_parts(base, parts)))


def _to_absolute_location(real: str) -> FolderHandle | Finding:
    """A real path as a place below the file system's own root, so that no name may be a link."""
    return _to_location(os.path.splitdrive(real)[0] + os.sep, real)
