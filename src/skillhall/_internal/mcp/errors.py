"""Translation of errors to MCP errors."""

from __future__ import annotations

import logging

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from skillhall._internal.render.escape import to_single_line
from skillhall.errors import SkillhallError, SkillRejected

LOG = logging.getLogger("skillhall.mcp")

_MAX_QUOTED = 200  # characters of a URI in an error message
# The request caused these errors; all others are internal errors of the server.
_CLIENT_ERROR_CODES = frozenset(
    {
        "invalid_argument",
        "invalid_path",
        "invalid_skill",
        "not_a_file",
        "not_approved",
        "not_found",
        "prompt_not_found",
        "too_large",
        "too_many",
    }
)


def build_invalid_params(message: str, code: str = "not_found") -> MCPError:
    """Return the error for a request with invalid parameters."""
    return MCPError(INVALID_PARAMS, message, {"code": code})


def quote_uri(uri: str) -> str:
    """Return a URI, shortened for an error message."""
    return to_single_line(uri[:_MAX_QUOTED])


def to_mcp_error(error: Exception, uri: str | None = None) -> MCPError:
    """Return the MCP error for an exception.

    Details of unexpected errors go only to the log. `uri` is the requested resource, which the
    protocol requires in the error's data.
    """
    if isinstance(error, MCPError):
        code, message, data = error.error.code, error.error.message, error.error.data
    elif isinstance(error, SkillhallError):
        code = INVALID_PARAMS if error.code in _CLIENT_ERROR_CODES else INTERNAL_ERROR
        message, data = str(error), {"code": error.code}
        if isinstance(error, SkillRejected):  # its message starts with a local path
            message = f"the skill is invalid: {'; '.join(error.reasons)}"
    elif isinstance(error, OSError):
        LOG.warning("storage error: %s", error.strerror)
        code, message, data = INTERNAL_ERROR, "storage error", {"code": "storage_unavailable"}
    else:
        LOG.error("request failed", exc_info=error)
        code, data = INTERNAL_ERROR, {"code": "internal"}
        message = "internal error; see the server's log"
    if uri is not None and code == INVALID_PARAMS and isinstance(data, dict):
        data = {**data, "uri": uri}
    return MCPError(code, message, data)
