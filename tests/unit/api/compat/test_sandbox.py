import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from skillhall._internal.api.compat.sandbox import (
    FolderSandbox,
    MemorySandbox,
    Sandbox,
    setup_agent_environment,
)
from skillhall._internal.api.compat.skills_module import SkillBundle, SkillMetadata, discover_skills
from skillhall._internal.skill.finding import Code
from skillhall.errors import NotAFile, SkillFileNotFound, SkillParseError, UnsafePath
from tests.support.skills import make_skill, make_skill_md

MAKERS: list[Callable[[Path], Sandbox]] = [FolderSandbox, lambda _: MemorySandbox()]


@pytest.fixture(params=MAKERS, ids=["folder", "memory"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    made: Sandbox = request.param(tmp_path / "box")
    return made


def bundle(name: str = "pdf", **files: bytes) -> SkillBundle:
    return SkillBundle(name, {"SKILL.md": make_skill_md(name), **files})


def test_written_file_is_readable_and_parents_are_created(sandbox: Sandbox) -> None:
    sandbox.write_file("a/b/c.bin", b"\xff\0")
    assert sandbox.read_file("a/b/c.bin") == b"\xff\0"
    assert [sandbox.exists(path) for path in ("a", "a/b", "a/b/c.bin", "a/c")] == [
        *(True, True, True),
        False,
    ]


def test_existing_file_is_replaced(sandbox: Sandbox) -> None:
    sandbox.write_file("a", b"long text")
    sandbox.write_file("a", b"short")
    assert sandbox.read_file("a") == b"short"


def test_make_dir_accepts_an_existing_folder(sandbox: Sandbox) -> None:
    sandbox.make_dir("a/b")
    sandbox.make_dir("a/b")
    assert sandbox.exists("a/b")


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "C:/x", "a\\b", "nul"])
def test_path_outside_the_sandbox_is_rejected(sandbox: Sandbox, path: str) -> None:
    with pytest.raises(UnsafePath):
        sandbox.write_file(path, b"")
    with pytest.raises(UnsafePath):
        sandbox.read_file(path)
    with pytest.raises(UnsafePath):
        sandbox.make_dir(path)
    with pytest.raises(UnsafePath):
        sandbox.exists(path)


def test_missing_file_is_named_in_the_error(sandbox: Sandbox) -> None:
    with pytest.raises(SkillFileNotFound, match="a/b"):
        sandbox.read_file("a/b")


def test_reading_or_writing_a_folder_fails(sandbox: Sandbox) -> None:
    sandbox.make_dir("a")
    with pytest.raises(NotAFile):
        sandbox.read_file("a")
    with pytest.raises(NotAFile):
        sandbox.write_file("a", b"")


def test_file_cannot_be_a_parent_folder(sandbox: Sandbox) -> None:
    sandbox.write_file("a", b"")
    with pytest.raises(UnsafePath):
        sandbox.write_file("a/b", b"")
    with pytest.raises(UnsafePath):
        sandbox.make_dir("a")


def test_links_are_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"old")
    sandbox = FolderSandbox(tmp_path / "box")
    (tmp_path / "box" / "folder").symlink_to(outside)
    (tmp_path / "box" / "file").symlink_to(outside / "file")
    for path in ("folder/new", "file", "folder"):
        with pytest.raises(UnsafePath):
            sandbox.write_file(path, b"new")
    assert [file.read_bytes() for file in outside.iterdir()] == [b"old"]


def test_hard_link_outside_the_sandbox_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"old")
    sandbox = FolderSandbox(tmp_path / "box")
    os.link(tmp_path / "outside", tmp_path / "box" / "inside")
    sandbox.write_file("inside", b"new")
    assert (tmp_path / "outside").read_bytes() == b"old"
    assert [file.name for file in (tmp_path / "box").iterdir()] == ["inside"]


def test_skills_are_copied_below_their_names(sandbox: Sandbox) -> None:
    seeded = setup_agent_environment(sandbox, [bundle("pdf", **{"a/b.bin": b"\xff"})])
    assert seeded == [SkillMetadata("pdf", "Reads PDF files.", ".skills/pdf/SKILL.md")]
    assert sandbox.read_file(".skills/pdf/SKILL.md") == make_skill_md("pdf")
    assert sandbox.read_file(".skills/pdf/a/b.bin") == b"\xff"


def test_discovered_skills_are_copied(sandbox: Sandbox, tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf", files={"notes.md": b"n"})
    setup_agent_environment(sandbox, discover_skills([tmp_path / "skills"]))
    assert sandbox.read_file(".skills/pdf/notes.md") == b"n"


def test_first_skill_of_a_name_is_copied() -> None:
    sandbox = MemorySandbox()
    seeded = setup_agent_environment(sandbox, [bundle(extra=b"1"), bundle(extra=b"2")])
    assert [skill.name for skill in seeded] == ["pdf"]
    assert [judged.finding.code for judged in seeded.findings] == [Code.SHADOWED]
    assert sandbox.read_file(".skills/pdf/extra") == b"1"


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (SkillBundle("x", {"SKILL.md": b"# no frontmatter"}), SkillParseError),
        (SkillBundle("x", {"SKILL.md": make_skill_md("../x")}), SkillParseError),
        (SkillBundle("x", {"notes.md": b""}), SkillFileNotFound),
        (SkillBundle("x", {"SKILL.md": make_skill_md("x"), "../y": b""}), UnsafePath),
    ],
)
def test_invalid_bundle_is_rejected_before_writing(
    bad: SkillBundle, error: type[Exception]
) -> None:
    sandbox = MemorySandbox()
    with pytest.raises(error):
        setup_agent_environment(sandbox, [bundle(), bad])
    assert sandbox.files == {}


def test_scripts_stay_executable_in_a_folder_sandbox(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skills", "pdf", files={"run.sh": b"#!/bin/sh\n", "a.md": b""})
    (skill / "run.sh").chmod(0o755)
    setup_agent_environment(FolderSandbox(tmp_path / "box"), discover_skills([tmp_path / "skills"]))
    seeded = tmp_path / "box" / ".skills" / "pdf"
    assert os.access(seeded / "run.sh", os.X_OK)
    assert (seeded / "a.md").stat().st_mode & 0o111 == 0


def test_copying_again_updates_the_executable_bit(tmp_path: Path) -> None:
    box = FolderSandbox(tmp_path / "box")
    script = bundle(run=b"#!/bin/sh\n")
    for programs in (frozenset({"run"}), frozenset[str](), frozenset({"run"})):
        setup_agent_environment(box, [replace(script, executable=programs)])
        mode = (tmp_path / "box" / ".skills" / "pdf" / "run").stat().st_mode
        assert bool(mode & 0o111) is bool(programs)


def test_replacing_a_file_keeps_its_executable_bit(tmp_path: Path) -> None:
    box = FolderSandbox(tmp_path)
    box.write_file("run.sh", b"old")
    (tmp_path / "run.sh").chmod(0o755)
    box.write_file("run.sh", b"new")
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o755


def test_memory_sandbox_records_executable_files() -> None:
    box = MemorySandbox()
    setup_agent_environment(box, [replace(bundle(run=b""), executable=frozenset({"run"}))])
    assert box.executable == {".skills/pdf/run"}


def test_minimal_sandbox_is_supported() -> None:
    class Minimal:
        def __init__(self) -> None:
            self.files: dict[str, bytes] = {}

        def read_file(self, path: str) -> bytes:
            return self.files[path]

        def write_file(self, path: str, data: bytes) -> None:
            self.files[path] = data

        def exists(self, path: str) -> bool:
            return path in self.files

        def make_dir(self, path: str) -> None:
            """Folders are implied."""

    box = Minimal()
    setup_agent_environment(box, [replace(bundle(run=b"x"), executable=frozenset({"run"}))])
    assert box.read_file(".skills/pdf/run") == b"x"
