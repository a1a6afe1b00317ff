"""`skillhall generate`: the prompts of a server as skills in the folders of agents."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.errors import CommandFailed, to_error_info
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
    "added": "Claude Code generates at every start now",
    "updated": "the hook was brought up to date",
    "unchanged": "nothing to change",
    "removed": "the hook is gone",
}


class GenerateArguments(NamedTuple):
    """What the command was told that a hook must repeat."""

    agents: tuple[str, ...]
    path: str | None
    is_user: bool
    server: str
    source_selector: Mapping[str, str]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    force: bool

    def to_argv(self) -> Iterator[str]:
        """The options again, each word by itself."""
        yield from (f"--agent={agent}" for agent in self.agents)
        yield from (f"--path={self.path}",) if self.path is not None else ()
        yield from ("--global",) if self.is_user else ()
        yield from (f"--server={self.server}",) if self.server else ()
        for name, text in self.source_selector.items():
            if text:
                yield f"--{'prompt-path' if name == 'path' else name}={text}"
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
    help="For this agent; '*' is all that are used here, as without any.",
)
@click.option("--path", metavar="DIR", help="The folder of skills, instead of an agent's.")
@user_scope_option
@server_option
@source_selector_options
@click.option(
    "--include", multiple=True, metavar="GLOB", help="Only prompts with such a name; repeatable."
)
@click.option(
    "--exclude", multiple=True, metavar="GLOB", help="No prompts with such a name; repeatable."
)
@click.option("--force", is_flag=True, help="Replace generated skills that were edited, too.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option(
    "--install-hook",
    "hook",
    flag_value="install",
    help="Have Claude Code run this command at every start, and stop. Other agents are refused.",
)
@click.option("--remove-hook", "hook", flag_value="remove", help="Undo that, and stop.")
@click.option("--as-hook", is_flag=True, hidden=True, help="Print nothing on stdout.")
@json_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    agents: tuple[str, ...],
    path: str | None,
    is_user: bool,
    server: str,
    asked: Mapping[str, str],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    force: bool,
    dry_run: bool,
    hook: str | None,
    as_hook: bool,
    as_json: bool,
) -> int:
    """Write the prompts of a server as skills: a folder each, SKILL.md and files.

    Run it again to bring them up to date; skills whose prompts are gone are removed. Folders that
    it did not make, or that were edited since, are left alone with a warning, and the exit code is
    0 all the same. If the server fails to give a prompt, the others are written and the exit code
    tells the reason. The server's token comes from SKILLHALL_SERVER_TOKEN.
    """
    words = GenerateArguments(agents, path, is_user, server, asked, include, exclude, force)
    shelf = open_project(is_user=is_user)
    if hook is not None:
        _print_hook(_change_hook(shelf, words, hook), as_json=as_json)
        return 0
    report = _generate(shelf, words, dry_run=dry_run)
    failures = [(one.prompt, to_error_info(one.error)) for one in report.failed]
    if as_json:
        _print_json(report, failures)
    else:
        _print_text(report, is_dry_run=dry_run, is_silent=as_hook)
        print_errors(failures)
    return max((failure.exit_code for _, failure in failures), default=0)


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
    wish = GenerateOptions(build_origin(server), arguments.force, dry_run)
    report = GenerateReport(findings=batch.findings, failed=batch.failed)
    for target in targets:
        report.merge(generate(batch, target, wish))
    return report


def _find_targets(project: Project, arguments: GenerateArguments) -> Sequence[GenerateTarget]:
    """The folders to write into; whoever names none is told which are taken."""
    from skillhall._internal.prompts.generate.writer import GenerateTarget, find_targets
    from skillhall.errors import AgentHasNoPlace

    if arguments.path is not None:
        return [GenerateTarget.from_path(project, arguments.path)]
    try:
        found = find_targets(project, arguments.agents)
    except AgentHasNoPlace as error:
        error.hint = "name the folder with --path, or generate without --global"
        raise
    if not found.targets:
        raise CommandFailed(
            "usage",
            "no agent is used here as far as its folders tell",
            "name one with --agent, as in '--agent claude-code', or a folder with --path",
            "generate",
        )
    if not arguments.agents:
        print_message(f"for the agents that are used here: {', '.join(found.agents)}")
    return found.targets


def _change_hook(project: Project, arguments: GenerateArguments, action: str) -> HookReport:
    from skillhall._internal.prompts.generate.claude_hook import install_hook, remove_hook

    if action == "remove":
        return remove_hook(project, arguments.agents)
    open_server(
        arguments.server, arguments.source_selector
    )  # a hook with a mistake in it would fail at every start
    return install_hook(project, list(arguments.to_argv()), arguments.agents)


def _print_hook(report: HookReport, *, as_json: bool) -> None:
    if as_json:
        from skillhall._internal.cli.json_output import print_json_report

        told = {"path": report.path, "change": report.change, "command": report.command}
        print_json_report("generate", {"hook": {**told, "backup": report.backup}})
        return
    sys.stdout.write(f"{sanitize_line(report.path)}\n")
    print_message(_HOOK_MESSAGES[report.change])
    if report.backup:
        print_message(f"the settings as they were: {report.backup}")


def _print_json(report: GenerateReport, errors: Sequence[tuple[str, ErrorInfo]]) -> None:
    from skillhall._internal.cli.json_output import print_json_report

    data = {
        "written": _serialize_generated(report.written),
        "unchanged": _serialize_generated(report.unchanged),
        "removed": [{"name": one.name, "path": one.path} for one in report.removed],
        "left": [
            {"name": one.name, "path": one.path, "reason": one.reason} for one in report.skipped
        ],
        "failed": [{"name": name, **failure.serialize()} for name, failure in errors],
    }
    error = errors[0][1].serialize() if errors else None
    print_json_report("generate", data, report.findings, error)


def _serialize_generated(results: Sequence[GeneratedResult]) -> list[dict[str, object]]:
    return [
        {"name": one.name, "path": one.path, "executables": [*one.executables]} for one in results
    ]


def _print_text(report: GenerateReport, *, is_dry_run: bool, is_silent: bool) -> None:
    for judged in report.findings:
        print_message(_format_finding(judged))
    for one in report.written:
        if not is_silent:
            sys.stdout.write(f"{sanitize_line(one.path)}\n")
        for program in one.executables:
            print_message(f"executable: {one.path}/{program}")
    for one in report.removed:
        print_message(f"{'would be removed' if is_dry_run else 'removed'}: {one.path}")
    verb = "would be written" if is_dry_run else "written"
    print_message(
        f"{format_count(len(report.written), 'skill')} {verb}, {len(report.unchanged)} up to date, "
        f"{len(report.removed)} removed, {len(report.skipped)} left alone"
        f"{f', {len(report.failed)} failed' if report.failed else ''}"
    )


def _format_finding(judged: JudgedFinding) -> str:
    found = judged.finding
    where = f"{found.path}: " if found.path else ""
    hint = f" ({found.hint})" if found.hint else ""
    return f"{where}{judged.effect}[{found.code}]: {found.message}{hint}"
