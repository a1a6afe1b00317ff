"""Runs validate, scan, verify and the checks of evals on the same skills."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from skillhall._internal.authoring.eval_report import CheckedEvals, check_eval_files
from skillhall._internal.authoring.risk_report import scan
from skillhall._internal.authoring.validate import (
    MapBatches,
    ValidationReport,
    map_in_batches,
    validate,
)
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.gates import Gate
from skillhall._internal.evals.reports.stored_results import read_skill_results
from skillhall._internal.fs.handles import is_inside
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.verify import VerifyResult, verify_entry
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import Profile
from skillhall._internal.project_checks.check_findings import (
    CheckFinding,
    ProjectCheck,
    build_check_findings,
)
from skillhall._internal.settings import Settings
from skillhall._internal.skill.evals.eval_check import EVALS_PATH
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.skill.risks.tiers import TIERS, Tier
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE
from skillhall._internal.sources.git.local_revision import list_changed_files
from skillhall.errors import LockNotFound, SkillFileNotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """Scope and options of a run of all checks."""

    paths: tuple[str, ...]
    profile: Profile
    skip: frozenset[ProjectCheck] = frozenset()
    gates: tuple[Gate, ...] = ()
    results_folder: str = ""  # has the workspaces of evals; "": they are next to each skill
    depth: int | None = None
    changed_since: str = ""  # only skills that differ from this revision; "": all
    are_files: bool = False  # whether the paths are files, whose skills are checked


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """The checked skills, all findings, and the checks that did not run, with reasons."""

    skills: Mapping[str, str]  # names by path
    findings: tuple[CheckFinding, ...]
    not_run: Mapping[ProjectCheck, str] = field(default_factory=dict)


def run_checks(
    request: CheckRequest,
    settings: Settings,
    progress: Callable[[int], None] | None = None,
    map_batches: MapBatches = map_in_batches,
) -> CheckReport:
    """Run the checks that are not skipped.

    Raises: SkillFileNotFound if a path does not exist; LockInvalid; SourceNotFound if there is no
    such revision.
    """
    paths: Sequence[str] = request.paths
    if request.changed_since or request.are_files:
        base = settings.working_directory
        if request.are_files:
            found = _find_skills(base, (os.path.join(base, path) for path in paths))
        else:
            found = _find_changed_skills(paths or (base,), request.changed_since, base)
        if not found:
            return CheckReport(skills={}, findings=())
        paths = sorted(found)
    not_run = dict.fromkeys((kind for kind in ProjectCheck if kind in request.skip), "skipped")
    validated = validate(
        paths, request.profile, settings, progress, depth=request.depth, map_batches=map_batches
    )
    findings: list[CheckFinding] = []
    if ProjectCheck.VALIDATE not in not_run:
        findings += _list_problems(validated)
    if ProjectCheck.SCAN not in not_run:
        findings += _scan(paths, request, settings, {one.finding for one in findings})
    if ProjectCheck.VERIFY not in not_run:
        try:
            findings += _verify(paths, settings)
        except LockNotFound:
            not_run[ProjectCheck.VERIFY] = "there is no lock file"
    if ProjectCheck.EVALS not in not_run:
        checked = check_eval_files(paths, settings).skills
        findings += _check_evals(checked, request)
        if not any(one.summary.has_evals for one in checked):
            not_run[ProjectCheck.EVALS] = "no skill has evals"
    return CheckReport(
        skills={one.path: one.name for one in validated.results},
        findings=tuple(findings),
        not_run=not_run,
    )


def _find_changed_skills(paths: Sequence[str], base: str, working_directory: str) -> set[str]:
    """Return the skills below the paths that have a changed file."""
    skills = set()
    for path in paths:
        root = os.path.realpath(os.path.join(working_directory, path))
        if not os.path.exists(root):
            raise SkillFileNotFound(path)
        root = root if os.path.isdir(root) else os.path.dirname(root)
        skills |= _find_skills(root, list_changed_files(root, base))
    return skills


def _find_skills(root: str, files: Iterable[str]) -> set[str]:
    """Return the nearest folder with a SKILL.md above each file, below the root."""
    root = os.path.realpath(root)
    skills = set()
    for file in files:
        folder = os.path.dirname(os.path.realpath(file))
        while is_inside(folder, root) and not _has_skill_md(folder) and folder != root:
            folder = os.path.dirname(folder)
        if is_inside(folder, root) and _has_skill_md(folder):
            skills.add(folder)
    return skills


def _has_skill_md(folder: str) -> bool:
    try:
        return any(map(is_skill_md, os.listdir(folder)))
    except OSError:  # the folder was deleted
        return False


def _list_problems(report: ValidationReport) -> list[CheckFinding]:
    # The scan reports risks, with their tiers.
    problems = [judged for judged in report.findings if judged.code not in TIERS]
    return build_check_findings(ProjectCheck.VALIDATE, problems)


def _scan(
    paths: Sequence[str], request: CheckRequest, settings: Settings, reported: set[Finding]
) -> Iterator[CheckFinding]:
    report = scan(paths, settings, depth=request.depth)
    unscanned = [judged for judged in report.unscanned if judged.finding not in reported]
    yield from build_check_findings(ProjectCheck.SCAN, unscanned, fails=True)
    for risk in report.risks:
        fails = risk.tier is not Tier.INFO
        yield from build_check_findings(ProjectCheck.SCAN, [risk.judged], fails=fails)


def _verify(paths: Sequence[str], settings: Settings) -> list[CheckFinding]:
    project = Project.from_settings(settings)
    roots = [os.path.realpath(os.path.join(settings.working_directory, path)) for path in paths]
    findings: list[CheckFinding] = []
    for key, entry in project.read_lock_entries().items():
        place = os.path.realpath(project.path(key))
        if paths and not any(is_inside(place, root) for root in roots):
            continue
        for result in verify_entry(project, key, entry):
            found = [JudgedFinding(finding, Effect.REJECT) for finding in _list_differences(result)]
            located = [
                judged._replace(
                    finding=judged.finding.with_location(
                        project.path(f"{result.place}/{judged.path}".rstrip("/")), entry.name
                    )
                )
                for judged in found
            ]
            findings += build_check_findings(ProjectCheck.VERIFY, located)
    return findings


def _list_differences(result: VerifyResult) -> Iterator[Finding]:
    """Yield the differences from the lock file, with paths inside the skill's folder."""
    hint = "restore the skill, or install it again"
    if not result.is_there:
        yield Finding(Code.LOCK_MISMATCH, "the skill is not installed", hint=hint)
    for path in result.changed:
        yield Finding(Code.LOCK_MISMATCH, "the file was changed", hint=hint, path=path)
    for path in result.missing:
        yield Finding(Code.LOCK_MISMATCH, "the file is missing", hint=hint, path=path)
    for path in result.extra if result.is_there else ():
        inside = "" if path == result.place else path
        yield Finding(Code.LOCK_MISMATCH, "the lock file does not list it", hint=hint, path=inside)
    if result.is_signature_broken:
        yield Finding(Code.SIGNATURE_BROKEN, f"the {result.signature}", path=SIGNATURE_FILE)


def _check_evals(checked: Sequence[CheckedEvals], request: CheckRequest) -> Iterator[CheckFinding]:
    for one in checked:
        yield from build_check_findings(ProjectCheck.EVALS, one.findings)
        if not request.gates or not one.summary.has_evals:
            continue
        workspace = EvalWorkspace.of_skill(one.path, request.results_folder)
        for gate in read_skill_results(one.name, one.path, workspace, request.gates).gates:
            if not gate.passed:
                path = os.path.join(one.path, *EVALS_PATH.split("/"))
                finding = Finding(Code.EVAL_GATE, str(gate)).with_location(path, one.name)
                judged = JudgedFinding(finding, Effect.REJECT)
                yield from build_check_findings(ProjectCheck.EVALS, [judged])
