"""The routes of sessions, each with all that it may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.rest.responses import (
    BODY_ERRORS,
    COMMON_ERRORS,
    SOURCE_ERRORS,
    build_responses,
    describe_error,
    describe_request_body,
)
from skillhall._internal.rest.routes import SECURITY, add_route
from skillhall._internal.rest.sessions import requests as bodies
from skillhall._internal.rest.sessions import responses as documents
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

_DATABASE_ERRORS = {503: "The database cannot be used just now."}
_BAD_REQUEST = {400: "The request breaks a rule."}
_NOT_FOUND = {404: "There is no such session, block, template or snapshot."}
_WRITE_ERRORS = {507: "The disk is full."}
_STORE_ERRORS = {
    **_BAD_REQUEST,
    **_WRITE_ERRORS,
    413: "More than the limit.",
    422: "A text that cannot be kept.",
}
_VERSION_CONFLICT = {412: "It was changed meanwhile; details tell the current version."}
_PRECONDITION_ERRORS = {**_VERSION_CONFLICT, 428: "If-Match is missing."}
_PLACEMENT_CONFLICT = {409: "The block beside that place is not there."}
_NAME_CONFLICT = {409: "That name is taken."}
_SKILL_ERRORS = {
    409: "A skill of that name is there already.",
    422: "The skill or archive is refused.",
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
    is_body_required: bool = True  # whether the body is


def build_session_router(
    workspace: LazyWorkspace, workers: WorkerPool, wait_for_shutdown: Callable[[], Awaitable[None]]
) -> APIRouter:
    """The routes of a workspace."""
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
    of, data = _Route, documents
    return [
        of(
            "GET",
            SESSIONS_PATH,
            handlers.list_sessions,
            data.SessionListResponse,
            (_BAD_REQUEST,),
            parameters=_PAGE_PARAMETERS,
        ),
        of(
            "POST",
            SESSIONS_PATH,
            handlers.create_session,
            data.SessionResponse,
            (_STORE_ERRORS, _NOT_FOUND),
            bodies.CreateSessionRequest,
            201,
        ),
        of("GET", SESSION_PATH, handlers.get_session, data.SessionOverviewResponse, (_NOT_FOUND,)),
        of(
            "PATCH",
            SESSION_PATH,
            handlers.edit_session,
            data.SessionResponse,
            (_STORE_ERRORS, _NOT_FOUND, _PRECONDITION_ERRORS),
            bodies.EditSessionRequest,
            parameters=(_IF_MATCH,),
        ),
        of(
            "DELETE",
            SESSION_PATH,
            handlers.delete_session,
            data.DeletedResponse,
            (_NOT_FOUND, _PRECONDITION_ERRORS, _WRITE_ERRORS),
            parameters=(_IF_MATCH,),
        ),
        of(
            "POST",
            f"{SESSION_PATH}/duplicate",
            handlers.duplicate_session,
            data.SessionResponse,
            (_STORE_ERRORS, _NOT_FOUND),
            bodies.DuplicateSessionRequest,
            201,
            is_body_required=False,
        ),
    ]


def _block_routes(handlers: BlockHandlers) -> list[_Route]:
    of, one = _Route, documents.BlockResponse
    listed = f"{SESSION_PATH}/blocks"
    return [
        of(
            "GET",
            f"{API_PREFIX}/block-types",
            handlers.list_block_types,
            documents.BlockTypeListResponse,
            (),
        ),
        of(
            "GET",
            listed,
            handlers.list_blocks,
            documents.BlockListResponse,
            (_BAD_REQUEST, _NOT_FOUND),
            parameters=_FILTER_PARAMETERS,
        ),
        of(
            "POST",
            listed,
            handlers.add_block,
            one,
            (_STORE_ERRORS, _NOT_FOUND, _PLACEMENT_CONFLICT),
            bodies.AddBlockRequest,
            201,
        ),
        of("GET", BLOCK_PATH, handlers.get_block, one, (_NOT_FOUND,)),
        of(
            "PATCH",
            BLOCK_PATH,
            handlers.edit_block,
            one,
            (_STORE_ERRORS, _NOT_FOUND, _PRECONDITION_ERRORS),
            bodies.EditBlockRequest,
            parameters=(_IF_MATCH,),
        ),
        of(
            "DELETE",
            BLOCK_PATH,
            handlers.delete_block,
            documents.DeletedResponse,
            (_NOT_FOUND, _PRECONDITION_ERRORS, _WRITE_ERRORS),
            parameters=(_IF_MATCH,),
        ),
        of(
            "POST",
            f"{BLOCK_PATH}/move",
            handlers.move_block,
            one,
            (_STORE_ERRORS, _NOT_FOUND, _PRECONDITION_ERRORS, _PLACEMENT_CONFLICT),
            bodies.MoveBlockRequest,
            parameters=(_IF_MATCH,),
            is_body_required=False,
        ),
        of(
            "POST",
            f"{BLOCK_PATH}/undelete",
            handlers.restore_block,
            one,
            (_STORE_ERRORS, _NOT_FOUND),
        ),
        of(
            "GET",
            f"{SESSION_PATH}/deleted-blocks",
            handlers.list_deleted_blocks,
            documents.BlockListResponse,
            (_NOT_FOUND,),
        ),
    ]


def _template_routes(handlers: TemplateHandlers, sessions: SessionHandlers) -> list[_Route]:
    of, one, saved = _Route, documents.TemplateResponse, documents.SnapshotResponse
    listed = f"{SESSION_PATH}/snapshots"
    match = (_IF_MATCH,)
    kept = (_STORE_ERRORS, _NOT_FOUND, _NAME_CONFLICT)
    return [
        of("GET", TEMPLATES_PATH, handlers.list_templates, documents.TemplateListResponse, ()),
        of(
            "POST",
            TEMPLATES_PATH,
            handlers.save_template,
            one,
            kept,
            bodies.SaveTemplateRequest,
            201,
        ),
        of(
            "GET",
            TEMPLATE_PATH,
            handlers.get_template,
            documents.TemplateDetailResponse,
            (_NOT_FOUND,),
        ),
        of(
            "PATCH",
            TEMPLATE_PATH,
            handlers.edit_template,
            one,
            (*kept, _PRECONDITION_ERRORS),
            bodies.EditTemplateRequest,
            parameters=match,
        ),
        of(
            "DELETE",
            TEMPLATE_PATH,
            handlers.delete_template,
            documents.DeletedResponse,
            (_NOT_FOUND, _PRECONDITION_ERRORS, _WRITE_ERRORS),
            parameters=match,
        ),
        of(
            "POST",
            f"{SESSION_PATH}/apply-template",
            sessions.apply_template,
            documents.SessionReplacedResponse,
            (_STORE_ERRORS, _NOT_FOUND, _VERSION_CONFLICT),
            bodies.ApplyTemplateRequest,
            parameters=(_IF_REVISION,),
        ),
        of("GET", listed, handlers.list_snapshots, documents.SnapshotListResponse, (_NOT_FOUND,)),
        of(
            "POST",
            listed,
            handlers.save_snapshot,
            saved,
            (_STORE_ERRORS, _NOT_FOUND),
            bodies.SaveSnapshotRequest,
            201,
        ),
        of(
            "GET",
            SNAPSHOT_PATH,
            handlers.get_snapshot,
            documents.SnapshotDetailResponse,
            (_NOT_FOUND,),
        ),
        of(
            "POST",
            f"{SNAPSHOT_PATH}/restore",
            handlers.restore_snapshot,
            documents.SessionReplacedResponse,
            (_NOT_FOUND, _VERSION_CONFLICT, _WRITE_ERRORS),
            parameters=(_IF_REVISION,),
        ),
        of(
            "DELETE",
            SNAPSHOT_PATH,
            handlers.delete_snapshot,
            documents.DeletedResponse,
            (_NOT_FOUND, _WRITE_ERRORS),
        ),
    ]


def _import_routes(handlers: SessionImportHandlers) -> list[_Route]:
    off = {403: "Folders of this machine are not scanned, or a page of another site asks."}
    return [
        _Route(
            "GET",
            f"{API_PREFIX}/folder-skills",
            handlers.scan_folder,
            documents.FolderScanResponse,
            (_BAD_REQUEST, off),
            parameters=(
                _query_parameter("folder", "A folder; ~/.claude/skills if it is not given."),
            ),
        ),
    ]


def _register(router: APIRouter, route: _Route) -> None:
    why = (_DATABASE_ERRORS, *route.errors, *((BODY_ERRORS, _BAD_REQUEST) if route.body else ()))
    described = build_responses(route.response_model, *why, status=route.status)
    extra = _openapi_extra(route.path, *route.parameters)
    if route.body is not None:
        extra["requestBody"] = describe_request_body(route.body, required=route.is_body_required)
    add_route(router, route.method, route.path, route.handler, described, extra)


def _add_context_routes(router: APIRouter, handlers: SessionHandlers) -> None:
    path = f"{SESSION_PATH}/context"
    described = build_responses(
        documents.ContextResponse, _DATABASE_ERRORS, _BAD_REQUEST, _NOT_FOUND
    )
    described[304] = {"description": "Nothing has changed since the ETag in If-None-Match."}
    described[200]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    forms = _query_parameter("format", "`text` for the text alone.", enum=["json", "text"])
    add_route(router, "GET", path, handlers.get_context, described, _openapi_extra(path, forms))
    path = f"{SESSION_PATH}/export"
    why = {
        **COMMON_ERRORS,
        **_DATABASE_ERRORS,
        **_NOT_FOUND,
        413: "The session is too large for one skill.",
    }
    described = {
        200: {
            "description": "The zip file.",
            "content": {"application/octet-stream": {"schema": _BINARY_SCHEMA}},
        },
        **{code: describe_error(code, text) for code, text in why.items()},
    }
    add_route(router, "GET", path, handlers.export_session, described, _openapi_extra(path))


def _add_import_routes(router: APIRouter, handlers: SessionImportHandlers) -> None:
    why = (_DATABASE_ERRORS, SOURCE_ERRORS, BODY_ERRORS, _STORE_ERRORS, _NOT_FOUND, _SKILL_ERRORS)
    how = (
        _query_parameter("filename", "What the file is called."),
        _query_parameter("zone", "Where the blocks go.", enum=["PERMANENT", "STABLE", "WORKING"]),
        _query_parameter(
            "same", "What becomes of equal names.", enum=["refuse", "replace", "keep"]
        ),
        _query_parameter("skills", "Only these, by name or folder, with commas between them."),
    )
    sent = describe_request_body(bodies.SessionImportRequest, required=True)
    sent["content"]["application/zip"] = {"schema": _BINARY_SCHEMA}
    sent["content"]["text/markdown"] = {"schema": _BINARY_SCHEMA}
    path = f"{SESSION_PATH}/import"
    described = build_responses(documents.SessionImportResponse, *why, status=201)
    extra = {**_openapi_extra(path, *how), "requestBody": sent}
    add_route(router, "POST", path, handlers.import_skills, described, extra)
    path = f"{API_PREFIX}/skill-previews"
    described = build_responses(documents.CandidateListResponse, *why)
    extra = {**_openapi_extra(path, *how), "requestBody": sent}
    add_route(router, "POST", path, handlers.preview_skills, described, extra)
    path = f"{SESSIONS_PATH}/import"
    described = build_responses(
        documents.SessionResponse,
        _DATABASE_ERRORS,
        _STORE_ERRORS,
        BODY_ERRORS,
        _SKILL_ERRORS,
        status=201,
    )
    kinds = ("application/zip", "application/octet-stream")
    archive = {"required": True, "content": {kind: {"schema": _BINARY_SCHEMA} for kind in kinds}}
    name = _query_parameter("name", "What to call the session.")
    extra = {**_openapi_extra(path, how[0], name), "requestBody": archive}
    add_route(router, "POST", path, handlers.import_session, described, extra)


def _add_event_route(router: APIRouter, handlers: EventHandlers) -> None:
    described: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "Events as they come.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
    why = {**COMMON_ERRORS, **_DATABASE_ERRORS, **_BAD_REQUEST}
    described |= {code: describe_error(code, text) for code, text in why.items()}
    after = _query_parameter(
        "after", "The number of the last event that is known.", pattern="^[0-9]{1,18}$"
    )
    session = _query_parameter("session", "Of this session alone.")
    router.add_api_route(
        EVENTS_PATH,
        handlers.stream_events,
        methods=["GET"],
        response_class=Response,
        response_model=None,
        responses=described,
        openapi_extra=_openapi_extra(EVENTS_PATH, after, session),
        description=handlers.stream_events.__doc__ or "",
    )


_BINARY_SCHEMA = {"type": "string", "format": "binary"}


def _query_parameter(name: str, description: str, **schema: object) -> dict[str, Any]:
    form = {"type": "string", "minLength": 1, "pattern": r"\S", **schema}
    return {"name": name, "in": "query", "description": description, "schema": form}


def _header_parameter(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": description, "schema": {"type": "string"}}


_IF_MATCH = _header_parameter("If-Match", "The ETag of the version that is changed.")
_IF_REVISION = _header_parameter("If-Match", "The revision of the session, if it must be that one.")
_PAGE_PARAMETERS: tuple[dict[str, Any], ...] = (
    _query_parameter("cursor", "Where the page before ended.", pattern=f"^{CURSOR_PATTERN}$"),
    {
        "name": "limit",
        "in": "query",
        "description": "How many at most.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
)
_FILTER_PARAMETERS = (
    _query_parameter("zone", "Only of this zone.", enum=["PERMANENT", "STABLE", "WORKING"]),
    _query_parameter("type", "Only of this type."),
    _query_parameter("q", "Only with this text in them, in any case."),
)


def _openapi_extra(path: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    """Who may ask, and what stands in the path and beside it."""
    named = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    ids = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"The {name}'s id.",
            "schema": {"type": "string", "minLength": 1},
        }
        for name in named
    ]
    return {"security": SECURITY, "parameters": [*ids, *parameters]}
