"""`skillhall show`: shows everything about one skill."""

from __future__ import annotations

import sys
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
    from collections.abc import Iterator

    from skillhall._internal.authoring.validate import SkillExamination
    from skillhall._internal.catalog.catalog import CatalogSkill


@click.command("show", epilog="Example: skillhall show pdf-tools")
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
    """Show the frontmatter, files, size and findings of the skill NAME."""
    from skillhall._internal.authoring.validate import examine_skill

    catalog = load_with_progress(roots, profile, SearchOptions(depth, follow_links))
    skill = find_skill(catalog, name)
    examination = examine_skill(skill, catalog.profile)
    if as_json:
        _print_json(skill, examination)
    else:
        _print_text(skill, examination)
    return 0


def _print_json(skill: CatalogSkill, examination: SkillExamination) -> None:
    from skillhall._internal.cli.commands.browse.list_output import serialize_skill
    from skillhall._internal.render.json_manifest import build_manifest
    from skillhall._internal.skill.token_count import estimate_tokens

    data: dict[str, object] = {
        **serialize_skill(skill),
        "hidden": skill.hidden,
        "frontmatter": examination.parsed.frontmatter.fields,
        "allowedTools": list(examination.parsed.frontmatter.allowed_tools),
        "tokens": estimate_tokens(examination.parsed.body),
        "lines": examination.parsed.body.count("\n") + 1,
        "files": build_manifest(examination.bundle.files.values()),
    }
    print_json_report("show", {"skill": data}, examination.findings)


def _print_text(skill: CatalogSkill, examination: SkillExamination) -> None:
    from skillhall._internal.cli.terminal import sanitize_line

    for label, value in _format_fields(skill, examination):
        sys.stdout.write(
            f"{label + ':':<15} {sanitize_line(value)}\n"
            if label
            else f"  {sanitize_line(value)}\n"
        )


def _format_fields(skill: CatalogSkill, examination: SkillExamination) -> Iterator[tuple[str, str]]:
    from skillhall._internal.skill.token_count import estimate_tokens

    yield "name", skill.name
    yield "description", skill.description
    yield "location", skill.location
    yield "source", f"{skill.source} ({skill.root.path})"
    for key, value in examination.parsed.frontmatter.fields.items():
        if key not in ("name", "description"):
            yield key, _format_value(value)
    if skill.hidden:
        yield "hidden", "yes (hidden from models)"
    body = examination.parsed.body
    lines = body.count("\n") + 1
    yield "size", f"{lines} lines, about {estimate_tokens(body)} tokens"
    files = examination.bundle.files
    yield "files", str(len(files))
    for path, file in files.items():
        yield "", f"{path} ({file.size} bytes{', executable' if file.executable else ''})"
    yield "findings", str(len(examination.findings)) if examination.findings else "none"
    for finding, effect in examination.findings:
        line = f"line {finding.line}: " if finding.line else ""
        yield "", f"{effect}[{finding.code}]: {line}{finding.message}"


def _format_value(value: object) -> str:
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value, ensure_ascii=False)
