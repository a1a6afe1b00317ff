"""Tests for actors."""

from skillhall._internal.policy.access.actor import Actor, Via


def test_an_actor_with_a_token_is_named_after_owner_and_token() -> None:
    assert Actor("dev1", "ci", Via.REST).name == "dev1/ci"


def test_an_actor_without_a_token_is_named_after_the_user() -> None:
    assert Actor("dev1", via=Via.WEB).name == "dev1"
