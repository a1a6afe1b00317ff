from itertools import product

import pytest

from skillhall._internal.policy.access.roles import Action
from skillhall._internal.policy.trust.version_states import (
    TRANSITIONS,
    Refusal,
    ReviewFacts,
    ReviewMode,
    VersionState,
    VersionVerb,
    choose_current,
    find_refusal,
    initial_state,
)

FLAGS = (False, True)
COMBINATIONS = [
    (verb, ReviewFacts(*facts))
    for verb in VersionVerb
    for facts in product(VersionState, ReviewMode, FLAGS, FLAGS, FLAGS)
]
ALLOWED = {
    (VersionVerb.SUBMIT, "draft", "in-review"),
    (VersionVerb.RETURN, "in-review", "draft"),
    (VersionVerb.APPROVE, "in-review", "approved"),
    (VersionVerb.YANK, "approved", "yanked"),
    (VersionVerb.USE, "approved", "approved"),
}


def test_table_has_exactly_the_documented_transitions() -> None:
    assert {(verb, row.before, row.after) for verb, row in TRANSITIONS.items()} == ALLOWED


def test_only_submitting_is_for_authors() -> None:
    authors = {verb for verb, row in TRANSITIONS.items() if row.action is Action.WRITE_SKILLS}
    assert authors == {VersionVerb.SUBMIT}
    assert {row.action for verb, row in TRANSITIONS.items() if verb not in authors} == {
        Action.REVIEW_SKILLS
    }


def test_every_combination_outside_the_table_is_a_wrong_state() -> None:
    for verb, facts in COMBINATIONS:
        is_wrong = find_refusal(verb, facts) is Refusal.WRONG_STATE
        assert is_wrong == (facts.state is not TRANSITIONS[verb].before), (verb, facts)


def test_no_combination_approves_own_work_that_two_must_see() -> None:
    for verb, facts in COMBINATIONS:
        if verb is VersionVerb.APPROVE and facts.mode is ReviewMode.TWO and facts.is_author:
            assert find_refusal(verb, facts) is not None


def test_no_combination_approves_without_a_scan() -> None:
    for verb, facts in COMBINATIONS:
        if verb is VersionVerb.APPROVE and not facts.is_scanned:
            assert find_refusal(verb, facts) is not None


@pytest.mark.parametrize("mode", [ReviewMode.OFF, ReviewMode.ONE])
def test_author_may_approve_unless_two_people_are_required(mode: ReviewMode) -> None:
    facts = ReviewFacts(VersionState.IN_REVIEW, mode, is_author=True)
    assert find_refusal(VersionVerb.APPROVE, facts) is None


def test_returning_and_yanking_need_a_comment() -> None:
    needing = {
        verb for verb, facts in COMBINATIONS if find_refusal(verb, facts) is Refusal.COMMENT_MISSING
    }
    assert needing == {VersionVerb.RETURN, VersionVerb.YANK}


def test_new_versions_are_approved_only_without_review() -> None:
    states = [initial_state(mode) for mode in ReviewMode]
    assert states == ["approved", "draft", "draft"]


def test_newest_approved_version_replaces_a_yanked_one() -> None:
    assert choose_current([1, 3, 2]) == 3
    assert choose_current([]) is None
