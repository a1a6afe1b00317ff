"""`skillhall compat`: what each agent and library would make of skills."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

import click

from skillhall._internal.authoring.fix import FixResult
from skillhall._internal.authoring.portability import (
    PortabilityResult,
    check_agents,
    check_portability,
    fix_portability,
    load_client_table,
    name_client,
    serialize_verdicts,
)
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.author.check_formats import escape_markdown
from skillhall._internal.cli.commands.author.report_formats import SARIF_SCHEMA, shorten_path
from skillhall._internal.cli.commands.author.validate import print_fixes, serialize_fix
from skillhall._internal.cli.errors import CommandFailed, ErrorInfo
from skillhall._internal.cli.json_output import print_json_value
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, print_lines, sanitize_line
from skillhall._internal.installer.agent_folders import AGENTS
from skillhall._internal.policy.portability.client_rules import (
    ClientVerdict,
    Outcome,
    count_outcomes,
    group_verdicts,
)
from skillhall._internal.policy.profiles import Profile
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import find_profile
from skillhall._version import VERSION

_FORMATS = ["text", "json", "markdown", "sarif"]
_LEVELS = {Outcome.DROPPED: "error", Outcome.LOSS: "warning"}


@json_command("compat", "skillhall compat pdf-tools --agent codex", formats=_FORMATS)
@click.argument("skills", nargs=-1, metavar="[NAME|PATH]...")
@click.option(
    "-a",
    "--agent",
    "agents",
    multiple=True,
    metavar="ID",
    help="Show only this agent or library. Repeatable.  [default: all that were compared]",
)
@flag("--fix", "apply_fixes", help="Rewrite what can be made portable without a change of meaning.")
@flag("-n", "--dry-run", help="With --fix, show the changes only.")
@flag("-v", "--verbose", help="Show the clients that load a skill, too.")
def command(
    *,
    skills: tuple[str, ...],
    agents: tuple[str, ...],
    apply_fixes: bool,
    dry_run: bool,
    verbose: bool,
    output_format: str,
) -> CommandResult:
    """Show what each agent or library would make of skills: NAMEs, or skills at each PATH.

    Each client loads a skill, loads it with a loss, or drops it. Without an argument, show the
    skills in the default folders. The exit code is 1 if a client drops a skill. --fix quotes
    values, writes the description on one line and so on; it never changes the instructions.
    """
    if dry_run and not apply_fixes:
        raise click.UsageError("--dry-run needs --fix")
    check_agents(agents, AGENTS)
    settings = read_settings()
    paths = [skill for skill in skills if Path(skill).exists()]
    names = [skill for skill in skills if skill not in paths]
    profile = find_profile("specification")

    check = partial(_check, paths, names, agents, profile, settings)
    results = check()
    fixed: tuple[FixResult, ...] | None = None
    if apply_fixes:
        locations = [result.location for result in results]
        fixed = fix_portability(locations, agents, profile, settings, dry_run=dry_run)
        results = check()
    directory = settings.working_directory
    if output_format != "json":
        print_fixes(fixed or (), shows_diff=dry_run and output_format == "text")
    if output_format == "text":
        print_lines(_format_text(results, directory, verbose=verbose))
    elif output_format == "markdown":
        print_lines(_format_markdown(results))
    elif output_format == "sarif":
        print_json_value(_build_sarif(results, directory))
    return _build_result(results, fixed)


def _check(
    paths: Sequence[str],
    names: Sequence[str],
    agents: Sequence[str],
    profile: Profile,
    settings: Settings,
) -> list[PortabilityResult]:
    """Judge the skills at the paths and those with the names; without any, the default ones."""
    results = [*check_portability(paths, (), agents, profile, settings)] if paths else []
    if names or not paths:
        results += check_portability((), names, agents, profile, settings)
    found = {each for result in results for each in (result.name, Path(result.path).name)}
    if missing := [name for name in names if name not in found]:
        raise CommandFailed(
            "not_found", f"there is no skill {missing[0]!r}", "'skillhall list' shows the skills"
        )
    return results


def _build_result(
    results: Sequence[PortabilityResult], fixed: Sequence[FixResult] | None
) -> CommandResult:
    dropped = sum(_count(result, Outcome.DROPPED) > 0 for result in results)
    lossy = sum(_count(result, Outcome.LOSS) > 0 for result in results)
    portable = sum(_count(result, Outcome.LOADS) == len(result.verdicts) for result in results)
    summary = f"{format_count(len(results), 'skill')}: {portable} portable"
    summary += f", {lossy} with a loss" if lossy else ""
    summary += f", {dropped} dropped by a client" if dropped else ""
    counts = {"portable": portable, "loss": lossy, "dropped": dropped}
    data: dict[str, object] = {
        "skills": [
            {
                "name": result.name,
                "path": result.path,
                "clients": serialize_verdicts(result.verdicts),
            }
            for result in results
        ],
        "summary": {"skills": len(results), **counts},
    }
    if fixed is not None:
        data["fixed"] = [serialize_fix(result) for result in fixed]
    error = ErrorInfo("check_failed", summary) if dropped else None
    return CommandResult(data, error=error, exit_code=1 if dropped else 0, warnings=[summary])


def _count(result: PortabilityResult, outcome: Outcome) -> int:
    return count_outcomes(result.verdicts)[outcome]


def _format_reasons(verdict: ClientVerdict) -> Iterator[str]:
    texts = load_client_table().texts
    for rule in verdict.reasons:
        text, repair = texts[rule.trait]
        lost = f"loses {rule.field or 'fields'}: " if rule.outcome is Outcome.LOSS else ""
        yield f"{lost}{text}; {repair}"


def _format_text(
    results: Sequence[PortabilityResult], directory: str, *, verbose: bool
) -> Iterator[str]:
    for result in results:
        counts = count_outcomes(result.verdicts)
        path = sanitize_line(shorten_path(result.location, directory))
        parts = ", ".join(f"{counts[one]} {one}" for one in Outcome if counts[one])
        yield f"{path}: {parts}"
        shown = [one for one in result.verdicts if one.outcome is not Outcome.LOADS or verbose]
        for group in group_verdicts(shown):
            yield f"  {group[0].outcome}: {', '.join(map(name_client, group))}"
            yield from (f"    {reason}" for reason in _format_reasons(group[0]))


def _format_markdown(results: Sequence[PortabilityResult]) -> Iterator[str]:
    for result in results:
        yield f"## {escape_markdown(result.name)}"
        yield ""
        yield "| Client | Outcome | Reason and repair |"
        yield "|---|---|---|"
        for verdict in result.verdicts:
            reasons = "<br>".join(escape_markdown(reason) for reason in _format_reasons(verdict))
            yield f"| {escape_markdown(name_client(verdict))} | {verdict.outcome} | {reasons} |"
        yield ""


def _build_sarif(results: Sequence[PortabilityResult], directory: str) -> dict[str, object]:
    texts = load_client_table().texts
    entries = []
    for result in results:
        path = shorten_path(result.location, directory).replace(os.sep, "/")
        for verdict in result.verdicts:
            for rule in verdict.reasons:
                text, repair = texts[rule.trait]
                effect = "drops the skill" if rule.outcome is Outcome.DROPPED else "loses a field"
                message = f"{name_client(verdict)} {effect}: {text} (hint: {repair})"
                entries.append(
                    {
                        "ruleId": rule.trait.value,
                        "level": _LEVELS[rule.outcome],
                        "message": {"text": sanitize_line(message)},
                        "locations": [
                            {"physicalLocation": {"artifactLocation": {"uri": quote(path)}}}
                        ],
                    }
                )
    used = sorted({rule.trait for r in results for v in r.verdicts for rule in v.reasons})
    rules = [{"id": one.value, "shortDescription": {"text": texts[one].text}} for one in used]
    driver = {"name": "skillhall", "version": VERSION, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": entries}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
