"""Opens sources: from a source reference to its bundles."""

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

    Progress: TypeAlias = Callable[[str, int, int], None]  # step, completed, total

_MARKDOWN_SUFFIX = ".md"
_NO_FOLDER_HANDLES: Mapping[str, FolderHandle] = MappingProxyType({})
_SOURCE_HINT = "name a skill's folder, a folder of skills, or a zip or tar.gz file"


class OpenedSource(NamedTuple):
    """Opened source with its bundles."""

    reference: SourceRef
    bundles: tuple[Bundle, ...]
    commit: str = ""  # of a repository
    stale: str = ""  # why a cached version is served, if one is
    folder: str = ""  # absolute path of a local source
    # Of local bundles, whose files can change, by the bundle's folder.
    folder_handles: Mapping[str, FolderHandle] = _NO_FOLDER_HANDLES

    def load_bundle(self, bundle: Bundle) -> Bundle:
        """Read all files of a bundle as a consistent version. Raises: SkillhallError."""
        location = self.folder_handles.get(bundle.folder)
        if location is None:
            return load_into_memory(bundle)
        return replace(read_bundle(location, LENIENT.scan_policy), folder=bundle.folder)

    def get_bundle_path(self, bundle: Bundle) -> str:
        """Return the path of the bundle in the source; `find_bundle` accepts it."""
        if isinstance(self.reference, McpRef):
            return ""  # the bundle's reference already names the skill
        if not self.folder:
            return bundle.folder if bundle.path is None else bundle.path
        path = os.path.relpath(bundle.folder, self.folder).replace(os.sep, "/")
        return "" if path == "." else path

    def get_bundle_reference(self, bundle: Bundle) -> SourceRef:
        """Return the lock file's reference: the repository, or one skill of an MCP server."""
        if isinstance(self.reference, McpRef):
            return McpRef(self.reference.label, bundle.path or "")
        if isinstance(self.reference, GitHubRef | GitRef):
            return replace(self.reference, path="")
        return self.reference

    def find_bundle(self, path: str) -> Bundle | None:
        """Return the bundle at the path, if there is one."""
        return next((b for b in self.bundles if self.get_bundle_path(b) == path), None)


def open_source(text: str, settings: Settings, progress: Progress | None = None) -> OpenedSource:
    """Open the folder, archive, repository, package or server that `text` names.

    An existing folder takes precedence over a GitHub repository of the same name.
    Raises: SourceRejected, SourceNotFound, NoSkillThere, SkillNotFound, ArchiveRejected, TooLarge,
    SourceUnavailable, RateLimited, UnknownMcpServer, SkillsNotServed.
    """
    return open_reference(resolve_reference(text, settings), settings, progress)


def resolve_reference(text: str, settings: Settings) -> SourceRef:
    """Parse a source reference; existing folders take precedence. Raises: SourceRejected."""
    if is_relative_name(text) and os.path.isdir(_resolve_path(text, settings)):
        return LocalRef(f"./{text.rstrip('/')}")
    return parse_source_ref(text, allow_loopback_http=bool(settings.allowed_networks))


def build_github_hint(text: str, reference: SourceRef) -> str:
    """Return a hint how to name the GitHub repository if `text` was read as a folder."""
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
    """Open the source of a parsed reference. Raises: as `open_source`."""
    if isinstance(reference, LocalRef):
        path = _resolve_path(reference.path, settings)
        folders = _find_skill_folders(path, reference.text, follow_links=settings.follow_links)
        return _open_folder(reference, path, folders)
    if isinstance(reference, ArchiveRef):
        path = _resolve_path(reference.path, settings)
        return OpenedSource(reference, read_archive(_read_local_file(path), os.path.basename(path)))
    if isinstance(reference, UrlRef):
        step = _bind_progress_step("Downloading", progress)
        policy = build_address_policy(settings.allowed_networks)
        return OpenedSource(reference, _open_url(reference.url, policy, step))
    if isinstance(reference, PackageRef):
        package = read_package(reference, package_search_paths(settings))
        return OpenedSource(reference, package.bundles)
    if isinstance(reference, McpRef):
        return OpenedSource(reference, _open_mcp_server(reference, settings))
    return _open_repository(reference, settings, progress)


def open_client_source(text: str, settings: Settings) -> OpenedSource:
    """Open a repository or URL on behalf of a client of the server.

    Local sources are rejected, and the operator's credentials are used for the operator's
    repositories only.
    Raises: SourceRejected, ConfigInvalid, and as `open_source`.
    """
    reference = parse_source_ref(text, allow_loopback_http=bool(settings.allowed_networks))
    if isinstance(reference, UrlRef):
        return open_reference(reference, settings)
    if not isinstance(reference, GitHubRef | GitRef):
        problem = "a server accepts repositories and URLs only"
        raise SourceRejected("path", text, problem, "upload a file or an archive instead")
    url = to_git_ref(reference, settings.github_url).url
    reject_ssh(url, text)
    is_in_scope = TokenScope.from_settings(settings).includes(url)
    return _open_repository(reference, settings, None, with_credentials=is_in_scope)


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
        access = access if with_credentials else access.without_credentials()
        skills = read_git(git, access, source_text=reference.text)
    else:
        github = GitHubAccess(
            settings.github_api_url,
            policy,
            settings.tokens if with_credentials else {},
            settings.cache_directory,
            progress=_bind_progress_step("Downloading", progress),
        )
        skills = read_github(reference, github, source_text=reference.text)
    # A branch with slashes is only known after the repository was read.
    candidates = (ref for ref in reference.interpretations() if ref.ref == skills.ref)
    resolved = next(candidates, reference)
    return OpenedSource(resolved, skills.bundles, skills.commit, skills.stale)


def _open_mcp_server(reference: McpRef, settings: Settings) -> tuple[Bundle, ...]:
    bundles = read_mcp_bundles(reference, settings)
    if not bundles:
        hint = f"it may have unlisted skills: name one, as in {reference.text}/name"
        raise NoSkillThere(reference.text, hint)
    return bundles


def build_single_bundle(files: Mapping[str, bytes], name: str) -> Bundle:
    """Build the bundle of a single skill from files by path, as browsers upload a folder.

    The common parent folder names the skill, else `name`. No file is executable.
    Raises: ArchiveRejected, TooLarge, SourceRejected.
    """
    bundles = read_loose_files([*files.items()], name)
    if len(bundles) > 1:
        folders = ", ".join(bundle.folder for bundle in bundles)
        raise SourceRejected("path", name, f"it contains several skills: {folders}", "choose one")
    return bundles[0]


def build_bundles(files: Sequence[tuple[str, bytes]]) -> tuple[Bundle, ...]:
    """Build the bundles of files with their paths. Raises: ArchiveRejected, TooLarge."""
    bundles = read_loose_files(files, "the files")
    # Without a parent folder, only the frontmatter can name the skill.
    return tuple(bundle if bundle.path else replace(bundle, folder="") for bundle in bundles)


def read_upload(files: Sequence[tuple[str, bytes]]) -> tuple[Bundle, ...]:
    """Read the skills of an upload: a SKILL.md, an archive, or the files of a folder.

    Raises: ArchiveRejected, TooLarge, SourceRejected.
    """
    if not files:
        raise SourceRejected("path", "the upload", "it contains no files", _SOURCE_HINT)
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
        replace(open_bundle(location, LENIENT.scan_policy), folder=folder)
        for folder, location in folder_handles.items()
    )
    return OpenedSource(reference, bundles, folder=path, folder_handles=folder_handles)


def _find_skill_folders(path: str, text: str, *, follow_links: bool) -> dict[str, FolderHandle]:
    """Return the folder itself if it is a skill, else all candidates below, by path."""
    if not os.path.lexists(path):
        raise SkillFileNotFound(text, _SOURCE_HINT)
    if not os.path.isdir(path):
        raise SourceRejected("path", text, "it is neither a folder nor an archive", _SOURCE_HINT)
    root = Root(path, follow_links=follow_links)
    context = ScanContext(LENIENT.key_case, (root.real_path,), {}, keep_signatures=False)
    # The depth limit of archives, so that a folder and its archive give the same skills.
    policy = LENIENT.scan_policy.with_depth(MAX_DEPTH)
    candidates = sorted(scan_root(root, policy, context).candidates, key=lambda c: c.folder)
    folders: dict[str, FolderHandle] = {}
    for candidate in candidates:
        if candidate.file:
            location = candidate.real_folder or FolderHandle(path, candidate.folder)
            is_linked = candidate.real_folder is not None
            is_outside = is_linked and not is_inside(location.path, root.real_path)
            # A linked folder outside the source is named by its link, which is inside.
            key = os.path.join(path, candidate.folder) if is_outside else location.path
            folders[key] = location
    if not folders:
        hint = build_github_hint(text.removeprefix("./"), LocalRef(text)) or _SOURCE_HINT
        raise SourceRejected("path", text, f"No {SKILL_MD} found", hint)
    return folders


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
    is_markdown = url.lower().endswith(_MARKDOWN_SUFFIX)
    limit = MAX_SKILL_MD_BYTES if is_markdown else DEFAULT_ARCHIVE_LIMITS.total
    result = fetch(url, max_bytes=limit, policy=policy, progress=progress)
    return read_archive_or_skill_md(result.data, os.path.basename(result.url))


def read_archive_or_skill_md(data: bytes, name: str) -> tuple[Bundle, ...]:
    """Read the skills of one file: an archive, or a SKILL.md under any name.md.

    Raises: ArchiveRejected, TooLarge.
    """
    if not name.lower().endswith(_MARKDOWN_SUFFIX):
        return read_archive(data, name)
    if len(data) > MAX_SKILL_MD_BYTES:
        raise TooLarge(name, MAX_SKILL_MD_BYTES)
    path = RelativePath.parse(SKILL_MD)
    file = SkillFile(path, len(data), executable=False, read=lambda: data)
    # A single file has no folder, so only the frontmatter can name the skill.
    return (Bundle("", {SKILL_MD: file}),)
