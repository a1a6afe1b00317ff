"""`skillhall schema`: prints the JSON Schemas of the files that users write."""

import json
from pathlib import Path
from typing import NamedTuple

import click

from skillhall._internal.agents.config import agent_config
from skillhall._internal.authoring.skill_schema import SKILL_SCHEMA
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import json_command
from skillhall._internal.evals import eval_schemas
from skillhall._internal.installer.lock import LOCK_SCHEMA


class _Schema(NamedTuple):
    file: str  # that the schema describes
    path: Path


_SCHEMAS = {
    "skill": _Schema("the frontmatter of SKILL.md", SKILL_SCHEMA),
    "config": _Schema("skillhall.toml or skillhall.json", agent_config.schema_file()),
    "lock": _Schema("skillhall-lock.json", LOCK_SCHEMA),
    **{
        name: _Schema(file, eval_schemas.get_schema_path(name))
        for name, file in eval_schemas.SCHEMAS.items()
    },
}


@json_command("schema", "skillhall schema config > skillhall.schema.json")
@click.argument("name", required=False, type=click.Choice([*_SCHEMAS]), metavar="[NAME]")
def command(*, name: str | None) -> CommandResult:
    """Print the JSON Schema NAME, for editors; without NAME, list the schemas."""
    if name is None:
        return CommandResult(
            {"schemas": [{"name": one, "file": schema.file} for one, schema in _SCHEMAS.items()]},
            rows=[(one, schema.file) for one, schema in _SCHEMAS.items()],
            headings=("name", "file"),
        )
    text = _SCHEMAS[name].path.read_text(encoding="utf-8")
    return CommandResult({"name": name, "schema": json.loads(text)}, text=text)
