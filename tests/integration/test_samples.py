"""Samples of the README and the guides run, or are valid command lines."""

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
from skillhall._internal.cli.options import DefaultCommandGroup
from skillhall._internal.cli.runner import run
from tests.support.bubblewrap import require_bubblewrap
from tests.support.github_api_server import Repository, run_github_api_server
from tests.support.model_server import model_server
from tests.support.skills import make_skill, make_skill_md

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = "docs/tutorial.md"  # `test_tutorial.py` runs it
DOCUMENTS = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
DOCUMENTS.remove(TUTORIAL)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Commands that are run because they need only the folder. Others need a host or prompt the user.
OFFLINE_COMMANDS = {
    *("list", "validate", "prompt", "search", "scan", "tool", "local", "stats", "init")
}
ONLINE_SUBCOMMANDS = (["local", "share"],)
ANSWER = "Here is the report."
DEADLINE = 300
# Names of models that guides assume, in the words of each framework.
MODELS = {
    "create_agent(model": """
from tests.support.framework_agents.langchain import OpenAIChatModel
model = OpenAIChatModel(url="")
""",
    "llm=llm": """
from llama_index.core.llms import MockFunctionCallingLLM
llm = MockFunctionCallingLLM()
""",
    "Agent(client": """
from agent_framework.openai import OpenAIChatCompletionClient
client = OpenAIChatCompletionClient("scripted")
""",
    "chat_generator=generator": """
from haystack.components.generators.chat import OpenAIChatGenerator
generator = OpenAIChatGenerator()
""",
}


def blocks(document: str, *languages: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return [body for language, body in BLOCK.findall(text) if language in languages]


def commands(document: str) -> list[list[str]]:
    """Return the arguments of each `skillhall` command in a document."""
    lines = [line for body in blocks(document, "", "sh", "console") for line in body.splitlines()]
    lines = [line.removeprefix("$ ") for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("skillhall ")]


GENERATED = "docs/reference/library.md"  # from docstrings, whose examples `tests/public` runs
PYTHON = [d for d in DOCUMENTS if d != GENERATED and blocks(d, "python")]
SHELL = [document for document in DOCUMENTS if commands(document)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder that the guides assume, with fake servers for GitHub and a model."""
    monkeypatch.chdir(tmp_path)
    for name in (".agents/skills", ".skills", "skills", "examples/skills"):
        shutil.copytree(ROOT / "examples/skills", tmp_path / name)
    for name in (".", "broken"):
        make_skill(tmp_path / name, "pdf-tools")
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
def test_python_samples_run(document: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(folder / "skills", folder / "my-skills")
    code = "".join(blocks(document, "python")).replace("/srv/agent", str(folder))
    if "BubblewrapRunner(" in code:
        require_bubblewrap(monkeypatch)
        (folder / "reports").mkdir()
    prelude = "".join(text for use, text in MODELS.items() if use in code)
    (folder / "sample.py").write_text(prelude + code, encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "sample.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert result.returncode == 0, result.stderr
    if "run_sync(" in code:
        assert result.stdout.startswith(f"{ANSWER}\n")


@pytest.mark.parametrize("document", SHELL)
def test_commands_in_documents_exist_with_their_options(document: str) -> None:
    for arguments in commands(document):
        command: click.Command = cli
        context = click.Context(cli, info_name="skillhall")
        rest = arguments
        while isinstance(command, click.Group) and rest:
            subcommand = command.get_command(context, rest[0])
            if subcommand is None and isinstance(command, DefaultCommandGroup):
                subcommand, rest = command.default, ["", *rest]
            assert subcommand is not None, arguments
            command, rest = subcommand, rest[1:]
            context = click.Context(command, context, info_name=command.name)
        command.make_parser(context).parse_args([*rest])


@pytest.mark.parametrize("document", SHELL)
def test_offline_commands_run(document: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in commands(document):
        if arguments[0] in OFFLINE_COMMANDS and arguments[:2] not in ONLINE_SUBCOMMANDS:
            monkeypatch.setattr(sys, "stdin", io.StringIO("Some text.\n"))
            assert run([*arguments, *["--yes"] * (arguments[:2] == ["local", "delete"])]) in (
                0,
                1,
            ), arguments
