"""Errors as MCP tells them: one table for every class of error."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from skillhall.errors import SkillhallError, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG = logging.getLogger("skillhall.mcp")

# What was asked for is at fault; of everything else, the server is.
_CLIENT_ERROR_CODES = frozenset(
    {
        "invalid_argument",
        "invalid_path",
        "invalid_skill",
        "not_a_file",
        "not_found",
        "prompt_not_found",
        "too_large",
        "too_many",
    }
)


def build_invalid_params(message: str, code: str = "not_found") -> MCPError:
    """A request for something that is not there, or not in that shape."""
    return MCPError(INVALID_PARAMS, message, {"code": code})


def to_mcp_error(error: Exception, uri: str | None = None) -> MCPError:
    """Return the error that a client gets. Bugs are only described in the log.

    `uri` is the resource that the request named, which the protocol wants in the error's data.
    """
    failure = _translate(error)
    data = failure.error.data
    if uri is None or failure.error.code != INVALID_PARAMS or not isinstance(data, dict):
        return failure
    return MCPError(failure.error.code, failure.error.message, {**data, "uri": uri})


def _translate(error: Exception) -> MCPError:
    if isinstance(error, MCPError):
        return error
    if isinstance(error, SkillhallError):
        return MCPError(_to_jsonrpc_code(error.code), _format_message(error), {"code": error.code})
    if isinstance(error, OSError):
        LOG.warning("the disk failed: %s", error.strerror)
        return MCPError(INTERNAL_ERROR, "the server's disk failed", _STORAGE)
    LOG.error("a request failed", exc_info=error)
    return MCPError(INTERNAL_ERROR, "internal error; the log knows more", _INTERNAL)


_STORAGE: Mapping[str, str] = {"code": "storage_unavailable"}
_INTERNAL: Mapping[str, str] = {"code": "internal"}


def _to_jsonrpc_code(code: str) -> int:
    return INVALID_PARAMS if code in _CLIENT_ERROR_CODES else INTERNAL_ERROR


def _format_message(error: SkillhallError) -> str:
    if isinstance(error, SkillRejected):  # its own words begin with a place on this machine
        return f"the skill is broken: {'; '.join(error.reasons)}"
    return str(error)
