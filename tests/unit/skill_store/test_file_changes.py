"""Changes of the files of a skill: paths, limits and modes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skillhall._internal.skill_store.file_changes import (
    NewFile,
    delete_file,
    rename_file,
    write_files,
)
from skillhall.errors import Conflict, EditRefused, SkillFileNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from skillhall._internal.skill_store.file_changes import ChangeFiles

FILES = {"SKILL.md": (b"text", 0o644), "scripts/run.sh": (b"#!/bin/sh\n", 0o755)}


def test_write_keeps_the_mode_unless_it_is_given() -> None:
    changed = write_files(FILES, [NewFile("scripts/run.sh", b"new"), NewFile("a.md", b"a")])
    assert changed == {**FILES, "scripts/run.sh": (b"new", 0o755), "a.md": (b"a", 0o644)}
    changed = write_files(FILES, [NewFile("scripts/run.sh", b"new", executable=False)])
    assert changed["scripts/run.sh"] == (b"new", 0o644)


def test_file_is_renamed_and_deleted() -> None:
    renamed = rename_file(FILES, "scripts/run.sh", "bin/go.sh")
    assert renamed == {"SKILL.md": FILES["SKILL.md"], "bin/go.sh": FILES["scripts/run.sh"]}
    assert delete_file(FILES, "scripts/run.sh") == {"SKILL.md": FILES["SKILL.md"]}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda files: write_files(files, [NewFile("../out", b"")]), UnsafePath),
        (lambda files: write_files(files, [NewFile("/etc/x", b"")]), UnsafePath),
        (lambda files: write_files(files, [NewFile(".git/config", b"")]), UnsafePath),
        (lambda files: write_files(files, [NewFile("nul.txt", b"")]), UnsafePath),
        (lambda files: write_files(files, [NewFile("Scripts/RUN.sh", b"")]), UnsafePath),
        (lambda files: write_files(files, [NewFile("scripts", b"")]), UnsafePath),
        (lambda files: write_files(files, [NewFile("SKILL.md", b"")], replace=False), Conflict),
        (lambda files: write_files(files, [NewFile("a", bytes(101 * 2**20))]), TooLarge),
        (lambda files: write_files(files, [NewFile(f"{n}", b"") for n in range(2000)]), TooLarge),
        (lambda files: delete_file(files, "SKILL.md"), EditRefused),
        (lambda files: delete_file(files, "missing.md"), SkillFileNotFound),
        (lambda files: rename_file(files, "SKILL.md", "README.md"), EditRefused),
        (lambda files: rename_file(files, "scripts/run.sh", "SKILL.md"), Conflict),
        (lambda files: rename_file(files, "scripts/run.sh", "skill.md"), UnsafePath),
    ],
)
def test_bad_change_is_refused(change: ChangeFiles, error: type[Exception]) -> None:
    with pytest.raises(error):
        change(FILES)
