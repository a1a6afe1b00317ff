"""`skillhall path`: the folders that are searched, and where the index lies."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.catalog_loader import load_with_progress, read_settings
from skillhall._internal.cli.options import json_option, profile_option

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Catalog


class _SearchedFolder(NamedTuple):
    path: str
    source: str
    exists: bool
    skills: int


@click.command("path", epilog='Example: rm -r "$(skillhall path index)"  # it is only a cache')
@click.argument("which", required=False, type=click.Choice(["index"]), metavar="[index]")
@profile_option()
@json_option
def command(*, which: str | None, profile: str, as_json: bool) -> int:
    """Show the folders that are searched, in order of precedence, and the index of earlier runs.

    'path index' prints the folder of the index alone; it can be removed at any time.
    """
    from skillhall._internal.wiring.catalog import get_head_cache_directory

    index = get_head_cache_directory(read_settings())
    if which == "index" and not (as_json):
        sys.stdout.write(f"{index}\n")
        return 0
    places = _list_folders(load_with_progress((), profile))
    if as_json:
        from skillhall._internal.cli.json_output import print_json_report

        roots = [place._asdict() for place in places]
        print_json_report("path", {"profile": profile, "roots": roots, "index": index})
    else:
        _print_text(places, index)
    return 0


def _list_folders(catalog: Catalog) -> list[_SearchedFolder]:
    found = [skill.root_number for skill in catalog]
    found += [lost.skill.root_number for lost in catalog.shadowed]
    return [
        _SearchedFolder(root.path, root.source, os.path.isdir(root.path), found.count(number))  # noqa: PTH112
        for number, root in enumerate(catalog.roots)
    ]


def _print_text(folders: list[_SearchedFolder], index: str) -> None:
    from skillhall._internal.cli.catalog_loader import format_count
    from skillhall._internal.cli.terminal import print_rows

    rows = [
        (
            place.path,
            place.source,
            format_count(place.skills, "skill") if place.exists else "missing",
        )
        for place in folders
    ]
    print_rows([*rows, (index, "index", "exists" if os.path.isdir(index) else "missing")])  # noqa: PTH112
