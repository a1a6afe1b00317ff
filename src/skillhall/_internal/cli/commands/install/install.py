"""`skillhall install`, `verify` and `agents`: the lock file and agents' folders."""

from collections.abc import Iterator
from dataclasses import asdict

from skillhall._internal.cli.command_result import CommandResult, format_errors
from skillhall._internal.cli.errors import to_error_info
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.project_options import (
    check_revocations,
    installed_skills_argument,
    open_project,
    unsigned_option,
    user_scope_option,
)
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.installer.agent_folders import AGENTS, detect_agents
from skillhall._internal.installer.locked_install import install_locked
from skillhall._internal.installer.verify import VerifyResult, verify
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE


@json_command("install", "skillhall install --frozen")
@user_scope_option
@flag("--frozen", help="Fail if anything differs from the lock file.")
@unsigned_option
def command(*, is_user: bool, frozen: bool, unsigned: bool) -> CommandResult:
    """Install the skills in the lock file that are not installed yet.

    Reads skillhall-lock.json, then skills-lock.json (the lock file of 'npx skills') for skills that
    are listed only there. Installed skills are not changed. With --frozen, the command fails if a
    skill was edited or its files changed upstream.
    """
    project = open_project(is_user=is_user)
    check_revocations(project.settings)
    with transfer_progress() as progress:
        results = install_locked(project, frozen=frozen, unsigned=unsigned, progress=progress)
    errors = {r.key: to_error_info(r.error) for r in results if r.error is not None}
    skills = [
        {
            "path": result.key,
            "status": result.status.value,
            **({"error": errors[result.key].serialize()} if result.error else {}),
        }
        for result in results
    ]
    installed = format_count(sum(r.status == "installed" for r in results), "skill")
    summary = f"{installed} installed, {format_count(len(errors), 'error')}"
    return CommandResult(
        {"skills": skills},
        error=next(iter(errors.values()), None),
        exit_code=max((info.exit_code for info in errors.values()), default=0),
        headings=["skill", "status"],
        rows=[(result.key, result.status) for result in results],
        messages=[*format_errors(errors.items()), summary],
    )


@json_command("verify", "skillhall verify --json")
@installed_skills_argument
@user_scope_option
def verify_skills(*, names: tuple[str, ...], is_user: bool) -> CommandResult:
    """Compare the files of installed skills with the lock file, and check their signatures.

    The exit code is 1 if they differ or a signature is broken, and 4 if there is no lock file.
    """
    results = verify(open_project(is_user=is_user), names)
    different = sum(not result.is_intact or result.is_signature_broken for result in results)
    return CommandResult(
        {"places": [{**asdict(result), "ok": result.is_intact} for result in results]},
        exit_code=1 if different else 0,
        headings=["skill", "file", "status"],
        rows=[row for result in results for row in _format_rows(result)],
        messages=[f"{format_count(len(results), 'folder')} checked, {different} different"],
    )


def _format_rows(result: VerifyResult) -> Iterator[tuple[str, str, str]]:
    if result.signature:
        yield result.place, SIGNATURE_FILE, result.signature
    if result.is_intact or not result.is_there:
        yield result.place, "", "ok" if result.is_intact else "missing"
        return
    for status in ("changed", "missing", "extra"):
        for path in getattr(result, status):
            yield result.place, path, status


@json_command("agents", "skillhall agents --json")
def agents() -> CommandResult:
    """List the supported coding agents and their folders; mark agents detected here."""
    settings = read_settings()
    detected = {
        agent.id
        for agent in detect_agents(settings.home, settings.working_directory, settings.variables)
    }
    entries = [
        {
            "id": agent.id,
            "label": agent.label,
            "project": agent.project_folder,
            "user": agent.user_folder,
            "used": agent.id in detected,
        }
        for agent in AGENTS.values()
    ]
    rows = [
        (agent.id, agent.project_folder, agent.user_folder, "detected" * (agent.id in detected))
        for agent in AGENTS.values()
    ]
    headings = ["agent", "project folder", "user folder", ""]
    return CommandResult({"agents": entries}, headings=headings, rows=rows)
