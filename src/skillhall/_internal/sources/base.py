"""Interface of all kinds of sources: references and opened sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from skillhall._internal.net.addresses import AddressPolicy, build_address_policy
from skillhall._internal.settings import GITHUB_URL
from skillhall._internal.sources.folder.bundle_reader import load_into_memory
from skillhall._internal.sources.source_text import is_commit_id, is_valid_ref

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.repo_layout import RepositorySkills

    Progress: TypeAlias = Callable[[str, int, int], None]  # step, completed, total


class SourceContext(NamedTuple):
    """Settings, progress callback and permissions for opening a source."""

    settings: Settings
    progress: Progress | None = None
    with_credentials: bool = True  # whether tokens and ssh keys of the operator may be used
    build_folder_hint: Callable[[], str] = str  # returns the hint for a folder without skills

    @property
    def address_policy(self) -> AddressPolicy:
        """IP addresses that may be contacted. Raises: ConfigInvalid."""
        return build_address_policy(self.settings.allowed_networks, self.settings.proxies)

    def get_progress(self, step: str) -> Callable[[int, int], None] | None:
        """Return the progress callback for a step; `None` if progress is not reported."""
        return None if self.progress is None else partial(self.progress, step)


class NpxSource(NamedTuple):
    """How the lock files of `npx skills` record a source."""

    source: str
    source_type: str  # github, gitlab, git or local
    url: str
    ref: str = ""


class Ref(ABC):
    """Source reference: names a source. Each kind is a frozen dataclass.

    Creating a reference opens nothing, and its module must be cheap to import: commands that only
    read a lock file parse the references in it. Therefore network and process code is imported in
    `open`: importing it at module level would add 59 ms of CPU to the 155 ms that
    `skillhall remove` takes to start.
    """

    __slots__ = ()

    is_remote: ClassVar[bool] = False  # a server may open it for a client
    left_out_hidden_files: ClassVar[bool] = False  # lock files may have been written then
    needs_approval: ClassVar[bool] = False  # a changed skill is not installed without a review

    @property
    @abstractmethod
    def text(self) -> str:
        """The text that parses to this reference; lock files contain it."""

    @abstractmethod
    def open(self, context: SourceContext) -> OpenedSource:
        """Open the source. Raises: as `open_source`."""

    @property
    def is_pinned(self) -> bool:
        """Whether the reference names an immutable version."""
        return False

    def is_tag(self, context: SourceContext) -> bool:  # noqa: ARG002 - only repositories have tags
        """Whether the reference names a tag of a repository. Raises: as `open`."""
        return False

    @property
    def repository(self) -> RepositoryRef | None:
        """The reference itself if it names a git repository, else `None`."""
        return None

    @property
    def source_name(self) -> str:
        """The text without what selects a version or a skill, for policies."""
        return self.text

    @property
    def server_url(self) -> str:
        """URL of the server that may publish revocations of the skill, else ""."""
        return ""

    @property
    def npx_source(self) -> NpxSource | None:
        """The record for `npx skills`; `None` if that tool does not support this kind."""
        return None

    def at(self, path: str, ref: str) -> Ref:  # noqa: ARG002 - only repositories have both
        """Return a copy with this path and ref, if the reference names a repository.

        An empty `ref` keeps the current one. References of other kinds return themselves.
        """
        return self

    def for_bundle(self, bundle: Bundle) -> tuple[Ref, str]:
        """Return the reference and path that a lock file records for the bundle."""
        return self, bundle.folder if bundle.path is None else bundle.path

    def to_portable_text(self, root: str, base: str) -> str:  # noqa: ARG002 - for local paths
        """Return the text in a form that works in every checkout of the project.

        `root` is the project folder; relative paths start at `base`.
        """
        return self.text


class RepositoryRef(Ref):
    """Folder of a git repository; an empty `path` is the root, an empty `ref` is HEAD."""

    __slots__ = ()

    is_remote = True
    path: str
    ref: str

    @abstractmethod
    def git_url(self, github_url: str = GITHUB_URL) -> str:
        """Return the URL for git; `github_url` is the base URL of GitHub repositories."""

    @abstractmethod
    def at(self, path: str, ref: str) -> Self:
        """Return a copy with this path and ref; an empty ref keeps the current one."""

    @abstractmethod
    def is_tag(self, context: SourceContext) -> bool:
        """Ask the host whether the ref is a tag. Raises: as `open`."""

    @property
    def is_pinned(self) -> bool:
        """Whether the reference names a commit."""
        return is_commit_id(self.ref)

    @property
    def repository(self) -> Self:
        """The reference itself."""
        return self

    def for_bundle(self, bundle: Bundle) -> tuple[Self, str]:
        """Return the repository, and the path of the skill in it."""
        _, path = super().for_bundle(bundle)
        return self.at("", self.ref), path

    def interpretations(self) -> Iterator[Self]:
        """Yield every possible split into ref and path, starting with this one.

        In the URL of a page, `tree/a/b/c` may be the ref `a` and path `b/c`, or the ref `a/b`.
        """
        yield self
        first, _, rest = self.path.partition("/")
        longer = f"{self.ref}/{first}"
        if self.ref and first and not rest.startswith("-") and is_valid_ref(longer):
            yield from self.at(rest, longer).interpretations()

    def to_opened_source(self, skills: RepositorySkills) -> OpenedSource:
        """Return the opened source with these skills from the repository."""
        # Only reading the repository shows which interpretation has a ref that exists.
        candidates = (ref for ref in self.interpretations() if ref.ref == skills.ref)
        return OpenedSource(next(candidates, self), skills.bundles, skills.commit, skills.stale)


class OpenedSource(NamedTuple):
    """Opened source with its bundles."""

    reference: Ref
    bundles: tuple[Bundle, ...]
    commit: str = ""  # of a repository, or the digest of a package; "" for other sources
    stale: str = ""  # why a cached version is served, if one is
    # Reads all files of a bundle as a consistent version. Raises: SkillhallError.
    load_bundle: Callable[[Bundle], Bundle] = load_into_memory

    def get_bundle_path(self, bundle: Bundle) -> str:
        """Return the path of the bundle in the source; `find_bundle` accepts it."""
        return self.reference.for_bundle(bundle)[1]

    def find_bundle(self, path: str) -> Bundle | None:
        """Return the bundle at the path, if there is one."""
        return next((b for b in self.bundles if self.get_bundle_path(b) == path), None)
