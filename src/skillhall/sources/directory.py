"""Skills in folders: one walk below a root gives the candidates.

A child is probed for SKILL.md before it is listed, only the head of that file is read, and a head
whose stat signature is known is not read at all. Every entry passed over leaves one finding.
"""

from __future__ import annotations

import errno
import os
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall.errors import NotAFile
from skillhall.policy.scanning import Links
from skillhall.skill.finding import Code, Finding
from skillhall.skill.model import EMPTY
from skillhall.sources.candidate import (
    SKILL_MD,
    Candidate,
    Signature,
    broken,
    explain_failure,
    read_candidate,
    reason,
)
from skillhall.sources.safety import Folder, Kind, Place, is_beneath, open_root, opened_place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall.policy.scanning import ScanPolicy
    from skillhall.skill.model import KeyCase
    from skillhall.sources.candidate import KnownHeads
    from skillhall.sources.roots import Root

    Entries: TypeAlias = list[tuple[str, Kind]]
    Progress: TypeAlias = Callable[[int], None]

_UNSAFE_NAME = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_PROGRESS_STEP = 256  # candidates between two reports


@dataclass(frozen=True, slots=True)
class Scan:
    """The candidates below one root, in no particular order, and what was passed over."""

    candidates: list[Candidate]
    findings: list[Finding]
    reused: int = 0  # candidates whose head was known


@dataclass(frozen=True, slots=True)
class ScanContext:
    """What a walk is told beside its root and policy."""

    keys: KeyCase
    real_roots: Sequence[str]  # the real paths that links may lead to
    known: KnownHeads  # heads that need no reading while their signature holds
    progress: Progress | None = None


def scan(root: Root, policy: ScanPolicy, context: ScanContext) -> Scan:
    """Everything below `root` that the policy looks at. Never raises on what it finds there."""
    walk = _Walk(root, policy, context)
    try:
        folder = open_root(root.path)
    except OSError as error:
        walk.miss_root(error)
    else:
        try:
            walk.start(folder)
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


class _Walk:
    """One walk below one root; it collects candidates and findings."""

    def __init__(self, root: Root, policy: ScanPolicy, context: ScanContext) -> None:
        self.root = root
        self.policy = policy
        self.keys = context.keys
        self.real_roots = context.real_roots
        self.known = context.known
        self.progress = context.progress
        self.candidates: list[Candidate] = []
        self.findings: list[Finding] = []
        self.listed: set[tuple[int, int]] = set()
        self.links: list[_Step] = []
        self.reused = 0

    def miss_root(self, error: OSError) -> None:
        """Say that there is nothing to walk, if somebody expected it."""
        if self.root.expected or not isinstance(error, FileNotFoundError):
            message = f"the folder cannot be searched: {reason(error)}"
            self._note(Code.ROOT_MISSING, message, "", "check the path")

    def start(self, folder: Folder) -> None:
        """Walk from the root."""
        top = _Step("", 0)
        if self.policy.root_itself:
            name = os.path.basename(self.root.path)
            found = self._probe(folder, top, name)
            if found is not None:
                self._keep(found)
                if not self.policy.inside_skills:
                    return
        entries = self._entries(folder, top)
        if entries is not None:
            self._look_into(folder, top, entries)
            self._follow_links()

    def _look_into(self, folder: Folder, step: _Step, entries: Entries) -> None:
        """Look at every entry of an open folder."""
        if self._seen_before(folder, step) or self._at_bound(step):
            return
        self._check_collisions([name for name, _ in entries], step.path)
        for name, kind in entries:
            if kind is Kind.FOLDER:
                self._visit(folder, name, step)
            elif kind is Kind.LINK:
                self.links.append(step.child(name))
            elif self.policy.flat_files and name.endswith(".md"):
                self._visit_flat(folder, name)

    def _visit(self, parent: Folder, name: str, above: _Step) -> None:
        step = above.child(name)
        if self._passed_over(name, step.path):
            return
        found = self._unchanged(parent, name, step) if self.known else None
        if found is not None and not self.policy.inside_skills:
            self._keep(found)
            return
        try:
            folder = parent.folder(name)
        except OSError as error:
            self._lose(step.path, error)
            return
        try:
            self._enter(folder, name, step, found)
        finally:
            folder.close()

    def _enter(
        self, folder: Folder, name: str, step: _Step, found: Candidate | None = None
    ) -> None:
        """Probe an open folder, and look deeper where the policy says so."""
        found = found or self._probe(folder, step, name)
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
        if step.depth < self.policy.depth and (found is None or self.policy.inside_skills):
            self._look_into(folder, step, entries)

    def _unchanged(self, parent: Folder, name: str, step: _Step) -> Candidate | None:
        known = self.known.get(step.path)
        if known is None or step.real is not None:
            return None
        try:
            signature = Signature.of(parent.peek(name, SKILL_MD))
        except OSError:
            return None
        if signature != known.signature:
            return None
        self.reused += 1
        return Candidate(step.path, SKILL_MD, known.frontmatter, known.findings, signature)

    def _probe(self, folder: Folder, step: _Step, name: str) -> Candidate | None:
        """The candidate in an open folder, if there is anything named SKILL.md."""
        try:
            found = read_candidate(folder, step.path, name, self.keys)
        except FileNotFoundError:
            return None
        except NotAFile as error:
            return broken(step.path, explain_failure(error))
        except OSError as error:
            if error.errno == errno.ELOOP:
                return self._probe_link(step, name)
            return broken(step.path, explain_failure(error))
        return found if step.real is None else found._replace(signature=None, real=step.real)

    def _probe_variant(
        self, folder: Folder, step: _Step, name: str, entries: Entries
    ) -> Candidate | None:
        """The candidate whose file is `skill.md` in some other case."""
        variants = sorted(
            entry
            for entry, kind in entries
            if kind is Kind.FILE and entry.lower() == SKILL_MD.lower()
        )
        if not variants:
            return None
        try:
            found = read_candidate(folder, step.path, name, self.keys, variants[0])
        except (OSError, NotAFile) as error:
            return broken(step.path, explain_failure(error), variants[0])
        note = Finding(
            Code.CASE_VARIANT, f"the file is named {variants[0]!r}", 1, f"rename it to {SKILL_MD!r}"
        )
        return found._replace(findings=(note, *found.findings), signature=None, real=step.real)

    def _probe_link(self, step: _Step, name: str) -> Candidate:
        """A SKILL.md that is a link: read where it leads, if that is inside."""
        target = self._follow(os.path.join(self._where(step), SKILL_MD))
        if isinstance(target, Finding):
            return broken(step.path, target)
        below, _, file = target.below.rpartition("/")
        real = Place(target.root, below)
        try:
            with opened_place(real) as folder:
                found = read_candidate(folder, step.path, name, self.keys, file)
        except (OSError, NotAFile) as error:
            return broken(step.path, explain_failure(error))
        return found._replace(signature=None, real=real)

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
                self._leave_out(step.path, Code.LINK_SKIPPED, "links are not followed here", "")
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
            return Finding(Code.LINK_BROKEN, "the link leads nowhere", 1, "remove or mend it")
        if self.policy.links is Links.NOT_FOLLOWED:
            return Finding(
                Code.LINK_SKIPPED, "links are not followed here", 1, "copy the folder instead"
            )
        real = os.path.realpath(where)
        for base in self.real_roots:
            if is_beneath(real, base):
                below = os.path.relpath(real, base)
                return Place(base, "" if below == os.curdir else below.replace(os.sep, "/"))
        return Finding(
            Code.LINK_OUTSIDE,
            "the link leads out of the searched folders",
            1,
            "copy the folder instead, or name its real place as a root",
        )

    def _visit_flat(self, folder: Folder, name: str) -> None:
        if self._passed_over(name, name):
            return
        try:
            self._keep(read_candidate(folder, "", None, self.keys, name))
        except (OSError, NotAFile) as error:
            self._keep(Candidate("", name, EMPTY, (explain_failure(error),), is_flat=True))

    def _entries(self, folder: Folder, step: _Step) -> Entries | None:
        try:
            return sorted(folder.entries())
        except OSError as error:
            self._lose(step.path, error)
            return None

    def _passed_over(self, name: str, path: str) -> bool:
        skip = self.policy.reason_to_skip(name)
        if skip is not None:
            self._note(Code.SKIPPED, f"passed over: {skip}", path)
            return True
        if not name.isprintable() and _UNSAFE_NAME.search(name):
            message = f"the name {ascii(name)} holds control characters or is not UTF-8"
            self._note(Code.UNSAFE_PATH, message, "", "rename it")
            return True
        return False

    def _seen_before(self, folder: Folder, step: _Step) -> bool:
        try:
            identity = folder.identity()
        except OSError as error:
            self._lose(step.path, error)
            return True
        if identity in self.listed:
            self._note(Code.SAME_FILE, "the link leads to a folder already searched", step.path)
            return True
        self.listed.add(identity)
        return False

    def _at_bound(self, step: _Step) -> bool:
        if len(self.listed) <= self.policy.max_folders:
            return False
        if not any(found.code is Code.BOUND_REACHED for found in self.findings):
            bound = self.policy.max_folders
            self._note(
                Code.BOUND_REACHED,
                f"the search stopped after {bound} folders; what follows was not seen",
                step.path,
                "name the folders that hold the skills as roots",
            )
        return True

    def _check_collisions(self, names: list[str], path: str) -> None:
        if len({name.lower() for name in names}) == len(names) and all(map(str.isascii, names)):
            return
        seen: dict[str, str] = {}
        for name in sorted(names):
            other = seen.setdefault(unicodedata.normalize("NFC", name).casefold(), name)
            if other != name:
                message = f"{other!r} and {name!r} are one name on some systems"
                self._note(Code.CASE_COLLISION, message, path, "rename one of them")

    def _keep(self, candidate: Candidate) -> None:
        self.candidates.append(candidate)
        if self.progress is not None and not len(self.candidates) % _PROGRESS_STEP:
            self.progress(len(self.candidates))

    def _leave_out(self, path: str, code: Code, message: str, hint: str) -> None:
        self.candidates.append(broken(path, Finding(code, message, 1, hint), ""))

    def _lose(self, path: str, error: OSError) -> None:
        message = f"the folder cannot be read: {reason(error)}"
        self._leave_out(path, Code.UNREADABLE, message, "check its permissions")

    def _note(self, code: Code, message: str, path: str, hint: str = "") -> None:
        self.findings.append(Finding(code, message, hint=hint, path=self._absolute(path)))

    def _where(self, step: _Step) -> str:
        return step.real.path if step.real else self._absolute(step.path)

    def _absolute(self, path: str) -> str:
        return os.path.join(self.root.path, path) if path else self.root.path
