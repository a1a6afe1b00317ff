"""Conversations in memory: number, expiry and concurrent replies."""

from typing import cast

import pytest

from skillhall._internal.agents.chat import conversations
from skillhall._internal.agents.chat.chat import Chat
from skillhall._internal.agents.chat.conversations import Conversation, Conversations, Turn
from skillhall.errors import Busy, TooLarge

NO_CHAT = cast("Chat", None)  # never called in these tests


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def begin(registry: Conversations) -> Conversation:
    conversation = Conversation("default", "a:b", NO_CHAT)
    registry.begin_turn(conversation, "Hello.")
    return conversation


def finish(registry: Conversations) -> Conversation:
    conversation = begin(registry)
    registry.finish_turn(conversation)
    return conversation


def test_conversation_expires_after_an_hour_without_use() -> None:
    clock = Clock()
    registry = Conversations(clock)
    conversation = finish(registry)
    clock.now = conversations.LIFETIME
    assert registry.find(conversation.id) is conversation
    clock.now += 1
    assert registry.find(conversation.id) is None


def test_oldest_conversation_is_evicted_at_the_limit() -> None:
    registry = Conversations()
    started = [finish(registry) for _ in range(conversations.MAX_CONVERSATIONS + 1)]
    assert len(registry) == conversations.MAX_CONVERSATIONS
    assert registry.find(started[0].id) is None
    assert registry.find(started[-1].id) is started[-1]


def test_concurrent_replies_are_limited() -> None:
    registry = Conversations()
    started = [begin(registry) for _ in range(conversations.MAX_RUNNING_REPLIES)]
    with pytest.raises(Busy, match=r"too many replies in progress \(4\)"):
        begin(registry)
    registry.finish_turn(started[0])
    begin(registry)


def test_long_messages_and_conversations_are_rejected() -> None:
    registry = Conversations()
    conversation = Conversation("default", "a:b", NO_CHAT)
    with pytest.raises(TooLarge):
        registry.begin_turn(conversation, "x" * (conversations.MAX_MESSAGE_LENGTH + 1))
    conversation.turns = [Turn("x")] * conversations.MAX_TURNS
    with pytest.raises(Busy, match="has reached 100 messages"):
        registry.begin_turn(conversation, "One more.")


def test_removed_conversation_is_not_found() -> None:
    registry = Conversations()
    conversation = finish(registry)
    registry.remove(conversation.id)
    assert registry.find(conversation.id) is None
