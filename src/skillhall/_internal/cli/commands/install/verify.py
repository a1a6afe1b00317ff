"""`skillhall verify`: whether installed skills are what their lock says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.param_types import InstalledSkillParam
from skillhall._internal.cli.project_options import (
    open_project,
    print_table_or_rows,
    user_scope_option,
)
from skillhall._internal.cli.terminal import print_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.installer.verify import VerifyResult


@click.command("verify", epilog="Example: skillhall verify --json")
@click.argument("names", nargs=-1, type=InstalledSkillParam(), metavar="[NAME]...")
@user_scope_option
@json_option
def command(*, names: tuple[str, ...], is_user: bool, as_json: bool) -> int:
    """Compare the installed skills with the lock, file by file.

    The exit code is 1 if they differ, and 4 if there is no lock file.
    """
    from skillhall._internal.installer.verify import verify

    results = verify(open_project(is_user=is_user), names)
    wrong = [one for one in results if not one.is_intact]
    if as_json:
        from skillhall._internal.cli.json_output import print_json_report

        fields = [{**one._asdict(), "ok": one.is_intact} for one in results]
        print_json_report("verify", {"places": fields})
    else:
        print_table_or_rows(
            ["place", "file", "status"], [row for one in results for row in _format_rows(one)]
        )
        print_message(f"{format_count(len(results), 'place')} checked, {len(wrong)} not as locked")
    return 1 if wrong else 0


def _format_rows(result: VerifyResult) -> Iterator[tuple[str, str, str]]:
    if result.is_intact or not result.is_there:
        yield result.place, "", "as locked" if result.is_intact else "missing"
        return
    for status, paths in (
        ("changed", result.changed),
        ("missing", result.missing),
        ("extra", result.extra),
    ):
        for path in paths:
            yield result.place, path, status
