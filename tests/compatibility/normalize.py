"""Placeholders for values that differ from run to run or may be reworded."""

import json
import re
from collections.abc import Mapping
from typing import Any

TEXT, TIME, ID, TAG, NUMBER = "<TEXT>", "<TIME>", "<ID>", "<TAG>", "<NUMBER>"

Owner = Mapping[str, Any]  # the object that contains a value
Keys = frozenset[str]

# Sentences that contracts quote. All other prose may be reworded.
_FIXED = re.compile(
    r"missing frontmatter"
    r"|missing required 'name' field"
    r"|No SKILL\.md found"
    r"|System skills are read-only"
    r"|Prompt not found: \S+"
    r"|Missing required arguments: .+"
    r"|\[[a-z_]+\]$"  # the code at the end of a tool's error
)
_PROSE_KEYS = {"message", "hint", "docs", "problem", "reason", "rule", "summary"}
_PROSE_LISTS = {"reasons", "notes", "problems"}
_OPAQUE = {"nextCursor": "<ID>", "position": "<POSITION>", "requestId": "<ID>"}
_BUILT_IN = {"describe-skill", "plan-skill", "review-skill", "split-skill"}

_PORT = re.compile(r"(127\.0\.0\.1|localhost):\d{2,5}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
_ID = re.compile(r"(?<![0-9A-Za-z:])(?:[0-9a-f]{32}|[0-9a-f]{16})(?![0-9A-Za-z])")
_ETAG = re.compile(r'(W/)?"(.*)"')


def prose(text: str) -> str:
    """Return the placeholder for text that may be reworded, with its fixed sentences."""
    if not text:
        return text
    fixed = {match.group() for match in _FIXED.finditer(text)}
    return f"<TEXT: {'; '.join(sorted(fixed))}>" if fixed else TEXT


def etag(value: str) -> str:
    """Return an ETag; a version number stays, a digest becomes a placeholder."""
    match = _ETAG.fullmatch(value)
    if match is None:
        return value
    weak, tag = match.group(1) or "", match.group(2)
    return f'{weak}"{tag if tag.isdigit() else TAG}"'


class Normalizer:
    """Replaces values of one run: folder, ports, times, ids and version.

    `names` maps values that the scenario knows by name, such as the id of a session, to the name.
    `prose_keys` are additional keys of texts and numbers that may change.
    """

    def __init__(self, root: str, version: str) -> None:
        self._root = root
        self._version = version
        self.names: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return text with placeholders."""
        text = text.replace(self._root, "<WORLD>")
        for value, name in self.names.items():
            text = text.replace(value, f"<{name}>")
        text = _PORT.sub(r"\1:<PORT>", text)
        text = _TIME.sub(TIME, text)
        return _ID.sub(ID, text)

    def value(self, value: Any, prose_keys: Keys = frozenset()) -> Any:  # noqa: ANN401 - JSON
        """Return JSON data with placeholders."""
        if isinstance(value, str):
            return "<VERSION>" if value == self._version else self.text(value)
        if isinstance(value, list):
            return [self.value(item, prose_keys) for item in value]
        if isinstance(value, dict):
            inner = prose_keys | {"text"} if value.get("isError") is True else prose_keys
            return {
                self.text(key): self._field(value, key, item, inner) for key, item in value.items()
            }
        return value

    def _field(self, owner: Owner, key: str, value: Any, prose_keys: Keys) -> Any:  # noqa: ANN401
        if isinstance(value, str):
            return self._string(owner, key, value, prose_keys)
        if isinstance(value, list) and key in _PROSE_LISTS:
            return [prose(item) if isinstance(item, str) else self.value(item) for item in value]
        if isinstance(value, int) and (key in prose_keys or _is_zip_size(owner, key)):
            return NUMBER
        return self.value(value, prose_keys)

    def _string(self, owner: Owner, key: str, value: str, prose_keys: Keys) -> Any:  # noqa: ANN401
        if key in prose_keys or _is_prose(owner, key):
            return prose(value)
        if key == "text" and value.startswith('{"'):
            return {"<JSON>": self.value(json.loads(value), prose_keys)}
        if key in _OPAQUE and value not in self.names:
            return _OPAQUE[key]
        if key == "digest" and owner.get("type") == "archive":
            return "<DIGEST>"  # the bytes of a zip file depend on the version of zlib
        return self.value(value)


def _is_prose(owner: Owner, key: str) -> bool:
    return (
        key in _PROSE_KEYS
        or (key == "description" and owner.get("name") in _BUILT_IN)
        or (key == "name" and owner.get("automatic") is True)  # of an automatic snapshot
    )


def _is_zip_size(owner: Owner, key: str) -> bool:
    return key == "bytes" and str(owner.get("path")).endswith(".zip")
