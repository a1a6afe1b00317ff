"""From the text that names a source to the bundles it holds."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from skillhall._internal.fs.handles import FolderHandle, is_inside, open_root, read_file
from skillhall._internal.net.addresses import AddressPolicy, build_address_policy
from skillhall._internal.net.fetch import fetch
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.scan_rules import MAX_DEPTH
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.frontmatter import MAX_SKILL_MD_BYTES, SKILL_MD
from skillhall._internal.sources.archive.source import (
    DEFAULT_ARCHIVE_LIMITS,
    read_archive,
    read_loose_files,
)
from skillhall._internal.sources.folder.bundle_reader import (
    load_into_memory,
    open_bundle,
    read_bundle,
)
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.folder.walker import ScanContext, scan_root
from skillhall._internal.sources.git.source import GitAccess, is_git_available, read_git, to_git_ref
from skillhall._internal.sources.git.token_scope import TokenScope, reject_ssh
from skillhall._internal.sources.github.client import GitHubAccess
from skillhall._internal.sources.github.source import read_github
from skillhall._internal.sources.mcp.source import read_mcp_bundles
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
    is_relative_name,
    parse_source_ref,
)
from skillhall.errors import NoSkillThere, SkillFileNotFound, SourceRejected, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillhall._internal.settings import Settings

    Progress: TypeAlias = Callable[[str, int, int], None]  # what is done, how much, of how much

_MARKDOWN_SUFFIX = ".md"
_NO_FOLDER_HANDLES: Mapping[str, FolderHandle] = MappingProxyType({})
_SOURCE_HINT = "name a skill's folder, a folder of skills, or a zip or tar.gz file"


class OpenedSource(NamedTuple):
    """A source, and the bundles it holds."""

    reference: SourceRef
    bundles: tuple[Bundle, ...]
    commit: str = ""  # of a repository
    stale: str = ""  # why this is an older copy, if it is one
    folder: str = ""  # of a source on this machine
    folder_handles: Mapping[str, FolderHandle] = (
        _NO_FOLDER_HANDLES  # of bundles that can change meanwhile, by folder
    )

    def load_bundle(self, bundle: Bundle) -> Bundle:
        """The bundle with its bytes, all of one moment. Raises: SkillhallError."""
        place = self.folder_handles.get(bundle.folder)
        if place is None:
            return load_into_memory(bundle)
        return replace(read_bundle(place, LENIENT.scan_policy), folder=bundle.folder)

    def get_bundle_path(self, bundle: Bundle) -> str:
        """Where the bundle lies in the source, in words that find it there again."""
        if isinstance(self.reference, McpRef):
            return ""  # the reference of the bundle says it all
        if not self.folder:
            return bundle.folder if bundle.path is None else bundle.path
        path = os.path.relpath(bundle.folder, self.folder).replace(os.sep, "/")
        return "" if path == "." else path

    def get_bundle_reference(self, bundle: Bundle) -> SourceRef:
        """The source as a lock names it: of a repository all, of an MCP server the one skill."""
        if isinstance(self.reference, McpRef):
            return McpRef(self.reference.label, bundle.path or "")
        if isinstance(self.reference, GitHubRef | GitRef):
            return replace(self.reference, path="")
        return self.reference

    def find_bundle(self, path: str) -> Bundle | None:
        """The bundle that lies there."""
        return next((one for one in self.bundles if self.get_bundle_path(one) == path), None)


def open_source(text: str, settings: Settings, progress: Progress | None = None) -> OpenedSource:
    """The bundles in the folder, archive, repository, package or server that `text` names.

    A folder that exists wins over a repository on GitHub of the same spelling.
    Raises: SourceRejected, SourceNotFound, NoSkillThere, SkillNotFound, ArchiveRejected, TooLarge,
    SourceUnavailable, RateLimited, UnknownMcpServer, SkillsNotServed.
    """
    return open_reference(resolve_reference(text, settings), settings, progress)


def resolve_reference(text: str, settings: Settings) -> SourceRef:
    """What the text names on this machine: an existing folder, else as `parse_reference` reads it.

    Raises: SourceRejected.
    """
    if is_relative_name(text) and os.path.isdir(_resolve_path(text, settings)):
        return LocalRef(f"./{text.rstrip('/')}")
    return parse_source_ref(text, allow_loopback_http=bool(settings.allowed_networks))


def build_github_hint(text: str, reference: SourceRef) -> str:
    """How to name the repository on GitHub, if `text` was taken for a folder; else nothing."""
    if not isinstance(reference, LocalRef) or not is_relative_name(text):
        return ""
    try:
        is_repository = isinstance(parse_source_ref(text), GitHubRef)
    except SourceRejected:
        return ""
    hint = f"{text!r} is a folder here; write github:{text} for the repository on GitHub"
    return hint if is_repository else ""


def open_reference(
    reference: SourceRef, settings: Settings, progress: Progress | None = None
) -> OpenedSource:
    """The same for a text that was parsed already."""
    if isinstance(reference, LocalRef):
        path = _resolve_path(reference.path, settings)
        places = _find_skill_folders(path, reference.text, follow_links=settings.follow_links)
        return _open_folder(reference, path, places)
    if isinstance(reference, ArchiveRef):
        path = _resolve_path(reference.path, settings)
        return OpenedSource(reference, read_archive(_read_local_file(path), os.path.basename(path)))
    if isinstance(reference, UrlRef):
        step = _bind_progress_step("Downloading", progress)
        policy = build_address_policy(settings.allowed_networks)
        return OpenedSource(reference, _open_url(reference.url, policy, step))
    if isinstance(reference, PackageRef):
        found = read_package(reference, package_search_paths(settings))
        return OpenedSource(reference, found.bundles)
    if isinstance(reference, McpRef):
        return OpenedSource(reference, _open_mcp_server(reference, settings))
    return _open_repository(reference, settings, progress)


def open_client_source(text: str, settings: Settings) -> OpenedSource:
    """The bundles in a repository or web address that a client of a server names.

    Nothing of the server's machine can be named, and the operator's tokens and keys are used for
    the operator's repositories alone.
    Raises: SourceRejected, ConfigInvalid, and as `open_source`.
    """
    reference = parse_source_ref(text, allow_loopback_http=bool(settings.allowed_networks))
    if isinstance(reference, UrlRef):
        return open_reference(reference, settings)
    if not isinstance(reference, GitHubRef | GitRef):
        problem = "a server takes skills of repositories and web addresses only"
        raise SourceRejected("path", text, problem, "upload a file or an archive instead")
    url = to_git_ref(reference, settings.github_url).url
    reject_ssh(url, text)
    is_ours = TokenScope.from_settings(settings).includes(url)
    return _open_repository(reference, settings, None, with_credentials=is_ours)


def _open_repository(
    reference: GitHubRef | GitRef,
    settings: Settings,
    progress: Progress | None,
    *,
    with_credentials: bool = True,
) -> OpenedSource:
    policy = build_address_policy(settings.allowed_networks)
    if isinstance(reference, GitRef) or (settings.use_git and is_git_available()):
        git = to_git_ref(reference, settings.github_url)
        access = GitAccess(
            settings.cache_directory,
            policy,
            settings.tokens,
            ssh_agent_socket=settings.variables.get("SSH_AUTH_SOCK", ""),
            progress=progress,
            github_host=urlsplit(settings.github_url).netloc.lower(),
        )
        usable = access if with_credentials else access.without_credentials()
        found = read_git(git, usable, source_text=reference.text)
    else:
        github = GitHubAccess(
            settings.github_api_url,
            policy,
            settings.tokens if with_credentials else {},
            settings.cache_directory,
            progress=_bind_progress_step("Downloading", progress),
        )
        found = read_github(reference, github, source_text=reference.text)
    meant = next((one for one in reference.interpretations() if one.ref == found.ref), reference)
    return OpenedSource(meant, found.bundles, found.commit, found.stale)


def _open_mcp_server(reference: McpRef, settings: Settings) -> tuple[Bundle, ...]:
    bundles = read_mcp_bundles(reference, settings)
    if not bundles:
        hint = f"it may have skills that it does not list: name one, as in {reference.text}/name"
        raise NoSkillThere(reference.text, hint)
    return bundles


def build_single_bundle(files: Mapping[str, bytes], name: str) -> Bundle:
    """The one skill among loose files, as a browser's folder picker gives them: bytes by path.

    A folder around all of them names the skill; without one, `name` does. No file is a program.
    Raises: ArchiveRejected, TooLarge, SourceRejected.
    """
    bundles = read_loose_files([*files.items()], name)
    if len(bundles) > 1:
        folders = ", ".join(bundle.folder for bundle in bundles)
        raise SourceRejected("path", name, f"it holds several skills: {folders}", "choose one")
    return bundles[0]


def build_bundles(files: Sequence[tuple[str, bytes]]) -> tuple[Bundle, ...]:
    """All skills among loose files with their paths. Raises: ArchiveRejected, TooLarge."""
    bundles = read_loose_files(files, "the files")
    # Files without a folder around them say nothing about its name; the frontmatter will.
    return tuple(bundle if bundle.path else replace(bundle, folder="") for bundle in bundles)


def read_upload(files: Sequence[tuple[str, bytes]]) -> tuple[Bundle, ...]:
    """The skills in what a browser sends: a SKILL.md, an archive, or the files of a folder.

    Raises: ArchiveRejected, TooLarge, SourceRejected.
    """
    if not files:
        raise SourceRejected("path", "the upload", "it holds no file", _SOURCE_HINT)
    name, data = files[0]
    if len(files) > 1 or "/" in name:
        return build_bundles(files)
    return read_archive_or_skill_md(data, name)


def _resolve_path(path: str, settings: Settings) -> str:
    return Root.resolve(path, settings.working_directory).path


def _open_folder(
    reference: LocalRef, path: str, folder_handles: Mapping[str, FolderHandle]
) -> OpenedSource:
    bundles = tuple(
        replace(open_bundle(place, LENIENT.scan_policy), folder=folder)
        for folder, place in folder_handles.items()
    )
    return OpenedSource(reference, bundles, folder=path, folder_handles=folder_handles)


def _find_skill_folders(path: str, text: str, *, follow_links: bool) -> dict[str, FolderHandle]:
    """The folder itself if it is a skill, else all below it that may be skills, by their paths."""
    if not os.path.lexists(path):
        raise SkillFileNotFound(text, _SOURCE_HINT)
    if not os.path.isdir(path):
        raise SourceRejected("path", text, "it is neither a folder nor an archive", _SOURCE_HINT)
    root = Root(path, follow_links=follow_links)
    context = ScanContext(LENIENT.key_case, (root.real_path,), {}, keep_signatures=False)
    # As deep as an archive of the same folder would be read.
    policy = LENIENT.scan_policy.with_depth(MAX_DEPTH)
    candidates = sorted(scan_root(root, policy, context).candidates, key=lambda c: c.folder)
    places: dict[str, FolderHandle] = {}
    for found in candidates:
        if found.file:
            place = found.real_folder or FolderHandle(path, found.folder)
            is_outside = found.real_folder is not None and not is_inside(place.path, root.real_path)
            # What a link brings in from outside is called by the link, which is in the source.
            places[os.path.join(path, found.folder) if is_outside else place.path] = place
    if not places:
        hint = build_github_hint(text.removeprefix("./"), LocalRef(text)) or _SOURCE_HINT
        raise SourceRejected("path", text, f"No {SKILL_MD} found", hint)
    return places


def _read_local_file(path: str) -> bytes:
    try:
        folder = open_root(os.path.dirname(path))
    except OSError:
        raise SkillFileNotFound(os.path.basename(path)) from None
    try:
        return read_file(folder, os.path.basename(path), DEFAULT_ARCHIVE_LIMITS.total)
    except OSError:
        raise SkillFileNotFound(os.path.basename(path)) from None
    finally:
        folder.close()


def _bind_progress_step(step: str, progress: Progress | None) -> Callable[[int, int], None] | None:
    return None if progress is None else partial(progress, step)


def _open_url(
    url: str, policy: AddressPolicy, progress: Callable[[int, int], None] | None
) -> tuple[Bundle, ...]:
    at_most = (
        MAX_SKILL_MD_BYTES
        if url.lower().endswith(_MARKDOWN_SUFFIX)
        else DEFAULT_ARCHIVE_LIMITS.total
    )
    fetched = fetch(url, max_bytes=at_most, policy=policy, progress=progress)
    return read_archive_or_skill_md(fetched.data, os.path.basename(fetched.url))


def read_archive_or_skill_md(data: bytes, name: str) -> tuple[Bundle, ...]:
    """The skills in one file: an archive, or a SKILL.md under any name that ends so.

    Raises: ArchiveRejected, TooLarge.
    """
    if not name.lower().endswith(_MARKDOWN_SUFFIX):
        return read_archive(data, name)
    if len(data) > MAX_SKILL_MD_BYTES:
        raise TooLarge(name, MAX_SKILL_MD_BYTES)
    path = RelativePath.parse(SKILL_MD)
    file = SkillFile(path, len(data), executable=False, read=lambda: data)
    # A file alone says nothing about its folder; its frontmatter will.
    return (Bundle("", {SKILL_MD: file}),)
