"""Catalog loader: scans roots and applies a profile."""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.catalog import (
    Catalog,
    CatalogRoot,
    CatalogSkill,
    RejectedCandidate,
)
from skillhall._internal.catalog.head_cache import now_ns
from skillhall._internal.fs.handles import is_inside
from skillhall._internal.fs.signatures import get_last_change
from skillhall._internal.policy.duplicate_precedence import resolve_duplicates
from skillhall._internal.policy.effects import JudgedFinding, judge_rows
from skillhall._internal.policy.folder_walk_rules import WORKSPACE_SUFFIX, is_eval_result
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.candidate import is_larger_than_head
from skillhall._internal.sources.folder.root import PROJECT_SOURCE
from skillhall._internal.sources.folder.walker import ScanContext, scan_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from skillhall._internal.catalog.head_cache import HeadCache, RootCache
    from skillhall._internal.fs.signatures import PackedSignature
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.sources.folder.candidate import Candidate
    from skillhall._internal.sources.folder.parsed_heads import ParsedHeads
    from skillhall._internal.sources.folder.root import Root
    from skillhall._internal.sources.folder.walker import Scan, ScanProgress

# Sorted by path, flat files first; the stable sort by name then keeps that order for equal names.
_BY_FOLDER, _BY_FILE = itemgetter(0), itemgetter(1)
_BY_NAME = itemgetter(0)
# By index, because attribute access is slower and large scans have thousands of candidates.
_GET_REAL_FOLDER, _GET_REAL_FILE = itemgetter(8), itemgetter(9)


def load_roots(  # noqa: PLR0913 - each is an option of its own
    roots: Sequence[Root],
    profile: Profile,
    head_cache: HeadCache | None = None,
    progress: ScanProgress | None = None,
    *,
    with_bodies: bool = False,
    linked_folders: Sequence[str] = (),
    on_scan: Callable[[Scan, int], None] | None = None,
    parsed_heads: ParsedHeads | None = None,
) -> Catalog:
    """Load the skills below `roots`. Invalid content never raises.

    Links may lead out of the roots into `linked_folders`.
    `on_scan` is called with the scan of each root and the time at which it started.
    `parsed_heads` stores the heads that are parsed, for checks of the complete files.

    Without `with_bodies`, only the head of each SKILL.md is read. With it, skills whose body is not
    text are rejected; the head cache remembers that for later loads.
    """
    real_roots = tuple(root.real_path for root in roots)
    if profile.scan_policy.search_inside_skills:
        # Every folder is listed anyway, and the agents of this profile have a cache of their own.
        head_cache = None
    targets = (*real_roots, *linked_folders)
    context = ScanContext(
        profile.key_case, targets, {}, progress=progress, parsed_heads=parsed_heads
    )
    if head_cache is None:
        context = context._replace(keep_signatures=with_bodies)
    scans, settled = [], []
    with _pause_gc():
        for root, real in zip(roots, real_roots, strict=True):
            started = now_ns()
            cache = None if head_cache is None else head_cache.open(root, real, profile)
            settled.append(started - CLOCK_GRANULARITY)
            context = context._replace(settled_before_ns=settled[-1])
            scan = _scan(root, profile, context, cache)
            if with_bodies and any(map(is_larger_than_head, scan.candidates)):
                # A listing needs neither the parser nor the reader of bundles, whose import would
                # add 28 ms of CPU to its 45 ms.
                from skillhall._internal.catalog.skill_content import check_bodies  # noqa: PLC0415

                scan = check_bodies(root, scan)
            if cache is not None:
                cache.save(scan, started)
            if on_scan is not None:
                on_scan(scan, started)
            scans.append(scan)
        cache = None  # its candidates would stay in memory next to the skills made from them
        judged = _judge_scans(roots, real_roots, profile, scans, settled)
        return build_catalog(roots, profile, judged)


def _scan(root: Root, profile: Profile, context: ScanContext, cache: RootCache | None) -> Scan:
    """Scan a root, or only what has changed since the cached scan."""

    def scan_names(names: Iterable[str]) -> Scan:
        return scan_root(root, profile.scan_policy, context._replace(names=names))

    if cache is None:
        return scan_root(root, profile.scan_policy, context)
    if (scan := cache.find_scan(scan_names)) is not None:
        return scan
    known = context._replace(known_candidates=cache.by_folder())
    return scan_root(root, profile.scan_policy, known)


def scan_folders(
    roots: Sequence[Root], profile: Profile, names: Sequence[Iterable[str] | None]
) -> list[JudgedScan]:
    """Scan the named folders of each root, or all of them where `names` has `None`.

    Equal names in different scans are not resolved; `build_catalog` does that.
    """
    real_roots = tuple(root.real_path for root in roots)
    context = ScanContext(profile.key_case, real_roots, {}, keep_signatures=False)
    with _pause_gc():
        scans = [
            scan_root(root, profile.scan_policy, context._replace(names=some))
            for root, some in zip(roots, names, strict=True)
        ]
        return _judge_scans(roots, real_roots, profile, scans)


class JudgedScan(NamedTuple):
    """Accepted and rejected candidates of a root, and findings about skipped entries."""

    skills: list[CatalogSkill]  # in name order
    rejected: list[RejectedCandidate]  # in path order
    findings: list[JudgedFinding]
    has_links: bool = False  # whether a skill is behind a link


@contextmanager
def _pause_gc() -> Iterator[None]:
    # A scan creates tens of thousands of objects but no garbage; collecting takes a fifth of the
    # time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _judge_scans(
    roots: Sequence[Root],
    real_roots: Sequence[str],
    profile: Profile,
    scans: Sequence[Scan],
    settled_before_ns: Sequence[int] = (),
) -> list[JudgedScan]:
    judged_scans = []
    duplicates = _DuplicateFileFilter(real_roots, scans)
    has_duplicates = duplicates.is_needed
    for number, (root, real, scan) in enumerate(zip(roots, real_roots, scans, strict=True)):
        settled = settled_before_ns[number] if settled_before_ns else 0
        judge = _RootJudge(root, number, profile, settled)
        findings = profile.load_policy.judge(scan.findings)
        # Two sorts by one string each take half the time of one sort by pairs.
        scan.candidates.sort(key=_BY_FILE)
        scan.candidates.sort(key=_BY_FOLDER)
        # Otherwise, the output of an agent could become a skill of other agents.
        results = _find_eval_results(scan.candidates)
        if results:
            left_out = {one.folder for one in results}
            scan.candidates[:] = [one for one in scan.candidates if one.folder not in left_out]
            findings += profile.load_policy.judge(map(judge.build_eval_result_finding, results))
        if has_duplicates:
            unique = []
            for candidate in scan.candidates:
                listed = duplicates.find_duplicate(candidate, real)
                if listed is None:
                    unique.append(candidate)
                else:
                    finding = judge.build_same_file_finding(candidate, listed)
                    findings += profile.load_policy.judge([finding])
            scan.candidates[:] = unique
        judge.judge(scan.candidates)
        judge.skills.sort(key=_BY_NAME)
        judged = JudgedScan(judge.skills, judge.rejected, [*findings], duplicates.has_links)
        judged_scans.append(judged)
    return judged_scans


def build_catalog(
    roots: Sequence[Root], profile: Profile, judged_scans: Iterable[JudgedScan]
) -> Catalog:
    """Combine the scans of the roots into a catalog; resolve equal names and ids."""
    skills: list[CatalogSkill] = []
    rejected: list[RejectedCandidate] = []
    root_findings: list[JudgedFinding] = []
    for judged in judged_scans:
        skills += judged.skills
        rejected += judged.rejected
        root_findings += judged.findings
    accepted, duplicates = resolve_duplicates(skills, profile.precedence_policy)
    return Catalog(profile, roots, accepted, rejected, duplicates, root_findings)


class _DuplicateFileFilter:
    """Finds candidates whose real file is listed under another path."""

    def __init__(self, real_roots: Sequence[str], scans: Sequence[Scan]) -> None:
        self._roots_overlap = any(
            is_inside(root, other)
            for number, root in enumerate(real_roots)
            for other in (*real_roots[:number], *real_roots[number + 1 :])
        )
        self._direct_paths: set[str] = set()
        self._listed_paths: set[str] = set()
        self.has_links = any(
            any(map(_GET_REAL_FOLDER, scan.candidates)) or any(map(_GET_REAL_FILE, scan.candidates))
            for scan in scans
        )
        if self.has_links:
            self._direct_paths.update(
                _real_path(candidate, real)
                for real, scan in zip(real_roots, scans, strict=True)
                for candidate in scan.candidates
                if not _is_linked(candidate)
            )

    @property
    def is_needed(self) -> bool:
        """Whether there can be duplicates at all."""
        return self._roots_overlap or self.has_links

    def find_duplicate(self, candidate: Candidate, real_root: str) -> str | None:
        """Return the real path if that file is, or will be, listed under another path."""
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


def _find_eval_results(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the files that agents wrote during evals, and the workspaces next to skills."""
    empty = [one for one in candidates if not one.file and one.folder.endswith(WORKSPACE_SUFFIX)]
    skills = {f"{one.folder}{WORKSPACE_SUFFIX}" for one in candidates if one.file} if empty else ()
    workspaces = {one.folder for one in empty if one.folder in skills}
    return [one for one in candidates if one.folder in workspaces or is_eval_result(one.folder)]


class _RootJudge:
    """Applies the profile to the candidates of one root."""

    def __init__(self, root: Root, number: int, profile: Profile, settled_before_ns: int) -> None:
        self.root = root
        self.settled_before_ns = settled_before_ns
        self.catalog_root = CatalogRoot(root, number, profile.load_policy)
        self.load_policy = profile.load_policy
        self.name_policy = profile.name_policy
        self.reserved_names = profile.reserved_names
        self.skills: list[CatalogSkill] = []
        self.rejected: list[RejectedCandidate] = []

    def judge(self, candidates: list[Candidate]) -> None:
        """Move the candidates to `skills` or `rejected`, in order."""
        # One call for all, local names and unpacking, since there may be tens of thousands.
        name_policy, reserved_names = self.name_policy, self.reserved_names
        if not candidates:
            return
        quiet, rejecting = self.load_policy.accepted_codes, self.load_policy.rejecting_codes
        catalog_root, load_policy = self.catalog_root, self.load_policy
        may_need_approval = self.root.source == PROJECT_SOURCE
        skills, new = self.skills, tuple.__new__
        candidates.reverse()
        while candidates:
            candidate = candidates.pop()  # a large scan is not needed twice in memory
            folder, file, name, description, hidden, fields, _, is_flat, real, real_file, rows = (
                candidate
            )
            folder_name = folder.rpartition("/")[2] or self._fallback_name(candidate)
            name, description = name_policy(name, description, folder_name)
            if name in reserved_names:
                message = f"the name {name!r} is reserved for a route of the server"
                reserved = Finding(Code.NAME_RESERVED, message, hint="choose another name")
                rows = (*rows, reserved)
            if rows:
                reported = []
                is_rejected = False
                for row in rows:
                    if row[0] not in quiet:
                        reported.append(row)
                        is_rejected = is_rejected or row[0] in rejecting
                if is_rejected:
                    skill_id, location = folder or folder_name, self._location(candidate)
                    judged = judge_rows(reported, load_policy, location, name)
                    self.rejected.append(RejectedCandidate(skill_id, name, location, judged))
                    continue
                if len(reported) != len(rows):
                    rows = tuple(reported)
            if may_need_approval:
                catalog_root = self._add_signature(candidate.signature)
            skill = (
                name,
                description,
                hidden,
                folder,
                file,
                catalog_root,
                fields,
                rows,
                is_flat,
                real,
                real_file,
            )
            skills.append(new(CatalogSkill, skill))  # as `CatalogSkill(…)`, in half the time

    def _add_signature(self, signature: PackedSignature | None) -> CatalogRoot:
        """Return the root with a signature, if every later change must change the signature."""
        if signature is None or get_last_change(signature) >= self.settled_before_ns:
            return self.catalog_root
        return self.catalog_root._replace(signature=signature)

    def build_eval_result_finding(self, candidate: Candidate) -> Finding:
        """Build the finding for a workspace of evals, or a file in it."""
        message = "skipped: it is a result of an eval"
        return Finding(Code.SKIPPED, message, path=self._location(candidate))

    def build_same_file_finding(self, candidate: Candidate, real_path: str) -> Finding:
        """Build the finding for a file that is already listed under another path."""
        message = f"this is the same file as {real_path}, which is already listed"
        return Finding(Code.SAME_FILE, message, path=self._location(candidate))

    def _fallback_name(self, candidate: Candidate) -> str:
        """Return the name for a candidate without a folder, from its file or the root."""
        if candidate.is_flat:
            return candidate.file.rpartition(".")[0]
        return os.path.basename(self.root.path)

    def _location(self, candidate: Candidate) -> str:
        parts = (self.root.path, candidate.folder, candidate.file)
        return os.sep.join([part for part in parts if part])
