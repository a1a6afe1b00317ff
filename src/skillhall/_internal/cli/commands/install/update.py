"""`skillhall update` and `skillhall outdated`: update skills and keep local edits."""

from collections.abc import Iterator, Mapping, Sequence

import click

from skillhall._internal.cli.command_result import CommandResult, format_errors
from skillhall._internal.cli.errors import CONFLICT, FAILED, OK, REJECTED, ErrorInfo, to_error_info
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.project_options import (
    check_revocations,
    installed_skills_argument,
    open_project,
    unsigned_option,
    user_scope_option,
)
from skillhall._internal.cli.terminal import format_count, format_findings
from skillhall._internal.installer import update as updater
from skillhall._internal.installer.update import ConflictChoice, UpdateResult

_STATUS_EXIT_CODES: Mapping[str, int] = {
    "outdated": FAILED,
    "conflict": CONFLICT,
    "rejected": REJECTED,
}
_SHORT_COMMIT_LENGTH = 12  # digits


@json_command("outdated", "skillhall outdated --json")
@installed_skills_argument
@user_scope_option
def outdated(*, names: tuple[str, ...], is_user: bool) -> CommandResult:
    """Show which skills in the lock file have changed upstream, without updating them.

    The exit code is 1 if an update is available, and 4 if there is no lock file.
    """
    project = open_project(is_user=is_user)
    check_revocations(project.settings)
    with transfer_progress() as progress:
        results = updater.find_outdated(project, names, progress)
    return _to_command_result(results)


@json_command("update", "skillhall update pdf --conflicts theirs")
@installed_skills_argument
@user_scope_option
@click.option(
    "--conflicts",
    type=click.Choice(["mine", "theirs"]),
    help="Resolve conflicting lines with your version or the upstream one.",
)
@unsigned_option
@flag(
    "--check", "-n", "--dry-run", "is_check", help="Only show available updates, like 'outdated'."
)
def command(
    *,
    names: tuple[str, ...],
    is_user: bool,
    conflicts: ConflictChoice | None,
    unsigned: bool,
    is_check: bool,
) -> CommandResult:
    """Update the skills NAME..., or all skills in the lock file.

    Unedited files are replaced; your edits are merged with the upstream changes. If you and
    upstream changed the same lines, the skill is not updated and the conflicts are listed.
    'skillhall rollback NAME' undoes an update.
    """
    project = open_project(is_user=is_user)
    check_revocations(project.settings)
    with transfer_progress() as progress:
        if is_check:
            results = updater.find_outdated(project, names, progress)
        else:
            results = updater.update(
                project, names, conflicts=conflicts, unsigned=unsigned, progress=progress
            )
    updated = sum(result.status == "updated" for result in results)
    return _to_command_result(results, f"{format_count(updated, 'skill')} updated")


def _to_command_result(results: Sequence[UpdateResult], *summary: str) -> CommandResult:
    errors = [
        (result.key, to_error_info(result.error)) for result in results if result.error is not None
    ]
    error = (
        errors[0][1]
        if errors
        else _summarize("conflict", "conflict", "changed on both sides", results)
        or _summarize("rejected", "invalid_skill", "rejected", results)
    )
    codes = [info.exit_code for _, info in errors]
    codes += [_STATUS_EXIT_CODES.get(each.status, OK) for each in results if each.error is None]
    length = _SHORT_COMMIT_LENGTH
    return CommandResult(
        {"skills": [_serialize_result(result) for result in results]},
        [judged for result in results for judged in result.findings],
        error,
        exit_code=max(codes, default=OK),
        headings=["skill", "source", "status", "from", "to"],
        rows=[(r.key, r.source, r.status, r.before[:length], r.after[:length]) for r in results],
        messages=[*format_errors(errors), *_format_details(results), *summary],
    )


def _summarize(
    status: str, code: str, problem: str, results: Sequence[UpdateResult]
) -> ErrorInfo | None:
    names = ", ".join(result.key for result in results if result.status == status)
    return ErrorInfo(code, f"{problem}: {names}") if names else None


def _format_details(results: Sequence[UpdateResult]) -> Iterator[str]:
    """Yield details per skill: stale source, changed files and hints."""
    for result in results:
        if result.stale:
            yield f"warning: {result.key}: {result.stale}"
        yield from format_findings(result.findings)
        for outcome in result.outcomes:
            reason = f" ({outcome.reason})" if outcome.reason else ""
            resolved = ", resolved by --conflicts" * (result.status == "updated" and bool(reason))
            yield f"{result.key}/{outcome.path}: {outcome.kind}{reason}{resolved}"
        if result.status == "conflict":
            yield "hint: use '--conflicts mine' or '--conflicts theirs' to resolve these conflicts"
        if result.status == "missing":
            yield f"{result.key} is not installed"
            yield "hint: 'skillhall install' installs it again"


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
