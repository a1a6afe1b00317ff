"""`skillhall prompt`: prints the text for a model, and nothing else."""

from collections.abc import Iterator

import click
from click.core import ParameterSource

from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.skill_content import read_accepted_body
from skillhall._internal.cli.catalog_loader import (
    load_with_progress,
    read_settings,
    summarize_skipped,
)
from skillhall._internal.cli.command_result import CommandResult, is_json
from skillhall._internal.cli.options import (
    config_option,
    configured_agent_option,
    flag,
    json_command,
    root_search_options,
)
from skillhall._internal.cli.search_options import SearchOptions
from skillhall._internal.cli.terminal import format_count, print_message, print_text
from skillhall._internal.policy.effects import Effect
from skillhall._internal.render.listing import (
    InlineSkill,
    render_instructions,
    render_listing,
    render_local,
    render_markdown,
    serialize_listing,
)
from skillhall.errors import SkillhallError

_FORMATS = ["xml", "inline", "markdown", "local", "json"]


@json_command("prompt", "skillhall prompt .agents/skills >> system-prompt.txt", formats=_FORMATS)
@root_search_options
@config_option
@configured_agent_option(
    "Print the system prompt of this agent from the config; 'default' needs no config."
)
@flag("--schema", help="Print the JSON Schema of the config and exit.")
def command(
    *,
    search: SearchOptions,
    output_format: str,
    config: str | None,
    agent: str | None,
    schema: bool,
) -> CommandResult | None:
    """Print the listing of the skills below each ROOT for a system prompt.

    Hidden skills are omitted. If there are no skills, nothing is printed.
    """
    if schema:
        from skillhall._internal.agents.config.agent_config import schema_file

        print_text(schema_file().read_text(encoding="utf-8"))
        return None
    if config is not None or agent is not None:
        if search.roots:
            raise click.UsageError(
                "ROOT cannot be combined with --agent or --config: the config sets the roots"
            )
        source_of = click.get_current_context().get_parameter_source
        sources = {source_of(name) for name in ("profile", "no_index", "depth")}
        if output_format not in ("xml", "json") or ParameterSource.COMMANDLINE in sources:
            options = "--format, --profile, --no-index and --depth"
            raise click.UsageError(f"{options} cannot be combined with --agent or --config")
        return _build_instructions(config, agent, follow_links=search.follow_links)
    catalog = load_with_progress(search, read_bodies=True)
    if output_format == "inline":
        text = render_instructions((), _read_bodies(catalog))
    elif output_format == "markdown":
        text = render_markdown(catalog.visible)
    elif output_format == "local":
        text = render_local(catalog.visible)
    else:
        text = render_listing(catalog.visible)
    return CommandResult(
        {"skills": serialize_listing(catalog.visible), "text": text},
        catalog.findings,
        text=f"{text}\n" if text else "",
        warnings=summarize_skipped(catalog, search),
    )


def _read_bodies(catalog: Catalog) -> Iterator[InlineSkill]:
    for skill in catalog.visible:
        try:
            body = read_accepted_body(skill, catalog.profile)
        except SkillhallError as error:
            print_message(f"warning: skipped {skill.name!r}: {error}")
        else:
            yield InlineSkill(skill.name, skill.location, skill.directory, body)


def _build_instructions(
    config_path: str | None, agent_id: str | None, *, follow_links: bool
) -> CommandResult:
    """Return the system prompt of an agent."""
    # The modules for agents take longer to import than a listing takes.
    from skillhall._internal.cli.configured_agent import (
        format_budget_cut,
        open_agent_skills,
        serialize_token_costs,
    )

    skills = open_agent_skills(config_path, agent_id, (), read_settings(follow_links=follow_links))
    text, snapshot = skills.system_prompt(), skills.snapshot()
    cut = format_budget_cut(snapshot.plan)
    warnings = [f"{cut}; --json shows them"] if cut else []
    if count := sum(judged.effect is not Effect.ACCEPT for judged in skills.findings):
        warnings.append(f"{format_count(count, 'finding')}; --json shows them")
    costs = serialize_token_costs(snapshot) if is_json() else {}
    return CommandResult(
        {"agent": skills.agent.id, "text": text, **costs},
        skills.findings,
        text=f"{text}\n" if text else "",
        warnings=warnings,
    )
