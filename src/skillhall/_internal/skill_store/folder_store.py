"""Local skills: the system and user skills of one run directory, and the verbs on them."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.fingerprint import take_signature
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.fs.handles import Kind
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.selection import shown_to_models
from skillhall._internal.render.local_listing import render_local
from skillhall._internal.skill.bundle import Bundle, RelativePath
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.skill_store import shipped_skills as shipped
from skillhall._internal.skill_store.folder_revision import FolderRevision
from skillhall._internal.skill_store.input_checks import (
    SYSTEM,
    USER,
    LocalSkill,
    checked_id,
    names_in,
    place_of,
    prepare_all,
    prepare_new,
    refuse_other_copy,
)
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import Conflict, ReadOnly, SkillFileNotFound, SkillNotFound, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.skill_store.input_checks import Prepared
    from skillhall._internal.skill_store.shipped_skills import InstallReport
    from skillhall._internal.skill_store.store import Decide, Files

EVERY_FILE = LOCAL_SKILLS.scan._replace(hidden_in_bundles=True)
_FOLDERS = {source: path for path, source in LOCAL_SKILLS.roots}


class LocalListing(NamedTuple):
    """The skills of a run directory in order, system skills first, and what was noticed."""

    items: tuple[LocalSkill, ...]
    findings: tuple[Judged, ...]


class ImportReport(NamedTuple):
    """What was imported, which ids had a skill before, and everything that was noticed."""

    imported: tuple[LocalSkill, ...]
    replaced: tuple[str, ...]
    findings: tuple[Judged, ...]


class LocalSkills:
    """The skills below `.agents` in a run directory; nothing is kept but the last revision.

    With `follow_links`, skill folders may be links to folders outside of the run directory. Such
    skills are read, never written.
    """

    def __init__(
        self, run_directory: str | os.PathLike[str], *, follow_links: bool = False
    ) -> None:
        self.run_directory = os.path.abspath(os.path.expanduser(run_directory))
        self.place = os.path.join(self.run_directory, ".agents")
        self._writes = 0  # how often this process opened the folders to write
        # A link that is there from the start is the user's choice, and is read. One that appears
        # later is not followed.
        self._linked = frozenset(one for one in _FOLDERS if self._goes_through_link(one))
        self._follow_links = follow_links
        folders = [self._path(one) for one in _FOLDERS]
        self._revision = FolderRevision(self.run_directory, folders, follow_links=follow_links)

    @property
    def pulse(self) -> object:
        """Another one after each change by this process, and as soon as a folder came or went."""
        return self._writes, [take_signature(self._path(source)) for source in _FOLDERS]

    def catalog(self) -> Catalog:
        """Everything about both folders, as they are at this moment."""
        return load_roots(self._roots(), LOCAL_SKILLS)

    def list(self) -> LocalListing:
        """Every skill; a user skill with the id of a system skill is a finding instead."""
        catalog = self.catalog()
        items = (LocalSkill(s.id, s.name, s.description, s.source, s.hidden) for s in catalog)
        return LocalListing(tuple(items), catalog.findings)

    def prompt_block(self) -> str:
        """What a model is told about the skills; "" if there are none."""
        return render_local(item for item in self.list().items if shown_to_models(item))

    def add(self, id: str, name: str, description: str, body: str = "") -> LocalSkill:  # noqa: A002 - what everybody calls it
        """Make a new user skill. Raises: UnsafePath, SkillRejected, Conflict, OSError."""
        new = prepare_new(checked_id(id), name, description, body)
        with self._opened(USER, make=True) as target:
            self._place(target, new, replace=False)
            _write(target, new, None)
        return new.item

    def import_(
        self,
        bundles: Bundle | Iterable[Bundle],
        id: str | None = None,  # noqa: A002 - what everybody calls it
        *,
        replace: bool = False,
    ) -> ImportReport:
        """Take bundles in as user skills: all are checked before the first is written.

        Raises: SkillRejected, UnsafePath, Conflict, ReadOnly, OSError, and what reading raises.
        """
        given = (bundles,) if isinstance(bundles, Bundle) else tuple(bundles)
        prepared = prepare_all(given, id)
        with self._opened(USER, make=True) as target:
            places = [self._place(target, one, replace=replace) for one in prepared]
            items = [_write(target, *pair) for pair in zip(prepared, places, strict=True)]
        findings = tuple(judged for one in prepared for judged in one.findings)
        return ImportReport(tuple(items), tuple(filter(None, places)), findings)

    def delete(self, id: str, *, shadowed: bool = False) -> None:  # noqa: A002 - what everybody calls it
        """Remove a user skill; one that a system skill shadows only if `shadowed` asks for it.

        Raises: ReadOnly, SkillNotFound, UnsafePath, OSError.
        """
        self._sweep(USER)
        catalog = self.catalog()
        refuse_other_copy(id, self._deletable(catalog), catalog, shadowed=shadowed)
        if id not in self._deletable(catalog):
            if any(skill.id == id for skill in catalog):
                raise ReadOnly(id)
            raise SkillNotFound(id, get_close_matches(id, self._deletable(catalog)))
        with self._opened(USER) as target:
            if target.kind(id) is None:  # somebody was faster
                raise SkillNotFound(id)
            target.discard(id)

    def files(self, id: str) -> Bundle | None:  # noqa: A002 - what everybody calls it
        """Everything below a user skill's folder; None if it is not there. Raises: UnsafePath."""
        try:
            folder = self._root(USER).place.child(RelativePath.parse(id).text)
            return open_bundle(folder, EVERY_FILE)
        except SkillFileNotFound:
            return None

    def rewrite(self, ids: Sequence[str], decide: Decide) -> None:
        """Put other files where user skills stand, while nobody else changes them.

        Raises: what `decide` raises, UnsafePath, OSError.
        """
        with self._opened(USER, make=True) as target:
            present = {identity: self.files(identity) for identity in ids}
            for identity, files in decide(present).items():
                _rewrite(target, identity, present[identity], files)

    def sweep(self) -> None:
        """Clear up what killed processes left behind, in folders that can be written."""
        for source in _FOLDERS:
            with suppress(OSError):
                self._sweep(source)

    def install_system_skills(self) -> InstallReport:
        """Bring the skills that Skillhall ships up to date. Raises: UnsafePath, OSError."""
        with self._opened(SYSTEM, make=True) as target:
            return shipped.install(target, self._path(SYSTEM))

    def revision(self) -> str:
        """A text that is another one as soon as a skill came, went or was edited."""
        return self._revision.text()

    def _sweep(self, source: str) -> None:
        """Opening a folder clears it up; one behind a link is not ours to clear."""
        if os.path.isdir(self._path(source)):
            with suppress(UnsafePath), self._opened(source):
                pass

    def _roots(self) -> tuple[Root, ...]:
        return tuple(map(self._root, _FOLDERS))

    def _root(self, source: str) -> Root:
        base = "" if source in self._linked else self.run_directory
        return Root(
            self._path(source),
            source,
            expected=False,
            follow_links=self._follow_links,
            base=base,
        )

    def _goes_through_link(self, source: str) -> bool:
        path = self.run_directory
        for name in _FOLDERS[source].split("/"):
            path = os.path.join(path, name)
            if os.path.islink(path):
                return True
        return False

    def _path(self, source: str) -> str:
        return os.path.join(self.run_directory, *_FOLDERS[source].split("/"))

    @contextmanager
    def _opened(self, source: str, *, make: bool = False) -> Iterator[WritableFolder]:
        """One of the two folders: open, locked, and cleared up. Raises: UnsafePath, OSError."""
        with ExitStack() as held:
            folder = held.enter_context(WritableFolder(self.run_directory))
            for name in _FOLDERS[source].split("/"):
                if folder.kind(name) is Kind.LINK:
                    raise UnsafePath(_FOLDERS[source], f"{name!r} is a link; nothing is written")
                parent, is_new = folder, folder.kind(name) is None
                folder = held.enter_context(parent.folder(name, make=make))
                if is_new:
                    parent.sync()
            held.enter_context(folder.locked())
            folder.recover()
            try:
                yield folder
            finally:
                self._writes += 1

    def _place(self, target: WritableFolder, one: Prepared, *, replace: bool) -> str | None:
        """The folder that `one` replaces, if it may. Raises: Conflict, ReadOnly."""
        return place_of(one.item.id, target.names(), self._system_ids(), replace=replace)

    def _system_ids(self) -> tuple[str, ...]:
        return names_in(self._path(SYSTEM))

    def _deletable(self, catalog: Catalog) -> set[str]:
        """The ids of user skills, also of shadowed and of broken ones."""
        shadowed = (lost.skill for lost in catalog.shadowed)
        ids = {skill.id for skill in (*catalog, *shadowed) if skill.source == USER}
        broken = (one for one in catalog.rejected if is_skill_md(os.path.basename(one.location)))
        return ids | {
            one.id for one in broken if one.location.startswith(self._path(USER) + os.sep)
        }


def _put(target: WritableFolder, one: Prepared) -> None:
    try:
        target.put_folder(one.item.id, one.files)
    except OSError:
        if target.kind(one.item.id) is not None:  # somebody was faster, where nothing can be locked
            raise Conflict(one.item.id) from None
        raise


def _write(target: WritableFolder, one: Prepared, place: str | None) -> LocalSkill:
    if place is None:
        _put(target, one)
        return one.item
    target.swap_folder(place, one.files)
    return one.item._replace(id=place)


def _rewrite(
    target: WritableFolder, identity: str, present: Bundle | None, files: Files | None
) -> None:
    if files is None:
        target.discard(identity)
    elif present is None:
        target.put_folder(identity, files)
    elif (alone := _only_change(present, files)) is not None:
        # Links, and files beyond the limits, are no part of a bundle; they stay where they are.
        with target.folder(identity) as folder:
            folder.put(alone, files[alone][0], folder.mode(alone))
    else:
        target.swap_folder(identity, files)


def _only_change(present: Bundle, files: Files) -> str | None:
    """The file directly in the folder whose bytes alone are others, if there is just one."""
    if present.files.keys() != files.keys():
        return None
    changed = [path for path, (data, _) in files.items() if present.files[path].read() != data]
    return changed[0] if len(changed) == 1 and "/" not in changed[0] else None
