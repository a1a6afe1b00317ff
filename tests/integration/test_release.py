"""Distributions: wheel, sdist and container image contain every file that pages load."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

import dev
from tests.support.projects import read_tree
from tests.support.releases import ROOT, export_checkout
from tests.support.skills import make_skill
from tools.distributions import build, install, uv

# The dependencies of the base installation, and theirs.
BASE_PACKAGES = {"click", "pyyaml", "questionary", "rich"} | {
    "markdown-it-py",
    "mdurl",
    "prompt-toolkit",
    "pygments",
    "wcwidth",
}
VENDOR = dev.VENDOR.relative_to(ROOT)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_checkout(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="module")
def wheel(checkout: Path) -> Path:
    return build(checkout)


def names_in(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def test_wheel_contains_the_browser_files_and_licenses(wheel: Path) -> None:
    folder = VENDOR.relative_to("src").as_posix()
    assert {
        f"{folder}/{name}" for name in (*dev.BROWSER_FILES, dev.EDITOR, dev.EDITOR_LICENSE)
    } <= names_in(wheel)
    licences = {name.rpartition("/")[2] for name in names_in(wheel) if name.endswith("LICENSE")}
    assert licences == {"LICENSE", "Sortable.LICENSE", "codemirror.LICENSE", "htmx.LICENSE"}


def test_wheel_contains_the_system_skills(wheel: Path) -> None:
    inside = {name for name in names_in(wheel) if "/system_skills/" in name and name[-1] != "/"}
    own = Path(str(files("skillhall._internal.skill_store") / "system_skills"))
    assert inside == {
        f"skillhall/_internal/skill_store/system_skills/{path}" for path in read_tree(own)
    }


def test_sdist_contains_the_browser_files(wheel: Path) -> None:
    [sdist] = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        f"{VENDOR.as_posix()}/{name}"
        for name in (*dev.BROWSER_FILES, dev.EDITOR, dev.EDITOR_LICENSE)
    } <= names


def test_base_installation_has_approvals_and_policies_without_further_packages(
    wheel: Path, tmp_path: Path
) -> None:
    program = install(wheel, "", Path(sys.executable), tmp_path / "venv")
    listed = uv(
        "pip", "list", "--format", "json", "--python", program.with_name("python"), cwd=tmp_path
    )
    names = {package["name"] for package in json.loads(listed.stdout)}
    assert names == {"skillhall", *BASE_PACKAGES}
    make_skill(tmp_path / "project/.agents/skills", "pdf")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        folder, variables = tmp_path / "project", {"HOME": str(tmp_path), "PATH": os.defpath}
        command = (str(program), *arguments)
        return subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, check=False
        )

    assert "1 skill is not approved: pdf" in run("prompt").stderr
    assert run("trust", "--yes").returncode == 0
    assert "<name>pdf</name>" in run("prompt").stdout
    assert "you approved it" in run("policy", "check").stdout
    inventory = json.loads(run("inventory", "--format", "cyclonedx").stdout)
    assert [component["name"] for component in inventory["components"]] == ["pdf"]
    signed = run("sign", "--new-key", "acme")
    assert (signed.returncode != 0, "skillhall[signing]" in signed.stderr) == (True, True)


def test_container_requirements_are_pins_of_the_development_lock() -> None:
    pins = [
        {*re.findall(r"^([\w.-]+==[\w.]+)", (ROOT / name).read_text("utf-8"), re.MULTILINE)}
        for name in (dev.IMAGE_LOCK, dev.LOCK)
    ]
    assert len(pins[0]) > 40
    assert pins[0] - pins[1] == set()
    text = (ROOT / dev.IMAGE_LOCK).read_text(encoding="utf-8")
    assert len(re.findall(r"^[\w.-]+==.* \\\n +--hash=sha256:", text, re.MULTILINE)) == len(pins[0])
    assert "--require-hashes" in (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")


def test_container_build_context_gives_the_same_wheel(
    checkout: Path, wheel: Path, tmp_path: Path
) -> None:
    dockerfile = (checkout / "deploy/Dockerfile").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (?!--)(.+)$", dockerfile, flags=re.MULTILINE):
        *sources, target = shlex.split(line)
        for source in sources:
            copy = shutil.copytree if (checkout / source).is_dir() else shutil.copy
            copy(checkout / source, tmp_path / target)
    assert names_in(build(tmp_path, "--wheel")) == names_in(wheel)


@pytest.mark.parametrize("is_missing", [True, False], ids=["missing", "changed"])
def test_build_without_the_browser_files_fails(
    checkout: Path, tmp_path: Path, is_missing: bool
) -> None:
    source = shutil.copytree(checkout, tmp_path / "clone")
    file = source / VENDOR / "htmx.min.js"
    file.unlink() if is_missing else file.write_bytes(b"")
    done = uv("build", "--wheel", cwd=source)
    assert done.returncode != 0
    assert "'htmx.min.js'" in done.stderr
    assert "python3 dev.py vendor" in done.stderr


def test_browser_files_match_the_locked_npm_packages() -> None:
    for name, data in dev.build_browser_files().items():
        assert (dev.VENDOR / name).read_bytes() == data, name
