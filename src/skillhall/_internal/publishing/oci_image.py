"""The OCI image: a layout folder that clients of registries upload, with a layer per skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.publishing.file_tree import FILE_MODE
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.sources.archive.tar_writer import compress, pack_tar
from skillhall._internal.strict_json import render_json

if TYPE_CHECKING:
    from skillhall._internal.publishing.file_tree import FileTree
    from skillhall._internal.publishing.publication import Publication

_INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
_ANNOTATION = "org.opencontainers.image"
# The format asks for a platform. The files work on all of them.
_PLATFORM = {"architecture": "amd64", "os": "linux"}


def render_oci_image(publication: Publication) -> FileTree:
    """Return the layout of an image with the files `skills/NAME/…`.

    A skill that did not change keeps its layer, so that registries store it once.
    """
    release, metadata = publication.release, publication.metadata
    files: dict[str, tuple[bytes, int]] = {}

    def add_blob(media_type: str, data: bytes) -> dict[str, object]:
        digest = sha256_hex(data)
        files[f"blobs/sha256/{digest}"] = data, FILE_MODE
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    layers, diff_ids, history = [], [], []
    for skill in publication.skills:
        layer = pack_tar(
            (f"skills/{skill.name}/{path}", data, mode)
            for path, (data, mode) in sorted(skill.files.items())
        )
        name = f"{skill.name}@{skill.release.version}"
        title = {"annotations": {f"{_ANNOTATION}.title": f"{name}.tar.gz"}}
        layers.append(add_blob(_LAYER_TYPE, compress(layer)) | title)
        diff_ids.append(f"sha256:{sha256_hex(layer)}")
        history.append({"created": skill.release.date, "created_by": name})
    config = {
        "created": release.date,
        "author": metadata.author,
        **_PLATFORM,
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": history,
    }
    annotations = {
        "title": metadata.name,
        "description": metadata.description,
        "version": release.version,
        "created": release.date,
        "authors": metadata.author,
        "licenses": metadata.license,
        "url": metadata.homepage,
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST_TYPE,
        "config": add_blob(_CONFIG_TYPE, render_json(config)),
        "layers": layers,
        "annotations": {f"{_ANNOTATION}.{key}": one for key, one in annotations.items() if one},
    }
    reference = {"annotations": {f"{_ANNOTATION}.ref.name": release.version}}
    index = {
        "schemaVersion": 2,
        "mediaType": _INDEX_TYPE,
        "manifests": [add_blob(_MANIFEST_TYPE, render_json(manifest)) | reference],
    }
    files["index.json"] = render_json(index) + b"\n", FILE_MODE
    files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}\n', FILE_MODE
    return files
