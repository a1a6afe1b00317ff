"""Routes of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from skillhall._internal.http.access import needs
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.rest.api_route import DatabaseRoute, JsonBody
from skillhall._internal.rest.etag import versioned_response
from skillhall._internal.rest.responses import BAD_REQUEST
from skillhall._internal.rest.route_parameters import OptionalText, RequiredVersion, WorkspaceDep
from skillhall._internal.rest.sessions import requests, responses
from skillhall._internal.rest.sessions.requests import (
    API_PREFIX,
    SESSION_PATH,
    ZONE_NAMES,
    BlockId,
    SessionId,
)
from skillhall._internal.rest.sessions.responses import (
    DATABASE_ERRORS,
    DISK_FULL,
    NOT_FOUND,
    PLACEMENT_CONFLICT,
    PRECONDITION_ERRORS,
    STORE_ERRORS,
)
from skillhall._internal.workspace import Block, Session
from skillhall._internal.workspace.blocks import BlockFilter
from skillhall._internal.workspace.serializers import serialize_block, serialize_block_types
from skillhall._internal.workspace.validation import parse_zone, validate_block_type

MAX_BLOCK_BODY_BYTES = 8 * 1024 * 1024  # a block of 1 MiB, whose bytes JSON may escape as \u00XX
_BLOCKS_PATH = f"{SESSION_PATH}/blocks"
_BLOCK_PATH = _BLOCKS_PATH + "/{block}"
router = APIRouter(tags=["sessions"], route_class=DatabaseRoute, responses=DATABASE_ERRORS)


@router.get(f"{API_PREFIX}/block-types", response_model=responses.BlockTypeListResponse)
@needs(Action.READ)
async def list_block_types() -> Response:
    """List the block types."""
    return SuccessResponse(serialize_block_types())


@router.get(
    _BLOCKS_PATH, response_model=responses.BlockListResponse, responses=BAD_REQUEST | NOT_FOUND
)
@needs(Action.READ)
def list_blocks(
    workspace: WorkspaceDep,
    session: SessionId,
    zone: Annotated[
        OptionalText, Query(description="Only this zone.", json_schema_extra={"enum": ZONE_NAMES})
    ] = None,
    kind: Annotated[OptionalText, Query(description="Only this type.", alias="type")] = None,
    q: Annotated[
        OptionalText, Query(description="Only blocks that contain this text, ignoring case.")
    ] = None,
) -> Response:
    """List the blocks of a session in order, filtered by zone, type and text."""
    block_filter = BlockFilter(
        None if zone is None else parse_zone(zone),
        None if kind is None else validate_block_type(kind),
        q or "",
    )
    opened = workspace.open()
    # The revision is read first, so a concurrent change is fetched twice, never missed.
    found = opened.sessions.find(session)
    return _block_list(found, opened.blocks.list(found.id, block_filter))


@router.get(
    f"{SESSION_PATH}/deleted-blocks",
    response_model=responses.BlockListResponse,
    responses=NOT_FOUND,
)
@needs(Action.READ)
def list_deleted_blocks(workspace: WorkspaceDep, session: SessionId) -> Response:
    """List the deleted blocks that can be restored, last deleted first."""
    opened = workspace.open()
    found = opened.sessions.find(session)
    return _block_list(found, opened.blocks.list_deleted(found.id))


@router.post(
    _BLOCKS_PATH,
    status_code=201,
    response_model=responses.BlockResponse,
    responses=STORE_ERRORS | NOT_FOUND | PLACEMENT_CONFLICT,
)
@needs(Action.WRITE_SESSIONS)
def add_block(
    workspace: WorkspaceDep,
    session: SessionId,
    body: Annotated[requests.AddBlockRequest, JsonBody(MAX_BLOCK_BODY_BYTES)],
) -> Response:
    """Add a block to a session."""
    block = workspace.open().blocks.add(
        session, body.type, body.content, body.target_zone(), body.to_placement()
    )
    return versioned_response(serialize_block(block), 201)


@router.get(_BLOCK_PATH, response_model=responses.BlockResponse, responses=NOT_FOUND)
@needs(Action.READ)
def get_block(workspace: WorkspaceDep, session: SessionId, block: BlockId) -> Response:
    """Return a block."""
    return versioned_response(serialize_block(workspace.open().blocks.find(session, block)))


@router.patch(
    _BLOCK_PATH,
    response_model=responses.BlockResponse,
    responses=STORE_ERRORS | NOT_FOUND | PRECONDITION_ERRORS,
)
@needs(Action.WRITE_SESSIONS)
def edit_block(
    workspace: WorkspaceDep,
    session: SessionId,
    block: BlockId,
    version: RequiredVersion,
    body: Annotated[requests.EditBlockRequest, JsonBody(MAX_BLOCK_BODY_BYTES)],
) -> Response:
    """Change the content or the type of a block."""
    edited = workspace.open().blocks.edit(
        session, block, version, text=body.content, kind=body.type
    )
    return versioned_response(serialize_block(edited))


@router.post(
    f"{_BLOCK_PATH}/move",
    response_model=responses.BlockResponse,
    responses=STORE_ERRORS | NOT_FOUND | PRECONDITION_ERRORS | PLACEMENT_CONFLICT,
)
@needs(Action.WRITE_SESSIONS)
def move_block(
    workspace: WorkspaceDep,
    session: SessionId,
    block: BlockId,
    version: RequiredVersion,
    body: Annotated[requests.MoveBlockRequest, JsonBody(is_required=False)],
) -> Response:
    """Move a block within its zone or to another zone."""
    moved = workspace.open().blocks.move(
        session, block, version, body.target_zone(), body.to_placement()
    )
    return versioned_response(serialize_block(moved))


@router.delete(
    _BLOCK_PATH,
    response_model=responses.DeletedResponse,
    responses=NOT_FOUND | PRECONDITION_ERRORS | DISK_FULL,
)
@needs(Action.WRITE_SESSIONS)
def delete_block(
    workspace: WorkspaceDep, session: SessionId, block: BlockId, version: RequiredVersion
) -> Response:
    """Delete a block. It can be restored."""
    workspace.open().blocks.delete(session, block, version)
    return SuccessResponse({"deleted": block})


@router.post(
    f"{_BLOCK_PATH}/undelete",
    response_model=responses.BlockResponse,
    responses=STORE_ERRORS | NOT_FOUND,
)
@needs(Action.WRITE_SESSIONS)
def restore_block(workspace: WorkspaceDep, session: SessionId, block: BlockId) -> Response:
    """Restore a deleted block to its former position."""
    return versioned_response(serialize_block(workspace.open().blocks.restore(session, block)))


def _block_list(session: Session, blocks: Sequence[Block]) -> Response:
    return SuccessResponse(
        {"blocks": [*map(serialize_block, blocks)], "revision": session.revision}
    )
