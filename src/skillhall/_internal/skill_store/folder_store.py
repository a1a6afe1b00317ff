"""Skill store in folders: the system and user skills of one run directory."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.live_catalog import LiveCatalog
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.fs.handles import EntryKind
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.access.actor import AuditedChange
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.render.listing import render_local
from skillhall._internal.skill.bundle import RelativePath, digest_files
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.skill_store import shipped_skills as shipped
from skillhall._internal.skill_store.input_checks import (
    SYSTEM,
    USER,
    SkillSummary,
    check_deletion,
    find_replaced_id,
    list_names,
)
from skillhall._internal.skill_store.store import (
    ACTIONS_BY_ORIGIN,
    ALL_FILES_SCAN,
    FOLDER_BY_SOURCE,
    SkillStore,
)
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import (
    Conflict,
    DatabaseFull,
    DatabaseUnavailable,
    SkillFileNotFound,
    SkillhallError,
    SkillNotFound,
    UnsafePath,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.catalog.live_catalog import LoadedCatalog
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.input_checks import PreparedSkill
    from skillhall._internal.skill_store.shipped_skills import ShippedSkillsReport
    from skillhall._internal.skill_store.store import ComputeFiles, ImportOrigin, SkillFiles
    from skillhall._internal.storage.audit.file_audit import FileAudit

    BeforeWrite: TypeAlias = Callable[[Mapping[str, SkillFiles | None], Actor, ImportOrigin], None]

_UNREADABLE = "unreadable"  # instead of a digest


class StoreListing(NamedTuple):
    """Skills of a run directory, system skills first, with their findings."""

    items: tuple[SkillSummary, ...]
    findings: tuple[JudgedFinding, ...]


class FolderStore(SkillStore):
    """Skills below `.agents` in a run directory.

    With `follow_links`, skill folders may be links to folders outside the run directory. Such
    skills are read but never written.
    """

    def __init__(
        self, run_directory: str | os.PathLike[str], *, follow_links: bool = False
    ) -> None:
        self.run_directory: str = os.path.abspath(os.path.expanduser(run_directory))
        self.location: str = os.path.join(self.run_directory, ".agents")
        # A link that exists at startup is the user's choice and is followed. One that appears
        # later may be an attack and is not followed.
        self._linked_sources = frozenset(
            source for source in FOLDER_BY_SOURCE if self._is_behind_link(source)
        )
        self._follow_links = follow_links
        roots = [*map(self._root, FOLDER_BY_SOURCE)]
        self.live_catalog: LiveCatalog = LiveCatalog(roots, LOCAL_SKILLS)
        self.file_audit: FileAudit | None = None  # of a server
        # Called before user skills are written, with their new files, while the lock is held.
        self.before_write: BeforeWrite = lambda *_: None

    def current(self) -> LoadedCatalog:
        """Return the current skills; the same object while nothing changes."""
        return self.live_catalog.current()

    def catalog(self) -> Catalog:
        """Load the current skills of both folders."""
        return load_roots([*map(self._root, FOLDER_BY_SOURCE)], LOCAL_SKILLS)

    def list(self) -> StoreListing:
        """List the served skills. A shadowed user skill is reported as a finding."""
        catalog = self.catalog()
        items = (SkillSummary(s.id, s.name, s.description, s.source, s.hidden) for s in catalog)
        return StoreListing(tuple(items), catalog.findings)

    def prompt_block(self) -> str:
        """Render the skills for a model's prompt; "" if there are none."""
        return render_local(item for item in self.list().items if is_visible_to_models(item))

    def delete(self, id: str, *, shadowed: bool = False) -> None:  # noqa: A002 - the public name
        """Delete a user skill; set `shadowed` if and only if a system skill shadows it.

        Raises: ReadOnly, SkillNotFound, UnsafePath, OSError.
        """
        self._sweep_folder(USER)
        catalog = self.current().catalog
        # User skills include shadowed and broken ones.
        skills = (*catalog, *(loser.skill for loser in catalog.shadowed))
        user_ids = {skill.id for skill in skills if skill.source == USER}
        user_folder = self._get_folder_path(USER) + os.sep
        for rejected in catalog.rejected:
            is_folder = is_skill_md(os.path.basename(rejected.location))
            if is_folder and rejected.location.startswith(user_folder):
                user_ids.add(rejected.id)
        served_ids = {skill.id for skill in catalog}
        check_deletion(id, user_ids, served_ids, catalog, shadowed=shadowed)
        with self._open_folder(USER, changed=[id]) as target:
            if target.entry_kind(id) is None:  # another process deleted it
                raise SkillNotFound(id)
            self._apply(target, "skill.delete", {id: None}, lambda: target.remove_atomically(id))

    def files(self, id: str) -> Bundle | None:  # noqa: A002 - the public name
        """Open all files of a user skill; None if it does not exist. Raises: UnsafePath."""
        try:
            folder = self._root(USER).location.child(RelativePath.parse(id).text)
            return open_bundle(folder, ALL_FILES_SCAN)
        except SkillFileNotFound:
            return None

    def rewrite(self, ids: Sequence[str], compute_files: ComputeFiles) -> None:
        """Replace the files of user skills while holding the folder's lock.

        Raises: the errors of `compute_files`, UnsafePath, OSError.
        """
        with self._open_folder(USER, make=True, changed=ids) as target:
            present = {identity: self.files(identity) for identity in ids}
            computed = compute_files(present)

            def apply() -> None:
                for identity, files in computed.items():
                    _rewrite_folder(target, identity, present[identity], files)

            self._apply(target, "skill.edit", computed, apply)

    def sweep(self) -> None:
        """Delete leftovers of killed processes, in folders that are writable."""
        for source in FOLDER_BY_SOURCE:
            with suppress(OSError, DatabaseUnavailable, DatabaseFull):
                self._sweep_folder(source)

    def install_system_skills(self) -> ShippedSkillsReport:
        """Install or update the skills that Skillhall ships. Raises: UnsafePath, OSError."""
        with self._open_folder(SYSTEM, make=True) as target:
            return shipped.install_shipped_skills(target, self._get_folder_path(SYSTEM))

    def _sweep_folder(self, source: str) -> None:
        # Opening a folder recovers it. A folder behind a link is not ours to change.
        if os.path.isdir(self._get_folder_path(source)):
            with suppress(UnsafePath), self._open_folder(source):
                pass

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
        for name in FOLDER_BY_SOURCE[source].split("/"):
            path = os.path.join(path, name)
            if os.path.islink(path):
                return True
        return False

    def _get_folder_path(self, source: str) -> str:
        return os.path.join(self.run_directory, *FOLDER_BY_SOURCE[source].split("/"))

    @contextmanager
    def _open_folder(
        self, source: str, *, make: bool = False, changed: Iterable[str] = ()
    ) -> Iterator[WritableFolder]:
        """Open, lock and recover the folder of a source, to change some of its entries.

        Raises: UnsafePath, OSError.
        """
        with ExitStack() as stack:
            folder = stack.enter_context(WritableFolder(self.run_directory))
            for name in FOLDER_BY_SOURCE[source].split("/"):
                if folder.entry_kind(name) is EntryKind.LINK:
                    raise UnsafePath(
                        FOLDER_BY_SOURCE[source], f"{name!r} is a link; nothing was written"
                    )
                parent, is_new = folder, folder.entry_kind(name) is None
                folder = stack.enter_context(parent.open_folder(name, create=make))
                if is_new:
                    parent.sync()
            stack.enter_context(folder.lock())
            folder.recover()
            if source == USER and self.file_audit is not None:
                self.file_audit.recover(partial(self._recover_digest, folder))
            try:
                yield folder
            finally:
                # After the change: a request that reads in between must not count as the next.
                self.live_catalog.mark_changed([*FOLDER_BY_SOURCE].index(source), changed)

    @contextmanager
    def lock_user_skills(self) -> Iterator[None]:
        """Block other writers of user skills. Raises: UnsafePath, OSError."""
        with self._open_folder(USER):
            yield

    def write_skills(
        self, prepared: Sequence[PreparedSkill], origin: str, *, replace: bool
    ) -> Sequence[str | None]:
        """Write checked skills; return the replaced id of each, or None."""
        return self._write_skills(prepared, origin, replace=replace)

    def _write_skills(
        self, prepared: Sequence[PreparedSkill], origin: str, *, replace: bool
    ) -> Sequence[str | None]:
        changed: list[str] = []
        with self._open_folder(USER, make=True, changed=changed) as target:
            user_ids = target.list_names()
            system_ids = list_names(self._get_folder_path(SYSTEM))
            replaced = [
                find_replaced_id(item.skill.id, user_ids, system_ids, replace=replace)
                for item in prepared
            ]
            ids = [old or new.skill.id for old, new in zip(replaced, prepared, strict=True)]

            def apply() -> None:
                for identity, item, old in zip(ids, prepared, replaced, strict=True):
                    changed.append(identity)
                    _write_folder(target, identity, item.files, is_new=old is None)

            written = {identity: item.files for identity, item in zip(ids, prepared, strict=True)}
            self._apply(target, ACTIONS_BY_ORIGIN[origin], written, apply)
        return replaced

    def _apply(
        self,
        target: WritableFolder,
        action: str,
        files: Mapping[str, SkillFiles | None],
        apply: Callable[[], None],
    ) -> None:
        """Change user skills with the folder locked, and record it in the audit log."""
        self.before_write(files, self._actor, self._provenance)
        if self.file_audit is None:
            apply()
            return
        digests = {
            identity: (self._find_digest(identity), "" if new is None else digest_files(new))
            for identity, new in files.items()
        }
        change = AuditedChange(self._actor, self._action or action, digests)
        self.file_audit.run(change, apply, partial(self._recover_digest, target))

    def _recover_digest(self, target: WritableFolder, identity: str) -> str:
        """Delete leftovers of a killed process in a user skill, and return its digest."""
        if target.entry_kind(identity) is EntryKind.FOLDER:
            with suppress(OSError), target.open_folder(identity) as folder:
                folder.recover()
        return self._find_digest(identity)

    def _find_digest(self, identity: str) -> str:
        """Return the digest of a user skill; "" if it does not exist."""
        try:
            bundle = self.files(identity)
            return "" if bundle is None else bundle.digest()
        except (SkillhallError, OSError):
            return _UNREADABLE


def _rewrite_folder(
    target: WritableFolder, identity: str, bundle: Bundle | None, files: SkillFiles | None
) -> None:
    """Replace the files of a skill; None deletes it. Raises: OSError."""
    if files is None:
        target.remove_atomically(identity)
    elif bundle is None:
        target.create_folder(identity, files)
    elif (path := _find_only_change(bundle, files)) is not None:
        # Links and files beyond the limits are not part of a bundle. Writing one file leaves them
        # in place.
        with target.open_folder(identity) as folder:
            folder.write_file(path, files[path][0], folder.mode(path))
    else:
        target.replace_folder(identity, files)


def _write_folder(
    target: WritableFolder, identity: str, files: SkillFiles, *, is_new: bool
) -> None:
    """Create or replace the folder of a skill. Raises: Conflict, OSError."""
    if not is_new:
        target.replace_folder(identity, files)
        return
    try:
        target.create_folder(identity, files)
    except OSError:
        # Where the file system has no locks, another process may have created it.
        if target.entry_kind(identity) is not None:
            raise Conflict(identity) from None
        raise


def _find_only_change(present: Bundle, files: SkillFiles) -> str | None:
    """Return the path of the only changed file, if it is at the top level.

    Returns None in all other cases, including added or removed files.
    """
    if present.files.keys() != files.keys():
        return None
    changed = [path for path, (data, _) in files.items() if present.files[path].read() != data]
    return changed[0] if len(changed) == 1 and "/" not in changed[0] else None
