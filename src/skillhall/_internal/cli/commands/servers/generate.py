"""`skillhall generate`: the prompts of a server as skills in the folders of agents."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.catalog_loader import counted
from skillhall._internal.cli.errors import CommandFailed, failure_of
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import CodingAgent
from skillhall._internal.cli.project_options import global_option, open_shelf, tell_failures
from skillhall._internal.cli.server_options import asked_options, open_server, server_option
from skillhall._internal.cli.terminal import clean, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.cli.errors import Failure
    from skillhall._internal.installer.project import Shelf
    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.prompts.generate.claude_hook import HookReport
    from skillhall._internal.prompts.generate.writer import Done, GenerateReport, Target

_HOOKS = {
    "added": "Claude Code generates at every start now",
    "updated": "the hook was brought up to date",
    "unchanged": "nothing to change",
    "removed": "the hook is gone",
}


class Words(NamedTuple):
    """What the command was told that a hook must repeat."""

    agents: tuple[str, ...]
    path: str | None
    is_user: bool
    server: str
    asked: Mapping[str, str]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    force: bool

    def repeated(self) -> Iterator[str]:
        """The options again, each word by itself."""
        yield from (f"--agent={agent}" for agent in self.agents)
        yield from (f"--path={self.path}",) if self.path is not None else ()
        yield from ("--global",) if self.is_user else ()
        yield from (f"--server={self.server}",) if self.server else ()
        for name, text in self.asked.items():
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
    type=CodingAgent(),
    metavar="AGENT",
    help="For this agent; '*' is all that are used here, as without any.",
)
@click.option("--path", metavar="DIR", help="The folder of skills, instead of an agent's.")
@global_option
@server_option
@asked_options
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
    words = Words(agents, path, is_user, server, asked, include, exclude, force)
    shelf = open_shelf(is_user=is_user)
    if hook is not None:
        _show_hook(_change_hook(shelf, words, hook), is_json=as_json)
        return 0
    report = _generate(shelf, words, dry_run=dry_run)
    failures = [(one.prompt, failure_of(one.error)) for one in report.failed]
    if as_json:
        _print_json(report, failures)
    else:
        _print_text(report, is_plan=dry_run, is_silent=as_hook)
        tell_failures(failures)
    return max((failure.exit_code for _, failure in failures), default=0)


def _generate(shelf: Shelf, words: Words, *, dry_run: bool) -> GenerateReport:
    from skillhall._internal.cli.progress import transfer_progress
    from skillhall._internal.prompts.generate.convert import Wanted, fetch_skills
    from skillhall._internal.prompts.generate.prompt_server import origin_of
    from skillhall._internal.prompts.generate.writer import GenerateReport, Wish, generate

    targets = _targets(shelf, words)
    server = open_server(words.server, words.asked)
    with transfer_progress() as progress:
        batch = fetch_skills(server, Wanted(words.include, words.exclude), progress)
    wish = Wish(origin_of(server), words.force, dry_run)
    report = GenerateReport(findings=batch.findings, failed=batch.failed)
    for target in targets:
        report.add(generate(batch, target, wish))
    return report


def _targets(shelf: Shelf, words: Words) -> Sequence[Target]:
    """The folders to write into; whoever names none is told which are taken."""
    from skillhall._internal.prompts.generate.writer import Target, targets_for
    from skillhall.errors import AgentHasNoPlace

    if words.path is not None:
        return [Target.at(shelf, words.path)]
    try:
        found = targets_for(shelf, words.agents)
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
    if not words.agents:
        say(f"for the agents that are used here: {', '.join(found.agents)}")
    return found.targets


def _change_hook(shelf: Shelf, words: Words, hook: str) -> HookReport:
    from skillhall._internal.prompts.generate.claude_hook import install_hook, remove_hook

    if hook == "remove":
        return remove_hook(shelf, words.agents)
    open_server(words.server, words.asked)  # a hook with a mistake in it would fail at every start
    return install_hook(shelf, list(words.repeated()), words.agents)


def _show_hook(report: HookReport, *, is_json: bool) -> None:
    if is_json:
        from skillhall._internal.cli.json_output import print_report

        told = {"path": report.path, "change": report.change, "command": report.command}
        print_report("generate", {"hook": {**told, "backup": report.backup}})
        return
    sys.stdout.write(f"{clean(report.path)}\n")
    say(_HOOKS[report.change])
    if report.backup:
        say(f"the settings as they were: {report.backup}")


def _print_json(report: GenerateReport, failures: Sequence[tuple[str, Failure]]) -> None:
    from skillhall._internal.cli.json_output import print_report

    data = {
        "written": _as_json(report.written),
        "unchanged": _as_json(report.unchanged),
        "removed": [{"name": one.name, "path": one.path} for one in report.removed],
        "left": [{"name": one.name, "path": one.path, "reason": one.reason} for one in report.left],
        "failed": [{"name": name, **failure.as_json()} for name, failure in failures],
    }
    error = failures[0][1].as_json() if failures else None
    print_report("generate", data, report.findings, error)


def _as_json(done: Sequence[Done]) -> list[dict[str, object]]:
    return [{"name": one.name, "path": one.path, "executables": [*one.programs]} for one in done]


def _print_text(report: GenerateReport, *, is_plan: bool, is_silent: bool) -> None:
    for judged in report.findings:
        say(_worded(judged))
    for one in report.written:
        if not is_silent:
            sys.stdout.write(f"{clean(one.path)}\n")
        for program in one.programs:
            say(f"executable: {one.path}/{program}")
    for one in report.removed:
        say(f"{'would be removed' if is_plan else 'removed'}: {one.path}")
    verb = "would be written" if is_plan else "written"
    say(
        f"{counted(len(report.written), 'skill')} {verb}, {len(report.unchanged)} up to date, "
        f"{len(report.removed)} removed, {len(report.left)} left alone"
        f"{f', {len(report.failed)} failed' if report.failed else ''}"
    )


def _worded(judged: Judged) -> str:
    found = judged.finding
    where = f"{found.path}: " if found.path else ""
    hint = f" ({found.hint})" if found.hint else ""
    return f"{where}{judged.effect}[{found.code}]: {found.message}{hint}"
