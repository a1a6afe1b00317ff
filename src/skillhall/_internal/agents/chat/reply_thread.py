"""A reply in its own thread and event loop.

Tools read files synchronously, which would block the event loop of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from typing import TYPE_CHECKING

from skillhall.errors import ModelUnavailable, SkillhallError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from skillhall._internal.agents.chat.chat import Chat
    from skillhall._internal.agents.chat.events import ChatEvent

REPLY_TIMEOUT = 600.0  # seconds for one message, including its tool calls
logger = logging.getLogger("skillhall.agents")


class ReplyThread:
    """One reply. Create it in the event loop that reads its events."""

    def __init__(
        self, chat: Chat, message: str, timeout: float, on_finished: Callable[[], None]
    ) -> None:
        """Start the thread, which calls `on_finished` when it ends."""
        self._timeout = timeout
        self._chat = chat
        self._message = message
        self._on_finished = on_finished
        self._reader_loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[ChatEvent | SkillhallError | None] = asyncio.Queue()
        self._lock = threading.Lock()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._is_stopped = False
        threading.Thread(target=self._run, name="chat", daemon=True).start()

    async def events(self) -> AsyncIterator[ChatEvent]:
        """Yield the events of the reply. Raises: SkillhallError."""
        while (event := await self._queue.get()) is not None:
            if isinstance(event, SkillhallError):
                raise event
            yield event

    def stop(self) -> None:
        """Cancel the reply."""
        with self._lock:
            self._is_stopped = True
            running = self._running
        if running is not None:
            loop, task = running
            with contextlib.suppress(RuntimeError):  # it has already ended
                loop.call_soon_threadsafe(task.cancel)

    def _run(self) -> None:
        try:
            with contextlib.suppress(asyncio.CancelledError):
                asyncio.run(self._stream_reply())
        except SkillhallError as error:
            self._send(error)
        except Exception:
            logger.exception("reply failed")
            self._send(self._build_error("internal error; see the log"))
        finally:
            self._on_finished()
            self._send(None)

    async def _stream_reply(self) -> None:
        task = asyncio.current_task()
        with self._lock:
            if self._is_stopped or task is None:
                return
            self._running = asyncio.get_running_loop(), task
        try:
            async with asyncio.timeout(self._timeout) as timeout:
                async for event in self._chat.send(self._message):
                    self._send(event)
        except TimeoutError:
            if not timeout.expired():  # raised by the chat itself
                raise
            raise self._build_error("the reply timed out") from None

    def _build_error(self, problem: str) -> ModelUnavailable:
        return ModelUnavailable(self._chat.model_name, problem, "try again with a simpler request")

    def _send(self, event: ChatEvent | SkillhallError | None) -> None:
        with contextlib.suppress(RuntimeError):  # the reader's loop has ended
            self._reader_loop.call_soon_threadsafe(self._queue.put_nowait, event)
