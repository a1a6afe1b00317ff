"""Findings as clients read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.policy.skipped_items import MAX_SKIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.policy.skipped_items import Skipped


def findings_data(findings: Iterable[Judged]) -> list[dict[str, object]]:
    """Each finding with what it means; what is empty is left out."""
    told: list[dict[str, object]] = []
    for found, effect in findings:
        fields: dict[str, object] = {
            "code": found.code.value,
            "effect": effect.value,
            "message": found.message,
            "path": found.path,
            "line": found.line,
            "hint": found.hint,
        }
        told.append({key: value for key, value in fields.items() if value not in ("", None)})
    return told


def skipped_data(skipped: Sequence[Skipped]) -> dict[str, object]:
    """The first skipped entries, and how many there are."""
    rows = [{**one._asdict(), "code": one.code.value} for one in skipped[:MAX_SKIPPED]]
    return {"skipped": rows, "skippedTotal": len(skipped)}
