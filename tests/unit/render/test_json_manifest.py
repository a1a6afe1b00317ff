import hashlib
from typing import NamedTuple

from skillhall._internal.render.json_manifest import build_manifest
from skillhall._internal.render.listing import serialize_listing
from skillhall._internal.skill.bundle import RelativePath, SkillFile


class Entry(NamedTuple):
    name: str
    description: str
    location: str


def test_manifest_has_path_size_digest_and_executable() -> None:
    file = SkillFile(RelativePath.parse("run.sh"), 4, executable=True, read=lambda: b"true")
    digest = hashlib.sha256(b"true").hexdigest()
    assert build_manifest([file]) == [
        {"path": "run.sh", "size": 4, "digest": f"sha256:{digest}", "executable": True}
    ]


def test_serialized_listing_is_not_escaped() -> None:
    assert serialize_listing([Entry("a&b", "c\nd", "/<e>")]) == [
        {"name": "a&b", "description": "c\nd", "location": "/<e>"}
    ]
