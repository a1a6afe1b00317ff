"""`skillhall inventory`: lists the skills of this machine, or sends the list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.install.trust import find_judged_skills
from skillhall._internal.cli.options import DefaultCommandGroup, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.installer.machine_inventory import build_inventory
from skillhall._internal.policy.trust.inventory_item import InventoryItem
from skillhall._internal.render.inventory_formats import render_csv, render_cyclonedx
from skillhall._internal.wiring.server_client import post_inventory
from skillhall._version import VERSION

_SHORT_DIGEST = len("sha256:") + 12

command = DefaultCommandGroup(
    "inventory",
    help="List the skills of this project and of your home folder: name, digest, source, commit, "
    "signer, state and risk level.\n\n"
    "The list has no paths, contents, usage or account names. Nothing is sent unless you run "
    "'skillhall inventory send'.",
    epilog="Example: skillhall inventory --format cyclonedx > skills.cdx.json",
)


@command.set_default
@json_command(
    "",
    "skillhall inventory --format cyclonedx",
    formats=("text", "json", "csv", "cyclonedx"),
)
def list_inventory(*, output_format: str) -> CommandResult:
    """List the skills on this machine."""
    items = _find_items()
    if output_format == "csv":
        return CommandResult({}, lines=render_csv(items).splitlines())
    if output_format == "cyclonedx":
        at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return CommandResult({}, lines=render_cyclonedx(items, VERSION, at).splitlines())
    return CommandResult(
        {"skills": [item._asdict() for item in items]},
        headings=[*InventoryItem._fields],
        rows=[_shorten(item) for item in items],
    )


@json_command(
    "send", "skillhall inventory send https://skills.acme.org --as laptop-7", group=command
)
@click.argument("server")
@click.option("--as", "label", required=True, metavar="LABEL", help="Name this machine.")
def send(*, server: str, label: str) -> CommandResult:
    """Send the list to the Skillhall server SERVER.

    It replaces the last list with this LABEL. The access token is read from SKILLHALL_SERVER_TOKEN;
    it needs the scope 'report'.
    """
    items = _find_items()
    post_inventory(server, label, items, read_settings())
    return CommandResult(
        {"label": label, "skills": len(items)},
        messages=[f"sent {format_count(len(items), 'skill')} as {label}"],
    )


def _find_items() -> Sequence[InventoryItem]:
    found = find_judged_skills("skillhall inventory")
    judged = found.judge_all()
    return build_inventory(judged, found.review.gate.examine_all(judged), read_settings())


def _shorten(item: InventoryItem) -> list[str]:
    short = item._replace(digest=item.digest[:_SHORT_DIGEST], commit=item.commit[:12])
    return [text or "-" for text in short]
