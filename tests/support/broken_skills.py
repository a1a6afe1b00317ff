"""Fifty skills, each broken in its own way, and the finding that names it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.skill.finding import Code

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import TypeAlias

    Build: TypeAlias = "Callable[[Path], None]"

FIELDS = b"name: %s\ndescription: Reads files.\n"


@dataclass(frozen=True, slots=True)
class BrokenSkill:
    """A folder's name, the code of the finding it must give, and how it is made."""

    folder: str
    code: Code
    build: Build

    def make(self, root: Path) -> None:
        """Make the folder below `root`."""
        place = root / self.folder
        place.mkdir()
        self.build(place)


def _data(content: bytes, file: str = "SKILL.md") -> Build:
    """A SKILL.md of these bytes."""

    def build(place: Path) -> None:
        (place / file).write_bytes(content)

    return build


def _front(yaml: bytes, body: bytes = b"# Steps\n") -> Build:
    """A SKILL.md with this frontmatter."""
    return _data(b"---\n" + yaml + b"---\n" + body)


def _with(folder: str, more: bytes) -> Build:
    """A SKILL.md that is fine but for these lines of frontmatter."""
    return _front(FIELDS % folder.encode() + more)


def _named(name: str) -> Build:
    """A SKILL.md that is fine but for its name."""
    return _front(FIELDS % name.encode())


def _nothing(_place: Path) -> None:
    """An empty folder."""


def _folder_as_file(place: Path) -> None:
    (place / "SKILL.md").mkdir()


def _pipe(place: Path) -> None:
    os.mkfifo(place / "SKILL.md")


def _link_out(place: Path) -> None:
    outside = place.parent.parent / "outside.md"
    outside.write_bytes(b"---\n" + FIELDS % b"link-out" + b"---\n")
    (place / "SKILL.md").symlink_to(outside)


def _link_nowhere(place: Path) -> None:
    (place / "SKILL.md").symlink_to("missing.md")


def _folder_link(place: Path) -> None:
    target = place.parent.parent / "elsewhere"
    target.mkdir()
    place.rmdir()
    place.symlink_to(target, target_is_directory=True)


def _unreadable(place: Path) -> None:
    file = place / "SKILL.md"
    file.write_bytes(b"---\n" + FIELDS % b"unreadable" + b"---\n")
    file.chmod(0)


_BOMB = b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
_LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
_MANY = b"x:\n" + b"  - y\n" * 1100

BROKEN_SKILLS = (
    # The file.
    BrokenSkill("no-file", Code.NO_SKILL_MD, _nothing),
    BrokenSkill("another-file", Code.NO_SKILL_MD, _data(b"# Hello\n", "README.md")),
    BrokenSkill("folder-as-file", Code.NOT_A_FILE, _folder_as_file),
    BrokenSkill("pipe", Code.NOT_A_FILE, _pipe),
    BrokenSkill("link-out", Code.LINK_SKIPPED, _link_out),
    BrokenSkill("link-nowhere", Code.LINK_BROKEN, _link_nowhere),
    BrokenSkill("folder-link", Code.LINK_SKIPPED, _folder_link),
    BrokenSkill("unreadable", Code.UNREADABLE, _unreadable),
    BrokenSkill("two-mebibytes", Code.TOO_LARGE, _data(b"---\n" + b"x" * (2 << 20))),
    BrokenSkill(
        "case-variant",
        Code.CASE_VARIANT,
        _data(b"---\n" + FIELDS % b"case-variant" + b"---\n", "skill.md"),
    ),
    # Its bytes.
    BrokenSkill("empty", Code.NO_FRONTMATTER, _data(b"")),
    BrokenSkill("only-bom", Code.NO_FRONTMATTER, _data(b"\xef\xbb\xbf")),
    BrokenSkill("utf-16", Code.NOT_UTF8, _data("---\nname: utf-16\n---\n".encode("utf-16"))),
    BrokenSkill("latin-1", Code.NOT_UTF8, _front(b"name: latin-1\ndescription: caf\xe9\n")),
    BrokenSkill("latin-1-body", Code.NOT_UTF8, _front(FIELDS % b"latin-1-body", b"# Caf\xe9\n")),
    BrokenSkill("nul", Code.NUL_BYTE, _front(b"name: nul\ndescription: a\0b\n")),
    BrokenSkill("nul-body", Code.NUL_BYTE, _front(FIELDS % b"nul-body", b"# a\0b\n")),
    BrokenSkill("binary", Code.NUL_BYTE, _data(b"\x7fELF\x02\x01\x01\0\0\0")),
    BrokenSkill("lfs-pointer", Code.LFS_POINTER, _data(_LFS)),
    # The block.
    BrokenSkill("no-frontmatter", Code.NO_FRONTMATTER, _data(b"# Title\n\nText.\n")),
    BrokenSkill("unclosed", Code.UNCLOSED_FRONTMATTER, _data(b"---\nname: unclosed\n\n# Hi\n")),
    BrokenSkill("four-hyphens", Code.UNCLOSED_FRONTMATTER, _data(b"---\nname: x\n----\nHi\n")),
    BrokenSkill("empty-block", Code.NAME_MISSING, _front(b"")),
    BrokenSkill(
        "large-block", Code.FRONTMATTER_LARGE, _with("large-block", b"x: " + b"y" * 102400 + b"\n")
    ),
    BrokenSkill("alias-bomb", Code.YAML_ALIAS, _with("alias-bomb", _BOMB)),
    BrokenSkill("tag", Code.YAML_TAG, _with("tag", b"x: !!python/object:os.system y\n")),
    BrokenSkill("deep", Code.YAML_DEPTH, _with("deep", b"x: " + b"[" * 40 + b"]" * 40 + b"\n")),
    BrokenSkill("many-values", Code.YAML_NODES, _with("many-values", _MANY)),
    BrokenSkill("a-list", Code.YAML_NOT_A_MAP, _front(b"- name: a-list\n")),
    BrokenSkill("duplicate-key", Code.DUPLICATE_KEY, _with("duplicate-key", b"name: other\n")),
    BrokenSkill("colon", Code.YAML_REPAIRED, _front(b"name: colon\ndescription: Use: it\n")),
    BrokenSkill("open-quote", Code.YAML_REPAIRED, _front(b'name: open-quote\ndescription: "Go\n')),
    BrokenSkill("broken-flow", Code.YAML_REPAIRED, _with("broken-flow", b"allowed-tools: [a, b\n")),
    BrokenSkill("tabs", Code.YAML_REPAIRED, _with("tabs", b"metadata:\n\ta: b\n")),
    BrokenSkill("nonsense", Code.YAML_INVALID, _front(b"%%%\n@@@ ]\n")),
    BrokenSkill(
        "next-line", Code.ODD_LINE_BREAK, _front("name: next-line\ndescription: a\x85b\n".encode())
    ),
    BrokenSkill("escape", Code.CONTROL_CHARACTER, _front(b"name: escape\ndescription: \x1b[31m\n")),
    BrokenSkill(
        "escaped-escape",
        Code.CONTROL_CHARACTER,
        _front(b'name: escaped-escape\ndescription: "\\e[31m"\n'),
    ),
    # The fields.
    BrokenSkill("list-name", Code.NAME_MISSING, _front(b"name: [a]\ndescription: Reads.\n")),
    BrokenSkill("null-name", Code.NAME_MISSING, _front(b"name: null\ndescription: Reads.\n")),
    BrokenSkill("number-name", Code.NAME_NOT_FOLDER, _named("0123")),
    BrokenSkill("key-case", Code.NAME_MISSING, _front(b"Name: key-case\ndescription: Reads.\n")),
    BrokenSkill("long" * 17, Code.NAME_TOO_LONG, _named("long" * 17)),
    BrokenSkill("Upper", Code.NAME_UPPERCASE, _named("Upper")),
    BrokenSkill("under_score", Code.NAME_CHARACTERS, _named("under_score")),
    BrokenSkill("slash", Code.NAME_CHARACTERS, _named("../../slash")),
    BrokenSkill("-edge", Code.NAME_EDGE_HYPHEN, _named("-edge")),
    BrokenSkill("double--hyphen", Code.NAME_DOUBLE_HYPHEN, _named("double--hyphen")),
    BrokenSkill("not-the-folder", Code.NAME_NOT_FOLDER, _named("the-folder")),
    BrokenSkill("no-description", Code.DESCRIPTION_MISSING, _front(b"name: no-description\n")),
    BrokenSkill(
        "blank-description",
        Code.DESCRIPTION_MISSING,
        _front(b"name: blank-description\ndescription: '  '\n"),
    ),
    BrokenSkill(
        "long-description",
        Code.DESCRIPTION_TOO_LONG,
        _front(b"name: long-description\ndescription: " + b"x" * 1025 + b"\n"),
    ),
    BrokenSkill(
        "long-needs",
        Code.COMPATIBILITY_TOO_LONG,
        _with("long-needs", b"compatibility: " + b"x" * 501 + b"\n"),
    ),
    BrokenSkill(
        "empty-needs", Code.COMPATIBILITY_EMPTY, _with("empty-needs", b"compatibility: ''\n")
    ),
    BrokenSkill(
        "metadata-list", Code.METADATA_NOT_A_MAP, _with("metadata-list", b"metadata: [a]\n")
    ),
    BrokenSkill(
        "metadata-map", Code.METADATA_NOT_TEXT, _with("metadata-map", b"metadata:\n  a: [b]\n")
    ),
)
