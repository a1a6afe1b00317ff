"""Skills in npm packages, read from the tarball of the registry.

Neither npm nor any script of the package is run, and its dependencies are not downloaded.
"""

from __future__ import annotations

import binascii
import hashlib
from base64 import b64decode
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from skillhall._internal.net.fetch import FetchOptions, FetchResult, fetch
from skillhall._internal.net.url import WebUrl
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.sources.archive.source import DEFAULT_ARCHIVE_LIMITS, read_archive
from skillhall._internal.sources.base import OpenedSource
from skillhall._internal.sources.logins.stored_logins import open_stored_logins
from skillhall._internal.sources.npm.npm_config import NpmConfig
from skillhall._internal.sources.python_package import SKILLS_FOLDER
from skillhall._internal.strict_json import InvalidJson, JsonObject
from skillhall.errors import (
    ArchiveRejected,
    NoSkillThere,
    SourceNotFound,
    SourceRejected,
    SourceUnavailable,
)

if TYPE_CHECKING:
    from skillhall._internal.net.fetch import CredentialProvider
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.npm.npm_ref import NpmRef

MAX_DOCUMENT: Final = 64 * 1024 * 1024  # bytes of the list of versions
_SHORT_DOCUMENT = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8"
_COMMIT_LENGTH = 64  # digits that identify a tarball in a lock file
_HINT = f"the skills of a package are in {SKILLS_FOLDER}/<name>, or in any other visible folder"


class Tarball(NamedTuple):
    """One version of a package."""

    url: str
    sha512: str  # hexadecimal

    @property
    def commit(self) -> str:
        """The part of the digest that a lock file records."""
        return self.sha512[:_COMMIT_LENGTH]


class _Registry(NamedTuple):
    """Registry of one package, and the user's credentials for it."""

    context: SourceContext
    config: NpmConfig
    url: str
    logins: CredentialProvider | None

    def fetch(self, url: str, max_bytes: int, accept: str = "*/*") -> FetchResult:
        value = self.config.find_authorization(url) if self.context.with_credentials else ""
        logins = None if value else self.logins
        options = FetchOptions(accept=accept, credentials=logins).with_authorization(value)
        progress = self.context.get_progress("Downloading")
        return fetch(
            url,
            max_bytes=max_bytes,
            policy=self.context.address_policy,
            options=options,
            progress=progress,
        )


def read_npm_package(reference: NpmRef, context: SourceContext) -> OpenedSource:
    """Download a package, verify it and read its skills.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, ArchiveRejected,
    NoSkillThere, TooLarge, ConfigInvalid.
    """
    config = NpmConfig.read(context.settings)
    registry = _Registry(
        context, config, config.find_registry(reference.package), open_stored_logins(context)
    )
    url = f"{registry.url}/{quote(reference.package, safe='@')}"
    document = registry.fetch(url, MAX_DOCUMENT, _SHORT_DOCUMENT).data
    try:
        tarball = find_tarball(document, reference)
    except InvalidJson as error:
        host = WebUrl.parse(url).host
        problem = f"it sent malformed data about {reference.package}: {error}"
        raise SourceUnavailable(host, problem) from None
    if registry.url.startswith("https:") and not tarball.url.startswith("https:"):
        raise SourceRejected("scheme", tarball.url, "a package leads from https to http")
    data = registry.fetch(tarball.url, DEFAULT_ARCHIVE_LIMITS.total).data
    name = f"{reference.package.rpartition('/')[2]}.tgz"
    if hashlib.sha512(data).hexdigest() != tarball.sha512:
        raise ArchiveRejected(name, "confusion", "it does not match the registry's integrity")
    try:
        bundles = read_archive(data, name, preferred_folder=SKILLS_FOLDER)
    except ArchiveRejected as error:
        if error.reason == "no_skill":
            raise NoSkillThere(reference.text, _HINT) from None
        raise
    named = tuple(_remove_top_folder(bundle, name.removesuffix(".tgz")) for bundle in bundles)
    return OpenedSource(reference, named, tarball.commit)


def find_tarball(data: bytes, reference: NpmRef) -> Tarball:
    """Find the version of a reference in the registry's document about the package.

    Raises: InvalidJson, SourceNotFound.
    """
    document = JsonObject.parse(data)
    versions = dict(document.require_map("versions"))
    if reference.commit:
        for found in versions.values():
            tarball = _parse_version(found)
            if tarball is not None and tarball.commit == reference.commit:
                return tarball
        raise SourceNotFound(reference.text)
    version: object = reference.version
    if version not in versions:
        version = document.require("dist-tags", dict).get(version or "latest")
    named = versions.get(version) if isinstance(version, str) else None
    if named is None:
        raise SourceNotFound(reference.text)
    tarball = _parse_version(named)
    if tarball is None:
        raise named.build_error("dist", "has no SHA-512 integrity")
    return tarball


def _parse_version(version: JsonObject) -> Tarball | None:
    """Return the tarball of a version; `None` without a SHA-512 digest. Raises: InvalidJson."""
    dist = JsonObject(version.require("dist", dict), f"{version.location}.dist")
    integrity = dist.fields.get("integrity", "")
    for one in integrity.split() if isinstance(integrity, str) else ():
        algorithm, _, encoded = one.partition("?")[0].partition("-")
        if algorithm == "sha512":
            try:
                digest = b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                raise dist.build_error("integrity", "is malformed") from None
            return Tarball(dist.require("tarball", str), digest.hex())
    return None


def _remove_top_folder(bundle: Bundle, package: str) -> Bundle:
    """Return the bundle with its path in the package: tarballs have one top folder of any name."""
    path = (bundle.path or "").partition("/")[2]
    return replace(bundle, folder=path or package, path=path)
