"""Every public name has a docstring, and its example or that of its module runs."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import skillhall
from tests.support.github_api_server import Repository
from tests.support.library_reference import MODULES

EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# `mcp_source` needs a configured MCP server; its guide has the example.
MODULES_WITH_EXAMPLES = [name for name in MODULES if name != "mcp_source"]
NAMES = [name for name in skillhall.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_public_name_has_a_docstring_with_an_example_that_runs(
    name: str, project: Path, github: Repository
) -> None:
    examples = EXAMPLE.findall(inspect.getdoc(getattr(skillhall, name)) or "")
    assert examples
    for example in examples:
        exec(compile(example, f"the example of {name}", "exec"), {})  # noqa: S102 - our own text


@pytest.mark.parametrize("name", MODULES_WITH_EXAMPLES)
def test_public_module_has_an_example_that_runs(
    name: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "never sent")
    (example,) = EXAMPLE.findall(inspect.getdoc(import_module(f"skillhall.{name}")) or "")
    exec(compile(example, f"the example of {name}", "exec"), {})  # noqa: S102 - our own text


@pytest.mark.parametrize("name", MODULES)
def test_name_of_a_public_module_has_a_docstring(name: str) -> None:
    module = import_module(f"skillhall.{name}")
    assert all(inspect.getdoc(getattr(module, each)) for each in module.__all__)
