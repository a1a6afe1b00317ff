"""The tree of a commit: which of its files a skill gets, and what is noticed about the others.

However a repository is read, these rules decide: the same commit always gives the same bundles.
It is pure: listings come in, and later the bytes of the files that are wanted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, groupby, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, fold_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.sources.archive.source import (
    find_version_control_folder,
    is_macos_metadata,
)
from skillhall._internal.sources.folder.bundle_reader import (
    MAX_DEPTH,
    MAX_FILE_SIZE,
    MAX_FILES,
    MAX_TOTAL_SIZE,
)
from skillhall._internal.sources.repo_layout import find_enclosing_folder
from skillhall.errors import SourceNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.policy.scan_rules import ScanPolicy

MODE_LINK, MODE_SUBMODULE, MODE_FOLDER = "120000", "160000", "040000"
MODE_REGULAR, MODE_EXECUTABLE = "100644", "100755"
_FILE_MODES = frozenset(
    {MODE_REGULAR, "100664", MODE_EXECUTABLE}
)  # early versions of git wrote the second
_NON_FILE_REASONS = {
    MODE_LINK: ("it is a link", "copy the file instead"),
    MODE_SUBMODULE: ("it is another repository", "copy its files instead"),
}
MAX_LEVEL_FILES = 200_000  # as many as an archive of a repository may have
_MAX_NAME_BYTES = 255  # bytes; file systems hold no longer one
_UNKNOWN_MODE_REASON = ("it is not a regular file", "remove it")


class TreeEntry(NamedTuple):
    """A file, link or submodule of a commit."""

    path: str
    mode: str  # six octal digits
    id: str  # git's, of its content
    size: int | None = None  # bytes; not every listing tells

    @property
    def is_file(self) -> bool:
        """Whether it has bytes of its own."""
        return self.mode in _FILE_MODES


def searchable_paths(entries: Iterable[TreeEntry]) -> list[str]:
    """All paths but those of a SKILL.md that makes no skill: a link, or in an unsafe folder."""
    # The others are not judged yet: there may be very many, and few are in a skill that is wanted.
    return [
        entry.path for entry in entries if not _is_skill_md_entry(entry) or _can_make_skill(entry)
    ]


def _is_skill_md_entry(entry: TreeEntry) -> bool:
    return is_skill_md(entry.path.rpartition("/")[2])


def _can_make_skill(entry: TreeEntry) -> bool:
    is_ours = not is_macos_metadata(entry.path) and find_version_control_folder(entry.path) is None
    return is_ours and entry.is_file and _unsafe_path_reason(entry.path) is None


def _unsafe_path_reason(path: str) -> str | None:
    try:
        checked = RelativePath.parse(path)
    except UnsafePath as error:
        return error.reason
    if path != checked.text:
        return "it is not in its shortest form"
    is_long = any(len(part.encode()) > _MAX_NAME_BYTES for part in checked.parts)
    return "one of its names is too long for a file system" if is_long else None


@dataclass(slots=True)
class CommitSkill:
    """The files of one skill before their bytes are there."""

    folder: str  # in the repository; "" for its top
    entries: dict[str, TreeEntry] = field(default_factory=dict)  # by path in the skill, in order
    findings: list[Finding] = field(default_factory=list)
    _has_reported_limit: bool = False
    _reported_vcs_folders: set[str] = field(default_factory=set)  # folders of version control
    _known_paths: set[str] = field(default_factory=set)  # files and folders that are taken
    _folded_paths: dict[tuple[str, str], str] = field(
        default_factory=dict
    )  # places, as others see them

    def add(self, entry: TreeEntry) -> None:
        """Take a file in, or say why not; the order of calls is the order of files."""
        path = entry.path[len(self.folder) + 1 :] if self.folder else entry.path
        if is_macos_metadata(path) or self._is_rejected(path, entry) or self._is_at_file_limit():
            return
        self._check_collisions(path)
        self.entries[path] = entry

    def apply_size_limits(self, sizes: Mapping[str, int] = MappingProxyType({})) -> None:
        """Leave out what is too large; `sizes`, by id, are of entries that came without."""
        kept: dict[str, TreeEntry] = {}
        total = 0
        for path, entry in self.entries.items():
            size = sizes[entry.id] if entry.size is None else entry.size
            if size > MAX_FILE_SIZE:
                self._add_finding(
                    Code.FILE_TOO_LARGE, f"the file has more than {MAX_FILE_SIZE} bytes", path
                )
                continue
            total += size
            if total > MAX_TOTAL_SIZE:
                self._report_total_size(path)
                break
            kept[path] = entry._replace(size=size)
        self.entries = kept

    def build_bundle(self, contents: Mapping[str, bytes]) -> Bundle:
        """The bundle, with bytes by id."""
        files = {
            path: _build_skill_file(path, e, contents[e.id]) for path, e in self.entries.items()
        }
        return Bundle(self.folder, files, tuple(self.findings))

    def _is_rejected(self, path: str, entry: TreeEntry) -> bool:
        if (against := _unsafe_path_reason(path)) is not None:
            self._report_skipped(f"{path!a}: {against}", "", "rename it")
        elif (place := find_version_control_folder(path)) is not None:
            self._report_vcs_folder(place)
        elif not entry.is_file:
            why, hint = _NON_FILE_REASONS.get(entry.mode, _UNKNOWN_MODE_REASON)
            self._report_skipped(why, path, hint)
        elif path.count("/") > MAX_DEPTH:
            self._report_skipped(f"it lies deeper than {MAX_DEPTH} folders", path, "move it up")
        elif (above := find_enclosing_folder(path, self.entries)) is not None:
            self._report_skipped(f"{above!r} is a file, not its folder", path, "rename it")
        else:
            return False
        return True

    def _is_at_file_limit(self) -> bool:
        if len(self.entries) < MAX_FILES:
            return False
        if not self._has_reported_limit:
            self._has_reported_limit = True
            self._add_finding(Code.TOO_MANY_FILES, f"only the first {MAX_FILES} files are used", "")
        return True

    def _check_collisions(self, path: str) -> None:
        """Note what some systems take for something that stands beside it."""
        for above, place in pairwise(("", *accumulate(path.split("/"), "{}/{}".format))):
            if place in self._known_paths:
                continue
            self._known_paths.add(place)
            other = self._folded_paths.setdefault((above, fold_name(place)), place)
            if other != place:
                message = f"{other!r} and {place!r} are one name on some systems"
                self._add_finding(Code.CASE_COLLISION, message, place, "rename one of them")

    def _report_vcs_folder(self, folder: str) -> None:
        if folder not in self._reported_vcs_folders:
            self._reported_vcs_folders.add(folder)
            self._report_skipped("it belongs to version control", folder, "remove it")

    def _report_skipped(self, reason: str, path: str, hint: str) -> None:
        self._add_finding(
            Code.FILE_LEFT_OUT, f"left out of the skill's files: {reason}", path, hint
        )

    def _report_total_size(self, path: str) -> None:
        message = f"the skill's files have more than {MAX_TOTAL_SIZE} bytes; the rest is left out"
        self._add_finding(Code.FILE_TOO_LARGE, message, path)

    def _add_finding(self, code: Code, message: str, path: str, hint: str = "") -> None:
        self.findings.append(Finding(code, message, hint=hint, path=path))


def _build_skill_file(path: str, entry: TreeEntry, data: bytes) -> SkillFile:
    is_executable = entry.mode == MODE_EXECUTABLE
    return SkillFile(RelativePath.parse(path), len(data), is_executable, partial(bytes, data))


def collect_skills(entries: Iterable[TreeEntry], folders: Iterable[str]) -> list[CommitSkill]:
    """The skills in `folders`, in their order, each with its files in path order."""
    drafts = {folder: CommitSkill(folder) for folder in folders}
    for entry in sorted(entries, key=lambda entry: entry.path):
        folder = find_enclosing_folder(entry.path, drafts)
        if folder is not None:
            drafts[folder].add(entry)
    return list(drafts.values())


def collect_level(
    entries: Iterable[TreeEntry], path: str, policy: ScanPolicy, source_text: str
) -> tuple[list[CommitSkill], list[Finding]]:
    """What a scan of the one level below `path` reads: flat files, and each folder with a SKILL.md.

    `text` names the source. Raises: SourceNotFound if there is nothing at `path`, TooLarge.
    """
    prefix = f"{path}/" if path else ""
    below = sorted((e for e in entries if e.path.startswith(prefix)), key=lambda e: e.path)
    if path and not below:
        raise SourceNotFound(source_text, f"there is no folder {path!r} in the repository")
    flat, folders, findings = CommitSkill(path), dict[str, list[TreeEntry]](), list[Finding]()
    for name, group in groupby(below, key=lambda e: e.path[len(prefix) :].partition("/")[0]):
        inner, folder = list(group), f"{prefix}{name}"
        if policy.reason_to_skip(name) is not None:
            continue
        if inner[0].path == folder:
            if inner[0].mode == MODE_LINK:
                findings.append(_link_skipped_finding(name))
            elif name.endswith(".md") or not inner[0].is_file:
                flat.add(inner[0])
        elif (against := _unsafe_path_reason(name)) is not None:
            message = f"the folder {name!a} is left out: {against}"
            findings.append(Finding(Code.UNSAFE_PATH, message, hint="rename it"))
        elif any(entry.is_file and is_skill_md(entry.path[len(folder) + 1 :]) for entry in inner):
            folders[folder] = inner
        else:
            findings.append(_missing_skill_md_finding(name, folder, inner))
    count = len(flat.entries) + sum(min(len(inner), MAX_FILES) for inner in folders.values())
    if count > MAX_LEVEL_FILES:  # before each of them is looked at
        raise TooLarge(source_text, MAX_LEVEL_FILES, "files")
    drafts = [_collect_folder(folder, inner, policy) for folder, inner in folders.items()]
    return [flat, *drafts], findings


def _missing_skill_md_finding(name: str, folder: str, entries: Iterable[TreeEntry]) -> Finding:
    """Why the folder is no skill: it has no SKILL.md, or one that is a link."""
    for entry in entries:
        inner = entry.path[len(folder) + 1 :]
        if entry.mode == MODE_LINK and is_skill_md(inner):
            return _link_skipped_finding(f"{name}/{inner}")
    return Finding(Code.NO_SKILL_MD, "the folder holds no SKILL.md", hint="add one", path=name)


def _link_skipped_finding(path: str) -> Finding:
    if _unsafe_path_reason(path) is not None:  # a path that no response may repeat
        return Finding(Code.LINK_SKIPPED, f"{path!a}: links are not followed here")
    hint = "copy what it leads to instead"
    return Finding(Code.LINK_SKIPPED, "links are not followed here", hint=hint, path=path)


def build_level(
    skills: Sequence[CommitSkill], contents: Mapping[str, bytes]
) -> tuple[dict[str, bytes], list[Finding]]:
    """The files of what `draft_level` gave, by their paths below its path, and what was noticed."""
    files, findings = dict[str, bytes](), list[Finding]()
    for number, draft in enumerate(skills):
        top = f"{draft.folder.rpartition('/')[2]}/" if number else ""
        files |= {f"{top}{path}": contents[e.id] for path, e in draft.entries.items()}
        findings += [one._replace(path=f"{top}{one.path}".rstrip("/")) for one in draft.findings]
    return files, findings


def _collect_folder(folder: str, entries: Iterable[TreeEntry], policy: ScanPolicy) -> CommitSkill:
    draft = CommitSkill(folder)
    for entry in entries:
        names = entry.path[len(folder) + 1 :].split("/")
        if policy.include_hidden_files or not any(name.startswith(".") for name in names):
            draft.add(entry)
    return draft


def iterate_files(skills: Iterable[CommitSkill]) -> Iterator[TreeEntry]:
    """All files that are needed."""
    return (entry for draft in skills for entry in draft.entries.values())
