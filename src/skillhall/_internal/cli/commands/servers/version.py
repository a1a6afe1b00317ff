"""`skillhall version`: lists and reviews the versions of a server's skills."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import CommandFailed, require_database
from skillhall._internal.cli.options import (
    command_group,
    confirm,
    flag,
    json_command,
    run_directory_option,
)
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_findings
from skillhall._internal.policy.trust.version_states import VersionState
from skillhall._internal.skill_store.serializers import (
    serialize_comparison,
    serialize_deleted,
    serialize_version_change,
    serialize_version_details,
    serialize_versions,
)
from skillhall._internal.wiring.command_actor import get_actor
from skillhall.errors import ConfigInvalid, SkillNotFound, VersionNotFound

if TYPE_CHECKING:  # from an optional extra
    from skillhall._internal.skill_store.versions.skill_versions import (
        SkillVersions,
        VersionChange,
        VersionComparison,
        VersionDetails,
    )
    from skillhall._internal.skill_store.versions.version_diff import FileChange
    from skillhall._internal.wiring.database import DatabaseServices, SkillVersion

_MARKS = {"same": " ", "old": "-", "new": "+", "gap": "@"}

command = command_group(
    "version",
    "Review the versions of a server's skills, and roll back. All commands accept --json.",
    epilog="Example: skillhall version diff pdf@4",
)
_version_argument = click.argument("version", metavar="ID[@N]")
_comment_option = click.option(
    "--comment",
    default="",
    metavar="TEXT",
    help="Add a comment for the author and other reviewers.",
)


@json_command("list", "skillhall version list pdf", group=command)
@click.argument("skill_id", metavar="ID")
@run_directory_option
def list_versions(*, skill_id: str, root: str) -> CommandResult:
    """List the versions of the skill ID, newest first. A star marks the served one."""
    with _open_versions(root) as versions:
        listed = versions.list(skill_id)
        if not listed.versions:
            raise SkillNotFound(skill_id)
        data = serialize_versions(listed, versions.mode.value)
    rows = [
        (
            f"{row.number}{'*' if row.number == listed.current else ''}",
            row.state.value,
            row.created,
            row.author or "-",
            row.digest,
        )
        for row in listed.versions
    ]
    headings = ["version", "state", "created", "author", "digest"]
    return CommandResult(data, headings=headings, rows=rows)


@json_command("show", "skillhall version show pdf@4", group=command)
@_version_argument
@run_directory_option
def show(*, version: str, root: str) -> CommandResult:
    """Show one version, or the newest one: its files, findings and reviews."""
    with _open_versions(root) as versions:
        found = _resolve(versions, version)
        details = versions.show(found.skill, found.number)
    return CommandResult(
        serialize_version_details(details),
        details.scan.findings,
        lines=_format_details(details),
        messages=format_findings(details.scan.findings),
    )


@json_command("diff", "skillhall version diff pdf@4 --against 2", group=command)
@_version_argument
@click.option("--against", type=click.IntRange(1), metavar="N", help="Compare with this version.")
@run_directory_option
def diff(*, version: str, against: int | None, root: str) -> CommandResult:
    """Compare a version with the one that it would replace, or with another.

    Without N, the newest version is compared.
    """
    with _open_versions(root) as versions:
        found = _resolve(versions, version)
        comparison = versions.diff(found.skill, found.number, against)
    return CommandResult(
        serialize_comparison(comparison),
        comparison.new_findings,
        lines=_format_comparison(comparison),
        messages=format_findings(comparison.new_findings),
    )


@json_command("submit", "skillhall version submit pdf@4", group=command)
@_version_argument
@_comment_option
@run_directory_option
def submit(*, version: str, comment: str, root: str) -> CommandResult:
    """Submit a draft, or the newest version, for review."""
    with _open_versions(root) as versions:
        found = _resolve(versions, version)
        change = versions.submit(found.skill, found.number, get_actor(), comment)
    return _report("submitted", change)


@json_command("return", "skillhall version return pdf@4 --comment 'Name the file.'", group=command)
@_version_argument
@click.option("--comment", required=True, metavar="TEXT", help="Tell the author what to change.")
@run_directory_option
def return_(*, version: str, comment: str, root: str) -> CommandResult:
    """Return a version, or the one in review, to its author."""
    with _open_versions(root) as versions:
        found = _resolve(versions, version, VersionState.IN_REVIEW)
        change = versions.return_(found.skill, found.number, get_actor(), comment)
    return _report("returned", change)


@json_command("approve", "skillhall version approve pdf@4 --digest sha256:…", group=command)
@_version_argument
@click.option("--digest", metavar="DIGEST", help="Approve only if the version has this digest.")
@_comment_option
@flag("-y", "--yes", help="Approve without showing the changes.")
@run_directory_option
def approve(
    *, version: str, digest: str | None, comment: str, yes: bool, root: str
) -> CommandResult:
    """Approve a version, or the one in review, and serve it.

    Without --digest, the changes are shown first.
    """
    with _open_versions(root) as versions:
        found = _resolve(versions, version, VersionState.IN_REVIEW)
        if digest is None and not yes:
            comparison = versions.diff(found.skill, found.number)
            lines = "\n".join(_format_comparison(comparison))
            click.echo(lines, err=True)
            confirm(f"Approve {found.skill}@{found.number}?")
        change = versions.approve(
            found.skill, found.number, get_actor(), digest or found.digest, comment
        )
    return _report("approved", change)


@json_command("yank", "skillhall version yank pdf@4 --reason 'It deletes files.'", group=command)
@_version_argument
@click.option(
    "--reason", required=True, metavar="TEXT", help="State the reason, which is published."
)
@run_directory_option
def yank(*, version: str, reason: str, root: str) -> CommandResult:
    """Yank an approved version, or the served one, so that no client may use it."""
    with _open_versions(root) as versions:
        found = _resolve(versions, version, VersionState.APPROVED)
        change = versions.yank(found.skill, found.number, get_actor(), reason)
    return _report("yanked", change)


@json_command("use", "skillhall version use pdf@3", group=command)
@click.argument("version", metavar="ID@N")
@_comment_option
@run_directory_option
def use(*, version: str, comment: str, root: str) -> CommandResult:
    """Serve an approved version: roll back to an earlier one, or return to a later one."""
    if "@" not in version:
        raise CommandFailed("usage", "the version is missing", f"name it: {version}@N")
    with _open_versions(root) as versions:
        found = _resolve(versions, version)
        change = versions.use(found.skill, found.number, get_actor(), comment)
    return _report("chose", change)


@json_command("restore", "skillhall version restore pdf@3", group=command)
@_version_argument
@run_directory_option
def restore(*, version: str, root: str) -> CommandResult:
    """Write the files of a version again, or restore a deleted skill.

    If skills are reviewed, the result is a draft.
    """
    from skillhall._internal.skill_store.undoable_changes import SkillStoreChanges
    from skillhall._internal.skill_store.versions.skill_versions import parse_pin

    with _open_services(root) as (services, versions):
        pin = parse_pin(version)
        found = versions.resolve(*pin) if pin else None
        skill = found.skill if found else version
        number, files = versions.read_files(skill, found.number if found else None)
        assert services.skill_store is not None  # noqa: S101 - there is one if there are versions
        directory = read_settings().data_directory
        SkillStoreChanges(services.skill_store, directory, get_actor()).restore(skill, files)
        newest = versions.list(skill).versions[0]
    data = {"id": skill, "restored": number, "number": newest.number}
    messages = [f"restored {skill}@{number} as version {newest.number}"]
    return CommandResult(data, lines=[skill], messages=messages)


@json_command("bin", "skillhall version bin", group=command)
@run_directory_option
def list_bin(*, root: str) -> CommandResult:
    """List the deleted skills that can be restored, newest first."""
    with _open_versions(root) as versions:
        deleted = versions.list_bin()
    rows = [(row.skill, str(row.number), row.at, row.by) for row in deleted]
    headings = ["skill", "version", "deleted", "by"]
    data = {"skills": [*map(serialize_deleted, deleted)]}
    return CommandResult(data, headings=headings, rows=rows)


@json_command("purge", "skillhall version purge pdf", group=command)
@click.argument("skill_id", metavar="ID")
@flag("-y", "--yes", help="Delete without asking.")
@run_directory_option
def purge(*, skill_id: str, yes: bool, root: str) -> CommandResult:
    """Delete the files of the deleted skill ID permanently."""
    if not yes:
        confirm(f"Delete all versions of {skill_id} permanently?")
    with _open_versions(root) as versions:
        versions.purge(skill_id, get_actor())
    return CommandResult({"purged": skill_id}, messages=[f"deleted {skill_id} permanently"])


@contextmanager
def _open_versions(root: str) -> Iterator[SkillVersions]:
    """Open the versions of the configured database. Raises: ConfigInvalid, CommandFailed."""
    with _open_services(root) as (_, versions):
        yield versions


@contextmanager
def _open_services(root: str) -> Iterator[tuple[DatabaseServices, SkillVersions]]:
    with require_database():
        from skillhall._internal.wiring.database import open_database_services
    settings = read_settings()._replace(working_directory=root)
    with closing(open_database_services(settings)) as services:
        if services.versions is None:
            problem = "the database has the versions of another run directory"
            hint = "give each run directory its own data folder"
            raise ConfigInvalid("SKILLHALL_DATA_DIR", problem, hint)
        yield services, services.versions


def _resolve(
    versions: SkillVersions, text: str, default: VersionState | None = None
) -> SkillVersion:
    """Return the version that a command names.

    Without a number, that is the newest one or, with `default`, the newest one in that state; for
    approved versions, the served one. Raises: SkillNotFound, VersionNotFound.
    """
    from skillhall._internal.skill_store.versions.skill_versions import parse_pin

    if pin := parse_pin(text):
        return versions.resolve(*pin)
    listed = versions.list(text)
    if not listed.versions:
        raise SkillNotFound(text)
    for row in listed.versions:
        is_served = row.number == listed.current
        if default is None or (
            is_served if default is VersionState.APPROVED else row.state is default
        ):
            return row
    raise VersionNotFound(text, f"that is {default}")


def _report(verb: str, change: VersionChange) -> CommandResult:
    version = change.version
    served = f"version {change.current}" if change.current is not None else "no version"
    return CommandResult(
        serialize_version_change(change),
        lines=[f"{version.skill}@{version.number}"],
        messages=[f"{verb} {version.skill}@{version.number}; {served} is served"],
    )


def _format_details(details: VersionDetails) -> Iterator[str]:
    version = details.version
    yield f"{version.skill}@{version.number} ({version.state})"
    facts = {
        "digest": version.digest,
        "author": version.author,
        "created": version.created,
        "source": version.source,
        "commit": version.commit,
        "signer": details.signer,
        "risk": details.scan.risk.value,
    }
    for name, value in facts.items():
        if value:
            yield f"  {name}: {value}"
    for path, data in details.files.items():
        yield f"  {path} ({len(data)} bytes{', executable' if path in details.executables else ''})"
    for review in details.reviews:
        comment = f": {review.comment}" if review.comment else ""
        yield f"  {review.at} {review.decision} by {review.by}{comment}"


def _format_comparison(comparison: VersionComparison) -> Iterator[str]:
    version, base = comparison.details.version, comparison.base
    other = f"{version.skill}@{base.version.number}" if base else "nothing"
    yield f"{version.skill}@{version.number} compared with {other}"
    yield f"risk: {comparison.risk_before} -> {comparison.details.scan.risk}"
    for path in comparison.mode_changes:
        is_executable = path in comparison.details.executables
        yield f"{path}: {'now' if is_executable else 'no longer'} executable"
    for change in comparison.changes:
        yield from _format_change(change)


def _format_change(change: FileChange) -> Iterator[str]:
    yield f"{change.path} ({change.kind})"
    if not change.lines:
        yield "  (not shown: too large, or not text)"
    for line in change.lines:
        yield f"{_MARKS[line.kind]} {line.text}".rstrip()
    if change.is_truncated:
        yield "  (further lines are not shown)"
