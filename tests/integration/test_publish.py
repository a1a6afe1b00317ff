"""`skillhall publish`: fifty skills, read back by programs that are not ours."""

import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from skillhall._internal.cli.runner import run
from tests.support.publications import Files, make_project, read_tree


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose skills were published to all targets."""
    folder = make_project(tmp_path_factory.mktemp("project"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HOME", str(folder / "home"))
        assert run(["publish", "--json"]) == 0
    return folder


@pytest.fixture(scope="module")
def skills(project: Path) -> Files:
    return read_tree(project / "skills")


def call(*arguments: str | Path, cwd: Path | None = None) -> None:
    subprocess.run([*map(str, arguments)], cwd=cwd, check=True, capture_output=True, timeout=120)


def test_publishing_again_changes_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(project / "home"))
    before = read_tree(project)
    capsys.readouterr()
    assert run(["publish", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["data"]
    assert [one["changes"] for one in report["targets"]] == [[]] * 7
    assert report["versions"] == []
    assert read_tree(project) == before


def test_git_clones_identical_skills(project: Path, skills: Files, tmp_path: Path) -> None:
    call("git", "clone", "--quiet", project / "dist/git", tmp_path / "clone")
    assert read_tree(tmp_path / "clone/skills") == skills
    call("git", "-C", tmp_path / "clone", "fsck", "--strict")
    call("git", "-C", tmp_path / "clone", "checkout", "--quiet", "skill-07@1.0.0")


def test_uv_installs_identical_skills(project: Path, skills: Files, tmp_path: Path) -> None:
    [wheel] = (project / "dist/python").glob("*.whl")
    uv = (sys.executable, "-m", "uv", "pip", "install", "--offline", "--no-cache")
    call(*uv, "--python", sys.executable, "--target", tmp_path, wheel)
    assert read_tree(tmp_path / "acme_skills/.agents/skills") == skills


def test_npm_installs_identical_skills(project: Path, skills: Files, tmp_path: Path) -> None:
    [tarball] = (project / "dist/npm").glob("*.tgz")
    call("npm", "install", "--offline", "--no-audit", "--no-fund", tarball, cwd=tmp_path)
    assert read_tree(tmp_path / "node_modules/@acme/skills/skills") == skills


def test_tarfile_reads_identical_skills_from_the_oci_image(project: Path, skills: Files) -> None:
    folder = project / "dist/oci"

    def read_blob(descriptor: dict[str, str]) -> bytes:
        data = (folder / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
        assert descriptor["digest"] == f"sha256:{sha256(data).hexdigest()}"
        return data

    [entry] = json.loads((folder / "index.json").read_bytes())["manifests"]
    manifest = json.loads(read_blob(entry))
    config = json.loads(read_blob(manifest["config"]))
    found: Files = {}
    for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        data = gzip.decompress(read_blob(layer))
        assert diff_id == f"sha256:{sha256(data).hexdigest()}"
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                file = archive.extractfile(member)
                assert file is not None
                found[member.name.removeprefix("skills/")] = file.read(), bool(member.mode & 0o100)
    assert found == skills


def test_plugin_and_extension_have_identical_skills(project: Path, skills: Files) -> None:
    assert read_tree(project / "dist/claude-plugin/skills") == skills
    assert read_tree(project / "dist/gemini/skills") == skills


def test_zipfile_reads_identical_skills_from_the_static_index(project: Path, skills: Files) -> None:
    folder = project / "dist/static/.well-known/agent-skills"
    found: Files = {}
    for entry in json.loads((folder / "index.json").read_bytes())["skills"]:
        data = (folder / entry["url"]).read_bytes()
        assert entry["digest"] == f"sha256:{sha256(data).hexdigest()}"
        if entry["type"] == "skill-md":
            found[f"{entry['name']}/SKILL.md"] = data, False
            continue
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                mode = info.external_attr >> 16
                content = archive.read(info)
                found[f"{entry['name']}/{info.filename}"] = content, bool(mode & 0o100)
    assert found == skills


def test_legacy_index_lists_all_files(project: Path, skills: Files) -> None:
    folder = project / "dist/static/.well-known/skills"
    index = json.loads((folder / "index.json").read_bytes())["skills"]
    listed = {f"{one['name']}/{path}" for one in index for path in one["files"]}
    assert {path: (folder / path).read_bytes() for path in listed} == {
        path: data for path, (data, _) in skills.items()
    }
