"""Events of a reply."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class TextDelta(NamedTuple):
    """The next part of the reply."""

    text: str


class SkillLoaded(NamedTuple):
    """A skill was loaded."""

    skill: str
    tokens: int
    by_user: bool = False  # called as /name by the user, not by the model


class FileRead(NamedTuple):
    """The model read a file."""

    skill: str  # "" if it is a file of the run directory
    path: str
    tokens: int


class ToolFailed(NamedTuple):
    """A tool returned an error, which the model reads."""

    tool: str
    message: str


class Done(NamedTuple):
    """The complete reply and its usage, as counted by the provider."""

    text: str
    requests: int
    input_tokens: int
    output_tokens: int


ToolEvent: TypeAlias = SkillLoaded | FileRead | ToolFailed
ChatEvent: TypeAlias = TextDelta | ToolEvent | Done
