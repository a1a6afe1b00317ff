"""Starts and ends the process that matches patterns and JSON Schemas."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

CPU_LIMIT = 2.0  # seconds for one request
_WALL_LIMIT = 60.0  # seconds; the machine may be busy
_MODULE = "skillhall._internal.evals.grading.check_worker"
_MAX_RESPONSE = 64 * 1024  # bytes


class CheckFailed(Exception):
    """A pattern or schema could not be evaluated. The message is the reason."""


@dataclass(slots=True)
class CheckProcess:
    """A process for checks, started by the first check and again after a failure."""

    cpu_limit: float = CPU_LIMIT
    _process: asyncio.subprocess.Process | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._stop()

    async def find_match(self, pattern: str, text: str) -> tuple[int, int] | None:
        """Return the position of the first match in a text. Raises: CheckFailed."""
        response = await self._request({"pattern": pattern, "text": text})
        match = response.get("match")
        return (match[0], match[1]) if isinstance(match, list) else None

    async def find_mismatch(self, schema: object, text: str) -> str:
        """Return why a text does not match a JSON Schema, or "". Raises: CheckFailed."""
        response = await self._request({"schema": schema, "text": text})
        return str(response.get("mismatch", ""))

    async def _request(self, request: dict[str, object]) -> dict[str, object]:
        # Checks are quick, so one process is enough for all runs.
        async with self._lock:
            line = b""
            try:
                async with asyncio.timeout(_WALL_LIMIT):
                    line = await self._exchange(json.dumps(request).encode() + b"\n")
            except (OSError, TimeoutError, ValueError):  # process ended, or line is too long
                pass
            finally:
                if not line.endswith(b"\n"):
                    await self._stop()
        if not line.endswith(b"\n"):
            raise CheckFailed(f"the check took more than {self.cpu_limit:g} seconds of CPU time")
        response: dict[str, object] = json.loads(line)
        if "problem" in response:
            raise CheckFailed(str(response["problem"]))
        return response

    async def _exchange(self, data: bytes) -> bytes:
        process = self._process or await self._start()
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process has no pipes")
        process.stdin.write(data)
        await process.stdin.drain()
        return await process.stdout.readline()

    async def _start(self) -> asyncio.subprocess.Process:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-W", "ignore", "-m", _MODULE, str(self.cpu_limit)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_MAX_RESPONSE,
            env={name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},
        )
        return self._process

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            if process.stdin is not None:
                process.stdin.close()
            await process.communicate()  # reads to the end, so that the pipe is closed
