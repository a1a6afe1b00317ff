"""Generating that is broken off at every step; each skill is left whole, old, new or not there."""

from pathlib import Path

from skillhall._internal.installer.project import Shelf
from skillhall._internal.prompts.generate.convert import Batch, PromptSkill
from skillhall._internal.prompts.generate.marker import Origin
from skillhall._internal.prompts.generate.writer import Target, Wish, generate
from skillhall._internal.skill.merge import FileState
from tests.support.projects import settings_in, tree
from tests.support.skills import make_skill_md

SKILLS = ".claude/skills"
OWN = ("own/SKILL.md", b"mine")


def batch_of(version: str, *names: str) -> Batch:
    """Skills whose files say which version they are of."""
    return Batch(
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


def generated(folder: Path, batch: Batch, *, force: bool = False) -> None:
    target = Target.on(Shelf.of(settings_in(folder)), SKILLS)
    generate(batch, target, Wish(Origin("http://127.0.0.1:1"), force))


class _Case:
    """Two skills of an old version, one that a person made, and news."""

    old: tuple[str, ...] = ("left", "stays")
    new: tuple[str, ...] = ("stays", "comes")

    def prepare(self, folder: Path) -> None:
        generated(folder, batch_of("old", *self.old))
        own = folder / "project" / SKILLS / OWN[0]
        own.parent.mkdir(parents=True)
        own.write_bytes(OWN[1])

    def work(self, folder: Path) -> None:
        generated(folder, batch_of("new", *self.new))

    def check(self, folder: Path) -> None:
        place = folder / "project" / SKILLS
        for name in {*self.old, *self.new}:
            allowed = [_files("old", name)] if name in self.old else [{}]
            allowed += [_files("new", name)] if name in self.new else [{}]
            assert _left(place, name) in allowed, name
        self._clears_up(folder, place)

    def _clears_up(self, folder: Path, place: Path) -> None:
        """A third version takes their place: whatever was left is known to be ours."""
        generated(folder, batch_of("third", *self.new))
        assert {path.name for path in place.iterdir() if path.is_dir()} == {"own", *self.new}
        for name in self.new:
            assert _left(place, name) == _files("third", name)
        assert (place / OWN[0]).read_bytes() == OWN[1]
        left = [path.name for path in (folder / "project").rglob(".skillhall-*")]
        assert left == ([".skillhall-generated.json"] if self.new else [])


def _files(version: str, name: str) -> dict[str, tuple[bytes, bool]]:
    [skill] = batch_of(version, name).skills
    return {path: (state.data, state.executable) for path, state in skill.files.items()}


def _left(place: Path, name: str) -> dict[str, tuple[bytes, bool]]:
    """What readers see of a skill; a folder that stepped aside comes back at the next start."""
    aside = place / f".skillhall-old-{name}"
    found = place / name
    return tree(found if found.is_dir() or not aside.is_dir() else aside)


class First(_Case):
    """Into a folder that holds nothing of ours."""

    old = ()
    new = ("comes",)


class Again(_Case):
    """One skill is replaced, one is new, one is gone."""


class Gone(_Case):
    """All prompts are gone."""

    old = ("left",)
    new = ()
