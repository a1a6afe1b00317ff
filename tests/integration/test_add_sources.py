"""`skillhall add` from every kind of source, by the real command line."""

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

from skillhall._internal.installer.npx_lock import compute_npx_hash
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.update import find_outdated
from skillhall._internal.installer.verify import verify
from skillhall._internal.settings import Settings
from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES
from tests.support.github_api_server import EXECUTABLE, RepoFile
from tests.support.github_server import GitHubServer, run_github_server
from tests.support.http_server import respond
from tests.support.projects import read_tree
from tests.support.skills import make_skill_md

PDF = ".agents/skills/pdf"
TOKEN = "sesame-4711"  # noqa: S105 - fake
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
class User:
    """A user in a project, with a home folder."""

    folder: Path
    environment: dict[str, str]

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def run(self, *arguments: str, exits: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [sys.executable, "-m", "skillhall", *arguments],
            cwd=self.project,
            env=self.environment | env,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.returncode == exits, result.stdout + result.stderr
        return result

    def run_stderr(self, *arguments: str, exits: int = 0, **env: str) -> str:
        return self.run(*arguments, exits=exits, **env).stderr

    @property
    def installer_project(self) -> Project:
        settings = Settings.read(self.environment)
        return Project.from_settings(settings._replace(working_directory=str(self.project)))

    def entry(self, key: str = PDF) -> dict[str, object]:
        """Return the entry in our lock file, without the files."""
        lock = json.loads((self.project / "skillhall-lock.json").read_text(encoding="utf-8"))
        entry: dict[str, object] = lock["skills"][key]
        return {name: entry[name] for name in ("source", "path", "commit", "pinned")}

    def npx_entries(self) -> dict[str, dict[str, str]]:
        path = self.project / "skills-lock.json"
        skills: dict[str, dict[str, str]] = {}
        if path.exists():
            skills = json.loads(path.read_text(encoding="utf-8"))["skills"]
        return skills

    def check_pdf(self) -> None:
        """Check that the skill is complete and matches the lock file."""
        assert read_tree(self.project / PDF) == SKILL
        assert [result.is_intact for result in verify(self.installer_project)] == [True]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHubServer]:
    (tmp_path / "repos").mkdir()
    with run_github_server(tmp_path / "repos") as host:
        yield host


@pytest.fixture
def user(tmp_path: Path, host: GitHubServer) -> User:
    return make_user(tmp_path / "user", host)


def make_user(folder: Path, host: GitHubServer) -> User:
    (folder / "project").mkdir(parents=True)
    base = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return User(folder, base | host.environment() | {"HOME": str(folder)})


def repository(
    prefix: str = "skills/pdf/", files: Mapping[str, bytes] = FILES
) -> dict[str, bytes | RepoFile]:
    """Return the files of a repository, with the skill below a prefix."""
    skill = {
        f"{prefix}{path}": RepoFile(data, EXECUTABLE) if path in PROGRAMS else data
        for path, data in files.items()
    }
    return {"README.md": b"Read me.\n", **skill}


def changed(old: str = "five", new: str = "FIVE") -> dict[str, bytes]:
    return FILES | {"SKILL.md": FILES["SKILL.md"].replace(old.encode(), new.encode())}


def write(folder: Path) -> None:
    for path, (data, executable) in SKILL.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755 if executable else 0o644)


def zipped(top: str = "pdf/") -> bytes:
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as archive:
            for path, (data, executable) in SKILL.items():
                info = zipfile.ZipInfo(top + path)
                info.external_attr = (0o100755 if executable else 0o100644) << 16
                archive.writestr(info, data)
        return file.getvalue()


def tarred(top: str = "pdf/") -> bytes:
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            for path, (data, executable) in SKILL.items():
                info = tarfile.TarInfo(top + path)
                info.size, info.mode = len(data), 0o755 if executable else 0o644
                archive.addfile(info, io.BytesIO(data))
        return file.getvalue()


def npx_skills(source: str, kind: str, **more: str) -> dict[str, dict[str, str]]:
    """Return the skills of the lock file that `npx skills` would write."""
    entry = {"source": source, **more, "sourceType": kind, "computedHash": compute_npx_hash(FILES)}
    return {"pdf": entry}


def test_add_from_a_folder(user: User) -> None:
    write(user.project / "vendor/pdf")
    user.run("add", "./vendor/pdf")
    user.check_pdf()
    assert "1 folder checked, 0 different" in user.run_stderr("verify")
    assert user.entry() == {
        "source": "./vendor/pdf",
        "path": "",
        "commit": "",
        "pinned": False,
    }
    assert user.npx_entries() == npx_skills("./vendor/pdf", "local")


@pytest.mark.parametrize(("name", "top"), [("skills.zip", "deep/pdf/"), ("skills.tar.gz", "pdf/")])
def test_add_from_an_archive(user: User, name: str, top: str) -> None:
    data = zipped(top) if name.endswith(".zip") else tarred(top)
    (user.project / name).write_bytes(data)
    user.run("add", name)
    user.check_pdf()
    assert user.entry()["source"] == f"./{name}"
    assert user.entry()["path"] == top.rstrip("/")
    assert user.npx_entries() == {}


def test_archive_with_a_skill_at_its_root_can_be_updated(user: User) -> None:
    (user.project / "pdf.zip").write_bytes(zipped(""))
    user.run("add", "./pdf.zip")
    user.check_pdf()
    assert user.entry()["path"] == ""
    assert "current" in user.run("outdated").stdout


def test_add_from_an_installed_package(user: User, tmp_path: Path) -> None:
    site = tmp_path / "venv/lib/python3.12/site-packages"
    write(site / "acme/.agents/skills/pdf")
    (site / "acme/__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    info = site / "acme_tools-1.2.dist-info"
    info.mkdir()
    metadata = "Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.2\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    record = [f"acme/.agents/skills/pdf/{path},," for path in FILES]
    (info / "RECORD").write_text("\n".join([*record, "acme/__init__.py,,"]), encoding="utf-8")
    user.environment["VIRTUAL_ENV"] = str(tmp_path / "venv")
    user.run("add", "python:acme-tools")
    user.check_pdf()
    assert user.entry()["source"] == "python:acme-tools"
    assert "current" in user.run("outdated").stdout


def test_add_from_a_raw_url(user: User, host: GitHubServer) -> None:
    host.files["/raw/SKILL.md"] = FILES["SKILL.md"]
    user.run("add", host.url("raw/SKILL.md"))
    assert read_tree(user.project / PDF) == {"SKILL.md": (FILES["SKILL.md"], False)}
    assert user.entry()["source"] == host.url("raw/SKILL.md")
    assert user.npx_entries() == {}


def test_large_skill_md_from_a_url_is_rejected(user: User, host: GitHubServer) -> None:
    host.files["/raw/SKILL.md"] = FILES["SKILL.md"] + b"x" * MAX_SKILL_MD_BYTES
    result = user.run("add", host.url("raw/SKILL.md"), "--json", exits=3)
    assert json.loads(result.stdout)["error"]["code"] == "too_large"
    assert not (user.project / PDF).exists()


@pytest.mark.parametrize("name", ["skills.zip", "skills.tar.gz"])
def test_add_from_an_archive_url(user: User, host: GitHubServer, name: str) -> None:
    host.files[f"/{name}"] = zipped() if name.endswith(".zip") else tarred()
    user.run("add", host.url(name))
    user.check_pdf()
    assert user.entry()["path"] == "pdf"


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
def test_add_from_github(user: User, host: GitHubServer, text: str, ref: str, git: str) -> None:
    for name in ("heads/main", "tags/v1", "heads/feat/x"):
        commit = host.commit("acme/skills", repository(), f"refs/{name}")
    user.environment["SKILLHALL_GIT"] = git
    user.run("add", text)
    user.check_pdf()
    source = f"acme/skills@{ref}" if ref else "acme/skills"
    assert user.entry() == {
        "source": source,
        "path": "skills/pdf",
        "commit": commit,
        "pinned": False,
    }
    expected_ref = {"ref": ref} if ref else {}
    assert user.npx_entries() == npx_skills(
        "acme/skills", "github", **expected_ref, skillPath="skills/pdf/SKILL.md"
    )
    assert [result.status for result in find_outdated(user.installer_project)] == ["current"]


@WITH_AND_WITHOUT_GIT
def test_repository_with_a_skill_at_its_root(user: User, host: GitHubServer, git: str) -> None:
    files = {path: file for path, file in repository("").items() if path != "README.md"}
    commit = host.commit("acme/pdf", files)
    user.environment["SKILLHALL_GIT"] = git
    user.run("add", "acme/pdf")
    user.check_pdf()
    assert (user.entry()["path"], user.entry()["commit"]) == ("", commit)
    assert user.npx_entries() == npx_skills("acme/pdf", "github", skillPath="SKILL.md")
    host.commit("acme/pdf", files | {"more.md": b"More."})
    assert "outdated" in user.run("outdated", exits=1).stdout
    user.run("update")
    assert read_tree(user.project / PDF) == SKILL | {"more.md": (b"More.", False)}


def test_skill_named_like_its_repository_keeps_its_path(user: User, host: GitHubServer) -> None:
    host.commit("acme/pdf", repository("pdf/"))
    user.run("add", "acme/pdf")
    user.check_pdf()
    assert user.entry()["path"] == "pdf"
    assert user.npx_entries()["pdf"]["skillPath"] == "pdf/SKILL.md"


@pytest.mark.parametrize("text", ["team/tools.git/skills/pdf", "team/tools/tree/main/skills/pdf"])
def test_add_from_another_git_host(user: User, host: GitHubServer, text: str) -> None:
    commit = host.commit("team/tools", repository())
    user.run("add", host.url(text))
    user.check_pdf()
    assert (user.entry()["path"], user.entry()["commit"]) == ("skills/pdf", commit)
    assert user.npx_entries()["pdf"]["sourceType"] == "git"
    assert user.npx_entries()["pdf"]["skillPath"] == "skills/pdf/SKILL.md"


def test_list_option_shows_skills_and_adds_none(user: User, host: GitHubServer) -> None:
    host.commit("acme/skills", repository())
    result = user.run("add", "acme/skills", "--list")
    assert (result.stdout, result.stderr) == ("pdf\tReads PDF files.\n", "")
    assert list(user.project.iterdir()) == []


@WITH_AND_WITHOUT_GIT
def test_update_merges_a_new_commit_with_local_edits(
    user: User, host: GitHubServer, git: str
) -> None:
    host.commit("acme/skills", repository())
    user.environment["SKILLHALL_GIT"] = git
    user.run("add", "acme/skills/pdf")
    file = user.project / PDF / "SKILL.md"
    file.write_bytes(file.read_bytes().replace(b"one", b"ONE"))
    commit = host.commit("acme/skills", repository(files=changed()))
    assert "outdated" in user.run("outdated", exits=1).stdout
    assert f"{PDF}/SKILL.md: merged" in user.run_stderr("update")
    assert b"ONE\ntwo\nthree\nfour\nFIVE\n" in file.read_bytes()
    assert user.entry()["commit"] == commit
    assert "SKILL.md\tchanged" in user.run("verify", exits=1).stdout


@WITH_AND_WITHOUT_GIT
@pytest.mark.parametrize("is_same", [True, False])
def test_moved_tag_is_reported(user: User, host: GitHubServer, git: str, *, is_same: bool) -> None:
    tag = "refs/tags/v1"
    first = host.commit("acme/skills", repository(), tag)
    user.environment["SKILLHALL_GIT"] = git
    user.run("add", "acme/skills/pdf@v1")
    assert "ref-moved" not in user.run_stderr("outdated")
    files = {**repository(files=FILES if is_same else changed()), "README.md": b"Other.\n"}
    second = host.commit("acme/skills", files, tag)
    expected = (
        f"{PDF}:1: warn[ref-moved]: the tag of acme/skills@v1 was moved "
        f"from {first[:12]} to {second[:12]}\n"
    )
    assert expected in user.run_stderr("outdated", exits=0 if is_same else 1)
    assert expected in user.run_stderr("update")
    report = json.loads(user.run("outdated", "--json").stdout)
    # After an update, the lock file knows the new commit.
    assert bool(report["findings"]) is is_same


@WITH_AND_WITHOUT_GIT
def test_new_commit_of_a_branch_is_not_a_moved_tag(
    user: User, host: GitHubServer, git: str
) -> None:
    host.commit("acme/skills", repository(), "refs/heads/v1")
    user.environment["SKILLHALL_GIT"] = git
    user.run("add", "acme/skills/pdf@v1")
    host.commit("acme/skills", repository(files=changed()), "refs/heads/v1")
    assert "ref-moved" not in user.run_stderr("outdated", exits=1)


@WITH_AND_WITHOUT_GIT
def test_frozen_install_restores_the_locked_commit(
    user: User, host: GitHubServer, tmp_path: Path, git: str
) -> None:
    host.commit("acme/skills", repository())
    user.environment["SKILLHALL_GIT"] = git
    user.run("add", "acme/skills/pdf")
    locks = {path.name: path.read_bytes() for path in user.project.glob("*.json")}
    host.commit("acme/skills", repository(files=changed()))
    other = make_user(tmp_path / "other", host)
    other.environment["SKILLHALL_GIT"] = git
    for name, data in locks.items():
        (other.project / name).write_bytes(data)
    other.run("install", "--frozen")
    other.check_pdf()
    assert {path.name: path.read_bytes() for path in other.project.glob("*.json")} == locks


@WITH_AND_WITHOUT_GIT
def test_outage_uses_the_cached_version_with_a_warning(
    user: User, host: GitHubServer, git: str
) -> None:
    host.commit("acme/skills", repository())
    user.environment["SKILLHALL_GIT"] = git
    user.run("add", "acme/skills", "-s", "pdf", "--dir", "first")
    host.outage_route = respond("503 Service Unavailable")
    stderr = user.run_stderr("add", "acme/skills/pdf")
    assert stderr.startswith("warning: ")
    assert stderr.count("\n") == 2
    assert read_tree(user.project / PDF) == SKILL
    shutil.rmtree(user.project / PDF)
    user.run("install", "--frozen")
    assert read_tree(user.project / PDF) == SKILL


@WITH_AND_WITHOUT_GIT
def test_private_repository_needs_a_token(user: User, host: GitHubServer, git: str) -> None:
    host.commit("acme/skills", repository())
    host.make_private("acme/skills", TOKEN)
    user.environment["SKILLHALL_GIT"] = git
    stderr = user.run_stderr("add", "acme/skills/pdf", exits=5 if git == "on" else 4)
    assert "private" in stderr
    assert "GITHUB_TOKEN" in stderr
    result = user.run("add", "acme/skills/pdf", GITHUB_TOKEN=TOKEN)
    user.check_pdf()
    contents = b"".join(p.read_bytes() for p in user.project.rglob("*") if p.is_file())
    assert "sesame" not in result.stdout + result.stderr + contents.decode("latin-1")


def test_rate_limit_error_has_a_hint(user: User, host: GitHubServer) -> None:
    host.commit("acme/skills", repository())
    host.github.is_rate_limited = True
    stderr = user.run_stderr("add", "acme/skills/pdf", exits=5, SKILLHALL_GIT="off")
    assert "error: " in stderr
    assert "hint: " in stderr
    assert "GITHUB_TOKEN" in stderr


@WITH_AND_WITHOUT_GIT
@pytest.mark.parametrize(
    ("text", "named", "hint"),
    [
        ("acme/nowhere", "'acme/nowhere'", "spelling"),
        ("acme/skills@nope", "'acme/skills@nope'", "spelling"),
        ("acme/skills/pdg", "'pdg'", "did you mean 'pdf'? 'skillhall add SOURCE --list'"),
    ],
)
def test_missing_source_is_reported_with_a_hint(  # noqa: PLR0913, PLR0917 - parametrized
    user: User, host: GitHubServer, text: str, named: str, hint: str, git: str
) -> None:
    host.commit("acme/skills", repository())
    output = user.run_stderr("add", text, exits=4, SKILLHALL_GIT=git)
    error_line, hint_line, see_line = output.splitlines()
    assert error_line.startswith("error: ")
    assert named in error_line
    assert hint_line.startswith("hint: ")
    assert hint in hint_line
    assert see_line.startswith("see: https://")
    assert list(user.project.iterdir()) == []
