"""Values of a config file with their key paths, for precise error messages."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.config_file.line_numbers import KeyPath, find_json_line, find_toml_line
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_CONFIG_BYTES = 1024 * 1024
_MAX_DOTS = 100  # in a line, before its last value


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """The text of a config file and its format."""

    file: str
    text: str
    is_toml: bool

    def find_line(self, path: KeyPath) -> int:
        """Return the line of the value at `path`."""
        return (find_toml_line if self.is_toml else find_json_line)(self.text, path)


def read_config_document(file: Path) -> ConfigNode:
    """Parse a config file: TOML if its name ends in `.toml`, else JSON.

    Raises: ConfigInvalid.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_CONFIG_BYTES + 1)  # one more byte shows that it is too large
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigInvalid(str(file), f"cannot be read: {reason.lower()}") from None
    return parse_config_document(str(file), data)


def parse_config_document(file: str, data: bytes) -> ConfigNode:
    """Parse the content of a config file, as `read_config_document` does.

    Raises: ConfigInvalid.
    """
    if len(data) > MAX_CONFIG_BYTES:
        raise ConfigInvalid(file, f"larger than {MAX_CONFIG_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except ValueError as error:
        raise ConfigInvalid(file, f"cannot be read: {str(error).lower()}") from None
    document = ConfigDocument(file, text, file.endswith(".toml"))
    if document.is_toml:
        _check_keys(document)
    try:
        value: object = (tomllib.loads if document.is_toml else json.loads)(text)
    except (ValueError, RecursionError) as error:
        name = "TOML" if document.is_toml else "JSON"
        raise ConfigInvalid(document.file, f"not valid {name}: {error}") from None
    return ConfigNode(value, (), document)


def _check_keys(document: ConfigDocument) -> None:
    """Reject very long dotted keys: `tomllib` takes minutes for one of 100,000 parts.

    Raises: ConfigInvalid.
    """
    for number, line in enumerate(document.text.split("\n"), 1):
        before_value = line if line.lstrip().startswith("[") else line.rpartition("=")[0]
        if before_value.count(".") > _MAX_DOTS:
            raise ConfigInvalid(document.file, "not valid TOML: the key is too long", line=number)


@dataclass(frozen=True, slots=True)
class ConfigNode:
    """A value of the document and its key path.

    The methods that return a value raise ConfigInvalid if it has the wrong type.
    """

    value: object
    path: KeyPath
    document: ConfigDocument

    @property
    def display_path(self) -> str:
        """The path as users write it: `agents[0].skills[1].root`."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return "".join(steps).removeprefix(".")

    def build_error(self, problem: str, hint: str = "") -> ConfigInvalid:
        """Return an error with the line of this value."""
        line = self.document.find_line(self.path)
        return ConfigInvalid(self.document.file, problem, hint, line=line)

    def build_requirement_error(self, requirement: str, hint: str = "") -> ConfigInvalid:
        """Return an error that says what the value must be."""
        subject = repr(self.display_path) if self.path else "the document"
        return self.build_error(f"{subject} must {requirement}", hint)

    def child(self, name: str) -> ConfigNode:
        """Return the member `name`; its value is `None` if it is missing."""
        if not isinstance(self.value, dict):
            raise self.build_requirement_error("be an object")
        return ConfigNode(self.value.get(name), (*self.path, name), self.document)

    def child_or_alias(self, name: str, alias: str) -> ConfigNode:
        """Return the member `name`, or `alias` if only that is set."""
        first, second = self.child(name), self.child(alias)
        return second if first.value is None and second.value is not None else first

    def reject_unknown_keys(self, known: Sequence[str]) -> None:
        """Reject unknown keys, since a typo would otherwise be ignored silently.

        Raises: ConfigInvalid.
        """
        for name in self.value if isinstance(self.value, dict) else ():
            if name not in known:
                child = self.child(name)
                problem = f"unknown key {child.display_path!r}"
                raise child.build_error(problem, f"known keys: {', '.join(known)}")

    def require(self) -> ConfigNode:
        """Return the node itself if it has a value. Raises: ConfigInvalid."""
        if self.value is None:
            raise self.build_requirement_error("be set")
        return self

    def as_list(self) -> list[ConfigNode]:
        """Return the entries of a list; an empty list if it is missing."""
        values = [] if self.value is None else self.value
        if not isinstance(values, list):
            raise self.build_requirement_error("be a list")
        return [ConfigNode(v, (*self.path, i), self.document) for i, v in enumerate(values)]

    def as_string(self) -> str:
        """Return the string; "" if it is missing."""
        value = "" if self.value is None else self.value
        if not isinstance(value, str):
            raise self.build_requirement_error("be a string")
        return value

    def as_bool(self) -> bool:
        """Return the boolean; false if it is missing."""
        value = False if self.value is None else self.value
        if not isinstance(value, bool):
            raise self.build_requirement_error("be true or false")
        return value

    def as_strings(self) -> tuple[str, ...] | None:
        """Return the strings of a list; `None` if it is missing, `()` if it is empty."""
        if self.value is None:
            return None
        if not isinstance(self.value, list) or not all(isinstance(v, str) for v in self.value):
            raise self.build_requirement_error("be a list of strings")
        return tuple(self.value)

    def as_positive_int(self) -> int | None:
        """Return the positive integer; `None` if it is missing."""
        value = self.value
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.build_requirement_error("be a positive integer")
        return value
