"""The conversations of a server, in memory, limited by number and age."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillhall._internal.agents.chat.events import Done, TextDelta
from skillhall._internal.agents.chat.reply_thread import REPLY_TIMEOUT, ReplyThread
from skillhall._internal.background import PoolStatus
from skillhall.errors import Busy, ModelUnavailable, SkillhallError, TooLarge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from skillhall._internal.agents.chat.chat import Chat
    from skillhall._internal.agents.chat.events import ChatEvent, ToolEvent

MAX_MESSAGE_LENGTH = 32_000  # characters
MAX_TURNS = 100  # per conversation: the model reads all of them again each time
MAX_CONVERSATIONS = 64
MAX_RUNNING_REPLIES = 4
LIFETIME = 3600.0  # seconds after the last message


@dataclass(slots=True)
class Turn:
    """A message and its reply."""

    message: str
    tool_events: list[ToolEvent] = field(default_factory=list)
    done: Done | None = None
    error: SkillhallError | None = None
    partial_text: str = ""  # of a reply that is not complete
    is_stopped: bool = False


@dataclass(slots=True)
class Conversation:
    """A conversation with an agent and its turns."""

    agent: str
    model: str
    chat: Chat
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    turns: list[Turn] = field(default_factory=list)
    is_busy: bool = False
    last_used: float = 0.0


@dataclass(slots=True)
class Conversations:
    """All conversations of a server. Thread-safe."""

    clock: Callable[[], float] = time.monotonic
    _by_id: OrderedDict[str, Conversation] = field(default_factory=OrderedDict)
    _running: int = 0
    _rejected: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        """Return the number of conversations."""
        return len(self._by_id)

    @property
    def status(self) -> PoolStatus:
        """Numbers of running and rejected replies, for metrics.

        A stopped reply counts as running until its thread ends.
        """
        return PoolStatus("model", MAX_RUNNING_REPLIES, self._running, 0, self._rejected)

    def find(self, identity: str) -> Conversation | None:
        """Return the conversation with this id; `None` if it is missing or has expired."""
        with self._lock:
            self._evict()
            return self._by_id.get(identity)

    def remove(self, identity: str) -> None:
        """Remove a conversation. A running reply is not stopped."""
        with self._lock:
            self._by_id.pop(identity, None)

    def check_capacity(self) -> None:
        """Check that another reply may start, before preparing it. Raises: Busy."""
        with self._lock:
            self._check_capacity()

    def _check_capacity(self) -> None:
        if self._running >= MAX_RUNNING_REPLIES:
            self._rejected += 1
            problem = f"too many replies in progress ({self._running})"
            raise Busy(problem, "try again in a moment", "overloaded")

    def begin_turn(self, conversation: Conversation, message: str) -> Turn:
        """Reserve the next turn, for `stream_reply`. Raises: Busy, TooLarge."""
        if len(message) > MAX_MESSAGE_LENGTH:
            raise TooLarge("message", MAX_MESSAGE_LENGTH, "characters")
        with self._lock:
            if conversation.is_busy:
                raise Busy("a reply is in progress", "wait until it is complete, or stop it")
            self._check_capacity()
            if len(conversation.turns) >= MAX_TURNS:
                problem = f"the conversation has reached {MAX_TURNS} messages"
                raise Busy(problem, "start a new conversation")
            conversation.is_busy = True
            conversation.last_used = self.clock()
            self._running += 1
            self._by_id[conversation.id] = conversation
            self._by_id.move_to_end(conversation.id)
            self._evict()
        return Turn(message)

    async def stream_reply(
        self, conversation: Conversation, turn: Turn, max_seconds: float = REPLY_TIMEOUT
    ) -> AsyncIterator[ChatEvent]:
        """Yield the events of the reply; an error is stored in the turn.

        Closing the iterator stops the reply. The turn stays, with the part that has arrived.
        """
        thread = ReplyThread(
            conversation.chat, turn.message, max_seconds, lambda: self.finish_turn(conversation)
        )
        try:
            async for event in thread.events():
                if isinstance(event, Done):
                    turn.done = event
                elif isinstance(event, TextDelta):
                    turn.partial_text += event.text
                else:
                    turn.tool_events.append(event)
                yield event
        except SkillhallError as error:
            turn.error = error
        except (GeneratorExit, asyncio.CancelledError):
            turn.is_stopped = True
            conversation.turns.append(turn)
            raise
        finally:
            thread.stop()
        if turn.done is None and turn.error is None:
            turn.error = ModelUnavailable(conversation.model, "empty reply")
        conversation.turns.append(turn)

    def finish_turn(self, conversation: Conversation) -> None:
        """Release the reserved turn, so that the conversation can continue."""
        with self._lock:
            conversation.is_busy = False
            conversation.last_used = self.clock()
            self._running -= 1

    def _evict(self) -> None:
        """Remove expired conversations, then the oldest while there are too many."""
        expiry = self.clock() - LIFETIME
        for key, conversation in [*self._by_id.items()]:
            if conversation.last_used < expiry and not conversation.is_busy:
                del self._by_id[key]
        while len(self._by_id) > MAX_CONVERSATIONS:
            self._by_id.popitem(last=False)
