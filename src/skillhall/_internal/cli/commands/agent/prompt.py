"""`skillhall prompt`: prints the text for a model, and nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import click
from click.core import ParameterSource

from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.trust.gate import ClearedSkill
from skillhall._internal.cli.catalog_loader import load_with_progress, summarize_skipped
from skillhall._internal.cli.command_result import CommandResult, is_json
from skillhall._internal.cli.commands.trust_question import (
    TrustOptions,
    clear_for_model,
    open_command_gate,
    report_held,
    serialize_held,
    trust_options,
)
from skillhall._internal.cli.options import (
    config_option,
    configured_agent_option,
    flag,
    json_command,
    root_search_options,
)
from skillhall._internal.cli.search_options import SearchOptions, read_settings
from skillhall._internal.cli.terminal import format_count, print_message, print_text
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import Profile
from skillhall._internal.render.listing import (
    InlineSkill,
    render_instructions,
    render_listing,
    render_local,
    render_markdown,
    serialize_listing,
)
from skillhall._internal.wiring.catalog import find_profile
from skillhall.errors import SkillhallError

_FORMATS = ["xml", "inline", "markdown", "local", "json"]


@json_command("prompt", "skillhall prompt .agents/skills >> system-prompt.txt", formats=_FORMATS)
@root_search_options
@config_option
@configured_agent_option(
    "Print the system prompt of this agent from the config; 'default' needs no config."
)
@click.option(
    "--for",
    "task",
    default="",
    metavar="TEXT",
    help="List the skills that match this task first, if not all skills fit into the budget.",
)
@click.option(
    "--max-tokens",
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Limit the listing to about N tokens.  [default: the agent's budget, else no limit]",
)
@click.option(
    "--pin",
    "pinned",
    multiple=True,
    metavar="PATTERN",
    help="List these skills first, by name or id: 'pdf-*', 'office/*'. Repeatable.",
)
@click.option(
    "--exclude",
    "excluded",
    multiple=True,
    metavar="PATTERN",
    help="Leave out these skills, by name or id. Repeatable.",
)
@trust_options
@flag("--schema", help="Print the JSON Schema of the config and exit.")
def command(
    *,
    search: SearchOptions,
    trust: TrustOptions,
    output_format: str,
    config: str | None,
    agent: str | None,
    task: str,
    max_tokens: int | None,
    pinned: tuple[str, ...],
    excluded: tuple[str, ...],
    schema: bool,
) -> CommandResult | None:
    """Print a listing of the skills below each ROOT, for a system prompt.

    Without ROOT, list the skills in the default skill folders. Hidden skills are omitted. If there
    are no skills, nothing is printed. With --max-tokens and --for, the skills that match a task
    come first, and a last line counts the others.
    """
    chosen = _ListingOptions(task, max_tokens, pinned, excluded)
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
        return _build_instructions(config, agent, chosen, trust, follow_links=search.follow_links)
    if max_tokens is not None and output_format not in ("xml", "json"):
        raise click.UsageError(f"--max-tokens cannot be combined with --format {output_format}")
    settings = read_settings(no_index=search.no_index, follow_links=search.follow_links)
    gate = open_command_gate(settings, find_profile(search.profile), trust)
    linked = gate.find_linked_folders()
    catalog = load_with_progress(search, read_bodies=True, linked_folders=linked, settings=settings)
    clearance = clear_for_model(gate, catalog.visible, catalog, settings)
    report_held(clearance.held, clearance.problem, clearance.warnings, trust)
    skills = chosen.select(clearance.cleared)
    if output_format == "inline":
        text = render_instructions((), _read_bodies(skills, catalog.profile))
    elif output_format == "markdown":
        text = render_markdown(skills)
    elif output_format == "local":
        text = render_local(skills)
    elif max_tokens is None:
        text = render_listing(skills)
    else:
        text, skills = _render_within_budget(catalog, skills, chosen, search)
    return CommandResult(
        {
            "skills": serialize_listing(skills),
            "text": text,
            "held": serialize_held(clearance.held),
        },
        catalog.findings,
        text=f"{text}\n" if text else "",
        warnings=summarize_skipped(catalog, search),
    )


class _ListingOptions(NamedTuple):
    """The options that choose the skills of a listing."""

    task: str
    max_tokens: int | None
    pinned: tuple[str, ...]
    excluded: tuple[str, ...]

    def select(self, skills: Sequence[ClearedSkill]) -> Sequence[ClearedSkill]:
        """Return the pinned skills, then the others, without excluded ones."""
        if not self.pinned and not self.excluded:
            return skills
        from skillhall._internal.policy.selection import build_group_matcher, find_pinned

        is_excluded = build_group_matcher(self.excluded)
        chosen = [skill for skill in skills if not is_excluded(skill)]
        first = find_pinned(chosen, self.pinned)
        return [*{id(skill): skill for skill in (*first, *chosen)}.values()]


def _render_within_budget(
    catalog: Catalog,
    skills: Sequence[ClearedSkill],
    options: _ListingOptions,
    search: SearchOptions,
) -> tuple[str, Sequence[ClearedSkill]]:
    """Return a listing within the token budget, and the skills in it."""
    # Other listings need none of these.
    from skillhall._internal.catalog.skill_view import MAX_RANKED
    from skillhall._internal.policy.selection import find_pinned
    from skillhall._internal.render.prompt_plan import PlanRequest, plan_prompt
    from skillhall._internal.wiring.catalog_index import index_catalog

    locations = {skill.location for skill in skills}

    def find_leading() -> list[str]:
        leading = [skill.location for skill in find_pinned(skills, options.pinned)]
        if options.task.strip():
            settings = read_settings(no_index=search.no_index, follow_links=search.follow_links)
            groups, _ = index_catalog(catalog, settings).find(options.task, MAX_RANKED)
            found = ([one.location for one in group] for group in groups)
            visible = ([one for one in group if one in locations] for group in found)
            leading += [group[0] for group in visible if group]
        return leading

    is_ranked = bool(options.pinned or options.task.strip())
    request = PlanRequest(skills, search_hint="", find_leading=find_leading if is_ranked else None)
    plan = plan_prompt(request, options.max_tokens)
    listed = {share.location for share in plan.listed_skills}
    return plan.text, [skill for skill in skills if skill.location in listed]


def _read_bodies(skills: Sequence[ClearedSkill], profile: Profile) -> Iterator[InlineSkill]:
    # Other listings of small skills need neither the parser nor the reader of bundles.
    from skillhall._internal.catalog.skill_content import read_accepted_body

    for skill in skills:
        try:
            body = read_accepted_body(skill, profile)
        except SkillhallError as error:
            print_message(f"warning: skipped {skill.name!r}: {error}")
        else:
            yield InlineSkill(skill.name, skill.location, skill.directory, body)


def _build_instructions(
    config_path: str | None,
    agent_id: str | None,
    options: _ListingOptions,
    trust: TrustOptions,
    *,
    follow_links: bool,
) -> CommandResult:
    """Return the system prompt of an agent."""
    # The modules for agents take longer to import than a listing takes.
    from skillhall._internal.agents.config.agent_config import AgentDefinition
    from skillhall._internal.cli.configured_agent import (
        format_budget_cut,
        open_agent_skills,
        serialize_token_costs,
    )

    settings = read_settings(follow_links=follow_links)

    def adjust(agent: AgentDefinition) -> AgentDefinition:
        pinned = (*options.pinned, *agent.pinned)
        return replace(agent, pinned=pinned, excluded=(*options.excluded, *agent.excluded))

    skills = open_agent_skills(config_path, agent_id, (), settings, trust, adjust=adjust)
    plan = skills.plan(options.task, max_tokens=options.max_tokens)
    text, snapshot = skills.render_prompt(plan), replace(skills.snapshot(), plan=plan)
    cut = format_budget_cut(plan)
    warnings = [f"{cut}; --json shows them"] if cut else []
    if count := sum(judged.effect is not Effect.ACCEPT for judged in skills.findings):
        warnings.append(f"{format_count(count, 'finding')}; --json shows them")
    held = serialize_held(snapshot.instructions.held)
    costs = serialize_token_costs(snapshot) if is_json() else {}
    return CommandResult(
        {"agent": skills.agent.id, "text": text, "held": held, **costs},
        skills.findings,
        text=f"{text}\n" if text else "",
        warnings=warnings,
    )
