"""Every public name has a docstring whose example runs."""

import inspect
import re
from pathlib import Path

import pytest

import skillhall
from tests.support.github_api_server import Repository

EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMES = [name for name in skillhall.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_public_name_has_a_docstring_with_an_example_that_runs(
    name: str, project: Path, github: Repository
) -> None:
    examples = EXAMPLE.findall(inspect.getdoc(getattr(skillhall, name)) or "")
    assert examples
    for example in examples:
        exec(compile(example, f"the example of {name}", "exec"), {})  # noqa: S102 - our own text
