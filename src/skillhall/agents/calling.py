"""What a tool for agents is, whichever framework or protocol calls it, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class Answer(NamedTuple):
    """What a tool says, and whether it could not do what it was asked."""

    content: str | Mapping[str, object]
    is_error: bool = False
    code: str = ""  # the class of the error, where the tool knows it


class Tool(Protocol):
    """What a framework needs to know of a tool. No call raises, whatever it is given."""

    @property
    def name(self) -> str:
        """What the model calls it."""

    @property
    def description(self) -> str:
        """What it does and when to call it."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON Schema of its arguments."""

    def answer(self, arguments: object) -> Answer:
        """The answer, and whether it is an error."""

    def __call__(self, arguments: object) -> str | Mapping[str, object]:
        """What the model sees."""
