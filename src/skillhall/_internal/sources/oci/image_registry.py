"""Images in registries, downloaded by the distribution specification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillhall._internal.net.fetch import FetchOptions
from skillhall._internal.net.url import WebUrl
from skillhall._internal.sources.base import OpenedSource
from skillhall._internal.sources.bounded_download import BoundedDownload, run_parallel
from skillhall._internal.sources.oci.image import (
    INDEX_TYPES,
    MANIFEST_TYPES,
    MAX_MANIFEST,
    compute_blob_digest,
    describe_malformed,
    read_image,
)
from skillhall._internal.sources.oci.registry_login import RegistryLogin
from skillhall._internal.strict_json import InvalidJson
from skillhall.errors import ArchiveRejected, SourceNotFound, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.oci.image import Descriptor
    from skillhall._internal.sources.oci.oci_ref import OciRef

_ACCEPT: Final = ", ".join((*INDEX_TYPES, *MANIFEST_TYPES))
_UNAUTHORIZED, _FORBIDDEN = 401, 403


@dataclass(frozen=True, slots=True)
class _Registry:
    """One repository of a registry; implements `BlobStore`."""

    reference: OciRef
    download: BoundedDownload
    login: RegistryLogin

    def fetch_manifest(self, wanted: str) -> bytes:
        """Download the manifest with a tag or digest; a digest is verified.

        Raises: as `open_registry`.
        """
        try:
            data = self._fetch(f"manifests/{wanted}", MAX_MANIFEST, _ACCEPT)
        except SourceNotFound:
            raise SourceNotFound(self.reference.text) from None
        digest = compute_blob_digest(data)
        if ":" in wanted and digest != wanted:
            problem = f"the manifest has the digest {digest} instead of {wanted}"
            raise ArchiveRejected(self.reference.image, "confusion", problem)
        return data

    def read_manifest(self, descriptor: Descriptor) -> bytes:
        """Download a manifest. Raises: as `open_registry`."""
        return self.fetch_manifest(descriptor.digest)

    def read_blobs(self, descriptors: Sequence[Descriptor]) -> tuple[bytes, ...]:
        """Download blobs, some at the same time. Raises: as `open_registry`."""
        return run_parallel(
            lambda one: self._fetch(f"blobs/{one.digest}", one.size, "*/*"), descriptors
        )

    def _fetch(self, target: str, max_bytes: int, accept: str) -> bytes:
        url = f"{self.reference.api_url}/{target}"
        try:
            options = FetchOptions(accept=accept, credentials=self.login)
            return self.download.fetch(url, max_bytes, options).data
        except SourceUnavailable as error:
            if error.status not in {_UNAUTHORIZED, _FORBIDDEN}:
                raise
            # Registries hide whether a private image exists.
            host = WebUrl.parse(url).host
            if self.login.has_login:
                problem = "it rejected the credentials"
                raise SourceUnavailable(
                    host, problem, status=error.status, access="login_rejected"
                ) from None
            problem = "it asks for credentials: the image is private or does not exist"
            raise SourceUnavailable(host, problem, status=error.status, access="no_login") from None


def open_registry(reference: OciRef, context: SourceContext) -> OpenedSource:
    """Download an image, verify it and read its skills.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, ArchiveRejected,
    NoSkillThere, TooLarge, ConfigInvalid.
    """
    download = BoundedDownload(context.address_policy, context.progress)
    registry = _Registry(reference, download, RegistryLogin(reference, context, download))
    document = registry.fetch_manifest(reference.wanted)
    name = reference.image.rpartition("/")[2]
    try:
        bundles = read_image(document, registry, name, reference.text)
    except InvalidJson as error:
        raise SourceUnavailable(reference.host, describe_malformed(error)) from None
    commit = compute_blob_digest(document).removeprefix("sha256:")
    return OpenedSource(reference, bundles, commit)
