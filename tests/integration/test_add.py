"""Adding skills to a folder, from every kind of local source and by URL."""

import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from skillhall._internal.installer.install import (
    AddReport,
    add_to_folder,
    choose_folder_name,
    read_bundle_name,
    select_bundles,
)
from skillhall._internal.settings import Settings
from skillhall._internal.sources.opener import open_source
from skillhall.errors import ArchiveRejected, SkillFileNotFound, SkillNotFound, SourceRejected
from tests.support.http_server import HttpServer, respond, run_http_server
from tests.support.projects import LOOPBACK, read_tree
from tests.support.skills import make_skill, make_skill_md

IMAGE = bytes(range(256))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(str(tmp_path), str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Folder with two skills, one of them with an executable and an image."""
    folder = tmp_path / "source"
    make_skill(folder, "notes")
    skill = make_skill(folder, "pdf-tools")
    (skill / "scripts").mkdir()
    (skill / "scripts" / "run.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (skill / "scripts" / "run.sh").chmod(0o755)
    (skill / "picture.png").write_bytes(IMAGE)
    return folder


@pytest.fixture
def site() -> Iterator[HttpServer]:
    with run_http_server() as running:
        yield running


def pack(source: Path, name: str) -> Path:
    target = source.parent / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(target, "w") as archive:
            for path in sorted(source.rglob("*")):
                archive.write(path, path.relative_to(source))
    else:
        with tarfile.open(target, "w:gz") as archive:
            archive.add(source, arcname=".")
    return target


def added(report: AddReport) -> list[str]:
    return [skill.id for skill in report.added]


def test_add_warns_about_a_near_copy_of_an_installed_skill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    body = " ".join(f"word{number}" for number in range(200))
    for folder, name, text in (
        ("first", "pdf-tools", body),
        ("second", "pdf-forms", body.replace("word100", "other")),
        ("third", "notes", body[::-1]),
    ):
        make_skill(tmp_path / folder, name, data=make_skill_md(name, "Reads files.", text))
    for folder in ("first", "second", "third"):
        assert run(["add", f"./{folder}", "--yes"]) == 0
    errors = capsys.readouterr().err
    assert errors.count("near-copy") == 1
    assert "nearly a copy of the existing skill 'pdf-tools' (99% equal)" in errors
    assert run(["add", "./second", "--yes", "--overwrite", "--dir", "elsewhere"]) == 0
    assert "near-copy" not in capsys.readouterr().err


def test_add_tells_existing_skills_from_rejected_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_skill(tmp_path / "source", "pdf-tools")
    make_skill(tmp_path / "source", "broken", data=b"---\nname: broken\n---\n")
    assert run(["add", "./source/pdf-tools", "--yes"]) == 0
    capsys.readouterr()
    assert run(["add", "./source", "--yes", "--json"]) != 0
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["message"] == "already exists: pdf-tools; rejected: broken"


@pytest.mark.parametrize("form", ["folder", "skills.zip", "skills.tar.gz"])
def test_contents_and_executable_bits_are_preserved(
    form: str, source: Path, settings: Settings, tmp_path: Path
) -> None:
    path = source if form == "folder" else pack(source, form)
    report = add_to_folder(open_source(str(path), settings).bundles, str(tmp_path / "target"))
    assert added(report) == ["notes", "pdf-tools"]
    assert read_tree(tmp_path / "target") == read_tree(source)


def test_single_skill_folder_keeps_its_name(
    source: Path, settings: Settings, tmp_path: Path
) -> None:
    bundles = open_source(str(source / "pdf-tools"), settings).bundles
    assert [choose_folder_name(bundle) for bundle in bundles] == ["pdf-tools"]
    assert added(add_to_folder(bundles, str(tmp_path / "target"))) == ["pdf-tools"]


def test_markdown_url_is_named_after_its_frontmatter(
    site: HttpServer, settings: Settings, tmp_path: Path
) -> None:
    site.routes["/raw/SKILL.md"] = respond(body=make_skill_md(name="from-the-web"))
    bundles = open_source(
        site.url("/raw/SKILL.md"), settings._replace(allowed_networks=LOOPBACK)
    ).bundles
    assert added(add_to_folder(bundles, str(tmp_path / "target"))) == ["from-the-web"]


def test_archive_url_is_unpacked(
    site: HttpServer, source: Path, settings: Settings, tmp_path: Path
) -> None:
    site.routes["/skills.zip"] = respond(body=pack(source, "skills.zip").read_bytes())
    bundles = open_source(
        site.url("/skills.zip"), settings._replace(allowed_networks=LOOPBACK)
    ).bundles
    add_to_folder(bundles, str(tmp_path / "target"))
    assert read_tree(tmp_path / "target") == read_tree(source)


def test_loopback_address_is_rejected_by_default(settings: Settings) -> None:
    with pytest.raises(SourceRejected):
        open_source("https://127.0.0.1/skills.zip", settings)


def test_existing_skill_is_skipped_without_overwrite(
    source: Path, settings: Settings, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    make_skill(target, "notes", data=make_skill_md("notes", "Mine."))
    before = read_tree(target / "notes")
    report = add_to_folder(open_source(str(source), settings).bundles, str(target))
    assert [(skill.id, skill.reason) for skill in report.skipped] == [("notes", "exists")]
    assert read_tree(target / "notes") == before
    add_to_folder(open_source(str(source), settings).bundles, str(target), overwrite=True)
    assert read_tree(target) == read_tree(source)


def test_dry_run_writes_nothing(source: Path, settings: Settings, tmp_path: Path) -> None:
    report = add_to_folder(
        open_source(str(source), settings).bundles, str(tmp_path / "target"), dry_run=True
    )
    assert added(report) == ["notes", "pdf-tools"]
    assert not (tmp_path / "target").exists()


def test_broken_skill_is_skipped_with_findings(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "SKILL.md").write_bytes(b"no frontmatter")
    report = add_to_folder(open_source("./broken", settings).bundles, str(tmp_path / "target"))
    assert [(skill.id, skill.reason) for skill in report.skipped] == [("broken", "rejected")]
    assert [judged.finding.code for judged in report.findings] == ["no-frontmatter"]
    assert not (tmp_path / "target").exists()


def test_hostile_archive_does_not_change_the_disk(settings: Settings, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("pdf/SKILL.md", make_skill_md(name="pdf"))
        archive.writestr("../outside", b"x")
    before = read_tree(tmp_path)
    with pytest.raises(ArchiveRejected):
        open_source("./evil.zip", settings)
    assert read_tree(tmp_path) == before


@pytest.mark.parametrize("text", ["./missing", "./missing.zip"])
def test_missing_path_is_not_found(text: str, settings: Settings) -> None:
    with pytest.raises(SkillFileNotFound):
        open_source(text, settings)


@pytest.mark.parametrize("text", ["./empty", "./file.md"])
def test_source_without_skills_is_rejected(text: str, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.md").touch()
    with pytest.raises(SourceRejected):
        open_source(text, settings)


def test_broken_skill_does_not_affect_others(
    source: Path, settings: Settings, tmp_path: Path
) -> None:
    make_skill(source, "broken", data=b"no frontmatter")
    report = add_to_folder(open_source(str(source), settings).bundles, str(tmp_path / "target"))
    assert added(report) == ["notes", "pdf-tools"]
    assert [(skill.id, skill.reason) for skill in report.skipped] == [("broken", "rejected")]


@pytest.mark.parametrize("dry_run", [True, False])
def test_skills_with_equal_folder_names_do_not_overwrite_each_other(
    settings: Settings, tmp_path: Path, dry_run: bool
) -> None:
    for folder, text in (("a", "First."), ("b", "Second.")):
        make_skill(tmp_path / "source" / folder, "pdf", data=make_skill_md("pdf", text))
    bundles = open_source("./source", settings).bundles
    report = add_to_folder(bundles, str(tmp_path / "target"), overwrite=True, dry_run=dry_run)
    assert (added(report), [skill.reason for skill in report.skipped]) == (["pdf"], ["exists"])
    assert [judged.finding.code for judged in report.findings] == ["shadowed"]
    if not dry_run:
        assert b"First." in (tmp_path / "target" / "pdf" / "SKILL.md").read_bytes()


def test_skills_are_selected_by_name(source: Path, settings: Settings) -> None:
    bundles = open_source(str(source), settings).bundles
    assert [read_bundle_name(bundle) for bundle in select_bundles(bundles, ["pdf-tools"])] == [
        "pdf-tools"
    ]
    with pytest.raises(SkillNotFound):
        select_bundles(bundles, ["pdf"])


def test_adding_several_skills_needs_confirmation(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "target")
    assert run(["add", str(source), "--dir", target]) == 2
    assert "pdf-tools" in capsys.readouterr().err
    assert run(["add", str(source), "--dir", target, "--yes", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [skill["id"] for skill in report["data"]["added"]] == ["notes", "pdf-tools"]
    assert run(["add", str(source), "--dir", target, "-s", "notes"]) == 6


ADD = """
import sys
from skillhall._internal.installer.install import add_to_folder
from skillhall._internal.sources.opener import open_source
from skillhall._internal.settings import Settings
for _ in range(5):
    bundles = open_source(sys.argv[1], Settings("/", "/nowhere")).bundles
    add_to_folder(bundles, sys.argv[2], overwrite=True)
"""


def test_concurrent_adds_of_one_skill_are_atomic(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    command = [sys.executable, "-c", ADD, str(source), str(target)]
    processes = [subprocess.Popen(command) for _ in range(8)]
    assert [process.wait(60) for process in processes] == [0] * 8
    assert read_tree(target) == read_tree(source)
