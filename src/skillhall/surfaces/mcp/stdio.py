"""MCP by stdin and stdout: one client, for as long as it keeps our stdin open."""

from __future__ import annotations

import logging
import signal
import sys
from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

if TYPE_CHECKING:
    from skillhall.surfaces.mcp.server import SkillServer


def serve_stdio(server: SkillServer) -> None:
    """Serve until the client is gone. Nothing but the protocol is written to stdout."""
    # A thread waits in a read that nothing else can end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(_serve, server)
    except* (BrokenPipeError, ConnectionError):
        # The client does not read any more, and what is left for it must not be tried again.
        sys.stdout = None


async def _serve(server: SkillServer) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def log_to_stderr() -> None:
    """Send what is worth telling to stderr, without what a client sent."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    for name, level in (("skillhall.mcp", "WARNING"), ("mcp", "CRITICAL")):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
