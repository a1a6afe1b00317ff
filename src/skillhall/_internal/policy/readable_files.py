"""Which files agents may read and which are published, decided by path only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from skillhall._internal.policy.folder_walk_rules import is_volume_entry
from skillhall._internal.skill.bundle import Bundle, fold_name

DEFAULT_EXTENSIONS = (".md", ".cs", ".py", ".txt", ".json", ".yml", ".yaml")
AGENTS_FOLDER = ".agents"  # the one hidden folder that is meant for agents

# Settings, lock files and databases of Skillhall.
_SKILLHALL_FILES = re.compile(r"skillhall(?:\.toml|-lock\.json|.*\.db.*)", re.DOTALL)
_EXTENSION = re.compile(r"\.[^\s./\\]+")
# Windows has short names: `GIT~1` is `.git`.
_SHORT_NAME = re.compile(r"~[0-9]")


def normalize_extensions(extensions: str | Iterable[str]) -> tuple[str, ...]:
    """Return unique lowercase extensions with a dot; a string is one extension.

    Raises: ValueError if one is not an extension.
    """
    normalized = []
    for text in (extensions,) if isinstance(extensions, str) else extensions:
        extension = f".{text.strip().lower().removeprefix('.')}"
        if not _EXTENSION.fullmatch(extension):
            raise ValueError(f"{text!r} is not a file extension such as .md")
        normalized.append(extension)
    return tuple(dict.fromkeys(normalized))


def has_extension(path: str, extensions: Iterable[str]) -> bool:
    """Whether `path` has one of these extensions, ignoring case."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return dot > 0 and name[dot:].lower() in {extension.lower() for extension in extensions}


def is_dotfile(name: str) -> bool:
    """Whether a segment of a path starts with a dot."""
    return name.startswith(".")


def is_publishable(path: str) -> bool:
    """Whether a file may be published: no segment of its path is hidden."""
    return not (path.startswith(".") or "/." in path)


def remove_hidden_files(bundle: Bundle) -> Bundle:
    """Return the bundle without hidden files, and without findings about them."""
    files = {path: file for path, file in bundle.files.items() if is_publishable(path)}
    findings = tuple([finding for finding in bundle.findings if is_publishable(finding.path)])
    return Bundle(bundle.folder, files, findings, bundle.path)


def is_private_path(parts: Sequence[str]) -> bool:
    """Whether agents may not read the path.

    Skillhall's own files, hidden entries and Windows short names are private. The exceptions are
    `.agents` at the root and the folders of a Kubernetes volume.
    """
    names = [fold_name(part) for part in parts]
    if names[0] == AGENTS_FOLDER:
        names = names[1:]
    return any(
        not is_volume_entry(name)
        if is_dotfile(name)
        else _SKILLHALL_FILES.fullmatch(name) or _SHORT_NAME.search(name)
        for name in names
    )
