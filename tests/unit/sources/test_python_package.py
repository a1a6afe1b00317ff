"""Skills of installed packages: real wheels, unpacked as installers do, honest and hostile."""

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
from skillhall._internal.skill.finding import Code
from skillhall._internal.sources.python_package import (
    PackageSkills,
    package_search_paths,
    read_package,
)
from skillhall._internal.sources.ref import PackageRef
from skillhall.errors import NoSkillThere, PackageNotInstalled
from tests.support.skills import make_skill_md

SHELF = "pdf_tools/.agents/skills"
FILES = {
    "pdf_tools/__init__.py": b"raise SystemExit('imported')",
    f"{SHELF}/pdf/SKILL.md": make_skill_md("pdf"),
    f"{SHELF}/pdf/scripts/run.py": b"\xff",
}


def make_wheel(files: Mapping[str, bytes], record: str | None = None) -> bytes:
    """A wheel of the distribution `Pdf.Tools` 1.2, with the RECORD that it says."""
    info = "pdf_tools-1.2.dist-info"
    whole = {
        **files,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: Pdf.Tools\nVersion: 1.2\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},{_hashed(data)},{len(data)}" for path, data in whole.items()]
    honest = "\n".join([*lines, f"{info}/RECORD,,", ""])
    whole[f"{info}/RECORD"] = (honest if record is None else record).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for path, data in whole.items():
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


def read(site: Path, name: str = "pdf-tools") -> PackageSkills:
    return read_package(PackageRef(name), [str(site)])


def settings(environment: Path) -> Settings:
    return Settings("/", "/", variables={"VIRTUAL_ENV": str(environment)})


@pytest.mark.parametrize("name", ["pdf-tools", "Pdf.Tools", "PDF_TOOLS", "pdf_tools"])
def test_a_package_is_found_by_every_spelling_of_its_name(tmp_path: Path, name: str) -> None:
    found = read(install(tmp_path, make_wheel(FILES)), name)
    [bundle] = found.bundles
    assert (found.version, bundle.folder) == ("1.2", "pdf")
    assert sorted(bundle.files) == ["SKILL.md", "scripts/run.py"]
    assert bundle.files["scripts/run.py"].read() == b"\xff"


def test_a_distribution_called_unlike_its_package_is_found_by_its_records(tmp_path: Path) -> None:
    files = {path.replace("pdf_tools", "other/deep"): data for path, data in FILES.items()}
    [bundle] = read(install(tmp_path, make_wheel(files))).bundles
    assert bundle.folder == "pdf"


@pytest.mark.parametrize("name", ["other", "other.deep"])
def test_a_package_is_found_by_what_is_imported(tmp_path: Path, name: str) -> None:
    place = tmp_path / name.replace(".", "/") / ".agents" / "skills" / "pdf"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_bytes(make_skill_md("pdf"))
    found = read(tmp_path, name)
    assert ([bundle.folder for bundle in found.bundles], found.version) == (["pdf"], "")


def test_a_distribution_without_records_is_found_by_its_name(tmp_path: Path) -> None:
    assert read(install(tmp_path, make_wheel(FILES, record=""))).bundles


def test_the_first_path_that_has_the_package_counts(tmp_path: Path) -> None:
    install(tmp_path / "1", make_wheel(FILES))
    install(tmp_path / "2", make_wheel(FILES | {f"{SHELF}/docx/SKILL.md": b"x"}))
    search = [str(tmp_path / "missing"), str(tmp_path / "1"), str(tmp_path / "2")]
    found = read_package(PackageRef("pdf-tools"), search)
    assert [bundle.folder for bundle in found.bundles] == ["pdf"]


def test_all_skills_of_a_package_come_in_order(tmp_path: Path) -> None:
    more = {f"{SHELF}/{name}/SKILL.md": b"x" for name in "ca"}
    found = read(install(tmp_path, make_wheel(FILES | more | {f"{SHELF}/none/x.md": b"x"})))
    assert [bundle.folder for bundle in found.bundles] == ["a", "c", "pdf"]


def test_a_package_that_is_not_installed_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(PackageNotInstalled, match="'nothing' is not installed") as caught:
        read(tmp_path, "nothing")
    assert "install it first" in find_hint(caught.value, {})
    assert caught.value.code == "not_found"


def test_a_package_without_skills_is_told_apart(tmp_path: Path) -> None:
    site = install(tmp_path, make_wheel({"pdf_tools/__init__.py": b""}))
    with pytest.raises(NoSkillThere, match="python:pdf-tools") as caught:
        read(site)
    assert ".agents/skills" in caught.value.hint


def test_a_package_that_an_import_hook_finds_is_explained(tmp_path: Path) -> None:
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
def test_records_that_lie_lead_nowhere(tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside" / ".agents" / "skills" / "secret"
    outside.mkdir(parents=True)
    (outside / "SKILL.md").write_bytes(b"secret")
    record = f"{path}/.agents/skills/secret/SKILL.md,,\n{tmp_path}/outside/.agents/skills/x/y,,\n"
    site = install(tmp_path / "site", make_wheel(FILES, record=record))
    assert [bundle.folder for bundle in read(site).bundles] == ["pdf"]


def test_top_level_names_that_lie_lead_nowhere(tmp_path: Path) -> None:
    site = install(tmp_path / "site", make_wheel(FILES, record=""))
    info = site / "pdf_tools-1.2.dist-info"
    (info / "top_level.txt").write_text("../outside\n/etc\n..\n", encoding="utf-8")
    assert [bundle.folder for bundle in read(site).bundles] == ["pdf"]


@pytest.mark.skipif(os.name == "nt", reason="links need permission there")
@pytest.mark.parametrize("link", ["pdf_tools", "pdf_tools/.agents", SHELF, f"{SHELF}/pdf"])
def test_a_link_out_of_the_package_is_not_followed(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    install(outside, make_wheel(FILES))
    site = install(tmp_path / "site", make_wheel({}, record=f"{SHELF}/pdf/SKILL.md,,"))
    (site / link).parent.mkdir(parents=True, exist_ok=True)
    (site / link).symlink_to(outside / link)
    with pytest.raises(NoSkillThere):
        read(site)


@pytest.mark.skipif(os.name == "nt", reason="links need permission there")
def test_a_file_that_is_a_link_is_left_out_with_a_finding(tmp_path: Path) -> None:
    site = install(tmp_path, make_wheel(FILES))
    (site / SHELF / "pdf" / "link.md").symlink_to("/etc/passwd")
    [bundle] = read(site).bundles
    assert [(f.code, f.path) for f in bundle.findings] == [(Code.FILE_LEFT_OUT, "link.md")]


@pytest.mark.parametrize("metadata", [b"", b"Name: Pdf.Tools\n", None])
def test_a_distribution_without_a_version_still_has_its_skills(
    tmp_path: Path, metadata: bytes | None
) -> None:
    site = install(tmp_path, make_wheel(FILES))
    place = site / "pdf_tools-1.2.dist-info" / "METADATA"
    place.unlink() if metadata is None else place.write_bytes(metadata)
    found = read(site)
    assert (len(found.bundles), found.version) == (1, "")


# Where packages are looked for


def test_the_active_environment_comes_before_the_one_we_run_in(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    found = package_search_paths(settings(tmp_path))
    assert found[0] == str(site)
    assert {path for path in sys.path if os.path.isdir(path) and os.path.isabs(path)} <= set(found)  # noqa: PTH112, PTH117 - as sys.path has them


def test_plain_lines_of_pth_files_are_followed_and_code_is_not_run(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.12" / "site-packages"
    source = tmp_path / "source"
    source.mkdir()
    site.mkdir(parents=True)
    lines = f"# a comment\nimport os; os._exit(3)\n\n{source}\n{tmp_path / 'missing'}\n"
    (site / "editable.pth").write_text(lines, encoding="utf-8")
    (site / "broken.pth").write_bytes(b"\xff\x00")
    assert package_search_paths(settings(tmp_path))[:2] == [str(site), str(source)]


@pytest.mark.parametrize("environment", ["", "relative", "/nowhere/at/all"])
def test_an_environment_that_is_not_there_adds_nothing(environment: str) -> None:
    found = package_search_paths(settings(Path(environment)))
    assert all(os.path.isdir(path) for path in found)  # noqa: PTH112 - as sys.path has them


def test_an_editable_package_is_found_in_its_source_folder(tmp_path: Path) -> None:
    site = install(tmp_path / "lib" / "python3.12" / "site-packages", make_wheel({}, record=""))
    source = install(tmp_path / "source", make_wheel(FILES))
    (site / "_pdf.pth").write_text(f"{source}\n", encoding="utf-8")
    found = read_package(PackageRef("pdf-tools"), package_search_paths(settings(tmp_path)))
    assert ([bundle.folder for bundle in found.bundles], found.version) == (["pdf"], "1.2")
