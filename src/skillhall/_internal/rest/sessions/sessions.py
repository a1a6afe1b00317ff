"""Routes of sessions and their compiled contexts."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Query
from pydantic import AfterValidator
from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.rest.api_route import JsonBody
from skillhall._internal.rest.etag import (
    NO_CACHE,
    download_headers,
    etag_matches,
    versioned_response,
)
from skillhall._internal.rest.parameters import (
    IfNoneMatch,
    OptionalText,
    PageSize,
    RequiredVersion,
    Text,
    WorkspaceDependency,
)
from skillhall._internal.rest.responses import (
    BINARY_SCHEMA,
    NOT_MODIFIED,
    describe_content,
    describe_errors,
    envelope,
)
from skillhall._internal.rest.sessions.parameters import (
    SESSION_PATH,
    SESSIONS_PATH,
    SessionId,
    make_session_router,
)
from skillhall._internal.rest.sessions.requests import (
    CreateSessionRequest,
    DuplicateSessionRequest,
    EditSessionRequest,
)
from skillhall._internal.rest.sessions.responses import (
    BAD_REQUEST,
    DISK_FULL,
    NOT_FOUND,
    PRECONDITION_ERRORS,
    STORE_ERRORS,
    ContextResponse,
    DeletedResponse,
    SessionListResponse,
    SessionOverviewResponse,
    SessionResponse,
)
from skillhall._internal.workspace.export import export_session as export_context
from skillhall._internal.workspace.serializers import (
    serialize_context,
    serialize_overview,
    serialize_session,
)
from skillhall._internal.workspace.sessions import NO_BUDGETS

_CURSOR_PATTERN = r"[0-9a-z]{1,64}"
router = make_session_router()


def _check_cursor(cursor: str | None) -> str | None:
    if cursor is not None and re.fullmatch(_CURSOR_PATTERN, cursor) is None:
        raise ValueError("invalid cursor")
    return cursor


@router.get(
    SESSIONS_PATH,
    response_model=envelope(SessionListResponse),
    responses=describe_errors(BAD_REQUEST),
)
def list_sessions(
    workspace: WorkspaceDependency,
    cursor: Annotated[
        OptionalText,
        Query(
            description="`nextCursor` of the last page.",
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
    response_model=envelope(SessionResponse),
    responses=describe_errors(STORE_ERRORS, NOT_FOUND),
)
def create_session(
    workspace: WorkspaceDependency,
    body: Annotated[CreateSessionRequest, Depends(JsonBody(CreateSessionRequest))],
) -> Response:
    """Create a session, empty or from a template."""
    opened = workspace.open()
    if body.template is None:
        budgets = NO_BUDGETS if body.budgets is None else body.budgets.to_budgets()
        session = opened.sessions.create(body.name, budgets)
    elif body.budgets is not None:
        raise HttpError("invalid_argument", "budgets cannot be combined with template")
    else:
        session = opened.templates.create_session(body.template, body.name)
    return versioned_response(serialize_session(session), 201)


@router.get(
    SESSION_PATH,
    response_model=envelope(SessionOverviewResponse),
    responses=describe_errors(NOT_FOUND),
)
def get_session(workspace: WorkspaceDependency, session: SessionId) -> Response:
    """Return a session with the sizes of its zones."""
    return versioned_response(serialize_overview(workspace.open().sessions.overview(session)))


@router.patch(
    SESSION_PATH,
    response_model=envelope(SessionResponse),
    responses=describe_errors(STORE_ERRORS, NOT_FOUND, PRECONDITION_ERRORS),
)
def edit_session(
    workspace: WorkspaceDependency,
    session: SessionId,
    version: RequiredVersion,
    body: Annotated[EditSessionRequest, Depends(JsonBody(EditSessionRequest))],
) -> Response:
    """Change the name or the budgets of a session."""
    budgets = None if body.budgets is None else body.budgets.to_budgets()
    edited = workspace.open().sessions.edit(session, version, name=body.name, budgets=budgets)
    return versioned_response(serialize_session(edited))


@router.delete(
    SESSION_PATH,
    response_model=envelope(DeletedResponse),
    responses=describe_errors(NOT_FOUND, PRECONDITION_ERRORS, DISK_FULL),
)
def delete_session(
    workspace: WorkspaceDependency, session: SessionId, version: RequiredVersion
) -> Response:
    """Delete a session with its blocks and snapshots."""
    workspace.open().sessions.delete(session, version)
    return SuccessResponse({"deleted": session})


@router.post(
    f"{SESSION_PATH}/duplicate",
    status_code=201,
    response_model=envelope(SessionResponse),
    responses=describe_errors(STORE_ERRORS, NOT_FOUND),
)
def duplicate_session(
    workspace: WorkspaceDependency,
    session: SessionId,
    body: Annotated[
        DuplicateSessionRequest, Depends(JsonBody(DuplicateSessionRequest, is_required=False))
    ],
) -> Response:
    """Create a session with the same blocks."""
    copy = workspace.open().sessions.duplicate(session, body.name)
    return versioned_response(serialize_session(copy), 201)


def _check_format(text: str) -> str:
    if text not in ("json", "text"):
        raise ValueError("format must be json or text")
    return text


@router.get(
    f"{SESSION_PATH}/context",
    response_model=envelope(ContextResponse),
    responses={
        **describe_content(ContextResponse.__doc__ or "", "text/plain"),
        **NOT_MODIFIED,
        **describe_errors(BAD_REQUEST, NOT_FOUND),
    },
)
def get_context(
    workspace: WorkspaceDependency,
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
    responses={
        **describe_content("A zip file.", "application/octet-stream", BINARY_SCHEMA),
        **describe_errors(NOT_FOUND, {413: "The session is too large for one skill."}),
    },
)
def export_session(workspace: WorkspaceDependency, session: SessionId) -> Response:
    """Download a session as a zip file with a skill folder."""
    name, data = export_context(workspace.open().contexts.compile(session))
    return Response(data, headers={**download_headers(name), **NO_CACHE})
