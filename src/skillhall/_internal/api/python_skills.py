"""Skills defined in Python code: functions with docstrings."""

from __future__ import annotations

import atexit
import inspect
import os
import shutil
from tempfile import mkdtemp
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.authoring.scaffold import create_skill
from skillhall.errors import SkillRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Function = TypeVar("_Function", bound="Callable[[], str]")


class PythonSkills:
    '''Skills that functions define, for use next to folders of skills.

    The name of a function is the name of the skill, with hyphens. Its docstring is the
    description, and the text that it returns is the body. The skills are files in a temporary
    folder, which is deleted when the process ends.

    ```python
    from skillhall import PythonSkills, Skills

    python_skills = PythonSkills()


    @python_skills.add
    def csv_totals() -> str:
        """Sums the columns of CSV files. Use when the user asks for totals of a table."""
        return "Read the header, then sum each numeric column."


    skills = Skills.load("skills", python_skills)
    print(skills["csv-totals"].description)
    ```
    '''

    def __init__(self) -> None:
        self._folder = mkdtemp(prefix="skillhall-")
        atexit.register(_delete_folder, self._folder, os.getpid())

    def __fspath__(self) -> str:
        """Return the path of the folder, so that this object is accepted like a path."""
        return self._folder

    def add(
        self, function: _Function, *, name: str = "", files: Mapping[str, bytes] | None = None
    ) -> _Function:
        """Add the skill that a function defines; usable as a decorator.

        The function is called once. `files` are further files of the skill by path.
        Raises: SkillRejected if the name or the docstring is no valid name or description,
        UnsafePath, Conflict if there is a skill of this name.

        ```python
        PythonSkills().add(csv_totals, files={"example.csv": b"amount,price"})
        ```
        """
        skill_name = name or function.__name__.strip("_").replace("_", "-")
        docstring = inspect.getdoc(function)
        if not docstring:
            raise SkillRejected(
                skill_name, ["the function has no docstring, which is the description"]
            )
        create_skill(self._folder, skill_name, " ".join(docstring.split()), function(), files or {})
        return function


def _delete_folder(path: str, process: int) -> None:
    # A child process that was forked runs the same exit handlers.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
