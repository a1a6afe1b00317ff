"""Every sample of the README and the guides is run, or at least read by the command it is for."""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from skillhall._internal.cli.app import cli
from skillhall._internal.cli.runner import run
from tests.support.github_api_server import Repository, run_github_api_server
from tests.support.model_server import model_server
from tests.support.skills import make_skill, make_skill_md

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Commands that need nothing but the folder: they are run. The others would ask hosts or people.
RUN_HERE = {"list", "validate", "prompt", "search", "scan", "tool", "local", "stats", "init"}
NEED_A_HOST = (["local", "share"],)  # the rest of these groups does not
ANSWER = "Here is the report."
DEADLINE = 300
# What a reader of the guides has already: a chat model for LangChain.
MODEL = (
    "from tests.support.framework_agents.langchain import OpenAIChatModel\n"
    "model = OpenAIChatModel(url='')\n"
)


def blocks(document: str, *languages: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return [body for language, body in BLOCK.findall(text) if language in languages]


def commands(document: str) -> list[list[str]]:
    """The words of each `skillhall` command in a document's blocks."""
    lines = [line for body in blocks(document, "", "sh", "console") for line in body.splitlines()]
    given = [line.removeprefix("$ ") for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in given if line.startswith("skillhall ")]


def having(found: dict[str, object]) -> list[str]:
    return [document for document, samples in found.items() if samples]


PYTHON = having({document: blocks(document, "python") for document in DOCUMENTS})
SHELL = having({document: commands(document) for document in DOCUMENTS})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder like the one that the guides speak of, and stand-ins for GitHub and a model."""
    monkeypatch.chdir(tmp_path)
    for place in (".agents/skills", ".skills", "skills", "examples/skills"):
        shutil.copytree(ROOT / "examples/skills", tmp_path / place)
    for place in (".", "broken"):
        make_skill(tmp_path / place, "pdf-tools")
    (tmp_path / "README.md").write_bytes(b"# Read me\n")
    (tmp_path / "skillhall.toml").write_bytes(
        b'[[agents]]\nid = "coding"\n[[agents.skills]]\nroot = "skills"\n'
    )
    served = {"references/forms.md": b"Forms.\n"}
    make_skill(tmp_path / "served", "pdf", files=served)
    with run_github_api_server() as github, model_server(ANSWER) as model:
        files = {f"skills/{name}/SKILL.md": make_skill_md(name) for name in ("pdf", "lint")}
        for name in ("acme/skills", "acme/tools"):
            repository = github.repositories[name] = Repository()
            for ref in ("main", "v2"):
                repository.commit(files, ref)
        variables = {
            "SKILLHALL_GIT": "off",
            "SKILLHALL_ALLOW_NETWORKS": "127.0.0.0/8",
            "SKILLHALL_GITHUB_API_URL": github.api_url,
            "SKILLHALL_DATA_DIR": str(tmp_path / "data"),
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_API_KEY": "test-key",
            "ANTHROPIC_API_KEY": "test-key",
        }
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        server = [sys.executable, "-m", "skillhall", "mcp", str(tmp_path / "served")]
        assert run(["mcp-servers", "add", "acme", "--", *server]) == 0
        yield tmp_path


@pytest.mark.parametrize("document", PYTHON)
def test_the_python_of_a_document_runs_from_top_to_bottom(document: str, folder: Path) -> None:
    shutil.copytree(folder / "skills", folder / "my-skills")
    code = "".join(blocks(document, "python")).replace("/srv/agent", str(folder))
    needed = MODEL if "create_agent(model" in code else ""
    (folder / "sample.py").write_text(needed + code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "sample.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    if "run_sync(" in code:
        assert done.stdout.startswith(f"{ANSWER}\n")


@pytest.mark.parametrize("document", SHELL)
def test_the_commands_of_a_document_are_there_with_these_options(document: str) -> None:
    for words in commands(document):
        command: click.Command = cli
        context = click.Context(cli, info_name="skillhall")
        left = words
        while isinstance(command, click.Group) and left:
            found = command.get_command(context, left[0])
            assert found is not None, words
            command, left = found, left[1:]
            context = click.Context(command, context, info_name=command.name)
        command.make_parser(context).parse_args([*left])


@pytest.mark.parametrize("document", SHELL)
def test_the_commands_that_need_no_host_run(
    document: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in commands(document):
        if words[0] in RUN_HERE and words[:2] not in NEED_A_HOST:
            monkeypatch.setattr(sys, "stdin", io.StringIO("Some text.\n"))
            assert run([*words, *["--yes"] * (words[:2] == ["local", "delete"])]) in (0, 1), words
