"""`skillhall eval triggers`: measures which queries make agents load a skill."""

from __future__ import annotations

import asyncio
import gc
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.evals.eval_grading import (
    describe_failed_gates,
    gate_option,
)
from skillhall._internal.cli.commands.evals.eval_model import (
    price_option,
    require_chat_packages,
    require_model,
    require_price,
)
from skillhall._internal.cli.commands.evals.report_files import ReportFiles, report_options
from skillhall._internal.cli.commands.evals.trigger_output import (
    format_improvement,
    format_queries,
    format_result,
    serialize_improvement,
)
from skillhall._internal.cli.commands.trust_question import TrustOptions, trust_options
from skillhall._internal.cli.configured_agent import open_agent_skills
from skillhall._internal.cli.errors import CommandFailed, ErrorInfo
from skillhall._internal.cli.options import (
    config_option,
    configured_agent_option,
    dry_run_option,
    flag,
    json_command,
    roots_option,
)
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.evals.gates import (
    Gate,
    GateResult,
    collect_trigger_metrics,
    evaluate_gates,
    serialize_gate,
)
from skillhall._internal.evals.reports.skill_results import SkillResults
from skillhall._internal.evals.runs.recording import list_recorded_iterations
from skillhall._internal.evals.runs.run_limits import ModelPrice, RunSpending
from skillhall._internal.evals.triggers.improvement_eval import (
    DescriptionImprovement,
    ImprovementEstimate,
    estimate_improvement,
    suggest_description,
    write_description,
)
from skillhall._internal.evals.triggers.trigger_eval import TriggerEval, TriggerPlan
from skillhall._internal.evals.triggers.trigger_files import TriggerResult, serialize_result
from skillhall._internal.evals.triggers.trigger_targets import find_trigger_targets

if TYPE_CHECKING:
    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.evals.text_model import TextModel
    from skillhall._internal.evals.triggers.evaluated_skills import EvaluatedSkills
    from skillhall._internal.evals.triggers.trigger_records import TriggerTarget
    from skillhall._internal.evals.triggers.trigger_runner import QueryAgent

_STEP = "trigger queries"
_MAX_REASONS = 3


class _Measured(NamedTuple):
    """The results of a command, in the order of the skills."""

    results: list[TriggerResult]
    improvements: list[DescriptionImprovement]


@json_command("triggers", "skillhall eval triggers pdf-tools --model openai-chat:gpt-5")
@click.argument("skills", nargs=-1, metavar="[SKILL]...")
@configured_agent_option("Use this agent from the config.")
@config_option
@click.option("--model", metavar="PROVIDER:NAME", help="Override the configured model.")
@roots_option
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    metavar="N",
    help="Ask each query N times.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    metavar="N",
    help="Ask up to N queries in parallel.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="Start no more runs after N tokens.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    metavar="DOLLARS",
    help="Start no more runs after this cost in US dollars.",
)
@price_option
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop a run after this time.",
)
@click.option(
    "--results", default="", metavar="DIR", help="Store results here.  [default: next to the skill]"
)
@click.option(
    "--replay", metavar="DIR", help="Use only the recorded runs in this folder, without a model."
)
@gate_option
@report_options
@flag("--improve", help="Suggest a better description, and measure it on held-out queries.")
@flag("--write", "is_written", help="With --improve, write the description if it is better.")
@dry_run_option
@trust_options
def command(
    *,
    skills: tuple[str, ...],
    agent: str | None,
    config: str | None,
    model: str | None,
    roots: tuple[str, ...],
    repeats: int,
    jobs: int,
    max_tokens: int | None,
    max_cost: float | None,
    price: ModelPrice | None,
    timeout: float,
    results: str,
    replay: str | None,
    gate: tuple[Gate, ...],
    reports: ReportFiles,
    improve: bool,
    is_written: bool,
    dry_run: bool,
    trust: TrustOptions,
) -> CommandResult:
    """Measure which queries make an agent load each SKILL.

    The queries are in the skill's file evals/triggers.json. The agent sees all of its skills, so
    each SKILL competes with the others. Without SKILL, all skills with queries are measured.
    Results of earlier commands are reused.
    """
    if is_written and not improve:
        raise click.UsageError("--write needs --improve")
    if replay and (model or improve or dry_run):
        message = "--replay cannot be combined with --model, --improve or --dry-run"
        raise click.UsageError(message)
    settings = read_settings()
    agent_skills = open_agent_skills(config, agent, roots, settings, trust)
    found = find_trigger_targets(agent_skills, skills)
    if found.problems:
        message = f"the trigger files have {format_count(found.problems, 'problem')}"
        folders = dict.fromkeys(str(Path(one.path).parent.parent) for one in found.findings)
        hint = f"see them with: {shlex.join(['skillhall', 'eval', 'check', *folders])}"
        error = ErrorInfo("invalid_skill", message, hint)
        return CommandResult({}, found.findings, error, exit_code=1, warnings=[message, hint])
    if not found.targets:
        raise CommandFailed(
            "not_found",
            "no skill has trigger queries",
            "create evals/triggers.json with: skillhall eval init",
        )
    name = "" if replay else require_model(model or agent_skills.agent.model or settings.model)
    with tempfile.TemporaryDirectory(prefix="skillhall-") as run_directory:
        measuring = TriggerEval(
            skills=agent_skills,
            run_directory=run_directory,
            model_name=name,
            repeats=repeats,
            spending=RunSpending(max_tokens, max_cost),
            jobs=jobs,
            results_folder=results or settings.eval_results,
        )
        if replay:
            measured = _replay(measuring, found.targets, replay)
        else:
            plans = [measuring.plan(target) for target in found.targets]
            if dry_run:
                suggestions = [estimate_improvement(measuring, one) for one in plans if improve]
                return _show_plans(plans, name, suggestions)
            opened = _open_model(name, price, max_cost, timeout)
            measured = asyncio.run(_measure(measuring, plans, opened, improve=improve))
    gates = {one.skill: _evaluate(one, gate) for one in measured.results}
    reports.write(
        [
            SkillResults(skill_name=one.skill, triggers=one, gates=gates[one.skill])
            for one in measured.results
        ]
    )
    written = _write_better(agent_skills, measured.improvements) if is_written else []
    without = found.without_queries if skills else ()
    return _build_result(measuring, measured, gates, written, without)


def _evaluate(result: TriggerResult, gates: Sequence[Gate]) -> Sequence[GateResult]:
    return evaluate_gates(gates, collect_trigger_metrics(result, result.skill_digest))


class _OpenedModel(NamedTuple):
    """The model of a command: suggests descriptions, and opens agents."""

    writer: TextModel
    open_agent: Callable[[EvaluatedSkills], QueryAgent]


def _open_model(
    name: str, price: ModelPrice | None, max_cost: float | None, seconds: float
) -> _OpenedModel:
    """Open the model. Raises: CommandFailed, ModelUnavailable."""
    require_chat_packages()
    from skillhall._internal.evals.runs.model_prices import find_price
    from skillhall._internal.evals.text_model import TextModel
    from skillhall._internal.evals.triggers.trigger_agent import TriggerAgent

    found = price or find_price(name)
    require_price(found, max_cost)
    writer = replace(TextModel.open(name), price=found)
    return _OpenedModel(
        writer, lambda skills: TriggerAgent(skills, writer.model, name, seconds, found)
    )


async def _measure(
    measuring: TriggerEval, plans: Sequence[TriggerPlan], model: _OpenedModel, *, improve: bool
) -> _Measured:
    measured = _Measured([], [])
    total, done = sum(plan.new_runs for plan in plans), 0
    gc.enable()  # `main` disables it for short commands
    with transfer_progress() as show:

        def update() -> None:
            nonlocal done
            done += 1
            if show is not None:
                show(_STEP, done, max(done, total))

        measuring.on_run = update
        measuring.open_agent = model.open_agent
        async with model.writer.model:
            for plan in plans:
                result = await measuring.measure(plan)
                measured.results.append(result)
                if improve and not measuring.problem:
                    target = plan.target
                    suggestion = await suggest_description(measuring, target, result, model.writer)
                    measured.improvements.extend(filter(None, [suggestion]))
                if measuring.problem:
                    break
    return measured


def _replay(measuring: TriggerEval, targets: Sequence[TriggerTarget], folder: str) -> _Measured:
    recorded = [(one, list_recorded_iterations(folder, one.folder)) for one in targets]
    return _Measured([measuring.replay(*one) for one in recorded], [])


def _show_plans(
    plans: Sequence[TriggerPlan], model: str, suggestions: Sequence[ImprovementEstimate]
) -> CommandResult:
    rows: list[dict[str, object]] = [
        {
            "skill": plan.target.name,
            "queries": len(plan.target.queries),
            "runs": len(plan.runs),
            "new_runs": plan.new_runs,
            "input_tokens": plan.estimate_input_tokens(),
        }
        for plan in plans
    ]
    lines = [
        f"{plan.target.name}: {format_queries(len(plan.target.queries))}, "
        f"{format_count(plan.new_runs, 'new run')} of {len(plan.runs)}"
        for plan in plans
    ]
    for row, suggestion in zip(rows, suggestions, strict=False):
        row["improvement"] = suggestion._asdict()
    if suggestions:
        added = sum(one.requests for one in suggestions)
        lines.append(f"--improve: {format_count(added, 'more request')}")
    requests = sum(plan.new_runs for plan in plans) + sum(one.requests for one in suggestions)
    tokens = sum(plan.estimate_input_tokens() for plan in plans)
    tokens += sum(one.input_tokens for one in suggestions)
    lines.append(
        f"at least {format_count(requests, 'request')} to {model}, about {tokens} input tokens"
    )
    return CommandResult({"model": model, "skills": rows, "dry_run": True}, lines=lines)


def _write_better(skills: AgentSkills, improvements: Sequence[DescriptionImprovement]) -> list[str]:
    """Write descriptions that are better for held-out queries; return their skills."""
    better = [one for one in improvements if one.is_better]
    for one in better:
        write_description(skills.current_view().find(one.skill).skill, one.suggested)
    return [one.skill for one in better]


def _build_result(
    measuring: TriggerEval,
    measured: _Measured,
    gates: Mapping[str, Sequence[GateResult]],
    written: Sequence[str],
    without: Sequence[str],
) -> CommandResult:
    lines: list[str] = []
    for result in measured.results:
        lines += format_result(result.score)
        lines += (f"  gate {gate}" for gate in gates[result.skill])
    for one in measured.improvements:
        lines += format_improvement(one, is_written=one.skill in written)
    spending, problem = measuring.spending, measuring.problem
    cost = "unknown cost" if spending.cost is None else f"${spending.cost:.4f}"
    runs = format_count(measuring.new_runs, "new run")
    summary = f"{runs}, {format_count(spending.tokens, 'token')}, {cost}"
    warnings = [f"{name} has no trigger queries" for name in without]
    if problem:
        is_replay = not measuring.model_name
        again = "record them again" if is_replay else "run the command again to continue"
        warnings.append(f"{'' if is_replay else 'stopped: '}{problem}; {again}")
    failures = Counter(
        run.reply.reason for one in measured.results for run in one.runs if not run.is_complete
    )
    if failures and not problem:
        reasons = "; ".join(reason for reason, _ in failures.most_common(_MAX_REASONS))
        problem = f"{format_count(failures.total(), 'run')} failed: {reasons}"
        warnings.append(f"{problem}; run the command again to repeat them")
    failed = describe_failed_gates(gates.values())
    warnings += [failed] if failed else []
    error = ErrorInfo("gate_failed", failed) if failed else None
    error = ErrorInfo("incomplete", problem) if problem else error
    return CommandResult(
        {
            "model": measuring.model_name or None,  # of the skills in a replay
            "repeats": measuring.repeats,
            "skills": [
                {
                    **serialize_result(one),
                    "gates": [serialize_gate(gate) for gate in gates[one.skill]],
                }
                for one in measured.results
            ],
            "improvements": [
                {**serialize_improvement(one), "written": one.skill in written}
                for one in measured.improvements
            ],
            "new_runs": measuring.new_runs,
            "tokens": spending.tokens,
            "cost": spending.cost,
            "failed_runs": failures.total(),
            "stopped": measuring.problem,
        },
        error=error,
        exit_code=1 if error else 0,
        lines=lines,
        warnings=[*warnings, summary],
    )
