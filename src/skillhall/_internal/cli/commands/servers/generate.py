"""`skillhall generate`: writes prompts of a server as skills for coding agents."""

from collections.abc import Iterator, Mapping, Sequence

import click

from skillhall._internal.cli.command_result import CommandResult, format_errors
from skillhall._internal.cli.errors import CommandFailed, to_error_info
from skillhall._internal.cli.options import dry_run_option, flag, json_command
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.project_options import (
    complete_coding_agent,
    open_project,
    user_scope_option,
)
from skillhall._internal.cli.server_options import (
    open_server,
    server_option,
    source_selector_options,
)
from skillhall._internal.cli.terminal import format_count, print_message
from skillhall._internal.installer.install_rules import load_install_rules
from skillhall._internal.installer.project import Project
from skillhall._internal.prompt_server.generate.claude_hook import (
    HookReport,
    install_hook,
    remove_hook,
)
from skillhall._internal.prompt_server.generate.convert import PromptFilter, fetch_prompt_skills
from skillhall._internal.prompt_server.generate.prompt_server_client import build_origin
from skillhall._internal.prompt_server.generate.writer import (
    GenerateOptions,
    GenerateReport,
    GenerateTarget,
    find_targets,
    generate,
)
from skillhall.errors import AgentHasNoPlace

_COMMAND_LINE = click.core.ParameterSource.COMMANDLINE
# Parameters of this command that its hook must not repeat.
_NOT_REPEATED = {"dry_run", "hook", "as_hook", "as_json", "output_format"}
_HOOK_MESSAGES = {
    "added": "hook added: Claude Code runs 'skillhall generate' whenever it starts",
    "updated": "hook updated",
    "unchanged": "hook unchanged",
    "removed": "hook removed",
}


@json_command("generate", "skillhall generate --agent claude-code --agent cursor")
@click.option(
    "-a",
    "--agent",
    "agents",
    multiple=True,
    shell_complete=complete_coding_agent,
    metavar="AGENT",
    help="Write skills for this agent. Repeatable.  [default: '*', every agent detected here]",
)
@click.option("--path", metavar="DIR", help="Write to this folder instead of an agent's folder.")
@user_scope_option
@server_option
@source_selector_options
@click.option(
    "--include",
    multiple=True,
    metavar="GLOB",
    help="Write only prompts with a matching name. Repeatable.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="GLOB",
    help="Skip prompts with a matching name. Repeatable.",
)
@flag("--force", help="Replace generated skills even if they were edited.")
@dry_run_option
@click.option(
    "--install-hook",
    "hook",
    flag_value="install",
    help="Install a hook that runs this command whenever Claude Code starts, and exit.",
)
@click.option("--remove-hook", "hook", flag_value="remove", help="Remove the hook and exit.")
@flag("--as-hook", hidden=True, help="Print nothing on stdout.")
def command(
    *,
    agents: tuple[str, ...],
    path: str | None,
    is_user: bool,
    server: str,
    selector: Mapping[str, str],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    force: bool,
    dry_run: bool,
    hook: str | None,
    as_hook: bool,
) -> CommandResult:
    """Write the prompts of a server as skills: folders with a SKILL.md and files.

    Run it again to update them; skills whose prompts no longer exist are removed. Folders that it
    did not create, or that were edited, are skipped with a warning; the exit code is still 0. If
    the server fails to return a prompt, the others are written and the exit code is that of the
    error. The token is read from SKILLHALL_SERVER_TOKEN.
    """
    project = open_project(is_user=is_user)
    if hook == "remove":
        return _report_hook(remove_hook(project, agents))
    if hook is not None:
        # Validate the options now: a hook with an error would fail at every start.
        open_server(server, selector)
        return _report_hook(install_hook(project, _repeat_options(), agents))
    targets = _find_targets(project, agents, path)
    client = open_server(server, selector)
    with transfer_progress() as progress:
        rules = load_install_rules(None, project.settings)
        rules = rules._replace(source=build_origin(client).server.partition("://")[2].rstrip("/"))
        batch = fetch_prompt_skills(client, PromptFilter(include, exclude), progress, rules)
    options = GenerateOptions(build_origin(client), force, dry_run)
    report = GenerateReport(findings=batch.findings, failed=batch.failed)
    for target in targets:
        report.merge(generate(batch, target, options))
    errors = [(failure.prompt, to_error_info(failure.error)) for failure in report.failed]
    data = {
        "written": [result._asdict() for result in report.written],
        "unchanged": [result._asdict() for result in report.unchanged],
        "removed": [{"name": result.name, "path": result.path} for result in report.removed],
        "left": [result._asdict() for result in report.skipped],
        "failed": [{"name": name, **info.serialize()} for name, info in errors],
    }
    return CommandResult(
        data,
        report.findings,
        error=errors[0][1] if errors else None,
        exit_code=max((info.exit_code for _, info in errors), default=0),
        lines=[] if as_hook else [result.path for result in report.written],
        messages=[*_format_report(report, is_dry_run=dry_run), *format_errors(errors)],
    )


def _find_targets(
    project: Project, agents: tuple[str, ...], path: str | None
) -> Sequence[GenerateTarget]:
    """Return the folders to write to; print the agents if they were detected.

    Raises: UnknownAgent, AgentHasNoPlace, UnsafePath, CommandFailed if no agent is detected.
    """
    if path is not None:
        return [GenerateTarget.from_path(project, path)]
    try:
        targets, detected = find_targets(project, agents)
    except AgentHasNoPlace as error:
        error.hint = "name the folder with --path, or omit --global"
        raise
    if not targets:
        raise CommandFailed(
            "usage",
            "no coding agent detected here",
            "name one with --agent, as in '--agent claude-code', or a folder with --path",
            "generate",
        )
    if not agents:
        print_message(f"agents detected here: {', '.join(detected)}")
    return targets


def _repeat_options() -> list[str]:
    """Return the options of this call that the hook must repeat."""
    context = click.get_current_context()
    arguments: list[str] = []
    for param in context.command.params:
        name = param.name or ""
        if name in _NOT_REPEATED or context.get_parameter_source(name) is not _COMMAND_LINE:
            continue
        option = max(param.opts, key=len)
        value = context.params[name]
        values = value if isinstance(value, tuple) else [value]
        arguments += [option if each is True else f"{option}={each}" for each in values]
    return arguments


def _report_hook(report: HookReport) -> CommandResult:
    messages = [_HOOK_MESSAGES[report.change]]
    if report.backup:
        messages.append(f"backup of the previous settings: {report.backup}")
    return CommandResult({"hook": report._asdict()}, lines=[report.path], messages=messages)


def _format_report(report: GenerateReport, *, is_dry_run: bool) -> Iterator[str]:
    for finding, effect in report.findings:
        where = f"{finding.path}: " if finding.path else ""
        hint = f" ({finding.hint})" if finding.hint else ""
        yield f"{where}{effect}[{finding.code}]: {finding.message}{hint}"
    for result in report.written:
        yield from (f"executable: {result.path}/{program}" for program in result.executables)
    for result in report.removed:
        yield f"{'would remove' if is_dry_run else 'removed'} {result.path}"
    verb = "would be written" if is_dry_run else "written"
    failed = f", {len(report.failed)} failed" if report.failed else ""
    yield (
        f"{format_count(len(report.written), 'skill')} {verb}, {len(report.unchanged)} up to date, "
        f"{len(report.removed)} removed, {len(report.skipped)} skipped{failed}"
    )
