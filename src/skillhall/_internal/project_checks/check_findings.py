"""Findings of the checks in one form, with fingerprints for baselines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.finding import Finding
from skillhall._internal.skill.risks.tiers import TIERS, Tier

_NUMBER = re.compile(r"[0-9]+")


class ProjectCheck(StrEnum):
    """The checks, in the order in which they run."""

    VALIDATE = "validate"
    SCAN = "scan"
    VERIFY = "verify"
    EVALS = "evals"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFinding:
    """A finding, the check that reported it, and whether it makes the run fail."""

    kind: ProjectCheck
    finding: Finding
    effect: Effect
    fails: bool
    is_known: bool = False  # whether the baseline has it

    @property
    def level(self) -> str:
        """The level: error, warning or note."""
        if self.fails:
            return "error"
        return "warning" if self.effect is Effect.WARN else "note"

    @property
    def tier(self) -> Tier | None:
        """The tier of a risk; `None` if the finding is not about a risk."""
        return TIERS.get(self.finding.code)

    def fingerprint(self, base: str) -> str:
        """Return a value that identifies the finding even after its line has moved.

        It depends on the path relative to `base`, and not on numbers in the message, such as the
        size of a file that changes with each edit.
        """
        path = relative_posix_path(self.finding.path, base)
        message = _NUMBER.sub("#", " ".join(self.finding.message.casefold().split()))
        key = f"{self.kind}\0{self.finding.code}\0{path}\0{message}"
        return sha256_hex(key.encode("utf-8", "surrogatepass"))[:16]


def build_check_findings(
    kind: ProjectCheck, findings: Iterable[JudgedFinding], *, fails: bool | None = None
) -> list[CheckFinding]:
    """Return the findings of a check.

    By default, those that reject a skill make the run fail.
    """
    return [
        CheckFinding(
            kind=kind,
            finding=finding,
            effect=effect,
            fails=effect is Effect.REJECT if fails is None else fails,
        )
        for finding, effect in findings
    ]


def relative_posix_path(path: str, base: str) -> str:
    """Return a path relative to `base`, with forward slashes."""
    try:
        return os.path.relpath(path or base, base).replace(os.sep, "/")
    except ValueError:  # another drive
        return path.replace(os.sep, "/")
