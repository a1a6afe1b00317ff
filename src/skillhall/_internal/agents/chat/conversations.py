"""Conversations that a server holds for people: in memory, so many and so long."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillhall._internal.agents.chat.events import Done, FileRead, SkillLoaded, ToolFailed
from skillhall._internal.agents.chat.reply_thread import ReplyThread
from skillhall.errors import Busy, ModelUnavailable, SkillhallError, TooLarge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from skillhall._internal.agents.chat.chat import Chat
    from skillhall._internal.agents.chat.events import ChatEvent, ToolEvent

MAX_MESSAGE_LENGTH = 32_000  # characters
MAX_TURNS = 100  # of one conversation, each of which the model reads again
MAX_CONVERSATIONS = 64
MAX_RUNNING_REPLIES = 4  # answers that are on their way at once
LIFETIME = 3600.0  # seconds after the last message


@dataclass(slots=True)
class Turn:
    """A message, and what came of it."""

    message: str
    tool_events: list[ToolEvent] = field(default_factory=list)
    done: Done | None = None
    error: SkillhallError | None = None

    def add_event(self, event: ChatEvent) -> None:
        """Note what happened next."""
        if isinstance(event, SkillLoaded | FileRead | ToolFailed):
            self.tool_events.append(event)
        elif isinstance(event, Done):
            self.done = event


@dataclass(slots=True)
class Conversation:
    """One conversation: who talks, and every turn so far."""

    agent: str
    model: str
    chat: Chat
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    turns: list[Turn] = field(default_factory=list)
    is_busy: bool = False
    last_used: float = 0.0


@dataclass(slots=True)
class Conversations:
    """All of them; safe to use from several threads."""

    clock: Callable[[], float] = time.monotonic
    _by_id: OrderedDict[str, Conversation] = field(default_factory=OrderedDict)
    _running: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_id)

    def find(self, identity: str) -> Conversation | None:
        """The conversation of that id, if it is still there."""
        with self._lock:
            self._evict()
            return self._by_id.get(identity)

    def remove(self, identity: str) -> None:
        """Forget one; an answer that is on its way comes to its end."""
        with self._lock:
            self._by_id.pop(identity, None)

    def begin_turn(self, conversation: Conversation, message: str) -> Turn:
        """Reserve the next turn; it is `answered` then. Raises: Busy, TooLarge."""
        if len(message) > MAX_MESSAGE_LENGTH:
            raise TooLarge("message", MAX_MESSAGE_LENGTH, "characters")
        with self._lock:
            _check_limits(conversation, self._running)
            conversation.is_busy = True
            conversation.last_used = self.clock()
            self._running += 1
            self._by_id[conversation.id] = conversation
            self._by_id.move_to_end(conversation.id)
            self._evict()
        return Turn(message)

    async def stream_reply(
        self, conversation: Conversation, turn: Turn
    ) -> AsyncIterator[ChatEvent]:
        """What happens until the turn is over; a failure is its last word.

        Whoever stops listening stops the answer, and the turn is as if it had never been.
        """
        thread = ReplyThread(
            conversation.chat, turn.message, lambda: self.finish_turn(conversation)
        )
        try:
            async for event in thread.events():
                turn.add_event(event)
                yield event
        except SkillhallError as error:
            turn.error = error
        finally:
            thread.stop()
        if turn.done is None and turn.error is None:
            turn.error = ModelUnavailable(conversation.model, "it gave no answer")
        conversation.turns.append(turn)

    def finish_turn(self, conversation: Conversation) -> None:
        """The turn that was begun is over; the conversation can go on."""
        with self._lock:
            conversation.is_busy = False
            conversation.last_used = self.clock()
            self._running -= 1

    def _evict(self) -> None:
        """Let go of what nobody used for long, and of the oldest while there are too many."""
        until = self.clock() - LIFETIME
        old = [key for key, one in self._by_id.items() if one.last_used < until and not one.is_busy]
        for key in old:
            del self._by_id[key]
        while len(self._by_id) > MAX_CONVERSATIONS:
            self._by_id.popitem(last=False)


def _check_limits(conversation: Conversation, running: int) -> None:
    if conversation.is_busy:
        raise Busy("an answer is on its way", "wait until it is whole, or stop it")
    if running >= MAX_RUNNING_REPLIES:
        raise Busy(f"{running} answers are on their way, for others too", "try again in a while")
    if len(conversation.turns) >= MAX_TURNS:
        raise Busy(f"the conversation has {MAX_TURNS} messages", "begin a new one")
