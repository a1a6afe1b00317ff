"""Routes of skills and the well-known index, with their OpenAPI descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter

from skillhall._internal.rest.requests import (
    CreateSkillRequest,
    EditSkillRequest,
    ImportSkillsRequest,
)
from skillhall._internal.rest.responses import (
    BODY_ERRORS,
    COMMON_ERRORS,
    NOT_MODIFIED,
    SOURCE_ERRORS,
    AddedSkillResponse,
    CheckedSkillResponse,
    DeletedSkillResponse,
    EditedSkillResponse,
    ImportedSkillsResponse,
    SkillListResponse,
    SkillResponse,
    UndoResponse,
    build_responses,
    describe_error,
    describe_request_body,
)
from skillhall._internal.rest.routes import SECURITY, add_route
from skillhall._internal.rest.skill_handlers import CHANGES_PATH, SKILLS_PATH
from skillhall._internal.rest.well_known import LEGACY_WELL_KNOWN, WELL_KNOWN

if TYPE_CHECKING:
    from skillhall._internal.rest.skill_handlers import SkillHandlers
    from skillhall._internal.rest.well_known import WellKnownHandlers

_SKILL_PATH = f"{SKILLS_PATH}/{{id}}"
_NOT_FOUND = {404: "Skill, file or change not found."}
_WRITE_ERRORS = {
    403: "System skills and skills of repositories are read-only.",
    409: "A skill with this id already exists.",
    422: "The skill or the archive was rejected.",
    503: "The disk failed, or rate limited by the source's host.",
    507: "The disk is full.",
}
_BINARY_SCHEMA = {"type": "string", "format": "binary"}
_FORM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file": {**_BINARY_SCHEMA, "description": "A zip, tar.gz or tar file, or one SKILL.md."},
        "files": {
            "type": "array",
            "items": _BINARY_SCHEMA,
            "description": "All files of a folder, each with its relative path as filename.",
        },
        "id": {"type": "string", "description": "Id for the skill, if there is only one."},
        "replace": {"type": "string", "description": "`true` replaces existing skills."},
    },
    "oneOf": [{"required": ["file"]}, {"required": ["files"]}],
}
_BAD_REQUEST = {400: "Invalid request.", 413: "A file exceeds the size limit."}


def build_skill_router(handlers: SkillHandlers) -> APIRouter:
    """Return the routes of skills."""
    router = APIRouter(tags=["skills"])
    listed = {**build_responses(SkillListResponse, _BAD_REQUEST), 304: NOT_MODIFIED}
    add_route(
        router, "GET", SKILLS_PATH, handlers.list_skills, listed, _openapi_extra(*_LIST_PARAMETERS)
    )
    added = build_responses(
        AddedSkillResponse, _BAD_REQUEST, BODY_ERRORS, _WRITE_ERRORS, status=201
    )
    body = {"requestBody": describe_request_body(CreateSkillRequest, required=True)}
    extra = {**_openapi_extra(), **body}
    add_route(router, "POST", SKILLS_PATH, handlers.create_skill, added, extra)
    imported = build_responses(
        ImportedSkillsResponse, SOURCE_ERRORS, BODY_ERRORS, _WRITE_ERRORS, _NOT_FOUND, status=201
    )
    path = f"{SKILLS_PATH}/import"
    import_extra = {**_openapi_extra(*_IMPORT_PARAMETERS), "requestBody": _import_request_body()}
    add_route(router, "POST", path, handlers.import_skills, imported, import_extra)
    checked = build_responses(CheckedSkillResponse, _BAD_REQUEST, BODY_ERRORS)
    add_route(router, "POST", f"{SKILLS_PATH}/check", handlers.check_skill, checked, extra)
    _add_change_routes(router, handlers)
    by_id = _openapi_extra(_ID_PARAMETER)
    found = {**build_responses(SkillResponse, _BAD_REQUEST, _NOT_FOUND), 304: NOT_MODIFIED}
    add_route(router, "GET", _SKILL_PATH, handlers.get_skill, found, by_id)
    deleted = build_responses(DeletedSkillResponse, _BAD_REQUEST, _NOT_FOUND, _WRITE_ERRORS)
    extra = _openapi_extra(_ID_PARAMETER, _SHADOWED_PARAMETER)
    add_route(router, "DELETE", _SKILL_PATH, handlers.delete_skill, deleted, extra)
    zipped, path = _binary_responses("A zip file."), f"{_SKILL_PATH}/archive"
    add_route(router, "GET", path, handlers.get_skill_archive, zipped, by_id)
    file, path = _binary_responses("The file."), f"{_SKILL_PATH}/files/{{path:path}}"
    extra = _openapi_extra(_ID_PARAMETER, _PATH_PARAMETER)
    add_route(router, "GET", path, handlers.get_skill_file, file, extra)
    return router


def build_well_known_router(handlers: WellKnownHandlers) -> APIRouter:
    """Return the routes for installers."""
    router, extra = APIRouter(tags=["installers"]), _openapi_extra()
    index, path = _json_responses("Index of version 0.2."), f"{WELL_KNOWN}/index.json"
    add_route(router, "GET", path, handlers.get_skill_index, index, extra)
    index, path = _json_responses("Index of version 0.1."), f"{LEGACY_WELL_KNOWN}/index.json"
    add_route(router, "GET", path, handlers.get_legacy_skill_index, index, extra)
    file, path = _binary_responses("The file."), f"{LEGACY_WELL_KNOWN}/{{name}}/{{path:path}}"
    extra = _openapi_extra(_NAME_PARAMETER, _PATH_PARAMETER)
    add_route(router, "GET", path, handlers.get_legacy_skill_file, file, extra)
    return router


def _add_change_routes(router: APIRouter, handlers: SkillHandlers) -> None:
    """Add the routes that edit a skill and undo changes."""
    conflict = {412: "The skill was changed by someone else."}
    edited = build_responses(
        EditedSkillResponse, _BAD_REQUEST, BODY_ERRORS, _NOT_FOUND, _WRITE_ERRORS, conflict
    )
    body = {"requestBody": describe_request_body(EditSkillRequest, required=True)}
    extra = {**_openapi_extra(_ID_PARAMETER), **body}
    add_route(router, "PUT", _SKILL_PATH, handlers.edit_skill, edited, extra)
    undone = build_responses(UndoResponse, _BAD_REQUEST, _NOT_FOUND, _WRITE_ERRORS, conflict)
    path, extra = f"{CHANGES_PATH}/{{id}}/undo", _openapi_extra(_CHANGE_PARAMETER)
    add_route(router, "POST", path, handlers.undo_change, undone, extra)


def _openapi_extra(*parameters: dict[str, Any]) -> dict[str, Any]:
    return {"security": SECURITY, "parameters": [*parameters]}


def _parameter(name: str, location: str, description: str, **schema: object) -> dict[str, Any]:
    parameter = {"name": name, "in": location, "description": description}
    required = {"required": True} if location == "path" else {}
    return {**parameter, "schema": {"type": "string", "minLength": 1, **schema}, **required}


_ID_PARAMETER = _parameter("id", "path", "Id of the skill.")
_CHANGE_PARAMETER = _parameter("id", "path", "Id of the change.")
_SHADOWED_PARAMETER = _parameter(
    "shadowed",
    "query",
    "`true` deletes the user skill that a system skill with the same id hides.",
    pattern=r"\S",
)
_NAME_PARAMETER = _parameter("name", "path", "Name in the index.")
_PATH_PARAMETER = _parameter("path", "path", "Path of the file in the skill.")
_LIST_PARAMETERS = (
    _parameter("q", "query", "Search text; the best match comes first.", pattern=r"\S"),
    _parameter("source", "query", "`user`, `system` or `repository`.", pattern=r"\S"),
    _parameter("cursor", "query", "`nextCursor` of the previous page.", pattern=r"\S"),
    {
        "name": "limit",
        "in": "query",
        "description": "Page size.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
)
_IMPORT_PARAMETERS = (
    _parameter("id", "query", "Id for the skill in the archive.", pattern=r"\S"),
    _parameter("replace", "query", "`true` replaces existing skills.", pattern=r"\S"),
    _parameter("filename", "query", "File name of the archive.", pattern=r"\S"),
)


def _import_request_body() -> dict[str, Any]:
    body = describe_request_body(ImportSkillsRequest, required=True)
    body["content"]["application/zip"] = {"schema": _BINARY_SCHEMA}
    body["content"]["multipart/form-data"] = {"schema": _FORM_SCHEMA}
    return body


def _binary_responses(description: str) -> dict[int | str, dict[str, Any]]:
    return _content_responses(description, "application/octet-stream", _BINARY_SCHEMA)


def _json_responses(description: str) -> dict[int | str, dict[str, Any]]:
    return _content_responses(description, "application/json", {"type": "object"})


def _content_responses(
    description: str, media_type: str, schema: dict[str, Any]
) -> dict[int | str, dict[str, Any]]:
    errors = sorted({**COMMON_ERRORS, **_BAD_REQUEST, **_NOT_FOUND}.items())
    return {
        200: {"description": description, "content": {media_type: {"schema": schema}}},
        304: NOT_MODIFIED,
        **{code: describe_error(code, text) for code, text in errors},
    }
