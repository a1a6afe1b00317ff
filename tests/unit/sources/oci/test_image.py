"""Images: the choice of a manifest, and the layers."""

from collections.abc import Mapping, Sequence

import pytest

from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.sources.oci.image import Descriptor, choose_manifest, read_image
from skillhall._internal.strict_json import InvalidJson, JsonObject
from skillhall.errors import ArchiveRejected, NoSkillThere, TooLarge
from tests.support.archives import SKILL, TarEntry, make_tar
from tests.support.oci_images import (
    MANIFEST,
    describe,
    digest_of,
    make_index,
    make_manifest,
    pack_layer,
)

LAYER = pack_layer({"SKILL.md": SKILL})


class MemoryStore:
    """Blobs in memory."""

    def __init__(self, *blobs: bytes) -> None:
        self.blobs = {digest_of(blob): blob for blob in blobs}

    def read_manifest(self, descriptor: Descriptor) -> bytes:
        return self.blobs[descriptor.digest]

    def read_blobs(self, descriptors: Sequence[Descriptor]) -> list[bytes]:
        return [self.blobs[one.digest] for one in descriptors]


def read(document: bytes, *blobs: bytes) -> tuple[Bundle, ...]:
    return read_image(document, MemoryStore(*blobs), "skills", "oci://h.example/skills")


def platform(os: str, architecture: str) -> dict[str, object]:
    return {"platform": {"os": os, "architecture": architecture}}


ATTESTATION = {"annotations": {"vnd.docker.reference.type": "attestation-manifest"}}


@pytest.mark.parametrize(
    ("entries", "chosen"),
    [
        ([{}], 0),
        ([platform("linux", "arm64"), platform("linux", "amd64")], 1),
        ([platform("linux", "amd64"), {}], 1),
        ([platform("windows", "amd64"), platform("linux", "arm64")], 0),
        ([platform("linux", "amd64") | ATTESTATION, platform("linux", "arm64")], 1),
        ([{"mediaType": "application/x-other"}, {}], 1),
        ([{}, {}], 0),
    ],
)
def test_manifest_is_the_same_on_every_machine(
    entries: list[Mapping[str, object]], chosen: int
) -> None:
    manifests = [describe(b"%d" % n, MANIFEST, **entry) for n, entry in enumerate(entries)]
    index = JsonObject.parse(make_index(*manifests))
    assert choose_manifest(index).digest == digest_of(b"%d" % chosen)


def test_layers_of_one_image_are_read_together() -> None:
    more = pack_layer({"SKILL.md": SKILL, "run.sh": b"x"}, "skills/notes/")
    manifest = make_manifest([describe(LAYER), describe(more)])
    bundles = read(make_index(describe(manifest, MANIFEST)), manifest, LAYER, more)
    assert [(one.folder, [*one.files]) for one in bundles] == [
        ("skills/notes", ["SKILL.md", "run.sh"]),
        ("skills/pdf", ["SKILL.md"]),
    ]


def test_layers_may_list_the_same_folders() -> None:
    folder = TarEntry("skills", kind=b"5", data=b"")
    layers = [
        make_tar(folder, TarEntry(f"skills/{name}/SKILL.md", SKILL)) for name in ("one", "two")
    ]
    types = ("application/vnd.oci.image.layer.v1.tar", "application/vnd.example.tar")
    described = [describe(layer, kind) for layer, kind in zip(layers, types, strict=True)]
    bundles = read(make_manifest(described), *layers)
    assert [one.folder for one in bundles] == ["skills/one", "skills/two"]


def test_skill_at_the_root_of_a_layer_is_named_like_the_image() -> None:
    layer = pack_layer({"SKILL.md": SKILL}, "")
    [bundle] = read(make_manifest([describe(layer)]), layer)
    assert (bundle.folder, bundle.path) == ("skills", "")


def test_file_in_two_layers_is_rejected() -> None:
    other = pack_layer({"SKILL.md": SKILL + b"other"})
    with pytest.raises(ArchiveRejected, match="twice"):
        read(make_manifest([describe(LAYER), describe(other)]), LAYER, other)


def test_layer_that_is_no_tar_file_is_rejected() -> None:
    with pytest.raises(ArchiveRejected, match="not a tar file"):
        read(make_manifest([describe(SKILL)]), SKILL)


def test_image_without_a_skill_is_an_error_that_names_the_source() -> None:
    layer = pack_layer({"README.md": b"x"})
    with pytest.raises(NoSkillThere, match=r"oci://h\.example/skills"):
        read(make_manifest([describe(layer)]), layer)


def test_index_in_an_index_is_rejected() -> None:
    inner = make_index()
    with pytest.raises(InvalidJson, match="another index"):
        read(make_index(describe(inner, MANIFEST)), inner)


DOCUMENTS: dict[str, bytes] = {
    "an old version": make_manifest([], schemaVersion=1),
    "no version": b'{"layers": []}',
    "no layers": b'{"schemaVersion": 2}',
    "an index and layers": make_index(describe(LAYER, MANIFEST), layers=[]),
    "two keys of one name": b'{"schemaVersion": 2, "layers": [], "layers": []}',
    "a weak digest": make_manifest([describe(LAYER, digest=f"md5:{'0' * 32}")]),
    "a digest that climbs out": make_manifest([describe(LAYER, digest="../../../etc/passwd")]),
    "a negative size": make_manifest([describe(LAYER, size=-1)]),
    "a size that is text": make_manifest([describe(LAYER, size="9")]),
    "no manifest": make_index(),
    "attestations only": make_index(
        describe(LAYER, MANIFEST, annotations={"vnd.docker.reference.type": "attestation-manifest"})
    ),
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_malformed_manifest_is_rejected(document: bytes) -> None:
    with pytest.raises(InvalidJson):
        read(document, LAYER)


LAYERS: dict[str, list[dict[str, object]]] = {
    "too much together": [describe(LAYER, size=60 * 1024**2)] * 2,
    "too many": [describe(LAYER)] * 2_001,
    "an endless size": [describe(LAYER, size=10**12)],
    "one layer twice": [describe(LAYER)] * 2,
    "an unknown type": [describe(LAYER, "application/x-executable")],
    "another size": [describe(LAYER, size=len(LAYER) + 1)],
}


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
def test_hostile_layers_are_rejected(layers: list[dict[str, object]]) -> None:
    with pytest.raises((ArchiveRejected, TooLarge)):
        read(make_manifest(layers), LAYER)
