"""How `update` and `outdated` tell about skills and their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.cli.errors import CONFLICT, FAILED, OK, REJECTED, to_error_info
from skillhall._internal.cli.project_options import print_errors, print_table_or_rows
from skillhall._internal.cli.terminal import print_message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.installer.update import UpdateResult

_STATUS_EXIT_CODES: Mapping[str, int] = {
    "outdated": FAILED,
    "conflict": CONFLICT,
    "rejected": REJECTED,
}
_SHORT_COMMIT_LENGTH = 12  # digits of a commit


def print_results(results: Sequence[UpdateResult]) -> None:
    """One row for each skill."""
    headings = ["skill", "source", "status", "from", "to"]
    print_table_or_rows(
        headings,
        [
            (
                one.key,
                one.source,
                one.status,
                one.before[:_SHORT_COMMIT_LENGTH],
                one.after[:_SHORT_COMMIT_LENGTH],
            )
            for one in results
        ],
    )


def print_details(results: Sequence[UpdateResult]) -> None:
    """What a row has no room for: errors, stale copies, files in conflict."""
    print_errors((one.key, to_error_info(one.error)) for one in results if one.error is not None)
    for one in results:
        if one.stale:
            print_message(f"warning: {one.key}: {one.stale}")
        for outcome in one.outcomes:
            reason = f" ({outcome.reason})" if outcome.reason else ""
            settled = ", settled by --conflicts" * (one.status == "updated" and bool(reason))
            print_message(f"{one.key}/{outcome.path}: {outcome.kind}{reason}{settled}")
        if one.status == "conflict":
            print_message(
                "hint: '--conflicts mine' or '--conflicts theirs' decides for these files"
            )
        if one.status == "missing":
            print_message(f"{one.key} is not there")
            print_message("hint: 'skillhall install' brings it back")


def print_results_json(command: str, results: Sequence[UpdateResult]) -> None:
    """The same for scripts."""
    from skillhall._internal.cli.json_output import print_json_report

    findings = [judged for one in results for judged in one.findings]
    failed = next((to_error_info(one.error) for one in results if one.error is not None), None)
    error = (
        failed.serialize()
        if failed
        else _build_conflict_error(results) or _build_rejection_error(results)
    )
    print_json_report(
        command, {"skills": [_serialize_result(one) for one in results]}, findings, error
    )


def _build_conflict_error(results: Sequence[UpdateResult]) -> dict[str, object] | None:
    names = ", ".join(one.key for one in results if one.status == "conflict")
    return {"code": "conflict", "message": f"changed on both sides: {names}"} if names else None


def _build_rejection_error(results: Sequence[UpdateResult]) -> dict[str, object] | None:
    names = ", ".join(one.key for one in results if one.status == "rejected")
    return {"code": "invalid_skill", "message": f"rejected: {names}"} if names else None


def _serialize_result(result: UpdateResult) -> dict[str, object]:
    fields: dict[str, object] = {
        "path": result.key,
        "source": result.source,
        "status": result.status.value,
        "before": result.before,
        "after": result.after,
        "stale": result.stale,
        "files": [
            {
                "path": o.path,
                "outcome": o.kind.value,
                **({"reason": o.reason.value} if o.reason else {}),
            }
            for o in result.outcomes
        ],
    }
    if result.error is not None:
        fields["error"] = to_error_info(result.error).serialize()
    return fields


def compute_exit_code(results: Sequence[UpdateResult]) -> int:
    """The gravest of them."""
    codes = [
        to_error_info(one.error).exit_code if one.error else _STATUS_EXIT_CODES.get(one.status, OK)
        for one in results
    ]
    return max(codes, default=OK)
