"""From the text that names a source to the bundles it holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillhall.errors import SkillFileNotFound, SourceRejected, TooLarge
from skillhall.policy.profiles import LENIENT
from skillhall.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall.skill.frontmatter import SKILL_MD
from skillhall.sources.addresses import PUBLIC
from skillhall.sources.archive import LIMITS, read_archive
from skillhall.sources.bundles import open_bundle
from skillhall.sources.directory import ScanContext, scan
from skillhall.sources.fetch import fetch
from skillhall.sources.reference import ArchiveRef, LocalRef, UrlRef, parse_reference
from skillhall.sources.roots import Root
from skillhall.sources.safety import Place, open_root, read_file

if TYPE_CHECKING:
    from skillhall.settings import Settings
    from skillhall.sources.addresses import AddressPolicy

_MARKDOWN = ".md"
_WHAT_TO_NAME = "name a skill's folder, a folder of skills, or a zip or tar.gz file"


def open_source(
    text: str, settings: Settings, policy: AddressPolicy = PUBLIC
) -> tuple[Bundle, ...]:
    """The bundles in the folder, archive or web address that `text` names.

    `policy` says which addresses may be called, and which of them without encryption.
    Raises: SourceRejected, SkillFileNotFound, ArchiveRejected, TooLarge, and what `fetch` raises.
    """
    reference = parse_reference(text, loopback_http=bool(policy.allowed))
    if isinstance(reference, LocalRef):
        return _from_folder(_absolute(reference.path, settings), text)
    if isinstance(reference, ArchiveRef):
        path = _absolute(reference.path, settings)
        return read_archive(_read_local(path), os.path.basename(path))
    if isinstance(reference, UrlRef):
        return _from_url(reference.url, policy)
    problem = "only folders, archives and https addresses of them can be added so far"
    raise SourceRejected("scheme", text, problem, "clone the repository and add its folder")


def _absolute(path: str, settings: Settings) -> str:
    return Root.of(path, settings.working_directory).path


def _from_folder(path: str, text: str) -> tuple[Bundle, ...]:
    """The folder itself if it is a skill, else all below it that may be skills."""
    if not os.path.lexists(path):
        raise SkillFileNotFound(text)
    if not os.path.isdir(path):
        raise SourceRejected("path", text, "it is neither a folder nor an archive", _WHAT_TO_NAME)
    root = Root(path)
    context = ScanContext(LENIENT.keys, (root.real_path,), {}, sign=False)
    candidates = sorted(scan(root, LENIENT.scan, context).candidates, key=lambda c: c.folder)
    places = [c.real or Place(path, c.folder) for c in candidates if c.file]
    if not places:
        raise SourceRejected("path", text, f"No {SKILL_MD} found", _WHAT_TO_NAME)
    return tuple(open_bundle(place, LENIENT.scan) for place in places)


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


def _from_url(url: str, policy: AddressPolicy) -> tuple[Bundle, ...]:
    fetched = fetch(url, at_most=LIMITS.total, policy=policy)
    name = os.path.basename(fetched.url)
    if not name.lower().endswith(_MARKDOWN):
        return read_archive(fetched.data, name)
    if len(fetched.data) > LIMITS.file:
        raise TooLarge(name, LIMITS.file)
    path = RelativePath.parse(SKILL_MD)
    file = SkillFile(path, len(fetched.data), executable=False, read=lambda: fetched.data)
    # A file alone says nothing about its folder; its frontmatter will.
    return (Bundle("", {SKILL_MD: file}),)
