"""Rejected folders, links and locks: one error, and no folder is changed."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.cli_sandbox import ADD, IMPORT, SECRET_TEXT, CliSandbox, snapshot
from tests.support.skills import make_skill, make_skill_md

Build: TypeAlias = Callable[[Path, Path], object]  # from a path and a path outside
GIANT = 1 << 33  # bytes of a sparse file
CLAUDE, BOTH = ("-a", "claude-code"), ("-a", "claude-code", "-a", "windsurf")
SKILLS = ".agents/skills"
PDF = f"{SKILLS}/pdf"


def link(place: Path, outside: Path) -> None:
    place.symlink_to(outside)


def dangling_link(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "nowhere")


def file(place: Path, _outside: Path) -> None:
    place.write_bytes(b"mine")


def folder(place: Path, outside: Path) -> None:
    place.mkdir()
    file(place / "mine.txt", outside)


def pipe(place: Path, _outside: Path) -> None:
    os.mkfifo(place)


def giant(place: Path, _outside: Path) -> None:
    place.touch()
    os.truncate(place, GIANT)


def device(place: Path, _outside: Path) -> None:
    place.symlink_to("/dev/zero")


def itself(place: Path, _outside: Path) -> None:
    place.symlink_to(place.name)


def secret(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "secret.txt")


def text(data: bytes) -> Build:
    return lambda place, _: place.write_bytes(data)


def make(sandbox: CliSandbox, path: str, build: Build) -> None:
    location = sandbox.folder / path
    location.parent.mkdir(parents=True, exist_ok=True)
    build(location, sandbox.outside)


# Local sources


@pytest.mark.parametrize("build", [pipe, link, secret, folder, itself, device, giant, text(b"no")])
def test_skill_md_that_is_not_a_text_file_is_rejected(sandbox: CliSandbox, build: Build) -> None:
    make(sandbox, "sources/pdf/SKILL.md", build)
    result = sandbox.check_rejected(ADD, ["../sources/pdf"], "invalid_skill")
    assert result.json["data"] == {
        "added": [],
        "skipped": [{"id": "pdf", "name": "pdf", "reason": "rejected"}],
        "notes": [],
    }
    assert result.json["findings"]
    sandbox.check_rejected(IMPORT, ["../sources/pdf"], "invalid_skill")


@pytest.mark.parametrize(
    ("name", "build", "code"),
    [
        ("all/pdf", link, "source_rejected"),
        ("all/readme.txt", file, "source_rejected"),
        ("all/\x1b[31m", folder, "source_rejected"),
    ],
)
def test_folder_without_skill_is_rejected(
    sandbox: CliSandbox, name: str, build: Build, code: str
) -> None:
    (sandbox.outside / "SKILL.md").write_bytes(make_skill_md())
    make(sandbox, f"sources/{name}", build)
    for command in (ADD, IMPORT):
        sandbox.check_rejected(command, ["../sources/all"], code)


@pytest.mark.parametrize(
    ("name", "build", "code"),
    [
        ("pdf", dangling_link, "source_rejected"),
        ("pdf", file, "source_rejected"),
        ("pdf", pipe, "source_rejected"),
        ("pdf.zip", pipe, "not_a_file"),
        ("pdf.zip", folder, "not_a_file"),
        ("pdf.zip", giant, "too_large"),
        ("pdf.zip", dangling_link, "not_found"),
        ("pdf.zip", device, "not_found"),
    ],
)
def test_source_that_is_no_folder_or_archive_is_rejected(
    sandbox: CliSandbox, name: str, build: Build, code: str
) -> None:
    make(sandbox, f"sources/{name}", build)
    for command in (ADD, IMPORT):
        for source in (f"../sources/{name}", str(sandbox.sources / name)):
            sandbox.check_rejected(command, [source], code)


@pytest.mark.parametrize("name", ["none", "none.zip", "none/below.tar.gz"])
def test_missing_source_is_not_found(sandbox: CliSandbox, name: str) -> None:
    for command in (ADD, IMPORT):
        for source in (f"../sources/{name}", str(sandbox.sources / name)):
            sandbox.check_rejected(command, [source], "not_found")


def test_link_in_skill_is_skipped_and_target_not_copied(sandbox: CliSandbox) -> None:
    source = sandbox.skill()
    make(sandbox, "sources/pdf/link.txt", secret)
    make(sandbox, "sources/pdf/linked", link)
    make(sandbox, "sources/pdf/pipe", pipe)
    result = sandbox.run(*ADD, "--json", source)
    assert result.code == 0
    findings = _list(result.json["findings"])
    assert {finding["path"] for finding in findings if finding["code"] == "file-left-out"} == {
        f"pdf/{name}" for name in ("link.txt", "linked", "pipe")
    }
    assert [path.name for path in (sandbox.project / PDF).iterdir()] == ["SKILL.md"]
    remaining = [
        path for path, (_, data) in snapshot(sandbox.folder).items() if SECRET_TEXT in str(data)
    ]
    assert remaining == ["outside/secret.txt"]


def test_skills_with_same_name_are_rejected_without_local_path(sandbox: CliSandbox) -> None:
    for folder in "ab":
        make_skill(sandbox.sources / folder, "pdf")
    result = sandbox.run(*ADD, "--json", "../sources", "--dry-run")
    findings = _list(result.json["findings"])
    [finding] = [finding for finding in findings if finding["code"] == "shadowed"]
    assert (finding["path"], "'a/pdf'" in finding["message"]) == ("b/pdf", True)
    assert str(sandbox.sources) not in str(finding)
    sandbox.check_rejected(IMPORT, ["../sources"], "conflict")


def _list(value: object) -> list[dict[str, str]]:
    assert isinstance(value, list)
    return value


# Target folders


@pytest.mark.parametrize("build", [link, dangling_link])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".agents", ()),
        (SKILLS, ()),
        (".claude", CLAUDE),
        (".claude/skills", CLAUDE),
        (".claude", BOTH),
        (".windsurf", BOTH),
        (".windsurf/skills", (*BOTH, "--copy")),
        (".claude", (*BOTH, "--copy")),
        (".windsurf", (*BOTH, "--overwrite")),
        ("away", ("--dir", "away")),
        ("away", ("--dir", "away/below")),
    ],
)
def test_nothing_is_written_through_links(
    sandbox: CliSandbox, path: str, words: Sequence[str], build: Build
) -> None:
    make(sandbox, f"project/{path}", build)
    result = sandbox.check_rejected(ADD, [sandbox.skill(), *words], "invalid_path")
    assert path in result.error["message"]
    if path in (".agents", SKILLS):
        sandbox.check_rejected(IMPORT, [sandbox.skill("other")], "invalid_path")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".agents", ()),
        (SKILLS, ()),
        (".windsurf", BOTH),
        (".claude/skills", (*BOTH, "--copy")),
        ("there", ("--dir", "there")),
        ("../outside/there", ("--dir", "../outside/there")),
    ],
)
def test_file_in_place_of_folder_is_named_without_path(
    sandbox: CliSandbox, path: str, words: Sequence[str]
) -> None:
    make(sandbox, f"project/{path}", file)
    result = sandbox.check_rejected(ADD, [sandbox.skill(), *words], "storage_unavailable")
    assert result.error["message"].endswith(f": {Path(path).name}")


@pytest.mark.parametrize("build", [file, link, dangling_link, folder, pipe])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        (PDF, ()),
        (".claude/skills/pdf", CLAUDE),
        (".windsurf/skills/pdf", BOTH),
        (".windsurf/skills/pdf", (*BOTH, "--copy")),
    ],
)
def test_existing_entry_is_not_overwritten(
    sandbox: CliSandbox, path: str, words: Sequence[str], build: Build
) -> None:
    make(sandbox, f"project/{path}", build)
    source = sandbox.skill()
    sandbox.check_rejected(ADD, [source, *words], "conflict")
    if path == PDF:
        sandbox.check_rejected(IMPORT, [source], "conflict")


@pytest.mark.parametrize("build", [file, pipe])
def test_force_does_not_replace_unrestorable_files(sandbox: CliSandbox, build: Build) -> None:
    for name in ("a", "b"):
        make(sandbox, f"project/{SKILLS}/{name}/SKILL.md", text(make_skill_md(name, "Old.")))
        sandbox.skill(name)
    make(sandbox, "project/.windsurf/skills/b", build)
    result = sandbox.check_rejected(ADD, ["../sources", *BOTH, "--overwrite"], "conflict")
    assert ".windsurf/skills/b" in result.error["message"]


def test_one_irreplaceable_skill_aborts_all(sandbox: CliSandbox) -> None:
    for name in ("a", "b"):
        sandbox.skill(name)
    assert sandbox.run(*ADD, "../sources").code == 0
    for name in ("a", "b"):
        (sandbox.sources / name / "SKILL.md").write_bytes(make_skill_md(name, "New."))
    make(sandbox, f"project/{SKILLS}/b/.git", folder)
    sandbox.check_rejected(ADD, ["../sources", "--overwrite"], "conflict")


def test_foreign_folder_is_used_if_named(sandbox: CliSandbox) -> None:
    source = sandbox.skill()
    before = snapshot(sandbox.folder)
    assert sandbox.run(*ADD, source, "--dir", "../outside/skills").code == 0
    made = ["outside/skills", "outside/skills/pdf", "outside/skills/pdf/SKILL.md"]
    assert {*snapshot(sandbox.folder)} - {*before} == {*made}


# Locks

EVIL_KEY = b'{"version": 1, "skills": {"../../evil": {}}}'
EVIL_SOURCE = b'{"version": 1, "skills": {"a": {"source": "ext::sh -c evil", "path": ""}}}'


@pytest.mark.parametrize(
    "build",
    [
        *(secret, dangling_link, folder, pipe, text(b"{"), text(b"\xff"), text(b"[]")),
        *(text(b'{"version": 99, "skills": {}}'), text(EVIL_KEY), text(EVIL_SOURCE)),
    ],
)
def test_unreadable_lock_aborts_command(sandbox: CliSandbox, build: Build) -> None:
    make(sandbox, "project/skillhall-lock.json", build)
    result = sandbox.check_rejected(ADD, [sandbox.skill()], "invalid_config")
    assert "skillhall-lock.json" in result.error["message"]
    for command in ("install", "update", "outdated", "verify"):
        sandbox.check_rejected([command], [], "invalid_config")


def test_unknown_agent_is_not_found(sandbox: CliSandbox) -> None:
    sandbox.check_rejected(ADD, [sandbox.skill(), "-a", "../evil"], "not_found")
