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
    ASIDE,
    Folder,
    Kind,
    Place,
    is_beneath,
    open_place,
    opened_beneath,
    opened_place,
)
from skillhall._internal.fs.kubernetes_volumes import (
    is_mounted,
    lasting_parts,
    leads_into_volume,
    open_volume,
)
from skillhall._internal.policy.scan_rules import (
    INSTALLED,
    LITTER,
    SKILLS,
    EmptyFolders,
    Links,
    installed_depth,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall._internal.sources.folder.candidate import (
    Candidate,
    broken,
    explain_failure,
    read_head,
    reason,
)
from skillhall._internal.sources.folder.candidate_codec import (
    decode_candidates,
    decode_findings,
    encode_candidates,
    encode_findings,
)
from skillhall._internal.sources.folder.helper_process import HelperProcess, may_fork
from skillhall._internal.sources.folder.stat_prefetch import peek_signature
from skillhall.errors import NotAFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall._internal.policy.scan_rules import ScanPolicy
    from skillhall._internal.skill.parsed import KeyCase
    from skillhall._internal.sources.folder.candidate import RawHead
    from skillhall._internal.sources.folder.root import Root
    from skillhall._internal.sources.folder.stat_prefetch import Stats

    Entries: TypeAlias = list[tuple[str, Kind]]
    Progress: TypeAlias = Callable[[int], None]

_UNSAFE_NAME = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Heads are read in runs and then parsed in runs: taking turns costs a fifth more.
_RUN = 256
# Entries of one folder from which a second process is worth its start.
_SHARED_FROM = 15_000
_OUR_SHARE = 0.55  # the helper also has to encode what it finds
_TRIES = 20  # for a folder that is replaced again and again

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
    reused: int = 0  # candidates whose head was known


class ScanContext(NamedTuple):
    """What a walk is told beside its root and policy."""

    keys: KeyCase
    real_roots: Sequence[str]  # the real paths that links may lead to
    known: Mapping[str, Candidate]  # by folder: not read again while the signature holds
    sign: bool = True  # whether somebody will remember the signatures
    stats: Stats | None = None  # of the root, if they were taken ahead
    progress: Progress | None = None


def scan(root: Root, policy: ScanPolicy, context: ScanContext) -> Scan:
    """Everything below `root` that the policy looks at. Never raises on what it finds there."""
    walk = _Walk(root, policy, context)
    try:
        folder = open_place(root.place)
    except (OSError, ValueError) as error:
        walk.miss_root(error)
    else:
        try:
            walk.start(folder)
            walk.finish(folder)
        finally:
            folder.close()
    return Scan(walk.candidates, walk.findings, walk.reused)


class _Step(NamedTuple):
    """A folder on the way: its path below the root, its depth, and where a link led."""

    path: str
    depth: int
    real: Place | None = None

    def child(self, name: str) -> _Step:
        return _Step(
            f"{self.path}/{name}" if self.path else name,
            self.depth + 1,
            self.real.child(name) if self.real else None,
        )


class _Replaced(Exception):
    """The folder was replaced while it was looked at: its SKILL.md may be gone already."""


def _is_replaced(parent: Folder, name: str, folder: Folder) -> bool:
    try:
        now = parent.folder(name)
    except OSError:
        return False
    try:
        return now.identity() != folder.identity()
    finally:
        now.close()


class _Walk:
    """One walk below one root; it collects candidates and findings."""

    def __init__(self, root: Root, policy: ScanPolicy, context: ScanContext) -> None:
        self.root = root
        self.policy = policy
        self.keys = context.keys
        self.sign = context.sign
        self.stats = context.stats
        self.real_roots = context.real_roots
        self.known = context.known
        self.progress = context.progress
        self.candidates: list[Candidate] = []
        self.pending: list[RawHead] = []
        self.findings: list[Finding] = []
        self.listed: set[tuple[int, int]] = set()
        self.links: list[_Step] = []
        self.reused = 0
        self.too_deep = 0  # folders below the depth of the search
        self.top: Entries = []  # what the root holds, unless the root is a skill
        self.outside: list[str] = []  # real folders that links led to, outside of the roots

    def miss_root(self, error: OSError | ValueError) -> None:
        """Say that there is nothing to walk, if somebody expected it."""
        if self.root.expected or not isinstance(error, FileNotFoundError):
            why = reason(error) if isinstance(error, OSError) else "no such path can exist"
            message = f"the folder cannot be searched: {why}"
            self._note(Code.ROOT_MISSING, message, "", "check the path")

    def start(self, folder: Folder) -> None:
        """Walk from the root."""
        top = _Step("", 0)
        entries = self.stats.entries if self.stats else self._entries(folder, top)
        if entries is None:
            return
        if self.policy.root_itself:
            name = os.path.basename(self.root.path)
            found = self._probe(folder, top, name)
            found = found or self._probe_variant(folder, top, name, entries)
            if found is not None:
                self._keep(found)
                if not self.policy.inside_skills:
                    return
        self.top = entries
        self._look_into(folder, top, entries)
        self._follow_links()

    def finish(self, folder: Folder) -> None:
        """Parse what is left, look where agents install skills, and report what was not seen."""
        self.parse_pending()
        if self.policy.collections and not any(found.file for found in self.candidates):
            self._look_into_installed(folder)
            self._follow_links()
            self.parse_pending()
        if self.policy.empty_folders is EmptyFolders.AMONG_SKILLS:
            self._report_empty_folders()
        if self.too_deep:
            self._report_depth()

    def _look_into_installed(self, root: Folder) -> None:
        """Search `.claude/skills` and its like: a repository may hold nothing but these."""
        for name, kind in self.top:
            if kind is not Kind.FOLDER or not installed_depth([name, SKILLS]):
                continue
            inner = ("",) if installed_depth([name]) else INSTALLED
            for below in inner:
                path = f"{name}/{below}" if below else name
                with suppress(OSError), opened_beneath(root, path.split("/")) as folder:
                    step = _Step(path, path.count("/") + 1)
                    self.findings = [f for f in self.findings if f.path != self._absolute(name)]
                    self._look_into(folder, step, self._entries(folder, step) or [])

    def _report_empty_folders(self) -> None:
        """Name the folders without a skill; among skills, each of them should be one."""
        parents = {found.folder.rpartition("/")[0] for found in self.candidates if found.file}
        among_skills = self._own_name() == SKILLS or ("" in parents and not self._is_repository())
        seen = {found.folder.partition("/")[0] for found in self.candidates}
        for name, kind in self.top:
            if kind is not Kind.FOLDER or name in seen or self._reason_to_skip(name, name):
                continue
            if among_skills:
                self._leave_out(name, *_NO_SKILL_MD)
            else:
                self._note(Code.SKIPPED, "passed over: it holds no SKILL.md", name)

    def _report_depth(self) -> None:
        count, depth = self.too_deep, self.policy.depth
        what = "1 folder was" if count == 1 else f"{count} folders were"
        message = f"{what} not searched: deeper than {depth} levels"
        self._note(Code.BOUND_REACHED, message, "", "raise --depth, or name deeper folders")

    def _is_repository(self) -> bool:
        return any(name == ".git" for name, _ in self.top)

    def _own_name(self) -> str:
        """The root's name; that of a clone is its owner's choice and says nothing."""
        return "" if self._is_repository() else os.path.basename(self.root.path)

    def _look_into(self, folder: Folder, step: _Step, entries: Entries) -> None:
        """Look at every entry of an open folder."""
        if self._at_bound(folder, step):
            return
        self._check_collisions([name for name, _ in entries], step.path)
        if self.known and step.real is None and not self.policy.inside_skills:
            entries = self._without_unchanged(folder, step, entries)
        if len(entries) >= _SHARED_FROM and not step.depth and may_fork():
            self._walk_with_helper(folder, step, entries)
        else:
            self._walk(folder, step, entries)

    def _walk_with_helper(self, folder: Folder, step: _Step, entries: Entries) -> None:
        """A second process walks a part of a large folder; should it fail, we do it ourselves."""
        share = int(len(entries) * _OUR_SHARE)
        mine, theirs = entries[:share], entries[share:]
        try:
            helper = HelperProcess(lambda: self._walk_for_parent(folder, step, theirs))
        except OSError:
            self._walk(folder, step, entries)
            return
        try:
            self._walk(folder, step, mine)
            self.parse_pending()
        finally:
            answer = helper.result()
        if answer is None or not self._merge(answer):
            self._walk(folder, step, theirs)

    def _walk_for_parent(self, folder: Folder, step: _Step, entries: Entries) -> bytes:
        self.candidates, self.pending, self.findings, self.links = [], [], [], []
        self.progress, self.reused, self.too_deep = None, 0, 0
        self._walk(folder, step, entries)
        self.parse_pending()
        links = [link.path for link in self.links]
        notes = encode_findings(self.findings)
        candidates = b"".join(encode_candidates(self.candidates))
        counts = self.reused, self.too_deep
        return marshal.dumps((candidates, notes, links, list(self.listed), counts))

    def _merge(self, answer: bytes) -> bool:
        """Take over what the helper found, unless both together went past a bound."""
        candidates, notes, links, listed, counts = marshal.loads(answer)  # noqa: S302 - our helper's
        both = self.listed.union(listed)
        if len(both) > self.policy.max_folders:
            return False
        self.listed = both
        self.reused += counts[0]
        self.too_deep += counts[1]
        self.candidates += decode_candidates(candidates)
        for found in decode_findings(notes):
            self._add(found)
        self.links += [_Step(path, path.count("/") + 1) for path in links]
        return True

    def _walk(self, folder: Folder, step: _Step, entries: Entries) -> None:
        for name, kind in entries:
            if kind is Kind.FOLDER:
                self._visit(folder, name, step.child(name))
            elif kind is Kind.LINK:
                self.links.append(step.child(name))
            elif self.policy.flat_files and name.endswith(".md"):
                self._visit_flat(folder, name)

    def _without_unchanged(self, folder: Folder, step: _Step, entries: Entries) -> Entries:
        """The entries that need a look; skills whose stat is as it was are kept unread."""
        prefix = f"{step.path}/" if step.path else ""
        stats = self.stats.signatures if self.stats and not step.depth else None
        known, skip_names = self.known, self.policy.skip_names
        left, before = [], len(self.candidates)
        for entry in entries:
            name, kind = entry
            row = known.get(prefix + name)
            if row is None or kind is not Kind.FOLDER or name in skip_names or name[0] == ".":
                left.append(entry)
                continue
            found = peek_signature(folder, name) if stats is None else stats.get(name)
            if found == row.signature:
                self.candidates.append(row)
            else:
                left.append(entry)
        self.reused += len(self.candidates) - before
        return left

    def _visit(self, parent: Folder, name: str, step: _Step) -> None:
        if self._passed_over(name, step.path):
            self._visit_replaced(parent, name, step)
            return
        for _ in range(_TRIES):
            try:
                folder = parent.folder(name)
            except OSError as error:
                self._lose(step.path, error)
                return
            try:
                self._enter(folder, name, step, parent)
            except _Replaced:
                continue
            except OSError as error:
                self._lose(step.path, error)
            finally:
                folder.close()
            return
        message = "the folder was replaced again and again while it was read"
        self._leave_out(step.path, Code.UNREADABLE, message, "try again")

    def _visit_replaced(self, parent: Folder, name: str, step: _Step) -> None:
        """A folder that was put aside, while nothing is at its own name yet."""
        own = name.removeprefix(ASIDE)
        if own == name:
            return
        try:
            parent.peek(own)
        except FileNotFoundError:
            above = step.path.removesuffix(name)
            self._visit(parent, own, step._replace(path=above + own))
        except OSError:
            return

    def _enter(self, folder: Folder, name: str, step: _Step, parent: Folder | None = None) -> None:
        """Probe an open folder, and look deeper where the policy says so.

        Raises: OSError, _Replaced if another folder is at its name in `parent` by now.
        """
        if step.real is not None and folder.identity() in self.listed:
            self._note(Code.SAME_FILE, "the link leads to a folder already searched", step.path)
            return
        if name[0] == "." and self.policy.is_group(name, self._parent(step.path)):
            self._enter_group(folder, step)
            return
        found = self._probe(folder, step, name)
        if found is not None and not self.policy.inside_skills:
            self._keep(found)
            return
        entries = self._entries(folder, step)
        if entries is None:
            return
        found = found or self._probe_variant(folder, step, name, entries)
        if found is None and parent is not None and _is_replaced(parent, name, folder):
            raise _Replaced
        if found is not None:
            self._keep(found)
        elif self.policy.empty_folders is EmptyFolders.REJECTED:
            self._leave_out(step.path, *_NO_SKILL_MD)
        if found is None or self.policy.inside_skills:
            self._look_deeper(folder, step, entries)

    def _enter_group(self, folder: Folder, step: _Step) -> None:
        """Look into `skills/.curated`; what agents installed is not part of a group."""
        entries = []
        for name, kind in self._entries(folder, step) or []:
            if name in INSTALLED:
                path = step.child(name).path
                self._note(Code.SKIPPED, "passed over: installed by an agent", path)
            else:
                entries.append((name, kind))
        self._look_deeper(folder, step, entries)

    def _look_deeper(self, folder: Folder, step: _Step, entries: Entries) -> None:
        if step.depth < self.policy.depth:
            self._look_into(folder, step, entries)
        elif self.policy.empty_folders is not EmptyFolders.REJECTED:
            below = [name for name, kind in entries if kind is Kind.FOLDER]
            paths = ((name, f"{step.path}/{name}") for name in below)
            self.too_deep += sum(self._reason_to_skip(*one) is None for one in paths)

    def _probe(self, folder: Folder, step: _Step, name: str) -> Candidate | RawHead | None:
        """The candidate in an open folder, if there is anything named SKILL.md."""
        try:
            return read_head(folder, step.path, name, real=step.real)
        except FileNotFoundError:
            return None
        except NotAFile as error:
            return broken(step.path, explain_failure(error))
        except OSError as error:
            if error.errno == errno.ELOOP:
                mounted = self._probe_mounted(folder, step, name)
                return mounted or self._probe_link(step, name)
            return broken(step.path, explain_failure(error))

    def _probe_variant(
        self, folder: Folder, step: _Step, name: str, entries: Entries
    ) -> Candidate | RawHead | None:
        """The candidate whose file is `skill.md` in some other case."""
        variants = [entry for entry, kind in entries if kind is Kind.FILE and is_skill_md(entry)]
        if not variants:
            return None
        if SKILL_MD in variants:  # it came after the probe
            return self._probe(folder, step, name)
        try:
            found = read_head(folder, step.path, name, variants[0], step.real)
        except (OSError, NotAFile) as error:
            return broken(step.path, explain_failure(error), variants[0])
        note = Finding(
            Code.CASE_VARIANT, f"the file is named {variants[0]!r}", 1, f"rename it to {SKILL_MD!r}"
        )
        return found._replace(note=note)

    def _probe_mounted(self, folder: Folder, step: _Step, name: str) -> RawHead | None:
        """A SKILL.md of a mounted volume: the link does not leave the skill's folder."""
        if not leads_into_volume(folder, SKILL_MD):
            return None
        try:
            volume = open_volume(folder)
        except OSError:
            return None
        try:
            return read_head(volume, step.path, name, real=step.real)
        except (OSError, NotAFile):
            return None
        finally:
            volume.close()

    def _probe_link(self, step: _Step, name: str) -> Candidate | RawHead:
        """A SKILL.md that is a link: read where it leads, if that is inside."""
        target = self._follow(os.path.join(self._where(step), SKILL_MD))
        if isinstance(target, Finding):
            return broken(step.path, _FILE_OUTSIDE if target is _LINK_OUTSIDE else target)
        below, _, file = target.below.rpartition("/")
        try:
            with opened_place(Place(target.root, below)) as folder:
                found = read_head(folder, step.path, name, file, step.real)
        except (OSError, NotAFile) as error:
            return broken(step.path, explain_failure(error))
        return found._replace(file=SKILL_MD, real_file=target)

    def _follow_links(self) -> None:
        """Links come last, so that a folder's own path never depends on the directory's order."""
        while self.links:
            links, self.links = sorted(self.links), []
            for step in links:
                self._visit_link(step.path.rpartition("/")[2], step)

    def _visit_link(self, name: str, step: _Step) -> None:
        if self._passed_over(name, step.path):
            return
        where = self._where(step)
        if os.path.isfile(where):
            if self.policy.flat_files and name.endswith(".md"):
                self.candidates.append(broken("", _LINK_SKIPPED, name, is_flat=True))
            return
        target = self._follow(where)
        if target is _LINK_OUTSIDE and self._may_leave(step):
            target = self._leave(where)
        if isinstance(target, Finding):
            self._refuse_link(step, where, target)
            return
        try:
            with opened_place(target) as folder:
                self._enter(folder, name, step._replace(real=target))
        except OSError as error:
            self._lose(step.path, error)

    def _refuse_link(self, step: _Step, where: str, why: Finding) -> None:
        is_checked = self.policy.empty_folders is EmptyFolders.AMONG_SKILLS
        if is_checked and why is _LINK_SKIPPED:
            if step.depth > 1 and not os.path.lexists(f"{where}/{SKILL_MD}"):
                message = "passed over: a link to a folder without SKILL.md"
                self._note(Code.SKIPPED, message, step.path)
                return
            why = _LINK_NOT_CHECKED
        self.candidates.append(broken(step.path, why, ""))

    def _may_leave(self, step: _Step) -> bool:
        """Whether a link may lead out of the roots: if allowed, and if it is itself inside."""
        if not self.root.follow_links:
            return False
        where = self.root.real_path if step.real is None else step.real.path
        return any(is_beneath(where, base) for base in self.real_roots)

    def _follow(self, where: str) -> Place | Finding:
        """The place inside the roots that a link leads to, or why it is not followed."""
        if not os.path.exists(where):
            return _LINK_BROKEN
        is_followed = self.root.follow_links or self.policy.links is not Links.NOT_FOLLOWED
        if not is_followed and not is_mounted(where):
            return _LINK_SKIPPED
        try:
            real = os.path.realpath(where)
        except OSError:  # it vanished in between
            return _LINK_BROKEN
        for base in self.real_roots:
            if is_beneath(real, base):
                return _place_below(base, real)
        if any(is_beneath(real, base) for base in self.outside):
            return _anchored(real)
        return _LINK_OUTSIDE

    def _leave(self, where: str) -> Place | Finding:
        """The folder outside of the roots that a link leads to."""
        try:
            real = os.path.realpath(where)
        except OSError:
            return _LINK_BROKEN
        self.outside.append(real)
        return _anchored(real)

    def _visit_flat(self, folder: Folder, name: str) -> None:
        if self._passed_over(name, name):
            return
        try:
            self._keep(read_head(folder, "", None, name))
        except (OSError, NotAFile) as error:
            self._keep(broken("", explain_failure(error), name, is_flat=True))

    def _entries(self, folder: Folder, step: _Step) -> Entries | None:
        try:
            return sorted(folder.entries())
        except OSError as error:
            self._lose(step.path, error)
            return None

    def _parent(self, path: str) -> str:
        """The name of the folder that the entry at `path` is in."""
        above = path.rpartition("/")[0]
        return above.rpartition("/")[2] if above else self._own_name()

    def _reason_to_skip(self, name: str, path: str) -> str | None:
        return self.policy.reason_to_skip(name, self._parent(path) if name[0] == "." else "")

    def _passed_over(self, name: str, path: str) -> bool:
        if name[0] not in "._" and name not in self.policy.skip_names and name.isprintable():
            return False
        skip = self._reason_to_skip(name, path)
        if skip is not None:
            self._note(Code.SKIPPED, f"passed over: {skip}", path)
            return True
        if _UNSAFE_NAME.search(name):
            message = f"the name {name!a} holds control characters or is not UTF-8"
            self._note(Code.UNSAFE_PATH, message, "", "rename it")
            return True
        return False

    def _at_bound(self, folder: Folder, step: _Step) -> bool:
        """Whether this folder is one too many; counts it if not."""
        if len(self.listed) >= self.policy.max_folders:
            bound = self.policy.max_folders
            self._stop(f"the search stopped after {bound} folders; what follows was not seen", step)
            return True
        self.listed.add(folder.identity())
        return False

    def _stop(self, message: str, step: _Step) -> None:
        hint = "name the folders that hold the skills as roots"
        self._note(Code.BOUND_REACHED, message, step.path, hint)

    def _check_collisions(self, names: list[str], path: str) -> None:
        if len({name.lower() for name in names}) == len(names) and all(map(str.isascii, names)):
            return
        from unicodedata import normalize  # noqa: PLC0415 - few folders need it

        seen: dict[str, str] = {}
        for name in sorted(names):
            other = seen.setdefault(normalize("NFC", name).casefold(), name)
            if other != name:
                message = f"{other!r} and {name!r} are one name on some systems"
                self._note(Code.CASE_COLLISION, message, path, "rename one of them")

    def _keep(self, found: Candidate | RawHead) -> None:
        if isinstance(found, Candidate):
            self.candidates.append(found)
            return
        self.pending.append(found)
        if len(self.pending) >= _RUN:
            self.parse_pending()

    def parse_pending(self) -> None:
        """Parse the heads that were read since the last time."""
        if not self.pending:
            return
        # Where everything is known, nothing is parsed and the parser need not be loaded.
        from skillhall._internal.sources.folder.candidate_parser import parse_candidate  # noqa: PLC0415

        keys = self.keys
        self.candidates += [parse_candidate(raw, keys, sign=self.sign) for raw in self.pending]
        self.pending.clear()
        if self.progress is not None:
            self.progress(len(self.candidates))

    def _leave_out(self, path: str, code: Code, message: str, hint: str) -> None:
        self.candidates.append(broken(path, Finding(code, message, 1, hint), ""))

    def _lose(self, path: str, error: OSError) -> None:
        message = f"the folder cannot be read: {reason(error)}"
        self._leave_out(path, Code.UNREADABLE, message, "check its permissions")

    def _note(self, code: Code, message: str, path: str, hint: str = "") -> None:
        self._add(Finding(code, message, hint=hint, path=self._absolute(path)))

    def _add(self, found: Finding) -> None:
        """Keep a finding; of the bounds, the first one says enough."""
        is_bound = found.code is Code.BOUND_REACHED
        if not is_bound or not any(other.code is found.code for other in self.findings):
            self.findings.append(found)

    def _where(self, step: _Step) -> str:
        return step.real.path if step.real else self._absolute(step.path)

    def _absolute(self, path: str) -> str:
        return os.path.join(self.root.path, path) if path else self.root.path


def _place_below(base: str, real: str) -> Place | Finding:
    """A real path as a place below a root, unless it is never part of a skill."""
    below = os.path.relpath(real, base)
    parts = [] if below == os.curdir else below.split(os.sep)
    if not LITTER.isdisjoint(parts):
        return _LINK_SKIPPED
    return Place(base, "/".join(lasting_parts(base, parts)))


def _anchored(real: str) -> Place | Finding:
    """A real path as a place below the file system's own root, so that no name may be a link."""
    return _place_below(os.path.splitdrive(real)[0] + os.sep, real)
