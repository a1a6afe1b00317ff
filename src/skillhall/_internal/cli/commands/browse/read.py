"""`skillhall read`: prints a skill, or one of its files, for an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import SearchOptions, find_skill, load_with_progress
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import (
    SkillNameParam,
    json_option,
    profile_option,
    roots_option,
    search_options,
)

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill


@click.command("read", epilog="Example: skillhall read pdf-tools references/forms.md")
@click.argument("name", type=SkillNameParam())
@click.argument("file", required=False)
@roots_option
@profile_option()
@search_options
@json_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    name: str,
    file: str | None,
    roots: tuple[str, ...],
    profile: str,
    depth: int | None,
    follow_links: bool,
    as_json: bool,
) -> int:
    """Print the instructions of the skill NAME as an agent gets them, or its file FILE.

    FILE is relative to the skill's folder and cannot be outside of it.
    """
    catalog = load_with_progress(roots, profile, SearchOptions(depth, follow_links))
    skill = find_skill(catalog, name)
    if file is None:
        _print_activation(skill, catalog, as_json=as_json)
    else:
        _print_file(skill, file, as_json=as_json)
    return 0


def _print_activation(skill: CatalogSkill, catalog: Catalog, *, as_json: bool) -> None:
    from skillhall._internal.catalog.reader import activate
    from skillhall._internal.cli.terminal import print_text

    text = activate(skill, catalog.profile)
    if as_json:
        data = {"name": skill.name, "location": skill.location, "text": text}
        print_json_report("read", data, skill.findings)
    else:
        print_text(f"{text}\n")


def _print_file(skill: CatalogSkill, file: str, *, as_json: bool) -> None:
    from skillhall._internal.catalog.reader import read_skill_file
    from skillhall._internal.cli.file_output import print_content, serialize_content

    content = read_skill_file(skill, file)
    if as_json:
        print_json_report("read", {"name": skill.name, "path": file, **serialize_content(content)})
    else:
        print_content(content, file)
