"""Roots and a profile to a catalog: scan, judge, name, order, settle."""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog import head_cache as indexing
from skillhall._internal.catalog.catalog import Catalog, Rejected, Skill
from skillhall._internal.fs.handles import is_beneath
from skillhall._internal.policy.effects import Effect, Judged
from skillhall._internal.policy.precedence import settle
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.stat_prefetch import look_ahead
from skillhall._internal.sources.folder.walker import ScanContext, scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.catalog.head_cache import HeadIndex
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.sources.folder.candidate import Candidate
    from skillhall._internal.sources.folder.root import Root
    from skillhall._internal.sources.folder.walker import Progress, Scan

# By place, flat files first; a stable sort by name then leaves equal names in that order.
_PLACE = itemgetter(0, 1)
_NAME = itemgetter(0)
_REAL, _REAL_FILE = itemgetter(8), itemgetter(9)


def load_roots(
    roots: Sequence[Root],
    profile: Profile,
    index: HeadIndex | None = None,
    progress: Progress | None = None,
    *,
    bodies: bool = False,
) -> Catalog:
    """The catalog of what stands below `roots`. Never raises on what it finds there.

    Without `bodies`, only the head of each SKILL.md is read. With them, a skill whose body is not
    text is rejected; the index remembers that for later loads.
    """
    real_roots = tuple(root.real_path for root in roots)
    if profile.scan.inside_skills:
        index = None  # every folder is listed anyway, and `agents.instructions` keeps its own cache
    with _collector_paused():
        scans = []
        for root, real in zip(roots, real_roots, strict=True):
            context = ScanContext(profile.keys, real_roots, {}, progress=progress)
            if index is None:
                found = scan(root, profile.scan, context._replace(sign=bodies))
                scans.append(_with_bodies(root, found) if bodies else found)
            else:
                known = _Known(index, real, bodies)
                scans.append(_scan_with_index(root, profile, context, known))
        return _settle(roots, real_roots, profile, scans)


class _Known(NamedTuple):
    """The index for one root, and whether bodies are checked before it remembers."""

    heads: HeadIndex
    real: str
    bodies: bool


def _scan_with_index(root: Root, profile: Profile, context: ScanContext, indexed: _Known) -> Scan:
    index, real, bodies = indexed
    started = indexing.now()
    ahead = look_ahead(root.path) if index.is_large(real, profile.keys) else None
    known = index.known(real, profile.keys)
    stats = None if ahead is None else ahead.result()
    found = scan(root, profile.scan, context._replace(known=known, stats=stats))
    if bodies:
        found = _with_bodies(root, found)
    index.remember(real, profile.keys, found, started)
    return found


def _with_bodies(root: Root, found: Scan) -> Scan:
    # A listing does not need the parser, and loading it takes a while.
    from skillhall._internal.catalog.body_checks import check_bodies  # noqa: PLC0415

    return check_bodies(root, found)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Tens of thousands of new objects, none of them garbage: collecting would cost a fifth."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _settle(
    roots: Sequence[Root], real_roots: Sequence[str], profile: Profile, scans: Sequence[Scan]
) -> Catalog:
    skills: list[Skill] = []
    rejected: list[Rejected] = []
    notes: list[Judged] = []
    once = _Once(real_roots, scans)
    once_has_work = once.has_work
    for number, (root, real, found) in enumerate(zip(roots, real_roots, scans, strict=True)):
        judge = _Judge(root, number, profile)
        notes += profile.load.judge(found.findings)
        found.candidates.sort(key=_PLACE)
        for candidate in found.candidates:
            seen = once.seen(candidate, real) if once_has_work else None
            if seen is None:
                judge.take(candidate)
            else:
                notes += profile.load.judge([judge.same_file(candidate, seen)])
        found.candidates.clear()  # half the memory of a large scan, not needed any more
        judge.skills.sort(key=_NAME)
        skills += judge.skills
        rejected += judge.rejected
    kept, shadowed, findings = settle(skills, profile.precedence)
    notes += profile.load.judge(findings)
    return Catalog(profile, roots, kept, rejected, shadowed, notes)


class _Once:
    """Sees to it that one real file gives one skill, however many links and roots lead to it."""

    def __init__(self, real_roots: Sequence[str], scans: Sequence[Scan]) -> None:
        self._roots_overlap = any(
            is_beneath(one, other)
            for number, one in enumerate(real_roots)
            for other in (*real_roots[:number], *real_roots[number + 1 :])
        )
        self._direct: set[str] = set()
        self._taken: set[str] = set()
        self._has_links = any(
            any(map(_REAL, found.candidates)) or any(map(_REAL_FILE, found.candidates))
            for found in scans
        )
        if self._has_links:
            self._direct.update(
                _real_path(candidate, real)
                for real, found in zip(real_roots, scans, strict=True)
                for candidate in found.candidates
                if not _is_linked(candidate)
            )

    @property
    def has_work(self) -> bool:
        """Whether anything can be met twice at all."""
        return self._roots_overlap or self._has_links

    def seen(self, candidate: Candidate, real_root: str) -> str | None:
        """The real file, if it is or will be listed under another path."""
        if not self._roots_overlap and not _is_linked(candidate):
            return None
        path = _real_path(candidate, real_root)
        if path in self._taken or (_is_linked(candidate) and path in self._direct):
            return path
        self._taken.add(path)
        return None


def _is_linked(candidate: Candidate) -> bool:
    return candidate.real is not None or candidate.real_file is not None


def _real_path(candidate: Candidate, real_root: str) -> str:
    if candidate.real_file is not None:
        return candidate.real_file.path
    if candidate.real is not None:
        return os.path.join(candidate.real.path, candidate.file)
    return os.path.join(real_root, candidate.folder, candidate.file)


class _Judge:
    """Turns the candidates of one root into skills and rejected ones."""

    def __init__(self, root: Root, number: int, profile: Profile) -> None:
        self.root = root
        self.number = number
        self.load = profile.load
        self.quiet = profile.load.quiet_codes
        self.label = profile.label
        self.reserved_names = profile.reserved_names
        self.skills: list[Skill] = []
        self.rejected: list[Rejected] = []

    def take(self, candidate: Candidate) -> None:
        """Judge one candidate."""
        folder, file, name, description, hidden, fields, _, is_flat, real, real_file, findings = (
            candidate
        )
        own_name = folder.rpartition("/")[2] or self._own_name(candidate)
        name, description = self.label(name, description, own_name)
        if name in self.reserved_names:
            findings = (*findings, _reserved(name))
        judged = self._judge(findings, candidate, name) if findings else ()
        if judged and any(one.effect is Effect.REJECT for one in judged):
            self.rejected.append(
                Rejected(self._id(candidate), name, self._location(candidate), judged)
            )
            return
        self.skills.append(
            Skill(
                name,
                description,
                hidden,
                folder,
                file,
                self.root,
                self.number,
                fields,
                judged,
                is_flat,
                real,
                real_file,
            )
        )

    def same_file(self, candidate: Candidate, seen: str) -> Finding:
        """The note that a link leads to a skill that is there already."""
        return Finding(
            Code.SAME_FILE,
            f"the link leads to {seen}, which is listed already",
            path=self._location(candidate),
        )

    def _judge(
        self, findings: tuple[Finding, ...], candidate: Candidate, name: str
    ) -> tuple[Judged, ...]:
        loud = [found for found in findings if found.code not in self.quiet]
        if not loud:
            return ()
        location = self._location(candidate)
        effects, otherwise = self.load.effects, self.load.otherwise
        return tuple(
            [
                Judged(
                    Finding(code, message, line, hint, location, name),
                    effects.get(code, otherwise),
                )
                for code, message, line, hint, _, _ in loud
            ]
        )

    def _own_name(self, candidate: Candidate) -> str:
        """What a candidate without a folder is called: after its file, or after the root."""
        if candidate.is_flat:
            return candidate.file.rpartition(".")[0]
        return os.path.basename(self.root.path)

    def _id(self, candidate: Candidate) -> str:
        return candidate.folder or self._own_name(candidate)

    def _location(self, candidate: Candidate) -> str:
        parts = (self.root.path, candidate.folder, candidate.file)
        return os.sep.join([part for part in parts if part])


def _reserved(name: str) -> Finding:
    return Finding(
        Code.NAME_RESERVED,
        f"the name {name!r} is reserved for a route of the server",
        hint="choose another name",
    )
