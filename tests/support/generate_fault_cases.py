"""Fault cases for generation: each skill is complete, old or new, or missing."""

from pathlib import Path

from skillhall._internal.installer.project import Project
from skillhall._internal.prompt_server.generate.convert import PromptBatch, PromptSkill
from skillhall._internal.prompt_server.generate.marker import PromptOrigin
from skillhall._internal.prompt_server.generate.writer import (
    GenerateOptions,
    GenerateTarget,
    generate,
)
from skillhall._internal.skill.merge import FileState
from tests.support.projects import make_project_settings, read_tree
from tests.support.skills import make_skill_md

SKILLS = ".claude/skills"
USER_FILE = ("own/SKILL.md", b"mine")


def make_batch(version: str, *names: str) -> PromptBatch:
    """Make skills whose files contain their version."""
    return PromptBatch(
        "built-in",
        frozenset(names),
        [
            PromptSkill(
                name,
                name,
                {
                    "SKILL.md": FileState(make_skill_md(name, body=version), executable=False),
                    f"scripts/{version}.sh": FileState(b"#!/bin/sh\n", executable=True),
                },
            )
            for name in names
        ],
    )


def run_generate(folder: Path, batch: PromptBatch, *, force: bool = False) -> None:
    target = GenerateTarget.in_project(Project.from_settings(make_project_settings(folder)), SKILLS)
    generate(batch, target, GenerateOptions(PromptOrigin("http://127.0.0.1:1"), force))


class _GenerateCase:
    """Two skills of an old version, one of the user, and a new version."""

    old_names: tuple[str, ...] = ("left", "stays")
    new_names: tuple[str, ...] = ("stays", "comes")

    def prepare(self, folder: Path) -> None:
        run_generate(folder, make_batch("old", *self.old_names))
        user_file = folder / "project" / SKILLS / USER_FILE[0]
        user_file.parent.mkdir(parents=True)
        user_file.write_bytes(USER_FILE[1])

    def run(self, folder: Path) -> None:
        run_generate(folder, make_batch("new", *self.new_names))

    def check(self, folder: Path) -> None:
        skills_folder = folder / "project" / SKILLS
        for name in {*self.old_names, *self.new_names}:
            allowed = [_expected_files("old", name)] if name in self.old_names else [{}]
            allowed += [_expected_files("new", name)] if name in self.new_names else [{}]
            assert _read_skill(skills_folder, name) in allowed, name
        self._check_next_run(folder, skills_folder)

    def _check_next_run(self, folder: Path, skills_folder: Path) -> None:
        """Generate a third version: all leftovers must be recognized as ours."""
        run_generate(folder, make_batch("third", *self.new_names))
        assert {path.name for path in skills_folder.iterdir() if path.is_dir()} == {
            "own",
            *self.new_names,
        }
        for name in self.new_names:
            assert _read_skill(skills_folder, name) == _expected_files("third", name)
        assert (skills_folder / USER_FILE[0]).read_bytes() == USER_FILE[1]
        leftovers = [path.name for path in (folder / "project").rglob(".skillhall-*")]
        assert leftovers == ([".skillhall-generated.json"] if self.new_names else [])


def _expected_files(version: str, name: str) -> dict[str, tuple[bytes, bool]]:
    [skill] = make_batch(version, name).skills
    return {path: (state.data, state.executable) for path, state in skill.files.items()}


def _read_skill(skills_folder: Path, name: str) -> dict[str, tuple[bytes, bool]]:
    """Read a skill; the next start restores a folder that was moved aside."""
    aside = skills_folder / f".skillhall-old-{name}"
    path = skills_folder / name
    return read_tree(path if path.is_dir() or not aside.is_dir() else aside)


class FirstRun(_GenerateCase):
    """First run, into a folder without generated skills."""

    old_names = ()
    new_names = ("comes",)


class SecondRun(_GenerateCase):
    """Run that replaces one skill, adds one and removes one."""


class AllRemoved(_GenerateCase):
    """Run after all prompts were deleted."""

    old_names = ("left",)
    new_names = ()
