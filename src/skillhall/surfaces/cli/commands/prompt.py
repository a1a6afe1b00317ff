"""`skillhall prompt`: exactly the text for a model, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall.surfaces.cli.loading import counted, load, read_settings, tell_what_was_left_out
from skillhall.surfaces.cli.options import no_index_option, profile_option
from skillhall.surfaces.cli.terminal import print_text, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall.agents.config import AgentConfig, AgentDefinition
    from skillhall.catalog.catalog import Catalog, Skill
    from skillhall.policy.loading import Judged
    from skillhall.render.inline import Inlined

_FORMATS = ["xml", "inline", "markdown", "local", "json"]


@click.command("prompt", epilog="Example: skillhall prompt .agents/skills >> system-prompt.txt")
@click.argument("roots", nargs=-1, metavar="[ROOT]...")
@profile_option()
@click.option("--format", "form", type=click.Choice(_FORMATS), default="xml", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--config", metavar="FILE", help="An agent config, instead of folders.")
@click.option("--agent", metavar="ID", help="Which agent of the config.")
@no_index_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    roots: tuple[str, ...],
    profile: str,
    form: str,
    as_json: bool,
    config: str | None,
    agent: str | None,
    no_index: bool,
) -> int:
    """Print the text that tells a model about the skills below each ROOT.

    Skills that hide from models are left out; without skills, nothing is printed at all.
    """
    is_json = as_json or form == "json"
    if config is not None:
        if roots:
            raise _wrong("the roots of an agent stand in its config; give ROOT or --config")
        if form not in ("xml", "json") or _is_given("profile") or _is_given("no_index"):
            raise _wrong("--format, --profile and --no-index do not go with --config")
        _print_instructions(config, agent, is_json=is_json)
        return 0
    if agent is not None:
        raise _wrong("--agent goes with --config")
    catalog = load(roots, profile, no_index=no_index)
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
    from skillhall.render.listing import render_listing
    from skillhall.render.manifest import as_json
    from skillhall.surfaces.cli.output import print_report

    data = {"skills": as_json(catalog.visible), "text": render_listing(catalog.visible)}
    print_report("prompt", data, catalog.findings)


def _render(form: str, catalog: Catalog) -> str:
    from skillhall.render.inline import render_instructions
    from skillhall.render.listing import render_listing
    from skillhall.render.local import render_local
    from skillhall.render.markdown import render_markdown

    if form == "inline":
        return render_instructions((), _bodies(catalog.visible, catalog))
    if form == "markdown":
        return render_markdown(catalog.visible)
    if form == "local":
        return render_local(catalog.visible)
    return render_listing(catalog.visible)


def _bodies(skills: Sequence[Skill], catalog: Catalog) -> Iterator[Inlined]:
    from skillhall.errors import SkillhallError
    from skillhall.library.reading import read_body
    from skillhall.render.inline import Inlined

    for skill in skills:
        try:
            body = read_body(skill, catalog.profile)
        except SkillhallError as error:
            say(f"warning: left out {skill.name!r}: {error}")
        else:
            yield Inlined(skill.name, skill.location, skill.directory, body)


def _print_instructions(path: str, agent: str | None, *, is_json: bool) -> None:
    from skillhall.agents.config import read_config
    from skillhall.agents.instructions import load_instructions

    settings = read_settings()
    chosen = _agent(read_config(path), agent)
    base = settings.working_directory
    sources = [(source.located(base), source.globs) for source in chosen.skills]
    loaded = load_instructions(sources)
    if is_json:
        from skillhall.surfaces.cli.output import print_report

        print_report("prompt", {"agent": chosen.id, "text": loaded.text}, loaded.findings)
    elif loaded.text:
        print_text(f"{loaded.text}\n")
    _tell(loaded.findings)


def _agent(config: AgentConfig, identity: str | None) -> AgentDefinition:
    if identity is not None:
        return config.agent(identity)
    if len(config.agents) != 1:
        known = ", ".join(agent.id for agent in config.agents)
        raise _wrong(f"say which agent with --agent; the config has: {known or 'none'}")
    return config.agents[0]


def _tell(findings: Sequence[Judged]) -> None:
    from skillhall.policy.loading import Effect

    loud = sum(one.effect is not Effect.ACCEPT for one in findings)
    if loud:
        say(f"{counted(loud, 'finding')}; --json shows them")
