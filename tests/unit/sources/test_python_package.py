"""Skills of installed packages, from valid and hostile wheels."""

import base64
import hashlib
import io
import os
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from skillhall._internal.hints import find_hint
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.finding import Code
from skillhall._internal.sources.python_package import (
    PackageRef,
    package_search_paths,
    read_package,
)
from skillhall.errors import NoSkillThere, PackageNotInstalled
from tests.support.skills import make_skill_md

SKILLS_FOLDER = "pdf_tools/.agents/skills"
FILES = {
    "pdf_tools/__init__.py": b"raise SystemExit('imported')",
    f"{SKILLS_FOLDER}/pdf/SKILL.md": make_skill_md("pdf"),
    f"{SKILLS_FOLDER}/pdf/scripts/run.py": b"\xff",
}


def make_wheel(files: Mapping[str, bytes], record: str | None = None) -> bytes:
    """Build a wheel of the distribution `Pdf.Tools` 1.2, with this RECORD."""
    info = "pdf_tools-1.2.dist-info"
    members = {
        **files,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: Pdf.Tools\nVersion: 1.2\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},{_hashed(data)},{len(data)}" for path, data in members.items()]
    valid = "\n".join([*lines, f"{info}/RECORD,,", ""])
    members[f"{info}/RECORD"] = (valid if record is None else record).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for path, data in members.items():
            wheel.writestr(path, data)
    return buffer.getvalue()


def _hashed(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def install(site: Path, wheel: bytes) -> Path:
    site.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(wheel)) as opened:
        opened.extractall(site)
    return site


def read(site: Path, name: str = "pdf-tools") -> tuple[Bundle, ...]:
    return read_package(PackageRef(name), [str(site)])


def settings(environment: Path) -> Settings:
    return Settings("/", "/", variables={"VIRTUAL_ENV": str(environment)})


@pytest.mark.parametrize("name", ["pdf-tools", "Pdf.Tools", "PDF_TOOLS", "pdf_tools"])
def test_package_is_found_by_every_spelling(tmp_path: Path, name: str) -> None:
    skills = read(install(tmp_path, make_wheel(FILES)), name)
    [bundle] = skills
    assert bundle.folder == "pdf"
    assert sorted(bundle.files) == ["SKILL.md", "scripts/run.py"]
    assert bundle.files["scripts/run.py"].read() == b"\xff"


def test_distribution_with_other_name_is_found_by_record(tmp_path: Path) -> None:
    files = {path.replace("pdf_tools", "other/deep"): data for path, data in FILES.items()}
    [bundle] = read(install(tmp_path, make_wheel(files)))
    assert bundle.folder == "pdf"


@pytest.mark.parametrize("name", ["other", "other.deep"])
def test_package_is_found_by_import_name(tmp_path: Path, name: str) -> None:
    location = tmp_path / name.replace(".", "/") / ".agents" / "skills" / "pdf"
    location.mkdir(parents=True)
    (location / "SKILL.md").write_bytes(make_skill_md("pdf"))
    skills = read(tmp_path, name)
    assert [bundle.folder for bundle in skills] == ["pdf"]


def test_distribution_without_record_is_found_by_name(tmp_path: Path) -> None:
    assert read(install(tmp_path, make_wheel(FILES, record="")))


def test_first_path_with_package_wins(tmp_path: Path) -> None:
    install(tmp_path / "1", make_wheel(FILES))
    install(tmp_path / "2", make_wheel(FILES | {f"{SKILLS_FOLDER}/docx/SKILL.md": b"x"}))
    search = [str(tmp_path / "missing"), str(tmp_path / "1"), str(tmp_path / "2")]
    result = read_package(PackageRef("pdf-tools"), search)
    assert [bundle.folder for bundle in result] == ["pdf"]


def test_skills_of_package_are_sorted(tmp_path: Path) -> None:
    more = {f"{SKILLS_FOLDER}/{name}/SKILL.md": b"x" for name in "ca"}
    skills = read(
        install(tmp_path, make_wheel(FILES | more | {f"{SKILLS_FOLDER}/none/x.md": b"x"}))
    )
    assert [bundle.folder for bundle in skills] == ["a", "c", "pdf"]


def test_missing_package_raises_not_installed(tmp_path: Path) -> None:
    with pytest.raises(PackageNotInstalled, match="'nothing' is not installed") as caught:
        read(tmp_path, "nothing")
    assert "install it first" in find_hint(caught.value, {})
    assert caught.value.code == "not_found"


def test_package_without_skills_raises_no_skill(tmp_path: Path) -> None:
    site = install(tmp_path, make_wheel({"pdf_tools/__init__.py": b""}))
    with pytest.raises(NoSkillThere, match="python:pdf-tools") as caught:
        read(site)
    assert ".agents/skills" in caught.value.hint


def test_editable_package_with_import_hook_gives_hint(tmp_path: Path) -> None:
    site = install(tmp_path, make_wheel({"hook.py": b""}))
    (site / "pdf_tools-1.2.dist-info" / "direct_url.json").write_text(
        '{"dir_info":{"editable":true},"url":"file:///x"}', encoding="utf-8"
    )
    with pytest.raises(NoSkillThere) as caught:
        read(site)
    assert "source folder" in caught.value.hint


@pytest.mark.parametrize(
    "path",
    ["../outside", "/etc", "pdf_tools/../../outside", "..", "", "a b", "C:", "pdf_tools/.."],
)
def test_forged_record_is_ignored(tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside" / ".agents" / "skills" / "secret"
    outside.mkdir(parents=True)
    (outside / "SKILL.md").write_bytes(b"secret")
    record = f"{path}/.agents/skills/secret/SKILL.md,,\n{tmp_path}/outside/.agents/skills/x/y,,\n"
    site = install(tmp_path / "site", make_wheel(FILES, record=record))
    assert [bundle.folder for bundle in read(site)] == ["pdf"]


def test_forged_top_level_names_are_ignored(tmp_path: Path) -> None:
    site = install(tmp_path / "site", make_wheel(FILES, record=""))
    info = site / "pdf_tools-1.2.dist-info"
    (info / "top_level.txt").write_text("../outside\n/etc\n..\n", encoding="utf-8")
    assert [bundle.folder for bundle in read(site)] == ["pdf"]


@pytest.mark.skipif(os.name == "nt", reason="links need permission there")
@pytest.mark.parametrize(
    "link", ["pdf_tools", "pdf_tools/.agents", SKILLS_FOLDER, f"{SKILLS_FOLDER}/pdf"]
)
def test_link_out_of_package_is_not_followed(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    install(outside, make_wheel(FILES))
    site = install(tmp_path / "site", make_wheel({}, record=f"{SKILLS_FOLDER}/pdf/SKILL.md,,"))
    (site / link).parent.mkdir(parents=True, exist_ok=True)
    (site / link).symlink_to(outside / link)
    with pytest.raises(NoSkillThere):
        read(site)


@pytest.mark.skipif(os.name == "nt", reason="links need permission there")
def test_linked_file_is_skipped_with_finding(tmp_path: Path) -> None:
    site = install(tmp_path, make_wheel(FILES))
    (site / SKILLS_FOLDER / "pdf" / "link.md").symlink_to("/etc/passwd")
    [bundle] = read(site)
    assert [(f.code, f.path) for f in bundle.findings] == [(Code.FILE_LEFT_OUT, "link.md")]


@pytest.mark.parametrize("metadata", [b"", b"Name: Pdf.Tools\n", None])
def test_distribution_without_version_has_skills(tmp_path: Path, metadata: bytes | None) -> None:
    site = install(tmp_path, make_wheel(FILES))
    location = site / "pdf_tools-1.2.dist-info" / "METADATA"
    location.unlink() if metadata is None else location.write_bytes(metadata)
    skills = read(site)
    assert len(skills) == 1


# Search paths


def test_active_environment_is_searched_first(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    result = package_search_paths(settings(tmp_path))
    assert result[0] == str(site)
    assert {path for path in sys.path if os.path.isdir(path) and os.path.isabs(path)} <= set(result)  # noqa: PTH112, PTH117 - as sys.path has them


def test_pth_paths_are_searched_without_running_code(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.12" / "site-packages"
    source = tmp_path / "source"
    source.mkdir()
    site.mkdir(parents=True)
    lines = f"# a comment\nimport os; os._exit(3)\n\n{source}\n{tmp_path / 'missing'}\n"
    (site / "editable.pth").write_text(lines, encoding="utf-8")
    (site / "broken.pth").write_bytes(b"\xff\x00")
    assert package_search_paths(settings(tmp_path))[:2] == [str(site), str(source)]


@pytest.mark.parametrize("environment", ["", "relative", "/nowhere/at/all"])
def test_missing_environment_adds_no_paths(environment: str) -> None:
    result = package_search_paths(settings(Path(environment)))
    assert all(os.path.isdir(path) for path in result)  # noqa: PTH112 - as sys.path has them


def test_editable_package_is_found_in_source_folder(tmp_path: Path) -> None:
    site = install(tmp_path / "lib" / "python3.12" / "site-packages", make_wheel({}, record=""))
    source = install(tmp_path / "source", make_wheel(FILES))
    (site / "_pdf.pth").write_text(f"{source}\n", encoding="utf-8")
    result = read_package(PackageRef("pdf-tools"), package_search_paths(settings(tmp_path)))
    assert [bundle.folder for bundle in result] == ["pdf"]
