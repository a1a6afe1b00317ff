"""How `update` and `outdated` tell about skills and their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.cli.errors import CONFLICT, FAILED, OK, REFUSED, failure_of
from skillhall._internal.cli.project_options import print_shelf_rows, tell_failures
from skillhall._internal.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.installer.update import Updated

_EXIT_CODES: Mapping[str, int] = {"outdated": FAILED, "conflict": CONFLICT, "rejected": REFUSED}
_SHORT = 12  # digits of a commit


def print_results(results: Sequence[Updated]) -> None:
    """One row for each skill."""
    headings = ["skill", "source", "status", "from", "to"]
    print_shelf_rows(
        headings,
        [
            (one.key, one.source, one.status, one.before[:_SHORT], one.after[:_SHORT])
            for one in results
        ],
    )


def tell_details(results: Sequence[Updated]) -> None:
    """What a row has no room for: errors, stale copies, files in conflict."""
    tell_failures((one.key, failure_of(one.error)) for one in results if one.error is not None)
    for one in results:
        if one.stale:
            say(f"warning: {one.key}: {one.stale}")
        for outcome in one.outcomes:
            reason = f" ({outcome.reason})" if outcome.reason else ""
            settled = ", settled by --conflicts" * (one.status == "updated" and bool(reason))
            say(f"{one.key}/{outcome.path}: {outcome.kind}{reason}{settled}")
        if one.status == "conflict":
            say("hint: '--conflicts mine' or '--conflicts theirs' decides for these files")
        if one.status == "missing":
            say(f"{one.key} is not there")
            say("hint: 'skillhall install' brings it back")


def as_json(command: str, results: Sequence[Updated]) -> None:
    """The same for scripts."""
    from skillhall._internal.cli.json_output import print_report

    findings = [judged for one in results for judged in one.findings]
    failed = next((failure_of(one.error) for one in results if one.error is not None), None)
    error = failed.as_json() if failed else _conflict(results) or _rejection(results)
    print_report(command, {"skills": [_fields(one) for one in results]}, findings, error)


def _conflict(results: Sequence[Updated]) -> dict[str, object] | None:
    names = ", ".join(one.key for one in results if one.status == "conflict")
    return {"code": "conflict", "message": f"changed on both sides: {names}"} if names else None


def _rejection(results: Sequence[Updated]) -> dict[str, object] | None:
    names = ", ".join(one.key for one in results if one.status == "rejected")
    return {"code": "invalid_skill", "message": f"rejected: {names}"} if names else None


def _fields(one: Updated) -> dict[str, object]:
    fields: dict[str, object] = {
        "path": one.key,
        "source": one.source,
        "status": one.status.value,
        "before": one.before,
        "after": one.after,
        "stale": one.stale,
        "files": [
            {
                "path": o.path,
                "outcome": o.kind.value,
                **({"reason": o.reason.value} if o.reason else {}),
            }
            for o in one.outcomes
        ],
    }
    if one.error is not None:
        fields["error"] = failure_of(one.error).as_json()
    return fields


def exit_code(results: Sequence[Updated]) -> int:
    """The gravest of them."""
    codes = [
        failure_of(one.error).exit_code if one.error else _EXIT_CODES.get(one.status, OK)
        for one in results
    ]
    return max(codes, default=OK)
