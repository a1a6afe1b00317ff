"""`skillhall eval init`: drafts the eval files of a skill."""

import asyncio
from pathlib import Path

import click

from skillhall._internal.authoring.eval_files import (
    SkillFolder,
    read_skill_folder,
    write_eval_files,
)
from skillhall._internal.cli.catalog_loader import find_skill, load_with_progress
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.evals.eval_model import require_chat_packages
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import flag, json_command, skill_search_options
from skillhall._internal.cli.param_types import complete_skill
from skillhall._internal.cli.search_options import SearchOptions
from skillhall._internal.skill.evals.eval_draft import (
    DRAFT_INSTRUCTIONS,
    EvalDraft,
    build_draft_request,
    build_template,
    parse_draft,
)
from skillhall.errors import Conflict


@json_command("init", "skillhall eval init pdf-tools --model openai-chat:gpt-5")
@click.argument("skill", shell_complete=complete_skill)
@click.option(
    "--model", metavar="PROVIDER:NAME", help="Let this model write the draft.  [default: none]"
)
@flag("--force", help="Replace existing eval files.")
@skill_search_options
def command(*, skill: str, model: str | None, force: bool, search: SearchOptions) -> CommandResult:
    """Write drafts of the eval files of SKILL, a name or a folder.

    They are evals/evals.json and evals/triggers.json. Without --model, the drafts are templates
    with the headings of the skill, which you complete. Review a model's drafts before you use them.
    """
    folder = read_skill_folder(_find_folder(skill, search))
    draft = (
        _write_with_model(folder, model) if model else build_template(folder.name, folder.parsed)
    )
    try:
        paths = write_eval_files(folder, draft, force=force)
    except Conflict as error:
        error.hint = "use --force to replace it"
        raise
    queries = f"{draft.queries} trigger queries"
    todo = f"now complete them, then run: skillhall eval check {folder.path}"
    return CommandResult(
        {
            "name": folder.name,
            "files": list(paths),
            "cases": draft.cases,
            "queries": draft.queries,
            "model": model or "",
        },
        lines=paths,
        messages=[f"{draft.cases} cases, {queries}", todo],
    )


def _find_folder(skill: str, search: SearchOptions) -> str:
    if Path(skill).is_dir():
        return skill
    return find_skill(load_with_progress(search), skill).directory


def _write_with_model(folder: SkillFolder, model: str) -> EvalDraft:
    require_chat_packages()
    from skillhall._internal.evals.text_model import TextModel

    request = build_draft_request(folder.name, folder.parsed)
    reply = asyncio.run(TextModel.open(model).write(DRAFT_INSTRUCTIONS, request))
    draft = parse_draft(folder.name, reply)
    if draft is None:
        raise CommandFailed(
            "upstream_error",
            f"{model} did not write usable test cases",
            "try again, use another model, or leave out --model for a template",
        )
    return draft
