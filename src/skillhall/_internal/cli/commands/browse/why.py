"""`skillhall why`: explains which copy of a skill is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import SearchOptions, load_with_progress
from skillhall._internal.cli.json_output import print_json_report, serialize_finding
from skillhall._internal.cli.options import (
    SkillNameParam,
    json_option,
    profile_option,
    roots_option,
    search_options,
)
from skillhall._internal.cli.terminal import print_lines, sanitize_line

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Explanation


@click.command("why", epilog="Example: skillhall why pdf-tools")
@click.argument("name", type=SkillNameParam())
@roots_option
@profile_option()
@search_options
@json_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    name: str,
    roots: tuple[str, ...],
    profile: str,
    depth: int | None,
    follow_links: bool,
    as_json: bool,
) -> int:
    """Explain which copy of the skill NAME is used, by which rule, and which are not."""
    catalog = load_with_progress(roots, profile, SearchOptions(depth, follow_links))
    explanation = catalog.explain(name)
    if explanation.is_empty:
        catalog.find(name)  # raises SkillNotFound with similar names
    if as_json:
        _print_json(explanation)
    else:
        print_lines(sanitize_line(line) for line in explanation.describe())
    return 0


def _print_json(explanation: Explanation) -> None:
    from skillhall._internal.cli.commands.browse.list_output import serialize_skill

    findings = [judged for skill in explanation.winners for judged in skill.findings]
    findings += [judged for rejected in explanation.rejected for judged in rejected.findings]
    data = {
        "name": explanation.name,
        "profile": explanation.profile,
        "used": [serialize_skill(skill) for skill in explanation.winners],
        "shadowed": [
            {**serialize_skill(other.skill), "by": other.winner.location, "rule": other.rule}
            for other in explanation.shadowed
        ],
        "rejected": [
            {
                "id": rejected.id,
                "name": rejected.name,
                "location": rejected.location,
                "findings": [serialize_finding(judged) for judged in rejected.findings],
            }
            for rejected in explanation.rejected
        ],
    }
    print_json_report("why", data, findings)
