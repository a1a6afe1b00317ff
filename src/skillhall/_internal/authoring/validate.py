"""Validation of complete skills below some paths, with all findings."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.head_cache import HeadCache
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import MAX_SKILL_MD_BYTES, is_skill_md
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, ParsedSkill
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.references import check_references
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.sources.folder.bundle_reader import open_bundle, read_file_at
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import SkillFileNotFound, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill, RejectedCandidate
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings

_DOCUMENT_NAMES = frozenset({"README", "LICENSE", "CHANGELOG", "CONTRIBUTING", "SECURITY"})
_UNREAD_SKILL = ParsedSkill(EMPTY_FRONTMATTER, "", ())


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """One candidate, whether the profile accepts it, and all its findings."""

    path: str  # the folder; the file itself for a flat file
    location: str  # the SKILL.md, if there is one
    name: str
    accepted: bool
    findings: tuple[JudgedFinding, ...]


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """Results in path order, and findings of the scan that concern no candidate."""

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


@dataclass(frozen=True, slots=True)
class SkillExamination:
    """A completely read skill: SKILL.md, files and findings."""

    parsed: ParsedSkill
    bundle: Bundle
    findings: tuple[JudgedFinding, ...]


class _CandidateLocation(NamedTuple):
    """Location of a candidate, and its findings in the catalog."""

    folder_handle: FolderHandle
    file: str
    location: str
    name: str
    known_findings: tuple[JudgedFinding, ...]

    @property
    def is_flat(self) -> bool:
        return bool(self.file) and not is_skill_md(self.file)


def validate(
    paths: Sequence[str],
    profile: Profile,
    settings: Settings,
    progress: Callable[[int], None] | None = None,
    *,
    depth: int | None = None,
) -> ValidationReport:
    """Validate each candidate below `paths`, or in the folders of the profile.

    A path may be a SKILL.md, a skill's folder, or a folder of skills. `depth` limits the levels
    below it. Raises: SkillFileNotFound if a path does not exist, ValueError.
    """
    base, follow = settings.working_directory, settings.follow_links
    scan_profile = profile.with_depth(depth)
    scan_policy = scan_profile.validation_scan_policy or scan_profile.scan_policy
    load = partial(_load_catalog, settings=settings, progress=progress)
    if not paths:
        scan_profile = scan_profile._replace(scan_policy=scan_policy)
        roots = [
            Root.resolve(path, base, label, is_required=False, follow_links=follow)
            for path, label in profile.roots
        ]
        catalog = load(roots, scan_profile)
        results = _build_results(catalog, scan_profile)
        return ValidationReport(profile.name, tuple(results), catalog.scan_findings)
    requested = list(dict.fromkeys(_resolve_existing(path, base) for path in paths))
    # A folder that the user names may be a skill itself, even if the profile scans only below it.
    scan_profile = scan_profile._replace(scan_policy=scan_policy._replace(include_root=True))
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in requested)
    # One catalog per folder: precedence between the folders must not hide skills.
    catalogs = [load([Root(str(folder), follow_links=follow)], scan_profile) for folder in folders]
    scan_findings = tuple(dict.fromkeys(j for catalog in catalogs for j in catalog.scan_findings))
    requested_paths = frozenset(map(str, requested))
    by_location = {
        result.location: result
        for catalog in catalogs
        for result in _build_results(catalog, scan_profile)
        if _match_requested_paths(result, requested_paths)
    }
    documents = [
        result
        for result in by_location.values()
        if _is_document(result) and result.path not in requested_paths
    ]
    skipped = profile.load_policy.judge(map(_build_skipped_finding, documents))
    scan_findings = (*scan_findings, *skipped)
    matched = {
        path
        for result in by_location.values()
        for path in _match_requested_paths(result, requested_paths)
    }
    missing = [
        _build_missing_result(path, scan_findings) for path in requested if str(path) not in matched
    ]
    skills = [result for result in by_location.values() if result not in documents]
    results = sorted((*skills, *missing), key=_get_path)
    return ValidationReport(profile.name, tuple(results), scan_findings)


def _load_catalog(
    roots: Sequence[Root],
    profile: Profile,
    settings: Settings,
    progress: Callable[[int], None] | None,
) -> Catalog:
    if not settings.use_head_cache:
        return load_roots(roots, profile, None, progress)
    # The head cache remembers bodies that are not text, so that `list` rejects them too.
    head_cache = HeadCache(settings.cache_directory)
    return load_roots(roots, profile, head_cache, progress, with_bodies=True)


def _is_document(result: ValidationResult) -> bool:
    """Whether a flat file is a README.md or the like, not meant as a skill."""
    is_flat, name = result.path == result.location, Path(result.path).stem
    has_none = any(judged.finding.code is Code.NO_FRONTMATTER for judged in result.findings)
    return is_flat and has_none and (name.isupper() or name.upper() in _DOCUMENT_NAMES)


def _build_skipped_finding(result: ValidationResult) -> Finding:
    message = "skipped: a document without frontmatter"
    return Finding(Code.SKIPPED, message, path=result.path)


def examine_skill(skill: CatalogSkill, profile: Profile) -> SkillExamination:
    """Read a skill of a catalog completely; findings include accepted ones."""
    return _examine_candidate(_locate_skill(skill), profile)


def _resolve_existing(path: str, base: str) -> Path:
    resolved = Path(Root.resolve(path, base).path)
    try:
        resolved.lstat()
    except (OSError, ValueError):
        raise SkillFileNotFound(path) from None
    return resolved


def _match_requested_paths(result: ValidationResult, requested_paths: frozenset[str]) -> set[str]:
    """Return the requested paths that include a result: its file or a parent."""
    paths = {result.location, result.path, *map(str, Path(result.path).parents)}
    return paths & requested_paths


def _build_missing_result(path: Path, scan_findings: Iterable[JudgedFinding]) -> ValidationResult:
    """Build the result for a requested path without a candidate."""
    reasons = tuple(
        judged
        for judged in scan_findings
        if judged.finding.path == str(path) and judged.finding.code is not Code.BOUND_REACHED
    )
    if not reasons:
        problem = "contains no SKILL.md" if path.is_dir() else "is not a SKILL.md"
        hint = "name a SKILL.md, a skill's folder, or a folder of skills"
        missing = Finding(Code.NO_SKILL_MD, f"{path.name!r} {problem}", 1, hint, str(path))
        reasons = (JudgedFinding(missing, Effect.REJECT),)
    return ValidationResult(str(path), str(path), "", accepted=False, findings=reasons)


def _get_path(result: ValidationResult) -> str:
    return result.path


def _build_results(catalog: Catalog, profile: Profile) -> list[ValidationResult]:
    candidates = [
        *(_locate_skill(skill) for skill in catalog.skills),
        *(_locate_skill(shadowed.skill) for shadowed in catalog.shadowed),
        *(_locate_rejected(rejected) for rejected in catalog.rejected),
    ]
    return sorted((_build_result(c, profile) for c in candidates), key=_get_path)


def _locate_skill(skill: CatalogSkill) -> _CandidateLocation:
    return _CandidateLocation(
        skill.folder_handle, skill.file, skill.location, skill.name, skill.findings
    )


def _locate_rejected(rejected: RejectedCandidate) -> _CandidateLocation:
    path, name, findings = Path(rejected.location), rejected.name, rejected.findings
    if path.is_dir() and not is_skill_md(path.name):
        return _CandidateLocation(FolderHandle(str(path)), "", str(path), name, findings)
    folder = FolderHandle(str(path.parent))
    return _CandidateLocation(folder, path.name, rejected.location, name, findings)


def _build_result(candidate: _CandidateLocation, profile: Profile) -> ValidationResult:
    findings = (
        _examine_candidate(candidate, profile).findings
        if candidate.file
        else candidate.known_findings
    )
    location = Path(candidate.location)
    path = candidate.location if candidate.is_flat or not candidate.file else str(location.parent)
    accepted = not any(judged.effect is Effect.REJECT for judged in findings)
    return ValidationResult(path, candidate.location, candidate.name, accepted, findings)


def _examine_candidate(candidate: _CandidateLocation, profile: Profile) -> SkillExamination:
    bundle = _open_bundle(candidate, profile)
    handle = candidate.folder_handle
    try:
        data = read_file_at(handle, RelativePath.parse(candidate.file), MAX_SKILL_MD_BYTES)
    except SkillhallError:
        # The scan has reported the unreadable SKILL.md; the other files may still be risky.
        risks = profile.load_policy.judge(_scan_risks(candidate, bundle, _UNREAD_SKILL))
        findings = (*candidate.known_findings, *risks)
        return SkillExamination(_UNREAD_SKILL, Bundle(handle.path, {}), findings)
    folder = None if candidate.is_flat else Path(candidate.location).parent.name
    parsed = parse_skill(data, folder, profile.key_case)
    scanned = _build_flat_bundle(candidate, data) if candidate.is_flat else bundle
    judged_findings = profile.load_policy.judge(
        (
            *(f.with_location(candidate.location, candidate.name) for f in parsed.findings),
            *_check_files(data, candidate, bundle, parsed),
            *_scan_risks(candidate, scanned, parsed),
        )
    )
    codes = {judged.finding.code for judged in judged_findings}
    known = [judged for judged in candidate.known_findings if judged.finding.code not in codes]
    return SkillExamination(parsed, bundle, (*known, *judged_findings))


def _open_bundle(candidate: _CandidateLocation, profile: Profile) -> Bundle:
    if not candidate.is_flat:
        with suppress(SkillFileNotFound):
            return open_bundle(candidate.folder_handle, profile.scan_policy)
    return Bundle(candidate.folder_handle.path, {})


def _check_files(
    data: bytes, candidate: _CandidateLocation, bundle: Bundle, parsed: ParsedSkill
) -> Iterator[Finding]:
    """Yield findings about the files of the skill and about links to missing files."""
    directory = Path(candidate.location).parent
    for finding in bundle.findings:
        yield finding.with_location(str(directory / finding.path), candidate.name)
    if candidate.is_flat or not parsed.body:
        return
    skipped = {finding.path for finding in bundle.findings}
    for missing in check_references(data, bundle.files.keys() | skipped):
        yield missing.with_location(candidate.location, candidate.name)


def _scan_risks(
    candidate: _CandidateLocation, bundle: Bundle, parsed: ParsedSkill
) -> Iterator[Finding]:
    directory = Path(candidate.location).parent
    for finding in scan_bundle(bundle, parsed.frontmatter):
        yield finding.with_location(str(directory / finding.path), candidate.name)


def _build_flat_bundle(candidate: _CandidateLocation, data: bytes) -> Bundle:
    path = RelativePath.parse(candidate.file)
    file = SkillFile(path, len(data), executable=False, read=lambda: data)
    return Bundle(candidate.folder_handle.path, {candidate.file: file})
