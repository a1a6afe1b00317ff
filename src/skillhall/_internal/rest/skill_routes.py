"""The routes of skills, each with all that it may answer."""

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

_NOT_FOUND = {404: "There is no such skill or file."}
_WRITE_ERRORS = {
    403: "A system skill, or one of the repository: nobody changes it here.",
    409: "A skill of that id is there already.",
    422: "The skill or the archive is refused.",
    503: "The disk failed, or the source's host asks to wait.",
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
            "description": "All files of a folder, each under its path in it.",
        },
        "id": {"type": "string", "description": "What to call it, if it is one skill."},
        "replace": {"type": "string", "description": "`true` replaces a skill that is there."},
    },
    "oneOf": [{"required": ["file"]}, {"required": ["files"]}],
}
_BAD_REQUEST = {400: "The request breaks a rule.", 413: "A file is larger than the limit."}
_NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "Nothing has changed since the ETag in If-None-Match."}
}


def build_skill_router(handlers: SkillHandlers) -> APIRouter:
    """The routes of a server's skills."""
    router = APIRouter(tags=["skills"])
    listed = {**build_responses(SkillListResponse, _BAD_REQUEST), **_NOT_MODIFIED}
    add_route(
        router, "GET", SKILLS_PATH, handlers.list_skills, listed, _openapi_extra(*_LIST_PARAMETERS)
    )
    made = build_responses(AddedSkillResponse, _BAD_REQUEST, BODY_ERRORS, _WRITE_ERRORS, status=201)
    body = {"requestBody": describe_request_body(CreateSkillRequest, required=True)}
    add_route(router, "POST", SKILLS_PATH, handlers.add_skill, made, {**_openapi_extra(), **body})
    taken = build_responses(
        ImportedSkillsResponse, SOURCE_ERRORS, BODY_ERRORS, _WRITE_ERRORS, _NOT_FOUND, status=201
    )
    sent = {"requestBody": _import_request_body()}
    import_parameters = _openapi_extra(*_IMPORT_PARAMETERS)
    add_route(
        router,
        "POST",
        f"{SKILLS_PATH}/import",
        handlers.import_skills,
        taken,
        {**import_parameters, **sent},
    )
    would_be = build_responses(CheckedSkillResponse, _BAD_REQUEST, BODY_ERRORS)
    add_route(
        router,
        "POST",
        f"{SKILLS_PATH}/check",
        handlers.check_skill,
        would_be,
        {**_openapi_extra(), **body},
    )
    _add_change_routes(router, handlers)
    one = {**build_responses(SkillResponse, _BAD_REQUEST, _NOT_FOUND), **_NOT_MODIFIED}
    add_route(
        router,
        "GET",
        f"{SKILLS_PATH}/{{id}}",
        handlers.get_skill,
        one,
        _openapi_extra(_ID_PARAMETER),
    )
    gone = build_responses(DeletedSkillResponse, _BAD_REQUEST, _NOT_FOUND, _WRITE_ERRORS)
    extra = _openapi_extra(_ID_PARAMETER, _SHADOWED_PARAMETER)
    add_route(router, "DELETE", f"{SKILLS_PATH}/{{id}}", handlers.delete_skill, gone, extra)
    archived = f"{SKILLS_PATH}/{{id}}/archive"
    add_route(
        router,
        "GET",
        archived,
        handlers.get_skill_archive,
        _binary_responses("The zip file."),
        _openapi_extra(_ID_PARAMETER),
    )
    filed = f"{SKILLS_PATH}/{{id}}/files/{{path:path}}"
    add_route(
        router,
        "GET",
        filed,
        handlers.get_skill_file,
        _binary_responses("The file."),
        _openapi_extra(_ID_PARAMETER, _PATH_PARAMETER),
    )
    return router


def build_well_known_router(handlers: WellKnownHandlers) -> APIRouter:
    """The routes of installers."""
    router = APIRouter(tags=["installers"])
    index = _json_responses("The skills for installers.")
    add_route(
        router, "GET", f"{WELL_KNOWN}/index.json", handlers.get_index, index, _openapi_extra()
    )
    former = _json_responses("The skills for installers that read version 0.1.")
    add_route(
        router,
        "GET",
        f"{LEGACY_WELL_KNOWN}/index.json",
        handlers.get_legacy_index,
        former,
        _openapi_extra(),
    )
    filed = f"{LEGACY_WELL_KNOWN}/{{name}}/{{path:path}}"
    add_route(
        router,
        "GET",
        filed,
        handlers.get_legacy_file,
        _binary_responses("The file."),
        _openapi_extra(_NAME_PARAMETER, _PATH_PARAMETER),
    )
    return router


def _add_change_routes(router: APIRouter, handlers: SkillHandlers) -> None:
    """The routes of changes that can be taken back."""
    meanwhile = {412: "The skill was changed meanwhile."}
    edited = build_responses(
        EditedSkillResponse, _BAD_REQUEST, BODY_ERRORS, _NOT_FOUND, _WRITE_ERRORS, meanwhile
    )
    body = {"requestBody": describe_request_body(EditSkillRequest, required=True)}
    add_route(
        router,
        "PUT",
        f"{SKILLS_PATH}/{{id}}",
        handlers.edit_skill,
        edited,
        {**_openapi_extra(_ID_PARAMETER), **body},
    )
    undone = build_responses(UndoResponse, _BAD_REQUEST, _NOT_FOUND, _WRITE_ERRORS, meanwhile)
    change = _parameter("id", "path", "The change's id.")
    add_route(
        router,
        "POST",
        f"{CHANGES_PATH}/{{id}}/undo",
        handlers.undo_change,
        undone,
        _openapi_extra(change),
    )


def _openapi_extra(*parameters: dict[str, Any]) -> dict[str, Any]:
    return {"security": SECURITY, "parameters": [*parameters]}


def _parameter(name: str, location: str, description: str, **schema: object) -> dict[str, Any]:
    described = {"type": "string", "minLength": 1, **schema}
    required = {"required": True} if location == "path" else {}
    return {
        "name": name,
        "in": location,
        "description": description,
        "schema": described,
        **required,
    }


_ID_PARAMETER = _parameter("id", "path", "The skill's id.")
_SHADOWED_PARAMETER = _parameter(
    "shadowed",
    "query",
    "`true` deletes the user skill that a system skill with the same id shadows.",
    pattern=r"\S",
)
_NAME_PARAMETER = _parameter("name", "path", "The name in the index.")
_PATH_PARAMETER = _parameter("path", "path", "The file's path in the skill.")
_LIST_PARAMETERS = (
    _parameter("q", "query", "Any text: the skills that it finds, the best first.", pattern=r"\S"),
    _parameter("source", "query", "Only those of `user`, `system` or `repository`.", pattern=r"\S"),
    _parameter("cursor", "query", "Where the page before ended.", pattern=r"\S"),
    {
        "name": "limit",
        "in": "query",
        "description": "How many at most.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
)
_IMPORT_PARAMETERS = (
    _parameter("id", "query", "What to call the skill of an archive.", pattern=r"\S"),
    _parameter("replace", "query", "`true` replaces a skill that is there.", pattern=r"\S"),
    _parameter("filename", "query", "What the archive is called.", pattern=r"\S"),
)


def _import_request_body() -> dict[str, Any]:
    described = describe_request_body(ImportSkillsRequest, required=True)
    described["content"]["application/zip"] = {"schema": _BINARY_SCHEMA}
    described["content"]["multipart/form-data"] = {"schema": _FORM_SCHEMA}
    return described


def _binary_responses(description: str) -> dict[int | str, dict[str, Any]]:
    return _content_responses(description, "application/octet-stream", _BINARY_SCHEMA)


def _json_responses(description: str) -> dict[int | str, dict[str, Any]]:
    return _content_responses(description, "application/json", {"type": "object"})


def _content_responses(
    description: str, media_type: str, schema: dict[str, Any]
) -> dict[int | str, dict[str, Any]]:
    described: dict[int | str, dict[str, Any]] = {
        200: {"description": description, "content": {media_type: {"schema": schema}}}
    }
    described |= _NOT_MODIFIED
    for code, text in sorted({**COMMON_ERRORS, **_BAD_REQUEST, **_NOT_FOUND}.items()):
        described[code] = describe_error(code, text)
    return described
