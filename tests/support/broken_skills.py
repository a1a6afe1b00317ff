"""Fifty skills, each broken in a different way, with the expected finding."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.skill.finding import Code

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import TypeAlias

    SkillBuilder: TypeAlias = "Callable[[Path], None]"

FIELDS = b"name: %s\ndescription: Reads files.\n"


@dataclass(frozen=True, slots=True)
class BrokenSkill:
    """Broken skill: folder name, expected finding code, and builder."""

    folder: str
    code: Code
    build: SkillBuilder

    def make(self, root: Path) -> None:
        """Create the folder below `root`."""
        path = root / self.folder
        path.mkdir()
        self.build(path)


def _write_file(content: bytes, file: str = "SKILL.md") -> SkillBuilder:
    def build(folder: Path) -> None:
        (folder / file).write_bytes(content)

    return build


def _with_frontmatter(yaml: bytes, body: bytes = b"# Steps\n") -> SkillBuilder:
    return _write_file(b"---\n" + yaml + b"---\n" + body)


def _with_extra_fields(folder: str, extra: bytes) -> SkillBuilder:
    """Write a valid SKILL.md plus these lines of frontmatter."""
    return _with_frontmatter(FIELDS % folder.encode() + extra)


def _with_name(name: str) -> SkillBuilder:
    return _with_frontmatter(FIELDS % name.encode())


def _leave_empty(_folder: Path) -> None:
    """Leave the folder empty."""


def _folder_as_file(folder: Path) -> None:
    (folder / "SKILL.md").mkdir()


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "SKILL.md")


def _link_out(folder: Path) -> None:
    outside = folder.parent.parent / "outside.md"
    outside.write_bytes(b"---\n" + FIELDS % b"link-out" + b"---\n")
    (folder / "SKILL.md").symlink_to(outside)


def _link_nowhere(folder: Path) -> None:
    (folder / "SKILL.md").symlink_to("missing.md")


def _folder_link(folder: Path) -> None:
    target = folder.parent.parent / "elsewhere"
    target.mkdir()
    folder.rmdir()
    folder.symlink_to(target, target_is_directory=True)


def _unreadable(folder: Path) -> None:
    file = folder / "SKILL.md"
    file.write_bytes(b"---\n" + FIELDS % b"unreadable" + b"---\n")
    file.chmod(0)


_BOMB = b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
_LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
_MANY = b"x:\n" + b"  - y\n" * 1100

BROKEN_SKILLS = (
    # The file.
    BrokenSkill("no-file", Code.NO_SKILL_MD, _leave_empty),
    BrokenSkill("another-file", Code.NO_SKILL_MD, _write_file(b"# Hello\n", "README.md")),
    BrokenSkill("folder-as-file", Code.NOT_A_FILE, _folder_as_file),
    BrokenSkill("pipe", Code.NOT_A_FILE, _pipe),
    BrokenSkill("link-out", Code.LINK_SKIPPED, _link_out),
    BrokenSkill("link-nowhere", Code.LINK_BROKEN, _link_nowhere),
    BrokenSkill("folder-link", Code.LINK_SKIPPED, _folder_link),
    BrokenSkill("unreadable", Code.UNREADABLE, _unreadable),
    BrokenSkill("two-mebibytes", Code.TOO_LARGE, _write_file(b"---\n" + b"x" * (2 << 20))),
    BrokenSkill(
        "case-variant",
        Code.CASE_VARIANT,
        _write_file(b"---\n" + FIELDS % b"case-variant" + b"---\n", "skill.md"),
    ),
    # Its bytes.
    BrokenSkill("empty", Code.NO_FRONTMATTER, _write_file(b"")),
    BrokenSkill("only-bom", Code.NO_FRONTMATTER, _write_file(b"\xef\xbb\xbf")),
    BrokenSkill("utf-16", Code.NOT_UTF8, _write_file("---\nname: utf-16\n---\n".encode("utf-16"))),
    BrokenSkill(
        "latin-1", Code.NOT_UTF8, _with_frontmatter(b"name: latin-1\ndescription: caf\xe9\n")
    ),
    BrokenSkill(
        "latin-1-body", Code.NOT_UTF8, _with_frontmatter(FIELDS % b"latin-1-body", b"# Caf\xe9\n")
    ),
    BrokenSkill("nul", Code.NUL_BYTE, _with_frontmatter(b"name: nul\ndescription: a\0b\n")),
    BrokenSkill("nul-body", Code.NUL_BYTE, _with_frontmatter(FIELDS % b"nul-body", b"# a\0b\n")),
    BrokenSkill("binary", Code.NUL_BYTE, _write_file(b"\x7fELF\x02\x01\x01\0\0\0")),
    BrokenSkill("lfs-pointer", Code.LFS_POINTER, _write_file(_LFS)),
    # The block.
    BrokenSkill("no-frontmatter", Code.NO_FRONTMATTER, _write_file(b"# Title\n\nText.\n")),
    BrokenSkill(
        "unclosed", Code.UNCLOSED_FRONTMATTER, _write_file(b"---\nname: unclosed\n\n# Hi\n")
    ),
    BrokenSkill(
        "four-hyphens", Code.UNCLOSED_FRONTMATTER, _write_file(b"---\nname: x\n----\nHi\n")
    ),
    BrokenSkill("empty-block", Code.NAME_MISSING, _with_frontmatter(b"")),
    BrokenSkill(
        "large-block",
        Code.FRONTMATTER_LARGE,
        _with_extra_fields("large-block", b"x: " + b"y" * 102400 + b"\n"),
    ),
    BrokenSkill("alias-bomb", Code.YAML_ALIAS, _with_extra_fields("alias-bomb", _BOMB)),
    BrokenSkill(
        "tag", Code.YAML_TAG, _with_extra_fields("tag", b"x: !!python/object:os.system y\n")
    ),
    BrokenSkill(
        "deep", Code.YAML_DEPTH, _with_extra_fields("deep", b"x: " + b"[" * 40 + b"]" * 40 + b"\n")
    ),
    BrokenSkill("many-values", Code.YAML_NODES, _with_extra_fields("many-values", _MANY)),
    BrokenSkill("a-list", Code.YAML_NOT_A_MAP, _with_frontmatter(b"- name: a-list\n")),
    BrokenSkill(
        "duplicate-key", Code.DUPLICATE_KEY, _with_extra_fields("duplicate-key", b"name: other\n")
    ),
    BrokenSkill(
        "colon", Code.YAML_REPAIRED, _with_frontmatter(b"name: colon\ndescription: Use: it\n")
    ),
    BrokenSkill(
        "open-quote", Code.YAML_REPAIRED, _with_frontmatter(b'name: open-quote\ndescription: "Go\n')
    ),
    BrokenSkill(
        "broken-flow",
        Code.YAML_REPAIRED,
        _with_extra_fields("broken-flow", b"allowed-tools: [a, b\n"),
    ),
    BrokenSkill("tabs", Code.YAML_REPAIRED, _with_extra_fields("tabs", b"metadata:\n\ta: b\n")),
    BrokenSkill("nonsense", Code.YAML_INVALID, _with_frontmatter(b"%%%\n@@@ ]\n")),
    BrokenSkill(
        "next-line",
        Code.ODD_LINE_BREAK,
        _with_frontmatter("name: next-line\ndescription: a\x85b\n".encode()),
    ),
    BrokenSkill(
        "escape",
        Code.CONTROL_CHARACTER,
        _with_frontmatter(b"name: escape\ndescription: \x1b[31m\n"),
    ),
    BrokenSkill(
        "escaped-escape",
        Code.CONTROL_CHARACTER,
        _with_frontmatter(b'name: escaped-escape\ndescription: "\\e[31m"\n'),
    ),
    # The fields.
    BrokenSkill(
        "list-name", Code.NAME_MISSING, _with_frontmatter(b"name: [a]\ndescription: Reads.\n")
    ),
    BrokenSkill(
        "null-name", Code.NAME_MISSING, _with_frontmatter(b"name: null\ndescription: Reads.\n")
    ),
    BrokenSkill("number-name", Code.NAME_NOT_FOLDER, _with_name("0123")),
    BrokenSkill(
        "key-case", Code.NAME_MISSING, _with_frontmatter(b"Name: key-case\ndescription: Reads.\n")
    ),
    BrokenSkill("long" * 17, Code.NAME_TOO_LONG, _with_name("long" * 17)),
    BrokenSkill("Upper", Code.NAME_UPPERCASE, _with_name("Upper")),
    BrokenSkill("under_score", Code.NAME_CHARACTERS, _with_name("under_score")),
    BrokenSkill("slash", Code.NAME_CHARACTERS, _with_name("../../slash")),
    BrokenSkill("-edge", Code.NAME_EDGE_HYPHEN, _with_name("-edge")),
    BrokenSkill("double--hyphen", Code.NAME_DOUBLE_HYPHEN, _with_name("double--hyphen")),
    BrokenSkill("not-the-folder", Code.NAME_NOT_FOLDER, _with_name("the-folder")),
    BrokenSkill(
        "no-description", Code.DESCRIPTION_MISSING, _with_frontmatter(b"name: no-description\n")
    ),
    BrokenSkill(
        "blank-description",
        Code.DESCRIPTION_MISSING,
        _with_frontmatter(b"name: blank-description\ndescription: '  '\n"),
    ),
    BrokenSkill(
        "long-description",
        Code.DESCRIPTION_TOO_LONG,
        _with_frontmatter(b"name: long-description\ndescription: " + b"x" * 1025 + b"\n"),
    ),
    BrokenSkill(
        "long-needs",
        Code.COMPATIBILITY_TOO_LONG,
        _with_extra_fields("long-needs", b"compatibility: " + b"x" * 501 + b"\n"),
    ),
    BrokenSkill(
        "empty-needs",
        Code.COMPATIBILITY_EMPTY,
        _with_extra_fields("empty-needs", b"compatibility: ''\n"),
    ),
    BrokenSkill(
        "metadata-list",
        Code.METADATA_NOT_A_MAP,
        _with_extra_fields("metadata-list", b"metadata: [a]\n"),
    ),
    BrokenSkill(
        "metadata-map",
        Code.METADATA_NOT_TEXT,
        _with_extra_fields("metadata-map", b"metadata:\n  a: [b]\n"),
    ),
)
