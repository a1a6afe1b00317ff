"""`skillhall path`: shows the searched folders and the cache folder."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.catalog_loader import load_with_progress, read_settings
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option, profile_option

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Catalog


class _SearchedFolder(NamedTuple):
    path: str
    source: str
    exists: bool
    skills: int


@click.command("path", epilog='Example: rm -r "$(skillhall path index)"  # deletes the cache')
@click.argument("which", required=False, type=click.Choice(["index"]), metavar="[index]")
@profile_option()
@json_option
def command(*, which: str | None, profile: str, as_json: bool) -> int:
    """Show the searched folders in order of precedence, and the cache folder ('index').

    'path index' prints only the cache folder; you can delete it at any time.
    """
    from skillhall._internal.wiring.catalog import get_head_cache_directory

    index = get_head_cache_directory(read_settings())
    if which == "index" and not as_json:
        sys.stdout.write(f"{index}\n")
        return 0
    folders = _list_folders(load_with_progress((), profile))
    if as_json:
        roots = [folder._asdict() for folder in folders]
        print_json_report("path", {"profile": profile, "roots": roots, "index": index})
    else:
        _print_text(folders, index)
    return 0


def _list_folders(catalog: Catalog) -> list[_SearchedFolder]:
    numbers = [skill.root_number for skill in catalog]
    numbers += [shadowed.skill.root_number for shadowed in catalog.shadowed]
    return [
        _SearchedFolder(root.path, root.source, os.path.isdir(root.path), numbers.count(number))  # noqa: PTH112
        for number, root in enumerate(catalog.roots)
    ]


def _print_text(folders: list[_SearchedFolder], index: str) -> None:
    from skillhall._internal.cli.catalog_loader import format_count
    from skillhall._internal.cli.terminal import print_rows

    rows = [
        (
            folder.path,
            folder.source,
            format_count(folder.skills, "skill") if folder.exists else "missing",
        )
        for folder in folders
    ]
    print_rows([*rows, (index, "index", "exists" if os.path.isdir(index) else "missing")])  # noqa: PTH112
