"""A self-contained HTML page with plots and transcripts.

It has no scripts and loads nothing. Its content security policy allows only the style sheet of the
page. Texts of skills, models and tools are escaped and never interpreted as Markdown or HTML.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import Arm, RunStatus, Verdict
from skillhall._internal.evals.eval_summary import ArmVerdict
from skillhall._internal.evals.reports.model_overview import MODEL_HEADS, list_table_rows
from skillhall._internal.evals.reports.report_style import STYLE
from skillhall._internal.evals.reports.skill_results import (
    ARM_NAMES,
    describe_difference,
    describe_judge,
    describe_preference,
    format_cost,
    format_number,
)
from skillhall._internal.evals.reports.svg_plots import DIFFERENCES, PlotRow, render_plot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.evals.eval_records import GradedRun
    from skillhall._internal.evals.eval_summary import CaseSummary, EvalSummary
    from skillhall._internal.evals.reports.skill_results import SkillResults
    from skillhall._internal.evals.triggers.trigger_files import TriggerResult
    from skillhall._internal.evals.triggers.trigger_score import TriggerScore

_SHORT_DIGEST = len("sha256:") + 12
_MAX_ENTRY = 20_000  # characters of one message of a transcript
_MAX_TRANSCRIPTS = 16 * 1024 * 1024  # characters of all transcripts of a page
_VERDICT_KINDS = {
    ArmVerdict.BETTER: "good",
    ArmVerdict.WORSE: "bad",
    ArmVerdict.UNCLEAR: "neutral",
    ArmVerdict.NOT_ENOUGH_RUNS: "neutral",
}
_MARKS = {Verdict.PASSED: "passed", Verdict.FAILED: "failed", Verdict.NOT_JUDGED: "not judged"}


def render_html(results: Sequence[SkillResults]) -> str:
    """Return the page."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    transcripts = _Transcripts(_MAX_TRANSCRIPTS)
    body = "".join(
        part
        for number, one in enumerate(results, 1)
        for part in _iter_skill_parts(one, number, transcripts)
    )
    names = ", ".join(one.skill_name for one in results)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>Eval results: {escape(names)}</title><style>{STYLE}</style></head>"
        f"<body><main><h1>Eval results</h1>{_render_contents(results)}{body}</main></body></html>\n"
    )


class _Transcripts:
    """The space that is left for transcripts."""

    def __init__(self, space: int) -> None:
        self.space = space

    def render(self, results: SkillResults, graded: GradedRun) -> str:
        entries = results.read_transcript(graded.run.key)
        if not entries:
            return ""
        text = "".join(map(_render_entry, entries))
        if len(text) > self.space:
            return '<p class="note">The transcript is left out; the page would be too large.</p>'
        self.space -= len(text)
        return f"<details><summary>Transcript</summary>{text}</details>"


def _render_contents(results: Sequence[SkillResults]) -> str:
    if len(results) < 2:  # noqa: PLR2004 - one skill needs no list
        return ""
    links = "".join(
        f'<li><a href="#skill-{number}">{escape(one.skill_name)}</a></li>'
        for number, one in enumerate(results, 1)
    )
    return f'<nav aria-label="Skills"><ul>{links}</ul></nav>'


def _iter_skill_parts(
    results: SkillResults, number: int, transcripts: _Transcripts
) -> Iterator[str]:
    yield f'<section id="skill-{number}"><h2>'
    yield f"{escape(results.skill_name)}</h2>"
    if results.is_current is False:
        yield '<p class="note">The skill has changed since these results.</p>'
    if results.is_empty:
        yield "<p>No results yet.</p>"
    yield from _iter_gate_parts(results)
    if results.summary is not None:
        yield from _iter_summary_parts(results.summary)
    if len(results.models) > 1:
        yield "<h3>Models</h3>"
        yield _render_table(MODEL_HEADS, list_table_rows(results.models))
    if results.triggers is not None:
        yield from _iter_trigger_parts(results.triggers)
    if results.summary is not None:
        yield from _iter_case_parts(results, results.summary, transcripts)
    yield "</section>"


def _iter_gate_parts(results: SkillResults) -> Iterator[str]:
    if results.gates:
        yield "<h3>Gates</h3><ul>"
        for gate in results.gates:
            kind, word = ("good", "passed") if gate.passed else ("bad", "failed")
            yield f'<li><span class="tag {kind}">{word}</span> {escape(str(gate))}</li>'
        yield "</ul>"


def _iter_summary_parts(summary: EvalSummary) -> Iterator[str]:
    subject = summary.subject
    judge = describe_judge(summary)
    repeats = "1 repeat" if subject.repeats == 1 else f"{subject.repeats} repeats"
    agent, digest = escape(subject.agent), escape(subject.skill_digest[:_SHORT_DIGEST])
    yield f"<p>{agent}, {repeats}, <code>{digest}</code></p>"
    if judge:
        yield f'<p class="note">{escape(judge)}</p>'
    for difference in summary.differences:
        baseline = ARM_NAMES[difference.baseline]
        text = f"{describe_difference(difference)} compared with runs {baseline}"
        yield f'<p><span class="tag {_VERDICT_KINDS[difference.verdict]}">{escape(text)}</span></p>'
        if difference.reason:
            yield f'<p class="note">{escape(difference.reason)}</p>'
    for preference in summary.preferences:
        kind = _VERDICT_KINDS[preference.verdict]
        yield f'<p><span class="tag {kind}">{escape(describe_preference(preference))}</span></p>'
    yield "<h3>Pass rates</h3>"
    yield render_plot("Pass rates with 95% intervals", _build_arm_rows(summary))
    if summary.differences:
        yield "<h3>Differences</h3>"
        rows = [
            PlotRow(
                f"{ARM_NAMES[one.arm]} – {ARM_NAMES[one.baseline]}",
                one.difference,
                one.interval,
                "–" if one.difference is None else f"{one.difference:+.2f}",
            )
            for one in summary.differences
        ]
        yield render_plot("Differences with 95% intervals", rows, DIFFERENCES)
    yield _render_arm_table(summary)


def _build_arm_rows(summary: EvalSummary) -> Iterator[PlotRow]:
    for arm in summary.arms:
        rate = arm.pass_rate
        kind = "skill" if arm.arm is Arm.WITH_SKILL else "other"
        if rate is None:
            yield PlotRow(ARM_NAMES[arm.arm], None, None, "–", kind=kind)
        else:
            text = f"{rate.value:.2f} ({rate.interval.low:.2f} to {rate.interval.high:.2f})"
            yield PlotRow(ARM_NAMES[arm.arm], rate.value, rate.interval, text, kind=kind)


def _render_arm_table(summary: EvalSummary) -> str:
    k = f"@1, @{summary.subject.repeats}" if summary.subject.repeats > 1 else "@1"
    heads = ["Runs", "Completed", "Tokens per run", "Seconds per run", "Cost per run"]
    heads += ["Cost of all runs", f"pass{k}", f"pass{k.replace('@', '^')}"]
    rows = (
        (
            ARM_NAMES[arm.arm],
            f"{arm.completed} of {arm.runs}",
            *(format_number(one and one.mean) for one in (arm.tokens, arm.seconds)),
            format_cost(arm.cost_per_run),
            format_cost(arm.usage.cost),
            ", ".join(f"{one:.2f}" for one in arm.pass_at[:1] + arm.pass_at[1:][-1:]),
            ", ".join(f"{one:.2f}" for one in arm.pass_hat[:1] + arm.pass_hat[1:][-1:]),
        )
        for arm in summary.arms
    )
    return _render_table(heads, rows)


def _render_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. The first cell of each row is its header; phones show a list."""
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    body = ""
    for name, *values in rows:
        cells = "".join(
            f'<td data-label="{escape(label)}">{escape(value)}</td>'
            for label, value in zip(heads[1:], values, strict=True)
        )
        body += f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _iter_trigger_parts(result: TriggerResult) -> Iterator[str]:
    score = result.score
    yield f"<h3>Triggers: {escape(score.verdict)}</h3>"
    repeats = "1 repeat" if result.repeats == 1 else f"{result.repeats} repeats"
    skills = "1 skill" if len(result.catalog) == 1 else f"{len(result.catalog)} skills"
    yield f"<p>{escape(result.model)}, {repeats}, the agent has {skills}</p>"
    rows = []
    for label, rate, kind in (
        ("recall", score.recall, "skill"),
        ("precision", score.precision, "skill"),
        ("false triggers", score.false_triggers, "bad"),
    ):
        if rate.value is None:
            rows.append(PlotRow(label, None, None, "–"))
        else:
            low, high = rate.interval
            text = f"{rate.value:.2f} ({low:.2f} to {high:.2f})"
            rows.append(PlotRow(label, rate.value, rate.interval, text, kind=kind))
    yield render_plot("Rates of triggers with 95% intervals", rows)
    yield _render_confusion(score)
    yield "<details><summary>Queries</summary>"
    for should_trigger, title in ((True, "Should trigger"), (False, "Should not trigger")):
        queries = [one for one in score.queries if one.query.should_trigger is should_trigger]
        if queries:
            yield f"<h4>{title}</h4>"
            plot_rows = (
                PlotRow(
                    one.query.query,
                    one.rate,
                    None,
                    f"{one.loads} of {one.runs}",
                    kind="bad" if one.is_right is False else "skill",
                )
                for one in queries
            )
            yield render_plot(title, plot_rows)
    yield "</details>"


def _render_confusion(score: TriggerScore) -> str:
    """Return a table: which skill was loaded first, for queries of both kinds."""
    kinds = {should: score.count_taken(should_trigger=should) for should in (True, False)}
    names = dict.fromkeys(name for counts in kinds.values() for name in counts)
    rows = (
        (label, *(str(kinds[should].get(name, 0)) for name in names))
        for should, label in ((True, "should trigger"), (False, "should not trigger"))
    )
    heads = ["Loaded first, in runs", *(name or "no skill" for name in names)]
    return _render_table(heads, rows)


def _iter_case_parts(
    results: SkillResults, summary: EvalSummary, transcripts: _Transcripts
) -> Iterator[str]:
    if summary.cases:
        yield "<h3>Cases</h3>"
        yield '<p class="note">Filled: with the skill. Hollow: without it.</p>'
        yield render_plot("Pass rates of the cases", map(_build_case_row, summary.cases))
    yield from _iter_assertion_parts(summary)
    by_case: dict[str, list[GradedRun]] = {}
    for graded in results.runs:
        by_case.setdefault(graded.run.key.case_id, []).append(graded)
    for case_id, runs in by_case.items():
        yield f"<details><summary>Case {escape(case_id)}: {_count_passed(runs)}</summary>"
        if prompt := results.prompts.get(case_id):
            yield f"<h4>Prompt</h4><pre>{escape(prompt)}</pre>"
        for graded in runs:
            yield from _iter_run_parts(results, graded, transcripts)
        yield "</details>"


def _build_case_row(case: CaseSummary) -> PlotRow:
    value = case.pass_rates.get(Arm.WITH_SKILL)
    baseline = case.pass_rates.get(Arm.WITHOUT_SKILL)
    shown = ["–" if one is None else f"{one:.2f}" for one in (baseline, value)]
    kind = "bad" if value is not None and baseline is not None and value < baseline else "skill"
    return PlotRow(
        f"case {case.case_id}", value, None, " → ".join(shown), baseline=baseline, kind=kind
    )


def _iter_assertion_parts(summary: EvalSummary) -> Iterator[str]:
    for label, assertions in (
        ("Flaky assertions", [one for one in summary.assertions if one.is_flaky]),
        (
            "Assertions with the same verdict in all runs",
            [one for one in summary.assertions if one.never_discriminates],
        ),
    ):
        if assertions:
            items = "".join(
                f"<li>case {escape(one.case_id)}: {escape(one.text)}</li>" for one in assertions
            )
            summary_tag = f"<summary>{label}: {len(assertions)}</summary>"
            yield f"<details>{summary_tag}<ul>{items}</ul></details>"


def _count_passed(runs: Sequence[GradedRun]) -> str:
    parts = []
    for arm in Arm:
        outcomes = [one.outcome for one in runs if one.run.key.arm is arm]
        if outcomes:
            parts.append(f"{ARM_NAMES[arm]} {outcomes.count(True)} of {len(outcomes)} passed")
    return escape(", ".join(parts))


def _iter_run_parts(
    results: SkillResults, graded: GradedRun, transcripts: _Transcripts
) -> Iterator[str]:
    run = graded.run
    usage = f"{run.usage.total_tokens} tokens, {run.usage.duration_ms / 1000:.1f} s"
    status = "" if run.status is RunStatus.COMPLETED else f", {run.status}: {escape(run.reason)}"
    yield f"<h4>Run {run.key.repeat} {ARM_NAMES[run.key.arm]}</h4>"
    yield f'<p class="note">{usage}{status}</p>'
    if graded.results:
        yield "<ul>"
        for one in graded.results:
            kind = {Verdict.PASSED: "good", Verdict.FAILED: "bad"}.get(one.verdict, "neutral")
            yield (
                f'<li><span class="tag {kind}">{_MARKS[one.verdict]}</span> {escape(one.text)}'
                f"<blockquote>{escape(_shorten(one.evidence))}</blockquote></li>"
            )
        yield "</ul>"
    if run.reply:
        yield f"<details><summary>Reply</summary><pre>{escape(_shorten(run.reply))}</pre></details>"
    yield transcripts.render(results, graded)


def _render_entry(entry: Mapping[str, object]) -> str:
    """Return one message of a transcript."""
    role = str(entry.get("role", ""))
    tool = f" {entry['tool']}" if entry.get("tool") else ""
    content = entry.get("content", "")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    parts = [f'<div class="message"><div class="role">{escape(role + tool)}</div>']
    if entry.get("thinking"):
        parts.append(f'<pre class="note">{escape(_shorten(str(entry["thinking"])))}</pre>')
    if text:
        parts.append(f"<pre>{escape(_shorten(text))}</pre>")
    calls = entry.get("calls")
    for call in calls if isinstance(calls, list) else ():
        shown = json.dumps(call, ensure_ascii=False, indent=1)
        parts.append(f"<pre>{escape(_shorten(shown))}</pre>")
    return "".join((*parts, "</div>"))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_ENTRY else f"{text[:_MAX_ENTRY]}\n… (shortened)"
