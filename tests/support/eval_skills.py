"""Skills with eval cases, and `skillhall eval run` against a scripted model."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from skillhall._internal.cli.runner import run
from tests.support.model_server import ModelServer
from tests.support.skills import make_skill, make_skill_md

# Each format has its own variables for the address and the key of the provider.
MODELS: Mapping[str, tuple[str, str, str]] = {
    "openai-chat:scripted": ("OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1"),
    "anthropic:scripted": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", ""),
}
MODEL = "openai-chat:scripted"
PROGRAM = (sys.executable, "-m", "skillhall")


class EvalResult(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:  # noqa: ANN401 - any JSON
        return json.loads(self.out)["data"]

    @property
    def skill(self) -> Any:  # noqa: ANN401 - any JSON
        (skill,) = self.data["skills"]
        return skill


def make_eval_skill(
    root: Path,
    cases: Sequence[Mapping[str, object]],
    name: str = "csv-report",
    body: str = "Reply with TOTAL first.\n",
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Create a skill with `evals/evals.json`."""
    evals = json.dumps({"skill_name": name, "evals": [*cases]}, indent=1).encode()
    data = make_skill_md(name, "Summarizes CSV files.", body)
    return make_skill(root, name, data=data, files={"evals/evals.json": evals, **(files or {})})


def make_case(case_id: str = "sum", prompt: str = "Sum it.", **fields: object) -> dict[str, object]:
    """Create a case."""
    return {"id": case_id, "prompt": prompt, "expected_output": "6", "assertions": [], **fields}


def use_model(monkeypatch: pytest.MonkeyPatch, server: ModelServer, model: str = MODEL) -> None:
    """Point the provider's variables to the server."""
    for name, value in build_model_environment(server, model).items():
        monkeypatch.setenv(name, value)


def build_model_environment(server: ModelServer, model: str = MODEL) -> dict[str, str]:
    """Return the variables of a process that uses the server."""
    url, key, path = MODELS[model]
    return {url: f"{server.url}{path}", key: "sk-not-a-real-key"}


def run_eval(
    capsys: pytest.CaptureFixture[str], *argv: str | os.PathLike[str], command: str = "run"
) -> EvalResult:
    """Run `skillhall eval` in this process, with `--json`."""
    code = run(["eval", command, *(os.fspath(one) for one in argv), "--json"])
    return EvalResult(code, *capsys.readouterr())


def read_run_file(skill: Path, arm: str, repeat: int = 1, *, repeats: int = 3) -> Any:  # noqa: ANN401 - any JSON
    """Return `run.json` of a run in the first iteration."""
    folder = skill.with_name(f"{skill.name}-workspace") / "iteration-1/eval-sum" / arm
    path = folder if repeats == 1 else folder / f"run-{repeat}"
    return json.loads((path / "run.json").read_text())
