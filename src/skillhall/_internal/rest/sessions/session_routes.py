"""Routes of sessions and their compiled contexts."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AfterValidator
from starlette.responses import Response

from skillhall._internal.http.access import needs
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.rest.api_route import DatabaseRoute, Json, JsonBody
from skillhall._internal.rest.etag import (
    NO_CACHE,
    download_headers,
    etag_matches,
    versioned_response,
)
from skillhall._internal.rest.responses import (
    BAD_REQUEST,
    BINARY_SCHEMA,
    NOT_MODIFIED,
    describe_content,
    describe_errors,
)
from skillhall._internal.rest.route_parameters import (
    IfNoneMatch,
    OptionalText,
    PageSize,
    RequiredVersion,
    Text,
    WorkspaceDep,
)
from skillhall._internal.rest.sessions import requests, responses
from skillhall._internal.rest.sessions.requests import SESSION_PATH, SESSIONS_PATH, SessionId
from skillhall._internal.rest.sessions.responses import (
    DATABASE_ERRORS,
    DISK_FULL,
    NOT_FOUND,
    PRECONDITION_ERRORS,
    STORE_ERRORS,
)
from skillhall._internal.workspace.export import export_session as export_context
from skillhall._internal.workspace.serializers import (
    serialize_context,
    serialize_overview,
    serialize_session,
)

_CURSOR_PATTERN = r"[0-9a-z]{1,64}"
router = APIRouter(tags=["sessions"], route_class=DatabaseRoute, responses=DATABASE_ERRORS)


def _check_cursor(cursor: str | None) -> str | None:
    if cursor is not None and re.fullmatch(_CURSOR_PATTERN, cursor) is None:
        raise ValueError("invalid cursor")
    return cursor


@router.get(SESSIONS_PATH, response_model=responses.SessionListResponse, responses=BAD_REQUEST)
@needs(Action.READ)
def list_sessions(
    workspace: WorkspaceDep,
    cursor: Annotated[
        OptionalText,
        Query(
            description="`nextCursor` of the previous page.",
            json_schema_extra={"pattern": f"^{_CURSOR_PATTERN}$"},
        ),
        AfterValidator(_check_cursor),
    ] = None,
    limit: PageSize = 100,
) -> Response:
    """List sessions, oldest first."""
    # One session more than requested shows whether there is another page.
    sessions = workspace.open().sessions.list(cursor or "", limit + 1)
    data: dict[str, object] = {"sessions": [*map(serialize_session, sessions[:limit])]}
    if len(sessions) > limit:
        data["nextCursor"] = sessions[limit - 1].id
    return SuccessResponse(data)


@router.post(
    SESSIONS_PATH,
    status_code=201,
    response_model=responses.SessionResponse,
    responses=STORE_ERRORS | NOT_FOUND,
)
@needs(Action.WRITE_SESSIONS)
def create_session(workspace: WorkspaceDep, body: Json[requests.CreateSessionRequest]) -> Response:
    """Create a session, empty or from a template."""
    opened = workspace.open()
    if body.template is None:
        budgets = None if body.budgets is None else body.budgets.to_budgets()
        session = opened.sessions.create(body.name, budgets)
    elif body.budgets is not None:
        raise HttpError("invalid_argument", "'budgets' cannot be combined with 'template'")
    else:
        session = opened.templates.create_session(body.template, body.name)
    return versioned_response(serialize_session(session), 201)


@router.get(SESSION_PATH, response_model=responses.SessionOverviewResponse, responses=NOT_FOUND)
@needs(Action.READ)
def get_session(workspace: WorkspaceDep, session: SessionId) -> Response:
    """Return a session with the sizes of its zones."""
    return versioned_response(serialize_overview(workspace.open().sessions.overview(session)))


@router.patch(
    SESSION_PATH,
    response_model=responses.SessionResponse,
    responses=STORE_ERRORS | NOT_FOUND | PRECONDITION_ERRORS,
)
@needs(Action.WRITE_SESSIONS)
def edit_session(
    workspace: WorkspaceDep,
    session: SessionId,
    version: RequiredVersion,
    body: Json[requests.EditSessionRequest],
) -> Response:
    """Change the name or the budgets of a session."""
    budgets = None if body.budgets is None else body.budgets.to_budgets()
    edited = workspace.open().sessions.edit(session, version, name=body.name, budgets=budgets)
    return versioned_response(serialize_session(edited))


@router.delete(
    SESSION_PATH,
    response_model=responses.DeletedResponse,
    responses=NOT_FOUND | PRECONDITION_ERRORS | DISK_FULL,
)
@needs(Action.WRITE_SESSIONS)
def delete_session(
    workspace: WorkspaceDep, session: SessionId, version: RequiredVersion
) -> Response:
    """Delete a session with its blocks and snapshots."""
    workspace.open().sessions.delete(session, version)
    return SuccessResponse({"deleted": session})


@router.post(
    f"{SESSION_PATH}/duplicate",
    status_code=201,
    response_model=responses.SessionResponse,
    responses=STORE_ERRORS | NOT_FOUND,
)
@needs(Action.WRITE_SESSIONS)
def duplicate_session(
    workspace: WorkspaceDep,
    session: SessionId,
    body: Annotated[requests.DuplicateSessionRequest, JsonBody(is_required=False)],
) -> Response:
    """Create a session with the same blocks."""
    copy = workspace.open().sessions.duplicate(session, body.name)
    return versioned_response(serialize_session(copy), 201)


def _check_format(text: str) -> str:
    if text not in ("json", "text"):
        raise ValueError("'format' must be 'json' or 'text'")
    return text


@router.get(
    f"{SESSION_PATH}/context",
    response_model=responses.ContextResponse,
    responses=describe_content(responses.ContextResponse.__doc__ or "", "text/plain")
    | NOT_MODIFIED
    | BAD_REQUEST
    | NOT_FOUND,
)
@needs(Action.READ)
def get_context(
    workspace: WorkspaceDep,
    session: SessionId,
    form: Annotated[
        Text,
        Query(
            description="`text` returns plain text.",
            alias="format",
            json_schema_extra={"enum": ["json", "text"]},
        ),
        AfterValidator(_check_format),
    ] = "json",
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return the compiled context with its token counts, or as plain text."""
    context = workspace.open().contexts.compile(session)
    headers = {**NO_CACHE, "etag": f'"{context.session.revision}"'}
    if etag_matches(if_none_match, headers["etag"]):
        return Response(status_code=304, headers=headers)
    if form == "text":
        return Response(context.text, headers=headers, media_type="text/plain")
    return SuccessResponse(serialize_context(context), headers=headers)


@router.get(
    f"{SESSION_PATH}/export",
    response_class=Response,
    responses=describe_content("A zip file.", "application/octet-stream", BINARY_SCHEMA)
    | NOT_FOUND
    | describe_errors({413: "The session is too large for one skill."}),
)
@needs(Action.READ)
def export_session(workspace: WorkspaceDep, session: SessionId) -> Response:
    """Download a session as a zip file with a skill folder."""
    name, data = export_context(workspace.open().contexts.compile(session))
    return Response(data, headers={**download_headers(name), **NO_CACHE})
