"""`skillhall eval compare`: compares two iterations, paired by case."""

from collections.abc import Iterator

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.evals.summary_output import format_points
from skillhall._internal.cli.options import json_command
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.evals.eval_records import Arm
from skillhall._internal.evals.iteration_comparison import (
    ComparedSide,
    IterationComparison,
    compare_iterations,
    find_iteration,
    read_side,
)
from skillhall._internal.evals.reports.skill_results import VERDICT_NAMES
from skillhall._internal.evals.summary_files import serialize_difference

_ARMS = click.Choice([str(arm) for arm in Arm])
_MAX_LISTED = 20  # cases


@json_command("compare", "skillhall eval compare csv-report-workspace/iteration-1 csv-report")
@click.argument("before")
@click.argument("after")
@click.option(
    "--arm",
    type=_ARMS,
    default=str(Arm.WITH_SKILL),
    show_default=True,
    help="Compare these runs of BEFORE and AFTER.",
)
@click.option(
    "--baseline-arm", type=_ARMS, help="Compare with these runs of BEFORE.  [default: --arm]"
)
def command(*, before: str, after: str, arm: str, baseline_arm: str | None) -> CommandResult:
    """Compare the pass rates of BEFORE and AFTER, case by case.

    Each is the folder of an iteration, or a workspace or a skill, of which the last graded
    iteration is used. A positive difference means that AFTER is better.
    """
    comparison = compare_iterations(
        read_side(find_iteration(before), Arm(baseline_arm or arm)),
        read_side(find_iteration(after), Arm(arm)),
    )
    warnings = []
    if comparison.changed_assertions:
        cases = ", ".join(comparison.changed_assertions[:_MAX_LISTED])
        warnings.append(f"pass rates are not comparable, because the assertions differ: {cases}")
    if comparison.unpaired_cases:
        cases = ", ".join(comparison.unpaired_cases[:_MAX_LISTED])
        warnings.append(f"skipped, because only one side has them: {cases}")
    return CommandResult(
        {
            "before": _serialize_side(comparison.before),
            "after": _serialize_side(comparison.after),
            **serialize_difference(comparison.difference),
            "changed_cases": [
                {"id": case_id, "before": rates[0], "after": rates[1]}
                for case_id, rates in comparison.case_changes.items()
            ],
            "unpaired_cases": comparison.unpaired_cases,
            "changed_assertions": comparison.changed_assertions,
        },
        lines=_format(comparison),
        warnings=warnings,
    )


def _format(comparison: IterationComparison) -> Iterator[str]:
    for label, side in (("before", comparison.before), ("after", comparison.after)):
        rate = "no graded runs" if side.pass_rate is None else f"{side.pass_rate:.0%}"
        cases = format_count(len(side.pass_rates), "case")
        yield f"{label}: {rate}, {cases}, {side.arm}, {side.iteration.path}"
    one = comparison.difference
    verdict = one.reason or VERDICT_NAMES[one.verdict]
    points = ""
    if one.difference is not None and one.interval is not None:
        points = f"{one.difference * 100:+.1f} points {format_points(one.interval)}, "
    yield f"difference: {points}{format_count(one.cases, 'case')}: {verdict}"
    changes = [*comparison.case_changes.items()]
    for case_id, (before, after) in changes[:_MAX_LISTED]:
        yield f"  case {case_id}: {before:.0%} → {after:.0%}"
    if len(changes) > _MAX_LISTED:
        yield f"  … {len(changes) - _MAX_LISTED} more, see --json"


def _serialize_side(side: ComparedSide) -> dict[str, object]:
    return {
        "path": str(side.iteration.path),
        "arm": str(side.arm),
        "pass_rate": side.pass_rate,
        "cases": len(side.pass_rates),
    }
