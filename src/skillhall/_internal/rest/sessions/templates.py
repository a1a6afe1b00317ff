"""Routes of templates and snapshots."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.responses import Response

from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.rest.api_route import JsonBody
from skillhall._internal.rest.etag import versioned_response
from skillhall._internal.rest.parameters import (
    ExpectedRevision,
    RequiredVersion,
    WorkspaceDependency,
)
from skillhall._internal.rest.responses import describe_errors, envelope
from skillhall._internal.rest.sessions.parameters import (
    API_PREFIX,
    SESSION_PATH,
    SessionId,
    SnapshotId,
    TemplateId,
    make_session_router,
)
from skillhall._internal.rest.sessions.requests import (
    ApplyTemplateRequest,
    EditTemplateRequest,
    SaveSnapshotRequest,
    SaveTemplateRequest,
)
from skillhall._internal.rest.sessions.responses import (
    DISK_FULL,
    NAME_CONFLICT,
    NOT_FOUND,
    PRECONDITION_ERRORS,
    STORE_ERRORS,
    VERSION_CONFLICT,
    DeletedResponse,
    SessionReplacedResponse,
    SnapshotDetailResponse,
    SnapshotListResponse,
    SnapshotResponse,
    TemplateDetailResponse,
    TemplateListResponse,
    TemplateResponse,
)
from skillhall._internal.workspace.serializers import (
    serialize_session,
    serialize_snapshot,
    serialize_snapshot_detail,
    serialize_template,
    serialize_template_detail,
)
from skillhall._internal.workspace.templates import ApplyMode

_TEMPLATES_PATH = f"{API_PREFIX}/templates"
_TEMPLATE_PATH = _TEMPLATES_PATH + "/{template}"
_SNAPSHOTS_PATH = f"{SESSION_PATH}/snapshots"
_SNAPSHOT_PATH = _SNAPSHOTS_PATH + "/{snapshot}"
router = make_session_router()


@router.get(_TEMPLATES_PATH, response_model=envelope(TemplateListResponse))
def list_templates(workspace: WorkspaceDependency) -> Response:
    """List the templates by name."""
    templates = workspace.open().templates.list()
    return SuccessResponse({"templates": [*map(serialize_template, templates)]})


@router.post(
    _TEMPLATES_PATH,
    status_code=201,
    response_model=envelope(TemplateResponse),
    responses=describe_errors(STORE_ERRORS, NOT_FOUND, NAME_CONFLICT),
)
def save_template(
    workspace: WorkspaceDependency,
    body: Annotated[SaveTemplateRequest, Depends(JsonBody(SaveTemplateRequest))],
) -> Response:
    """Save the blocks of a session as a template."""
    template = workspace.open().templates.save(body.session, body.name, body.description)
    return versioned_response(serialize_template(template), 201)


@router.get(
    _TEMPLATE_PATH,
    response_model=envelope(TemplateDetailResponse),
    responses=describe_errors(NOT_FOUND),
)
def get_template(workspace: WorkspaceDependency, template: TemplateId) -> Response:
    """Return a template with its blocks."""
    detail = workspace.open().templates.find(template)
    return versioned_response(serialize_template_detail(detail))


@router.patch(
    _TEMPLATE_PATH,
    response_model=envelope(TemplateResponse),
    responses=describe_errors(STORE_ERRORS, NOT_FOUND, NAME_CONFLICT, PRECONDITION_ERRORS),
)
def edit_template(
    workspace: WorkspaceDependency,
    template: TemplateId,
    version: RequiredVersion,
    body: Annotated[EditTemplateRequest, Depends(JsonBody(EditTemplateRequest))],
) -> Response:
    """Rename a template, or replace its blocks with those of a session."""
    edited = workspace.open().templates.edit(
        template, version, name=body.name, description=body.description, session=body.session
    )
    return versioned_response(serialize_template(edited))


@router.delete(
    _TEMPLATE_PATH,
    response_model=envelope(DeletedResponse),
    responses=describe_errors(NOT_FOUND, PRECONDITION_ERRORS, DISK_FULL),
)
def delete_template(
    workspace: WorkspaceDependency, template: TemplateId, version: RequiredVersion
) -> Response:
    """Delete a template."""
    workspace.open().templates.delete(template, version)
    return SuccessResponse({"deleted": template})


@router.post(
    f"{SESSION_PATH}/apply-template",
    response_model=envelope(SessionReplacedResponse),
    responses=describe_errors(STORE_ERRORS, NOT_FOUND, VERSION_CONFLICT),
)
def apply_template(
    workspace: WorkspaceDependency,
    session: SessionId,
    body: Annotated[ApplyTemplateRequest, Depends(JsonBody(ApplyTemplateRequest))],
    revision: ExpectedRevision,
) -> Response:
    """Add a template's blocks to a session, or replace the session's blocks."""
    result = workspace.open().templates.apply(session, body.template, ApplyMode(body.how), revision)
    before = {} if result.before is None else {"before": serialize_snapshot(result.before)}
    return versioned_response({**serialize_session(result.session), **before})


@router.get(
    _SNAPSHOTS_PATH,
    response_model=envelope(SnapshotListResponse),
    responses=describe_errors(NOT_FOUND),
)
def list_snapshots(workspace: WorkspaceDependency, session: SessionId) -> Response:
    """List the snapshots of a session, newest first."""
    snapshots = workspace.open().snapshots.list(session)
    return SuccessResponse({"snapshots": [*map(serialize_snapshot, snapshots)]})


@router.post(
    _SNAPSHOTS_PATH,
    status_code=201,
    response_model=envelope(SnapshotResponse),
    responses=describe_errors(STORE_ERRORS, NOT_FOUND),
)
def save_snapshot(
    workspace: WorkspaceDependency,
    session: SessionId,
    body: Annotated[SaveSnapshotRequest, Depends(JsonBody(SaveSnapshotRequest))],
) -> Response:
    """Save a snapshot of a session."""
    snapshot = workspace.open().snapshots.save(session, body.name)
    return SuccessResponse(serialize_snapshot(snapshot), 201)


@router.get(
    _SNAPSHOT_PATH,
    response_model=envelope(SnapshotDetailResponse),
    responses=describe_errors(NOT_FOUND),
)
def get_snapshot(
    workspace: WorkspaceDependency, session: SessionId, snapshot: SnapshotId
) -> Response:
    """Return a snapshot with its blocks."""
    return SuccessResponse(
        serialize_snapshot_detail(workspace.open().snapshots.find(session, snapshot))
    )


@router.post(
    f"{_SNAPSHOT_PATH}/restore",
    response_model=envelope(SessionReplacedResponse),
    responses=describe_errors(NOT_FOUND, VERSION_CONFLICT, DISK_FULL),
)
def restore_snapshot(
    workspace: WorkspaceDependency,
    session: SessionId,
    snapshot: SnapshotId,
    revision: ExpectedRevision,
) -> Response:
    """Restore a snapshot. The current state is saved as an automatic snapshot first."""
    result = workspace.open().snapshots.restore(session, snapshot, revision)
    before = serialize_snapshot(result.before)
    return versioned_response({**serialize_session(result.session), "before": before})


@router.delete(
    _SNAPSHOT_PATH,
    response_model=envelope(DeletedResponse),
    responses=describe_errors(NOT_FOUND, DISK_FULL),
)
def delete_snapshot(
    workspace: WorkspaceDependency, session: SessionId, snapshot: SnapshotId
) -> Response:
    """Delete a snapshot."""
    workspace.open().snapshots.delete(session, snapshot)
    return SuccessResponse({"deleted": snapshot})
