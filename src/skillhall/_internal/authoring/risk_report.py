"""Risk scan of the skills below given paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillhall._internal.authoring.validate import validate
from skillhall._internal.policy.effects import JudgedFinding
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.settings import Settings
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.scanner import finding_id
from skillhall._internal.skill.risks.tiers import TIERS, Tier

# Agents ignore hidden files, but a skill can run them.
_ALL_FILES_PROFILE = LENIENT._replace(scan_policy=LENIENT.scan_policy.with_hidden_files)
# Findings about folders and SKILL.md files that could not be read.
_UNSCANNED_CODES = frozenset(
    {
        Code.NO_SKILL_MD,
        Code.NOT_A_FILE,
        Code.UNREADABLE,
        Code.TOO_LARGE,
        Code.UNSAFE_PATH,
        Code.LINK_SKIPPED,
        Code.LINK_OUTSIDE,
        Code.LINK_BROKEN,
        Code.BOUND_REACHED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """Finding of the risk scan, with its tier and the id to dismiss it.

    >>> [risk.judged.message for risk in scan("skills").risks if risk.tier == "high"]
    []
    """

    id: str  # depends only on the path in the skill and the content, not on the machine
    tier: Tier
    judged: JudgedFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedSkill:
    """One skill and its risks.

    >>> [skill.name for skill in scan("skills").skills]
    ['csv-report', 'deploy', 'pdf-tools']
    """

    path: str
    name: str
    risks: tuple[Risk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """Scanned skills in path order, and findings about unreadable ones.

    >>> scan("skills").is_clean
    True
    """

    skills: tuple[ScannedSkill, ...]
    unscanned: tuple[JudgedFinding, ...]

    @property
    def risks(self) -> tuple[Risk, ...]:
        """The risks of all skills, highest tier first."""
        risks = [risk for skill in self.skills for risk in skill.risks]
        return tuple(risk for tier in Tier for risk in risks if risk.tier is tier)

    @property
    def is_clean(self) -> bool:
        """Whether everything was read and no risk is above the info tier."""
        return not self.unscanned and all(risk.tier is Tier.INFO for risk in self.risks)


def scan(
    paths: Sequence[str],
    settings: Settings,
    progress: Callable[[int], None] | None = None,
    *,
    depth: int | None = None,
) -> ScanReport:
    """Scan the skills below `paths`, or in the default folders if there are no paths.

    `depth` limits the levels below each path.
    Raises: SkillFileNotFound if a path does not exist, ValueError if the depth is out of range.
    """
    report = validate(paths, _ALL_FILES_PROFILE, settings, progress, depth=depth)
    skills = []
    for result in report.results:
        path = Path(result.path)
        # The paths of findings about a flat file are relative to the folder that contains it.
        folder = path.parent if result.path == result.location else path
        risks = []
        for judged in result.findings:
            if (tier := TIERS.get(judged.code)) is not None:
                inside = Path(judged.path).relative_to(folder)
                relative = "" if inside == Path() else inside.as_posix()
                identity = finding_id(judged.finding.with_location(relative))
                risks.append(Risk(id=identity, tier=tier, judged=judged))
        skills.append(ScannedSkill(path=result.path, name=result.name, risks=tuple(risks)))
    unscanned = dict.fromkeys(j for j in report.findings if j.code in _UNSCANNED_CODES)
    return ScanReport(skills=tuple(skills), unscanned=tuple(unscanned))
