"""`skillhall verify`: compares installed skills with the lock file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.json_output import print_json_report
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
    """Compare the files of installed skills with the lock file.

    The exit code is 1 if they differ, and 4 if there is no lock file.
    """
    from skillhall._internal.installer.verify import verify

    results = verify(open_project(is_user=is_user), names)
    different = [result for result in results if not result.is_intact]
    if as_json:
        fields = [{**result._asdict(), "ok": result.is_intact} for result in results]
        print_json_report("verify", {"places": fields})
    else:
        print_table_or_rows(
            ["skill", "file", "status"], [row for result in results for row in _format_rows(result)]
        )
        print_message(f"{format_count(len(results), 'folder')} checked, {len(different)} different")
    return 1 if different else 0


def _format_rows(result: VerifyResult) -> Iterator[tuple[str, str, str]]:
    if result.is_intact or not result.is_there:
        yield result.place, "", "ok" if result.is_intact else "missing"
        return
    for status, paths in (
        ("changed", result.changed),
        ("missing", result.missing),
        ("extra", result.extra),
    ):
        for path in paths:
            yield result.place, path, status
