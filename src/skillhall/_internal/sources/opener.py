"""Parses the text that names a source, and opens the source.

A kind of source is a `Ref` class and a function that parses its texts. To add a kind,
write its module, add its parser to `KINDS` and a case to `tests/contract/test_sources.py`, and
document it.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final

from skillhall._internal.sources.base import OpenedSource, SourceContext
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.git.git_ref import parse_git
from skillhall._internal.sources.github.github_ref import parse_github
from skillhall._internal.sources.local_ref import LocalRef, parse_local
from skillhall._internal.sources.mcp.mcp_ref import parse_mcp
from skillhall._internal.sources.npm.npm_ref import parse_npm
from skillhall._internal.sources.oci.oci_ref import parse_oci
from skillhall._internal.sources.python_package import parse_package
from skillhall._internal.sources.s3.s3_ref import parse_s3
from skillhall._internal.sources.site.site_ref import parse_site
from skillhall._internal.sources.source_text import SourceText, is_relative_name
from skillhall._internal.sources.url_ref import parse_url
from skillhall.errors import SourceRejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.base import Progress, Ref

# A parser returns None for texts of other kinds. GitHub comes before other git hosts. The last
# parser accepts the remaining URLs: those of files. Indexes of sites come before repositories.
KINDS: Final[tuple[Callable[[SourceText], Ref | None], ...]] = (
    parse_local,
    parse_package,
    parse_npm,
    parse_s3,
    parse_oci,
    parse_mcp,
    parse_github,
    parse_site,
    parse_git,
    parse_url,
)


def parse_source_ref(text: str, *, allow_loopback_http: bool = False) -> Ref:
    """Parse the text that names a source. Raises: SourceRejected.

    Plain http is accepted only with `allow_loopback_http`, and only for loopback hosts.
    """
    source = SourceText.parse(text, allow_loopback_http=allow_loopback_http)
    for parse in KINDS:
        if (reference := parse(source)) is not None:
            return reference
    raise source.build_rejection()


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
