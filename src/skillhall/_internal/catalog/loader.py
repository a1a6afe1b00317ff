"""Roots and a profile to a catalog: scan, judge, name, order, settle."""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog import head_cache as indexing
from skillhall._internal.catalog.catalog import Catalog, RejectedCandidate, Skill
from skillhall._internal.fs.handles import is_inside
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.precedence import resolve_duplicates
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.stat_prefetch import prefetch_stats
from skillhall._internal.sources.folder.walker import ScanContext, scan_root

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.catalog.head_cache import HeadCache
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.sources.folder.candidate import Candidate
    from skillhall._internal.sources.folder.root import Root
    from skillhall._internal.sources.folder.walker import Scan, ScanProgress

# By place, flat files first; a stable sort by name then leaves equal names in that order.
_BY_FOLDER_AND_FILE = itemgetter(0, 1)
_BY_NAME = itemgetter(0)
_GET_REAL_FOLDER, _GET_REAL_FILE = itemgetter(8), itemgetter(9)


def load_roots(
    roots: Sequence[Root],
    profile: Profile,
    head_cache: HeadCache | None = None,
    progress: ScanProgress | None = None,
    *,
    with_bodies: bool = False,
) -> Catalog:
    """The catalog of what stands below `roots`. Never raises on what it finds there.

    Without `bodies`, only the head of each SKILL.md is read. With them, a skill whose body is not
    text is rejected; the index remembers that for later loads.
    """
    real_roots = tuple(root.real_path for root in roots)
    if profile.scan_policy.search_inside_skills:
        head_cache = (
            None  # every folder is listed anyway, and `agents.instructions` keeps its own cache
        )
    with _pause_gc():
        scans = []
        for root, real in zip(roots, real_roots, strict=True):
            context = ScanContext(profile.key_case, real_roots, {}, progress=progress)
            if head_cache is None:
                found = scan_root(
                    root, profile.scan_policy, context._replace(keep_signatures=with_bodies)
                )
                scans.append(_check_bodies(root, found) if with_bodies else found)
            else:
                known = _RootCache(head_cache, real, with_bodies)
                scans.append(_scan_with_cache(root, profile, context, known))
        return _build_catalog(roots, real_roots, profile, scans)


class _RootCache(NamedTuple):
    """The index for one root, and whether bodies are checked before it remembers."""

    cache: HeadCache
    real_root: str
    with_bodies: bool


def _scan_with_cache(
    root: Root, profile: Profile, context: ScanContext, root_cache: _RootCache
) -> Scan:
    index, real, bodies = root_cache
    started = indexing.now_ns()
    ahead = prefetch_stats(root.path) if index.is_large(real, profile.key_case) else None
    known = index.load(real, profile.key_case)
    stats = None if ahead is None else ahead.result()
    found = scan_root(
        root, profile.scan_policy, context._replace(known_candidates=known, prefetched_stats=stats)
    )
    if bodies:
        found = _check_bodies(root, found)
    index.save(real, profile.key_case, found, started)
    return found


def _check_bodies(root: Root, found: Scan) -> Scan:
    # A listing does not need the parser, and loading it takes a while.
    from skillhall._internal.catalog.body_checks import check_bodies  # noqa: PLC0415

    return check_bodies(root, found)


@contextmanager
def _pause_gc() -> Iterator[None]:
    """Tens of thousands of new objects, none of them garbage: collecting would cost a fifth."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _build_catalog(
    roots: Sequence[Root], real_roots: Sequence[str], profile: Profile, scans: Sequence[Scan]
) -> Catalog:
    skills: list[Skill] = []
    rejected: list[RejectedCandidate] = []
    notes: list[JudgedFinding] = []
    once = _DuplicateFileFilter(real_roots, scans)
    once_has_work = once.is_needed
    for number, (root, real, found) in enumerate(zip(roots, real_roots, scans, strict=True)):
        judge = _RootJudge(root, number, profile)
        notes += profile.load_policy.judge(found.findings)
        found.candidates.sort(key=_BY_FOLDER_AND_FILE)
        for candidate in found.candidates:
            seen = once.find_duplicate(candidate, real) if once_has_work else None
            if seen is None:
                judge.judge(candidate)
            else:
                notes += profile.load_policy.judge([judge.build_same_file_finding(candidate, seen)])
        found.candidates.clear()  # half the memory of a large scan, not needed any more
        judge.skills.sort(key=_BY_NAME)
        skills += judge.skills
        rejected += judge.rejected
    kept, shadowed, findings = resolve_duplicates(skills, profile.precedence_policy)
    notes += profile.load_policy.judge(findings)
    return Catalog(profile, roots, kept, rejected, shadowed, notes)


class _DuplicateFileFilter:
    """Sees to it that one real file gives one skill, however many links and roots lead to it."""

    def __init__(self, real_roots: Sequence[str], scans: Sequence[Scan]) -> None:
        self._roots_overlap = any(
            is_inside(one, other)
            for number, one in enumerate(real_roots)
            for other in (*real_roots[:number], *real_roots[number + 1 :])
        )
        self._direct_paths: set[str] = set()
        self._listed_paths: set[str] = set()
        self._has_links = any(
            any(map(_GET_REAL_FOLDER, found.candidates))
            or any(map(_GET_REAL_FILE, found.candidates))
            for found in scans
        )
        if self._has_links:
            self._direct_paths.update(
                _real_path(candidate, real)
                for real, found in zip(real_roots, scans, strict=True)
                for candidate in found.candidates
                if not _is_linked(candidate)
            )

    @property
    def is_needed(self) -> bool:
        """Whether anything can be met twice at all."""
        return self._roots_overlap or self._has_links

    def find_duplicate(self, candidate: Candidate, real_root: str) -> str | None:
        """The real file, if it is or will be listed under another path."""
        if not self._roots_overlap and not _is_linked(candidate):
            return None
        path = _real_path(candidate, real_root)
        if path in self._listed_paths or (_is_linked(candidate) and path in self._direct_paths):
            return path
        self._listed_paths.add(path)
        return None


def _is_linked(candidate: Candidate) -> bool:
    return candidate.real_folder is not None or candidate.real_file is not None


def _real_path(candidate: Candidate, real_root: str) -> str:
    if candidate.real_file is not None:
        return candidate.real_file.path
    if candidate.real_folder is not None:
        return os.path.join(candidate.real_folder.path, candidate.file)
    return os.path.join(real_root, candidate.folder, candidate.file)


class _RootJudge:
    """Turns the candidates of one root into skills and rejected ones."""

    def __init__(self, root: Root, number: int, profile: Profile) -> None:
        self.root = root
        self.root_number = number
        self.load_policy = profile.load_policy
        self.quiet_codes = profile.load_policy.accepted_codes
        self.label = profile.name_policy
        self.reserved_names = profile.reserved_names
        self.skills: list[Skill] = []
        self.rejected: list[RejectedCandidate] = []

    def judge(self, candidate: Candidate) -> None:
        """Judge one candidate."""
        folder, file, name, description, hidden, fields, _, is_flat, real, real_file, findings = (
            candidate
        )
        own_name = folder.rpartition("/")[2] or self._fallback_name(candidate)
        name, description = self.label(name, description, own_name)
        if name in self.reserved_names:
            findings = (*findings, _reserved_name_finding(name))
        judged = self._judge_findings(findings, candidate, name) if findings else ()
        if judged and any(one.effect is Effect.REJECT for one in judged):
            self.rejected.append(
                RejectedCandidate(self._id(candidate), name, self._location(candidate), judged)
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
                self.root_number,
                fields,
                judged,
                is_flat,
                real,
                real_file,
            )
        )

    def build_same_file_finding(self, candidate: Candidate, real_path: str) -> Finding:
        """The note that a link leads to a skill that is there already."""
        return Finding(
            Code.SAME_FILE,
            f"the link leads to {real_path}, which is listed already",
            path=self._location(candidate),
        )

    def _judge_findings(
        self, findings: tuple[Finding, ...], candidate: Candidate, name: str
    ) -> tuple[JudgedFinding, ...]:
        loud = [found for found in findings if found.code not in self.quiet_codes]
        if not loud:
            return ()
        location = self._location(candidate)
        effects, otherwise = self.load_policy.effects, self.load_policy.default_effect
        return tuple(
            [
                JudgedFinding(
                    Finding(code, message, line, hint, location, name),
                    effects.get(code, otherwise),
                )
                for code, message, line, hint, _, _ in loud
            ]
        )

    def _fallback_name(self, candidate: Candidate) -> str:
        """What a candidate without a folder is called: after its file, or after the root."""
        if candidate.is_flat:
            return candidate.file.rpartition(".")[0]
        return os.path.basename(self.root.path)

    def _id(self, candidate: Candidate) -> str:
        return candidate.folder or self._fallback_name(candidate)

    def _location(self, candidate: Candidate) -> str:
        parts = (self.root.path, candidate.folder, candidate.file)
        return os.sep.join([part for part in parts if part])


def _reserved_name_finding(name: str) -> Finding:
    return Finding(
        Code.NAME_RESERVED,
        f"the name {name!r} is reserved for a route of the server",
        hint="choose another name",
    )
