"""Skills in Kubernetes volumes: every surface that lists them can read them."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from skillhall import discover_skills, load_skill_bundle
from skillhall._internal.agents.file_tools import ReadTools
from skillhall._internal.agents.skill_tools import SkillTools
from skillhall._internal.catalog.folder_skill_provider import FolderSkillProvider
from skillhall._internal.catalog.manifests import ManifestCache
from skillhall._internal.catalog.skill_content import activate, read_skill_file
from skillhall._internal.catalog.trust.gate import ClearedSkill
from skillhall._internal.cli.runner import run
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.profiles import LENIENT, LOCAL_SKILLS
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import UnsafePath, UnsavedFilesError
from tests.support.kubernetes_volumes import mount
from tests.support.projects import make_project
from tests.support.skills import make_skill, make_skill_md

FILES = {"SKILL.md": make_skill_md("pdf"), "notes.md": b"notes", "docs/a.md": b"a", ".env": b"x"}
NEW = {**FILES, "notes.md": b"new notes"}
PATHS = ["SKILL.md", "docs/a.md", "notes.md"]


def mount_skill(root: Path, files: dict[str, bytes], version: int = 1) -> None:
    """A volume for each skill."""
    mount(root / "pdf", files, version)


def mount_root(root: Path, files: dict[str, bytes], version: int = 1) -> None:
    """One volume for all skills."""
    mount(root, {f"pdf/{path}": data for path, data in files.items()}, version)


LAYOUTS = pytest.mark.parametrize("layout", [mount_skill, mount_root])


@LAYOUTS
def test_library_reads_every_file(
    tmp_path: Path, layout: Callable[[Path, dict[str, bytes]], None]
) -> None:
    layout(tmp_path, FILES)
    catalog = load_catalog([str(tmp_path)])
    skill = catalog.find("pdf")
    assert [
        finding.finding for finding in catalog.findings if finding.finding.code != "skipped"
    ] == []
    assert "notes.md" in activate(ClearedSkill(skill))
    assert "docs/a.md" in activate(ClearedSkill(skill))
    assert read_skill_file(ClearedSkill(skill), "SKILL.md") == FILES["SKILL.md"]
    assert read_skill_file(ClearedSkill(skill), "notes.md") == b"notes"
    assert read_skill_file(ClearedSkill(skill), "docs/a.md") == b"a"


@LAYOUTS
def test_catalog_stays_readable_after_volume_update(
    tmp_path: Path, layout: Callable[..., None]
) -> None:
    layout(tmp_path, FILES)
    skill = load_catalog([str(tmp_path)]).find("pdf")
    layout(tmp_path, NEW, 2)
    assert read_skill_file(ClearedSkill(skill), "SKILL.md") == FILES["SKILL.md"]
    assert read_skill_file(ClearedSkill(skill), "notes.md") == b"new notes"
    assert "notes.md" in activate(ClearedSkill(skill))


@LAYOUTS
def test_tools_and_mcp_manifests_have_every_file(
    tmp_path: Path, layout: Callable[..., None]
) -> None:
    layout(tmp_path, FILES)
    offering = FolderSkillProvider([Root(str(tmp_path))], LENIENT)
    tools = {tool.name: tool for tool in SkillTools(offering).tools()}
    assert "docs/a.md" in str(tools["load_skill"].call({"name": "pdf"}).content)
    for path in PATHS:
        answer = tools["read_skill_file"].call({"name": "pdf", "path": path})
        assert answer.content == FILES[path].decode()
    offer = offering.current_view()
    manifest = ManifestCache().get(offer, offer.find("pdf"))
    assert [file.path for file in manifest.files] == PATHS


@LAYOUTS
def test_agents_of_run_directory_read_every_file(
    tmp_path: Path, layout: Callable[..., None]
) -> None:
    layout(tmp_path / ".agents/skills", FILES)
    tools = ReadTools(str(tmp_path))
    assert tools.read_file(".agents/skills/pdf/notes.md") == "notes"
    assert tools.read_file(".agents/skills/pdf/docs/a.md") == "a"
    assert "Steps" in tools.read_file(".agents/skills/pdf/SKILL.md")
    assert tools.list_skill_files("pdf").count("\n") == len(PATHS) - 1
    assert tools.read_file(".agents/skills/pdf/.env").startswith("Error: ")
    assert tools.read_file(".agents/skills/pdf/..data/.env").startswith("Error: ")


@LAYOUTS
def test_server_lists_serves_and_packs_every_file(
    tmp_path: Path, layout: Callable[..., None]
) -> None:
    layout(tmp_path / ".agents/skills", FILES)
    settings = Settings(str(tmp_path), str(tmp_path / "cache"))
    collection = Collection(FolderStore(tmp_path), settings)
    assert [file.path.text for file in collection.details("pdf").files] == PATHS
    assert [collection.read_file("pdf", path) for path in PATHS] == [FILES[path] for path in PATHS]
    with zipfile.ZipFile(io.BytesIO(collection.archive("pdf"))) as archive:
        assert archive.namelist() == PATHS
    assert [files for _, files in collection.file_lists()] == [tuple(PATHS)]
    assert [artifact.files for artifact in collection.artifacts()] == [tuple(PATHS)]


@LAYOUTS
def test_commands_read_listed_skills(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], layout: Callable[..., None]
) -> None:
    layout(tmp_path, FILES)
    root = str(tmp_path)
    assert run(["show", "pdf", "--root", root, "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)["data"]
    assert {"docs/a.md", "notes.md"} <= {file["path"] for file in shown["skill"]["files"]}
    assert run(["read", "pdf", "docs/a.md", "--root", root]) == 0
    assert capfd.readouterr().out == "a"
    assert run(["validate", root]) == 0
    assert run(["prompt", root]) == 0
    assert "pdf" in capfd.readouterr().out


def test_mounted_skill_is_added_as_regular_files(tmp_path: Path) -> None:
    bench = make_project(tmp_path)
    mount_skill(bench.source, FILES)
    bench.add()
    added = bench.installed_path(".agents/skills/pdf")
    assert (added / "notes.md").read_bytes() == b"notes"
    assert not (added / "notes.md").is_symlink()
    assert not (added / "..data").exists()


def test_mounted_skill_is_bundled_once(tmp_path: Path) -> None:
    mount_skill(tmp_path, FILES)
    assert [*load_skill_bundle(tmp_path / "pdf").files] == [".env", *PATHS]
    assert load_skill_bundle(tmp_path / "pdf").findings == ()


@LAYOUTS
def test_skills_module_discovers_mounted_skills(
    tmp_path: Path, layout: Callable[..., None]
) -> None:
    layout(tmp_path, FILES)
    assert [skill.name for skill in discover_skills([tmp_path])] == ["pdf"]


def test_mounted_skill_is_not_replaced_by_add(tmp_path: Path) -> None:
    bench = make_project(tmp_path)
    bench.skill("pdf")
    mount_skill(bench.installed_path(".agents/skills"), FILES)
    with pytest.raises(UnsavedFilesError):
        bench.add(overwrite=True)


def test_links_similar_to_a_volume_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_bytes(b"secret")
    skill = make_skill(tmp_path / "skills", "pdf")
    (skill / "..data").symlink_to("../../outside")
    (skill / "secret.md").symlink_to("..data/secret.md")
    bundle = open_bundle(FolderHandle(str(tmp_path / "skills"), "pdf"), LOCAL_SKILLS.scan_policy)
    assert [*bundle.files] == ["SKILL.md"]
    catalog = load_catalog([str(tmp_path / "skills")]).find("pdf")
    for path in ("secret.md", "..data/secret.md"):
        with pytest.raises(UnsafePath):
            read_skill_file(ClearedSkill(catalog), path)


def test_link_out_of_volume_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_bytes(b"secret")
    mount_skill(tmp_path / "skills", FILES)
    version = (tmp_path / "skills/pdf/..data").readlink()
    (tmp_path / "skills/pdf" / version / "out.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "skills/pdf/out.md").symlink_to("..data/out.md")
    catalog = load_catalog([str(tmp_path / "skills")]).find("pdf")
    assert "out.md" not in activate(ClearedSkill(catalog))
    with pytest.raises(UnsafePath):
        read_skill_file(ClearedSkill(catalog), "out.md")
