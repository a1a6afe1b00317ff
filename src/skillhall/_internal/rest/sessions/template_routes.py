"""Routes of templates and snapshots."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.http.access import needs
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.rest.api_route import DatabaseRoute, Json
from skillhall._internal.rest.etag import versioned_response
from skillhall._internal.rest.route_parameters import (
    ExpectedRevision,
    RequiredVersion,
    WorkspaceDep,
)
from skillhall._internal.rest.sessions import requests, responses
from skillhall._internal.rest.sessions.requests import (
    API_PREFIX,
    SESSION_PATH,
    SessionId,
    SnapshotId,
    TemplateId,
)
from skillhall._internal.rest.sessions.responses import (
    DATABASE_ERRORS,
    DISK_FULL,
    NAME_CONFLICT,
    NOT_FOUND,
    PRECONDITION_ERRORS,
    STORE_ERRORS,
    VERSION_CONFLICT,
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
router = APIRouter(tags=["sessions"], route_class=DatabaseRoute, responses=DATABASE_ERRORS)


@router.get(_TEMPLATES_PATH, response_model=responses.TemplateListResponse)
@needs(Action.READ)
def list_templates(workspace: WorkspaceDep) -> Response:
    """List the templates by name."""
    templates = workspace.open().templates.list()
    return SuccessResponse({"templates": [*map(serialize_template, templates)]})


@router.post(
    _TEMPLATES_PATH,
    status_code=201,
    response_model=responses.TemplateResponse,
    responses=STORE_ERRORS | NOT_FOUND | NAME_CONFLICT,
)
@needs(Action.WRITE_SESSIONS)
def save_template(workspace: WorkspaceDep, body: Json[requests.SaveTemplateRequest]) -> Response:
    """Save the blocks of a session as a template."""
    template = workspace.open().templates.save(body.session, body.name, body.description)
    return versioned_response(serialize_template(template), 201)


@router.get(_TEMPLATE_PATH, response_model=responses.TemplateDetailResponse, responses=NOT_FOUND)
@needs(Action.READ)
def get_template(workspace: WorkspaceDep, template: TemplateId) -> Response:
    """Return a template with its blocks."""
    detail = workspace.open().templates.find(template)
    return versioned_response(serialize_template_detail(detail))


@router.patch(
    _TEMPLATE_PATH,
    response_model=responses.TemplateResponse,
    responses=STORE_ERRORS | NOT_FOUND | NAME_CONFLICT | PRECONDITION_ERRORS,
)
@needs(Action.WRITE_SESSIONS)
def edit_template(
    workspace: WorkspaceDep,
    template: TemplateId,
    version: RequiredVersion,
    body: Json[requests.EditTemplateRequest],
) -> Response:
    """Change a template's name or description, or replace its blocks with a session's."""
    edited = workspace.open().templates.edit(
        template, version, name=body.name, description=body.description, session=body.session
    )
    return versioned_response(serialize_template(edited))


@router.delete(
    _TEMPLATE_PATH,
    response_model=responses.DeletedResponse,
    responses=NOT_FOUND | PRECONDITION_ERRORS | DISK_FULL,
)
@needs(Action.WRITE_SESSIONS)
def delete_template(
    workspace: WorkspaceDep, template: TemplateId, version: RequiredVersion
) -> Response:
    """Delete a template."""
    workspace.open().templates.delete(template, version)
    return SuccessResponse({"deleted": template})


@router.post(
    f"{SESSION_PATH}/apply-template",
    response_model=responses.SessionReplacedResponse,
    responses=STORE_ERRORS | NOT_FOUND | VERSION_CONFLICT,
)
@needs(Action.WRITE_SESSIONS)
def apply_template(
    workspace: WorkspaceDep,
    session: SessionId,
    body: Json[requests.ApplyTemplateRequest],
    revision: ExpectedRevision,
) -> Response:
    """Add a template's blocks to a session, or replace the session's blocks with them."""
    result = workspace.open().templates.apply(session, body.template, ApplyMode(body.how), revision)
    before = {} if result.before is None else {"before": serialize_snapshot(result.before)}
    return versioned_response({**serialize_session(result.session), **before})


@router.get(_SNAPSHOTS_PATH, response_model=responses.SnapshotListResponse, responses=NOT_FOUND)
@needs(Action.READ)
def list_snapshots(workspace: WorkspaceDep, session: SessionId) -> Response:
    """List the snapshots of a session, newest first."""
    snapshots = workspace.open().snapshots.list(session)
    return SuccessResponse({"snapshots": [*map(serialize_snapshot, snapshots)]})


@router.post(
    _SNAPSHOTS_PATH,
    status_code=201,
    response_model=responses.SnapshotResponse,
    responses=STORE_ERRORS | NOT_FOUND,
)
@needs(Action.WRITE_SESSIONS)
def save_snapshot(
    workspace: WorkspaceDep, session: SessionId, body: Json[requests.SaveSnapshotRequest]
) -> Response:
    """Save a snapshot of a session."""
    snapshot = workspace.open().snapshots.save(session, body.name)
    return SuccessResponse(serialize_snapshot(snapshot), 201)


@router.get(_SNAPSHOT_PATH, response_model=responses.SnapshotDetailResponse, responses=NOT_FOUND)
@needs(Action.READ)
def get_snapshot(workspace: WorkspaceDep, session: SessionId, snapshot: SnapshotId) -> Response:
    """Return a snapshot with its blocks."""
    return SuccessResponse(
        serialize_snapshot_detail(workspace.open().snapshots.find(session, snapshot))
    )


@router.post(
    f"{_SNAPSHOT_PATH}/restore",
    response_model=responses.SessionReplacedResponse,
    responses=NOT_FOUND | VERSION_CONFLICT | DISK_FULL,
)
@needs(Action.WRITE_SESSIONS)
def restore_snapshot(
    workspace: WorkspaceDep, session: SessionId, snapshot: SnapshotId, revision: ExpectedRevision
) -> Response:
    """Restore a snapshot. The current state is saved as an automatic snapshot first."""
    result = workspace.open().snapshots.restore(session, snapshot, revision)
    before = serialize_snapshot(result.before)
    return versioned_response({**serialize_session(result.session), "before": before})


@router.delete(
    _SNAPSHOT_PATH, response_model=responses.DeletedResponse, responses=NOT_FOUND | DISK_FULL
)
@needs(Action.WRITE_SESSIONS)
def delete_snapshot(workspace: WorkspaceDep, session: SessionId, snapshot: SnapshotId) -> Response:
    """Delete a snapshot."""
    workspace.open().snapshots.delete(session, snapshot)
    return SuccessResponse({"deleted": snapshot})
