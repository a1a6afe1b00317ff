"""Which files an agent may read and which are published, judged by their names alone."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from skillhall._internal.policy.scan_rules import is_volume_entry
from skillhall._internal.skill.bundle import fold_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.skill.bundle import Bundle

DEFAULT_EXTENSIONS = (".md", ".cs", ".py", ".txt", ".json", ".yml", ".yaml")
AGENTS_FOLDER = ".agents"  # the one hidden folder that is meant for agents

# Settings, locks and databases of Skillhall itself.
_SKILLHALL_FILES = re.compile(r"skillhall(?:\.toml|-lock\.json|.*\.db.*)", re.DOTALL)
_EXTENSION = re.compile(r"\.[^\s./\\]+")
# Windows also knows `.git` as `GIT~1`.
_SHORT_NAME = re.compile(r"~[0-9]")


def normalize_extensions(extensions: str | Iterable[str]) -> tuple[str, ...]:
    """The extensions in lower case, each with its dot and once; a text is one of them.

    Raises: ValueError for what no file's last extension can be.
    """
    found = []
    for text in (extensions,) if isinstance(extensions, str) else extensions:
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


def is_dotfile(name: str) -> bool:
    """Whether one name of a path is that of a dot file."""
    return name.startswith(".")


def is_publishable(path: str) -> bool:
    """Whether a file of a skill may leave this machine: no part of its path is hidden."""
    return not any(map(is_dotfile, path.split("/")))


def remove_hidden_files(bundle: Bundle) -> Bundle:
    """The bundle without its hidden files."""
    files = {path: file for path, file in bundle.files.items() if is_publishable(path)}
    return replace(bundle, files=files)


def is_private_path(parts: Sequence[str]) -> bool:
    """Whether the path goes to or through what no agent may read.

    That is every hidden entry but `.agents` at the top and the folders in which Kubernetes keeps
    the files of a volume, and Skillhall's own files.
    """
    names = [fold_name(part) for part in parts]
    if names[0] == AGENTS_FOLDER:
        names = names[1:]
    return any(map(_is_private_name, names))


def _is_private_name(name: str) -> bool:
    if is_dotfile(name):
        return not is_volume_entry(name)
    return bool(_SKILLHALL_FILES.fullmatch(name) or _SHORT_NAME.search(name))
