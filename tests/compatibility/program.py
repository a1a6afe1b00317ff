"""Skillhall as a program: a command, an HTTP server and an MCP server on stdio.

The package is never imported here, only started as `python -m skillhall`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, NamedTuple

from tests.compatibility.world import DEADLINE, World

LIFETIME = 600  # seconds; a longer run means that the program hangs
COMMAND = (sys.executable, "-m", "skillhall")


class Finished(NamedTuple):
    """The result of a command."""

    exit: int
    stdout: bytes
    stderr: str


class Response(NamedTuple):
    """A response, with lowercase header names."""

    status: int
    headers: dict[str, str]
    body: bytes


def run(world: World, *arguments: str, stdin: str = "") -> Finished:
    """Run a command in the project folder, in a new process."""
    result = subprocess.run(
        [*COMMAND, *arguments],
        cwd=world.project,
        env=world.environment,
        input=stdin.encode(),
        check=False,
        capture_output=True,
        timeout=LIFETIME,
    )
    return Finished(result.returncode, result.stdout, result.stderr.decode("utf-8", "replace"))


class Launcher:
    """Runs commands one after the other, several times faster than `run`."""

    def __init__(self, running: subprocess.Popen[bytes], folder: Path) -> None:
        self._running = running
        self._files = {name: folder / name for name in ("stdin", "stdout", "stderr", "modules")}

    def run(self, *arguments: str, stdin: str = "") -> Finished:
        """Run a command."""
        assert self._running.stdin
        assert self._running.stdout
        self._files["stdin"].write_bytes(stdin.encode())
        request: dict[str, Any] = {name: str(path) for name, path in self._files.items()}
        line = json.dumps({**request, "arguments": arguments})
        self._running.stdin.write(line.encode() + b"\n")
        self._running.stdin.flush()
        status = self._running.stdout.readline()
        assert status, f"no exit code of {arguments}"
        stderr = self._files["stderr"].read_bytes().decode("utf-8", "replace")
        return Finished(int(status), self._files["stdout"].read_bytes(), stderr)


@contextmanager
def launcher(world: World) -> Iterator[Launcher]:
    """Start a process that runs the commands of a world."""
    program = Path(__file__).with_name("launcher.py")
    with (
        TemporaryDirectory(dir=world.root) as folder,
        _started(world, sys.executable, "-P", str(program)) as running,
    ):
        yield Launcher(running, Path(folder))


@contextmanager
def _started(world: World, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program with pipes. It is killed if it hangs, which ends any read."""
    with (world.root / "stderr.log").open("ab") as log:
        running = subprocess.Popen(
            command,
            cwd=world.project,
            env=world.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    watchdog = Timer(LIFETIME, running.kill)
    watchdog.start()
    try:
        yield running
    finally:
        watchdog.cancel()
        running.terminate()
        running.communicate(timeout=DEADLINE)


class Server:
    """A running `skillhall serve`."""

    def __init__(self, announcement: dict[str, Any], token: str) -> None:
        self.announcement = announcement  # its JSON output at startup
        self.port = int(announcement["data"]["url"].rpartition(":")[2])
        self._token = token

    def request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Response:
        """Send a request on a new connection."""
        with self._connection() as connection:
            connection.request(method, path, body, self._headers(headers))
            response = connection.getresponse()
            return Response(response.status, _lowercase(response.getheaders()), response.read())

    def announce(self, method: str, path: str, length: int) -> Response:
        """Send only the head of a request whose body would be too large."""
        with self._connection() as connection:
            connection.putrequest(method, path)
            headers = {"Content-Type": "application/json", "Content-Length": str(length)}
            for name, value in self._headers(headers).items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            return Response(response.status, _lowercase(response.getheaders()), response.read())

    def first_event(self, path: str, headers: Mapping[str, str]) -> Response:
        """Read an event stream until its first event is complete."""
        with self._connection() as connection:
            connection.request("GET", path, headers=self._headers(headers))
            response = connection.getresponse()
            lines: list[bytes] = []
            while not (lines and lines[-1] == b"\n" and any(b"data:" in line for line in lines)):
                line = response.readline()
                if not line:
                    break
                lines.append(line)
            event = b"".join(line for line in lines if not line.startswith(b":"))
            return Response(response.status, _lowercase(response.getheaders()), event)

    def _connection(self) -> closing[HTTPConnection]:
        return closing(HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE))

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        merged = {"Authorization": f"Bearer {self._token}" if self._token else "", **headers}
        return {name: value for name, value in merged.items() if value}


def _lowercase(headers: list[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers}


@contextmanager
def serve(world: World, *arguments: str) -> Iterator[Server]:
    """Run a server on a free port."""
    with _started(world, *COMMAND, "serve", "--port", "0", "--json", *arguments) as running:
        assert running.stdout
        line = running.stdout.readline()
        if not line:
            raise AssertionError((world.root / "stderr.log").read_text(encoding="utf-8"))
        yield Server(json.loads(line), world.variables.get("SKILLHALL_AUTH_TOKEN", ""))


class StdioClient:
    """A client of `skillhall mcp`."""

    def __init__(self, running: subprocess.Popen[bytes]) -> None:
        self._running = running
        self._last = 0

    def notify(self, method: str) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method})

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its response; notifications are skipped."""
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self._send(request)
        assert self._running.stdout
        while line := self._running.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._last:
                return message
        raise AssertionError(f"the server exited before it responded to {method}")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._running.stdin
        self._running.stdin.write(json.dumps(message).encode() + b"\n")
        self._running.stdin.flush()


@contextmanager
def stdio_client(world: World, *roots: str) -> Iterator[StdioClient]:
    """Start `skillhall mcp` and connect a client."""
    with _started(world, *COMMAND, "mcp", *roots) as running:
        yield StdioClient(running)
