"""Roots and a profile to a catalog: scan, judge, name, order, settle."""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillhall.catalog import index as indexing
from skillhall.catalog.catalog import Catalog, Rejected, Skill
from skillhall.policy.loading import Effect, Judged
from skillhall.policy.precedence import settle
from skillhall.skill.finding import Code, Finding
from skillhall.sources.directory import ScanContext, scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall.catalog.index import HeadIndex
    from skillhall.policy.profiles import Profile
    from skillhall.sources.candidate import Candidate
    from skillhall.sources.directory import Progress, Scan
    from skillhall.sources.roots import Root


def load_roots(
    roots: Sequence[Root],
    profile: Profile,
    index: HeadIndex | None = None,
    progress: Progress | None = None,
) -> Catalog:
    """The catalog of what stands below `roots`. Never raises on what it finds there."""
    real_roots = tuple(os.path.realpath(root.path) for root in roots)
    with _collector_paused():
        scans = []
        for root, real in zip(roots, real_roots, strict=True):
            started = indexing.now()
            known = {} if index is None else index.known(real, profile.keys)
            context = ScanContext(profile.keys, real_roots, known, progress)
            found = scan(root, profile.scan, context)
            if index is not None:
                index.remember(real, profile.keys, found, started)
            scans.append(found)
        return _settle(roots, real_roots, profile, scans)


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
    for number, (root, found) in enumerate(zip(roots, scans, strict=True)):
        judge = _Judge(root, number, profile)
        notes += profile.load.judge(found.findings)
        for candidate in found.candidates:
            seen = once.seen(candidate)
            if seen is None:
                judge.take(candidate)
            else:
                notes += profile.load.judge([judge.same_file(candidate, seen)])
        skills += sorted(judge.skills, key=_order)
        rejected += sorted(judge.rejected, key=_location)
    kept, shadowed, findings = settle(skills, profile.precedence)
    notes += profile.load.judge(findings)
    return Catalog(
        profile, tuple(roots), tuple(kept), tuple(rejected), tuple(shadowed), tuple(notes)
    )


def _order(skill: Skill) -> tuple[str, bool, str, str]:
    return skill.name, not skill.is_flat, skill.folder, skill.file


def _location(lost: Rejected) -> str:
    return lost.location


class _Once:
    """Sees to it that one real folder gives one skill, however many links lead to it."""

    def __init__(self, real_roots: Sequence[str], scans: Sequence[Scan]) -> None:
        self._taken: set[str] = set()
        if any(c.real is not None for found in scans for c in found.candidates):
            self._taken.update(
                os.path.join(real, candidate.folder)
                for real, found in zip(real_roots, scans, strict=True)
                for candidate in found.candidates
                if candidate.real is None
            )

    def seen(self, candidate: Candidate) -> str | None:
        """Where the folder behind a link was met before, if it was."""
        if candidate.real is None:
            return None
        path = candidate.real.path
        if path in self._taken:
            return path
        self._taken.add(path)
        return None


class _Judge:
    """Turns the candidates of one root into skills and rejected ones."""

    def __init__(self, root: Root, number: int, profile: Profile) -> None:
        self.root = root
        self.number = number
        self.profile = profile
        self.load = profile.load
        self.skills: list[Skill] = []
        self.rejected: list[Rejected] = []

    def take(self, candidate: Candidate) -> None:
        """Judge one candidate."""
        name, description = self.profile.label(candidate.frontmatter, self._label(candidate))
        findings = candidate.findings
        if name in self.profile.reserved_names:
            findings = (*findings, _reserved(name))
        judged = self._judge(findings, candidate, name) if findings else ()
        if any(one.effect is Effect.REJECT for one in judged):
            self.rejected.append(
                Rejected(self._id(candidate), name, self._location(candidate), judged)
            )
            return
        self.skills.append(
            Skill(
                name,
                description,
                candidate.folder,
                candidate.file,
                self.root,
                self.number,
                candidate.frontmatter,
                judged,
                candidate.is_flat,
                candidate.real,
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
        effects = [(found, self.load.effect(found.code)) for found in findings]
        location = self._location(candidate)
        return tuple(
            [
                Judged(found.at(location, name), effect)
                for found, effect in effects
                if effect is not Effect.ACCEPT
            ]
        )

    def _label(self, candidate: Candidate) -> str:
        if candidate.is_flat:
            return candidate.file.rpartition(".")[0]
        return candidate.folder.rpartition("/")[2] or os.path.basename(self.root.path)

    def _id(self, candidate: Candidate) -> str:
        return candidate.folder or self._label(candidate)

    def _location(self, candidate: Candidate) -> str:
        return os.path.join(self.root.path, candidate.folder, candidate.file).rstrip("/")


def _reserved(name: str) -> Finding:
    return Finding(
        Code.NAME_RESERVED,
        f"the name {name!r} is reserved for a route of the server",
        hint="choose another name",
    )
