"""The first hour of one person on one machine, as a transcript.

`python -m tests.support.first_hour SRC FILE` runs it with the package in SRC and writes the
transcript. The recorded one is from the last version without approvals and policies: commit
66b6392d.
"""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.support.model_server import ToolCall, model_server
from tests.support.skills import make_skill, make_skill_md

RECORDING = Path(__file__).with_name("recorded_first_hour.txt")
MODEL = "openai-chat:scripted"
_TIMEOUT = 120  # seconds
_MESSAGES: Sequence[Mapping[str, Any]] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "prompts/list"},
    {"id": 3, "method": "resources/list"},
    {"id": 4, "method": "tools/list"},
    {
        "id": 5,
        "method": "tools/call",
        "params": {"name": "load_skill", "arguments": {"name": "csv"}},
    },
)


@dataclass
class FirstHour:
    """Commands of a person in a new project, with what they print."""

    source: str  # the folder with the package
    folder: Path
    lines: list[str] = field(default_factory=list)

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "PYTHONPATH": self.source,
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "OPENAI_API_KEY": "none",
        }

    @property
    def _project(self) -> Path:
        return self.folder / "project"

    def run_all(self) -> str:
        """Run everything, and return the transcript."""
        for name in ("home", "project"):
            (self.folder / name).mkdir()
        make_skill(self.folder / "elsewhere", "csv", data=make_skill_md("csv", "Reads CSV files."))
        make_skill(self.folder / "home/.agents/skills", "notes")
        self.run("init", "pdf-tools", "--dir", ".agents/skills", "--description", "Reads PDFs.")
        self.run("list")
        self.run("add", "../elsewhere")
        self.run("list", "--json")
        self.run("verify")
        self.run("validate", ".agents/skills")
        self.run("search", "csv")
        self.run("show", "csv")
        self.run("read", "csv")
        self.run("prompt")
        for command in (["list"], ["prompt"], ["read", "csv"], ["outdated"], ["update"]):
            self.run_on_terminal(*command)
        self.chat()
        self.mcp()
        self.serve()
        self.run("remove", "csv", "--yes")
        self.run("list")
        return "".join(f"{line}\n" for line in self.lines)

    def run(self, *arguments: str) -> None:
        """Run a command without a terminal."""
        result = subprocess.run(
            [sys.executable, "-m", "skillhall", *arguments],
            cwd=self._project,
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
        )
        self._record(f"$ skillhall {' '.join(arguments)}", f"exit {result.returncode}")
        self._record(*result.stdout.splitlines())
        self._record(*(f"stderr: {line}" for line in result.stderr.splitlines()))

    def run_on_terminal(self, *arguments: str, **variables: str) -> None:
        """Run a command on a terminal; nobody answers, so that a question is an error."""
        outer, inner = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "skillhall", *arguments],
            cwd=self._project,
            env=self._environment | variables,
            stdin=inner,
            stdout=inner,
            stderr=inner,
        ) as process:
            os.close(inner)
            output = b"".join(_read_terminal(outer))
            code = process.wait(_TIMEOUT)
        os.close(outer)
        self._record(f"$ skillhall {' '.join(arguments)}  # on a terminal", f"exit {code}")
        self._record(*(line.rstrip() for line in output.decode().splitlines()))

    def chat(self) -> None:
        """Chat with a scripted model."""
        script = ToolCall("load_skill", {"name": "csv"}), "Two rows."
        with model_server(*script) as server:
            variables = {"OPENAI_BASE_URL": f"{server.url}/v1"}
            self.run_on_terminal("chat", "--model", MODEL, "Count the rows.", **variables)
            self._record(*server.requests[0].system.splitlines())
            self._record(*sorted(server.requests[0].tools), *server.requests[-1].tool_results)

    def mcp(self) -> None:
        """Talk to `skillhall mcp`, as a client does."""
        text = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in _MESSAGES)
        with subprocess.Popen(
            [sys.executable, "-m", "skillhall", "mcp"],
            cwd=self._project,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdin.write(text)
            process.stdin.flush()
            answers = [json.loads(process.stdout.readline()) for one in _MESSAGES if "id" in one]
            process.stdin.close()
            errors = process.stderr.read()
        self._record("$ skillhall mcp")
        for answer in sorted(answers, key=lambda one: int(one["id"])):
            self._record(*json.dumps(answer, indent=1, sort_keys=True).splitlines())
        self._record(*(f"stderr: {line}" for line in errors.splitlines()))

    def serve(self) -> None:
        """Start a server on this machine, and use it."""
        with self._serve() as url:
            for method, path in (
                ("GET", "/api/v1/skills"),
                ("GET", "/api/v1/skills/csv"),
                ("GET", "/skills"),
                ("GET", "/skill/csv"),
                ("GET", "/.well-known/agent-skills/index.json"),
            ):
                request = Request(url + path, method=method)  # noqa: S310 - on this machine
                with urlopen(request, timeout=_TIMEOUT) as response:  # noqa: S310
                    body = response.read()
                    self._record(f"{method} {path}: {response.status}")
                if path.startswith(("/api", "/.well-known")):
                    data = json.loads(body)
                    shown = data.get("data", data)
                    self._record(*json.dumps(shown, indent=1, sort_keys=True).splitlines())

    @contextmanager
    def _serve(self) -> Iterator[str]:
        with subprocess.Popen(
            [sys.executable, "-m", "skillhall", "serve", "--port", "0"],
            cwd=self._project,
            env=self._environment,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            line = process.stderr.readline()
            match = re.match(r"(http://\S+) ", line)
            assert match, line
            self._record("$ skillhall serve", f"stderr: {line.rstrip()}")
            try:
                yield match[1]
            finally:
                process.terminate()
                # Requests are logged with times; only warnings are of interest.
                rest = process.stderr.read().splitlines()
            self._record(*(f"stderr: {one}" for one in rest if "WARN" in one or "ERROR" in one))

    def _record(self, *lines: str) -> None:
        for line in lines:
            text = line.replace(str(self.folder), "<FOLDER>")
            text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:<PORT>", text)
            # The number depends on the length of the path.
            text = re.sub(r"\(\d+ tokens\)", "(<NUMBER> tokens)", text)
            self.lines.append(re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)", "<TIME>", text))


def _read_terminal(descriptor: int) -> Iterator[bytes]:
    """Yield what a process prints, until it ends."""
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # the other end is closed
            return
        if not data:
            return
        yield data


def main(source: str, target: str) -> None:
    """Write the transcript of a version to a file."""
    with tempfile.TemporaryDirectory() as folder:
        transcript = FirstHour(source, Path(folder).resolve()).run_all()
    Path(target).write_text(transcript, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
