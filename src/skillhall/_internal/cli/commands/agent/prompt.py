"""`skillhall prompt`: exactly the text for a model, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import (
    Search,
    counted,
    load,
    read_settings,
    tell_what_was_left_out,
)
from skillhall._internal.cli.options import (
    config_option,
    no_index_option,
    profile_option,
    search_options,
)
from skillhall._internal.cli.param_types import ConfiguredAgent
from skillhall._internal.cli.terminal import print_text, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.catalog.catalog import Catalog, Skill
    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.render.inline import Inlined

_FORMATS = ["xml", "inline", "markdown", "local", "json"]


@click.command("prompt", epilog="Example: skillhall prompt .agents/skills >> system-prompt.txt")
@click.argument("roots", nargs=-1, metavar="[ROOT]...")
@profile_option()
@click.option("--format", "form", type=click.Choice(_FORMATS), default="xml", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@config_option
@click.option(
    "--agent",
    type=ConfiguredAgent(),
    metavar="ID",
    help="Print the system prompt of this agent of the config, or of 'default'.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the config instead.")
@search_options
@no_index_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    roots: tuple[str, ...],
    profile: str,
    form: str,
    as_json: bool,
    config: str | None,
    agent: str | None,
    schema: bool,
    no_index: bool,
    depth: int | None,
    follow_links: bool,
) -> int:
    """Print the text that tells a model about the skills below each ROOT.

    Skills that hide from models are left out; without skills, nothing is printed at all.
    """
    is_json = as_json or form == "json"
    if schema:
        _print_schema()
        return 0
    if config is not None or agent is not None:
        if roots:
            raise _wrong("the roots of an agent stand in its config; give ROOT or --agent")
        if form not in ("xml", "json") or any(map(_is_given, ("profile", "no_index", "depth"))):
            wrong = "--format, --profile, --no-index and --depth"
            raise _wrong(f"{wrong} do not go with --agent or --config")
        _print_instructions(config, agent, is_json=is_json, follow_links=follow_links)
        return 0
    catalog = load(roots, profile, Search(depth, follow_links, no_index, bodies=True))
    if is_json:
        _print_json(catalog)
    elif text := _render(form, catalog):
        print_text(f"{text}\n")
    tell_what_was_left_out(catalog, roots)
    return 0


def _is_given(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source is click.core.ParameterSource.COMMANDLINE


def _wrong(message: str) -> click.UsageError:
    return click.UsageError(message, click.get_current_context())


def _print_json(catalog: Catalog) -> None:
    from skillhall._internal.cli.json_output import print_report
    from skillhall._internal.render.json_manifest import as_json
    from skillhall._internal.render.listing import render_listing

    data = {"skills": as_json(catalog.visible), "text": render_listing(catalog.visible)}
    print_report("prompt", data, catalog.findings)


def _render(form: str, catalog: Catalog) -> str:
    from skillhall._internal.render.inline import render_instructions
    from skillhall._internal.render.listing import render_listing
    from skillhall._internal.render.local_listing import render_local
    from skillhall._internal.render.markdown import render_markdown

    if form == "inline":
        return render_instructions((), _bodies(catalog.visible, catalog))
    if form == "markdown":
        return render_markdown(catalog.visible)
    if form == "local":
        return render_local(catalog.visible)
    return render_listing(catalog.visible)


def _bodies(skills: Sequence[Skill], catalog: Catalog) -> Iterator[Inlined]:
    from skillhall._internal.catalog.reader import read_body
    from skillhall._internal.render.inline import Inlined
    from skillhall.errors import SkillhallError

    for skill in skills:
        try:
            body = read_body(skill, catalog.profile)
        except SkillhallError as error:
            say(f"warning: left out {skill.name!r}: {error}")
        else:
            yield Inlined(skill.name, skill.location, skill.directory, body)


def _print_schema() -> None:
    from skillhall._internal.agents.config.agent_config import schema_file

    print_text(schema_file().read_text(encoding="utf-8"))


def _print_instructions(
    path: str | None, agent: str | None, *, is_json: bool, follow_links: bool
) -> None:
    from skillhall._internal.cli.agent_selection import agent_skills, cut_of

    skills = agent_skills(path, agent, (), read_settings(follow_links=follow_links))
    text, built = skills.text(), skills.current()
    if is_json:
        from skillhall._internal.cli.agent_selection import built_as_json
        from skillhall._internal.cli.json_output import print_report

        data = {"agent": skills.agent.id, "text": text, **built_as_json(built)}
        print_report("prompt", data, skills.findings)
    elif text:
        print_text(f"{text}\n")
    if cut := cut_of(built.plan):
        say(f"{cut}; --json shows them")
    _tell(skills.findings)


def _tell(findings: Sequence[Judged]) -> None:
    from skillhall._internal.policy.effects import Effect

    loud = sum(one.effect is not Effect.ACCEPT for one in findings)
    if loud:
        say(f"{counted(loud, 'finding')}; --json shows them")
