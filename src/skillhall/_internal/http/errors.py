"""Table from error codes to HTTP statuses, and the responses for errors."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import NamedTuple

from starlette.responses import Response

from skillhall._internal.hints import TOKEN_HINTS, find_docs, find_hint
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.response import failure_response
from skillhall._internal.workspace.serializers import serialize_current
from skillhall.errors import (
    MissingArguments,
    PromptsSourceError,
    RateLimited,
    SkillhallError,
    StaleVersionError,
    VersionConflict,
)


class ErrorStatus(NamedTuple):
    """HTTP status and machine-readable code of an error response."""

    http_status: int
    code: str


VALIDATION_ERROR = "VALIDATION_ERROR"

ERROR_STATUSES: Mapping[str, ErrorStatus] = {
    "invalid_argument": ErrorStatus(400, VALIDATION_ERROR),
    "prompt_not_found": ErrorStatus(400, VALIDATION_ERROR),
    "source_rejected": ErrorStatus(400, VALIDATION_ERROR),
    "invalid_path": ErrorStatus(400, VALIDATION_ERROR),
    "not_a_file": ErrorStatus(400, VALIDATION_ERROR),
    "not_text": ErrorStatus(400, VALIDATION_ERROR),
    "unauthenticated": ErrorStatus(401, "UNAUTHORIZED"),
    "forbidden": ErrorStatus(403, "FORBIDDEN"),
    "denied_outside_root": ErrorStatus(403, "FORBIDDEN"),
    "denied_extension": ErrorStatus(403, "FORBIDDEN"),
    "read_only": ErrorStatus(403, "READ_ONLY"),
    "not_approved": ErrorStatus(403, "NOT_APPROVED"),
    "cross_origin": ErrorStatus(403, "CROSS_ORIGIN"),
    "not_found": ErrorStatus(404, "NOT_FOUND"),
    "method_not_allowed": ErrorStatus(405, "METHOD_NOT_ALLOWED"),
    "request_timeout": ErrorStatus(408, "REQUEST_TIMEOUT"),
    "conflict": ErrorStatus(409, "CONFLICT"),
    "precondition_failed": ErrorStatus(412, "PRECONDITION_FAILED"),
    "too_large": ErrorStatus(413, "PAYLOAD_TOO_LARGE"),
    "too_many": ErrorStatus(413, "PAYLOAD_TOO_LARGE"),
    "precondition_required": ErrorStatus(428, "PRECONDITION_REQUIRED"),
    "unsupported_media_type": ErrorStatus(415, "UNSUPPORTED_MEDIA_TYPE"),
    "misdirected": ErrorStatus(421, "MISDIRECTED"),
    "invalid_text": ErrorStatus(422, "INVALID_TEXT"),
    "invalid_skill": ErrorStatus(422, "INVALID_SKILL"),
    "archive_rejected": ErrorStatus(422, "ARCHIVE_REJECTED"),
    "too_many_requests": ErrorStatus(429, "TOO_MANY_REQUESTS"),
    "head_too_large": ErrorStatus(431, "REQUEST_HEADERS_TOO_LARGE"),
    "internal": ErrorStatus(500, "INTERNAL_ERROR"),
    "invalid_config": ErrorStatus(500, "INVALID_CONFIG"),
    "upstream_error": ErrorStatus(502, "UPSTREAM_ERROR"),
    "not_ready": ErrorStatus(503, "NOT_READY"),
    "overloaded": ErrorStatus(503, "OVERLOADED"),
    "shutting_down": ErrorStatus(503, "SHUTTING_DOWN"),
    "rate_limited": ErrorStatus(503, "RATE_LIMITED"),
    "storage_unavailable": ErrorStatus(503, "STORAGE_UNAVAILABLE"),
    "db_unavailable": ErrorStatus(503, "DB_UNAVAILABLE"),
    "upstream_timeout": ErrorStatus(504, "UPSTREAM_TIMEOUT"),
    "server_timeout": ErrorStatus(504, "SERVER_TIMEOUT"),
    "storage_full": ErrorStatus(507, "STORAGE_FULL"),
}
# Hints that name routes and variables; `hints.py` has those that suit every surface.
HINTS: Mapping[str, str] = {
    **TOKEN_HINTS,
    "edited": 'send "overwrite": true to replace the local changes',
    "folder_scan_off": "set SKILLHALL_FOLDER_SCAN=on on the server, or upload the skill",
    "following_off": "set SKILLHALL_PROMPTS_REPO to the repository on every server",
    "read_only.shadows": (
        "a user skill {name!r} also exists, shadowed by the system skill; "
        "add ?shadowed=true to delete the user skill"
    ),
    "role_required": "ask an administrator of this server for another role",
    "scope_required": "create a token with 'skillhall token new NAME --scope {scope}'",
    "version_not_found": "GET /api/v1/skills/{name}/versions lists the versions",
    "source_unknown": "upload it first: POST /api/v1/prompts/sources",
}
# Clients of the prompt routes expect this code.
_PROMPTS_SOURCE_STATUS = ErrorStatus(502, "PROMPTS_SOURCE_ERROR")
_RETRY_AFTER = 5  # seconds until the database or a thread may be available again
_SHUTDOWN_RETRY_AFTER = 5  # seconds until this server or its replacement may be up
_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)


def error_status(error: SkillhallError) -> ErrorStatus:
    """Return the status and the code for an error."""
    if isinstance(error, PromptsSourceError):
        return _PROMPTS_SOURCE_STATUS
    return ERROR_STATUSES.get(error.code, ERROR_STATUSES["internal"])


def error_response(error: SkillhallError | OSError, request_id: str) -> Response:
    """Return the response for an error."""
    if isinstance(error, OSError):
        error = _storage_error(error)
    status = error_status(error)
    hint = find_hint(error, HINTS)
    # Clients of the original design look for hints in the message.
    message = f"{error}; {hint}" if hint else str(error)
    report: dict[str, object] = {"code": status.code, "message": message}
    if hint:
        report["hint"] = hint
    report["docs"] = find_docs(error)
    details = _error_details(error)
    if details:
        report["details"] = details
    response = failure_response(status.http_status, report, request_id)
    response.raw_headers.extend(error_headers(error))
    return response


def shutdown_error() -> HttpError:
    """Return the error for a request that is canceled because the server stops."""
    message = "the server is shutting down; the request was not completed"
    headers = ((b"retry-after", b"%d" % _SHUTDOWN_RETRY_AFTER), (b"connection", b"close"))
    return HttpError("shutting_down", message, headers=headers)


def internal_error() -> HttpError:
    """Return the error for a bug; the log has the traceback under the request id."""
    return HttpError("internal", "internal error; see the server log")


def _storage_error(error: OSError) -> HttpError:
    """Return the error for a storage failure; it does not leak the path."""
    if error.errno in _DISK_FULL_ERRNOS:
        return HttpError("storage_full", "the server's disk is full")
    return HttpError("storage_unavailable", "the server's disk failed")


def _error_details(error: SkillhallError) -> Mapping[str, object] | None:
    if isinstance(error, HttpError):
        return error.details
    if isinstance(error, MissingArguments):
        return {"missing": [*error.names]}
    if isinstance(error, StaleVersionError):
        return {"digest": error.digest} if error.digest else None
    if isinstance(error, VersionConflict):
        return {"currentVersion": error.version, **serialize_current(error.current)}
    return None


def error_headers(error: SkillhallError) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers for an error, such as Retry-After."""
    if isinstance(error, HttpError):
        return error.headers
    if isinstance(error, RateLimited):
        return ((b"retry-after", b"%d" % max(1, error.seconds)),)
    if error.code in ("db_unavailable", "overloaded"):
        return ((b"retry-after", b"%d" % _RETRY_AFTER),)
    return ()
