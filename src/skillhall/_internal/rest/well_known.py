"""What installers read: the skills of this server at the addresses that they know.

An index of version 0.2 names one file for each skill and its digest; one of version 0.1 names all
files, which lie beside it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from skillhall._internal.http.response import JSON_HEADERS, encode_json
from skillhall._internal.rest.downloads import download_headers, path_parts
from skillhall._internal.rest.etag import etag_response
from skillhall._internal.rest.skill_handlers import SKILLS_PATH

if TYPE_CHECKING:
    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.skill_store.collection import Collection, SkillArtifact, SkillFileList

WELL_KNOWN = "/.well-known/agent-skills"
LEGACY_WELL_KNOWN = "/.well-known/skills"
INDEX_SCHEMA_URL = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"


class WellKnownHandlers:
    """The calls of installers, over one collection."""

    def __init__(self, collection: Collection, workers: WorkerPool) -> None:
        self._collection = collection
        self._workers = workers

    async def get_index(self, request: HttpRequest) -> ByteResponse:
        """The skills, each with the address and the digest of its file."""
        return await self._workers.run(etag_response, request, JSON_HEADERS, self._build_index)

    async def get_legacy_index(self, request: HttpRequest) -> ByteResponse:
        """The skills, each with the paths of all its files."""
        return await self._workers.run(
            etag_response, request, JSON_HEADERS, self._build_legacy_index
        )

    async def get_legacy_file(self, request: HttpRequest) -> ByteResponse:
        """One file that the index of version 0.1 names."""
        identity, path = path_parts(request, LEGACY_WELL_KNOWN, 2)
        read = partial(self._collection.read_published_file, identity, path)
        return await self._workers.run(etag_response, request, download_headers(path), read)

    def _build_index(self) -> bytes:
        skills = [_index_entry(artifact) for artifact in self._collection.artifacts()]
        return encode_json({"$schema": INDEX_SCHEMA_URL, "skills": skills})

    def _build_legacy_index(self) -> bytes:
        return encode_json(
            {"skills": [_legacy_index_entry(one) for one in self._collection.file_lists()]}
        )


def _index_entry(artifact: SkillArtifact) -> dict[str, object]:
    place = f"{SKILLS_PATH}/{quote(artifact.entry.id, safe='')}"
    return {
        "name": artifact.entry.name,
        "type": "archive" if artifact.is_archive else "skill-md",
        "description": artifact.entry.description,
        "url": place
        + ("/archive" if artifact.is_archive else f"/files/{quote(artifact.files[0])}"),
        "digest": artifact.digest,
    }


def _legacy_index_entry(outline: SkillFileList) -> dict[str, object]:
    # A client makes the files' addresses out of the name, so it is the one that leads there.
    return {
        "name": outline.entry.id,
        "description": outline.entry.description,
        "files": [*outline.files],
    }
