"""From the text that names a source to the bundles it holds."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from skillhall._internal.fs.handles import Place, is_beneath, open_root, read_file
from skillhall._internal.net.addresses import AddressPolicy, address_policy
from skillhall._internal.net.fetch import fetch
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.scan_rules import MAX_DEPTH
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.frontmatter import MAX_SKILL_MD, SKILL_MD
from skillhall._internal.sources.archive.source import LIMITS, read_archive, read_files
from skillhall._internal.sources.folder.bundle_reader import in_memory, open_bundle, read_bundle
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.folder.walker import ScanContext, scan
from skillhall._internal.sources.git.source import GitAccess, as_git, has_git, read_git
from skillhall._internal.sources.git.token_scope import TokenScope, refuse_ssh
from skillhall._internal.sources.github.client import GitHubAccess
from skillhall._internal.sources.github.source import read_github
from skillhall._internal.sources.mcp.source import served_bundles
from skillhall._internal.sources.python_package import package_search_paths, read_package
from skillhall._internal.sources.ref import (
    ArchiveRef,
    GitHubRef,
    GitRef,
    LocalRef,
    McpRef,
    PackageRef,
    SourceRef,
    UrlRef,
    is_name,
    parse_reference,
)
from skillhall.errors import NoSkillThere, SkillFileNotFound, SourceRejected, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall._internal.settings import Settings

    Progress: TypeAlias = Callable[[str, int, int], None]  # what is done, how much, of how much

_MARKDOWN = ".md"
_NO_PLACES: Mapping[str, Place] = MappingProxyType({})
_WHAT_TO_NAME = "name a skill's folder, a folder of skills, or a zip or tar.gz file"


class Opened(NamedTuple):
    """A source, and the bundles it holds."""

    reference: SourceRef
    bundles: tuple[Bundle, ...]
    commit: str = ""  # of a repository
    stale: str = ""  # why this is an older copy, if it is one
    folder: str = ""  # of a source on this machine
    places: Mapping[str, Place] = _NO_PLACES  # of bundles that can change meanwhile, by folder

    def whole(self, bundle: Bundle) -> Bundle:
        """The bundle with its bytes, all of one moment. Raises: SkillhallError."""
        place = self.places.get(bundle.folder)
        if place is None:
            return in_memory(bundle)
        return replace(read_bundle(place, LENIENT.scan), folder=bundle.folder)

    def path_of(self, bundle: Bundle) -> str:
        """Where the bundle lies in the source, in words that find it there again."""
        if isinstance(self.reference, McpRef):
            return ""  # the reference of the bundle says it all
        if not self.folder:
            return bundle.folder if bundle.path is None else bundle.path
        path = os.path.relpath(bundle.folder, self.folder).replace(os.sep, "/")
        return "" if path == "." else path

    def reference_of(self, bundle: Bundle) -> SourceRef:
        """The source as a lock names it: of a repository all, of an MCP server the one skill."""
        if isinstance(self.reference, McpRef):
            return McpRef(self.reference.label, bundle.path or "")
        if isinstance(self.reference, GitHubRef | GitRef):
            return replace(self.reference, path="")
        return self.reference

    def bundle_at(self, path: str) -> Bundle | None:
        """The bundle that lies there."""
        return next((one for one in self.bundles if self.path_of(one) == path), None)


def open_source(text: str, settings: Settings, progress: Progress | None = None) -> Opened:
    """The bundles in the folder, archive, repository, package or server that `text` names.

    A folder that exists wins over a repository on GitHub of the same spelling.
    Raises: SourceRejected, SourceNotFound, NoSkillThere, SkillNotFound, ArchiveRejected, TooLarge,
    SourceUnavailable, RateLimited, UnknownMcpServer, SkillsNotServed.
    """
    return open_reference(find_reference(text, settings), settings, progress)


def find_reference(text: str, settings: Settings) -> SourceRef:
    """What the text names on this machine: an existing folder, else as `parse_reference` reads it.

    Raises: SourceRejected.
    """
    if is_name(text) and os.path.isdir(_absolute(text, settings)):
        return LocalRef(f"./{text.rstrip('/')}")
    return parse_reference(text, loopback_http=bool(settings.allowed_networks))


def other_meaning(text: str, reference: SourceRef) -> str:
    """How to name the repository on GitHub, if `text` was taken for a folder; else nothing."""
    if not isinstance(reference, LocalRef) or not is_name(text):
        return ""
    try:
        is_repository = isinstance(parse_reference(text), GitHubRef)
    except SourceRejected:
        return ""
    hint = f"{text!r} is a folder here; write github:{text} for the repository on GitHub"
    return hint if is_repository else ""


def open_reference(
    reference: SourceRef, settings: Settings, progress: Progress | None = None
) -> Opened:
    """The same for a text that was parsed already."""
    if isinstance(reference, LocalRef):
        path = _absolute(reference.path, settings)
        places = _places(path, reference.text, follow_links=settings.follow_links)
        return _opened_folder(reference, path, places)
    if isinstance(reference, ArchiveRef):
        path = _absolute(reference.path, settings)
        return Opened(reference, read_archive(_read_local(path), os.path.basename(path)))
    if isinstance(reference, UrlRef):
        step = _step("Downloading", progress)
        policy = address_policy(settings.allowed_networks)
        return Opened(reference, _from_url(reference.url, policy, step))
    if isinstance(reference, PackageRef):
        found = read_package(reference, package_search_paths(settings))
        return Opened(reference, found.bundles)
    if isinstance(reference, McpRef):
        return Opened(reference, _from_server(reference, settings))
    return _from_repository(reference, settings, progress)


def open_client_source(text: str, settings: Settings) -> Opened:
    """The bundles in a repository or web address that a client of a server names.

    Nothing of the server's machine can be named, and the operator's tokens and keys are used for
    the operator's repositories alone.
    Raises: SourceRejected, ConfigInvalid, and as `open_source`.
    """
    reference = parse_reference(text, loopback_http=bool(settings.allowed_networks))
    if isinstance(reference, UrlRef):
        return open_reference(reference, settings)
    if not isinstance(reference, GitHubRef | GitRef):
        problem = "a server takes skills of repositories and web addresses only"
        raise SourceRejected("path", text, problem, "upload a file or an archive instead")
    url = as_git(reference, settings.github_url).url
    refuse_ssh(url, text)
    is_ours = TokenScope.of(settings).includes(url)
    return _from_repository(reference, settings, None, with_credentials=is_ours)


def _from_repository(
    reference: GitHubRef | GitRef,
    settings: Settings,
    progress: Progress | None,
    *,
    with_credentials: bool = True,
) -> Opened:
    policy = address_policy(settings.allowed_networks)
    if isinstance(reference, GitRef) or (settings.use_git and has_git()):
        git = as_git(reference, settings.github_url)
        access = GitAccess(
            settings.cache_directory,
            policy,
            settings.tokens,
            ssh_agent=settings.variables.get("SSH_AUTH_SOCK", ""),
            progress=progress,
            github=urlsplit(settings.github_url).netloc.lower(),
        )
        usable = access if with_credentials else access.without_credentials()
        found = read_git(git, usable, text=reference.text)
    else:
        github = GitHubAccess(
            settings.github_api_url,
            policy,
            settings.tokens if with_credentials else {},
            settings.cache_directory,
            progress=_step("Downloading", progress),
        )
        found = read_github(reference, github, text=reference.text)
    meant = next((one for one in reference.readings() if one.ref == found.ref), reference)
    return Opened(meant, found.bundles, found.commit, found.stale)


def _from_server(reference: McpRef, settings: Settings) -> tuple[Bundle, ...]:
    bundles = served_bundles(reference, settings)
    if not bundles:
        hint = f"it may have skills that it does not list: name one, as in {reference.text}/name"
        raise NoSkillThere(reference.text, hint)
    return bundles


def bundle_of_files(files: Mapping[str, bytes], name: str) -> Bundle:
    """The one skill among loose files, as a browser's folder picker gives them: bytes by path.

    A folder around all of them names the skill; without one, `name` does. No file is a program.
    Raises: ArchiveRejected, TooLarge, SourceRejected.
    """
    bundles = read_files([*files.items()], name)
    if len(bundles) > 1:
        folders = ", ".join(bundle.folder for bundle in bundles)
        raise SourceRejected("path", name, f"it holds several skills: {folders}", "choose one")
    return bundles[0]


def bundles_of_files(files: Sequence[tuple[str, bytes]]) -> tuple[Bundle, ...]:
    """All skills among loose files with their paths. Raises: ArchiveRejected, TooLarge."""
    bundles = read_files(files, "the files")
    # Files without a folder around them say nothing about its name; the frontmatter will.
    return tuple(bundle if bundle.path else replace(bundle, folder="") for bundle in bundles)


def open_upload(files: Sequence[tuple[str, bytes]]) -> tuple[Bundle, ...]:
    """The skills in what a browser sends: a SKILL.md, an archive, or the files of a folder.

    Raises: ArchiveRejected, TooLarge, SourceRejected.
    """
    if not files:
        raise SourceRejected("path", "the upload", "it holds no file", _WHAT_TO_NAME)
    name, data = files[0]
    if len(files) > 1 or "/" in name:
        return bundles_of_files(files)
    return bundles_in_file(data, name)


def _absolute(path: str, settings: Settings) -> str:
    return Root.of(path, settings.working_directory).path


def _opened_folder(reference: LocalRef, path: str, places: Mapping[str, Place]) -> Opened:
    bundles = tuple(
        replace(open_bundle(place, LENIENT.scan), folder=folder) for folder, place in places.items()
    )
    return Opened(reference, bundles, folder=path, places=places)


def _places(path: str, text: str, *, follow_links: bool) -> dict[str, Place]:
    """The folder itself if it is a skill, else all below it that may be skills, by their paths."""
    if not os.path.lexists(path):
        raise SkillFileNotFound(text, _WHAT_TO_NAME)
    if not os.path.isdir(path):
        raise SourceRejected("path", text, "it is neither a folder nor an archive", _WHAT_TO_NAME)
    root = Root(path, follow_links=follow_links)
    context = ScanContext(LENIENT.keys, (root.real_path,), {}, sign=False)
    # As deep as an archive of the same folder would be read.
    policy = LENIENT.scan.searching(MAX_DEPTH)
    candidates = sorted(scan(root, policy, context).candidates, key=lambda c: c.folder)
    places: dict[str, Place] = {}
    for found in candidates:
        if found.file:
            place = found.real or Place(path, found.folder)
            is_outside = found.real is not None and not is_beneath(place.path, root.real_path)
            # What a link brings in from outside is called by the link, which is in the source.
            places[os.path.join(path, found.folder) if is_outside else place.path] = place
    if not places:
        hint = other_meaning(text.removeprefix("./"), LocalRef(text)) or _WHAT_TO_NAME
        raise SourceRejected("path", text, f"No {SKILL_MD} found", hint)
    return places


def _read_local(path: str) -> bytes:
    try:
        folder = open_root(os.path.dirname(path))
    except OSError:
        raise SkillFileNotFound(os.path.basename(path)) from None
    try:
        return read_file(folder, os.path.basename(path), LIMITS.total)
    except OSError:
        raise SkillFileNotFound(os.path.basename(path)) from None
    finally:
        folder.close()


def _step(what: str, progress: Progress | None) -> Callable[[int, int], None] | None:
    return None if progress is None else partial(progress, what)


def _from_url(
    url: str, policy: AddressPolicy, progress: Callable[[int, int], None] | None
) -> tuple[Bundle, ...]:
    at_most = MAX_SKILL_MD if url.lower().endswith(_MARKDOWN) else LIMITS.total
    fetched = fetch(url, at_most=at_most, policy=policy, progress=progress)
    return bundles_in_file(fetched.data, os.path.basename(fetched.url))


def bundles_in_file(data: bytes, name: str) -> tuple[Bundle, ...]:
    """The skills in one file: an archive, or a SKILL.md under any name that ends so.

    Raises: ArchiveRejected, TooLarge.
    """
    if not name.lower().endswith(_MARKDOWN):
        return read_archive(data, name)
    if len(data) > MAX_SKILL_MD:
        raise TooLarge(name, MAX_SKILL_MD)
    path = RelativePath.parse(SKILL_MD)
    file = SkillFile(path, len(data), executable=False, read=lambda: data)
    # A file alone says nothing about its folder; its frontmatter will.
    return (Bundle("", {SKILL_MD: file}),)
