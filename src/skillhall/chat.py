"""Chat with a model that uses skills, as a stream of events.

Needs the `pydantic-ai` extra.

```python
from skillhall import Skills
from skillhall.chat import Chat, TextDelta

chat = Chat(Skills.load("skills"), "openai-chat:gpt-5")


async def answer(message: str) -> None:
    async for event in chat.send(message):
        if isinstance(event, TextDelta):
            print(event.text, end="")
```
"""

from skillhall._internal.agents.chat.chat import Chat
from skillhall._internal.agents.chat.events import (
    Done,
    FileRead,
    SkillLoaded,
    TextDelta,
    ToolFailed,
)
from skillhall._public_path import show_public_path

__all__ = ["Chat", "Done", "FileRead", "SkillLoaded", "TextDelta", "ToolFailed"]

show_public_path(__name__)
