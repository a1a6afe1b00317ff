"""What installers read: the skills of this server at the addresses that they know.

An index of version 0.2 names one file for each skill and its digest; one of version 0.1 names all
files, which lie beside it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from skillhall._internal.http.response import JSON, encoded
from skillhall._internal.rest.downloads import download_of, path_parts
from skillhall._internal.rest.etag import tagged
from skillhall._internal.rest.skill_handlers import SKILLS

if TYPE_CHECKING:
    from skillhall._internal.http.request import Exchange
    from skillhall._internal.http.response import Answer
    from skillhall._internal.http.thread_pool import Blocking
    from skillhall._internal.skill_store.collection import Artifact, Collection, Outline

WELL_KNOWN = "/.well-known/agent-skills"
FORMER = "/.well-known/skills"
SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"


class InstallerCalls:
    """The calls of installers, over one collection."""

    def __init__(self, collection: Collection, blocking: Blocking) -> None:
        self._collection = collection
        self._blocking = blocking

    async def index(self, exchange: Exchange) -> Answer:
        """The skills, each with the address and the digest of its file."""
        return await self._blocking.run(tagged, exchange, JSON, self._index)

    async def former_index(self, exchange: Exchange) -> Answer:
        """The skills, each with the paths of all its files."""
        return await self._blocking.run(tagged, exchange, JSON, self._former_index)

    async def former_file(self, exchange: Exchange) -> Answer:
        """One file that the index of version 0.1 names."""
        identity, path = path_parts(exchange, FORMER, 2)
        read = partial(self._collection.read_published, identity, path)
        return await self._blocking.run(tagged, exchange, download_of(path), read)

    def _index(self) -> bytes:
        skills = [_entry(artifact) for artifact in self._collection.artifacts()]
        return encoded({"$schema": SCHEMA, "skills": skills})

    def _former_index(self) -> bytes:
        return encoded({"skills": [_former_entry(one) for one in self._collection.outlines()]})


def _entry(artifact: Artifact) -> dict[str, object]:
    place = f"{SKILLS}/{quote(artifact.listed.id, safe='')}"
    return {
        "name": artifact.listed.name,
        "type": "archive" if artifact.is_archive else "skill-md",
        "description": artifact.listed.description,
        "url": place
        + ("/archive" if artifact.is_archive else f"/files/{quote(artifact.files[0])}"),
        "digest": artifact.digest,
    }


def _former_entry(outline: Outline) -> dict[str, object]:
    # A client makes the files' addresses out of the name, so it is the one that leads there.
    return {
        "name": outline.listed.id,
        "description": outline.listed.description,
        "files": [*outline.files],
    }
