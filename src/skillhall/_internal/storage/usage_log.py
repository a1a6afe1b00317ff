"""The usage log: which skill was offered, loaded or read by which agent. Names only, no content.

One JSON object a line, appended; when the file is full it becomes the older one of two.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.fs.write import WritableFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

Event: TypeAlias = Literal["offered", "loaded", "read"]

FOLDER, CURRENT, OLDER = "usage", "usage.jsonl", "usage.1.jsonl"
MAX_LOG = 4 * 1024 * 1024  # bytes of one of the two files
MAX_LINE = 1024 * 1024  # bytes; an agent with more skills than that names the first ones
_EVENTS: tuple[Event, ...] = ("offered", "loaded", "read")
_FILE, _FOLDER = 0o600, 0o700


class Usage(NamedTuple):
    """One thing that happened to skills."""

    at: str  # UTC, as ISO 8601 writes it
    agent: str
    event: Event
    skills: tuple[str, ...]
    tokens: int = 0  # that the model was given by it


class UsageLog:
    """The log below a data folder. It never fails its writer: what cannot be noted is not."""

    def __init__(self, data_directory: str) -> None:
        self.directory = os.path.join(data_directory, FOLDER)

    def note(self, usage: Usage) -> None:
        """Append one line; several processes may do so at once."""
        with suppress(OSError):
            os.makedirs(self.directory, _FOLDER, exist_ok=True)
            with WritableFolder(self.directory) as folder, folder.locked():
                self._make_room()
                self._append(_encoded(usage))

    def read(self) -> Iterator[Usage]:
        """Everything that is noted, oldest first; a line that is none of ours is passed over."""
        for name in (OLDER, CURRENT):
            try:
                with open(os.path.join(self.directory, name), "rb") as file:
                    lines = file.read(MAX_LOG + MAX_LINE).split(b"\n")
            except OSError:
                continue
            yield from filter(None, map(_decoded, lines))

    def _make_room(self) -> None:
        current = os.path.join(self.directory, CURRENT)
        with suppress(FileNotFoundError):
            if os.stat(current).st_size >= MAX_LOG:
                os.replace(current, os.path.join(self.directory, OLDER))

    def _append(self, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(os.path.join(self.directory, CURRENT), flags, _FILE)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)


def _encoded(usage: Usage) -> bytes:
    skills = list(usage.skills)
    while (
        len(line := json.dumps(usage._replace(skills=())._asdict() | {"skills": skills})) > MAX_LINE
    ):
        del skills[len(skills) // 2 :]
    return line.encode() + b"\n"


def _decoded(line: bytes) -> Usage | None:
    try:
        found = json.loads(line)
        at, agent, event, skills = (found[key] for key in ("at", "agent", "event", "skills"))
        tokens = found.get("tokens", 0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if event not in _EVENTS or not isinstance(skills, list) or not isinstance(tokens, int):
        return None
    return Usage(str(at), str(agent), event, tuple(map(str, skills)), tokens)
