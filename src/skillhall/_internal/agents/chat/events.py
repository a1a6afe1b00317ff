"""What happens while an agent answers, as values that a page or a terminal can show."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class TextDelta(NamedTuple):
    """The next piece of the answer."""

    text: str


class SkillLoaded(NamedTuple):
    """The model was given a skill's instructions."""

    skill: str
    tokens: int
    by_user: bool = False  # called as /name, not by the model


class FileRead(NamedTuple):
    """The model was given a file."""

    skill: str  # "" if it is a file of the run directory
    path: str
    tokens: int


class ToolFailed(NamedTuple):
    """A tool answered with an error; the model reads it and goes on."""

    tool: str
    message: str


class Done(NamedTuple):
    """The whole answer, and what it cost by the provider's count."""

    text: str
    requests: int
    input_tokens: int
    output_tokens: int


ToolEvent: TypeAlias = SkillLoaded | FileRead | ToolFailed
ChatEvent: TypeAlias = TextDelta | ToolEvent | Done
