"""Conversations in memory: how many there are, how long they stay, how many answer at once."""

from typing import cast

import pytest

from skillhall._internal.agents.chat import conversations
from skillhall._internal.agents.chat.chat import Chat
from skillhall._internal.agents.chat.conversations import Conversation, Conversations, Turn
from skillhall.errors import Busy, TooLarge

NO_CHAT = cast("Chat", None)  # nothing is asked of it here


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def begun(kept: Conversations) -> Conversation:
    one = Conversation("default", "a:b", NO_CHAT)
    kept.begin_turn(one, "Hello.")
    return one


def ended(kept: Conversations) -> Conversation:
    one = begun(kept)
    kept.finish_turn(one)
    return one


def test_a_conversation_is_found_until_nobody_used_it_for_an_hour() -> None:
    clock = Clock()
    kept = Conversations(clock)
    one = ended(kept)
    clock.now = conversations.LIFETIME
    assert kept.find(one.id) is one
    clock.now += 1
    assert kept.find(one.id) is None


def test_the_oldest_goes_when_there_are_too_many() -> None:
    kept = Conversations()
    every = [ended(kept) for _ in range(conversations.MAX_CONVERSATIONS + 1)]
    assert len(kept) == conversations.MAX_CONVERSATIONS
    assert kept.find(every[0].id) is None
    assert kept.find(every[-1].id) is every[-1]


def test_so_many_answers_are_on_their_way_at_once() -> None:
    kept = Conversations()
    every = [begun(kept) for _ in range(conversations.MAX_RUNNING_REPLIES)]
    with pytest.raises(Busy, match="4 answers are on their way"):
        begun(kept)
    kept.finish_turn(every[0])
    begun(kept)


def test_a_long_message_and_a_long_conversation_are_refused() -> None:
    kept = Conversations()
    one = Conversation("default", "a:b", NO_CHAT)
    with pytest.raises(TooLarge):
        kept.begin_turn(one, "x" * (conversations.MAX_MESSAGE_LENGTH + 1))
    one.turns = [Turn("x")] * conversations.MAX_TURNS
    with pytest.raises(Busy, match="has 100 messages"):
        kept.begin_turn(one, "One more.")


def test_a_conversation_that_was_ended_is_gone() -> None:
    kept = Conversations()
    one = ended(kept)
    kept.remove(one.id)
    assert kept.find(one.id) is None
