"""Runs commands in a project, with answers on a terminal."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from skillhall._internal.cli import options
from skillhall._internal.cli.runner import run


class Result(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The data of a command with `--json`."""
        report: dict[str, Any] = json.loads(self.out)
        data: dict[str, Any] = report["data"]
        return data


Cli: TypeAlias = Callable[..., Result]


def make_cli(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:
    """Return a function that runs a command in `project`, a new folder.

    `typed` are the answers on a terminal; without it, there is no terminal.
    """
    (folder / "project").mkdir()
    monkeypatch.chdir(folder / "project")
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(folder / "data"))

    def call(*argv: str, typed: str | None = None) -> Result:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO(typed or ""))
            patch.setattr(options, "is_interactive", lambda: typed is not None)
            return Result(run(argv), *capsys.readouterr())

    return call
