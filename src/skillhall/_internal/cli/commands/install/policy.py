"""`skillhall policy`: shows the rules of policy files that apply to skills."""

from __future__ import annotations

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.install.trust import (
    find_judged_skills,
    names_argument,
    serialize_evidence,
)
from skillhall._internal.cli.commands.trust_question import serialize_held
from skillhall._internal.cli.errors import ErrorInfo
from skillhall._internal.cli.options import command_group, json_command

command = command_group(
    "policy",
    "Show how policy files affect skills. All commands accept --json.",
    epilog="Example: skillhall policy check",
)


@json_command("check", "skillhall policy check pdf-tools", group=command)
@names_argument
def check(*, names: tuple[str, ...]) -> CommandResult:
    """Show which rule applies to the skills NAME, or to all skills.

    Each line has the rule, the action, the state, the risk level and the signer. The command fails
    if a policy file cannot be used.
    """
    found = find_judged_skills("")
    gate = found.review.gate
    judged = found.judge(names) if names else found.judge_all()
    skills = [
        {**row, "action": one.decision.action.value, **serialize_evidence(evidence)}
        for one, row, evidence in zip(
            judged, serialize_held(judged), gate.examine_all(judged), strict=True
        )
    ]
    loaded = gate.load_policies()
    files = [] if loaded is None else loaded.policies.files
    warnings = [] if loaded is None else loaded.policies.find_warnings(gate.policy)
    error = None
    if loaded is not None and loaded.problem:
        error = ErrorInfo("invalid_config", loaded.problem)
    columns = ("name", "reason", "action", "state", "risk", "signer")
    return CommandResult(
        {
            "skills": skills,
            "policies": [{"level": one.level.value, "path": one.path} for one in files],
        },
        error=error,
        exit_code=error.exit_code if error else 0,
        headings=["skill", "rule", *columns[2:]],
        rows=[tuple(row[column] for column in columns) for row in skills],
        messages=[f"error: {error.message}"] if error else [],
        warnings=[f"warning: {warning}" for warning in warnings],
    )
