"""The skills that a server keeps itself, wherever it keeps them: folders, or a database."""

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
    # Given what stands there by id, gives what shall stand there, or nothing. It checks what it
    # gives, and may be called twice.
    ComputeFiles: TypeAlias = Callable[
        [Mapping[str, Bundle | None]], Mapping[str, SkillFiles | None]
    ]


class SkillStore(Protocol):
    """The verbs on them; one contract suite runs on every implementation."""

    @property
    def location(self) -> str:
        """What they are known by on this machine."""

    @property
    def quick_revision(self) -> object:
        """Another one after each change that is known of without a look; it costs nothing."""

    def catalog(self) -> Catalog:
        """System and user skills, all of one moment."""

    def add(self, id: str, name: str, description: str, body: str = "") -> StoredSkill:  # noqa: A002 - what everybody calls it
        """Make a new user skill.

        Raises: UnsafePath, SkillRejected, Conflict, OSError, DatabaseUnavailable, DatabaseFull.
        """

    def import_(
        self,
        bundles: Bundle | Iterable[Bundle],
        id: str | None = None,  # noqa: A002 - what everybody calls it
        *,
        replace: bool = False,
    ) -> ImportReport:
        """Take bundles in as user skills: all are checked before the first is written.

        Raises: as `add`, and ReadOnly, and what reading raises.
        """

    def delete(self, id: str, *, shadowed: bool = False) -> None:  # noqa: A002 - what everybody calls it
        """Remove a user skill; one that a system skill shadows only if `shadowed` asks for it.

        Raises: ReadOnly, SkillNotFound, and as `add`.
        """

    def files(self, id: str) -> Bundle | None:  # noqa: A002 - what everybody calls it
        """All files of a user skill; None if it is not there.

        Raises: UnsafePath, DatabaseUnavailable.
        """

    def rewrite(self, ids: Sequence[str], compute_files: ComputeFiles) -> None:
        """Put other files where user skills stand, while nobody else changes them.

        Raises: what `decide` raises, UnsafePath, OSError, DatabaseUnavailable, DatabaseFull.
        """

    def revision(self) -> str:
        """A text that is another one as soon as a skill came, went or was edited."""
