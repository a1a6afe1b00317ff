"""Number of Skillhall's functions and files that run during one request.

This is how much code you read to understand a request. All threads count. Imports and
comprehensions do not: Python 3.12 inlines the latter.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import NamedTuple
from unittest import mock

import httpx
from mcp import Client

import skillhall
from benchmarks.harness import BenchmarkError
from benchmarks.trees import SETTLED_SECONDS
from skillhall import AgentSkills
from skillhall._internal.asgi import Services, build_app
from skillhall._internal.cli.runner import run as run_command
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.prompt_server.source_settings import read_prompt_sources
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.wiring.workspace import open_lazy_workspace
from skillhall.chat import Chat
from tests.support.mcp_clients import make_folder_server, run_client, send_request
from tests.support.model_server import ToolCall, model_server
from tests.support.skills import make_skill

PACKAGE = str(Path(skillhall.__file__).parent) + os.sep
NOT_FUNCTIONS = {"<module>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}
SKILLS = 20
PROMPTS = "/api/v1/prompts"
MODEL = "openai-chat:scripted"
# Variables that change what a command does.
PERSONAL_PREFIXES = ("SKILLHALL_", "DOT_AI_", "XDG_", "GITHUB_", "CI")


@dataclass
class Recorder:
    """The functions that ran while it was recording."""

    is_recording: bool = False
    codes: set[CodeType] = field(default_factory=set)

    @contextmanager
    def install(self) -> Iterator[None]:
        """Observe this thread and all threads started from now on."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record until the end of the block."""
        self.codes = set()
        self.is_recording = True
        try:
            yield
        finally:
            self.is_recording = False

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if self.is_recording and event == "call":
            self.codes.add(frame.f_code)


class Walk(NamedTuple):
    """A request, and the maximum number of functions and files that it may run."""

    name: str
    request: Callable[[Path, Recorder], None]
    functions: int | None = None
    files: int | None = None


class Step(NamedTuple):
    """A function of Skillhall."""

    file: str
    line: int
    name: str


def run(*, verbose: bool) -> bool:
    """Print the table, with `verbose` every function, and return whether all limits are met."""
    rows = [("request", "functions", "files", "bar", "verdict")]
    recorder = Recorder()
    with recorder.install():
        walked = [(walk, _measure(walk, recorder)) for walk in WALKS]
    for walk, steps in walked:
        files = len({step.file for step in steps})
        bar = f"≤ {walk.functions}, ≤ {walk.files}" if walk.functions else "–"
        is_met = len(steps) <= (walk.functions or len(steps)) and files <= (walk.files or files)
        verdict = "–" if walk.functions is None else "ok" if is_met else "MISSED"
        rows.append((walk.name, str(len(steps)), str(files), bar, verdict))
        if verbose:
            print(walk.name, *(f"  {file}:{line} {name}" for file, line, name in steps), sep="\n")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]))
    return all(row[-1] != "MISSED" for row in rows)


def _measure(walk: Walk, recorder: Recorder) -> list[Step]:
    """Send the request twice, in two sandboxes. The first run imports modules."""
    for _ in range(2):
        with _sandbox() as folder:
            walk.request(folder, recorder)
    return sorted(
        Step(code.co_filename.removeprefix(PACKAGE), code.co_firstlineno, code.co_qualname)
        for code in recorder.codes
        if code.co_filename.startswith(PACKAGE) and code.co_name not in NOT_FUNCTIONS
    )


@contextmanager
def _sandbox() -> Iterator[Path]:
    """Change to a new project with its own home folder."""
    with TemporaryDirectory() as folder:
        home, project = Path(folder, "home"), Path(folder, "project")
        home.mkdir()
        project.mkdir()
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(PERSONAL_PREFIXES)
        }
        variables |= {"HOME": str(home), "USERPROFILE": str(home)}
        with mock.patch.dict(os.environ, variables, clear=True), chdir(project):
            yield project


def _run(recorder: Recorder, *argv: str) -> str:
    """Run a command in this process and return its messages."""
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), recorder.record():
        code = run_command(argv)
    err.seek(0)
    messages = err.read()
    if code:
        raise BenchmarkError(f"{argv[0]} exited with {code}: {messages}")
    return messages


def _list(folder: Path, recorder: Recorder) -> None:
    for number in range(SKILLS):
        make_skill(folder / "skills", f"skill-{number}")
    _run(recorder, "list", "--json", "./skills")


def _add(folder: Path, recorder: Recorder) -> None:
    make_skill(folder / "source", files={"scripts/run.py": b"print(1)\n", "notes.md": b"Notes.\n"})
    _run(recorder, "add", "./source", "--agent", "claude-code", "--yes")


def _get_prompts(folder: Path, recorder: Recorder) -> None:
    async def request(client: httpx.AsyncClient) -> None:
        (await client.get(PROMPTS)).raise_for_status()
        with recorder.record():
            await client.get(PROMPTS)

    _with_app(folder, request)


def _move_block(folder: Path, recorder: Recorder) -> None:
    async def request(client: httpx.AsyncClient) -> None:
        session = (await client.post("/sessions", data={"name": "Walk"})).headers["location"]
        for text in ("One", "Two"):
            await client.post(f"{session}/add", data={"type": "note", "text": text})
        answer = await client.get(f"/api/v1/sessions/{session.rpartition('/')[2]}/blocks")
        first, second = answer.json()["data"]["blocks"]
        form = {"placement": f"after,{second['id']}", "version": str(first["version"])}
        with recorder.record():
            moved = await client.post(f"{session}/blocks/{first['id']}/move", data=form)
        if moved.status_code != httpx.codes.SEE_OTHER:
            raise BenchmarkError(f"the move was answered with {moved.status_code}")

    _with_app(folder, request)


def _with_app(folder: Path, request: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    """Send requests to a complete app, without a socket."""
    settings = Settings(str(folder), str(folder / "cache"), data_directory=str(folder / "data"))
    workspace = open_lazy_workspace(settings)
    collection = Collection(FolderStore(folder), settings)
    services = Services(PromptService(read_prompt_sources(settings)), collection, workspace)

    async def main() -> None:
        transport = httpx.ASGITransport(build_app(services, settings))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000"
        ) as client:
            await request(client)

    try:
        asyncio.run(main())
    finally:
        services.prompt_service.close()
        workspace.close()


def _get_mcp_skill(folder: Path, recorder: Recorder) -> None:
    make_skill(folder)

    async def request(client: Client) -> None:
        await send_request(client, "skills/get", uri="skill://pdf-tools/SKILL.md")
        with recorder.record():
            await send_request(client, "skills/get", uri="skill://pdf-tools/SKILL.md")

    run_client(make_folder_server(folder), request)


def _chat_command(folder: Path, recorder: Recorder) -> None:
    """Record the second command in a project whose skills are approved."""
    with _chat_model(folder):
        time.sleep(SETTLED_SECONDS)  # the states of younger files are not stored
        _run(recorder, "trust", "pdf-tools", "csv-report", "--yes")
        for _ in range(2):
            messages = _run(recorder, "chat", "Read it.", "--model", MODEL)
            if "loaded pdf-tools" not in messages:
                raise BenchmarkError(f"the chat did not load the skill: {messages}")


def _chat_message(folder: Path, recorder: Recorder) -> None:
    """Record a message of an open conversation, as the other walks record a second request."""

    async def converse() -> None:
        chat = Chat(AgentSkills.of(), MODEL)
        for message in ("Read it.", "Read it again."):
            with recorder.record():
                async for _ in chat.send(message):
                    pass

    with _chat_model(folder):
        time.sleep(SETTLED_SECONDS)  # younger files are loaded again for each message
        asyncio.run(converse())


@contextmanager
def _chat_model(folder: Path) -> Iterator[None]:
    """A model that loads one skill after the other, with a reply after each."""
    make_skill(folder / ".agents/skills")
    make_skill(folder / ".agents/skills", "csv-report")
    calls = [ToolCall("load_skill", {"name": name}) for name in ("pdf-tools", "csv-report")]
    with model_server(calls[0], "Done.", calls[1], "Done.") as server:
        os.environ |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
        yield


WALKS = (
    Walk(f"list --json, {SKILLS} skills", _list),
    Walk("add a local folder", _add, 250, 40),
    Walk(f"GET {PROMPTS}", _get_prompts, 30, 12),
    Walk("MCP skills/get", _get_mcp_skill),
    Walk("move a block by the form", _move_block),
    Walk("chat, a message", _chat_message, 170, 40),
    Walk("chat, the whole command", _chat_command),
)
