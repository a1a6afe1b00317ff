"""Which files of a run directory an agent may read: judged by their names alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall.skill.bundle import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DEFAULT_EXTENSIONS = (".md", ".cs", ".py", ".txt", ".json", ".yml", ".yaml")
AGENTS_FOLDER = ".agents"  # the one hidden folder that is meant for agents

# Settings, locks and databases of Skillhall itself.
_OWN = re.compile(r"skillhall(?:\.toml|-lock\.json|.*\.db.*)", re.DOTALL)
_EXTENSION = re.compile(r"\.[^\s./\\]+")
# Windows also knows `.git` as `GIT~1`.
_SHORT_NAME = re.compile(r"~[0-9]")


def extension_list(given: str | Iterable[str]) -> tuple[str, ...]:
    """The extensions in lower case, each with its dot and once; a text is one of them.

    Raises: ValueError for what no file's last extension can be.
    """
    found = []
    for text in (given,) if isinstance(given, str) else given:
        extension = f".{text.strip().lower().removeprefix('.')}"
        if not _EXTENSION.fullmatch(extension):
            raise ValueError(f"{text!r} is not a file extension such as .md")
        found.append(extension)
    return tuple(dict.fromkeys(found))


def has_extension(path: str, extensions: Iterable[str]) -> bool:
    """Whether the last ending of `path` is one of these, in whatever case."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return dot > 0 and name[dot:].lower() in {extension.lower() for extension in extensions}


def is_private(parts: Sequence[str]) -> bool:
    """Whether the path goes to or through what no agent may read.

    That is every hidden entry but `.agents` at the top, and Skillhall's own files.
    """
    names = [folded(part) for part in parts]
    if names[0] == AGENTS_FOLDER:
        names = names[1:]
    return any(
        name.startswith(".") or _OWN.fullmatch(name) or _SHORT_NAME.search(name) for name in names
    )
