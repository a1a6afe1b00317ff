"""Facts about a skill as a package: each kind once, counted, with the first few files named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.skill.risks.excerpt import escape_invisible, truncate
from skillhall._internal.skill.risks.lines import split_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.parsed import Frontmatter

_MAX_NAMES = 3  # files that a finding names
_MAX_NAME_LENGTH = 40  # characters of each
_PROGRAM_SIGNATURES = (
    b"\x7fELF",
    b"MZ\x90\x00",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\x00asm",
)
_PROGRAM_EXTENSIONS = split_words(
    ".exe .dll .so .dylib .msi .scr .com .jar .class .wasm .pyc .node .app .dmg"
)
_ARCHIVE_SIGNATURES = (
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"BZh",
    b"\xfd7zXZ",
)
_ARCHIVE_EXTENSIONS = split_words(".zip .tar .gz .tgz .bz2 .xz .7z .rar .zst .whl .skill .iso .cab")
# Documents that are zip files inside.
_DOCUMENT_EXTENSIONS = split_words(
    ".docx .xlsx .pptx .docm .xlsm .pptm .dotx .xltx .potx .odt .ods .odp .epub .jar .svgz"
)
SCRIPT_EXTENSIONS = split_words(
    ".sh .bash .zsh .fish .py .js .mjs .cjs .ts .rb .pl .php .lua .ps1 .psm1 .bat .cmd .vbs"
)
_LFS_SIGNATURE = b"version https://git-lfs.github.com/spec/"
_UNRESTRICTED_TOOLS = frozenset(
    {"*", "bash", "bash(*)", "bash(**)", "bash(:*)", "bash(*:*)", "shell", "shell(*)"}
)


def check_bundle(
    bundle: Bundle, heads: Mapping[str, bytes], front: Frontmatter
) -> Iterator[Finding]:
    """Facts about the files, whose first bytes are `heads`, and about what the skill asks for."""
    found: dict[Code, list[str]] = {}
    for path, file in bundle.files.items():
        for code in _classify_file(path, heads.get(path, b"")):
            found.setdefault(code, []).append(path)
        if file.executable:
            found.setdefault(Code.EXECUTE_BITS, []).append(path)
    dropped = [one.path for one in bundle.findings if is_dropped_link(one)]
    if dropped:
        found[Code.LINKS_DROPPED] = dropped
    for code, paths in found.items():
        yield Finding(code, f"{_DESCRIPTIONS[code]}: {format_names(paths)}")
    yield from _check_frontmatter(front)


_DESCRIPTIONS = {
    Code.HAS_EXECUTABLES: "compiled programs",
    Code.HAS_ARCHIVES: "archives, not looked into",
    Code.HAS_SCRIPTS: "scripts",
    Code.EXECUTE_BITS: "files marked as executable",
    Code.LINKS_DROPPED: "links that were left out",
    Code.LFS_FILES: "Git LFS pointers without their bytes",
}


def format_names(paths: Sequence[str]) -> str:
    """The first few paths, and how many more there are."""
    first = ", ".join(
        truncate(escape_invisible(path), _MAX_NAME_LENGTH) for path in paths[:_MAX_NAMES]
    )
    left = len(paths) - _MAX_NAMES
    return f"{first} and {left} more" if left > 0 else first


def _classify_file(path: str, head: bytes) -> Iterator[Code]:
    name = path.lower()
    if head.startswith(_PROGRAM_SIGNATURES) or name.endswith(_PROGRAM_EXTENSIONS):
        yield Code.HAS_EXECUTABLES
    elif name.endswith(_ARCHIVE_EXTENSIONS) or (
        head.startswith(_ARCHIVE_SIGNATURES) and not name.endswith(_DOCUMENT_EXTENSIONS)
    ):
        yield Code.HAS_ARCHIVES
    elif head.startswith(b"#!") or name.endswith(SCRIPT_EXTENSIONS):
        yield Code.HAS_SCRIPTS
    if head.startswith(_LFS_SIGNATURE) and not is_skill_md(path):
        yield Code.LFS_FILES


def is_dropped_link(finding: Finding) -> bool:
    """Whether a finding about the listing of the files says that a link is none of them."""
    return finding.code is Code.FILE_LEFT_OUT and finding.message.endswith("it is a link")


def _check_frontmatter(front: Frontmatter) -> Iterator[Finding]:
    hooks = front.fields.get("hooks")
    if hooks:
        events = format_names([*hooks]) if isinstance(hooks, dict) else "hooks"
        yield Finding(Code.HOOKS_FIELD, f"the frontmatter names hooks: {events}")
    broad = [tool for tool in front.allowed_tools if tool.lower() in _UNRESTRICTED_TOOLS]
    if broad:
        yield Finding(Code.BROAD_TOOLS, f"tools without bounds: {format_names(broad)}")
