"""Moves the fragments of `changes` into the changelog."""

import re
from collections.abc import Mapping
from pathlib import Path

KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")
_UNRELEASED = "## [Unreleased]\n"
_SECTION = re.compile(r"^### (\w+)\n", re.MULTILINE)


class FragmentInvalid(Exception):
    """A fragment has no known kind in its name, or is empty."""


def read_fragments(folder: Path) -> dict[Path, tuple[str, str]]:
    """Return the kind and the text of each fragment. Raises: FragmentInvalid."""
    fragments = {}
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        kind = path.name.removesuffix(".md").rpartition(".")[2]
        text = " ".join(path.read_text(encoding="utf-8").split())
        if kind not in KINDS or not text:
            raise FragmentInvalid(f"{path.name}: name it <slug>.<{'|'.join(KINDS)}>.md")
        fragments[path] = kind, text
    return fragments


def release_changelog(
    text: str, fragments: Mapping[Path, tuple[str, str]], version: str, day: str
) -> str:
    """Return the changelog with the fragments and unreleased entries as a version."""
    head, marker, rest = text.partition(_UNRELEASED)
    if not marker:
        raise FragmentInvalid(f"the changelog has no line {_UNRELEASED.strip()!r}")
    unreleased, next_version, older = rest.partition("\n## [")
    parts = _SECTION.split(unreleased)
    sections = {
        name.lower(): body.strip("\n") for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    for kind, entry in fragments.values():
        sections[kind] = "\n".join(filter(None, (sections.get(kind), f"- {entry}")))
    entries = [f"### {kind.capitalize()}\n\n{sections[kind]}" for kind in KINDS if kind in sections]
    new = "\n\n".join([f"## [{version}] - {day}", *entries])
    return f"{head}{marker}\n{new}\n{next_version}{older}"
