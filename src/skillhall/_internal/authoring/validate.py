"""Validating: every skill below some paths, read whole, with every finding about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.head_cache import HeadIndex
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.fs.handles import Place
from skillhall._internal.policy.effects import Effect, Judged
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import MAX_SKILL_MD, is_skill_md
from skillhall._internal.skill.parsed import EMPTY, ParsedSkill
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.references import check_references
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.sources.folder.bundle_reader import open_bundle, read_in_place
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import SkillFileNotFound, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from skillhall._internal.catalog.catalog import Catalog, Rejected, Skill
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings

_DOCUMENTS = frozenset({"README", "LICENSE", "CHANGELOG", "CONTRIBUTING", "SECURITY"})
_NOT_READ = ParsedSkill(EMPTY, "", ())


@dataclass(frozen=True, slots=True)
class Result:
    """One candidate: where it stands, whether the profile takes it, and every finding about it."""

    path: str  # the folder; the file itself for a flat file
    location: str  # the SKILL.md, where there is one
    name: str
    accepted: bool
    findings: tuple[Judged, ...]


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The results in path order, and what the walk noticed beside them."""

    profile: str
    results: tuple[Result, ...]
    notes: tuple[Judged, ...]

    @property
    def accepted(self) -> bool:
        """Whether nothing was rejected."""
        rejecting = any(note.effect is Effect.REJECT for note in self.notes)
        return not rejecting and all(result.accepted for result in self.results)

    @property
    def findings(self) -> tuple[Judged, ...]:
        """Everything that was noticed: about the walk, then result by result."""
        return (*self.notes, *(one for result in self.results for one in result.findings))


@dataclass(frozen=True, slots=True)
class Examination:
    """A skill read whole."""

    parsed: ParsedSkill
    bundle: Bundle
    findings: tuple[Judged, ...]


class _Spot(NamedTuple):
    """Where a candidate stands, and what the catalog said about it."""

    place: Place
    file: str
    location: str
    name: str
    known: tuple[Judged, ...]

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
    chosen = profile.searching(depth)
    chosen = chosen._replace(scan=chosen.checked or chosen.scan)
    load = partial(_load, settings=settings, progress=progress)
    if not paths:
        roots = [
            Root.of(path, base, label, expected=False, follow_links=follow)
            for path, label in profile.roots
        ]
        catalog = load(roots, chosen)
        return ValidationReport(profile.name, tuple(_results(catalog, chosen)), catalog.notes)
    wanted = list(dict.fromkeys(_existing(path, base) for path in paths))
    # Whoever names a folder means it, even where the profile looks only at what is inside.
    chosen = chosen._replace(scan=chosen.scan._replace(root_itself=True))
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in wanted)
    # Each folder alone: they are places to check here, not an order of precedence.
    catalogs = [load([Root(str(one), follow_links=follow)], chosen) for one in folders]
    notes = tuple(dict.fromkeys(note for catalog in catalogs for note in catalog.notes))
    asked = frozenset(map(str, wanted))
    found = {
        result.location: result
        for catalog in catalogs
        for result in _results(catalog, chosen)
        if _askers(result, asked)
    }
    documents = [one for one in found.values() if _is_document(one) and one.path not in asked]
    notes = (*notes, *profile.load.judge(_passed_over(one) for one in documents))
    answered = {path for result in found.values() for path in _askers(result, asked)}
    missed = [_nothing_in(path, notes) for path in wanted if str(path) not in answered]
    kept = [one for one in found.values() if one not in documents]
    results = sorted((*kept, *missed), key=_path)
    return ValidationReport(profile.name, tuple(results), notes)


def _load(
    roots: Sequence[Root],
    profile: Profile,
    settings: Settings,
    progress: Callable[[int], None] | None,
) -> Catalog:
    """The catalog to check. The index learns of unreadable bodies, so that `list` agrees."""
    if not settings.use_index:
        return load_roots(roots, profile, None, progress)
    index = HeadIndex(settings.cache_directory)
    return load_roots(roots, profile, index, progress, bodies=True)


def _is_document(result: Result) -> bool:
    """Whether it is a README.md or the like: a file next to skills that is not meant as one."""
    is_flat, name = result.path == result.location, Path(result.path).stem
    has_none = any(one.finding.code is Code.NO_FRONTMATTER for one in result.findings)
    return is_flat and has_none and (name.isupper() or name.upper() in _DOCUMENTS)


def _passed_over(result: Result) -> Finding:
    message = "passed over: a document without frontmatter"
    return Finding(Code.SKIPPED, message, path=result.path)


def examine_skill(skill: Skill, profile: Profile) -> Examination:
    """A skill of a catalog, read whole, with every finding, accepted ones included."""
    spot = _Spot(skill.place, skill.file, skill.location, skill.name, skill.findings)
    return _examine(spot, profile)


def _existing(path: str, base: str) -> Path:
    found = Path(Root.of(path, base).path)
    try:
        found.lstat()
    except (OSError, ValueError):
        raise SkillFileNotFound(path) from None
    return found


def _askers(result: Result, wanted: frozenset[str]) -> set[str]:
    """The paths that ask for a result: a folder for all it holds, a SKILL.md for itself."""
    above = {result.location, result.path, *map(str, Path(result.path).parents)}
    return above & wanted


def _nothing_in(path: Path, notes: Iterable[Judged]) -> Result:
    """The result for a path that gave no candidate: it was named by mistake, or is broken."""
    about = (note for note in notes if note.finding.path == str(path))
    reasons = tuple(note for note in about if note.finding.code is not Code.BOUND_REACHED)
    if not reasons:
        what = "holds no SKILL.md" if path.is_dir() else "is not a SKILL.md"
        hint = "name a SKILL.md, a skill's folder, or a folder of skills"
        missing = Finding(Code.NO_SKILL_MD, f"{path.name!r} {what}", 1, hint, str(path))
        reasons = (Judged(missing, Effect.REJECT),)
    return Result(str(path), str(path), "", accepted=False, findings=reasons)


def _path(result: Result) -> str:
    return result.path


def _results(catalog: Catalog, profile: Profile) -> list[Result]:
    spots = [
        *(_spot_of(skill) for skill in catalog.skills),
        *(_spot_of(shadowed.skill) for shadowed in catalog.shadowed),
        *(_spot_of_rejected(rejected) for rejected in catalog.rejected),
    ]
    return sorted((_result(spot, profile) for spot in spots), key=_path)


def _spot_of(skill: Skill) -> _Spot:
    return _Spot(skill.place, skill.file, skill.location, skill.name, skill.findings)


def _spot_of_rejected(rejected: Rejected) -> _Spot:
    location = Path(rejected.location)
    if location.is_dir() and not is_skill_md(location.name):
        return _Spot(Place(str(location)), "", str(location), rejected.name, rejected.findings)
    place = Place(str(location.parent))
    return _Spot(place, location.name, rejected.location, rejected.name, rejected.findings)


def _result(spot: _Spot, profile: Profile) -> Result:
    findings = _examine(spot, profile).findings if spot.file else spot.known
    location = Path(spot.location)
    path = spot.location if spot.is_flat or not spot.file else str(location.parent)
    accepted = not any(judged.effect is Effect.REJECT for judged in findings)
    return Result(path, spot.location, spot.name, accepted, findings)


def _examine(spot: _Spot, profile: Profile) -> Examination:
    try:
        data = read_in_place(spot.place, RelativePath.parse(spot.file), MAX_SKILL_MD)
    except SkillhallError:
        # The walk met the same obstacle and said so; the files beside it may still be risky.
        beside = Bundle(spot.place.path, {}) if spot.is_flat else _bundle(spot.place, profile)
        risks = profile.load.judge(_risks(spot, beside, _NOT_READ))
        return Examination(_NOT_READ, Bundle(spot.place.path, {}), (*spot.known, *risks))
    folder = None if spot.is_flat else Path(spot.location).parent.name
    parsed = parse_skill(data, folder, profile.keys)
    bundle = Bundle(spot.place.path, {}) if spot.is_flat else _bundle(spot.place, profile)
    findings = [found.at(spot.location, spot.name) for found in parsed.findings]
    findings += _beside(data, spot, bundle, parsed)
    findings += _risks(spot, _flat_bundle(spot, data) if spot.is_flat else bundle, parsed)
    judged = profile.load.judge(findings)
    said = {one.finding.code for one in judged}
    known = [one for one in spot.known if one.finding.code not in said]
    return Examination(parsed, bundle, (*known, *judged))


def _bundle(place: Place, profile: Profile) -> Bundle:
    try:
        return open_bundle(place, profile.scan)
    except SkillFileNotFound:
        return Bundle(place.path, {})


def _beside(data: bytes, spot: _Spot, bundle: Bundle, parsed: ParsedSkill) -> Iterator[Finding]:
    """Findings about the files of the skill, and about links to files it does not have."""
    directory = Path(spot.location).parent
    for found in bundle.findings:
        yield found.at(str(directory / found.path), spot.name)
    if spot.is_flat or not parsed.body:
        return
    left_out = {found.path for found in bundle.findings}
    for missing in check_references(data, bundle.files.keys() | left_out):
        yield missing.at(spot.location, spot.name)


def _risks(spot: _Spot, bundle: Bundle, parsed: ParsedSkill) -> Iterator[Finding]:
    """What the static scan says about the skill's files."""
    directory = Path(spot.location).parent
    for found in scan_bundle(bundle, parsed.frontmatter):
        yield found.at(str(directory / found.path), spot.name)


def _flat_bundle(spot: _Spot, data: bytes) -> Bundle:
    path = RelativePath.parse(spot.file)
    file = SkillFile(path, len(data), executable=False, read=lambda: data)
    return Bundle(spot.place.path, {spot.file: file})
