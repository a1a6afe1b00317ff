"""Skipped items: skills, prompts and files of a source that are not served."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.skill.finding import Code, Finding

MAX_SKIPPED = 1000  # rows in one response; the total is always exact
# Profiles only warn about these findings, although an item is not served.
_OMITTED_CODES = frozenset(
    {
        Code.SHADOWED,
        Code.FILE_LEFT_OUT,
        Code.FILE_TOO_LARGE,
        Code.TOO_MANY_FILES,
        Code.BOUND_REACHED,
    }
)


class SkippedItem(NamedTuple):
    """A skill, prompt or file that is not served, with the reason."""

    name: str  # of the skill or prompt; "" if it is unknown
    path: str  # below the source; "" if it is not a safe path
    code: Code
    message: str


def collect_skipped(findings: Iterable[JudgedFinding]) -> tuple[SkippedItem, ...]:
    """Return one item per path, sorted by path, with all its reasons in one message."""
    reasons: dict[str, list[Finding]] = {}
    for finding, effect in findings:
        if effect is Effect.REJECT or finding.code in _OMITTED_CODES:
            # Findings without a path are grouped by message; NUL keeps them apart from paths.
            reasons.setdefault(finding.path or f"\0{finding.message}", []).append(finding)
    items = []
    for _, group in sorted(reasons.items()):
        first = group[0]
        name = first.skill or first.path.partition("/")[0].removesuffix(".md")
        message = "; ".join(dict.fromkeys(finding.message for finding in group))
        items.append(SkippedItem(name, first.path, first.code, message))
    return tuple(items)


def skipped_data(skipped: Sequence[SkippedItem]) -> dict[str, object]:
    """Serialize the skipped items, up to a limit, and their total number."""
    rows = [{**item._asdict(), "code": item.code.value} for item in skipped[:MAX_SKIPPED]]
    return {"skipped": rows, "skippedTotal": len(skipped)}
