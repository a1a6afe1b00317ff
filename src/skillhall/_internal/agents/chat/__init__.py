"""Chat with an agent. Pydantic AI is imported only when used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillhall._internal.agents.chat.chat import Chat


INSTALL_COMMAND = "pip install 'skillhall[pydantic-ai]'"
_EXTRA_PACKAGES = frozenset({"pydantic_ai", "pydantic_core", "pydantic"})


def load_chat_class() -> type[Chat] | None:
    """Return the `Chat` class; `None` if its extra is not installed."""
    try:
        import pydantic_ai  # noqa: PLC0415 - takes a second

        from skillhall._internal.agents.chat.chat import Chat  # noqa: PLC0415 - the same
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA_PACKAGES:
            raise
        return None
    pydantic_ai.BANNER_ENABLED = False  # it would print to the terminal
    return Chat
