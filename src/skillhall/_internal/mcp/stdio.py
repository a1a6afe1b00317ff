"""MCP over stdin and stdout, for one client."""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import threading
from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

if TYPE_CHECKING:
    from skillhall._internal.mcp.server import SkillServer


def serve_stdio(server: SkillServer) -> None:
    """Serve until the client disconnects. stdout is reserved for the protocol."""
    # A thread blocks in a read of stdin that Python's own SIGINT handler cannot interrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _exit_when_stdout_closes()

    async def serve() -> None:
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

    anyio.run(serve)


def _exit_when_stdout_closes() -> None:
    """Exit as soon as the client closes our stdout, even if it keeps our stdin open."""
    if sys.platform == "win32":  # no poll; the next failed write ends the process
        return
    poll = select.poll()
    poll.register(os.dup(sys.stdout.fileno()), 0)  # 0: report only that it is closed

    def exit_on_close() -> None:
        poll.poll()
        os._exit(0)

    threading.Thread(target=exit_on_close, daemon=True).start()


def log_to_stderr() -> None:
    """Log warnings to stderr.

    Records of the SDK are dropped, since they may contain client data.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    for name, level in (("skillhall.mcp", "WARNING"), ("mcp", "CRITICAL")):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
