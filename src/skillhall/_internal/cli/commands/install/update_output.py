"""Output of `update` and `outdated`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.cli.errors import CONFLICT, FAILED, OK, REJECTED, to_error_info
from skillhall._internal.cli.json_output import print_json_report
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
_SHORT_COMMIT_LENGTH = 12  # digits


def print_results(results: Sequence[UpdateResult]) -> None:
    """Print one row per skill."""
    length = _SHORT_COMMIT_LENGTH
    rows = [(r.key, r.source, r.status, r.before[:length], r.after[:length]) for r in results]
    print_table_or_rows(["skill", "source", "status", "from", "to"], rows)


def print_details(results: Sequence[UpdateResult]) -> None:
    """Print errors, stale sources and files in conflict."""
    print_errors(
        (result.key, to_error_info(result.error)) for result in results if result.error is not None
    )
    for result in results:
        if result.stale:
            print_message(f"warning: {result.key}: {result.stale}")
        for outcome in result.outcomes:
            reason = f" ({outcome.reason})" if outcome.reason else ""
            resolved = ", resolved by --conflicts" * (result.status == "updated" and bool(reason))
            print_message(f"{result.key}/{outcome.path}: {outcome.kind}{reason}{resolved}")
        if result.status == "conflict":
            print_message(
                "hint: '--conflicts mine' or '--conflicts theirs' decides for these files"
            )
        if result.status == "missing":
            print_message(f"{result.key} is not installed")
            print_message("hint: 'skillhall install' brings it back")


def print_results_json(command: str, results: Sequence[UpdateResult]) -> None:
    """Print the results as JSON."""
    findings = [judged for result in results for judged in result.findings]
    failed = next(
        (to_error_info(result.error) for result in results if result.error is not None), None
    )
    error = (
        failed.serialize()
        if failed
        else _build_conflict_error(results) or _build_rejection_error(results)
    )
    print_json_report(
        command, {"skills": [_serialize_result(result) for result in results]}, findings, error
    )


def _build_conflict_error(results: Sequence[UpdateResult]) -> dict[str, object] | None:
    names = ", ".join(result.key for result in results if result.status == "conflict")
    return {"code": "conflict", "message": f"changed on both sides: {names}"} if names else None


def _build_rejection_error(results: Sequence[UpdateResult]) -> dict[str, object] | None:
    names = ", ".join(result.key for result in results if result.status == "rejected")
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
    """Return the highest exit code of the results."""
    codes = [
        to_error_info(result.error).exit_code
        if result.error
        else _STATUS_EXIT_CODES.get(result.status, OK)
        for result in results
    ]
    return max(codes, default=OK)
