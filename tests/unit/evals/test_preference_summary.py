"""Preferences that hold in both orders, and the bias of a judge for a place."""

import pytest

from skillhall._internal.evals.eval_records import Arm, RunKey, RunUsage
from skillhall._internal.evals.eval_summary import ArmVerdict
from skillhall._internal.evals.pair_comparison import (
    Choice,
    OrderedChoice,
    PairComparison,
    Preference,
)
from skillhall._internal.evals.preference_summary import PreferenceSummary, summarize_preferences

CHOICES = {"1": Choice.FIRST, "2": Choice.SECOND, "=": Choice.TIE, "?": Choice.NONE}


def compare(letters: str, case: str = "c", repeat: int = 1) -> PairComparison:
    """The first letter is the choice with the skill first, the second with the skill second."""
    first, second = (OrderedChoice(CHOICES[letter], "") for letter in letters)
    key = RunKey(case, Arm.WITHOUT_SKILL, repeat)
    return PairComparison(
        key=key, digest="", skill_first=first, skill_second=second, usage=RunUsage()
    )


def summarize(*pairs: str) -> PreferenceSummary:
    """Each text is a case with the letters of its repeats."""
    found = summarize_preferences(
        Arm.WITHOUT_SKILL,
        [
            compare(letters, str(number), repeat)
            for number, pair in enumerate(pairs)
            for repeat, letters in enumerate(pair.split(), 1)
        ],
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("letters", "preference"),
    [
        ("12", Preference.SKILL),
        ("21", Preference.BASELINE),
        ("==", Preference.TIE),
        ("11", Preference.INCONSISTENT),
        ("22", Preference.INCONSISTENT),
        ("1=", Preference.INCONSISTENT),
        ("=1", Preference.INCONSISTENT),
        ("1?", Preference.NOT_JUDGED),
    ],
)
def test_preference_counts_only_if_both_orders_agree(letters: str, preference: Preference) -> None:
    assert compare(letters).preference is preference


def test_judge_that_always_prefers_the_first_answer_has_no_preference() -> None:
    summary = summarize(*["11 11 11"] * 6)

    assert summary.counts == {Preference.INCONSISTENT: 18}
    assert summary.preference is not None
    assert summary.preference.value == 0
    assert summary.verdict is ArmVerdict.UNCLEAR
    assert summary.order_bias is not None
    assert summary.order_bias.value == 1
    assert summary.order_bias.interval.low > 0


def test_bias_does_not_hide_a_real_preference() -> None:
    # The skill is better in most cases; the judge chooses the first of two equal answers.
    summary = summarize("12 12 12", "12 11 12", "12 12 12", "11 12 12", "12 12 12", "12 12 11")

    assert summary.verdict is ArmVerdict.BETTER
    assert summary.order_bias is not None
    assert 0 < summary.order_bias.value < 0.5


def test_unbiased_judge_has_no_order_bias() -> None:
    summary = summarize("12 21 ==", "21 21 21", "== == ==", "12 12 12", "12 21 12")

    assert summary.order_bias is not None
    assert summary.order_bias.value == 0


def test_few_comparisons_get_no_verdict() -> None:
    assert summarize("12 12 12").verdict is ArmVerdict.NOT_ENOUGH_RUNS
    assert summarize(*["12"] * 9).reason.endswith("0 of at least 5 cases have 3 repeats")


def test_comparisons_that_failed_have_no_estimate() -> None:
    summary = summarize("?1")

    assert (summary.cases, summary.preference, summary.order_bias) == (0, None, None)
    assert summarize_preferences(Arm.WITHOUT_SKILL, []) is None
