"""`skillhall publish`: writes skills as packages, sites and repositories for others."""

from datetime import UTC, datetime

import click

from skillhall._internal.agents.config.agent_config import find_config
from skillhall._internal.cli.command_result import CommandResult, is_json
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, print_text
from skillhall._internal.publishing.publish_config import (
    PublishConfig,
    PublishTarget,
    read_publish_config,
)
from skillhall._internal.publishing.publish_run import (
    PublishPlan,
    PublishRequest,
    plan_publication,
    yank,
)
from skillhall._internal.publishing.version_log import Bump
from skillhall._internal.wiring.project_review import open_review

_SIGNS = {"added": "+", "changed": "~", "removed": "-"}


@json_command("publish", "skillhall publish static git --dry-run")
@click.argument(
    "targets", nargs=-1, metavar="[TARGET]...", type=click.Choice([*map(str, PublishTarget)])
)
@click.option(
    "--bump",
    type=click.Choice([*map(str, Bump)]),
    default=Bump.PATCH.value,
    show_default=True,
    help="Increase this part of the version of each changed skill.",
)
@flag("-n", "--dry-run", help="Show what would change, and change nothing.")
@flag("--diff", "shows_diff", help="With --dry-run, also show the changes in text files.")
@click.option(
    "--yank",
    "yanked",
    metavar="NAME@VERSION",
    help="Withdraw this version.",
)
@click.option("--reason", default="", metavar="TEXT", help="Why the version is yanked.")
@click.option(
    "--config",
    metavar="FILE",
    help="Read the settings from this file.  [default: ./skillhall.toml or ./skillhall.json]",
)
def command(
    *,
    targets: tuple[str, ...],
    bump: str,
    dry_run: bool,
    shows_diff: bool,
    yanked: str | None,
    reason: str,
    config: str | None,
) -> CommandResult:
    """Write the skills of a project as packages, sites and repositories that others install from.

    TARGET is static, git, python, npm, claude-plugin, gemini or oci; by default all targets in the
    table [publish] of skillhall.toml. Nothing is uploaded. The command fails if validation rejects
    a skill, or a policy holds it.
    """
    if shows_diff and not dry_run:
        raise click.UsageError("--diff needs --dry-run")
    settings = read_settings()
    path = config or find_config(settings.working_directory)
    if path is None:
        raise CommandFailed(
            "not_found", "there is no skillhall.toml here", "create it with a table [publish]"
        )
    chosen = read_publish_config(path)
    if yanked is not None:
        if dry_run or targets:
            raise click.UsageError("--yank cannot be combined with --dry-run or TARGET")
        return _yank(chosen, yanked, reason)
    if reason:
        raise click.UsageError("--reason needs --yank NAME@VERSION")
    request = PublishRequest(
        targets=[*map(PublishTarget, targets)],
        bump=Bump(bump),
        now=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    gate = open_review(settings, "skillhall publish").gate
    policies = gate.load_policies()
    if policies is not None and policies.problem:
        # The gate lets skills pass whose folder the user named, even with an unreadable policy.
        raise CommandFailed("invalid_config", policies.problem)
    plan = plan_publication(chosen, request, settings, gate.judge_bundle)
    if not dry_run:
        plan.apply()
    if shows_diff and not is_json():
        for diff in plan.render_diffs():
            print_text(diff)
    return _build_result(plan, dry_run=dry_run)


def _yank(config: PublishConfig, yanked: str, reason: str) -> CommandResult:
    name, at, version = yanked.rpartition("@")
    if not at or not name:
        raise click.UsageError("--yank needs NAME@VERSION")
    yank(config, name, version, reason)
    return CommandResult(
        {"yanked": {"name": name, "version": version, "reason": reason}},
        messages=[f"yanked {name} {version}; update the targets with: skillhall publish"],
    )


def _build_result(plan: PublishPlan, *, dry_run: bool) -> CommandResult:
    lines = []
    for version in plan.versions:
        arrow = f"{version.old or 'new'} -> {version.new or 'removed'}"
        details = f" ({'; '.join(version.changes)})" if version.changes else ""
        lines.append(f"{version.name} {arrow}{details}")
    messages = []
    for target, planned in plan.targets:
        lines += [f"{target}: {_SIGNS[kind]} {path}" for path, kind in planned.changes]
        count = format_count(len(planned.changes), "change") if planned.changes else "no changes"
        messages.append(f"{target}: {planned.path} ({count})")
    version_of_all = plan.publication.release.version
    skills = format_count(len(plan.publication.skills), "skill")
    verb = "would publish" if dry_run else "published"
    return CommandResult(
        {
            "dry_run": dry_run,
            "version": version_of_all,
            "skills": [
                {
                    "name": one.name,
                    "version": one.release.version,
                    "digest": one.release.digest,
                }
                for one in plan.publication.skills
            ],
            "versions": [
                {"name": one.name, "old": one.old, "new": one.new, "changes": [*one.changes]}
                for one in plan.versions
            ],
            "targets": [
                {
                    "target": target.value,
                    "path": planned.path,
                    "changes": [{"path": path, "kind": kind} for path, kind in planned.changes],
                }
                for target, planned in plan.targets
            ],
        },
        lines=lines,
        messages=[*messages, f"{verb} {skills} as version {version_of_all}"],
        warnings=[f"warning: {warning}" for warning in plan.warnings],
    )
