"""Writes a value as a YAML scalar that every parser reads the same way."""

from __future__ import annotations

import re

from skillhall._internal.skill.yaml.fast_reader import SimpleYamlResult, read_simple_yaml

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_SPECIAL = re.compile(
    r'[\\"\x00-\x1f\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufffe\uffff]'
)


def quote_scalar(text: str) -> str:
    """Return `text` as a double-quoted scalar on one line."""
    return f'"{_SPECIAL.sub(_escape, text)}"'


def format_scalar(text: str) -> str:
    """Return `text` as a plain scalar if that is unambiguous, else double-quoted."""
    result = read_simple_yaml(f"name: {text}\n")
    return text if result == SimpleYamlResult({"name": text}) else quote_scalar(text)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"
