"""`skillhall generate`: writes the prompts of a server as skills for coding agents."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.errors import CommandFailed, to_error_info
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import CodingAgentParam
from skillhall._internal.cli.project_options import open_project, print_errors, user_scope_option
from skillhall._internal.cli.server_options import (
    open_server,
    server_option,
    source_selector_options,
)
from skillhall._internal.cli.terminal import print_message, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.cli.errors import ErrorInfo
    from skillhall._internal.installer.project import Project
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.prompts.generate.claude_hook import HookReport
    from skillhall._internal.prompts.generate.writer import (
        GeneratedResult,
        GenerateReport,
        GenerateTarget,
    )

_HOOK_MESSAGES = {
    "added": "hook added: Claude Code runs 'skillhall generate' at every start",
    "updated": "hook updated",
    "unchanged": "hook unchanged",
    "removed": "hook removed",
}


class GenerateArguments(NamedTuple):
    """The options that a hook must repeat."""

    agents: tuple[str, ...]
    path: str | None
    is_user: bool
    server: str
    source_selector: Mapping[str, str]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    force: bool

    def to_argv(self) -> Iterator[str]:
        """Yield the options as command-line arguments."""
        yield from (f"--agent={agent}" for agent in self.agents)
        yield from (f"--path={self.path}",) if self.path is not None else ()
        yield from ("--global",) if self.is_user else ()
        yield from (f"--server={self.server}",) if self.server else ()
        for name, value in self.source_selector.items():
            if value:
                yield f"--{'prompt-path' if name == 'path' else name}={value}"
        yield from (f"--include={pattern}" for pattern in self.include)
        yield from (f"--exclude={pattern}" for pattern in self.exclude)
        yield from ("--force",) if self.force else ()


@click.command("generate", epilog="Example: skillhall generate --agent claude-code --agent cursor")
@click.option(
    "-a",
    "--agent",
    "agents",
    multiple=True,
    type=CodingAgentParam(),
    metavar="AGENT",
    help="Write for this agent. Repeatable.  [default: '*', every agent detected here]",
)
@click.option("--path", metavar="DIR", help="Write to this folder instead of an agent's.")
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
@click.option("--force", is_flag=True, help="Replace generated skills even if they were edited.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be done without doing it.")
@click.option(
    "--install-hook",
    "hook",
    flag_value="install",
    help="Make Claude Code run this command at every start, and exit.",
)
@click.option("--remove-hook", "hook", flag_value="remove", help="Remove the hook and exit.")
@click.option("--as-hook", is_flag=True, hidden=True, help="Print nothing on stdout.")
@json_option
def command(  # noqa: PLR0913 - one parameter for each option
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
    as_json: bool,
) -> int:
    """Write the prompts of a server as skills: one folder each, with SKILL.md and files.

    Run it again to update them; skills whose prompts no longer exist are removed. Folders that it
    did not create, or that were edited, are skipped with a warning; the exit code is still 0. If
    the server fails to return a prompt, the others are written and the exit code says why. The
    token is read from SKILLHALL_SERVER_TOKEN.
    """
    options = GenerateArguments(agents, path, is_user, server, selector, include, exclude, force)
    project = open_project(is_user=is_user)
    if hook is not None:
        _print_hook(_change_hook(project, options, hook), as_json=as_json)
        return 0
    report = _generate(project, options, dry_run=dry_run)
    errors = [(failure.prompt, to_error_info(failure.error)) for failure in report.failed]
    if as_json:
        _print_json(report, errors)
    else:
        _print_text(report, is_dry_run=dry_run, is_silent=as_hook)
        print_errors(errors)
    return max((info.exit_code for _, info in errors), default=0)


def _generate(project: Project, arguments: GenerateArguments, *, dry_run: bool) -> GenerateReport:
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.prompts.generate.convert import PromptFilter, fetch_prompt_skills
    from skillhall._internal.prompts.generate.prompt_server import build_origin
    from skillhall._internal.prompts.generate.writer import (
        GenerateOptions,
        GenerateReport,
        generate,
    )

    targets = _find_targets(project, arguments)
    server = open_server(arguments.server, arguments.source_selector)
    with transfer_progress() as progress:
        batch = fetch_prompt_skills(
            server, PromptFilter(arguments.include, arguments.exclude), progress
        )
    options = GenerateOptions(build_origin(server), arguments.force, dry_run)
    report = GenerateReport(findings=batch.findings, failed=batch.failed)
    for target in targets:
        report.merge(generate(batch, target, options))
    return report


def _find_targets(project: Project, arguments: GenerateArguments) -> Sequence[GenerateTarget]:
    """Return the folders to write to; detected ones are announced."""
    from skillhall._internal.prompts.generate.writer import GenerateTarget, find_targets
    from skillhall.errors import AgentHasNoPlace

    if arguments.path is not None:
        return [GenerateTarget.from_path(project, arguments.path)]
    try:
        selection = find_targets(project, arguments.agents)
    except AgentHasNoPlace as error:
        error.hint = "name the folder with --path, or generate without --global"
        raise
    if not selection.targets:
        raise CommandFailed(
            "usage",
            "no coding agent detected here",
            "name one with --agent, as in '--agent claude-code', or a folder with --path",
            "generate",
        )
    if not arguments.agents:
        print_message(f"agents detected here: {', '.join(selection.agents)}")
    return selection.targets


def _change_hook(project: Project, arguments: GenerateArguments, action: str) -> HookReport:
    from skillhall._internal.prompts.generate.claude_hook import install_hook, remove_hook

    if action == "remove":
        return remove_hook(project, arguments.agents)
    # Validate the options now: a hook with an error would fail at every start.
    open_server(arguments.server, arguments.source_selector)
    return install_hook(project, list(arguments.to_argv()), arguments.agents)


def _print_hook(report: HookReport, *, as_json: bool) -> None:
    if as_json:
        hook = {"path": report.path, "change": report.change, "command": report.command}
        print_json_report("generate", {"hook": {**hook, "backup": report.backup}})
        return
    sys.stdout.write(f"{sanitize_line(report.path)}\n")
    print_message(_HOOK_MESSAGES[report.change])
    if report.backup:
        print_message(f"backup of the previous settings: {report.backup}")


def _print_json(report: GenerateReport, errors: Sequence[tuple[str, ErrorInfo]]) -> None:
    data = {
        "written": _serialize_generated(report.written),
        "unchanged": _serialize_generated(report.unchanged),
        "removed": [{"name": result.name, "path": result.path} for result in report.removed],
        "left": [
            {"name": result.name, "path": result.path, "reason": result.reason}
            for result in report.skipped
        ],
        "failed": [{"name": name, **info.serialize()} for name, info in errors],
    }
    error = errors[0][1].serialize() if errors else None
    print_json_report("generate", data, report.findings, error)


def _serialize_generated(results: Sequence[GeneratedResult]) -> list[dict[str, object]]:
    return [
        {"name": result.name, "path": result.path, "executables": [*result.executables]}
        for result in results
    ]


def _print_text(report: GenerateReport, *, is_dry_run: bool, is_silent: bool) -> None:
    for judged in report.findings:
        print_message(_format_finding(judged))
    for result in report.written:
        if not is_silent:
            sys.stdout.write(f"{sanitize_line(result.path)}\n")
        for program in result.executables:
            print_message(f"executable: {result.path}/{program}")
    for result in report.removed:
        print_message(f"{'would remove' if is_dry_run else 'removed'} {result.path}")
    verb = "would be written" if is_dry_run else "written"
    print_message(
        f"{format_count(len(report.written), 'skill')} {verb}, {len(report.unchanged)} up to date, "
        f"{len(report.removed)} removed, {len(report.skipped)} skipped"
        f"{f', {len(report.failed)} failed' if report.failed else ''}"
    )


def _format_finding(judged: JudgedFinding) -> str:
    finding = judged.finding
    where = f"{finding.path}: " if finding.path else ""
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"{where}{judged.effect}[{finding.code}]: {finding.message}{hint}"
