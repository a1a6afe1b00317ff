"""The surfaces of Skillhall, each with the function that records it.

A recording is a JSON document. Each step has a request and its result, with placeholders for
values that differ from run to run.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.compatibility import cli_scenarios, database, help_pages, mcp_scenarios, rest_scenarios
from tests.compatibility.cli_runner import Shell
from tests.compatibility.normalize import Normalizer
from tests.compatibility.openapi import operations
from tests.compatibility.program import Server, launcher, serve, stdio_client
from tests.compatibility.rest_runner import Recorder
from tests.compatibility.world import REPOSITORY, Repository, World, git_server

RECORDINGS = Path(__file__).parent / "recordings"

Documents = dict[str, Any]  # by the name of the recording


def _normalizer(world: World) -> Normalizer:
    return Normalizer(str(world.root), version("skillhall"))


@contextmanager
def _with_repository(world: World) -> Iterator[tuple[str, Repository]]:
    """Serve the repository; yield its URL and the repository."""
    repository = Repository(world.root / "git")
    with git_server(world.root / "git") as url:
        yield f"{url}/{REPOSITORY}", repository


def record_rest(folder: Path) -> Documents:
    """Record every route of a server with a token, a repository and a run directory."""
    world = World(folder)
    world.variables = {
        "SKILLHALL_AUTH_TOKEN": rest_scenarios.TOKEN,
        "SKILLHALL_WEBHOOK_SECRET": rest_scenarios.SECRET,
        "SKILLHALL_FOLDER_SCAN": "on",
    }
    with _with_repository(world) as (url, _):
        arguments = ["--run-dir", str(world.root / "run"), "--repo", url, "--path", "prompts"]
        with serve(world, *arguments) as server:
            values = {"world": str(world.root), "repository": url}
            recorder = Recorder(server, _normalizer(world), values)
            documents = _unauthorized(world, server)
            topics = rest_scenarios.TOPICS.items()
            documents |= {name: recorder.run(calls) for name, calls in topics}
            documents["rest-openapi"] = _openapi(server)
    return documents


def _unauthorized(world: World, server: Server) -> Documents:
    """Record a command whose token the server rejects."""
    world.variables |= {"SKILLHALL_SERVER_TOKEN": "wrong"}
    with launcher(world) as commands:
        values = {"server": f"http://127.0.0.1:{server.port}"}
        shell = Shell(world, commands, _normalizer(world), values)
        return {"cli-unauthorized": shell.run(cli_scenarios.UNAUTHORIZED)}


def _openapi(server: Server) -> Documents:
    documents = [
        json.loads(server.request("GET", path, None, {"Authorization": ""}).body)
        for path in ("/api/v1/openapi.json", "/api/v1/openapi")
    ]
    assert documents[0] == documents[1]
    return operations(documents[0])


def record_servers(folder: Path) -> Documents:
    """Record a server without settings, and the commands that are clients of a server."""
    world = World(folder)
    normalizer = _normalizer(world)
    with serve(world, "--run-dir", str(world.root / "run")) as server:
        recorder = Recorder(server, normalizer, {"world": str(world.root)})
        announcement = normalizer.value(server.announcement)
        documents: Documents = {
            "rest-open-server": recorder.run(rest_scenarios.OPEN_SERVER),
            "cli-serve": [{"command": ["serve", "--json"], "json": announcement}],
        }
        values = {"server": f"http://127.0.0.1:{server.port}", "python": sys.executable}
        normalizer.names[sys.executable] = "python"
        with launcher(world) as commands:
            shell = Shell(world, commands, normalizer, values)
            documents["cli-servers"] = shell.run(cli_scenarios.SERVERS)
    return documents


def record_mcp(era: str, folder: Path) -> Documents:
    """Record MCP by stdio, for one protocol version."""
    world = World(folder)
    with stdio_client(world, str(world.root / "skills"), str(world.root / "asking")) as client:
        return {f"mcp-stdio-{era}": mcp_scenarios.run(client, _normalizer(world), era)}


def record_commands(topic: str, folder: Path) -> Documents:
    """Record the commands of a topic."""
    world = World(folder)
    world.variables = {"SKILLHALL_FOLDER_SCAN": "on"}
    with _with_repository(world) as (url, repository), launcher(world) as commands:
        shell = Shell(world, commands, _normalizer(world), {"repository": url}, repository)
        return {topic: shell.run(cli_scenarios.TOPICS[topic])}


def record_options(folder: Path) -> Documents:
    """Record the options and arguments of every command."""
    world = World(folder)
    pages: dict[str, Any] = {}
    pending: list[tuple[str, ...]] = [()]
    with launcher(world) as commands:
        while pending:
            command = pending.pop()
            result = commands.run(*command, "--help")
            assert result.exit == 0, result.stderr
            page = result.stdout.decode("utf-8")
            pages[" ".join(command)] = help_pages.interface(page)
            pending += [(*command, name) for name in help_pages.subcommands(page)]
    return {"cli-options": dict(sorted(pages.items()))}


def record_database(folder: Path) -> Documents:
    """Record the schema, and the data read from the database of an earlier version."""
    new, old, restored = (World(folder / name) for name in ("new", "old", "restored"))
    documents: Documents = {"database-schema": database.schema(new)}
    with launcher(old) as commands:
        shell = Shell(old, commands, _normalizer(old), {})
        documents["database-old"] = database.read_old(shell, old, RECORDINGS)
    with launcher(restored) as commands:
        shell = Shell(restored, commands, _normalizer(restored), {})
        documents["database-backup"] = database.read_old_backup(shell, restored, RECORDINGS)
    return documents


SURFACES: dict[str, Callable[[Path], Documents]] = {
    "rest": record_rest,
    "servers": record_servers,
    **{topic: partial(record_commands, topic) for topic in cli_scenarios.TOPICS},
    "database": record_database,
    "cli-options": record_options,
    **{f"mcp-{era}": partial(record_mcp, era) for era in mcp_scenarios.SCENARIOS},
}


def load(name: str) -> Any:  # noqa: ANN401 - JSON
    """Return a recording."""
    return json.loads((RECORDINGS / f"{name}.json").read_text(encoding="utf-8"))


def save(name: str, document: Any) -> None:  # noqa: ANN401 - JSON
    """Write a recording."""
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (RECORDINGS / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
