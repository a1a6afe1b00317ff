"""Opens sources: turns the text that names a source into its bundles."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.sources.base import OpenedSource, SourceContext
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.kinds import parse_source_ref
from skillhall._internal.sources.local_ref import LocalRef
from skillhall._internal.sources.source_text import is_relative_name
from skillhall._internal.sources.token_scope import TokenScope, reject_ssh
from skillhall.errors import SourceRejected

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.base import Progress, Ref


def open_source(text: str, settings: Settings, progress: Progress | None = None) -> OpenedSource:
    """Open the folder, archive, repository, package or server that `text` names.

    An existing folder takes precedence over a GitHub repository of the same name.
    Raises: SourceRejected, SourceNotFound, NoSkillThere, SkillNotFound, ArchiveRejected, TooLarge,
    SourceUnavailable, RateLimited, UnknownMcpServer, SkillsNotServed.
    """
    folder = Root.resolve(text, settings.working_directory).path if is_relative_name(text) else ""
    if folder and os.path.isdir(folder):
        return open_reference(LocalRef(f"./{text.rstrip('/')}"), settings, progress)
    allow_loopback_http = bool(settings.allowed_networks)
    reference = parse_source_ref(text, allow_loopback_http=allow_loopback_http)
    return open_reference(reference, settings, progress)


def open_reference(
    reference: Ref, settings: Settings, progress: Progress | None = None
) -> OpenedSource:
    """Open the source of a parsed reference. Raises: as `open_source`."""
    build_hint = partial(build_github_hint, reference.text.removeprefix("./"), reference)
    return reference.open(SourceContext(settings, progress, build_folder_hint=build_hint))


def open_client_source(text: str, settings: Settings) -> OpenedSource:
    """Open a repository or URL on behalf of a client of the server.

    Local sources are rejected, and the operator's credentials are used for the operator's
    repositories only.
    Raises: SourceRejected, ConfigInvalid, and as `open_source`.
    """
    reference = parse_source_ref(text, allow_loopback_http=bool(settings.allowed_networks))
    if not reference.is_remote:
        problem = "a server accepts repositories and URLs only"
        raise SourceRejected("path", text, problem, "upload a file or an archive instead")
    is_in_scope = False
    if reference.repository is not None:
        url = reference.repository.git_url(settings.github_url)
        reject_ssh(url, text)
        is_in_scope = TokenScope.from_settings(settings).includes(url)
    return reference.open(SourceContext(settings, with_credentials=is_in_scope))


def build_github_hint(text: str, reference: Ref) -> str:
    """Return a hint on how to name a GitHub repository if `text` was read as a folder.

    Returns "" if `text` cannot be the name of a repository.
    """
    if reference.is_remote or not is_relative_name(text):
        return ""
    try:
        is_repository = parse_source_ref(text) == parse_source_ref(f"github:{text}")
    except SourceRejected:
        return ""
    hint = f"{text!r} is a folder here; write github:{text} for the repository on GitHub"
    return hint if is_repository else ""
