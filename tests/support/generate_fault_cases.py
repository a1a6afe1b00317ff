"""Generating that is broken off at every step; each skill is left whole, old, new or not there."""

from pathlib import Path

from skillhall._internal.installer.project import Project
from skillhall._internal.prompts.generate.convert import PromptBatch, PromptSkill
from skillhall._internal.prompts.generate.marker import PromptOrigin
from skillhall._internal.prompts.generate.writer import GenerateOptions, GenerateTarget, generate
from skillhall._internal.skill.merge import FileState
from tests.support.projects import make_project_settings, read_tree
from tests.support.skills import make_skill_md

SKILLS = ".claude/skills"
USER_FILE = ("own/SKILL.md", b"mine")


def make_batch(version: str, *names: str) -> PromptBatch:
    """Skills whose files say which version they are of."""
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
    """Two skills of an old version, one that a person made, and news."""

    old_names: tuple[str, ...] = ("left", "stays")
    new_names: tuple[str, ...] = ("stays", "comes")

    def prepare(self, folder: Path) -> None:
        run_generate(folder, make_batch("old", *self.old_names))
        own = folder / "project" / SKILLS / USER_FILE[0]
        own.parent.mkdir(parents=True)
        own.write_bytes(USER_FILE[1])

    def run(self, folder: Path) -> None:
        run_generate(folder, make_batch("new", *self.new_names))

    def check(self, folder: Path) -> None:
        place = folder / "project" / SKILLS
        for name in {*self.old_names, *self.new_names}:
            allowed = [_expected_files("old", name)] if name in self.old_names else [{}]
            allowed += [_expected_files("new", name)] if name in self.new_names else [{}]
            assert _read_skill(place, name) in allowed, name
        self._check_next_run(folder, place)

    def _check_next_run(self, folder: Path, skills_folder: Path) -> None:
        """A third version takes their place: whatever was left is known to be ours."""
        run_generate(folder, make_batch("third", *self.new_names))
        assert {path.name for path in skills_folder.iterdir() if path.is_dir()} == {
            "own",
            *self.new_names,
        }
        for name in self.new_names:
            assert _read_skill(skills_folder, name) == _expected_files("third", name)
        assert (skills_folder / USER_FILE[0]).read_bytes() == USER_FILE[1]
        left = [path.name for path in (folder / "project").rglob(".skillhall-*")]
        assert left == ([".skillhall-generated.json"] if self.new_names else [])


def _expected_files(version: str, name: str) -> dict[str, tuple[bytes, bool]]:
    [skill] = make_batch(version, name).skills
    return {path: (state.data, state.executable) for path, state in skill.files.items()}


def _read_skill(skills_folder: Path, name: str) -> dict[str, tuple[bytes, bool]]:
    """What readers see of a skill; a folder that stepped aside comes back at the next start."""
    aside = skills_folder / f".skillhall-old-{name}"
    found = skills_folder / name
    return read_tree(found if found.is_dir() or not aside.is_dir() else aside)


class FirstRun(_GenerateCase):
    """Into a folder that holds nothing of ours."""

    old_names = ()
    new_names = ("comes",)


class SecondRun(_GenerateCase):
    """One skill is replaced, one is new, one is gone."""


class AllRemoved(_GenerateCase):
    """All prompts are gone."""

    old_names = ("left",)
    new_names = ()
