"""Skills in uploads and downloads: a SKILL.md, an archive, or a folder's files."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from skillhall._internal.net.fetch import FetchOptions, fetch
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES, SKILL_MD
from skillhall._internal.sources.archive.source import (
    DEFAULT_ARCHIVE_LIMITS,
    read_archive,
    read_loose_files,
)
from skillhall._internal.sources.folder.source import SOURCE_HINT
from skillhall.errors import SourceRejected, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.net.addresses import AddressPolicy
    from skillhall._internal.net.fetch import CredentialProvider

_MARKDOWN_SUFFIX = ".md"


def download(
    url: str,
    policy: AddressPolicy,
    progress: Callable[[int, int], None] | None,
    credentials: CredentialProvider | None = None,
) -> tuple[Bundle, ...]:
    """Download a file and read its skills.

    Raises: as `fetch` and `read_archive_or_skill_md`.
    """
    is_markdown = url.lower().endswith(_MARKDOWN_SUFFIX)
    limit = MAX_SKILL_MD_BYTES if is_markdown else DEFAULT_ARCHIVE_LIMITS.total
    options = FetchOptions(credentials=credentials)
    result = fetch(url, max_bytes=limit, policy=policy, options=options, progress=progress)
    folder, name = os.path.split(result.url)
    if name == "archive":  # of a skill on a Skillhall server
        name = f"{unquote(os.path.basename(folder))}.zip"
    return read_archive_or_skill_md(result.data, name)


def build_bundles(files: Sequence[tuple[str, bytes]]) -> tuple[Bundle, ...]:
    """Build bundles from (path, content) pairs. Raises: ArchiveRejected, TooLarge."""
    bundles = read_loose_files(files, "the files")
    # Without a parent folder, only the frontmatter can name the skill.
    return tuple(bundle if bundle.path else replace(bundle, folder="") for bundle in bundles)


def read_upload(files: Sequence[tuple[str, bytes]]) -> tuple[Bundle, ...]:
    """Read the skills in an upload: a SKILL.md, an archive, or the files of a folder.

    Raises: ArchiveRejected, TooLarge, SourceRejected.
    """
    if not files:
        raise SourceRejected("path", "the upload", "it contains no files", SOURCE_HINT)
    name, data = files[0]
    if len(files) > 1 or "/" in name:
        return build_bundles(files)
    return read_archive_or_skill_md(data, name)


def read_archive_or_skill_md(data: bytes, name: str) -> tuple[Bundle, ...]:
    """Read the skills in one file: an archive, or a Markdown file used as SKILL.md.

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
