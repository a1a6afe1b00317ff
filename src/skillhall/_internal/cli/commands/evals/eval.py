"""`skillhall eval`: the group of the commands on evals."""

from skillhall._internal.cli.commands.evals import (
    check,
    compare,
    eval_init,
    eval_schema,
    eval_triggers,
    grade,
    report,
    run,
)
from skillhall._internal.cli.options import command_group

command = command_group(
    "eval",
    "Write, run, grade and report the evals of skills. All commands accept --json.",
    epilog="Example: skillhall eval run ./skills/csv-report --model openai-chat:gpt-5",
)
for _subcommand in (
    eval_init.command,
    check.command,
    run.command,
    grade.command,
    compare.command,
    eval_triggers.command,
    report.command,
    eval_schema.command,
):
    command.add_command(_subcommand)
