"""Skill store: the editable skills of a server, in folders or in a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skillhall._internal.installer.install_rules import NO_RULES, InstallRules
from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill_store.input_checks import (
    parse_skill_id,
    prepare_bundles,
    prepare_new_skill,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.catalog.live_catalog import LiveCatalog, LoadedCatalog
    from skillhall._internal.catalog.trust.trust_summary import SkillApproval
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill_store.input_checks import PreparedSkill, SkillSummary

    SkillFiles: TypeAlias = Mapping[str, tuple[bytes, int]]  # bytes and mode by path
    # Maps the present files by id to the new files, or None to delete a skill. A transaction may
    # call it twice.
    ComputeFiles: TypeAlias = Callable[
        [Mapping[str, Bundle | None]], Mapping[str, SkillFiles | None]
    ]

_S = TypeVar("_S", bound="SkillStore")

ALL_FILES_SCAN = LOCAL_SKILLS.scan_policy.with_hidden_files
ACTIONS_BY_ORIGIN = {"added": "skill.add", "imported": "skill.import"}
FOLDER_BY_SOURCE = {source: path for path, source in LOCAL_SKILLS.roots}


class ImportOrigin(NamedTuple):
    """Where imported skills come from: a source without credentials, and its commit."""

    source: str = ""
    commit: str = ""


WRITTEN_HERE = ImportOrigin()


class ImportReport(NamedTuple):
    """Imported skills, the ids of replaced skills, and all findings."""

    imported: tuple[SkillSummary, ...]
    replaced: tuple[str, ...]
    findings: tuple[JudgedFinding, ...]


def bind_actor(
    store: _S, actor: Actor, action: str = "", provenance: ImportOrigin = WRITTEN_HERE
) -> _S:
    """Return the same store for changes by an actor, which the audit log records.

    `action` is the name of the changes, if it does not follow from the method. Versions record
    the provenance.
    """
    bound = copy(store)
    bound._actor, bound._action = actor, action  # noqa: SLF001 - its own class
    bound._provenance = provenance  # noqa: SLF001 - its own class
    return bound


class SkillStore(ABC):
    """Interface of skill stores; the same contract tests run on every implementation."""

    location: str  # path that identifies the store on this machine
    is_in_database = False  # whether changes wait for a database
    _actor: Actor = SYSTEM_ACTOR
    _action: str = ""  # of rows in the audit log; "" depends on the method
    _provenance: ImportOrigin = WRITTEN_HERE
    live_catalog: LiveCatalog

    @abstractmethod
    def current(self) -> LoadedCatalog:
        """Return the current skills; the same object while nothing changes.

        Changes by this process are always included. If the folders are watched, changes by
        others may be missing for a moment.
        """

    def revision(self) -> str:
        """Return a string that changes when a skill is added, removed or edited."""
        return self.current().revision

    def watch(self, on_change: Callable[[], object]) -> None:
        """Detect changes in a thread, which calls `on_change`. Call `close` when done."""
        self.live_catalog.watch(on_change)

    def close(self) -> None:
        """Stop the thread. Idempotent."""
        self.live_catalog.close()

    def find_approval(self, id: str) -> SkillApproval | None:  # noqa: A002, ARG002 - see `MirroredStore`
        """Return who approved the served version of a skill; None if it was not reviewed."""
        return None

    def list_unshared_ids(self) -> Sequence[str]:
        """Return the ids of user skills in the run directory that are not served: none."""
        return ()

    @abstractmethod
    def catalog(self) -> Catalog:
        """Load system and user skills, consistent at one moment."""

    def add(
        self,
        id: str,  # noqa: A002 - the public name
        name: str,
        description: str,
        body: str = "",
        fields: Iterable[tuple[str, str]] = (),
    ) -> SkillSummary:
        """Create a user skill; `fields` are others of its frontmatter.

        Raises: UnsafePath, SkillRejected, EditRefused, Conflict, OSError, DatabaseUnavailable,
        DatabaseFull.
        """
        new = prepare_new_skill(parse_skill_id(id), name, description, body, fields)
        self._write_skills([new], "added", replace=False)
        return new.skill

    def import_(
        self,
        bundles: Bundle | Iterable[Bundle],
        id: str | None = None,  # noqa: A002 - the public name
        *,
        replace: bool = False,
        rules: InstallRules = NO_RULES,
    ) -> ImportReport:
        """Import bundles as user skills. All are checked before the first is written.

        Raises: same as `add`, ReadOnly, and errors from reading.
        """
        sources = (bundles,) if isinstance(bundles, Bundle) else tuple(bundles)
        prepared = prepare_bundles(sources, id, rules)
        replaced = self._write_skills(prepared, "imported", replace=replace)
        skills = tuple(
            item.skill._replace(id=replaced_id or item.skill.id)
            for item, replaced_id in zip(prepared, replaced, strict=True)
        )
        findings = tuple(judged for item in prepared for judged in item.findings)
        return ImportReport(skills, tuple(filter(None, replaced)), findings)

    @abstractmethod
    def _write_skills(
        self, prepared: Sequence[PreparedSkill], origin: str, *, replace: bool
    ) -> Sequence[str | None]:
        """Write the skills; return the replaced id of each, or None."""

    @abstractmethod
    def delete(self, id: str, *, shadowed: bool = False) -> None:  # noqa: A002 - the public name
        """Delete a user skill; set `shadowed` if and only if a system skill shadows it.

        Raises: ReadOnly, SkillNotFound, and as `add`.
        """

    @abstractmethod
    def files(self, id: str) -> Bundle | None:  # noqa: A002 - the public name
        """Return all files of a user skill; None if there is no such skill.

        Raises: UnsafePath, DatabaseUnavailable.
        """

    @abstractmethod
    def rewrite(self, ids: Sequence[str], compute_files: ComputeFiles) -> None:
        """Replace the files of user skills while no other writer can change them.

        Raises: as `compute_files`, and UnsafePath, OSError, DatabaseUnavailable, DatabaseFull.
        """
