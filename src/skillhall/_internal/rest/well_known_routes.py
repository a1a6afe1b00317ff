"""The well-known index of a server, by which installers discover its skills."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.http.access import needs
from skillhall._internal.http.response import encode_json
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.render.well_known import (
    INDEX_FILE,
    LEGACY_WELL_KNOWN,
    WELL_KNOWN,
    IndexEntry,
    LegacyIndexEntry,
    build_index,
    build_legacy_index,
)
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

_JSON = {"content-type": "application/json"}

router = APIRouter(tags=["installers"], route_class=ApiRoute)


def _describe_index(description: str) -> Responses:
    content = describe_content(description, "application/json", {"type": "object"})
    return content | NOT_MODIFIED | BAD_REQUEST | NOT_FOUND


@router.get(
    f"{WELL_KNOWN}/{INDEX_FILE}",
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
        return encode_json(build_index(map(_to_index_entry, collection.artifacts(snapshot))))

    document = collection.get_document("index", encode)
    return document_response(document, _JSON, if_none_match, accept_encoding)


@router.get(
    f"{LEGACY_WELL_KNOWN}/{INDEX_FILE}",
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
        entries = [
            LegacyIndexEntry(entry.id, entry.description, files)
            for entry, files in collection.file_lists(snapshot)
        ]
        return encode_json(build_legacy_index(entries))

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


def _to_index_entry(artifact: SkillArtifact) -> IndexEntry:
    path = "archive" if artifact.is_archive else f"files/{quote(artifact.files[0])}"
    return IndexEntry(
        artifact.entry.name,
        artifact.entry.description,
        f"{SKILLS_PATH}/{quote(artifact.entry.id, safe='')}/{path}",
        artifact.digest,
        artifact.is_archive,
    )
