"""A Markdown summary for pull requests and `$GITHUB_STEP_SUMMARY`."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from skillhall._internal.evals.reports.model_overview import MODEL_HEADS, list_table_rows
from skillhall._internal.evals.reports.skill_results import (
    ARM_NAMES,
    describe_difference,
    describe_judge,
    describe_preference,
    format_cost,
    format_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillhall._internal.evals.eval_summary import EvalSummary
    from skillhall._internal.evals.reports.model_overview import ModelOverview
    from skillhall._internal.evals.reports.skill_results import SkillResults
    from skillhall._internal.evals.triggers.trigger_score import TriggerRate, TriggerScore

MAX_BYTES = 900_000  # GitHub accepts 1 MiB for each step
_MAX_ROWS = 20  # of cases, queries and assertions
_MAX_TEXT = 200  # characters of a text from outside
_SPECIAL = re.compile(r"([\\`*_{}\[\]()+!|~$-])")
_MENTION = re.compile(r"([@#])(?=\w)")  # mentions of people, teams and issues would notify them


def render_markdown(results: Sequence[SkillResults]) -> str:
    """Return the summary, shortened if it is too large."""
    parts: list[str] = ["# Eval results\n"]
    size = 0
    for number, one in enumerate(results):
        part = "\n".join(_iter_lines(one)) + "\n"
        size += len(part.encode())
        if size > MAX_BYTES:
            parts.append(f"… {len(results) - number} more skills are not shown.\n")
            break
        parts.append(part)
    return "\n".join(parts)


def escape_markdown(text: str, limit: int = _MAX_TEXT) -> str:
    """Return text from outside as one line of plain text in Markdown."""
    line = " ".join(text.split())
    line = line if len(line) <= limit else f"{line[:limit]}…"
    return _MENTION.sub("\\1\N{ZERO WIDTH SPACE}", _SPECIAL.sub(r"\\\1", escape(line, quote=False)))


def _iter_lines(results: SkillResults) -> Iterator[str]:
    yield f"## {escape_markdown(results.skill_name)}\n"
    if results.is_current is False:
        yield "The skill has changed since these results.\n"
    for gate in results.gates:
        yield f"- {'✅' if gate.passed else '❌'} {escape_markdown(str(gate))}"
    if results.gates:
        yield ""
    if results.summary is not None:
        yield from _iter_summary_lines(results.summary)
    if len(results.models) > 1:
        yield from _iter_model_lines(results.models)
    if results.triggers is not None:
        yield from _iter_trigger_lines(results.triggers.score)
    if results.is_empty:
        yield "No results yet."


def _iter_summary_lines(summary: EvalSummary) -> Iterator[str]:
    for difference in summary.differences:
        baseline = ARM_NAMES[difference.baseline]
        yield f"**{describe_difference(difference)} compared with runs {baseline}**\n"
        if difference.reason:
            yield f"{escape_markdown(difference.reason)}\n"
    for preference in summary.preferences:
        yield f"{escape_markdown(describe_preference(preference))}\n"
    k = summary.subject.repeats
    heads = f"Pass rate | 95% interval | pass@{k} | pass^{k}"
    yield f"| | Runs | {heads} | Tokens per run | Seconds per run | Cost per run |"
    yield "|---|---:|---:|---|---:|---:|---:|---:|---:|"
    for arm in summary.arms:
        rate, interval = "–", "–"
        if arm.pass_rate is not None:
            low, high = arm.pass_rate.interval
            rate, interval = f"{arm.pass_rate.value:.2f}", f"{low:.2f} to {high:.2f}"
        tokens, seconds = (
            format_number(None if one is None else one.mean) for one in (arm.tokens, arm.seconds)
        )
        cost = format_cost(arm.cost_per_run)
        at, hat = (f"{one[-1]:.2f}" if one else "–" for one in (arm.pass_at, arm.pass_hat))
        yield (
            f"| {ARM_NAMES[arm.arm]} | {arm.completed} of {arm.runs} | {rate} | {interval} "
            f"| {at} | {hat} | {tokens} | {seconds} | {cost} |"
        )
    yield ""
    if judge := describe_judge(summary):
        yield f"{escape_markdown(judge)}\n"
    flaky = [one for one in summary.assertions if one.is_flaky]
    same = [one for one in summary.assertions if one.never_discriminates]
    for label, assertions in (
        ("Flaky assertions", flaky),
        ("Assertions with the same verdict in all runs", same),
    ):
        if assertions:
            yield f"<details><summary>{label}: {len(assertions)}</summary>\n"
            yield from _limit(
                f"- case {escape_markdown(one.case_id)}: {escape_markdown(one.text)}"
                for one in assertions
            )
            yield "\n</details>\n"


def _iter_model_lines(models: Sequence[ModelOverview]) -> Iterator[str]:
    yield f"| {' | '.join(MODEL_HEADS)} |"
    yield "|---|---|---|---:|---:|---:|"
    for cells in list_table_rows(models):
        yield f"| {' | '.join(map(escape_markdown, cells))} |"
    yield ""


def _iter_trigger_lines(score: TriggerScore) -> Iterator[str]:
    yield f"**Triggers: {escape_markdown(score.verdict)}**\n"
    yield "| | Rate | 95% interval | Queries |"
    yield "|---|---:|---|---:|"
    for label, rate in (
        ("Recall", score.recall),
        ("Precision", score.precision),
        ("False triggers", score.false_triggers),
    ):
        yield _format_rate_row(label, rate)
    yield ""
    for should_trigger, label in ((True, "should trigger"), (False, "should not trigger")):
        taken = score.count_taken(should_trigger=should_trigger)
        loaded = ", ".join(
            f"{escape_markdown(name or 'no skill')} {runs}" for name, runs in taken.items()
        )
        yield f"Loaded for queries that {label}: {loaded or '–'}\n"
    wrong = [one for one in score.queries if one.is_right is False]
    if wrong:
        yield f"<details><summary>Queries with the wrong result: {len(wrong)}</summary>\n"
        yield from _limit(
            f"- {escape_markdown(one.query.query)} "
            f"({'should' if one.query.should_trigger else 'should not'} trigger, "
            f"loaded in {one.loads} of {one.runs} runs)"
            for one in wrong
        )
        yield "\n</details>\n"


def _format_rate_row(label: str, rate: TriggerRate) -> str:
    if rate.value is None:
        return f"| {label} | – | – | 0 |"
    low, high = rate.interval
    return f"| {label} | {rate.value:.2f} | {low:.2f} to {high:.2f} | {rate.queries} |"


def _limit(lines: Iterable[str]) -> Iterator[str]:
    shown = [*lines]
    yield from shown[:_MAX_ROWS]
    if len(shown) > _MAX_ROWS:
        yield f"- … and {len(shown) - _MAX_ROWS} more"
