"""Skill store: the editable skills of a server, in folders or in a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.folder_store import ImportReport
    from skillhall._internal.skill_store.input_checks import StoredSkill

    SkillFiles: TypeAlias = Mapping[str, tuple[bytes, int]]  # bytes and mode by path
    # Maps the present files by id to the new files, or None to delete a skill. A transaction may
    # call it twice.
    ComputeFiles: TypeAlias = Callable[
        [Mapping[str, Bundle | None]], Mapping[str, SkillFiles | None]
    ]


class SkillStore(Protocol):
    """Operations on the skills; one contract suite runs on every implementation."""

    @property
    def location(self) -> str:
        """Path that identifies the store on this machine."""

    @property
    def quick_revision(self) -> object:
        """Value that changes with each change known without polling; cheap to read."""

    def catalog(self) -> Catalog:
        """Load system and user skills, consistent at one moment."""

    def add(self, id: str, name: str, description: str, body: str = "") -> StoredSkill:  # noqa: A002 - the public name
        """Create a user skill.

        Raises: UnsafePath, SkillRejected, Conflict, OSError, DatabaseUnavailable, DatabaseFull.
        """

    def import_(
        self,
        bundles: Bundle | Iterable[Bundle],
        id: str | None = None,  # noqa: A002 - the public name
        *,
        replace: bool = False,
    ) -> ImportReport:
        """Import bundles as user skills. All are checked before the first is written.

        Raises: as `add`, and ReadOnly, and errors of reading.
        """

    def delete(self, id: str, *, shadowed: bool = False) -> None:  # noqa: A002 - the public name
        """Delete a user skill; one that a system skill shadows only if `shadowed` is set.

        Raises: ReadOnly, SkillNotFound, and as `add`.
        """

    def files(self, id: str) -> Bundle | None:  # noqa: A002 - the public name
        """Return all files of a user skill, or None.

        Raises: UnsafePath, DatabaseUnavailable.
        """

    def rewrite(self, ids: Sequence[str], compute_files: ComputeFiles) -> None:
        """Replace the files of user skills while no other writer can change them.

        Raises: as `compute_files`, and UnsafePath, OSError, DatabaseUnavailable, DatabaseFull.
        """

    def revision(self) -> str:
        """Return a string that changes when a skill is added, removed or edited."""
