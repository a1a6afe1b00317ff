"""Selection of a skill's files from a commit's tree, with findings about the rest.

All readers of repositories share these rules, so that they build the same bundles for a commit.
There is no I/O: callers pass in listings, and later the content of selected files as `CommitFiles`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, groupby, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, fold_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.sources.folder.bundle_reader import (
    MAX_DEPTH,
    MAX_FILE_SIZE,
    MAX_FILES,
    MAX_TOTAL_SIZE,
)
from skillhall._internal.sources.repo_layout import (
    FileTree,
    RepositorySkills,
    find_enclosing_folder,
    find_skills,
    find_version_control_folder,
    is_macos_metadata,
)
from skillhall.errors import SourceNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.policy.folder_walk_rules import ScanPolicy

    # Returns the requested skills and findings for a commit's tree and a path in it.
    FileSelector: TypeAlias = Callable[
        [Sequence["TreeEntry"], str], tuple[list["CommitSkill"], list[Finding]]
    ]

MODE_LINK, MODE_SUBMODULE, MODE_FOLDER = "120000", "160000", "040000"
MODE_REGULAR, MODE_EXECUTABLE = "100644", "100755"
_FILE_MODES = frozenset({MODE_REGULAR, "100664", MODE_EXECUTABLE})  # 100664: early versions of git
_NON_FILE_REASONS = {
    MODE_LINK: ("it is a link", "copy the file instead"),
    MODE_SUBMODULE: ("it is a submodule", "copy its files instead"),
}
MAX_LEVEL_FILES = 200_000  # same as `REPOSITORY_LIMITS.entries` for archives
_MAX_NAME_BYTES = 255  # the limit of common file systems
_UNKNOWN_MODE_REASON = ("it is not a regular file", "remove it")


class TreeEntry(NamedTuple):
    """File, link or submodule in a commit."""

    path: str
    mode: str  # six octal digits
    id: str  # git's object id
    size: int | None = None  # bytes; some listings do not contain it

    @property
    def is_file(self) -> bool:
        """Whether the entry is a regular file."""
        return self.mode in _FILE_MODES


def searchable_paths(entries: Iterable[TreeEntry]) -> list[str]:
    """Return all paths except SKILL.md files that cannot be used, such as links."""
    # Other files are checked later: there may be many, and few belong to a requested skill.
    return [
        path
        for entry in entries
        if not is_skill_md((path := entry.path).rpartition("/")[2])
        or (
            entry.is_file
            and not is_macos_metadata(path)
            and find_version_control_folder(path) is None
            and _unsafe_path_reason(path) is None
        )
    ]


def _unsafe_path_reason(path: str) -> str | None:
    try:
        checked = RelativePath.parse(path)
    except UnsafePath as error:
        return error.reason
    if path != checked.text:
        return "it is not normalized"
    is_long = any(len(part.encode()) > _MAX_NAME_BYTES for part in checked.parts)
    return "a file or folder name in it is too long for common file systems" if is_long else None


@dataclass(slots=True)
class CommitSkill:
    """Files of one skill, before their content is fetched."""

    folder: str  # path in the repository; "" is its root
    entries: dict[str, TreeEntry] = field(default_factory=dict)  # by path in the skill, in order
    findings: list[Finding] = field(default_factory=list)
    _has_reported_limit: bool = False
    _reported_vcs_folders: set[str] = field(default_factory=set)
    _known_paths: set[str] = field(default_factory=set)  # files and their folders
    # Paths by parent folder and by their form on case-insensitive file systems.
    _folded_paths: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, entry: TreeEntry) -> None:
        """Add a file, or a finding that says why it is left out.

        macOS metadata is ignored without a finding. Files stay in the order of the calls.
        """
        path = entry.path[len(self.folder) + 1 :] if self.folder else entry.path
        if is_macos_metadata(path) or self._is_rejected(path, entry):
            return
        if len(self.entries) < MAX_FILES:
            self._check_collisions(path)
            self.entries[path] = entry
        elif not self._has_reported_limit:
            self._has_reported_limit = True
            self._add_finding(Code.TOO_MANY_FILES, f"only the first {MAX_FILES} files are used", "")

    def apply_size_limits(self, sizes: Mapping[str, int] = MappingProxyType({})) -> None:
        """Drop files beyond the size limits, with findings.

        `sizes` has the sizes by object id, for entries without one.
        """
        accepted: dict[str, TreeEntry] = {}
        total = 0
        for path, entry in self.entries.items():
            size = sizes[entry.id] if entry.size is None else entry.size
            if size > MAX_FILE_SIZE:
                message = f"the file has more than {MAX_FILE_SIZE} bytes"
                self._add_finding(Code.FILE_TOO_LARGE, message, path)
                continue
            total += size
            if total > MAX_TOTAL_SIZE:
                message = f"the skill's files have more than {MAX_TOTAL_SIZE} bytes"
                self._add_finding(Code.FILE_TOO_LARGE, f"{message}; the rest is left out", path)
                break
            accepted[path] = entry._replace(size=size)
        self.entries = accepted

    def build_bundle(self, contents: Mapping[str, bytes]) -> Bundle:
        """Build the bundle; `contents` has the files' bytes by object id."""
        files = {}
        for path, entry in self.entries.items():
            data, is_executable = contents[entry.id], entry.mode == MODE_EXECUTABLE
            read = partial(bytes, data)
            files[path] = SkillFile(RelativePath.parse(path), len(data), is_executable, read)
        return Bundle(self.folder, files, tuple(self.findings))

    def _is_rejected(self, path: str, entry: TreeEntry) -> bool:
        if (reason := _unsafe_path_reason(path)) is not None:
            self._report_skipped(f"{path!a}: {reason}", "", "rename it")
        elif (folder := find_version_control_folder(path)) is not None:
            if folder not in self._reported_vcs_folders:
                self._reported_vcs_folders.add(folder)
                self._report_skipped("it belongs to version control", folder, "remove it")
        elif not entry.is_file:
            reason, hint = _NON_FILE_REASONS.get(entry.mode, _UNKNOWN_MODE_REASON)
            self._report_skipped(reason, path, hint)
        elif path.count("/") > MAX_DEPTH:
            self._report_skipped(
                f"it is nested deeper than {MAX_DEPTH} folders", path, "move it up"
            )
        elif (parent := find_enclosing_folder(path, self.entries)) is not None:
            self._report_skipped(f"{parent!r} is a file, not a folder", path, "rename it")
        else:
            return False
        return True

    def _check_collisions(self, path: str) -> None:
        """Report names that collide with a sibling on case-insensitive file systems."""
        for parent, current in pairwise(("", *accumulate(path.split("/"), "{}/{}".format))):
            if current in self._known_paths:
                continue
            self._known_paths.add(current)
            other = self._folded_paths.setdefault((parent, fold_name(current)), current)
            if other != current:
                message = f"{other!r} and {current!r} are the same name on some systems"
                self._add_finding(Code.CASE_COLLISION, message, current, "rename one of them")

    def _report_skipped(self, reason: str, path: str, hint: str) -> None:
        self._add_finding(
            Code.FILE_LEFT_OUT, f"left out of the skill's files: {reason}", path, hint
        )

    def _add_finding(self, code: Code, message: str, path: str, hint: str = "") -> None:
        self.findings.append(Finding(code, message, hint=hint, path=path))


class CommitFiles(NamedTuple):
    """Skills selected from a commit, with the files' bytes by object id."""

    skills: list[CommitSkill]
    findings: list[Finding]
    contents: Mapping[str, bytes]
    commit: str
    ref: str  # of the interpretation of the reference that exists
    checked_at: float = 0.0  # Unix time when the ref had this commit
    stale: str = ""  # why a cached version is served, if one is

    def to_skills(self) -> RepositorySkills:
        """Return the skills that `select_skills` selected."""
        bundles = tuple(skill.build_bundle(self.contents) for skill in self.skills)
        return RepositorySkills(bundles, self.commit, self.ref, self.stale)

    def to_level(self) -> FileTree:
        """Return the files that `collect_level` selected."""
        files, findings = dict[str, bytes](), list(self.findings)
        for index, skill in enumerate(self.skills):
            # The first item has the flat files, which are in no subfolder.
            prefix = f"{skill.folder.rpartition('/')[2]}/" if index else ""
            files |= {f"{prefix}{path}": self.contents[e.id] for path, e in skill.entries.items()}
            findings += [f._replace(path=f"{prefix}{f.path}".rstrip("/")) for f in skill.findings]
        return FileTree(files, self.commit, tuple(findings), self.stale, self.checked_at)


def select_skills(
    entries: Sequence[TreeEntry], path: str, *, source_text: str
) -> tuple[list[CommitSkill], list[Finding]]:
    """Select the skills at `path`, without any findings. Raises: as `find_skills`."""
    folders = find_skills(searchable_paths(entries), path, source_text)
    return collect_skills(entries, folders), []


def collect_skills(entries: Iterable[TreeEntry], folders: Iterable[str]) -> list[CommitSkill]:
    """Return the skills in `folders`, in this order, with their files in path order."""
    skills = {folder: CommitSkill(folder) for folder in folders}
    for entry in sorted(entries, key=lambda entry: entry.path):
        folder = find_enclosing_folder(entry.path, skills)
        if folder is not None:
            skills[folder].add(entry)
    return list(skills.values())


def collect_level(
    entries: Iterable[TreeEntry], path: str, policy: ScanPolicy, source_text: str
) -> tuple[list[CommitSkill], list[Finding]]:
    """Collect one level below `path`: flat files and each folder with a SKILL.md.

    The first item has the flat files. Raises: SourceNotFound if `path` does not exist, TooLarge.
    """
    prefix = f"{path}/" if path else ""
    below = sorted((e for e in entries if e.path.startswith(prefix)), key=lambda e: e.path)
    if path and not below:
        raise SourceNotFound(source_text, f"there is no folder {path!r} in the repository")
    flat, folders, findings = CommitSkill(path), dict[str, list[TreeEntry]](), list[Finding]()
    for name, group in groupby(below, key=lambda e: e.path[len(prefix) :].partition("/")[0]):
        members, folder = list(group), f"{prefix}{name}"
        if policy.reason_to_skip(name) is not None:
            continue
        if members[0].path == folder:
            if members[0].mode == MODE_LINK:
                findings.append(_link_skipped_finding(name))
            elif name.endswith(".md") or not members[0].is_file:
                flat.add(members[0])
        elif (reason := _unsafe_path_reason(name)) is not None:
            message = f"the folder {name!a} is left out: {reason}"
            findings.append(Finding(Code.UNSAFE_PATH, message, hint="rename it"))
        elif any(entry.is_file and is_skill_md(entry.path[len(folder) + 1 :]) for entry in members):
            folders[folder] = members
        else:
            findings.append(_missing_skill_md_finding(name, folder, members))
    count = len(flat.entries) + sum(min(len(members), MAX_FILES) for members in folders.values())
    if count > MAX_LEVEL_FILES:  # checked first, because checking every file takes time
        raise TooLarge(source_text, MAX_LEVEL_FILES, "files")
    visible = (
        entry
        for folder, members in folders.items()
        for entry in members
        if policy.include_hidden_files or "/." not in entry.path[len(folder) :]
    )
    return [flat, *collect_skills(visible, folders)], findings


def _missing_skill_md_finding(name: str, folder: str, entries: Iterable[TreeEntry]) -> Finding:
    """Return the finding for a folder whose SKILL.md is missing or a link."""
    for entry in entries:
        inner = entry.path[len(folder) + 1 :]
        if entry.mode == MODE_LINK and is_skill_md(inner):
            return _link_skipped_finding(f"{name}/{inner}")
    return Finding(Code.NO_SKILL_MD, "the folder has no SKILL.md", hint="add one", path=name)


def _link_skipped_finding(path: str) -> Finding:
    if _unsafe_path_reason(path) is not None:  # a finding must not have an unsafe `path`
        return Finding(Code.LINK_SKIPPED, f"{path!a}: links are not followed here")
    hint = "copy its target instead"
    return Finding(Code.LINK_SKIPPED, "links are not followed here", hint=hint, path=path)


def iterate_files(skills: Iterable[CommitSkill]) -> Iterator[TreeEntry]:
    """Yield all files of the skills."""
    return (entry for skill in skills for entry in skill.entries.values())
