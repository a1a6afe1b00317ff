"""The HTML page with eval results."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

from skillhall._internal.evals.eval_records import Arm
from skillhall._internal.evals.eval_summary import ArmVerdict, RateEstimate
from skillhall._internal.evals.preference_summary import PreferenceSummary
from skillhall._internal.evals.reports.html_report import render_html
from skillhall._internal.evals.reports.markdown_summary import render_markdown
from skillhall._internal.evals.reports.skill_results import SkillResults
from skillhall._internal.evals.statistics import Interval
from tests.support.eval_results import (
    make_helpful_runs,
    make_hostile_results,
    make_results,
    make_summary,
    make_trigger_result,
)


class _Tags(HTMLParser):
    """Collects tags and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_html_has_plots_transcripts_and_no_scripts() -> None:
    page = render_html([make_results()])
    tags = _Tags(page)
    assert {"svg", "details", "table"} <= tags.tags
    assert not {"script", "img", "link", "iframe", "object"} & tags.tags
    assert "style" not in tags.attributes
    assert "better: +0.83 (+0.33 to +1.00) compared with runs without the skill" in page
    assert "1,2,3" in page


def test_style_sheet_is_the_one_that_the_policy_allows() -> None:
    page = render_html([make_results()])
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src &#x27;sha256-{digest}&#x27;" in page


def test_blind_comparisons_are_shown_in_both_reports() -> None:
    results = make_results()
    assert results.summary is not None
    preference = PreferenceSummary(
        baseline=Arm.WITHOUT_SKILL,
        counts={},
        cases=6,
        preference=RateEstimate(0.5, Interval(0.1, 0.9)),
        order_bias=RateEstimate(0.0, Interval(-0.2, 0.2)),
        verdict=ArmVerdict.BETTER,
    )
    shown = replace(results, summary=replace(results.summary, preferences=(preference,)))
    text = "better, preference +0.50 (+0.10 to +0.90), order bias +0.00 (-0.20 to +0.20)"
    assert text in render_html([shown])
    assert "order bias \\+0.00" in render_markdown([shown])


def test_same_results_give_the_same_page() -> None:
    assert render_html([make_results()]) == render_html([make_results()])


def test_texts_of_others_are_escaped_in_html() -> None:
    page = render_html([make_hostile_results(), make_results()])
    tags = _Tags(page)
    assert not {"script", "img", "b"} & tags.tags
    assert "onerror" not in tags.attributes


def test_large_transcripts_are_shortened_or_left_out() -> None:
    runs = make_helpful_runs(cases=10)
    results = SkillResults(
        skill_name="csv",
        summary=make_summary(runs),
        runs=runs,
        read_transcript=lambda _: [{"role": "tool", "content": "x" * 100_000}] * 50,
    )
    page = render_html([results])
    assert len(page) < 20_000_000
    assert "… (shortened)" in page
    assert "the page would be too large" in page


def test_results_of_an_older_version_say_so() -> None:
    results = SkillResults(skill_name="csv", triggers=make_trigger_result(), is_current=False)
    assert "has changed since these results" in render_html([results])
    assert "has changed since these results" in render_markdown([results])


def test_skill_without_results_is_named() -> None:
    empty = SkillResults(skill_name="csv")
    assert "No results yet." in render_html([empty])
    assert "No results yet." in render_markdown([empty])
