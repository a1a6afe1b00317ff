"""MCP by stdin and stdout: one client, for as long as it keeps our stdin open."""

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
    """Serve until the client is gone. Nothing but the protocol is written to stdout."""
    # A thread waits in a read that nothing else can end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _exit_when_stdout_closes()
    anyio.run(_serve, server)


def _exit_when_stdout_closes() -> None:
    """Leave as soon as the client has closed its end of our stdout, even if it keeps our stdin."""
    if sys.platform == "win32":  # there, the next answer that cannot be written ends it
        return
    poll = select.poll()
    poll.register(os.dup(sys.stdout.fileno()), 0)  # nothing but that it is closed

    def leave() -> None:
        poll.poll()
        os._exit(0)

    threading.Thread(target=leave, daemon=True).start()


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
