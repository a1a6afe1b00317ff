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

from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, folded
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.sources.archive.source import is_litter, version_control_of
from skillhall._internal.sources.folder.bundle_reader import (
    MAX_DEPTH,
    MAX_FILE,
    MAX_FILES,
    MAX_TOTAL,
)
from skillhall._internal.sources.repo_layout import folder_above
from skillhall.errors import SourceNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.policy.scan_rules import ScanPolicy

LINK, SUBMODULE, FOLDER = "120000", "160000", "040000"
PLAIN, EXECUTABLE = "100644", "100755"
_FILES = frozenset({PLAIN, "100664", EXECUTABLE})  # early versions of git wrote the second
_NO_FILE = {
    LINK: ("it is a link", "copy the file instead"),
    SUBMODULE: ("it is another repository", "copy its files instead"),
}
MAX_LEVEL_FILES = 200_000  # as many as an archive of a repository may have
_LONGEST_NAME = 255  # bytes; file systems hold no longer one
_ODD = ("it is not a regular file", "remove it")


class Entry(NamedTuple):
    """A file, link or submodule of a commit."""

    path: str
    mode: str  # six octal digits
    id: str  # git's, of its content
    size: int | None = None  # bytes; not every listing tells

    @property
    def is_file(self) -> bool:
        """Whether it has bytes of its own."""
        return self.mode in _FILES


def searchable_paths(entries: Iterable[Entry]) -> list[str]:
    """All paths but those of a SKILL.md that makes no skill: a link, or in an unsafe folder."""
    # The others are not judged yet: there may be very many, and few are in a skill that is wanted.
    return [entry.path for entry in entries if not _is_named_skill(entry) or _is_usable(entry)]


def _is_named_skill(entry: Entry) -> bool:
    return is_skill_md(entry.path.rpartition("/")[2])


def _is_usable(entry: Entry) -> bool:
    is_ours = not is_litter(entry.path) and version_control_of(entry.path) is None
    return is_ours and entry.is_file and _reason_against(entry.path) is None


def _reason_against(path: str) -> str | None:
    try:
        checked = RelativePath.parse(path)
    except UnsafePath as error:
        return error.reason
    if path != checked.text:
        return "it is not in its shortest form"
    is_long = any(len(part.encode()) > _LONGEST_NAME for part in checked.parts)
    return "one of its names is too long for a file system" if is_long else None


@dataclass(slots=True)
class Draft:
    """The files of one skill before their bytes are there."""

    folder: str  # in the repository; "" for its top
    entries: dict[str, Entry] = field(default_factory=dict)  # by path in the skill, in order
    findings: list[Finding] = field(default_factory=list)
    _full: bool = False
    _noted: set[str] = field(default_factory=set)  # folders of version control
    _places: set[str] = field(default_factory=set)  # files and folders that are taken
    _names: dict[tuple[str, str], str] = field(default_factory=dict)  # places, as others see them

    def add(self, entry: Entry) -> None:
        """Take a file in, or say why not; the order of calls is the order of files."""
        path = entry.path[len(self.folder) + 1 :] if self.folder else entry.path
        if is_litter(path) or self._is_refused(path, entry) or self._is_full():
            return
        self._check_names(path)
        self.entries[path] = entry

    def weigh(self, sizes: Mapping[str, int] = MappingProxyType({})) -> None:
        """Leave out what is too large; `sizes`, by id, are of entries that came without."""
        kept: dict[str, Entry] = {}
        total = 0
        for path, entry in self.entries.items():
            size = sizes[entry.id] if entry.size is None else entry.size
            if size > MAX_FILE:
                self._note(Code.FILE_TOO_LARGE, f"the file has more than {MAX_FILE} bytes", path)
                continue
            total += size
            if total > MAX_TOTAL:
                self._note_the_rest(path)
                break
            kept[path] = entry._replace(size=size)
        self.entries = kept

    def bundle(self, contents: Mapping[str, bytes]) -> Bundle:
        """The bundle, with bytes by id."""
        files = {path: _skill_file(path, e, contents[e.id]) for path, e in self.entries.items()}
        return Bundle(self.folder, files, tuple(self.findings))

    def _is_refused(self, path: str, entry: Entry) -> bool:
        if (against := _reason_against(path)) is not None:
            self._leave_out(f"{path!a}: {against}", "", "rename it")
        elif (place := version_control_of(path)) is not None:
            self._leave_out_once(place)
        elif not entry.is_file:
            why, hint = _NO_FILE.get(entry.mode, _ODD)
            self._leave_out(why, path, hint)
        elif path.count("/") > MAX_DEPTH:
            self._leave_out(f"it lies deeper than {MAX_DEPTH} folders", path, "move it up")
        elif (above := folder_above(path, self.entries)) is not None:
            self._leave_out(f"{above!r} is a file, not its folder", path, "rename it")
        else:
            return False
        return True

    def _is_full(self) -> bool:
        if len(self.entries) < MAX_FILES:
            return False
        if not self._full:
            self._full = True
            self._note(Code.TOO_MANY_FILES, f"only the first {MAX_FILES} files are used", "")
        return True

    def _check_names(self, path: str) -> None:
        """Note what some systems take for something that stands beside it."""
        for above, place in pairwise(("", *accumulate(path.split("/"), "{}/{}".format))):
            if place in self._places:
                continue
            self._places.add(place)
            other = self._names.setdefault((above, folded(place)), place)
            if other != place:
                message = f"{other!r} and {place!r} are one name on some systems"
                self._note(Code.CASE_COLLISION, message, place, "rename one of them")

    def _leave_out_once(self, place: str) -> None:
        if place not in self._noted:
            self._noted.add(place)
            self._leave_out("it belongs to version control", place, "remove it")

    def _leave_out(self, why: str, path: str, hint: str) -> None:
        self._note(Code.FILE_LEFT_OUT, f"left out of the skill's files: {why}", path, hint)

    def _note_the_rest(self, path: str) -> None:
        message = f"the skill's files have more than {MAX_TOTAL} bytes; the rest is left out"
        self._note(Code.FILE_TOO_LARGE, message, path)

    def _note(self, code: Code, message: str, path: str, hint: str = "") -> None:
        self.findings.append(Finding(code, message, hint=hint, path=path))


def _skill_file(path: str, entry: Entry, data: bytes) -> SkillFile:
    is_executable = entry.mode == EXECUTABLE
    return SkillFile(RelativePath.parse(path), len(data), is_executable, partial(bytes, data))


def draft_skills(entries: Iterable[Entry], folders: Iterable[str]) -> list[Draft]:
    """The skills in `folders`, in their order, each with its files in path order."""
    drafts = {folder: Draft(folder) for folder in folders}
    for entry in sorted(entries, key=lambda entry: entry.path):
        folder = folder_above(entry.path, drafts)
        if folder is not None:
            drafts[folder].add(entry)
    return list(drafts.values())


def draft_level(
    entries: Iterable[Entry], path: str, policy: ScanPolicy, text: str
) -> tuple[list[Draft], list[Finding]]:
    """What a scan of the one level below `path` reads: flat files, and each folder with a SKILL.md.

    `text` names the source. Raises: SourceNotFound if there is nothing at `path`, TooLarge.
    """
    prefix = f"{path}/" if path else ""
    below = sorted((e for e in entries if e.path.startswith(prefix)), key=lambda e: e.path)
    if path and not below:
        raise SourceNotFound(text, f"there is no folder {path!r} in the repository")
    flat, folders, findings = Draft(path), dict[str, list[Entry]](), list[Finding]()
    for name, group in groupby(below, key=lambda e: e.path[len(prefix) :].partition("/")[0]):
        inner, folder = list(group), f"{prefix}{name}"
        if policy.reason_to_skip(name) is not None:
            continue
        if inner[0].path == folder:
            if inner[0].mode == LINK:
                findings.append(_not_followed(name))
            elif name.endswith(".md") or not inner[0].is_file:
                flat.add(inner[0])
        elif (against := _reason_against(name)) is not None:
            message = f"the folder {name!a} is left out: {against}"
            findings.append(Finding(Code.UNSAFE_PATH, message, hint="rename it"))
        elif any(entry.is_file and is_skill_md(entry.path[len(folder) + 1 :]) for entry in inner):
            folders[folder] = inner
        else:
            findings.append(_without_skill_md(name, folder, inner))
    count = len(flat.entries) + sum(min(len(inner), MAX_FILES) for inner in folders.values())
    if count > MAX_LEVEL_FILES:  # before each of them is looked at
        raise TooLarge(text, MAX_LEVEL_FILES, "files")
    drafts = [_draft_folder(folder, inner, policy) for folder, inner in folders.items()]
    return [flat, *drafts], findings


def _without_skill_md(name: str, folder: str, entries: Iterable[Entry]) -> Finding:
    """Why the folder is no skill: it has no SKILL.md, or one that is a link."""
    for entry in entries:
        inner = entry.path[len(folder) + 1 :]
        if entry.mode == LINK and is_skill_md(inner):
            return _not_followed(f"{name}/{inner}")
    return Finding(Code.NO_SKILL_MD, "the folder holds no SKILL.md", hint="add one", path=name)


def _not_followed(path: str) -> Finding:
    if _reason_against(path) is not None:  # a path that no response may repeat
        return Finding(Code.LINK_SKIPPED, f"{path!a}: links are not followed here")
    hint = "copy what it leads to instead"
    return Finding(Code.LINK_SKIPPED, "links are not followed here", hint=hint, path=path)


def level_of(
    drafts: Sequence[Draft], contents: Mapping[str, bytes]
) -> tuple[dict[str, bytes], list[Finding]]:
    """The files of what `draft_level` gave, by their paths below its path, and what was noticed."""
    files, findings = dict[str, bytes](), list[Finding]()
    for number, draft in enumerate(drafts):
        top = f"{draft.folder.rpartition('/')[2]}/" if number else ""
        files |= {f"{top}{path}": contents[e.id] for path, e in draft.entries.items()}
        findings += [one._replace(path=f"{top}{one.path}".rstrip("/")) for one in draft.findings]
    return files, findings


def _draft_folder(folder: str, entries: Iterable[Entry], policy: ScanPolicy) -> Draft:
    draft = Draft(folder)
    for entry in entries:
        names = entry.path[len(folder) + 1 :].split("/")
        if policy.hidden_in_bundles or not any(name.startswith(".") for name in names):
            draft.add(entry)
    return draft


def files_of(drafts: Iterable[Draft]) -> Iterator[Entry]:
    """All files that are needed."""
    return (entry for draft in drafts for entry in draft.entries.values())
