"""Validation of complete skills below given paths, with all findings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Protocol

from skillhall._internal.authoring.skill_examination import (
    AnySkill,
    Findings,
    RejectedSkill,
    find_problems,
)
from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.head_cache import HeadCache
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import Profile
from skillhall._internal.settings import Settings
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.sources.folder.parsed_heads import ParsedHeads
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import SkillFileNotFound

_DOCUMENT_NAMES = frozenset({"README", "LICENSE", "CHANGELOG", "CONTRIBUTING", "SECURITY"})
_GET_PATH, _GET_LOCATION = attrgetter("path"), attrgetter("location")
_BATCH_SIZE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationResult:
    """One candidate, whether the profile accepts it, and all of its findings.

    >>> [(result.name, result.accepted) for result in validate("skills/pdf-tools").results]
    [('pdf-tools', True)]
    """

    path: str  # the folder; the file itself for a flat file
    location: str  # the SKILL.md, if there is one
    name: str
    accepted: bool
    findings: tuple[JudgedFinding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """Results in path order, and findings of the scan that concern no candidate.

    >>> report = validate("skills")
    >>> report.accepted, len(report.results)
    (True, 3)
    """

    profile: str
    results: tuple[ValidationResult, ...]
    scan_findings: tuple[JudgedFinding, ...]

    @property
    def accepted(self) -> bool:
        """Whether nothing was rejected."""
        is_rejected = any(judged.effect is Effect.REJECT for judged in self.scan_findings)
        return not is_rejected and all(result.accepted for result in self.results)

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """All findings: of the scan, then of each result."""
        return (*self.scan_findings, *(j for result in self.results for j in result.findings))


class MapBatches(Protocol):
    """Applies a function to batches of items, in order, possibly on several cores."""

    def __call__(
        self,
        function: Callable[[Sequence[AnySkill]], list[Findings]],
        items: Sequence[AnySkill],
        /,
    ) -> Iterable[Findings]: ...


def map_in_batches(
    function: Callable[[Sequence[AnySkill]], list[Findings]], items: Sequence[AnySkill], /
) -> Iterator[Findings]:
    """Apply the function to batches of items, on one core."""
    for start in range(0, len(items), _BATCH_SIZE):
        yield from function(items[start : start + _BATCH_SIZE])


def validate(  # noqa: PLR0913 - each is an option of its own
    paths: Sequence[str],
    profile: Profile,
    settings: Settings,
    progress: Callable[[int], None] | None = None,
    *,
    depth: int | None = None,
    map_batches: MapBatches = map_in_batches,
) -> ValidationReport:
    """Validate each candidate below `paths`; without paths, in the profile's folders.

    A path may be a SKILL.md, a skill's folder, or a folder of skills. `depth` limits the levels
    below it. `map_batches` can use several cores.
    Raises: SkillFileNotFound if a path does not exist, ValueError if the depth is out of range.
    """
    base, follow = settings.working_directory, settings.follow_links
    scan_profile = profile.with_depth(depth)
    scan_policy = scan_profile.validation_scan_policy or scan_profile.scan_policy
    if paths:
        # A folder that the user names may be a skill, even if the profile scans only below it.
        scan_policy = scan_policy._replace(include_root=True)
    scan_profile = scan_profile._replace(scan_policy=scan_policy)
    parsed_heads = ParsedHeads()
    find = partial(find_problems, profile=scan_profile, parsed_heads=parsed_heads)

    def load(roots: Sequence[Root]) -> Catalog:
        # The head cache records which bodies are not text, so that `list` rejects these skills too.
        cache = HeadCache(settings.cache_directory) if settings.use_head_cache else None
        return load_roots(
            roots,
            scan_profile,
            cache,
            progress,
            with_bodies=cache is not None,
            parsed_heads=parsed_heads,
        )

    if not paths:
        roots = [
            Root.resolve(path, base, label, is_required=False, follow_links=follow)
            for path, label in profile.roots
        ]
        catalog = load(roots)
        results = _build_results(catalog, partial(map_batches, find))
        return ValidationReport(
            profile=profile.name, results=tuple(results), scan_findings=catalog.scan_findings
        )
    requested = {str(path): path for path in (_resolve_existing(path, base) for path in paths)}
    folders = dict.fromkeys(p if p.is_dir() else p.parent for p in requested.values())
    # One catalog per folder: precedence between the folders must not hide skills.
    catalogs = [load([Root(str(folder), follow_links=follow)]) for folder in folders]
    scan_findings = tuple(dict.fromkeys(j for catalog in catalogs for j in catalog.scan_findings))
    by_location: dict[str, ValidationResult] = {}
    matched: set[str] = set()  # the requested paths with a result
    results = [
        r for catalog in catalogs for r in _build_results(catalog, partial(map_batches, find))
    ]

    @cache  # many results are in the same folder
    def find_requested(folder: str) -> frozenset[str]:
        """Return the requested paths among the folder and its parents."""
        parent = os.path.dirname(folder)
        above = find_requested(parent) if parent != folder else frozenset[str]()
        return above | {folder} if folder in requested else above

    for result in results:
        found = find_requested(os.path.dirname(result.path))
        found = found.union(path for path in (result.location, result.path) if path in requested)
        if found:
            by_location[result.location] = result
            matched |= found
    documents = {
        location: result
        for location, result in by_location.items()
        if _is_document(result) and result.path not in requested
    }
    message = "skipped: a document without frontmatter"
    skipped = (Finding(Code.SKIPPED, message, path=result.path) for result in documents.values())
    scan_findings = (*scan_findings, *profile.load_policy.judge(skipped))
    missing = [
        _build_missing_result(path, scan_findings)
        for text, path in requested.items()
        if text not in matched
    ]
    skills = [result for location, result in by_location.items() if location not in documents]
    return ValidationReport(
        profile=profile.name,
        results=tuple(sorted((*skills, *missing), key=_GET_PATH)),
        scan_findings=scan_findings,
    )


def _is_document(result: ValidationResult) -> bool:
    """Whether a flat file is a README.md or the like, not meant as a skill."""
    if result.path != result.location:
        return False
    name = Path(result.path).stem
    has_none = any(judged.finding.code is Code.NO_FRONTMATTER for judged in result.findings)
    return has_none and (name.isupper() or name.upper() in _DOCUMENT_NAMES)


def _resolve_existing(path: str, base: str) -> Path:
    resolved = Path(Root.resolve(path, base).path)
    try:
        resolved.lstat()
    except (OSError, ValueError):
        raise SkillFileNotFound(path) from None
    return resolved


def _build_missing_result(path: Path, scan_findings: Iterable[JudgedFinding]) -> ValidationResult:
    """Build the result for a requested path without a candidate."""
    reasons = tuple(
        judged
        for judged in scan_findings
        if judged.finding.path == str(path) and judged.finding.code is not Code.BOUND_REACHED
    )
    if not reasons:
        problem = "contains no SKILL.md" if path.is_dir() else "is not a SKILL.md file"
        hint = "give a SKILL.md, the folder of a skill, or a folder of skills"
        missing = Finding(Code.NO_SKILL_MD, f"{path.name!r} {problem}", 1, hint, str(path))
        reasons = (JudgedFinding(missing, Effect.REJECT),)
    return ValidationResult(
        path=str(path), location=str(path), name="", accepted=False, findings=reasons
    )


def _build_results(
    catalog: Catalog, find_all: Callable[[Sequence[AnySkill]], Iterable[Findings]]
) -> list[ValidationResult]:
    candidates: list[AnySkill] = [*catalog.skills]
    candidates += (shadowed.skill for shadowed in catalog.shadowed)
    for rejected in catalog.rejected:
        folder, file = os.path.split(rejected.location)
        if not is_skill_md(file) and os.path.isdir(rejected.location):
            folder, file = rejected.location, ""
        handle = FolderHandle(folder)
        candidates.append(
            RejectedSkill(handle, file, rejected.location, rejected.name, rejected.findings)
        )
    # Neighbors on disk are read together: they share the folders above.
    candidates.sort(key=_GET_LOCATION)
    return sorted(map(_build_result, candidates, find_all(candidates)), key=_GET_PATH)


def _build_result(skill: AnySkill, findings: Findings) -> ValidationResult:
    path = location = skill.location
    if skill.file and is_skill_md(skill.file):
        path = os.path.dirname(location)
    accepted = True
    for _, effect in findings:
        accepted = accepted and effect is not Effect.REJECT
    return ValidationResult(
        path=path, location=location, name=skill.name, accepted=accepted, findings=findings
    )
