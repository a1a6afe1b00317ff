"""Skill store in folders: the system and user skills of one run directory."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.fingerprint import read_signature
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.fs.handles import EntryKind
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.render.listing import render_local
from skillhall._internal.skill.bundle import Bundle, RelativePath
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.skill_store import shipped_skills as shipped
from skillhall._internal.skill_store.folder_revision import FolderRevision
from skillhall._internal.skill_store.input_checks import (
    SYSTEM,
    USER,
    StoredSkill,
    check_deletion,
    find_replaced_id,
    list_names,
    parse_skill_id,
    prepare_bundles,
    prepare_new_skill,
)
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import Conflict, ReadOnly, SkillFileNotFound, SkillNotFound, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill_store.input_checks import PreparedSkill
    from skillhall._internal.skill_store.shipped_skills import ShippedSkillsReport
    from skillhall._internal.skill_store.store import ComputeFiles, SkillFiles

ALL_FILES_SCAN = LOCAL_SKILLS.scan_policy._replace(include_hidden_files=True)
_FOLDER_BY_SOURCE = {source: path for path, source in LOCAL_SKILLS.roots}


class StoreListing(NamedTuple):
    """Skills of a run directory, system skills first, with their findings."""

    items: tuple[StoredSkill, ...]
    findings: tuple[JudgedFinding, ...]


class ImportReport(NamedTuple):
    """Imported skills, the ids of replaced skills, and all findings."""

    imported: tuple[StoredSkill, ...]
    replaced: tuple[str, ...]
    findings: tuple[JudgedFinding, ...]


class FolderStore:
    """Skills below `.agents` in a run directory; caches only the last revision.

    With `follow_links`, skill folders may be links to folders outside the run directory. Such
    skills are read but never written.
    """

    def __init__(
        self, run_directory: str | os.PathLike[str], *, follow_links: bool = False
    ) -> None:
        self.run_directory: str = os.path.abspath(os.path.expanduser(run_directory))
        self.location: str = os.path.join(self.run_directory, ".agents")
        self._write_count = 0  # part of quick_revision
        # A link that exists at startup is the user's choice and is followed. One that appears
        # later may be an attack and is not.
        self._linked_sources = frozenset(
            source for source in _FOLDER_BY_SOURCE if self._is_behind_link(source)
        )
        self._follow_links = follow_links
        folders = [self._get_folder_path(source) for source in _FOLDER_BY_SOURCE]
        self._revision = FolderRevision(self.run_directory, folders, follow_links=follow_links)

    @property
    def quick_revision(self) -> object:
        """Value that changes with each write of this process and if a folder appears or goes."""
        return self._write_count, [
            read_signature(self._get_folder_path(source)) for source in _FOLDER_BY_SOURCE
        ]

    def catalog(self) -> Catalog:
        """Load the current skills of both folders."""
        return load_roots(self._roots(), LOCAL_SKILLS)

    def list(self) -> StoreListing:
        """List the served skills. A shadowed user skill is reported as a finding."""
        catalog = self.catalog()
        items = (StoredSkill(s.id, s.name, s.description, s.source, s.hidden) for s in catalog)
        return StoreListing(tuple(items), catalog.findings)

    def prompt_block(self) -> str:
        """Render the skills for a model's prompt; "" if there are none."""
        return render_local(item for item in self.list().items if is_visible_to_models(item))

    def add(self, id: str, name: str, description: str, body: str = "") -> StoredSkill:  # noqa: A002 - the public name
        """Create a user skill. Raises: UnsafePath, SkillRejected, Conflict, OSError."""
        new = prepare_new_skill(parse_skill_id(id), name, description, body)
        with self._open_folder(USER, make=True) as target:
            self._find_replaced_id(target, new, replace=False)
            _write_skill(target, new, None)
        return new.skill

    def import_(
        self,
        bundles: Bundle | Iterable[Bundle],
        id: str | None = None,  # noqa: A002 - the public name
        *,
        replace: bool = False,
    ) -> ImportReport:
        """Import bundles as user skills. All are checked before the first is written.

        Raises: SkillRejected, UnsafePath, Conflict, ReadOnly, OSError, and errors of reading.
        """
        sources = (bundles,) if isinstance(bundles, Bundle) else tuple(bundles)
        prepared = prepare_bundles(sources, id)
        with self._open_folder(USER, make=True) as target:
            replaced = [self._find_replaced_id(target, item, replace=replace) for item in prepared]
            skills = [_write_skill(target, *pair) for pair in zip(prepared, replaced, strict=True)]
        findings = tuple(judged for item in prepared for judged in item.findings)
        return ImportReport(tuple(skills), tuple(filter(None, replaced)), findings)

    def delete(self, id: str, *, shadowed: bool = False) -> None:  # noqa: A002 - the public name
        """Delete a user skill; one that a system skill shadows only if `shadowed` is set.

        Raises: ReadOnly, SkillNotFound, UnsafePath, OSError.
        """
        self._sweep_folder(USER)
        catalog = self.catalog()
        deletable = self._list_deletable_ids(catalog)
        check_deletion(id, deletable, catalog, shadowed=shadowed)
        if id not in deletable:
            if any(skill.id == id for skill in catalog):
                raise ReadOnly(id)
            raise SkillNotFound(id, get_close_matches(id, deletable))
        with self._open_folder(USER) as target:
            if target.entry_kind(id) is None:  # another process deleted it
                raise SkillNotFound(id)
            target.remove_atomically(id)

    def files(self, id: str) -> Bundle | None:  # noqa: A002 - the public name
        """Open all files of a user skill, or None. Raises: UnsafePath."""
        try:
            folder = self._root(USER).location.child(RelativePath.parse(id).text)
            return open_bundle(folder, ALL_FILES_SCAN)
        except SkillFileNotFound:
            return None

    def rewrite(self, ids: Sequence[str], compute_files: ComputeFiles) -> None:
        """Replace the files of user skills while holding the folder's lock.

        Raises: as `compute_files`, and UnsafePath, OSError.
        """
        with self._open_folder(USER, make=True) as target:
            present = {identity: self.files(identity) for identity in ids}
            for identity, files in compute_files(present).items():
                _rewrite_skill(target, identity, present[identity], files)

    def sweep(self) -> None:
        """Delete leftovers of killed processes, in folders that are writable."""
        for source in _FOLDER_BY_SOURCE:
            with suppress(OSError):
                self._sweep_folder(source)

    def install_system_skills(self) -> ShippedSkillsReport:
        """Install or update the skills that Skillhall ships. Raises: UnsafePath, OSError."""
        with self._open_folder(SYSTEM, make=True) as target:
            return shipped.install_shipped_skills(target, self._get_folder_path(SYSTEM))

    def revision(self) -> str:
        """Return a string that changes when a skill is added, removed or edited."""
        return self._revision.current()

    def _sweep_folder(self, source: str) -> None:
        # Opening a folder recovers it. A folder behind a link is not ours to change.
        if os.path.isdir(self._get_folder_path(source)):
            with suppress(UnsafePath), self._open_folder(source):
                pass

    def _roots(self) -> tuple[Root, ...]:
        return tuple(map(self._root, _FOLDER_BY_SOURCE))

    def _root(self, source: str) -> Root:
        base = "" if source in self._linked_sources else self.run_directory
        return Root(
            self._get_folder_path(source),
            source,
            is_required=False,
            follow_links=self._follow_links,
            no_links_below=base,
        )

    def _is_behind_link(self, source: str) -> bool:
        path = self.run_directory
        for name in _FOLDER_BY_SOURCE[source].split("/"):
            path = os.path.join(path, name)
            if os.path.islink(path):
                return True
        return False

    def _get_folder_path(self, source: str) -> str:
        return os.path.join(self.run_directory, *_FOLDER_BY_SOURCE[source].split("/"))

    @contextmanager
    def _open_folder(self, source: str, *, make: bool = False) -> Iterator[WritableFolder]:
        """Open, lock and recover the folder of a source. Raises: UnsafePath, OSError."""
        with ExitStack() as stack:
            folder = stack.enter_context(WritableFolder(self.run_directory))
            for name in _FOLDER_BY_SOURCE[source].split("/"):
                if folder.entry_kind(name) is EntryKind.LINK:
                    raise UnsafePath(
                        _FOLDER_BY_SOURCE[source], f"{name!r} is a link; nothing is written"
                    )
                parent, is_new = folder, folder.entry_kind(name) is None
                folder = stack.enter_context(parent.open_folder(name, create=make))
                if is_new:
                    parent.sync()
            stack.enter_context(folder.lock())
            folder.recover()
            try:
                yield folder
            finally:
                self._write_count += 1

    def _find_replaced_id(
        self, target: WritableFolder, prepared: PreparedSkill, *, replace: bool
    ) -> str | None:
        """Return the id that is replaced, or None. Raises: Conflict, ReadOnly."""
        system_ids = list_names(self._get_folder_path(SYSTEM))
        return find_replaced_id(prepared.skill.id, target.list_names(), system_ids, replace=replace)

    def _list_deletable_ids(self, catalog: Catalog) -> set[str]:
        """Ids of user skills, including shadowed and broken ones."""
        shadowed = (loser.skill for loser in catalog.shadowed)
        ids = {skill.id for skill in (*catalog, *shadowed) if skill.source == USER}
        user_prefix = self._get_folder_path(USER) + os.sep
        return ids | {
            rejected.id
            for rejected in catalog.rejected
            if is_skill_md(os.path.basename(rejected.location))
            and rejected.location.startswith(user_prefix)
        }


def _write_skill(
    target: WritableFolder, prepared: PreparedSkill, replaced_id: str | None
) -> StoredSkill:
    if replaced_id is not None:
        target.replace_folder(replaced_id, prepared.files)
        return prepared.skill._replace(id=replaced_id)
    try:
        target.create_folder(prepared.skill.id, prepared.files)
    except OSError:
        # Where the file system has no locks, another process may have created it.
        if target.entry_kind(prepared.skill.id) is not None:
            raise Conflict(prepared.skill.id) from None
        raise
    return prepared.skill


def _rewrite_skill(
    target: WritableFolder, identity: str, present: Bundle | None, files: SkillFiles | None
) -> None:
    if files is None:
        target.remove_atomically(identity)
    elif present is None:
        target.create_folder(identity, files)
    elif (path := _find_only_change(present, files)) is not None:
        # Links and files beyond the limits are not part of a bundle. Writing one file leaves
        # them in place.
        with target.open_folder(identity) as folder:
            folder.write_file(path, files[path][0], folder.mode(path))
    else:
        target.replace_folder(identity, files)


def _find_only_change(present: Bundle, files: SkillFiles) -> str | None:
    """Return the path of the only changed file, if it is at the top level of the skill."""
    if present.files.keys() != files.keys():
        return None
    changed = [path for path, (data, _) in files.items() if present.files[path].read() != data]
    return changed[0] if len(changed) == 1 and "/" not in changed[0] else None
