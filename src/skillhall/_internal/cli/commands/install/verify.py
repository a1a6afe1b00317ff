"""`skillhall verify`: whether installed skills are what their lock says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import counted
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import InstalledSkill
from skillhall._internal.cli.project_options import global_option, open_shelf, print_shelf_rows
from skillhall._internal.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.installer.verify import Verified


@click.command("verify", epilog="Example: skillhall verify --json")
@click.argument("names", nargs=-1, type=InstalledSkill(), metavar="[NAME]...")
@global_option
@json_option
def command(*, names: tuple[str, ...], is_user: bool, as_json: bool) -> int:
    """Compare the installed skills with the lock, file by file.

    The exit code is 1 if they differ, and 4 if there is no lock file.
    """
    from skillhall._internal.installer.verify import verify

    results = verify(open_shelf(is_user=is_user), names)
    wrong = [one for one in results if not one.is_right]
    if as_json:
        from skillhall._internal.cli.json_output import print_report

        fields = [{**one._asdict(), "ok": one.is_right} for one in results]
        print_report("verify", {"places": fields})
    else:
        print_shelf_rows(
            ["place", "file", "status"], [row for one in results for row in _rows(one)]
        )
        say(f"{counted(len(results), 'place')} checked, {len(wrong)} not as locked")
    return 1 if wrong else 0


def _rows(one: Verified) -> Iterator[tuple[str, str, str]]:
    if one.is_right or not one.is_there:
        yield one.place, "", "as locked" if one.is_right else "missing"
        return
    for status, paths in (("changed", one.changed), ("missing", one.missing), ("extra", one.extra)):
        for path in paths:
            yield one.place, path, status
