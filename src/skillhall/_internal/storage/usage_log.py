"""Usage log: which skills were offered to agents, loaded or read by them, or failed to load.

Each line is a JSON object with names but no contents. When the file is full, it is rotated and
replaces the previously rotated file.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.fs.write import WritableFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

UsageEvent: TypeAlias = Literal["offered", "loaded", "read", "failed"]

FOLDER, CURRENT_FILE, ROTATED_FILE = "usage", "usage.jsonl", "usage.1.jsonl"
MAX_LOG = 4 * 1024 * 1024  # bytes per file; there are two
MAX_LINE = 1024 * 1024  # bytes; longer lists of skills are cut
_EVENTS: tuple[UsageEvent, ...] = ("offered", "loaded", "read", "failed")
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700


class UsageRecord(NamedTuple):
    """Names of the skills that an agent was offered, loaded, read, or could not load or read."""

    at: str  # ISO 8601, UTC
    agent: str
    event: UsageEvent
    skills: tuple[str, ...]
    tokens: int = 0  # given to the model


class UsageLog:
    """Log below a data directory. Writing never fails; records may be lost instead."""

    def __init__(self, data_directory: str) -> None:
        self.directory = os.path.join(data_directory, FOLDER)

    def record(self, usage: UsageRecord) -> None:
        """Append one line. Several processes may do so at the same time."""
        with suppress(OSError):
            os.makedirs(self.directory, _FOLDER_MODE, exist_ok=True)
            with WritableFolder(self.directory) as folder, folder.lock():
                current = os.path.join(self.directory, CURRENT_FILE)
                with suppress(FileNotFoundError):
                    if os.stat(current).st_size >= MAX_LOG:
                        os.replace(current, os.path.join(self.directory, ROTATED_FILE))
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
                handle = os.open(current, flags, _FILE_MODE)
                try:
                    os.write(handle, _serialize_usage(usage))
                finally:
                    os.close(handle)

    def read(self) -> Iterator[UsageRecord]:
        """Iterate over all records, oldest first; invalid lines are skipped."""
        for name in (ROTATED_FILE, CURRENT_FILE):
            try:
                with open(os.path.join(self.directory, name), "rb") as file:
                    lines = file.read(MAX_LOG + MAX_LINE).split(b"\n")
            except OSError:
                continue
            yield from filter(None, map(_parse_usage, lines))


def _serialize_usage(usage: UsageRecord) -> bytes:
    skills = list(usage.skills)
    while (
        len(line := json.dumps(usage._replace(skills=())._asdict() | {"skills": skills})) > MAX_LINE
    ):
        del skills[len(skills) // 2 :]
    return line.encode() + b"\n"


def _parse_usage(line: bytes) -> UsageRecord | None:
    try:
        data = json.loads(line)
        at, agent, event, skills = (data[key] for key in ("at", "agent", "event", "skills"))
        tokens = data.get("tokens", 0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if event not in _EVENTS or not isinstance(skills, list) or not isinstance(tokens, int):
        return None
    return UsageRecord(str(at), str(agent), event, tuple(map(str, skills)), tokens)
