"""The Markdown summary of eval results."""

from __future__ import annotations

from skillhall._internal.evals.reports.markdown_summary import MAX_BYTES, render_markdown
from tests.support.eval_results import (
    make_hostile_results,
    make_results,
)


def test_markdown_has_the_difference_rates_and_wrong_queries() -> None:
    text = render_markdown([make_results()])
    assert "**better: +0.83 (+0.33 to +1.00) compared with runs without the skill**" in text
    assert "| | Runs | Pass rate | 95% interval | pass@3 | pass^3 | Tokens per run |" in text
    assert "| with the skill | 18 of 18 | 1.00 | 0.61 to 1.00 | 1.00 | 1.00 |" in text
    assert "| 1.00 | 1,000 | 1.50 | $0.0020 |" in text
    assert "Loaded for queries that should not trigger: csv 18\n" in text
    assert "Queries with the wrong result: 6" in text
    assert "- ❌ triggers.recall&gt;=0.9: failed: triggers.recall is 0.5" in text


def test_markdown_of_many_skills_fits_a_step_summary() -> None:
    text = render_markdown([make_results()] * 1000)
    assert len(text.encode()) < MAX_BYTES + 1000
    assert text.endswith("more skills are not shown.\n")


def test_texts_of_others_are_escaped_in_markdown() -> None:
    text = render_markdown([make_hostile_results()])
    assert "<img" not in text
    assert "@team" not in text  # it would be a mention
    assert "`|`" not in text
