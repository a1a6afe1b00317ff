"""The well-known index, by which installers discover the skills of a server.

Version 0.2 of the index has the URL and digest of one download per skill. Version 0.1 has the paths
of all files, relative to the index.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.http.access import needs
from skillhall._internal.http.response import encode_json
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.rest.api_route import ApiRoute
from skillhall._internal.rest.etag import document_response, download_headers, etag_response
from skillhall._internal.rest.responses import NOT_MODIFIED, Responses, describe_content
from skillhall._internal.rest.route_parameters import (
    AcceptEncoding,
    CollectionDep,
    IfNoneMatch,
    path_text,
)
from skillhall._internal.rest.skill_routes import (
    BAD_REQUEST,
    NOT_FOUND,
    SKILLS_PATH,
    describe_download,
)
from skillhall._internal.skill_store.collection import CollectionSnapshot, SkillArtifact

WELL_KNOWN = "/.well-known/agent-skills"
LEGACY_WELL_KNOWN = "/.well-known/skills"
INDEX_SCHEMA_URL = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
_JSON = {"content-type": "application/json"}

router = APIRouter(tags=["installers"], route_class=ApiRoute)


def _describe_index(description: str) -> Responses:
    content = describe_content(description, "application/json", {"type": "object"})
    return content | NOT_MODIFIED | BAD_REQUEST | NOT_FOUND


@router.get(
    f"{WELL_KNOWN}/index.json",
    response_class=Response,
    responses=_describe_index("Index of version 0.2."),
)
@needs(Action.READ)
def get_skill_index(
    collection: CollectionDep,
    if_none_match: IfNoneMatch = None,
    accept_encoding: AcceptEncoding = "",
) -> Response:
    """Return version 0.2 of the index: each skill with a URL and a digest."""

    def encode(snapshot: CollectionSnapshot) -> bytes:
        skills = [_index_entry(artifact) for artifact in collection.artifacts(snapshot)]
        return encode_json({"$schema": INDEX_SCHEMA_URL, "skills": skills})

    document = collection.get_document("index", encode)
    return document_response(document, _JSON, if_none_match, accept_encoding)


@router.get(
    f"{LEGACY_WELL_KNOWN}/index.json",
    response_class=Response,
    responses=_describe_index("Index of version 0.1."),
)
@needs(Action.READ)
def get_legacy_skill_index(
    collection: CollectionDep,
    if_none_match: IfNoneMatch = None,
    accept_encoding: AcceptEncoding = "",
) -> Response:
    """Return version 0.1 of the index: each skill with the paths of its files."""

    def encode(snapshot: CollectionSnapshot) -> bytes:
        # The id, not the name: clients build the URLs of the files from it.
        skills = [
            {"name": entry.id, "description": entry.description, "files": [*files]}
            for entry, files in collection.file_lists(snapshot)
        ]
        return encode_json({"skills": skills})

    document = collection.get_document("legacy index", encode)
    return document_response(document, _JSON, if_none_match, accept_encoding)


@router.get(
    LEGACY_WELL_KNOWN + "/{name}/{path:path}",
    response_class=Response,
    responses=describe_download("The file."),
)
@needs(Action.READ)
def get_legacy_skill_file(
    collection: CollectionDep,
    name: Annotated[str, path_text("Name in the index.")],
    path: Annotated[str, path_text("Path of the file in the skill.")],
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return a file that is listed in version 0.1 of the index."""
    data = collection.read_published_file(name, path)
    return etag_response(data, download_headers(path), if_none_match)


def _index_entry(artifact: SkillArtifact) -> dict[str, object]:
    path = "archive" if artifact.is_archive else f"files/{quote(artifact.files[0])}"
    return {
        "name": artifact.entry.name,
        "type": "archive" if artifact.is_archive else "skill-md",
        "description": artifact.entry.description,
        "url": f"{SKILLS_PATH}/{quote(artifact.entry.id, safe='')}/{path}",
        "digest": artifact.digest,
    }
