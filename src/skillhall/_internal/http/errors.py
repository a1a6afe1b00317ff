"""Errors as answers: one table for every class of error."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.response import failure
from skillhall._internal.workspace.serializers import current_data
from skillhall.errors import (
    MissingArguments,
    PromptsSourceError,
    RateLimited,
    SkillhallError,
    VersionConflict,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.http.response import Answer, Headers


class Status(NamedTuple):
    """How a class of errors is answered: the status, and the code that programs read."""

    http: int
    wire: str


INVALID = "VALIDATION_ERROR"

STATUS: Mapping[str, Status] = {
    "invalid_argument": Status(400, INVALID),
    "prompt_not_found": Status(400, INVALID),
    "source_rejected": Status(400, INVALID),
    "invalid_path": Status(400, INVALID),
    "not_a_file": Status(400, INVALID),
    "not_text": Status(400, INVALID),
    "unauthenticated": Status(401, "UNAUTHORIZED"),
    "forbidden": Status(403, "FORBIDDEN"),
    "denied_outside_root": Status(403, "FORBIDDEN"),
    "denied_extension": Status(403, "FORBIDDEN"),
    "read_only": Status(403, "READ_ONLY"),
    "cross_origin": Status(403, "CROSS_ORIGIN"),
    "not_found": Status(404, "NOT_FOUND"),
    "method_not_allowed": Status(405, "METHOD_NOT_ALLOWED"),
    "request_timeout": Status(408, "REQUEST_TIMEOUT"),
    "conflict": Status(409, "CONFLICT"),
    "precondition_failed": Status(412, "PRECONDITION_FAILED"),
    "too_large": Status(413, "PAYLOAD_TOO_LARGE"),
    "too_many": Status(413, "PAYLOAD_TOO_LARGE"),
    "precondition_required": Status(428, "PRECONDITION_REQUIRED"),
    "unsupported_media_type": Status(415, "UNSUPPORTED_MEDIA_TYPE"),
    "misdirected": Status(421, "MISDIRECTED"),
    "invalid_text": Status(422, "INVALID_TEXT"),
    "invalid_skill": Status(422, "INVALID_SKILL"),
    "archive_rejected": Status(422, "ARCHIVE_REJECTED"),
    "too_many_requests": Status(429, "TOO_MANY_REQUESTS"),
    "head_too_large": Status(431, "REQUEST_HEADERS_TOO_LARGE"),
    "internal": Status(500, "INTERNAL_ERROR"),
    "invalid_config": Status(500, "INVALID_CONFIG"),
    "upstream_error": Status(502, "UPSTREAM_ERROR"),
    "not_ready": Status(503, "NOT_READY"),
    "shutting_down": Status(503, "SHUTTING_DOWN"),
    "rate_limited": Status(503, "RATE_LIMITED"),
    "storage_unavailable": Status(503, "STORAGE_UNAVAILABLE"),
    "db_unavailable": Status(503, "DB_UNAVAILABLE"),
    "upstream_timeout": Status(504, "UPSTREAM_TIMEOUT"),
    "storage_full": Status(507, "STORAGE_FULL"),
}
# The name that clients of the prompt routes know it by.
_PROMPTS_SOURCE = Status(502, "PROMPTS_SOURCE_ERROR")
_DATABASE_SECONDS = 5  # after which a database that was not there is asked for again
_RESTART_SECONDS = 5  # after which another server, or this one, may answer
_FULL = (errno.ENOSPC, errno.EDQUOT)


def status_of(error: SkillhallError) -> Status:
    """How that error is answered."""
    if isinstance(error, PromptsSourceError):
        return _PROMPTS_SOURCE
    return STATUS.get(error.code, STATUS["internal"])


def error_answer(error: SkillhallError, request_id: str) -> Answer:
    """The answer that tells about `error`."""
    status = status_of(error)
    message = f"{error}; {error.hint}" if error.hint else str(error)
    report: dict[str, object] = {"code": status.wire, "message": message}
    details = _details(error)
    if details:
        report["details"] = details
    return failure(status.http, report, request_id, _headers(error))


def disk_answer(error: OSError, request_id: str) -> Answer:
    """The same for a disk that fails; which file it was is nobody's business."""
    if error.errno in _FULL:
        refusal = Refused("storage_full", "the server's disk is full")
    else:
        refusal = Refused("storage_unavailable", "the server's disk failed")
    return error_answer(refusal, request_id)


def internal_answer(request_id: str) -> Answer:
    """The answer that tells nothing but the id, by which the log tells the rest."""
    return error_answer(internal_refusal(), request_id)


def stopping_answer(request_id: str) -> Answer:
    """The answer to a request that is cut off because the server stops."""
    message = "the server is shutting down; the request was not completed"
    headers = ((b"retry-after", b"%d" % _RESTART_SECONDS), (b"connection", b"close"))
    return error_answer(Refused("shutting_down", message, headers=headers), request_id)


def internal_refusal() -> Refused:
    """The same before it is an answer."""
    return Refused("internal", "internal error; the log knows more")


def _details(error: SkillhallError) -> Mapping[str, object] | None:
    if isinstance(error, Refused):
        return error.details
    if isinstance(error, MissingArguments):
        return {"missing": [*error.names]}
    if isinstance(error, VersionConflict):
        return {"currentVersion": error.version, **current_data(error.current)}
    return None


def _headers(error: SkillhallError) -> Headers:
    if isinstance(error, Refused):
        return error.headers
    if isinstance(error, RateLimited):
        return ((b"retry-after", b"%d" % max(1, error.seconds)),)
    if error.code == "db_unavailable":
        return ((b"retry-after", b"%d" % _DATABASE_SECONDS),)
    return ()
