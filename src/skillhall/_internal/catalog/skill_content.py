"""Access to the bodies and files of catalog skills."""

from __future__ import annotations

import os
from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skillhall._internal.fs.handles import Folder, FolderHandle, open_folder_at
from skillhall._internal.fs.signatures import unpack_signature
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.readable_files import is_publishable, remove_hidden_files
from skillhall._internal.render.activation import render_activation
from skillhall._internal.skill.bundle import RelativePath, SkillFile
from skillhall._internal.skill.frontmatter_locator import (
    MAX_SKILL_MD_BYTES,
    FrontmatterBlock,
    find_frontmatter,
)
from skillhall._internal.skill.parsed import KeyCase
from skillhall._internal.skill.parser import find_encoding_error, parse_frontmatter, parse_skill
from skillhall._internal.sources.folder.bundle_reader import (
    call_with_bundle,
    open_flat_bundle,
    read_file_at,
)
from skillhall._internal.sources.folder.candidate import is_larger_than_head
from skillhall.errors import NotAFile, SkillFileNotFound, SkillhallError, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Self

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.trust.gate import ClearedSkill
    from skillhall._internal.policy.folder_walk_rules import ScanPolicy
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.parsed import ParsedSkill
    from skillhall._internal.sources.folder.root import Root
    from skillhall._internal.sources.folder.walker import Scan


_T = TypeVar("_T")
_USUAL_SIZE = 64 * 1024  # bytes; larger files are read with more system calls
ALL_FILES_SCAN = LENIENT.scan_policy.with_hidden_files  # of the files that a digest covers


def read_skill(skill: CatalogSkill, profile: Profile = LENIENT) -> ParsedSkill:
    """Read and parse the current SKILL.md completely.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    data = read_skill_md(skill)
    folder = None if skill.is_flat else skill.directory.replace("\\", "/").rpartition("/")[2]
    return parse_skill(data, folder, profile.key_case)


def read_raw_body(skill: CatalogSkill) -> str:
    """Read the body without parsing the frontmatter, for a search over many skills.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    data = read_skill_md(skill)
    block = find_frontmatter(data)
    start = block.body_start if isinstance(block, FrontmatterBlock) else 0
    return data[start:].decode("utf-8", "replace")


def read_skill_md(skill: CatalogSkill) -> bytes:
    """Read the bytes of SKILL.md.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    data = read_main_file(skill.folder_handle, skill.file, skill.real_file)
    return data if skill.approved is None else skill.approved.check_data(skill.file, data)


def has_frontmatter_of_files(skill: CatalogSkill) -> bool:
    """Whether the scan has read the frontmatter from the approved SKILL.md.

    Without approved files, any version is accepted. Another process may replace the file after the
    scan, and restore it before it is compared with the approved one.
    """
    approved, seen = skill.approved, skill.catalog_root.signature
    if approved is None:
        return True
    if seen is not None and unpack_signature(seen) == approved.signatures.get(skill.file):
        return True
    try:
        data = read_skill_md(skill)
    except SkillhallError:
        return False
    # Compared as text, because not every value equals itself: YAML has `.nan`.
    fields = repr(skill.frontmatter.fields)
    parsed = (parse_frontmatter(data, None, key_case) for key_case in KeyCase)
    return any(repr(one.frontmatter.fields) == fields for one in parsed)


def read_main_file(folder: FolderHandle, file: str, real_file: FolderHandle | None) -> bytes:
    """Read a SKILL.md; `real_file` is its target if it is a link.

    Raises: as `read_skill_md`.
    """
    if real_file is not None:
        folder, file = FolderHandle(real_file.root), real_file.relative_path
    return read_file_at(folder, RelativePath.parse(file), MAX_SKILL_MD_BYTES)


def read_status(skill: CatalogSkill) -> os.stat_result | None:
    """Return the stat of a SKILL.md; `None` if it is missing."""
    try:
        return os.stat(skill.location)
    except (OSError, ValueError):
        return None


class StoredText(NamedTuple):
    """The bytes of a SKILL.md, and its stat at that time if it is known."""

    data: bytes
    status: os.stat_result | None


class SkillReader:
    """Reads many SKILL.md files in half the time of `read_skill_md`.

    The folder above the skill's own folder stays open until a skill of another one is read, so use
    a reader only for a moment.
    """

    def __init__(self, read: Callable[[CatalogSkill], bytes] | None = None) -> None:
        """Create the reader; if `read` is given, it reads all files."""
        self._read = read or read_skill_md
        self._is_direct = self._read is read_skill_md
        self._location: FolderHandle | None = None
        self._parent: Folder | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def read(self, skill: CatalogSkill) -> StoredText:
        """Read a SKILL.md. Raises: as `read_skill_md`."""
        # The stat is from before the data is read: a file that changes then is read again later.
        text = self._read_usual(skill) if self._is_direct else None
        if text is not None:
            return text
        status = read_status(skill)
        return StoredText(self._read(skill), status)

    def _read_usual(self, skill: CatalogSkill) -> StoredText | None:
        """Read a file of usual size in a folder of its own; `None` if it is another case."""
        root, path = skill.folder_handle
        if not path or skill.real_file is not None or skill.approved is not None:
            return None
        above, _, name = path.rpartition("/")
        try:
            parent = self._open(FolderHandle(root, above))
            found = parent.read_start_below(name, skill.file, _USUAL_SIZE)
        except (OSError, NotAFile):
            return None
        if isinstance(found, Folder):
            found.close()
            return None
        data, size, status = found
        return StoredText(data, status) if len(data) == size else None

    def _open(self, location: FolderHandle) -> Folder:
        if self._parent is None or location != self._location:
            self._close()
            self._parent, self._location = open_folder_at(location), location
        return self._parent

    def _close(self) -> None:
        if self._parent is not None:
            self._parent.close()
            self._parent = None


def read_skill_file(skill: ClearedSkill, path: str | PathLike[str]) -> bytes:
    """Read one file of the skill; paths such as `./a.md` are normalized.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    return _read_relative_file(skill, RelativePath.parse_lenient(fspath(path)))


def read_published_file(skill: CatalogSkill, path: RelativePath) -> bytes:
    """Read one file for a remote client; hidden files count as missing.

    Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    if not is_publishable(path.text):
        raise SkillFileNotFound(path.text)
    return _read_relative_file(skill, path)


def _read_relative_file(skill: CatalogSkill, path: RelativePath) -> bytes:
    if path.text == skill.file:
        return read_skill_md(skill)
    if skill.is_flat:
        raise SkillFileNotFound(path.text)

    def read(bundle: Bundle) -> bytes:
        file = bundle.files.get(path.text)
        if file is None:
            # The digest of a skill does not cover what a bundle leaves out: version control,
            # links, and files beyond the limits. They are read only for the error.
            read_file_at(skill.folder_handle, path)
            raise SkillFileNotFound(path.text)
        return file.read()

    return with_bundle(skill, ALL_FILES_SCAN, read)


def open_skill_bundle(skill: CatalogSkill, policy: ScanPolicy) -> Bundle:
    """Return the skill's files; a flat skill has only one. Raises: SkillFileNotFound."""
    return with_bundle(skill, policy, lambda bundle: bundle)


def with_bundle(skill: CatalogSkill, policy: ScanPolicy, work: Callable[[Bundle], _T]) -> _T:
    """Call `work` with the skill's files, all from one version; return its result.

    If the skill has approved files, the bundle must consist of these, and its reads are checked.
    Raises: SkillFileNotFound, SkillNotApproved, and errors from `work`.
    """
    if skill.approved is not None:
        approved, unchecked = skill.approved, skill.with_approved(None)

        def work_with_approved(bundle: Bundle) -> _T:
            checked = approved.check_bundle(bundle)
            return work(checked if policy.include_hidden_files else remove_hidden_files(checked))

        return with_bundle(unchecked, policy.with_hidden_files, work_with_approved)
    if skill.is_flat:
        return work(open_flat_bundle(skill.folder_handle, skill.file))
    if skill.real_file is None:
        return call_with_bundle(skill.folder_handle, policy, work)

    def work_with_linked_skill_md(bundle: Bundle) -> _T:
        # Bundles skip links, so a SKILL.md that is a link is added here.
        data, path = read_skill_md(skill), RelativePath.parse(skill.file)
        skill_md = SkillFile(path, len(data), executable=False, read=lambda: data)
        files = dict(sorted({**bundle.files, skill.file: skill_md}.items()))
        findings = tuple(finding for finding in bundle.findings if finding.path != skill.file)
        return work(replace(bundle, files=files, findings=findings))

    return call_with_bundle(skill.folder_handle, policy, work_with_linked_skill_md)


def activate(
    skill: ClearedSkill, profile: Profile = LENIENT, directory: str | PathLike[str] = ""
) -> str:
    """Render the body of `skill`, its directory, and the names of its other files.

    `directory` is shown to the model instead of the absolute path.
    Raises: SkillRejected, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    body = read_accepted_body(skill, profile)
    resources = []
    if not skill.is_flat:
        bundle = open_skill_bundle(skill, profile.scan_policy.without_hidden_files)
        resources = [file.path.text for file in bundle.resources()]
    return render_activation(skill.name, fspath(directory) or skill.directory, body, resources)


def read_accepted_body(skill: ClearedSkill, profile: Profile) -> str:
    """Read the current body, if the profile accepts it.

    Raises: SkillRejected, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
    """
    # The catalog has checked only the head, and the file may have changed since.
    parsed = read_skill(skill, profile)
    judged_findings = profile.load_policy.judge(parsed.findings)
    reasons = [j.finding.message for j in judged_findings if j.effect is Effect.REJECT]
    if reasons:
        raise SkillRejected(skill.location, reasons)
    return parsed.body


def check_bodies(root: Root, scan: Scan) -> Scan:
    """Add a finding to each candidate whose SKILL.md is not valid text after its head."""
    checked = []
    for candidate in scan.candidates:
        checked.append(candidate)
        if not is_larger_than_head(candidate):
            continue  # the scan has read the complete file
        folder = candidate.real_folder or FolderHandle(root.path, candidate.folder)
        try:
            data = read_main_file(folder, candidate.file, candidate.real_file)
        except SkillhallError:
            continue  # changed since the scan; reading the skill will report it
        finding = find_encoding_error(data)
        if finding is not None and all(row[0] != finding.code for row in candidate.findings):
            checked[-1] = candidate._replace(findings=(*candidate.findings, finding))
    unchanged = sum(new is old for new, old in zip(checked, scan.candidates, strict=True))
    # The head cache is written again if fewer candidates were reused than there are.
    return scan._replace(candidates=checked, reused_count=min(scan.reused_count, unchanged))
