"""Facts about a skill as a package: each kind once, counted, with the first few files named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.skill.risks.excerpt import escaped, shortened
from skillhall._internal.skill.risks.lines import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.parsed import Frontmatter

_NAMED = 3  # files that a finding names
_NAME_SHOWN = 40  # characters of each
_PROGRAM_HEADS = (
    b"\x7fELF",
    b"MZ\x90\x00",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\x00asm",
)
_PROGRAMS = words(".exe .dll .so .dylib .msi .scr .com .jar .class .wasm .pyc .node .app .dmg")
_ARCHIVE_HEADS = (
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"BZh",
    b"\xfd7zXZ",
)
_ARCHIVES = words(".zip .tar .gz .tgz .bz2 .xz .7z .rar .zst .whl .skill .iso .cab")
# Documents that are zip files inside.
_DOCUMENTS = words(
    ".docx .xlsx .pptx .docm .xlsm .pptm .dotx .xltx .potx .odt .ods .odp .epub .jar .svgz"
)
SCRIPTS = words(
    ".sh .bash .zsh .fish .py .js .mjs .cjs .ts .rb .pl .php .lua .ps1 .psm1 .bat .cmd .vbs"
)
_LFS_HEAD = b"version https://git-lfs.github.com/spec/"
_EVERY_TOOL = frozenset(
    {"*", "bash", "bash(*)", "bash(**)", "bash(:*)", "bash(*:*)", "shell", "shell(*)"}
)


def check_package(
    bundle: Bundle, heads: Mapping[str, bytes], front: Frontmatter
) -> Iterator[Finding]:
    """Facts about the files, whose first bytes are `heads`, and about what the skill asks for."""
    found: dict[Code, list[str]] = {}
    for path, file in bundle.files.items():
        for code in _kinds(path, heads.get(path, b"")):
            found.setdefault(code, []).append(path)
        if file.executable:
            found.setdefault(Code.EXECUTE_BITS, []).append(path)
    dropped = [one.path for one in bundle.findings if is_dropped_link(one)]
    if dropped:
        found[Code.LINKS_DROPPED] = dropped
    for code, paths in found.items():
        yield Finding(code, f"{_WORDED[code]}: {named(paths)}")
    yield from _check_frontmatter(front)


_WORDED = {
    Code.HAS_EXECUTABLES: "compiled programs",
    Code.HAS_ARCHIVES: "archives, not looked into",
    Code.HAS_SCRIPTS: "scripts",
    Code.EXECUTE_BITS: "files marked as executable",
    Code.LINKS_DROPPED: "links that were left out",
    Code.LFS_FILES: "Git LFS pointers without their bytes",
}


def named(paths: Sequence[str]) -> str:
    """The first few paths, and how many more there are."""
    first = ", ".join(shortened(escaped(path), _NAME_SHOWN) for path in paths[:_NAMED])
    left = len(paths) - _NAMED
    return f"{first} and {left} more" if left > 0 else first


def _kinds(path: str, head: bytes) -> Iterator[Code]:
    name = path.lower()
    if head.startswith(_PROGRAM_HEADS) or name.endswith(_PROGRAMS):
        yield Code.HAS_EXECUTABLES
    elif name.endswith(_ARCHIVES) or (
        head.startswith(_ARCHIVE_HEADS) and not name.endswith(_DOCUMENTS)
    ):
        yield Code.HAS_ARCHIVES
    elif head.startswith(b"#!") or name.endswith(SCRIPTS):
        yield Code.HAS_SCRIPTS
    if head.startswith(_LFS_HEAD) and not is_skill_md(path):
        yield Code.LFS_FILES


def is_dropped_link(found: Finding) -> bool:
    """Whether a finding about the listing of the files says that a link is none of them."""
    return found.code is Code.FILE_LEFT_OUT and found.message.endswith("it is a link")


def _check_frontmatter(front: Frontmatter) -> Iterator[Finding]:
    hooks = front.fields.get("hooks")
    if hooks:
        events = named([*hooks]) if isinstance(hooks, dict) else "hooks"
        yield Finding(Code.HOOKS_FIELD, f"the frontmatter names hooks: {events}")
    broad = [tool for tool in front.allowed_tools if tool.lower() in _EVERY_TOOL]
    if broad:
        yield Finding(Code.BROAD_TOOLS, f"tools without bounds: {named(broad)}")
