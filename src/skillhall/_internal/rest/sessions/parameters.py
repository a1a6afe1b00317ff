"""Parameters and settings that the session routes share."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter

from skillhall._internal.rest.api_route import ApiRoute
from skillhall._internal.rest.parameters import path_text
from skillhall._internal.rest.responses import COMMON_ERRORS, describe_errors
from skillhall._internal.rest.sessions.responses import DATABASE_ERRORS

API_PREFIX = "/api/v1"
SESSIONS_PATH = f"{API_PREFIX}/sessions"
SESSION_PATH = SESSIONS_PATH + "/{session}"
ZONE_NAMES = ["PERMANENT", "STABLE", "WORKING"]

SessionId = Annotated[str, path_text("Id of the session.")]
BlockId = Annotated[str, path_text("Id of the block.")]
TemplateId = Annotated[str, path_text("Id of the template.")]
SnapshotId = Annotated[str, path_text("Id of the snapshot.")]


def make_session_router() -> APIRouter:
    """Return a router for routes that use the database."""
    responses = describe_errors(COMMON_ERRORS, DATABASE_ERRORS)
    return APIRouter(tags=["sessions"], route_class=ApiRoute, responses=responses)
