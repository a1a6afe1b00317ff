"""Checks of the eval files of the skills below given paths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from skillhall._internal.authoring.validate import validate
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LENIENT, SPECIFICATION
from skillhall._internal.settings import Settings
from skillhall._internal.skill.evals.eval_check import EvalFileCheck, check_evals
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.sources.folder.bundle_reader import open_bundle


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedEvals:
    """The eval files of one skill, with findings that have absolute paths."""

    name: str
    path: str
    summary: EvalFileCheck
    findings: tuple[JudgedFinding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalReport:
    """The skills in path order, and findings about paths without a skill."""

    skills: tuple[CheckedEvals, ...]
    scan_findings: tuple[JudgedFinding, ...]

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """All findings: of the scan, then of each skill."""
        return (*self.scan_findings, *(j for skill in self.skills for j in skill.findings))

    @property
    def problems(self) -> int:
        """The number of findings that make the check fail."""
        return sum(judged.effect is Effect.REJECT for judged in self.findings)


def check_eval_files(paths: Sequence[str], settings: Settings) -> EvalReport:
    """Check the eval files of each skill below `paths`, which are as in `validate`.

    Raises: SkillFileNotFound if a path does not exist.
    """
    skills: list[CheckedEvals] = []
    scan_findings: list[JudgedFinding] = []
    for result in validate(paths, LENIENT, settings).results:
        if not is_skill_md(os.path.basename(result.location)):
            scan_findings += result.findings  # there is no skill at this path
            continue
        name = result.name or os.path.basename(result.path)
        bundle = open_bundle(FolderHandle(result.path), LENIENT.scan_policy)
        summary = check_evals(bundle, name)
        located = (
            finding.with_location(os.path.join(result.path, *finding.path.split("/")), name)
            for finding in summary.findings
        )
        findings = SPECIFICATION.load_policy.judge(located)
        skills.append(CheckedEvals(name=name, path=result.path, summary=summary, findings=findings))
    return EvalReport(skills=tuple(skills), scan_findings=tuple(scan_findings))
