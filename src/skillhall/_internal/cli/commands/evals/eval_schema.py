"""`skillhall eval schema`: prints the JSON Schemas of eval files and result files."""

import json

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import json_command
from skillhall._internal.evals.eval_schemas import SCHEMAS, read_schema


@json_command("schema", "skillhall eval schema evals > evals.schema.json")
@click.argument("name", required=False, type=click.Choice([*SCHEMAS]), metavar="[NAME]")
def command(*, name: str | None) -> CommandResult:
    """Print the JSON Schema NAME; without NAME, list the schemas."""
    if name is None:
        return CommandResult(
            {"schemas": [{"name": one, "file": file} for one, file in SCHEMAS.items()]},
            rows=SCHEMAS.items(),
            headings=("name", "file"),
        )
    text = read_schema(name)
    return CommandResult({"name": name, "schema": json.loads(text)}, text=text)
