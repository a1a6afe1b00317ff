"""`skillhall prompt`: prints the text for a model, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import (
    SearchOptions,
    format_count,
    load_with_progress,
    print_skipped_summary,
    read_settings,
)
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import (
    config_option,
    format_options,
    no_index_option,
    profile_option,
    search_options,
)
from skillhall._internal.cli.param_types import ConfiguredAgentParam
from skillhall._internal.cli.terminal import print_message, print_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.render.inline import InlineSkill

_FORMATS = ["xml", "inline", "markdown", "local", "json"]


@click.command("prompt", epilog="Example: skillhall prompt .agents/skills >> system-prompt.txt")
@click.argument("roots", nargs=-1, metavar="[ROOT]...")
@profile_option()
@format_options(_FORMATS)
@config_option
@click.option(
    "--agent",
    type=ConfiguredAgentParam(),
    metavar="ID",
    help="Print the system prompt of this agent of the config, or of the 'default' agent.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the config and exit.")
@search_options
@no_index_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    roots: tuple[str, ...],
    profile: str,
    output_format: str,
    as_json: bool,
    config: str | None,
    agent: str | None,
    schema: bool,
    no_index: bool,
    depth: int | None,
    follow_links: bool,
) -> int:
    """Print the listing of the skills below each ROOT for a system prompt.

    Hidden skills are omitted. If there are no skills, nothing is printed.
    """
    is_json = as_json or output_format == "json"
    if schema:
        _print_schema()
        return 0
    if config is not None or agent is not None:
        if roots:
            raise click.UsageError(
                "ROOT cannot be combined with --agent or --config: the config sets the roots"
            )
        if output_format not in ("xml", "json") or any(
            map(_is_on_command_line, ("profile", "no_index", "depth"))
        ):
            options = "--format, --profile, --no-index and --depth"
            raise click.UsageError(f"{options} cannot be combined with --agent or --config")
        _print_instructions(config, agent, as_json=is_json, follow_links=follow_links)
        return 0
    catalog = load_with_progress(
        roots, profile, SearchOptions(depth, follow_links, no_index, read_bodies=True)
    )
    if is_json:
        _print_json(catalog)
    elif text := _render(output_format, catalog):
        print_text(f"{text}\n")
    print_skipped_summary(catalog, roots)
    return 0


def _is_on_command_line(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source is click.core.ParameterSource.COMMANDLINE


def _print_json(catalog: Catalog) -> None:
    from skillhall._internal.render.json_manifest import serialize_listing
    from skillhall._internal.render.listing import render_listing

    data = {"skills": serialize_listing(catalog.visible), "text": render_listing(catalog.visible)}
    print_json_report("prompt", data, catalog.findings)


def _render(output_format: str, catalog: Catalog) -> str:
    from skillhall._internal.render.inline import render_instructions
    from skillhall._internal.render.listing import render_listing
    from skillhall._internal.render.local_listing import render_local
    from skillhall._internal.render.markdown import render_markdown

    if output_format == "inline":
        return render_instructions((), _read_bodies(catalog.visible, catalog))
    if output_format == "markdown":
        return render_markdown(catalog.visible)
    if output_format == "local":
        return render_local(catalog.visible)
    return render_listing(catalog.visible)


def _read_bodies(skills: Sequence[CatalogSkill], catalog: Catalog) -> Iterator[InlineSkill]:
    from skillhall._internal.catalog.reader import read_accepted_body
    from skillhall._internal.render.inline import InlineSkill
    from skillhall.errors import SkillhallError

    for skill in skills:
        try:
            body = read_accepted_body(skill, catalog.profile)
        except SkillhallError as error:
            print_message(f"warning: skipped {skill.name!r}: {error}")
        else:
            yield InlineSkill(skill.name, skill.location, skill.directory, body)


def _print_schema() -> None:
    from skillhall._internal.agents.config.agent_config import schema_file

    print_text(schema_file().read_text(encoding="utf-8"))


def _print_instructions(
    config_path: str | None, agent_id: str | None, *, as_json: bool, follow_links: bool
) -> None:
    from skillhall._internal.cli.agent_selection import format_budget_cut, open_agent_skills

    skills = open_agent_skills(config_path, agent_id, (), read_settings(follow_links=follow_links))
    text, snapshot = skills.system_prompt(), skills.snapshot()
    if as_json:
        from skillhall._internal.cli.agent_selection import serialize_token_costs

        data = {"agent": skills.agent.id, "text": text, **serialize_token_costs(snapshot)}
        print_json_report("prompt", data, skills.findings)
    elif text:
        print_text(f"{text}\n")
    if cut := format_budget_cut(snapshot.plan):
        print_message(f"{cut}; --json shows them")
    _print_finding_count(skills.findings)


def _print_finding_count(findings: Sequence[JudgedFinding]) -> None:
    from skillhall._internal.policy.effects import Effect

    count = sum(judged.effect is not Effect.ACCEPT for judged in findings)
    if count:
        print_message(f"{format_count(count, 'finding')}; --json shows them")
