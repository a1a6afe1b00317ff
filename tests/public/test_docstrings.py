"""Every public name has a docstring with an example, and all examples run."""

import ast
import doctest
import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import skillhall
from tests.support.library_reference import MODULES

FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PUBLIC_MODULES = ["skillhall", "skillhall.errors", *(f"skillhall.{name}" for name in MODULES)]
GITHUB = '"acme/'  # in examples that open a repository
# Values without a docstring of their own.
CONSTANTS = {"__version__"}


def find_names(module: str) -> list[str]:
    """Read `__all__` from the source: every worker would import every framework to collect."""
    spec = find_spec(module)
    assert spec
    assert spec.origin
    (names,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return [name for name in names if name not in CONSTANTS]


def run_examples(
    label: str, value: object, names: dict[str, object], request: pytest.FixtureRequest
) -> None:
    """Run the programs and the interpreter sessions of a docstring; there must be one."""
    docstring = inspect.getdoc(value) or ""
    if GITHUB in docstring:
        request.getfixturevalue("github")
    programs = FENCE.findall(docstring)
    session = doctest.DocTestParser().get_doctest(docstring, names, label, None, None)
    assert programs or session.examples, f"{label} has no example"
    for program in programs:
        exec(compile(program, f"the example of {label}", "exec"), {})  # noqa: S102 - our own text
    output: list[str] = []
    doctest.DocTestRunner(verbose=False).run(session, out=output.append)
    assert not output, "".join(output)


@pytest.fixture(autouse=True)
def prepare(mcp_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "never sent")


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_public_module_has_an_example_that_runs(
    module: str, request: pytest.FixtureRequest
) -> None:
    run_examples(module, import_module(module), {}, request)


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module in PUBLIC_MODULES for name in find_names(module)]
)
def test_public_name_has_a_docstring_with_an_example_that_runs(
    module: str, name: str, request: pytest.FixtureRequest
) -> None:
    home = import_module(module)
    # Sessions use the names of `skillhall` and of their module without importing them.
    names = {each: getattr(skillhall, each) for each in find_names("skillhall")}
    names |= {each: getattr(home, each) for each in find_names(module)}
    run_examples(f"{module}.{name}", getattr(home, name), names, request)
