"""Scanning: what is risky in the skills below some paths, the gravest first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.authoring.validate import validate
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.scanner import finding_id
from skillhall._internal.skill.risks.tiers import TIERS, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.authoring.validate import ValidationResult
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.settings import Settings

# Agents leave hidden files alone; whoever looks for risks does not.
_ALL_FILES_PROFILE = LENIENT._replace(
    scan_policy=LENIENT.scan_policy._replace(include_hidden_files=True)
)
# What kept the walk from a folder or a SKILL.md.
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


@dataclass(frozen=True, slots=True)
class Risk:
    """A finding of the scan, how much it matters, and the id it can be dismissed by."""

    id: str  # the same on every machine, for the same content of the same file of a skill
    tier: Tier
    judged: JudgedFinding


@dataclass(frozen=True, slots=True)
class ScannedSkill:
    """One skill, and what is risky in it."""

    path: str
    name: str
    risks: tuple[Risk, ...]


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The skills in path order, and why some could not be read whole."""

    skills: tuple[ScannedSkill, ...]
    unscanned: tuple[JudgedFinding, ...]

    @property
    def risks(self) -> tuple[Risk, ...]:
        """The risks of all skills, the gravest first."""
        every = [risk for skill in self.skills for risk in skill.risks]
        return tuple(risk for tier in Tier for risk in every if risk.tier is tier)

    @property
    def is_clean(self) -> bool:
        """Whether everything was read, and nothing in it is more than information."""
        return not self.unscanned and all(risk.tier is Tier.INFO for risk in self.risks)


def scan(
    paths: Sequence[str],
    settings: Settings,
    progress: Callable[[int], None] | None = None,
    *,
    depth: int | None = None,
) -> ScanReport:
    """What is risky in the skills below `paths`, or where agents keep skills.

    `depth` is how many levels below each path are searched.
    Raises: SkillFileNotFound if a path leads nowhere, ValueError.
    """
    report = validate(paths, _ALL_FILES_PROFILE, settings, progress, depth=depth)
    unread = dict.fromkeys(one for one in report.findings if one.finding.code in _UNSCANNED_CODES)
    return ScanReport(tuple(map(_build_scanned_skill, report.results)), tuple(unread))


def _build_scanned_skill(result: ValidationResult) -> ScannedSkill:
    risks = (_build_risk(one, result) for one in result.findings if one.finding.code in TIERS)
    return ScannedSkill(result.path, result.name, tuple(risks))


def _build_risk(judged: JudgedFinding, result: ValidationResult) -> Risk:
    relative = judged.finding.with_location(_get_relative_path(judged.finding.path, result))
    return Risk(finding_id(relative), TIERS[judged.finding.code], judged)


def _get_relative_path(path: str, result: ValidationResult) -> str:
    """The path inside the skill, as the scan itself gave it."""
    is_flat = result.path == result.location
    inside = Path(path).relative_to(Path(result.path).parent if is_flat else result.path)
    return "" if inside == Path() else inside.as_posix()
