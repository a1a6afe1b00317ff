"""Folders, clones and archives of the same files give the same skills."""

import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from skillhall._internal.authoring.risk_report import scan
from skillhall._internal.authoring.validate import validate
from skillhall._internal.cli.runner import run
from skillhall._internal.net.addresses import AddressPolicy
from skillhall._internal.policy.profiles import SPECIFICATION
from skillhall._internal.settings import Settings
from skillhall._internal.sources.git.git_ref import GitRef
from skillhall._internal.sources.git.remote import GitAccess
from skillhall._internal.sources.git.source import read_git
from skillhall._internal.sources.opener import open_source
from skillhall._internal.wiring.catalog import load_catalog
from tests.support.git_server import GitRepo, run_git_server
from tests.support.skills import make_skill_md

LOOPBACK = AddressPolicy.from_cidrs("127.0.0.0/8")
WRAPPER = "skills-4f2a9c1"  # the top folder of GitHub's tarballs

COLLECTION = {
    "skills/.curated/notes": True,
    "skills/.system/deep/er/mail": True,
    "skills/pdf": True,
    "plugins/office/skills/.experimental/docx": True,
    "skills/pdf/inner": False,  # part of the outer skill
    "skills/.hidden": False,  # a hidden folder is a group, never a skill
    "skills/.curated/.draft": False,
    "skills/.github/review": False,
    "skills/.cache/copy": False,
    "skills/.claude/skills/copy": False,
    "skills/.skillhall-0123456789abcdef/new": False,
    "docs/.curated/page": False,
    ".claude/skills/pdf": False,
    ".github/skills/review": False,
    ".venv/lib/skills/one": False,
    ".cache/skills/two": False,
    "venv/lib/skills/three": False,
    "node_modules/x/skills/four": False,
    "tools/__pycache__/five": False,
}
INSTALLED_ONLY = {
    ".claude/skills/pdf": True,
    ".agents/skills/.system/mail": True,
    ".skills/notes": True,
    ".github/skills/review": True,
    ".cache/skills/two": False,
    ".venv/skills/one": False,
    ".config/other/three": False,
}
TREES = {"a collection": COLLECTION, "only what agents installed": INSTALLED_ONLY}


def files_of(tree: Mapping[str, bool]) -> dict[str, bytes]:
    skills = {
        f"{folder}/SKILL.md": make_skill_md(folder.rpartition("/")[2].strip(".")) for folder in tree
    }
    return {"README.md": b"# Skills\n", "docs/guide.md": b"Hello\n"} | skills


def settings_for(folder: Path) -> Settings:
    return Settings(str(folder), str(folder / "cache"), use_head_cache=False)


def written(tmp_path: Path, files: Mapping[str, bytes]) -> Path:
    """Write a clone: the files and a .git folder, with the name that `git clone` chooses."""
    clone = tmp_path / "clone/skills"
    for path, data in {**files, ".git/hooks/SKILL.md": make_skill_md("hook")}.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_bytes(data)
    return clone


def by_list(tmp_path: Path, files: Mapping[str, bytes]) -> list[str]:
    clone = written(tmp_path, files)
    return [skill.id for skill in load_catalog([str(clone)], settings=settings_for(tmp_path))]


def by_validate(tmp_path: Path, files: Mapping[str, bytes]) -> list[str]:
    clone = written(tmp_path, files)
    report = validate([str(clone)], SPECIFICATION, settings_for(tmp_path))
    assert report.accepted
    return [Path(result.path).relative_to(clone).as_posix() for result in report.results]


def by_scan(tmp_path: Path, files: Mapping[str, bytes]) -> list[str]:
    clone = written(tmp_path, files)
    report = scan([str(clone)], settings_for(tmp_path))
    return [Path(skill.path).relative_to(clone).as_posix() for skill in report.skills]


def by_add(tmp_path: Path, files: Mapping[str, bytes]) -> list[str]:
    opened = open_source(str(written(tmp_path, files)), settings_for(tmp_path))
    return [opened.get_bundle_path(bundle) for bundle in opened.bundles]


def by_tarball(tmp_path: Path, files: Mapping[str, bytes]) -> list[str]:
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        for path, data in files.items():
            member = tarfile.TarInfo(f"{WRAPPER}/{path}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    bundles = open_source("./x.tar.gz", settings_for(tmp_path)).bundles
    return [bundle.folder.removeprefix(f"{WRAPPER}/") for bundle in bundles]


def by_zip(tmp_path: Path, files: Mapping[str, bytes]) -> list[str]:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return [bundle.folder for bundle in open_source("./x.zip", settings_for(tmp_path)).bundles]


def by_git(tmp_path: Path, files: Mapping[str, bytes]) -> list[str]:
    repo = GitRepo(tmp_path / "served/acme/skills.git")
    repo.commit(files)
    with run_git_server(tmp_path / "served") as site:
        reference = GitRef(site.url("acme/skills.git"))
        access = GitAccess(str(tmp_path / "cache"), LOOPBACK)
        skills = read_git(reference, access, source_text="acme/skills")
    return [bundle.folder for bundle in skills.bundles]


READERS: dict[str, Callable[[Path, Mapping[str, bytes]], list[str]]] = {
    "list": by_list,
    "validate": by_validate,
    "scan": by_scan,
    "add": by_add,
    "tarball": by_tarball,
    "zip": by_zip,
    "git": by_git,
}


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("reader", READERS)
def test_clone_gives_the_same_skills_as_tarball(reader: str, tree: str, tmp_path: Path) -> None:
    if reader == "git" and shutil.which("git") is None:
        pytest.skip("there is no git")
    expected = sorted(folder for folder, is_shown in TREES[tree].items() if is_shown)
    assert sorted(READERS[reader](tmp_path, files_of(TREES[tree]))) == expected


def test_search_finds_curated_skills_of_clone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone = written(tmp_path, files_of(COLLECTION))
    assert run(["search", "notes", "--root", str(clone), "--json"]) == 0
    (hit,) = json.loads(capsys.readouterr().out)["data"]["hits"]
    assert hit["location"] == str(clone / "skills/.curated/notes/SKILL.md")


def test_skills_folder_of_clone_shows_groups(tmp_path: Path) -> None:
    clone = written(tmp_path, files_of(COLLECTION))
    catalog = load_catalog([str(clone / "skills")], settings=settings_for(tmp_path))
    assert [skill.id for skill in catalog] == [".system/deep/er/mail", ".curated/notes", "pdf"]


@pytest.mark.parametrize(
    "profile",
    ["specification", "prompt-repository", "local-skills", "instruction-skills", "skill-import"],
)
def test_profiles_can_skip_hidden_groups(profile: str, tmp_path: Path) -> None:
    clone = written(tmp_path, {"skills/.curated/notes/SKILL.md": make_skill_md("notes")})
    catalog = load_catalog([str(clone / "skills")], profile, settings=settings_for(tmp_path))
    assert len(catalog) == 0


def test_add_reads_folder_as_deep_as_archive(tmp_path: Path) -> None:
    deep = {"a/b/c/d/e/f/g/h/pdf/SKILL.md": make_skill_md("pdf"), "README.md": b"x"}
    assert by_add(tmp_path, deep) == by_tarball(tmp_path, deep) == ["a/b/c/d/e/f/g/h/pdf"]
