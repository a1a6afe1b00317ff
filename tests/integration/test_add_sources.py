"""`skillhall add` from everywhere, by the real command line: the same bytes arrive."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from skillhall._internal.installer.npx_hashes import compute_npx_hash
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.update import find_outdated
from skillhall._internal.installer.verify import verify
from skillhall._internal.settings import Settings
from skillhall._internal.skill.frontmatter import MAX_SKILL_MD_BYTES
from tests.support.github_api_server import EXECUTABLE, RepoFile
from tests.support.github_server import GitHubServer, run_github_server
from tests.support.http_server import respond
from tests.support.projects import read_tree
from tests.support.skills import make_skill_md

PDF = ".agents/skills/pdf"
TOKEN = "sesame-4711"  # noqa: S105 - of nobody
LINES = "one\ntwo\nthree\nfour\nfive\n"
FILES = {
    "SKILL.md": make_skill_md(name="pdf", body=LINES),
    "data/every.bin": bytes(range(256)),
    "empty": b"",
    "scripts/run.sh": b"#!/bin/sh\r\necho hi\n",
}
PROGRAMS = {"scripts/run.sh"}
SKILL = {path: (data, path in PROGRAMS) for path, data in FILES.items()}
WITH_AND_WITHOUT_GIT = pytest.mark.parametrize("git", ["on", "off"])


@dataclass
class Person:
    """Somebody in a project, with a home of their own."""

    folder: Path
    environment: dict[str, str]

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def run(self, *words: str, exits: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "skillhall", *words],
            cwd=self.project,
            env=self.environment | more,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == exits, done.stdout + done.stderr
        return done

    def said(self, *words: str, exits: int = 0, **more: str) -> str:
        return self.run(*words, exits=exits, **more).stderr

    @property
    def shelf(self) -> Project:
        settings = Settings.read(self.environment)
        return Project.from_settings(settings._replace(working_directory=str(self.project)))

    def entry(self, key: str = PDF) -> dict[str, object]:
        """What our lock says, but for the files."""
        lock = json.loads((self.project / "skillhall-lock.json").read_text(encoding="utf-8"))
        found: dict[str, object] = lock["skills"][key]
        return {name: found[name] for name in ("source", "path", "commit", "pinned")}

    def foreign(self) -> dict[str, dict[str, str]]:
        path = self.project / "skills-lock.json"
        skills: dict[str, dict[str, str]] = {}
        if path.exists():
            skills = json.loads(path.read_text(encoding="utf-8"))["skills"]
        return skills

    def check_pdf(self) -> None:
        """The skill is there, whole, and as locked."""
        assert read_tree(self.project / PDF) == SKILL
        assert [one.is_intact for one in verify(self.shelf)] == [True]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHubServer]:
    (tmp_path / "repos").mkdir()
    with run_github_server(tmp_path / "repos") as host:
        yield host


@pytest.fixture
def person(tmp_path: Path, host: GitHubServer) -> Person:
    return somebody(tmp_path / "person", host)


def somebody(folder: Path, host: GitHubServer) -> Person:
    (folder / "project").mkdir(parents=True)
    own = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return Person(folder, own | host.environment() | {"HOME": str(folder)})


def repository(
    prefix: str = "skills/pdf/", files: Mapping[str, bytes] = FILES
) -> dict[str, bytes | RepoFile]:
    """A repository's files, with the skill below a prefix."""
    skill = {
        f"{prefix}{path}": RepoFile(data, EXECUTABLE) if path in PROGRAMS else data
        for path, data in files.items()
    }
    return {"README.md": b"Read me.\n", **skill}


def changed(old: str = "five", new: str = "FIVE") -> dict[str, bytes]:
    return FILES | {"SKILL.md": FILES["SKILL.md"].replace(old.encode(), new.encode())}


def write(folder: Path) -> None:
    for path, (data, is_program) in SKILL.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755 if is_program else 0o644)


def zipped(top: str = "pdf/") -> bytes:
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as archive:
            for path, (data, is_program) in SKILL.items():
                info = zipfile.ZipInfo(top + path)
                info.external_attr = (0o100755 if is_program else 0o100644) << 16
                archive.writestr(info, data)
        return file.getvalue()


def tarred(top: str = "pdf/") -> bytes:
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            for path, (data, is_program) in SKILL.items():
                info = tarfile.TarInfo(top + path)
                info.size, info.mode = len(data), 0o755 if is_program else 0o644
                archive.addfile(info, io.BytesIO(data))
        return file.getvalue()


def noted(source: str, kind: str, **more: str) -> dict[str, dict[str, str]]:
    """What `npx skills` would write for the skill."""
    entry = {"source": source, **more, "sourceType": kind, "computedHash": compute_npx_hash(FILES)}
    return {"pdf": entry}


# This machine


def test_a_folder(person: Person) -> None:
    write(person.project / "vendor/pdf")
    person.run("add", "./vendor/pdf")
    person.check_pdf()
    assert "1 folder checked, 0 different" in person.said("verify")
    assert person.entry() == {
        "source": "./vendor/pdf",
        "path": "",
        "commit": "",
        "pinned": False,
    }
    assert person.foreign() == noted("./vendor/pdf", "local")


@pytest.mark.parametrize(("name", "top"), [("skills.zip", "deep/pdf/"), ("skills.tar.gz", "pdf/")])
def test_an_archive(person: Person, name: str, top: str) -> None:
    data = zipped(top) if name.endswith(".zip") else tarred(top)
    (person.project / name).write_bytes(data)
    person.run("add", name)
    person.check_pdf()
    assert person.entry()["source"] == f"./{name}"
    assert person.entry()["path"] == top.rstrip("/")
    assert person.foreign() == {}


def test_an_archive_that_is_the_skill_itself_can_be_updated(person: Person) -> None:
    (person.project / "pdf.zip").write_bytes(zipped(""))
    person.run("add", "./pdf.zip")
    person.check_pdf()
    assert person.entry()["path"] == ""
    assert "current" in person.run("outdated").stdout


def test_an_installed_wheel(person: Person, tmp_path: Path) -> None:
    site = tmp_path / "venv/lib/python3.12/site-packages"
    write(site / "acme/.agents/skills/pdf")
    (site / "acme/__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    info = site / "acme_tools-1.2.dist-info"
    info.mkdir()
    metadata = "Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.2\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    record = [f"acme/.agents/skills/pdf/{path},," for path in FILES]
    (info / "RECORD").write_text("\n".join([*record, "acme/__init__.py,,"]), encoding="utf-8")
    person.environment["VIRTUAL_ENV"] = str(tmp_path / "venv")
    person.run("add", "python:acme-tools")
    person.check_pdf()
    assert person.entry()["source"] == "python:acme-tools"
    assert "current" in person.run("outdated").stdout


# The web


def test_a_raw_url(person: Person, host: GitHubServer) -> None:
    host.files["/raw/SKILL.md"] = FILES["SKILL.md"]
    person.run("add", host.url("raw/SKILL.md"))
    assert read_tree(person.project / PDF) == {"SKILL.md": (FILES["SKILL.md"], False)}
    assert person.entry()["source"] == host.url("raw/SKILL.md")
    assert person.foreign() == {}


def test_a_skill_md_by_url_is_as_small_as_any_other(person: Person, host: GitHubServer) -> None:
    host.files["/raw/SKILL.md"] = FILES["SKILL.md"] + b"x" * MAX_SKILL_MD_BYTES
    refused = person.run("add", host.url("raw/SKILL.md"), "--json", exits=3)
    assert json.loads(refused.stdout)["error"]["code"] == "too_large"
    assert not (person.project / PDF).exists()


@pytest.mark.parametrize("name", ["skills.zip", "skills.tar.gz"])
def test_an_archive_by_url(person: Person, host: GitHubServer, name: str) -> None:
    host.files[f"/{name}"] = zipped() if name.endswith(".zip") else tarred()
    person.run("add", host.url(name))
    person.check_pdf()
    assert person.entry()["path"] == "pdf"


# Repositories


@WITH_AND_WITHOUT_GIT
@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("acme/skills/pdf", ""),
        ("acme/skills/skills/pdf@v1", "v1"),
        ("https://github.com/acme/skills/tree/main/skills/pdf", "main"),
        ("https://github.com/acme/skills/blob/feat/x/skills/pdf/SKILL.md", "feat/x"),
    ],
)
def test_a_place_on_github(
    person: Person, host: GitHubServer, text: str, ref: str, git: str
) -> None:
    for name in ("heads/main", "tags/v1", "heads/feat/x"):
        commit = host.commit("acme/skills", repository(), f"refs/{name}")
    person.environment["SKILLHALL_GIT"] = git
    person.run("add", text)
    person.check_pdf()
    source = f"acme/skills@{ref}" if ref else "acme/skills"
    assert person.entry() == {
        "source": source,
        "path": "skills/pdf",
        "commit": commit,
        "pinned": False,
    }
    named = {"ref": ref} if ref else {}
    assert person.foreign() == noted(
        "acme/skills", "github", **named, skillPath="skills/pdf/SKILL.md"
    )
    assert [one.status for one in find_outdated(person.shelf)] == ["current"]


@WITH_AND_WITHOUT_GIT
def test_a_repository_that_is_the_skill_itself(
    person: Person, host: GitHubServer, git: str
) -> None:
    whole = {path: file for path, file in repository("").items() if path != "README.md"}
    commit = host.commit("acme/pdf", whole)
    person.environment["SKILLHALL_GIT"] = git
    person.run("add", "acme/pdf")
    person.check_pdf()
    assert (person.entry()["path"], person.entry()["commit"]) == ("", commit)
    assert person.foreign() == noted("acme/pdf", "github", skillPath="SKILL.md")
    host.commit("acme/pdf", whole | {"more.md": b"More."})
    assert "outdated" in person.run("outdated", exits=1).stdout
    person.run("update")
    assert read_tree(person.project / PDF) == SKILL | {"more.md": (b"More.", False)}


def test_a_skill_called_like_its_repository_is_not_taken_for_all_of_it(
    person: Person, host: GitHubServer
) -> None:
    host.commit("acme/pdf", repository("pdf/"))
    person.run("add", "acme/pdf")
    person.check_pdf()
    assert person.entry()["path"] == "pdf"
    assert person.foreign()["pdf"]["skillPath"] == "pdf/SKILL.md"


@pytest.mark.parametrize("text", ["team/tools.git/skills/pdf", "team/tools/tree/main/skills/pdf"])
def test_a_repository_on_any_host(person: Person, host: GitHubServer, text: str) -> None:
    commit = host.commit("team/tools", repository())
    person.run("add", host.url(text))
    person.check_pdf()
    assert (person.entry()["path"], person.entry()["commit"]) == ("skills/pdf", commit)
    assert person.foreign()["pdf"]["sourceType"] == "git"
    assert person.foreign()["pdf"]["skillPath"] == "skills/pdf/SKILL.md"


def test_a_listing_names_the_skills_of_a_source_and_adds_none(
    person: Person, host: GitHubServer
) -> None:
    host.commit("acme/skills", repository())
    done = person.run("add", "acme/skills", "--list")
    assert (done.stdout, done.stderr) == ("pdf\tReads PDF files.\n", "")
    assert list(person.project.iterdir()) == []


# What follows


@WITH_AND_WITHOUT_GIT
def test_a_new_commit_is_merged_with_an_edit_of_ones_own(
    person: Person, host: GitHubServer, git: str
) -> None:
    host.commit("acme/skills", repository())
    person.environment["SKILLHALL_GIT"] = git
    person.run("add", "acme/skills/pdf")
    file = person.project / PDF / "SKILL.md"
    file.write_bytes(file.read_bytes().replace(b"one", b"ONE"))
    commit = host.commit("acme/skills", repository(files=changed()))
    assert "outdated" in person.run("outdated", exits=1).stdout
    assert f"{PDF}/SKILL.md: merged" in person.said("update")
    assert b"ONE\ntwo\nthree\nfour\nFIVE\n" in file.read_bytes()
    assert person.entry()["commit"] == commit
    assert "SKILL.md\tchanged" in person.run("verify", exits=1).stdout


@WITH_AND_WITHOUT_GIT
def test_a_lock_brings_back_what_was_locked_though_upstream_moved_on(
    person: Person, host: GitHubServer, tmp_path: Path, git: str
) -> None:
    host.commit("acme/skills", repository())
    person.environment["SKILLHALL_GIT"] = git
    person.run("add", "acme/skills/pdf")
    locks = {path.name: path.read_bytes() for path in person.project.glob("*.json")}
    host.commit("acme/skills", repository(files=changed()))
    other = somebody(tmp_path / "other", host)
    other.environment["SKILLHALL_GIT"] = git
    for name, data in locks.items():
        (other.project / name).write_bytes(data)
    other.run("install", "--frozen")
    other.check_pdf()
    assert {path.name: path.read_bytes() for path in other.project.glob("*.json")} == locks


@WITH_AND_WITHOUT_GIT
def test_a_host_that_is_down_gives_the_last_copy_and_a_warning(
    person: Person, host: GitHubServer, git: str
) -> None:
    host.commit("acme/skills", repository())
    person.environment["SKILLHALL_GIT"] = git
    person.run("add", "acme/skills", "-s", "pdf", "--dir", "first")
    host.outage_route = respond("503 Service Unavailable")
    said = person.said("add", "acme/skills/pdf")
    assert said.startswith("warning: ")
    assert said.count("\n") == 2
    assert read_tree(person.project / PDF) == SKILL
    shutil.rmtree(person.project / PDF)
    person.run("install", "--frozen")
    assert read_tree(person.project / PDF) == SKILL


@WITH_AND_WITHOUT_GIT
def test_a_private_repository_needs_the_token(person: Person, host: GitHubServer, git: str) -> None:
    host.commit("acme/skills", repository())
    host.make_private("acme/skills", TOKEN)
    person.environment["SKILLHALL_GIT"] = git
    refused = person.said("add", "acme/skills/pdf", exits=5 if git == "on" else 4)
    assert "private" in refused
    assert "GITHUB_TOKEN" in refused
    done = person.run("add", "acme/skills/pdf", GITHUB_TOKEN=TOKEN)
    person.check_pdf()
    kept = b"".join(p.read_bytes() for p in person.project.rglob("*") if p.is_file())
    assert "sesame" not in done.stdout + done.stderr + kept.decode("latin-1")


def test_a_rate_limit_says_when_it_ends_and_what_helps(person: Person, host: GitHubServer) -> None:
    host.commit("acme/skills", repository())
    host.github.is_rate_limited = True
    said = person.said("add", "acme/skills/pdf", exits=5, SKILLHALL_GIT="off")
    assert "error: " in said
    assert "hint: " in said
    assert "GITHUB_TOKEN" in said


@WITH_AND_WITHOUT_GIT
@pytest.mark.parametrize(
    ("text", "named", "hint"),
    [
        ("acme/nowhere", "'acme/nowhere'", "spelling"),
        ("acme/skills@nope", "'acme/skills@nope'", "spelling"),
        ("acme/skills/pdg", "'pdg'", "did you mean 'pdf'? 'skillhall add REPOSITORY --list'"),
    ],
)
def test_what_is_not_there_is_named_as_it_was_asked_for(  # noqa: PLR0913, PLR0917 - parametrized
    person: Person, host: GitHubServer, text: str, named: str, hint: str, git: str
) -> None:
    host.commit("acme/skills", repository())
    error, told = person.said("add", text, exits=4, SKILLHALL_GIT=git).splitlines()
    assert error.startswith("error: ")
    assert named in error
    assert told.startswith("hint: ")
    assert hint in told
    assert list(person.project.iterdir()) == []
