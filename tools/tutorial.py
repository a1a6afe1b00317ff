"""Runs the tutorial as a reader would: commands, output, files and server."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import dev

PAGE = dev.ROOT / "docs" / "tutorial.md"
ANY = "…"  # text that differs from machine to machine; as a line, any number of lines
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+\.(?:md|py))`")
_TIMEOUT = 120


class Step(NamedTuple):
    """A command with its expected output, or a file to write."""

    text: str
    output: str = ""
    file: str = ""


def read_steps() -> Iterator[Step]:
    """Yield the steps of the tutorial in order."""
    page = PAGE.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(page):
        language, body = block.groups()
        if language == "console":
            for part in body.removeprefix("$ ").split("\n$ "):
                command, _, output = part.partition("\n")
                yield Step(command, output)
        else:  # a file that the paragraph before it names
            paragraph = page[: block.start()].rstrip().rpartition("\n\n")[2]
            yield Step(body, file=_FILE.findall(paragraph)[-1])


class Tutorial:
    """The tutorial in an empty folder, with the programs of one environment."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._port = "0"  # any free port; then that of the server
        self._server: subprocess.Popen[str] | None = None
        path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        self._environment = {
            "HOME": str(folder / "home"),
            "PATH": path,
            "PYTHONUTF8": "1",
            "XDG_CACHE_HOME": str(folder / "home/.cache"),
        }
        (folder / "home").mkdir()
        (folder / "project").mkdir()

    def run(self) -> int:
        """Run all steps and return their number."""
        count = 0
        try:
            for count, step in enumerate(read_steps(), start=1):  # noqa: B007 - returned
                self._run_step(step)
        finally:
            if self._server is not None:
                self._server.send_signal(signal.SIGTERM)
                self._server.communicate(timeout=_TIMEOUT)
        return count

    def _run_step(self, step: Step) -> None:
        if step.file:
            path = self.folder / "project" / step.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, encoding="utf-8")
        elif step.text.startswith("skillhall serve"):
            self._start_server(step)
        elif not step.text.startswith("pip install"):  # the caller has installed it
            done = subprocess.run(
                shlex.split(step.text.replace("8321", self._port)),
                cwd=self.folder / "project",
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                check=False,
                timeout=_TIMEOUT,
            )
            check_output(step.text, done.stdout, step.output)

    def _start_server(self, step: Step) -> None:
        command = shlex.split(step.text.replace("8321", self._port))
        self._server = subprocess.Popen(
            command,
            cwd=self.folder / "project",
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        # It prints the line when it accepts connections.
        line = self._server.stderr.readline() if self._server.stderr else ""
        self._port = re.findall(r":(\d+) ", line)[0]
        check_output(step.text, line, step.output.replace("8321", self._port))


def check_output(command: str, actual: str, expected: str) -> None:
    """Compare output with that of the page, where `…` matches anything."""
    lines = [re.escape(line).replace(re.escape(ANY), ".*") for line in expected.splitlines()]
    pattern = "\n".join(lines)
    pattern = re.sub(r"(?<=\n)\.\*(?=\n|$)|^\.\*(?=\n)", "(?:.*\n)*?.*", pattern)
    if not re.fullmatch(pattern + r"\n?", actual):
        raise AssertionError(f"$ {command}\n--- expected\n{expected}\n--- actual\n{actual}")
