"""The audit log and the settings of a server, for administrators and auditors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from pydantic import BeforeValidator
from starlette.responses import Response

from skillhall._internal.http.access import actor_of, needs
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.rest import requests, responses
from skillhall._internal.rest.api_route import DatabaseRoute, Json
from skillhall._internal.rest.etag import NO_CACHE
from skillhall._internal.rest.responses import (
    BAD_REQUEST,
    Responses,
    describe_content,
    describe_errors,
)
from skillhall._internal.rest.route_parameters import OptionalText, PageSize, app_state
from skillhall._internal.rest.sessions.responses import DATABASE_ERRORS
from skillhall._internal.wiring.database import RuntimeSettings, ServerAudit, SettingInEffect

AUDIT_PATH = "/api/v1/audit"
SETTINGS_PATH = "/api/v1/settings"
MEDIA_TYPES = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}
_MAX_DIGITS = 18


def _parse_row_number(text: object) -> int:
    digits = str(text)
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS:
        return int(digits)
    raise ValueError("'after' must be a row number")


_LINES = describe_content("Rows as lines of JSON, or as CSV.", MEDIA_TYPES["jsonl"])
_LINES[200]["content"]["text/csv"] = {"schema": {"type": "string"}}
_LINES[200]["headers"] = {
    "Link": {"description": "URL of the next page.", "schema": {"type": "string"}}
}
_RESPONSES: Responses = _LINES | BAD_REQUEST | DATABASE_ERRORS
_Runtime = Annotated[RuntimeSettings | None, app_state("runtime")]
_NO_SETTINGS = describe_errors({404: "The server stores no settings."})
router = APIRouter(tags=["audit"], route_class=DatabaseRoute)


@router.get(AUDIT_PATH, response_class=Response, responses=_RESPONSES)
@needs(Action.READ_AUDIT)
def list_audit_rows(  # noqa: PLR0913, PLR0917 - the parameters of the query
    request: Request,
    audit: Annotated[ServerAudit, app_state("audit")],
    actor: Annotated[OptionalText, Query(description="Name of a user, or user/token.")] = None,
    action: Annotated[
        OptionalText, Query(description="Action such as `skill.edit`, or a group such as `skill`.")
    ] = None,
    subject: Annotated[
        OptionalText, Query(description="Id of the changed skill, token or other object.")
    ] = None,
    outcome: Annotated[OptionalText, Query(description="`done` or `refused`.")] = None,
    via: Annotated[OptionalText, Query(description="Surface, such as `web` or `rest`.")] = None,
    since: Annotated[
        OptionalText, Query(description="Date or time, or a duration such as `7d`.")
    ] = None,
    until: Annotated[OptionalText, Query(description="Date or time.")] = None,
    after: Annotated[
        int,
        Query(description="Number of the last row of the previous page."),
        BeforeValidator(_parse_row_number),
    ] = 0,
    limit: PageSize = 1000,
    output: Annotated[
        OptionalText, Query(alias="format", description="`jsonl` (default) or `csv`.")
    ] = None,
) -> Response:
    """Export rows of the audit log, the oldest first, with their positions and hashes."""
    kind = output or "jsonl"
    if kind not in MEDIA_TYPES:
        raise HttpError("invalid_argument", f"'format' must be one of: {', '.join(MEDIA_TYPES)}")
    values = {
        "actor": actor,
        "action": action,
        "subject": subject,
        "outcome": outcome,
        "via": via,
        "since": since,
        "until": until,
    }
    chosen = {name: value for name, value in values.items() if value}
    parsed = audit.log.parse_filter(datetime.now(UTC), **chosen)
    rows = audit.log.oldest(parsed, after=after, limit=limit)
    text = "".join(audit.log.format_pages([rows], kind))
    headers = {"content-type": MEDIA_TYPES[kind]}
    if len(rows) == limit:
        # A duration would mean another time on the next page.
        times = {name: getattr(parsed, name) for name in ("since", "until") if name in chosen}
        query = dict(request.query_params) | times | {"after": str(rows[-1]["id"])}
        headers["link"] = f'<{AUDIT_PATH}?{urlencode(query)}>; rel="next"'
    return Response(text.encode("utf-8", "replace"), headers=headers)


@router.get(SETTINGS_PATH, response_model=responses.SettingListResponse, responses=_NO_SETTINGS)
@needs(Action.READ_STATUS)
def list_settings(runtime: _Runtime) -> Response:
    """List the settings that can be changed while the server runs."""
    return _respond_settings(_require(runtime))


@router.patch(
    SETTINGS_PATH,
    response_model=responses.SettingListResponse,
    responses=BAD_REQUEST | DATABASE_ERRORS | _NO_SETTINGS,
)
@needs(Action.MANAGE_SETTINGS)
def change_settings(
    request: Request, runtime: _Runtime, body: Json[requests.ChangeSettingsRequest]
) -> Response:
    """Change settings of all servers of the database."""
    values = {name: "" if value is None else str(value) for name, value in body.settings.items()}
    _require(runtime).change(actor_of(request.scope), values)
    return _respond_settings(_require(runtime))


def _require(runtime: RuntimeSettings | None) -> RuntimeSettings:
    if runtime is None:
        raise HttpError("not_found", "settings are not stored on this server")
    return runtime


def _respond_settings(runtime: RuntimeSettings) -> Response:
    settings = [*map(_serialize_setting, runtime.list())]
    return SuccessResponse({"settings": settings}, headers=NO_CACHE)


def _serialize_setting(row: SettingInEffect) -> dict[str, object]:
    setting, stored = row.setting, row.stored
    data: dict[str, object] = {
        "name": setting.name,
        "value": setting.convert(row.value),
        "default": setting.convert(setting.default),
        "variable": setting.variable,
        "fixed": row.is_fixed,
    }
    return data | ({"by": stored.by, "at": stored.at} if stored else {})
