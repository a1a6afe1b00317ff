"""Skills in folders: one walk below a root gives the candidates.

A child is probed for SKILL.md before it is listed, only the head of that file is read, and a head
whose stat signature is known is not read at all. Every entry passed over leaves one finding.
"""

from __future__ import annotations

import errno
import marshal
import os
import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall.errors import NotAFile
from skillhall.policy.scanning import LITTER, Links
from skillhall.skill.finding import Code, Finding
from skillhall.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall.sources.candidate import Candidate, broken, explain_failure, read_head, reason
from skillhall.sources.encoding import (
    decode_candidates,
    decode_findings,
    encode_candidates,
    encode_findings,
)
from skillhall.sources.helper_process import HelperProcess, may_fork
from skillhall.sources.look_ahead import peek_signature
from skillhall.sources.safety import Folder, Kind, Place, is_beneath, open_place, opened_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall.policy.scanning import ScanPolicy
    from skillhall.skill.model import KeyCase
    from skillhall.sources.candidate import RawHead
    from skillhall.sources.look_ahead import Stats
    from skillhall.sources.roots import Root

    Entries: TypeAlias = list[tuple[str, Kind]]
    Progress: TypeAlias = Callable[[int], None]

_UNSAFE_NAME = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Heads are read in runs and then parsed in runs: taking turns costs a fifth more.
_RUN = 256
# Entries of one folder from which a second process is worth its start.
_SHARED_FROM = 15_000
_OUR_SHARE = 0.55  # the helper also has to encode what it finds

_LINK_BROKEN = Finding(Code.LINK_BROKEN, "the link leads nowhere", 1, "remove or mend it")
_LINK_SKIPPED = Finding(
    Code.LINK_SKIPPED, "links are not followed here", 1, "copy what it leads to instead"
)
_LINK_OUTSIDE = Finding(
    Code.LINK_OUTSIDE,
    "the link leads out of the searched folders",
    1,
    "copy what it leads to instead, or name its real place as a root",
)


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
        finally:
            folder.close()
        walk.parse_pending()
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
        self._look_into(folder, top, entries)
        self._follow_links()

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
        self.progress, self.reused = None, 0
        self._walk(folder, step, entries)
        self.parse_pending()
        links = [link.path for link in self.links]
        notes = encode_findings(self.findings)
        candidates = b"".join(encode_candidates(self.candidates))
        return marshal.dumps((candidates, notes, links, list(self.listed), self.reused))

    def _merge(self, answer: bytes) -> bool:
        """Take over what the helper found, unless both together went past a bound."""
        candidates, notes, links, listed, reused = marshal.loads(answer)  # noqa: S302 - our helper's
        both = self.listed.union(listed)
        if len(both) > self.policy.max_folders:
            return False
        self.listed = both
        self.reused += reused
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
            return
        try:
            folder = parent.folder(name)
        except OSError as error:
            self._lose(step.path, error)
            return
        try:
            self._enter(folder, name, step)
        except OSError as error:
            self._lose(step.path, error)
        finally:
            folder.close()

    def _enter(self, folder: Folder, name: str, step: _Step) -> None:
        """Probe an open folder, and look deeper where the policy says so."""
        if step.real is not None and folder.identity() in self.listed:
            self._note(Code.SAME_FILE, "the link leads to a folder already searched", step.path)
            return
        found = self._probe(folder, step, name)
        if found is not None and not self.policy.inside_skills:
            self._keep(found)
            return
        entries = self._entries(folder, step)
        if entries is None:
            return
        found = found or self._probe_variant(folder, step, name, entries)
        if found is not None:
            self._keep(found)
        elif self.policy.every_folder_is_a_candidate:
            self._leave_out(step.path, Code.NO_SKILL_MD, "the folder holds no SKILL.md", "add one")
        if found is not None and not self.policy.inside_skills:
            return
        if step.depth < self.policy.depth:
            self._look_into(folder, step, entries)
        elif self.policy.depth > 1 and any(kind is Kind.FOLDER for _, kind in entries):
            self._stop(f"folders more than {self.policy.depth} levels deep were not searched", step)

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
                return self._probe_link(step, name)
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

    def _probe_link(self, step: _Step, name: str) -> Candidate | RawHead:
        """A SKILL.md that is a link: read where it leads, if that is inside."""
        target = self._follow(os.path.join(self._where(step), SKILL_MD))
        if isinstance(target, Finding):
            return broken(step.path, target)
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
        if isinstance(target, Finding):
            self.candidates.append(broken(step.path, target, ""))
            return
        try:
            with opened_place(target) as folder:
                self._enter(folder, name, step._replace(real=target))
        except OSError as error:
            self._lose(step.path, error)

    def _follow(self, where: str) -> Place | Finding:
        """The place inside the roots that a link leads to, or why it is not followed."""
        if not os.path.exists(where):
            return _LINK_BROKEN
        if self.policy.links is Links.NOT_FOLLOWED:
            return _LINK_SKIPPED
        try:
            real = os.path.realpath(where)
        except OSError:  # it vanished in between
            return _LINK_BROKEN
        for base in self.real_roots:
            if is_beneath(real, base):
                below = os.path.relpath(real, base)
                parts = [] if below == os.curdir else below.split(os.sep)
                return Place(base, "/".join(parts)) if LITTER.isdisjoint(parts) else _LINK_SKIPPED
        return _LINK_OUTSIDE

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

    def _passed_over(self, name: str, path: str) -> bool:
        if name[0] not in "._" and name not in self.policy.skip_names and name.isprintable():
            return False
        skip = self.policy.reason_to_skip(name)
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
        from skillhall.sources.parsing import parse_candidate  # noqa: PLC0415

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
