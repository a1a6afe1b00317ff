"""Events of a reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """The next part of the reply.

    >>> TextDelta(text="Done")
    TextDelta(text='Done')
    """

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillLoaded:
    """A skill was loaded.

    >>> SkillLoaded(skill="pdf", tokens=320).by_user
    False
    """

    skill: str
    tokens: int
    by_user: bool = False  # called as /name by the user, not by the model


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """The model read a file.

    >>> FileRead(skill="pdf", path="forms.md", tokens=12).path
    'forms.md'
    """

    skill: str  # "" if it was read with ReadFile
    path: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailed:
    """A tool returned an error, which the model reads.

    >>> ToolFailed(tool="load_skill", message="there is no such skill").tool
    'load_skill'
    """

    tool: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The complete reply and its usage, as counted by the provider.

    >>> done = Done(text="Hello", requests=1, input_tokens=900, output_tokens=3)
    >>> done.input_tokens + done.output_tokens
    903
    """

    text: str
    requests: int
    input_tokens: int
    output_tokens: int


ToolEvent: TypeAlias = SkillLoaded | FileRead | ToolFailed
ChatEvent: TypeAlias = TextDelta | ToolEvent | Done
