"""Sends the recorded requests again and compares the responses."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.compare import differences
from tests.compatibility.program import launcher, run
from tests.compatibility.recorder import RECORDINGS, SURFACES, load
from tests.compatibility.world import World

REQUEST = ("name", "request", "command", "edit", "remove", "push", "file", "tree")


@pytest.mark.parametrize("surface", SURFACES)
def test_responses_match_the_recordings(surface: str, tmp_path: Path) -> None:
    documents = SURFACES[surface](tmp_path / "world")
    problems = [
        f"{name}{difference}"
        for name, document in documents.items()
        for difference in compare(load(name), document)
    ]
    assert not problems, "\n".join(["not compatible with the recordings:", *problems])


def compare(recorded: Any, actual: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield the differences of two documents, each with the name of its step."""
    if isinstance(recorded, dict):
        yield from differences(recorded, actual)
        return
    assert [request_line(step) for step in recorded] == [request_line(step) for step in actual], (
        "record again"
    )
    for old, new in zip(recorded, actual, strict=True):
        title = old.get("name") or " ".join(old.get("command", [])) or request_line(old)
        yield from differences(old, new, f" | {title} | ")


def request_line(step: dict[str, Any]) -> str:
    """Return the request of a step as one line."""
    return json.dumps({key: step[key] for key in REQUEST if key in step}, ensure_ascii=False)


@cache
def rest_steps() -> list[dict[str, Any]]:
    names = [path.stem for path in RECORDINGS.glob("rest-*.json") if path.stem != "rest-openapi"]
    return [step for name in names for step in load(name)]


@pytest.mark.parametrize("operation", load("rest-openapi"))
def test_every_operation_is_recorded(operation: str) -> None:
    method, template = operation.split(" ")
    pattern = re.compile(re.sub(r"\\\{\w+\\\}", r"[^/]+", re.escape(template)) + r"(/.*)?(\?.*)?")
    requests = [step["request"] for step in rest_steps()]
    assert any(r["method"] == method and pattern.fullmatch(r["path"]) for r in requests), (
        f"no request for {operation}"
    )


@pytest.mark.parametrize(
    "status", [200, 201, 202, 304, 400, 401, 403, 404, 405, 409, 412, 413, 415, 421, 422, 428, 429]
)
def test_every_status_is_recorded(status: int) -> None:
    assert status in {step["response"]["status"] for step in rest_steps()}


def test_every_command_is_recorded() -> None:
    pages = load("cli-options")
    groups = {name.rpartition(" ")[0] for name in pages}
    used = [
        " ".join(step["command"])
        for path in RECORDINGS.glob("cli-*.json")
        if path.stem != "cli-options"
        for step in load(path.stem)
        if "command" in step
    ]
    missing = [
        name
        for name in pages
        if name not in groups and not any(command.startswith(name) for command in used)
    ]
    assert not missing


@pytest.mark.parametrize(
    "command", ["list --json {}/skills", "session list --json", "show nothing", "list --wrong"]
)
def test_launcher_gives_the_same_results_as_python(command: str, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    arguments = command.format(world.root).split()
    with launcher(world) as commands:
        launched = [commands.run(*arguments) for _ in range(2)]
    assert launched == [run(world, *arguments)] * 2


def test_additional_keys_are_compatible() -> None:
    assert not list(differences({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}], "d": 3}))


@pytest.mark.parametrize(
    "actual", [{}, {"a": [1]}, {"a": [2, 1]}, {"a": [1, 2, 3]}, {"a": [1, True]}, {"a": None}]
)
def test_changed_lists_and_values_are_not_compatible(actual: dict[str, Any]) -> None:
    assert list(differences({"a": [1, 2]}, actual))
