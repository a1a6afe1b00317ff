"""`skillhall why`: explains which copy of a skill is used."""

from __future__ import annotations

import sys
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

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    if not (explanation.winners or explanation.shadowed or explanation.rejected):
        catalog.find(name)  # raises SkillNotFound with similar names
    if as_json:
        _print_json(explanation)
    else:
        from skillhall._internal.cli.terminal import sanitize_line

        sys.stdout.writelines(
            f"{sanitize_line(line)}\n" for line in _format_explanation(explanation)
        )
    return 0


def _format_explanation(explanation: Explanation) -> Iterator[str]:
    name, profile = explanation.name, explanation.profile
    for skill in explanation.winners:
        yield f"used: {skill.location} ({skill.source})"
        others = [other for other in explanation.shadowed if other.winner == skill]
        reason = others[0].rule if others else "it is the only accepted copy"
        if len(explanation.winners) > 1:
            reason = "all copies with this name are used"
        yield f"  because {reason} (profile {profile!r})"
        for judged in skill.findings:
            yield f"  {judged.effect}[{judged.finding.code}]: {judged.finding.message}"
    for shadowed in explanation.shadowed:
        yield f"shadowed: {shadowed.skill.location} ({shadowed.skill.source})"
        yield f"  because {shadowed.rule}: {shadowed.winner.location}"
    for rejected in explanation.rejected:
        yield f"rejected: {rejected.location}"
        for finding, effect in rejected.findings:
            line = f"line {finding.line}: " if finding.line else ""
            yield f"  {effect}[{finding.code}]: {line}{finding.message}"
    if not explanation.winners:
        yield f"no copy of {name!r} is used"


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
