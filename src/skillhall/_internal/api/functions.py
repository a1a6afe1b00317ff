"""`validate` and `scan`: checks of skills as plain functions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillhall._internal.authoring import risk_report
from skillhall._internal.authoring import validate as validation
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import find_profile

if TYPE_CHECKING:
    from skillhall._internal.authoring.risk_report import ScanReport
    from skillhall._internal.authoring.validate import ValidationReport
    from skillhall._internal.policy.profiles import Profile

    StrPath = str | os.PathLike[str]


def validate(*paths: StrPath, profile: str | Profile = "specification") -> ValidationReport:
    """Check every skill below `paths`, including its body and its files.

    A path is a SKILL.md, the folder of a skill, or a folder of skills. Without paths, the folders
    of the profile are checked; by default, these are the folders of coding agents.
    Raises: SkillFileNotFound if a path does not exist, UnknownProfile.

    ```python
    from skillhall import validate

    report = validate("skills")
    for finding in report.findings:
        print(finding)
    ```
    """
    chosen = find_profile(profile) if isinstance(profile, str) else profile
    return validation.validate([os.fspath(path) for path in paths], chosen, Settings.read())


def scan(*paths: StrPath) -> ScanReport:
    """Scan the skills below `paths` for risky content.

    Without paths, the folders of coding agents are scanned. A risk is a reason to review a skill,
    not proof that it is malicious. Nothing is executed.
    Raises: SkillFileNotFound if a path does not exist.

    ```python
    from skillhall import scan

    high = [risk for risk in scan("skills").risks if risk.tier == "high"]
    ```
    """
    return risk_report.scan([os.fspath(path) for path in paths], Settings.read())
