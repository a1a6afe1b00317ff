"""Images by the OCI specification: an index, a manifest and layers with the files of skills.

Only what was verified against a digest is parsed. The configuration of an image is not read, and
nothing in it is run.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from skillhall._internal.sources.archive.source import DEFAULT_ARCHIVE_LIMITS, read_layers
from skillhall._internal.sources.python_package import SKILLS_FOLDER
from skillhall._internal.strict_json import InvalidJson, JsonObject
from skillhall.errors import ArchiveRejected, NoSkillThere, TooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.skill.bundle import Bundle

MAX_MANIFEST: Final = 4 * 1024 * 1024  # bytes; the limit that the specification recommends
MAX_LAYERS: Final = 2_000
INDEX_TYPES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFEST_TYPES: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_SCHEMA_VERSION = 2
_MAX_SHOWN = 100  # characters of a type in a message
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TAR = re.compile(r".*[./+]tar(?:[.+]gzip)?")
_ATTACHED = "vnd.docker.reference.type"  # annotation of attestations, which are no images
_HINT = "a skill is a folder with a SKILL.md, in a layer of the image"


class Descriptor(NamedTuple):
    """Reference of a manifest to a blob."""

    media_type: str
    digest: str
    size: int

    def verify(self, data: bytes, name: str) -> bytes:
        """Return the data if it is what the reference describes. Raises: ArchiveRejected."""
        digest = compute_blob_digest(data)
        if digest != self.digest:
            problem = f"a blob has the digest {digest}, and the manifest lists {self.digest}"
            raise ArchiveRejected(name, "confusion", problem)
        if len(data) != self.size:
            problem = f"a blob has {len(data)} bytes, and the manifest lists {self.size}"
            raise ArchiveRejected(name, "confusion", problem)
        return data


class BlobStore(Protocol):
    """Where the parts of an image are read; what it returns is verified here."""

    def read_manifest(self, descriptor: Descriptor) -> bytes:
        """Return the manifest with a digest."""

    def read_blobs(self, descriptors: Sequence[Descriptor]) -> Sequence[bytes]:
        """Return the blobs in the same order."""


def compute_blob_digest(data: bytes) -> str:
    """Return the digest in the form of the specification."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def read_image(document: bytes, store: BlobStore, name: str, text: str) -> tuple[Bundle, ...]:
    """Read the skills of an image, given its verified manifest, or an index that names it.

    `name` is that of the image, `text` that of the source in errors.
    Raises: InvalidJson, ArchiveRejected, NoSkillThere, TooLarge, and what the store raises.
    """
    manifest = _parse(document)
    if "manifests" in manifest.fields:
        chosen = choose_manifest(manifest)
        manifest = _parse(chosen.verify(store.read_manifest(chosen), name))
        if "manifests" in manifest.fields:
            raise manifest.build_error("manifests", "is in an index that another index names")
    layers = _parse_layers(manifest, name)
    blobs = [
        layer.verify(data, name)
        for layer, data in zip(layers, store.read_blobs(layers), strict=True)
    ]
    try:
        return read_layers(blobs, name, preferred_folder=SKILLS_FOLDER)
    except ArchiveRejected as error:
        if error.reason == "no_skill":
            raise NoSkillThere(text, _HINT) from None
        raise


def _parse(data: bytes) -> JsonObject:
    """Parse an index or a manifest. Raises: InvalidJson."""
    document = JsonObject.parse(data)
    if document.require("schemaVersion", int) != _SCHEMA_VERSION:
        raise document.build_error("schemaVersion", f"is not {_SCHEMA_VERSION}")
    # Programs that look at different fields would read different images.
    if "manifests" in document.fields and "layers" in document.fields:
        raise document.build_error("manifests", "is next to 'layers'")
    return document


def choose_manifest(index: JsonObject) -> Descriptor:
    """Return the manifest that is read, which is the same on every machine.

    That is the first without a platform, else the first for Linux on AMD64, else the first.
    Raises: InvalidJson.
    """
    ranked: list[tuple[int, Descriptor]] = []
    for entry in index.require_objects("manifests"):
        annotations = entry.fields.get("annotations")
        is_attached = isinstance(annotations, dict) and _ATTACHED in annotations
        if is_attached or entry.require("mediaType", str) not in MANIFEST_TYPES:
            continue
        platform = entry.fields.get("platform")
        rank = 0
        if isinstance(platform, dict):
            is_usual = (platform.get("os"), platform.get("architecture")) == ("linux", "amd64")
            rank = 1 if is_usual else 2
        ranked.append((rank, _parse_descriptor(entry, MAX_MANIFEST)))
    if not ranked:
        raise index.build_error("manifests", "names no manifest of an image")
    return min(ranked, key=lambda one: one[0])[1]


def _parse_layers(manifest: JsonObject, name: str) -> list[Descriptor]:
    """Return the layers of a manifest. Raises: InvalidJson, ArchiveRejected, TooLarge."""
    limit = DEFAULT_ARCHIVE_LIMITS.total
    layers = [_parse_descriptor(one, limit) for one in manifest.require_objects("layers")]
    if len(layers) > MAX_LAYERS:
        raise TooLarge(name, MAX_LAYERS, "layers")
    if sum(layer.size for layer in layers) > limit:
        raise TooLarge(name, limit)
    for layer in layers:
        if not _TAR.fullmatch(layer.media_type):
            shown = repr(layer.media_type[:_MAX_SHOWN])
            raise ArchiveRejected(name, "method", f"a layer has the unsupported type {shown}")
    return layers


def _parse_descriptor(entry: JsonObject, limit: int) -> Descriptor:
    """Parse a reference to a blob. Raises: InvalidJson, TooLarge."""
    digest, size = entry.require_match("digest", _DIGEST), entry.require("size", int)
    if size > limit:
        raise TooLarge(digest, limit)
    return Descriptor(entry.require("mediaType", str), digest, size)


def describe_malformed(error: InvalidJson) -> str:
    """Return the problem of a manifest that cannot be parsed."""
    return f"the manifest is malformed: {error}"
