"""Routes of sessions, with their OpenAPI descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.rest.endpoint import make_summary
from skillhall._internal.rest.responses import (
    BODY_ERRORS,
    COMMON_ERRORS,
    NOT_MODIFIED,
    SOURCE_ERRORS,
    build_responses,
    describe_error,
    describe_request_body,
)
from skillhall._internal.rest.routes import SECURITY, add_route
from skillhall._internal.rest.sessions import requests, responses
from skillhall._internal.rest.sessions.event_stream import EventHandlers
from skillhall._internal.rest.sessions.handlers import (
    CURSOR_PATTERN,
    BlockHandlers,
    SessionHandlers,
    TemplateHandlers,
)
from skillhall._internal.rest.sessions.import_handlers import SessionImportHandlers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pydantic import BaseModel

    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.rest.endpoint import Handler
    from skillhall._internal.workspace.workspace import LazyWorkspace

API_PREFIX = "/api/v1"
SESSIONS_PATH, TEMPLATES_PATH = f"{API_PREFIX}/sessions", f"{API_PREFIX}/templates"
SESSION_PATH = f"{SESSIONS_PATH}/{{session}}"
BLOCK_PATH, TEMPLATE_PATH = f"{SESSION_PATH}/blocks/{{block}}", f"{TEMPLATES_PATH}/{{template}}"
SNAPSHOT_PATH = f"{SESSION_PATH}/snapshots/{{snapshot}}"
EVENTS_PATH = f"{API_PREFIX}/events"

_DATABASE_ERRORS = {503: "The database is unavailable."}
_BAD_REQUEST = {400: "Invalid request."}
_NOT_FOUND = {404: "Session, block, template or snapshot not found."}
_WRITE_ERRORS = {507: "The disk is full."}
_STORE_ERRORS = {
    **_BAD_REQUEST,
    **_WRITE_ERRORS,
    413: "A size or number exceeds its limit.",
    422: "The text contains characters that cannot be stored.",
}
_VERSION_CONFLICT = {412: "Changed by someone else; `details` has the current version."}
_PRECONDITION_ERRORS = {**_VERSION_CONFLICT, 428: "If-Match is missing."}
_PLACEMENT_CONFLICT = {409: "The block in `after` or `before` is not in the zone."}
_NAME_CONFLICT = {409: "The name is taken."}
_SKILL_ERRORS = {
    409: "The session has a skill with this name.",
    422: "The skill or the archive was rejected.",
}


class _Route(NamedTuple):
    method: str
    path: str
    handler: Handler
    response_model: type[BaseModel]
    errors: tuple[dict[int, str], ...]
    body: type[BaseModel] | None = None
    status: int = 200
    parameters: tuple[dict[str, Any], ...] = ()
    is_body_required: bool = True


def build_session_router(
    workspace: LazyWorkspace, workers: WorkerPool, wait_for_shutdown: Callable[[], Awaitable[None]]
) -> APIRouter:
    """Return the routes of a workspace."""
    router = APIRouter(tags=["sessions"])
    sessions, blocks = SessionHandlers(workspace, workers), BlockHandlers(workspace, workers)
    for route in (
        *_session_routes(sessions),
        *_block_routes(blocks),
        *_template_routes(TemplateHandlers(workspace, workers), sessions),
        *_import_routes(SessionImportHandlers(workspace, workers)),
    ):
        _register(router, route)
    _add_context_routes(router, sessions)
    _add_import_routes(router, SessionImportHandlers(workspace, workers))
    _add_event_route(router, EventHandlers(workspace, workers, wait_for_shutdown))
    return router


def _session_routes(handlers: SessionHandlers) -> list[_Route]:
    return [
        _Route(
            "GET",
            SESSIONS_PATH,
            handlers.list_sessions,
            responses.SessionListResponse,
            (_BAD_REQUEST,),
            parameters=_PAGE_PARAMETERS,
        ),
        _Route(
            "POST",
            SESSIONS_PATH,
            handlers.create_session,
            responses.SessionResponse,
            (_STORE_ERRORS, _NOT_FOUND),
            requests.CreateSessionRequest,
            201,
        ),
        _Route(
            "GET",
            SESSION_PATH,
            handlers.get_session,
            responses.SessionOverviewResponse,
            (_NOT_FOUND,),
        ),
        _Route(
            "PATCH",
            SESSION_PATH,
            handlers.edit_session,
            responses.SessionResponse,
            (_STORE_ERRORS, _NOT_FOUND, _PRECONDITION_ERRORS),
            requests.EditSessionRequest,
            parameters=(_IF_MATCH,),
        ),
        _Route(
            "DELETE",
            SESSION_PATH,
            handlers.delete_session,
            responses.DeletedResponse,
            (_NOT_FOUND, _PRECONDITION_ERRORS, _WRITE_ERRORS),
            parameters=(_IF_MATCH,),
        ),
        _Route(
            "POST",
            f"{SESSION_PATH}/duplicate",
            handlers.duplicate_session,
            responses.SessionResponse,
            (_STORE_ERRORS, _NOT_FOUND),
            requests.DuplicateSessionRequest,
            201,
            is_body_required=False,
        ),
    ]


def _block_routes(handlers: BlockHandlers) -> list[_Route]:
    block, blocks_path = responses.BlockResponse, f"{SESSION_PATH}/blocks"
    return [
        _Route(
            "GET",
            f"{API_PREFIX}/block-types",
            handlers.list_block_types,
            responses.BlockTypeListResponse,
            (),
        ),
        _Route(
            "GET",
            blocks_path,
            handlers.list_blocks,
            responses.BlockListResponse,
            (_BAD_REQUEST, _NOT_FOUND),
            parameters=_FILTER_PARAMETERS,
        ),
        _Route(
            "POST",
            blocks_path,
            handlers.add_block,
            block,
            (_STORE_ERRORS, _NOT_FOUND, _PLACEMENT_CONFLICT),
            requests.AddBlockRequest,
            201,
        ),
        _Route("GET", BLOCK_PATH, handlers.get_block, block, (_NOT_FOUND,)),
        _Route(
            "PATCH",
            BLOCK_PATH,
            handlers.edit_block,
            block,
            (_STORE_ERRORS, _NOT_FOUND, _PRECONDITION_ERRORS),
            requests.EditBlockRequest,
            parameters=(_IF_MATCH,),
        ),
        _Route(
            "DELETE",
            BLOCK_PATH,
            handlers.delete_block,
            responses.DeletedResponse,
            (_NOT_FOUND, _PRECONDITION_ERRORS, _WRITE_ERRORS),
            parameters=(_IF_MATCH,),
        ),
        _Route(
            "POST",
            f"{BLOCK_PATH}/move",
            handlers.move_block,
            block,
            (_STORE_ERRORS, _NOT_FOUND, _PRECONDITION_ERRORS, _PLACEMENT_CONFLICT),
            requests.MoveBlockRequest,
            parameters=(_IF_MATCH,),
            is_body_required=False,
        ),
        _Route(
            "POST",
            f"{BLOCK_PATH}/undelete",
            handlers.restore_block,
            block,
            (_STORE_ERRORS, _NOT_FOUND),
        ),
        _Route(
            "GET",
            f"{SESSION_PATH}/deleted-blocks",
            handlers.list_deleted_blocks,
            responses.BlockListResponse,
            (_NOT_FOUND,),
        ),
    ]


def _template_routes(handlers: TemplateHandlers, sessions: SessionHandlers) -> list[_Route]:
    template, snapshot = responses.TemplateResponse, responses.SnapshotResponse
    snapshots_path = f"{SESSION_PATH}/snapshots"
    save_errors = (_STORE_ERRORS, _NOT_FOUND, _NAME_CONFLICT)
    return [
        _Route("GET", TEMPLATES_PATH, handlers.list_templates, responses.TemplateListResponse, ()),
        _Route(
            "POST",
            TEMPLATES_PATH,
            handlers.save_template,
            template,
            save_errors,
            requests.SaveTemplateRequest,
            201,
        ),
        _Route(
            "GET",
            TEMPLATE_PATH,
            handlers.get_template,
            responses.TemplateDetailResponse,
            (_NOT_FOUND,),
        ),
        _Route(
            "PATCH",
            TEMPLATE_PATH,
            handlers.edit_template,
            template,
            (*save_errors, _PRECONDITION_ERRORS),
            requests.EditTemplateRequest,
            parameters=(_IF_MATCH,),
        ),
        _Route(
            "DELETE",
            TEMPLATE_PATH,
            handlers.delete_template,
            responses.DeletedResponse,
            (_NOT_FOUND, _PRECONDITION_ERRORS, _WRITE_ERRORS),
            parameters=(_IF_MATCH,),
        ),
        _Route(
            "POST",
            f"{SESSION_PATH}/apply-template",
            sessions.apply_template,
            responses.SessionReplacedResponse,
            (_STORE_ERRORS, _NOT_FOUND, _VERSION_CONFLICT),
            requests.ApplyTemplateRequest,
            parameters=(_IF_REVISION,),
        ),
        _Route(
            "GET",
            snapshots_path,
            handlers.list_snapshots,
            responses.SnapshotListResponse,
            (_NOT_FOUND,),
        ),
        _Route(
            "POST",
            snapshots_path,
            handlers.save_snapshot,
            snapshot,
            (_STORE_ERRORS, _NOT_FOUND),
            requests.SaveSnapshotRequest,
            201,
        ),
        _Route(
            "GET",
            SNAPSHOT_PATH,
            handlers.get_snapshot,
            responses.SnapshotDetailResponse,
            (_NOT_FOUND,),
        ),
        _Route(
            "POST",
            f"{SNAPSHOT_PATH}/restore",
            handlers.restore_snapshot,
            responses.SessionReplacedResponse,
            (_NOT_FOUND, _VERSION_CONFLICT, _WRITE_ERRORS),
            parameters=(_IF_REVISION,),
        ),
        _Route(
            "DELETE",
            SNAPSHOT_PATH,
            handlers.delete_snapshot,
            responses.DeletedResponse,
            (_NOT_FOUND, _WRITE_ERRORS),
        ),
    ]


def _import_routes(handlers: SessionImportHandlers) -> list[_Route]:
    off = {403: "Folder scans are disabled, or a cross-origin request was rejected."}
    return [
        _Route(
            "GET",
            f"{API_PREFIX}/folder-skills",
            handlers.scan_folder,
            responses.FolderScanResponse,
            (_BAD_REQUEST, off),
            parameters=(
                _query_parameter("folder", "Folder on the server; default ~/.claude/skills."),
            ),
        ),
    ]


def _register(router: APIRouter, route: _Route) -> None:
    body_errors = (BODY_ERRORS, _BAD_REQUEST) if route.body else ()
    errors = (_DATABASE_ERRORS, *route.errors, *body_errors)
    described = build_responses(route.response_model, *errors, status=route.status)
    extra = _openapi_extra(route.path, *route.parameters)
    if route.body is not None:
        extra["requestBody"] = describe_request_body(route.body, required=route.is_body_required)
    add_route(router, route.method, route.path, route.handler, described, extra)


def _add_context_routes(router: APIRouter, handlers: SessionHandlers) -> None:
    path = f"{SESSION_PATH}/context"
    described = build_responses(
        responses.ContextResponse, _DATABASE_ERRORS, _BAD_REQUEST, _NOT_FOUND
    )
    described[304] = NOT_MODIFIED
    described[200]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    form = _query_parameter("format", "`text` returns plain text.", enum=["json", "text"])
    add_route(router, "GET", path, handlers.get_context, described, _openapi_extra(path, form))
    path = f"{SESSION_PATH}/export"
    errors = {
        **COMMON_ERRORS,
        **_DATABASE_ERRORS,
        **_NOT_FOUND,
        413: "The session is too large for one skill.",
    }
    described = {
        200: {
            "description": "A zip file.",
            "content": {"application/octet-stream": {"schema": _BINARY_SCHEMA}},
        },
        **{code: describe_error(code, text) for code, text in errors.items()},
    }
    add_route(router, "GET", path, handlers.export_session, described, _openapi_extra(path))


def _add_import_routes(router: APIRouter, handlers: SessionImportHandlers) -> None:
    errors = (
        _DATABASE_ERRORS,
        SOURCE_ERRORS,
        BODY_ERRORS,
        _STORE_ERRORS,
        _NOT_FOUND,
        _SKILL_ERRORS,
    )
    conflict_modes = ["refuse", "replace", "keep"]
    parameters = (
        _query_parameter("filename", "Name of the uploaded file."),
        _query_parameter("zone", "Zone of the blocks.", enum=["PERMANENT", "STABLE", "WORKING"]),
        _query_parameter("same", "What to do with skills of equal name.", enum=conflict_modes),
        _query_parameter("skills", "Names or folders of the skills to import, comma-separated."),
    )
    body = describe_request_body(requests.SessionImportRequest, required=True)
    body["content"]["application/zip"] = {"schema": _BINARY_SCHEMA}
    body["content"]["text/markdown"] = {"schema": _BINARY_SCHEMA}
    path = f"{SESSION_PATH}/import"
    described = build_responses(responses.SessionImportResponse, *errors, status=201)
    extra = {**_openapi_extra(path, *parameters), "requestBody": body}
    add_route(router, "POST", path, handlers.import_skills, described, extra)
    path = f"{API_PREFIX}/skill-previews"
    described = build_responses(responses.CandidateListResponse, *errors)
    extra = {**_openapi_extra(path, *parameters), "requestBody": body}
    add_route(router, "POST", path, handlers.preview_skills, described, extra)
    path = f"{SESSIONS_PATH}/import"
    described = build_responses(
        responses.SessionResponse,
        _DATABASE_ERRORS,
        _STORE_ERRORS,
        BODY_ERRORS,
        _SKILL_ERRORS,
        status=201,
    )
    kinds = ("application/zip", "application/octet-stream")
    archive = {"required": True, "content": {kind: {"schema": _BINARY_SCHEMA} for kind in kinds}}
    name = _query_parameter("name", "Name of the new session.")
    extra = {**_openapi_extra(path, parameters[0], name), "requestBody": archive}
    add_route(router, "POST", path, handlers.import_session, described, extra)


def _add_event_route(router: APIRouter, handlers: EventHandlers) -> None:
    described: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "A stream of server-sent events.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
    errors = {**COMMON_ERRORS, **_DATABASE_ERRORS, **_BAD_REQUEST}
    described |= {code: describe_error(code, text) for code, text in errors.items()}
    after = _query_parameter("after", "Id of the last received event.", pattern="^[0-9]{1,18}$")
    session = _query_parameter("session", "Only events of this session.")
    router.add_api_route(
        EVENTS_PATH,
        handlers.stream_events,
        methods=["GET"],
        response_class=Response,
        response_model=None,
        responses=described,
        openapi_extra=_openapi_extra(EVENTS_PATH, after, session),
        summary=make_summary(handlers.stream_events),
        description=handlers.stream_events.__doc__ or "",
    )


_BINARY_SCHEMA = {"type": "string", "format": "binary"}


def _query_parameter(name: str, description: str, **schema: object) -> dict[str, Any]:
    form = {"type": "string", "minLength": 1, "pattern": r"\S", **schema}
    return {"name": name, "in": "query", "description": description, "schema": form}


def _header_parameter(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": description, "schema": {"type": "string"}}


_IF_MATCH = _header_parameter("If-Match", "ETag of the version to change.")
_IF_REVISION = _header_parameter("If-Match", "Revision that the session must still have.")
_PAGE_PARAMETERS: tuple[dict[str, Any], ...] = (
    _query_parameter("cursor", "`nextCursor` of the last page.", pattern=f"^{CURSOR_PATTERN}$"),
    {
        "name": "limit",
        "in": "query",
        "description": "Page size.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
)
_FILTER_PARAMETERS = (
    _query_parameter("zone", "Only this zone.", enum=["PERMANENT", "STABLE", "WORKING"]),
    _query_parameter("type", "Only this type."),
    _query_parameter("q", "Only blocks that contain this text, ignoring case."),
)


def _openapi_extra(path: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the security and the parameters of an operation."""
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    ids = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"Id of the {name}.",
            "schema": {"type": "string", "minLength": 1},
        }
        for name in names
    ]
    return {"security": SECURITY, "parameters": [*ids, *parameters]}
