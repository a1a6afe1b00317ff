"""The routes of sessions, each with all that it may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.rest.responses import BODY, GUARDED, SOURCE, body_of, error, responses
from skillhall._internal.rest.routes import SECURED, add_route
from skillhall._internal.rest.sessions import requests as bodies
from skillhall._internal.rest.sessions import responses as documents
from skillhall._internal.rest.sessions.event_stream import EventCalls
from skillhall._internal.rest.sessions.handlers import (
    CURSOR,
    BlockCalls,
    SessionCalls,
    TemplateCalls,
)
from skillhall._internal.rest.sessions.import_handlers import DeskImports

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pydantic import BaseModel

    from skillhall._internal.http.thread_pool import Blocking
    from skillhall._internal.rest.endpoint import Call
    from skillhall._internal.workspace.workspace import Door

API = "/api/v1"
SESSIONS, TEMPLATES = f"{API}/sessions", f"{API}/templates"
SESSION = f"{SESSIONS}/{{session}}"
BLOCK, TEMPLATE = f"{SESSION}/blocks/{{block}}", f"{TEMPLATES}/{{template}}"
SNAPSHOT = f"{SESSION}/snapshots/{{snapshot}}"
EVENTS = f"{API}/events"

_ALWAYS = {503: "The database cannot be used just now."}
_BAD = {400: "The request breaks a rule."}
_THERE = {404: "There is no such session, block, template or snapshot."}
_WRITTEN = {507: "The disk is full."}
_KEPT = {**_BAD, **_WRITTEN, 413: "More than the limit.", 422: "A text that cannot be kept."}
_TAGGED = {412: "It was changed meanwhile; details tell the current version."}
_ASKED = {**_TAGGED, 428: "If-Match is missing."}
_PLACED = {409: "The block beside that place is not there."}
_NAMED = {409: "That name is taken."}
_SKILLS = {409: "A skill of that name is there already.", 422: "The skill or archive is refused."}


class _Route(NamedTuple):
    method: str
    path: str
    call: Call
    data: type[BaseModel]
    why: tuple[dict[int, str], ...]
    body: type[BaseModel] | None = None
    status: int = 200
    parameters: tuple[dict[str, Any], ...] = ()
    is_needed: bool = True  # whether the body is


def desk_router(
    door: Door, blocking: Blocking, stopped: Callable[[], Awaitable[None]]
) -> APIRouter:
    """The routes of a workspace."""
    router = APIRouter(tags=["sessions"])
    sessions, blocks = SessionCalls(door, blocking), BlockCalls(door, blocking)
    for route in (
        *_session_routes(sessions),
        *_block_routes(blocks),
        *_template_routes(TemplateCalls(door, blocking), sessions),
        *_import_routes(DeskImports(door, blocking)),
    ):
        _add(router, route)
    _add_context(router, sessions)
    _add_imports(router, DeskImports(door, blocking))
    _add_events(router, EventCalls(door, blocking, stopped))
    return router


def _session_routes(calls: SessionCalls) -> list[_Route]:
    of, data = _Route, documents
    return [
        of("GET", SESSIONS, calls.list_sessions, data.SessionsData, (_BAD,), parameters=_PAGES),
        of(
            "POST",
            SESSIONS,
            calls.create_session,
            data.SessionData,
            (_KEPT, _THERE),
            bodies.SessionBody,
            201,
        ),
        of("GET", SESSION, calls.one_session, data.SessionOverviewData, (_THERE,)),
        of(
            "PATCH",
            SESSION,
            calls.edit_session,
            data.SessionData,
            (_KEPT, _THERE, _ASKED),
            bodies.SessionPatch,
            parameters=(_IF_MATCH,),
        ),
        of(
            "DELETE",
            SESSION,
            calls.delete_session,
            data.DeletedData,
            (_THERE, _ASKED, _WRITTEN),
            parameters=(_IF_MATCH,),
        ),
        of(
            "POST",
            f"{SESSION}/duplicate",
            calls.copy_session,
            data.SessionData,
            (_KEPT, _THERE),
            bodies.CopyBody,
            201,
            is_needed=False,
        ),
    ]


def _block_routes(calls: BlockCalls) -> list[_Route]:
    of, one = _Route, documents.BlockData
    listed = f"{SESSION}/blocks"
    return [
        of("GET", f"{API}/block-types", calls.block_types, documents.TypesData, ()),
        of(
            "GET",
            listed,
            calls.list_blocks,
            documents.BlocksData,
            (_BAD, _THERE),
            parameters=_FILTERS,
        ),
        of("POST", listed, calls.add_block, one, (_KEPT, _THERE, _PLACED), bodies.BlockBody, 201),
        of("GET", BLOCK, calls.one_block, one, (_THERE,)),
        of(
            "PATCH",
            BLOCK,
            calls.edit_block,
            one,
            (_KEPT, _THERE, _ASKED),
            bodies.BlockPatch,
            parameters=(_IF_MATCH,),
        ),
        of(
            "DELETE",
            BLOCK,
            calls.delete_block,
            documents.DeletedData,
            (_THERE, _ASKED, _WRITTEN),
            parameters=(_IF_MATCH,),
        ),
        of(
            "POST",
            f"{BLOCK}/move",
            calls.move_block,
            one,
            (_KEPT, _THERE, _ASKED, _PLACED),
            bodies.MoveBody,
            parameters=(_IF_MATCH,),
            is_needed=False,
        ),
        of("POST", f"{BLOCK}/undelete", calls.bring_block_back, one, (_KEPT, _THERE)),
        of(
            "GET",
            f"{SESSION}/deleted-blocks",
            calls.deleted_blocks,
            documents.BlocksData,
            (_THERE,),
        ),
    ]


def _template_routes(calls: TemplateCalls, sessions: SessionCalls) -> list[_Route]:
    of, one, saved = _Route, documents.TemplateData, documents.SnapshotData
    listed = f"{SESSION}/snapshots"
    match = (_IF_MATCH,)
    kept = (_KEPT, _THERE, _NAMED)
    return [
        of("GET", TEMPLATES, calls.list_templates, documents.TemplatesData, ()),
        of("POST", TEMPLATES, calls.save_template, one, kept, bodies.TemplateBody, 201),
        of("GET", TEMPLATE, calls.one_template, documents.ArrangementData, (_THERE,)),
        of(
            "PATCH",
            TEMPLATE,
            calls.edit_template,
            one,
            (*kept, _ASKED),
            bodies.TemplatePatch,
            parameters=match,
        ),
        of(
            "DELETE",
            TEMPLATE,
            calls.delete_template,
            documents.DeletedData,
            (_THERE, _ASKED, _WRITTEN),
            parameters=match,
        ),
        of(
            "POST",
            f"{SESSION}/apply-template",
            sessions.apply_template,
            documents.ReplacedData,
            (_KEPT, _THERE, _TAGGED),
            bodies.ApplyBody,
            parameters=(_IF_REVISION,),
        ),
        of("GET", listed, calls.list_snapshots, documents.SnapshotsData, (_THERE,)),
        of("POST", listed, calls.save_snapshot, saved, (_KEPT, _THERE), bodies.SnapshotBody, 201),
        of("GET", SNAPSHOT, calls.one_snapshot, documents.SavedSessionData, (_THERE,)),
        of(
            "POST",
            f"{SNAPSHOT}/restore",
            calls.restore_snapshot,
            documents.ReplacedData,
            (_THERE, _TAGGED, _WRITTEN),
            parameters=(_IF_REVISION,),
        ),
        of(
            "DELETE",
            SNAPSHOT,
            calls.delete_snapshot,
            documents.DeletedData,
            (_THERE, _WRITTEN),
        ),
    ]


def _import_routes(calls: DeskImports) -> list[_Route]:
    off = {403: "Folders of this machine are not scanned, or a page of another site asks."}
    return [
        _Route(
            "GET",
            f"{API}/folder-skills",
            calls.scan_folder,
            documents.FolderData,
            (_BAD, off),
            parameters=(_query("folder", "A folder; ~/.claude/skills if it is not given."),),
        ),
    ]


def _add(router: APIRouter, route: _Route) -> None:
    why = (_ALWAYS, *route.why, *((BODY, _BAD) if route.body else ()))
    described = responses(route.data, *why, status=route.status)
    extra = _extra(route.path, *route.parameters)
    if route.body is not None:
        extra["requestBody"] = body_of(route.body, required=route.is_needed)
    add_route(router, route.method, route.path, route.call, described, extra)


def _add_context(router: APIRouter, calls: SessionCalls) -> None:
    path = f"{SESSION}/context"
    described = responses(documents.ContextData, _ALWAYS, _BAD, _THERE)
    described[304] = {"description": "Nothing has changed since the ETag in If-None-Match."}
    described[200]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    forms = _query("format", "`text` for the text alone.", enum=["json", "text"])
    add_route(router, "GET", path, calls.one_context, described, _extra(path, forms))
    path = f"{SESSION}/export"
    why = {**GUARDED, **_ALWAYS, **_THERE, 413: "The session is too large for one skill."}
    described = {
        200: {
            "description": "The zip file.",
            "content": {"application/octet-stream": {"schema": _BINARY}},
        },
        **{code: error(code, text) for code, text in why.items()},
    }
    add_route(router, "GET", path, calls.export, described, _extra(path))


def _add_imports(router: APIRouter, calls: DeskImports) -> None:
    why = (_ALWAYS, SOURCE, BODY, _KEPT, _THERE, _SKILLS)
    how = (
        _query("filename", "What the file is called."),
        _query("zone", "Where the blocks go.", enum=["PERMANENT", "STABLE", "WORKING"]),
        _query("same", "What becomes of equal names.", enum=["refuse", "replace", "keep"]),
        _query("skills", "Only these, by name or folder, with commas between them."),
    )
    sent = body_of(bodies.SkillImportBody, required=True)
    sent["content"]["application/zip"] = {"schema": _BINARY}
    sent["content"]["text/markdown"] = {"schema": _BINARY}
    path = f"{SESSION}/import"
    described = responses(documents.SkillImportData, *why, status=201)
    extra = {**_extra(path, *how), "requestBody": sent}
    add_route(router, "POST", path, calls.import_skills, described, extra)
    path = f"{API}/skill-previews"
    described = responses(documents.CandidatesData, *why)
    extra = {**_extra(path, *how), "requestBody": sent}
    add_route(router, "POST", path, calls.preview_skills, described, extra)
    path = f"{SESSIONS}/import"
    described = responses(documents.SessionData, _ALWAYS, _KEPT, BODY, _SKILLS, status=201)
    kinds = ("application/zip", "application/octet-stream")
    archive = {"required": True, "content": {kind: {"schema": _BINARY} for kind in kinds}}
    name = _query("name", "What to call the session.")
    extra = {**_extra(path, how[0], name), "requestBody": archive}
    add_route(router, "POST", path, calls.open_session, described, extra)


def _add_events(router: APIRouter, calls: EventCalls) -> None:
    described: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "Events as they come.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
    why = {**GUARDED, **_ALWAYS, **_BAD}
    described |= {code: error(code, text) for code, text in why.items()}
    after = _query("after", "The number of the last event that is known.", pattern="^[0-9]{1,18}$")
    session = _query("session", "Of this session alone.")
    router.add_api_route(
        EVENTS,
        calls.stream,
        methods=["GET"],
        response_class=Response,
        response_model=None,
        responses=described,
        openapi_extra=_extra(EVENTS, after, session),
        description=calls.stream.__doc__ or "",
    )


_BINARY = {"type": "string", "format": "binary"}


def _query(name: str, about: str, **schema: object) -> dict[str, Any]:
    form = {"type": "string", "minLength": 1, "pattern": r"\S", **schema}
    return {"name": name, "in": "query", "description": about, "schema": form}


def _header(name: str, about: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": about, "schema": {"type": "string"}}


_IF_MATCH = _header("If-Match", "The ETag of the version that is changed.")
_IF_REVISION = _header("If-Match", "The revision of the session, if it must be that one.")
_PAGES: tuple[dict[str, Any], ...] = (
    _query("cursor", "Where the page before ended.", pattern=f"^{CURSOR}$"),
    {
        "name": "limit",
        "in": "query",
        "description": "How many at most.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
)
_FILTERS = (
    _query("zone", "Only of this zone.", enum=["PERMANENT", "STABLE", "WORKING"]),
    _query("type", "Only of this type."),
    _query("q", "Only with this text in them, in any case."),
)


def _extra(path: str, *parameters: dict[str, Any]) -> dict[str, Any]:
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
    return {"security": SECURED, "parameters": [*ids, *parameters]}
