"""`skillhall doctor`: checks the machine and the project, and suggests fixes."""

from collections import Counter
from collections.abc import Iterator

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import ErrorInfo, to_error_info
from skillhall._internal.cli.options import json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, sanitize_line
from skillhall._internal.wiring.machine_health import Diagnosis, Health, examine_machine

_HINTS = {
    "encoding": "set PYTHONUTF8=1",
    "git": "install git 2.39 or newer",
    "sqlite": "use a Python whose SQLite has FTS5",
    "extra": "pip install 'skillhall[{extra}]'",
    "not_a_folder": "move the file away",
    "working_folder": "change to a folder of your own, or change its permissions",
    "folder_permissions": "change its permissions, or set {variable} to another folder",
    "folder_not_private": "change its owner to your account, then run: chmod 700 {path}",
    "skills_missing": "run: skillhall install",
    "skills_missing.user": "run: skillhall install --global",
    "skills_changed": "'skillhall verify' shows the files",
    "skills_changed.user": "'skillhall verify --global' shows the files",
    "server_token": "set SKILLHALL_SERVER_TOKEN to a token of the server",
    "server": "check SKILLHALL_SERVER, and that the server is running",
    "no_server": "'skillhall serve' starts one",
    "no_model": "set SKILLHALL_MODEL, for example to anthropic:claude-sonnet-4-6",
}


@json_command("doctor", "skillhall doctor")
def command() -> CommandResult:
    """Check Python, git, extras, folders, locks, server and model, and suggest fixes.

    The exit code is 1 if there is a problem. Warnings and notes do not fail. Nothing is changed,
    and no request is sent to a model.
    """
    found = [*examine_machine(read_settings())]
    counts = Counter(one.health for one in found)
    problems, warnings = counts[Health.PROBLEM], counts[Health.WARNING]
    summary = f"{format_count(problems, 'problem')}, {format_count(warnings, 'warning')}"
    return CommandResult(
        {
            "checks": [_serialize(one) for one in found],
            "summary": {health.value: counts[health] for health in Health},
        },
        error=ErrorInfo("check_failed", summary) if problems else None,
        exit_code=1 if problems else 0,
        lines=[line for one in found for line in _format(one)],
        warnings=[summary],
    )


def _get_hint(one: Diagnosis) -> str:
    if one.error is not None:
        return to_error_info(one.error).hint
    return _HINTS[one.cause].format_map(one.facts) if one.cause else ""


def _format(one: Diagnosis) -> Iterator[str]:
    yield f"{one.health:<8} {one.subject:<8} {one.message}"
    if hint := _get_hint(one):
        yield f"{'':<17} hint: {hint}"


def _serialize(one: Diagnosis) -> dict[str, object]:
    fields = {
        "subject": one.subject,
        "status": one.health.value,
        "message": sanitize_line(one.message),
        "hint": sanitize_line(_get_hint(one)),
    }
    return {key: value for key, value in fields.items() if value}
