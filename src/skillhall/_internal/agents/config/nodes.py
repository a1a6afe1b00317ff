"""The values of a config file, each with the key that leads to it, for errors that name it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.agents.config.line_numbers import KeyPath, line_in_json, line_in_toml
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_CONFIG = 1024 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a config file, and whether it is TOML."""

    file: str
    text: str
    is_toml: bool

    def line_of(self, path: KeyPath) -> int:
        """The line that an error about the value at `path` names."""
        return (line_in_toml if self.is_toml else line_in_json)(self.text, path)


def read_document(file: Path) -> Node:
    """The whole of a config: TOML if its name ends in `.toml`, else JSON. Raises: ConfigInvalid."""
    document = Document(str(file), _read_text(file), file.suffix == ".toml")
    try:
        value: object = (tomllib.loads if document.is_toml else json.loads)(document.text)
    except (ValueError, RecursionError) as error:
        form = "TOML" if document.is_toml else "JSON"
        raise ConfigInvalid(document.file, f"it is not {form}: {error}") from None
    return Node(value, (), document)


def _read_text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_CONFIG + 1)
        if len(data) > MAX_CONFIG:
            raise ConfigInvalid(str(file), f"it is larger than {MAX_CONFIG} bytes")
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigInvalid(str(file), f"it cannot be read: {reason.lower()}") from None


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the document, and the keys that lead to it."""

    value: object
    path: KeyPath
    document: Document

    @property
    def key(self) -> str:
        """The path as people write it: `agents[0].skills[1].root`."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return "".join(steps).removeprefix(".")

    def wrong(self, problem: str, hint: str = "") -> ConfigInvalid:
        """The error that says what is wrong, and in which line."""
        line = self.document.line_of(self.path)
        return ConfigInvalid(self.document.file, problem, hint, line=line)

    def must(self, be: str, hint: str = "") -> ConfigInvalid:
        """The error that says what the value must be."""
        return self.wrong(f"{self.key or 'the document'} must {be}", hint)

    def child(self, name: str) -> Node:
        """The value below `name`; `None` if there is none."""
        if not isinstance(self.value, dict):
            raise self.must("be an object")
        return Node(self.value.get(name), (*self.path, name), self.document)

    def either(self, name: str, other: str) -> Node:
        """The value below `name`, or else below `other`."""
        first, second = self.child(name), self.child(other)
        return second if first.value is None and second.value is not None else first

    def only(self, known: Sequence[str]) -> None:
        """Refuse other names below this one: a misspelt one would be passed over unnoticed."""
        for name in self.value if isinstance(self.value, dict) else ():
            if name not in known:
                raise self.child(name).must("not be there", f"known keys: {', '.join(known)}")

    def required(self) -> Node:
        """The node itself, if it has a value."""
        if self.value is None:
            raise self.must("be given")
        return self

    def items(self) -> list[Node]:
        """The entries of a list; none if it is left out."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.must("be a list")
        return [Node(v, (*self.path, i), self.document) for i, v in enumerate(self.value)]

    def text(self) -> str:
        """The text; "" if it is left out."""
        if self.value is None:
            return ""
        if not isinstance(self.value, str):
            raise self.must("be text")
        return self.value

    def flag(self) -> bool:
        """The boolean; false if it is left out."""
        if self.value is None:
            return False
        if not isinstance(self.value, bool):
            raise self.must("be true or false")
        return self.value

    def texts(self) -> tuple[str, ...] | None:
        """The texts of a list; `None` if it is left out, which is not the same as empty."""
        if self.value is None:
            return None
        if not isinstance(self.value, list) or not all(isinstance(v, str) for v in self.value):
            raise self.must("be a list of text")
        return tuple(self.value)

    def count(self) -> int | None:
        """A whole number from 1 on; `None` if it is left out."""
        if self.value is None:
            return None
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 1:
            raise self.must("be a whole number from 1 on")
        return self.value
