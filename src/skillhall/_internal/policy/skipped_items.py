"""What a source holds but does not serve: one row for each skill, prompt or file left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.policy.effects import Effect
from skillhall._internal.skill.finding import Code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.finding import Finding

MAX_SKIPPED = 1000  # rows in one response; the total is always exact
# Only a warning to a profile, but something is missing from what is served.
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
    """A skill, prompt or file that is not served, and the reason."""

    name: str  # of the skill or prompt; "" if it is unknown
    path: str  # below the source; "" if it is not a safe path
    code: Code
    message: str


def collect_skipped(findings: Iterable[JudgedFinding]) -> tuple[SkippedItem, ...]:
    """One row for each path that is left out, in path order; several reasons share a row."""
    reasons: dict[str, list[Finding]] = {}
    for found, effect in findings:
        if effect is Effect.REJECT or found.code in _OMITTED_CODES:
            reasons.setdefault(found.path or f"\0{found.message}", []).append(found)
    return tuple(_build_item(reasons[place]) for place in sorted(reasons))


def _build_item(reasons: list[Finding]) -> SkippedItem:
    first = reasons[0]
    name = first.skill or first.path.partition("/")[0].removesuffix(".md")
    message = "; ".join(dict.fromkeys(one.message for one in reasons))
    return SkippedItem(name, first.path, first.code, message)


def skipped_data(skipped: Sequence[SkippedItem]) -> dict[str, object]:
    """The first skipped entries, and how many there are."""
    rows = [{**one._asdict(), "code": one.code.value} for one in skipped[:MAX_SKIPPED]]
    return {"skipped": rows, "skippedTotal": len(skipped)}
