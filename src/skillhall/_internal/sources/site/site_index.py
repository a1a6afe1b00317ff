"""Skills in the index of a web site, downloaded and verified.

An index of version 0.2 has the URL and the digest of one file per skill. One of version 0.1 has the
paths of all files of a skill, which are in a folder next to the index, and no digests. Nothing else
counts as an index: neither a listing of a folder nor a page with links.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urljoin

from skillhall._internal.hints import find_close_names
from skillhall._internal.net.connection import reveal_token
from skillhall._internal.net.fetch import FetchOptions, FetchResult
from skillhall._internal.net.url import WebUrl
from skillhall._internal.skill.bundle import Bundle, sha256_hex
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import SKILL_MD, is_skill_md
from skillhall._internal.sources.archive.source import (
    DEFAULT_ARCHIVE_LIMITS,
    read_archive,
    read_loose_files,
)
from skillhall._internal.sources.archive.upload import read_archive_or_skill_md
from skillhall._internal.sources.bounded_download import BoundedDownload, run_parallel
from skillhall._internal.sources.logins.stored_logins import open_stored_logins
from skillhall._internal.sources.site.site_ref import INDEX_FILE, WELL_KNOWN, is_entry_name
from skillhall._internal.strict_json import InvalidJson, JsonObject
from skillhall.errors import (
    ArchiveRejected,
    NoSkillThere,
    SkillNotInSource,
    SourceNotFound,
    SourceRejected,
    SourceUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from skillhall._internal.net.fetch import CredentialProvider
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.site.site_ref import SiteRef

SCHEMA_URL: Final = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
MAX_INDEX: Final = 8 * 1024 * 1024  # bytes
MAX_SKILLS: Final = 2_000
_MAX_SHOWN = 100  # characters of a name in a message
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_FOLDERS = ("agent-skills", "skills")  # of version 0.2, and of version 0.1
_INDEX_HINT = f"it needs {WELL_KNOWN}agent-skills/{INDEX_FILE}, or the URL of its {INDEX_FILE}"


class SiteEntry(NamedTuple):
    """Skill in an index; `problem` says why it cannot be used."""

    name: str
    urls: tuple[tuple[str, str], ...] = ()  # path in the skill, and URL; an archive has the path ""
    digest: str = ""
    problem: str = ""


def read_site(reference: SiteRef, context: SourceContext) -> tuple[Bundle, ...]:
    """Download the skills of a reference.

    The bundle of a skill that cannot be used has a finding instead of files.
    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, NoSkillThere,
    SkillNotFound, TooLarge.
    """
    download = BoundedDownload(context.address_policy, context.progress)
    site = _Site(download, *_find_token(context), open_stored_logins(context))
    entries = _read_index(reference, site)
    if reference.skill:
        names = [entry.name for entry in entries]
        entries = [entry for entry in entries if entry.name == reference.skill]
        if not entries:
            raise SkillNotInSource(reference.skill, find_close_names(reference.skill, names))
    if not entries:
        raise NoSkillThere(reference.text, "its index is empty")
    return run_parallel(site.read_bundle, entries)


def _find_token(context: SourceContext) -> tuple[tuple[str, str, int] | None, str]:
    """Return the origin of the user's Skillhall server, and its token. Raises: ConfigInvalid."""
    client = context.settings.client
    if not context.with_credentials or client.token is None:
        return None, ""
    try:
        origin = WebUrl.parse(client.server).origin
    except SourceRejected:  # reported by the commands that need the server
        return None, ""
    return origin, reveal_token(client.token, "SKILLHALL_SERVER_TOKEN")


def _read_index(reference: SiteRef, site: _Site) -> list[SiteEntry]:
    """Return the entries of the first index that the site has. Raises: as `read_site`."""
    urls = [reference.url]
    if reference.url.endswith(WELL_KNOWN):
        urls = [f"{reference.url}{folder}/{INDEX_FILE}" for folder in _FOLDERS]
    failure: SourceUnavailable | None = None
    for url in urls:
        try:
            result = site.fetch(url, MAX_INDEX)
            return parse_index(result.data, result.url)
        except SourceNotFound:
            continue
        except InvalidJson as error:  # some hosts send a page for every unknown path
            problem = f"{url} is not an index of skills: {error}"
            failure = failure or SourceUnavailable(WebUrl.parse(url).host, problem)
    if failure is not None:
        raise failure
    raise NoSkillThere(reference.text, _INDEX_HINT)


def parse_index(data: bytes, url: str) -> list[SiteEntry]:
    """Parse an index that was downloaded from `url`. Raises: InvalidJson.

    Problems of one entry are in its `problem`.
    """
    document = JsonObject.parse(data)
    schema = document.fields.get("$schema")
    if schema not in (None, SCHEMA_URL):
        raise document.build_error("$schema", "names an unknown version")
    items = list(document.require_objects("skills"))
    if len(items) > MAX_SKILLS:
        raise document.build_error("skills", f"has more than {MAX_SKILLS} entries")
    parse = _parse_file_list if schema is None else _parse_artifact
    entries: dict[str, SiteEntry] = {}
    for item in items:
        name = item.location  # until the name is known
        try:
            name = _parse_name(item, entries)
            entries[name] = parse(item, name, url)
        except (InvalidJson, SourceRejected) as error:
            entries[name] = SiteEntry(name, problem=str(error))
    return [*entries.values()]


def _parse_name(item: JsonObject, known: Container[str]) -> str:
    """Return the name of a skill, which is that of its folder. Raises: InvalidJson."""
    name = item.require("name", str)
    if not is_entry_name(name):
        raise item.build_error("name", f"is not the name of a folder: {name[:_MAX_SHOWN]!r}")
    if name in known:
        raise item.build_error("name", f"is that of another skill, too: {name[:_MAX_SHOWN]!r}")
    return name


def _parse_artifact(item: JsonObject, name: str, base: str) -> SiteEntry:
    """Parse an entry of version 0.2. Raises: InvalidJson, SourceRejected."""
    kind = item.require_choice("type", "skill-md", "archive")
    digest = item.require_match("digest", _DIGEST)
    try:
        url = WebUrl.parse(urljoin(base, item.require("url", str)))
    except ValueError:  # urljoin rejects some uses of brackets
        raise item.build_error("url", "is not a URL") from None
    if base.startswith("https:") and url.scheme != "https":
        raise item.build_error("url", "leads from https to http")
    path = SKILL_MD if kind == "skill-md" else ""
    return SiteEntry(name, ((path, f"{url.scheme}://{url.authority}{url.target}"),), digest)


def _parse_file_list(item: JsonObject, name: str, base: str) -> SiteEntry:
    """Parse an entry of version 0.1. Raises: InvalidJson."""
    paths = item.require("files", list)
    if len(paths) > DEFAULT_ARCHIVE_LIMITS.entries:
        raise item.build_error("files", f"has more than {DEFAULT_ARCHIVE_LIMITS.entries} entries")
    if not all(isinstance(path, str) and is_safe_url_path(path) for path in paths):
        raise item.build_error("files", "contains something else than relative paths")
    if not any(is_skill_md(path) for path in paths):
        raise item.build_error("files", "contains no SKILL.md")
    folder = urljoin(base, quote(name, safe=""))
    return SiteEntry(name, tuple((path, f"{folder}/{quote(path)}") for path in paths))


def is_safe_url_path(path: str) -> bool:
    """Whether a path stays below the URL it is appended to; archives have stricter rules."""
    return path.isprintable() and {"", ".", ".."}.isdisjoint(path.split("/"))


@dataclass(frozen=True, slots=True)
class _Site:
    """Site with an index; the token is only for `token_origin`."""

    download: BoundedDownload
    token_origin: tuple[str, str, int] | None
    token: str = field(repr=False)
    logins: CredentialProvider | None

    def fetch(self, url: str, max_bytes: int = DEFAULT_ARCHIVE_LIMITS.total) -> FetchResult:
        """Fetch one file. Raises: as `net.fetch.fetch`."""
        is_own = WebUrl.parse(url).origin == self.token_origin
        options = FetchOptions(credentials=self.logins)
        if is_own:
            options = FetchOptions(token=self.token)
        return self.download.fetch(url, max_bytes, options)

    def read_bundle(self, entry: SiteEntry) -> Bundle:
        """Download a skill; problems of its files become a finding.

        Raises: SourceUnavailable, RateLimited, TooLarge.
        """
        try:
            problem = entry.problem
            if not problem:
                bundle = self._read_files(entry) if not entry.digest else self._read_file(entry)
                return replace(bundle, folder=entry.name, path=entry.name)
        except (ArchiveRejected, SourceNotFound, SourceRejected) as error:
            problem = str(error)
        finding = Finding(Code.SITE_ENTRY, f"{entry.name} cannot be installed: {problem}")
        return Bundle(entry.name, {}, (finding,), path=entry.name)

    def _read_file(self, entry: SiteEntry) -> Bundle:
        """Download a SKILL.md or an archive, and verify its digest."""
        [(path, url)] = entry.urls
        result = self.fetch(url)
        digest = f"sha256:{sha256_hex(result.data)}"
        if digest != entry.digest:
            problem = f"the file has the digest {digest}, and the index lists {entry.digest}"
            raise ArchiveRejected(entry.name, "confusion", problem)
        if path:
            return read_archive_or_skill_md(result.data, path)[0]
        bundles = read_archive(result.data, entry.name)
        if len(bundles) != 1:
            problem = f"it contains {len(bundles)} skills instead of one"
            raise ArchiveRejected(entry.name, "confusion", problem)
        return bundles[0]

    def _read_files(self, entry: SiteEntry) -> Bundle:
        """Download the files of a skill one by one."""
        files = [(f"{entry.name}/{path}", self.fetch(url).data) for path, url in entry.urls]
        bundles = [one for one in read_loose_files(files, entry.name) if one.path == entry.name]
        if not bundles:
            raise ArchiveRejected(entry.name, "no_skill", "No SKILL.md found")
        return bundles[0]
