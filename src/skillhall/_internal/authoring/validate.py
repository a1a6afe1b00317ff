"""Validating: every skill below some paths, read whole, with every finding about it."""

from __future__ import annotations

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

    from skillhall._internal.catalog.catalog import Catalog, RejectedCandidate, Skill
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings

_DOCUMENT_NAMES = frozenset({"README", "LICENSE", "CHANGELOG", "CONTRIBUTING", "SECURITY"})
_UNREAD_SKILL = ParsedSkill(EMPTY_FRONTMATTER, "", ())


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """One candidate: where it stands, whether the profile takes it, and every finding about it."""

    path: str  # the folder; the file itself for a flat file
    location: str  # the SKILL.md, where there is one
    name: str
    accepted: bool
    findings: tuple[JudgedFinding, ...]


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The results in path order, and what the walk noticed beside them."""

    profile: str
    results: tuple[ValidationResult, ...]
    scan_findings: tuple[JudgedFinding, ...]

    @property
    def accepted(self) -> bool:
        """Whether nothing was rejected."""
        rejecting = any(note.effect is Effect.REJECT for note in self.scan_findings)
        return not rejecting and all(result.accepted for result in self.results)

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """Everything that was noticed: about the walk, then result by result."""
        return (*self.scan_findings, *(one for result in self.results for one in result.findings))


@dataclass(frozen=True, slots=True)
class SkillExamination:
    """A skill read whole."""

    parsed: ParsedSkill
    bundle: Bundle
    findings: tuple[JudgedFinding, ...]


class _CandidateLocation(NamedTuple):
    """Where a candidate stands, and what the catalog said about it."""

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
    """What the profile makes of each candidate below `paths`, or below its own folders.

    A path may be a SKILL.md, a skill's folder, or a folder of skills. `depth` is how many levels
    below it are searched. Raises: SkillFileNotFound if a path leads nowhere, ValueError.
    """
    base, follow = settings.working_directory, settings.follow_links
    chosen = profile.with_depth(depth)
    chosen = chosen._replace(scan_policy=chosen.validation_scan_policy or chosen.scan_policy)
    load = partial(_load_catalog, settings=settings, progress=progress)
    if not paths:
        roots = [
            Root.resolve(path, base, label, is_required=False, follow_links=follow)
            for path, label in profile.roots
        ]
        catalog = load(roots, chosen)
        return ValidationReport(
            profile.name, tuple(_build_results(catalog, chosen)), catalog.scan_findings
        )
    wanted = list(dict.fromkeys(_resolve_existing(path, base) for path in paths))
    # Whoever names a folder means it, even where the profile looks only at what is inside.
    chosen = chosen._replace(scan_policy=chosen.scan_policy._replace(include_root=True))
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in wanted)
    # Each folder alone: they are places to check here, not an order of precedence.
    catalogs = [load([Root(str(one), follow_links=follow)], chosen) for one in folders]
    notes = tuple(dict.fromkeys(note for catalog in catalogs for note in catalog.scan_findings))
    asked = frozenset(map(str, wanted))
    found = {
        result.location: result
        for catalog in catalogs
        for result in _build_results(catalog, chosen)
        if _match_requested_paths(result, asked)
    }
    documents = [one for one in found.values() if _is_document(one) and one.path not in asked]
    notes = (*notes, *profile.load_policy.judge(_build_skipped_finding(one) for one in documents))
    answered = {path for result in found.values() for path in _match_requested_paths(result, asked)}
    missed = [_build_missing_result(path, notes) for path in wanted if str(path) not in answered]
    kept = [one for one in found.values() if one not in documents]
    results = sorted((*kept, *missed), key=_get_path)
    return ValidationReport(profile.name, tuple(results), notes)


def _load_catalog(
    roots: Sequence[Root],
    profile: Profile,
    settings: Settings,
    progress: Callable[[int], None] | None,
) -> Catalog:
    """The catalog to check. The index learns of unreadable bodies, so that `list` agrees."""
    if not settings.use_head_cache:
        return load_roots(roots, profile, None, progress)
    index = HeadCache(settings.cache_directory)
    return load_roots(roots, profile, index, progress, with_bodies=True)


def _is_document(result: ValidationResult) -> bool:
    """Whether it is a README.md or the like: a file next to skills that is not meant as one."""
    is_flat, name = result.path == result.location, Path(result.path).stem
    has_none = any(one.finding.code is Code.NO_FRONTMATTER for one in result.findings)
    return is_flat and has_none and (name.isupper() or name.upper() in _DOCUMENT_NAMES)


def _build_skipped_finding(result: ValidationResult) -> Finding:
    message = "passed over: a document without frontmatter"
    return Finding(Code.SKIPPED, message, path=result.path)


def examine_skill(skill: Skill, profile: Profile) -> SkillExamination:
    """A skill of a catalog, read whole, with every finding, accepted ones included."""
    spot = _CandidateLocation(
        skill.folder_handle, skill.file, skill.location, skill.name, skill.findings
    )
    return _examine_candidate(spot, profile)


def _resolve_existing(path: str, base: str) -> Path:
    found = Path(Root.resolve(path, base).path)
    try:
        found.lstat()
    except (OSError, ValueError):
        raise SkillFileNotFound(path) from None
    return found


def _match_requested_paths(result: ValidationResult, requested_paths: frozenset[str]) -> set[str]:
    """The paths that ask for a result: a folder for all it holds, a SKILL.md for itself."""
    above = {result.location, result.path, *map(str, Path(result.path).parents)}
    return above & requested_paths


def _build_missing_result(path: Path, notes: Iterable[JudgedFinding]) -> ValidationResult:
    """The result for a path that gave no candidate: it was named by mistake, or is broken."""
    about = (note for note in notes if note.finding.path == str(path))
    reasons = tuple(note for note in about if note.finding.code is not Code.BOUND_REACHED)
    if not reasons:
        what = "holds no SKILL.md" if path.is_dir() else "is not a SKILL.md"
        hint = "name a SKILL.md, a skill's folder, or a folder of skills"
        missing = Finding(Code.NO_SKILL_MD, f"{path.name!r} {what}", 1, hint, str(path))
        reasons = (JudgedFinding(missing, Effect.REJECT),)
    return ValidationResult(str(path), str(path), "", accepted=False, findings=reasons)


def _get_path(result: ValidationResult) -> str:
    return result.path


def _build_results(catalog: Catalog, profile: Profile) -> list[ValidationResult]:
    spots = [
        *(_locate_skill(skill) for skill in catalog.skills),
        *(_locate_skill(shadowed.skill) for shadowed in catalog.shadowed),
        *(_locate_rejected(rejected) for rejected in catalog.rejected),
    ]
    return sorted((_build_result(spot, profile) for spot in spots), key=_get_path)


def _locate_skill(skill: Skill) -> _CandidateLocation:
    return _CandidateLocation(
        skill.folder_handle, skill.file, skill.location, skill.name, skill.findings
    )


def _locate_rejected(rejected: RejectedCandidate) -> _CandidateLocation:
    location = Path(rejected.location)
    if location.is_dir() and not is_skill_md(location.name):
        return _CandidateLocation(
            FolderHandle(str(location)), "", str(location), rejected.name, rejected.findings
        )
    place = FolderHandle(str(location.parent))
    return _CandidateLocation(
        place, location.name, rejected.location, rejected.name, rejected.findings
    )


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
    try:
        data = read_file_at(
            candidate.folder_handle, RelativePath.parse(candidate.file), MAX_SKILL_MD_BYTES
        )
    except SkillhallError:
        # The walk met the same obstacle and said so; the files beside it may still be risky.
        beside = (
            Bundle(candidate.folder_handle.path, {})
            if candidate.is_flat
            else _open_bundle(candidate.folder_handle, profile)
        )
        risks = profile.load_policy.judge(_scan_risks(candidate, beside, _UNREAD_SKILL))
        return SkillExamination(
            _UNREAD_SKILL,
            Bundle(candidate.folder_handle.path, {}),
            (*candidate.known_findings, *risks),
        )
    folder = None if candidate.is_flat else Path(candidate.location).parent.name
    parsed = parse_skill(data, folder, profile.key_case)
    bundle = (
        Bundle(candidate.folder_handle.path, {})
        if candidate.is_flat
        else _open_bundle(candidate.folder_handle, profile)
    )
    findings = [
        found.with_location(candidate.location, candidate.name) for found in parsed.findings
    ]
    findings += _check_files(data, candidate, bundle, parsed)
    findings += _scan_risks(
        candidate, _build_flat_bundle(candidate, data) if candidate.is_flat else bundle, parsed
    )
    judged = profile.load_policy.judge(findings)
    said = {one.finding.code for one in judged}
    known = [one for one in candidate.known_findings if one.finding.code not in said]
    return SkillExamination(parsed, bundle, (*known, *judged))


def _open_bundle(folder_handle: FolderHandle, profile: Profile) -> Bundle:
    try:
        return open_bundle(folder_handle, profile.scan_policy)
    except SkillFileNotFound:
        return Bundle(folder_handle.path, {})


def _check_files(
    data: bytes, candidate: _CandidateLocation, bundle: Bundle, parsed: ParsedSkill
) -> Iterator[Finding]:
    """Findings about the files of the skill, and about links to files it does not have."""
    directory = Path(candidate.location).parent
    for found in bundle.findings:
        yield found.with_location(str(directory / found.path), candidate.name)
    if candidate.is_flat or not parsed.body:
        return
    left_out = {found.path for found in bundle.findings}
    for missing in check_references(data, bundle.files.keys() | left_out):
        yield missing.with_location(candidate.location, candidate.name)


def _scan_risks(
    candidate: _CandidateLocation, bundle: Bundle, parsed: ParsedSkill
) -> Iterator[Finding]:
    """What the static scan says about the skill's files."""
    directory = Path(candidate.location).parent
    for found in scan_bundle(bundle, parsed.frontmatter):
        yield found.with_location(str(directory / found.path), candidate.name)


def _build_flat_bundle(candidate: _CandidateLocation, data: bytes) -> Bundle:
    path = RelativePath.parse(candidate.file)
    file = SkillFile(path, len(data), executable=False, read=lambda: data)
    return Bundle(candidate.folder_handle.path, {candidate.file: file})
