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


def test_conversation_expires_after_an_hour_without_use() -> None:
    clock = Clock()
    kept = Conversations(clock)
    one = ended(kept)
    clock.now = conversations.LIFETIME
    assert kept.find(one.id) is one
    clock.now += 1
    assert kept.find(one.id) is None


def test_oldest_conversation_is_evicted_at_the_limit() -> None:
    kept = Conversations()
    every = [ended(kept) for _ in range(conversations.MAX_CONVERSATIONS + 1)]
    assert len(kept) == conversations.MAX_CONVERSATIONS
    assert kept.find(every[0].id) is None
    assert kept.find(every[-1].id) is every[-1]


def test_concurrent_replies_are_limited() -> None:
    kept = Conversations()
    every = [begun(kept) for _ in range(conversations.MAX_RUNNING_REPLIES)]
    with pytest.raises(Busy, match=r"too many replies in progress \(4\)"):
        begun(kept)
    kept.finish_turn(every[0])
    begun(kept)


def test_long_messages_and_conversations_are_rejected() -> None:
    kept = Conversations()
    one = Conversation("default", "a:b", NO_CHAT)
    with pytest.raises(TooLarge):
        kept.begin_turn(one, "x" * (conversations.MAX_MESSAGE_LENGTH + 1))
    one.turns = [Turn("x")] * conversations.MAX_TURNS
    with pytest.raises(Busy, match="has reached 100 messages"):
        kept.begin_turn(one, "One more.")


def test_removed_conversation_is_not_found() -> None:
    kept = Conversations()
    one = ended(kept)
    kept.remove(one.id)
    assert kept.find(one.id) is None
