"""Runs the commands of a scenario and returns their recordings."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.compatibility.compare import key_list, value_at
from tests.compatibility.normalize import Normalizer, prose
from tests.compatibility.program import Launcher
from tests.compatibility.world import Repository, World


@dataclass(frozen=True)
class Run:
    """A command, and the values of its JSON that later commands use as `{name}`.

    `keyed` maps lists that may grow to the key of their items. `output` is "json", "lines",
    "prose" for text that may be reworded, or "" if it is not recorded.
    """

    arguments: str
    stdin: str = ""
    save: Mapping[str, str] = field(default_factory=dict)
    keyed: Mapping[str, str] = field(default_factory=dict)
    prose: frozenset[str] = frozenset()
    output: str = "json"
    more: tuple[str, ...] = ()  # arguments that may contain spaces


@dataclass(frozen=True)
class Edit:
    """A file written by the user."""

    path: str
    text: str


@dataclass(frozen=True)
class Remove:
    """A file or folder deleted by the user."""

    path: str


@dataclass(frozen=True)
class Push:
    """A push of the second commit to the repository."""


@dataclass(frozen=True)
class Show:
    """The lines of a file written by a command; `*` in its path matches any name."""

    path: str


@dataclass(frozen=True)
class Tree:
    """The files and links in a folder written by commands."""

    path: str


Step = Run | Edit | Remove | Push | Show | Tree


class Shell:
    """Runs steps in one world and keeps the values that they save."""

    def __init__(
        self,
        world: World,
        launcher: Launcher,
        normalizer: Normalizer,
        values: Mapping[str, str],
        repository: Repository | None = None,
    ) -> None:
        self._world = world
        self._launcher = launcher
        self._normalizer = normalizer
        self._values = {"world": str(world.root), **values}
        self._repository = repository

    def run(self, steps: tuple[Step, ...]) -> list[dict[str, Any]]:
        """Return the results of the steps, in order."""
        return [self._step(step) for step in steps]

    def _step(self, step: Step) -> dict[str, Any]:
        if isinstance(step, Run):
            return self._command(step)
        if isinstance(step, Edit):
            path = self._world.root / step.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(step.text.encode())
            return {"edit": step.path, "text": step.text}
        if isinstance(step, Remove):
            path = self._world.root / step.path
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            return {"remove": step.path}
        if isinstance(step, Push):
            assert self._repository
            self._repository.show(self._repository.second)
            return {"push": self._repository.second}
        if isinstance(step, Show):
            return {"file": step.path, "lines": self._lines(step.path)}
        return {"tree": step.path, "entries": self._tree(step.path)}

    def _command(self, step: Run) -> dict[str, Any]:
        arguments = [*step.arguments.split(), *step.more]
        finished = self._launcher.run(*map(self._fill, arguments), stdin=step.stdin)
        recorded: dict[str, Any] = {"command": arguments, "exit": finished.exit}
        text = finished.stdout.decode("utf-8")
        if step.output == "json":
            recorded["json"] = self._json(step, text) if text else None
        elif step.output == "prose":
            recorded["stdout"] = prose(text)
        elif step.output == "lines":
            recorded["stdout"] = self._normalizer.text(text).split("\n")
        if finished.exit and step.output != "json":
            recorded["stderr"] = prose(finished.stderr)
        return recorded

    def _json(self, step: Run, text: str) -> Any:  # noqa: ANN401 - JSON
        data = json.loads(text)
        for name, path in step.save.items():
            value = value_at(data, path) or f"no-{name}"
            self._values[name] = value
            self._normalizer.names.setdefault(value, name)
        normalized = self._normalizer.value(data, step.prose)
        for path, key in step.keyed.items():
            key_list(normalized, path, key)
        return normalized

    def _fill(self, text: str) -> str:
        for name, value in self._values.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def _lines(self, pattern: str) -> list[str] | None:
        path = next(self._world.root.glob(pattern), None)
        if path is None:
            return None
        return self._normalizer.text(path.read_bytes().decode("utf-8")).split("\n")

    def _tree(self, folder: str) -> dict[str, str]:
        top = self._world.root / folder
        entries = {}
        for path in sorted(top.rglob("*")):
            name = path.relative_to(top).as_posix()
            if path.is_symlink():
                entries[name] = f"link to {self._normalizer.text(str(path.readlink()))}"
            elif path.is_file():
                entries[name] = "executable" if path.stat().st_mode & 0o100 else "file"
        return entries
