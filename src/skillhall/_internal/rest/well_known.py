"""The well-known index, by which installers discover the skills of a server.

An index of version 0.2 has the URL and the digest of one file per skill. An index of version 0.1
has the paths of all files, relative to the index.
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
    from skillhall._internal.skill_store.collection import Collection, SkillArtifact

WELL_KNOWN = "/.well-known/agent-skills"
LEGACY_WELL_KNOWN = "/.well-known/skills"
INDEX_SCHEMA_URL = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"


class WellKnownHandlers:
    """Handlers for installers."""

    def __init__(self, collection: Collection, workers: WorkerPool) -> None:
        self._collection = collection
        self._workers = workers

    async def get_skill_index(self, request: HttpRequest) -> ByteResponse:
        """Return the index of version 0.2: each skill with a URL and a digest."""
        return await self._workers.run(etag_response, request, JSON_HEADERS, self._build_index)

    async def get_legacy_skill_index(self, request: HttpRequest) -> ByteResponse:
        """Return the index of version 0.1: each skill with the paths of its files."""
        return await self._workers.run(
            etag_response, request, JSON_HEADERS, self._build_legacy_index
        )

    async def get_legacy_skill_file(self, request: HttpRequest) -> ByteResponse:
        """Return a file listed in the index of version 0.1."""
        identity, path = path_parts(request, LEGACY_WELL_KNOWN, 2)
        read = partial(self._collection.read_published_file, identity, path)
        return await self._workers.run(etag_response, request, download_headers(path), read)

    def _build_index(self) -> bytes:
        skills = [_index_entry(artifact) for artifact in self._collection.artifacts()]
        return encode_json({"$schema": INDEX_SCHEMA_URL, "skills": skills})

    def _build_legacy_index(self) -> bytes:
        # The id, not the name: clients build the URLs of the files from it.
        skills = [
            {"name": skill.id, "description": skill.description, "files": [*files]}
            for skill, files in self._collection.file_lists()
        ]
        return encode_json({"skills": skills})


def _index_entry(artifact: SkillArtifact) -> dict[str, object]:
    path = "archive" if artifact.is_archive else f"files/{quote(artifact.files[0])}"
    return {
        "name": artifact.entry.name,
        "type": "archive" if artifact.is_archive else "skill-md",
        "description": artifact.entry.description,
        "url": f"{SKILLS_PATH}/{quote(artifact.entry.id, safe='')}/{path}",
        "digest": artifact.digest,
    }
