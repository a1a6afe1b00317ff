"""Facts about the files of a bundle: one finding per kind, with a few names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import LFS_SIGNATURE, is_skill_md
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.skill.risks.excerpt import escape_invisible, truncate
from skillhall._internal.skill.risks.rule_engine import split_words

_MAX_NAMES = 3  # in one finding
_MAX_NAME_LENGTH = 40  # characters
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
# Documents in zip or gzip format.
_DOCUMENT_EXTENSIONS = split_words(
    ".docx .xlsx .pptx .docm .xlsm .pptm .dotx .xltx .potx .odt .ods .odp .epub .jar .svgz"
)
SCRIPT_EXTENSIONS = split_words(
    ".sh .bash .zsh .fish .py .js .mjs .cjs .ts .rb .pl .php .lua .ps1 .psm1 .bat .cmd .vbs"
)
_UNRESTRICTED_TOOLS = frozenset(
    {"*", "bash", "bash(*)", "bash(**)", "bash(:*)", "bash(*:*)", "shell", "shell(*)"}
)


def check_bundle(
    bundle: Bundle, heads: Mapping[str, bytes], front: Frontmatter
) -> Iterator[Finding]:
    """Check the files, given their first bytes in `heads`, and the frontmatter."""
    paths_by_code: dict[Code, list[str]] = {}
    for path, file in bundle.files.items():
        for code in _classify_file(path, heads.get(path, b"")):
            paths_by_code.setdefault(code, []).append(path)
        if file.executable:
            paths_by_code.setdefault(Code.EXECUTE_BITS, []).append(path)
    links = [finding.path for finding in bundle.findings if is_dropped_link(finding)]
    if links:
        paths_by_code[Code.LINKS_DROPPED] = links
    for code, paths in paths_by_code.items():
        yield Finding(code, f"{_DESCRIPTIONS[code]}: {format_names(paths)}")
    if hooks := front.fields.get("hooks"):
        events = format_names([*hooks]) if isinstance(hooks, dict) else "hooks"
        yield Finding(Code.HOOKS_FIELD, f"the frontmatter defines hooks: {events}")
    if broad := [tool for tool in front.allowed_tools if tool.lower() in _UNRESTRICTED_TOOLS]:
        yield Finding(Code.BROAD_TOOLS, f"unrestricted tools: {format_names(broad)}")


_DESCRIPTIONS = {
    Code.HAS_EXECUTABLES: "compiled programs",
    Code.HAS_ARCHIVES: "archives, not scanned",
    Code.HAS_SCRIPTS: "scripts",
    Code.EXECUTE_BITS: "executable files",
    Code.LINKS_DROPPED: "skipped links",
    Code.LFS_FILES: "Git LFS pointers without content",
}


def format_names(paths: Sequence[str]) -> str:
    """Format the first few paths and the number of the others."""
    names = [truncate(escape_invisible(path), _MAX_NAME_LENGTH) for path in paths[:_MAX_NAMES]]
    more = len(paths) - _MAX_NAMES
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


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
    if head.startswith(LFS_SIGNATURE) and not is_skill_md(path):
        yield Code.LFS_FILES


def is_dropped_link(finding: Finding) -> bool:
    """Whether a finding is about a link that the source left out of the bundle."""
    # The folder and repository sources end the message of such a finding with these words.
    return finding.code is Code.FILE_LEFT_OUT and finding.message.endswith("it is a link")
