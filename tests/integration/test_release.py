"""Distributions: wheel, sdist and container image contain every file that pages load."""

import re
import shlex
import shutil
import tarfile
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

import dev
from tests.support.projects import read_tree
from tests.support.releases import ROOT, build, export_checkout, uv

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
    assert {f"{folder}/{name}" for name in dev.BROWSER_FILES} <= names_in(wheel)
    licences = {name.rpartition("/")[2] for name in names_in(wheel) if name.endswith("LICENSE")}
    assert licences == {"LICENSE", "Sortable.LICENSE", "htmx.LICENSE"}


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
    assert {f"{VENDOR.as_posix()}/{name}" for name in dev.BROWSER_FILES} <= names


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
    for name, source in dev.BROWSER_FILES.items():
        assert (dev.VENDOR / name).read_bytes() == (dev.MODULES / source).read_bytes(), name
