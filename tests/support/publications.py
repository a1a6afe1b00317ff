"""A project with fifty generated skills and a manifest for `skillhall publish`."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TypeAlias

from tests.support.skills import make_skill, make_skill_md

Files: TypeAlias = dict[str, tuple[bytes, bool]]  # content and whether it is executable

MANIFEST = """\
[publish]
name = "acme-skills"
description = "Skills of Acme."
author = "Acme Inc."
email = "skills@acme.example"
license = "MIT"
homepage = "https://acme.example"

[publish.targets]
static = { url = "https://skills.acme.example" }
git = {}
python = {}
npm = { name = "@acme/skills" }
claude-plugin = {}
gemini = {}
oci = {}
"""


def make_project(folder: Path, count: int = 50) -> Path:
    """Create skills with scripts, binary and empty files, and the manifest."""
    rng = random.Random(22)  # noqa: S311 - test data
    for number in range(count):
        name = f"skill-{number:02}"
        files: dict[str, bytes] = {}
        if number % 5:
            files = {
                "scripts/run.sh": b"#!/bin/sh\necho %d\n" % number,
                "references/two words/ümlaut.md": b"line\r\n" * number,
                "references/data.bin": rng.randbytes(500 + number),
                "empty.txt": b"",
            }
        data = make_skill_md(name, f'Does <{number}> & "more", ümlaut.')
        skill = make_skill(folder / "skills", name, data=data, files=files)
        for script in skill.glob("scripts/*"):
            script.chmod(0o755)
    (folder / "skillhall.toml").write_text(MANIFEST, encoding="utf-8")
    return folder


def read_tree(folder: Path) -> Files:
    """Return all files of a folder, except compiled Python."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
