"""Skill folders linked from outside the roots: rejected unless allowed."""

from pathlib import Path

import pytest

from skillhall._internal.agents.instruction_skills import InstructionSkills, InstructionSource
from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.head_cache import HeadCache, now_ns
from skillhall._internal.catalog.skill_content import (
    check_bodies,
    open_skill_bundle,
    read_skill,
    read_skill_file,
)
from skillhall._internal.catalog.trust.gate import ClearedSkill
from skillhall._internal.policy.profiles import LENIENT, PROFILES
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import SkillhallError
from tests.support.trees import (
    codes,
    codes_at,
    load,
    names,
    scan_below,
    settings_for,
    skill_text,
    write_skill,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def follow(*roots: Path, profile: str = "lenient") -> Catalog:
    settings = settings_for(roots[0].parent)._replace(follow_links=True)
    return load_catalog([str(root) for root in roots], profile, settings=settings)


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_linked_skill_folder_is_loaded_if_allowed(root: Path, tmp_path: Path, profile: str) -> None:
    outside = write_skill(tmp_path / "outside" / "pdf")
    (outside / "notes.md").write_text("Notes.", encoding="utf-8")
    (root / "pdf").symlink_to(outside)
    assert names(load(root, profile=profile)) == []
    (skill,) = follow(root, profile=profile)
    assert skill.location == str(root / "pdf/SKILL.md")
    assert read_skill(skill).body == "Do it."
    assert read_skill_file(ClearedSkill(skill), "notes.md") == b"Notes."
    assert sorted(open_skill_bundle(skill, PROFILES[profile].scan_policy).files) == [
        "SKILL.md",
        "notes.md",
    ]


def test_linked_folder_of_skills_is_searched(root: Path, tmp_path: Path) -> None:
    write_skill(tmp_path / "team" / "pdf")
    write_skill(tmp_path / "team" / "office" / "docx")
    (root / "team").symlink_to(tmp_path / "team")
    assert [skill.id for skill in follow(root)] == ["team/office/docx", "team/pdf"]


def test_link_loops_end(root: Path, tmp_path: Path) -> None:
    write_skill(root / "good")
    (root / "up").symlink_to(tmp_path)
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "back").symlink_to(root)
    (root / "away").symlink_to(tmp_path / "away")
    (root / "self").symlink_to("self")
    assert names(follow(root)) == ["good"]


def test_folder_with_several_links_is_read_once(root: Path, tmp_path: Path) -> None:
    outside = write_skill(tmp_path / "outside" / "pdf")
    for name in ("a", "b"):
        (root / name).symlink_to(outside)
    catalog = follow(root)
    assert [skill.id for skill in catalog] == ["a"]
    assert codes_at(catalog, root / "b") == ["same-file"]


def test_link_inside_linked_folder_is_not_followed(root: Path, tmp_path: Path) -> None:
    write_skill(tmp_path / "secret" / "pdf")
    write_skill(tmp_path / "team" / "docx")
    (tmp_path / "team" / "pdf").symlink_to(tmp_path / "secret" / "pdf")
    (tmp_path / "team" / "same").symlink_to("docx")
    (root / "team").symlink_to(tmp_path / "team")
    catalog = follow(root)
    assert names(catalog) == ["docx"]
    assert codes_at(catalog, root / "team/pdf") == ["link-outside"]


def test_linked_files_stay_rejected(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text(skill_text("secret"), encoding="utf-8")
    (root / "file").mkdir()
    (root / "file" / "SKILL.md").symlink_to(tmp_path / "secret.md")
    outside = write_skill(tmp_path / "outside" / "pdf")
    (outside / "secret.md").symlink_to(tmp_path / "secret.md")
    (root / "pdf").symlink_to(outside)
    catalog = follow(root)
    (skill,) = catalog
    assert codes_at(catalog, root / "file") == ["link-outside"]
    assert list(open_skill_bundle(skill, LENIENT.scan_policy).files) == ["SKILL.md"]
    with pytest.raises(SkillhallError):
        read_skill_file(ClearedSkill(skill), "secret.md")


def test_target_swapped_for_link_is_not_read(root: Path, tmp_path: Path) -> None:
    outside = write_skill(tmp_path / "outside" / "pdf")
    (root / "pdf").symlink_to(outside)
    (skill,) = follow(root)
    write_skill(tmp_path / "secret" / "pdf", description="Secret.")
    (tmp_path / "outside").rename(tmp_path / "gone")
    (tmp_path / "outside").symlink_to(tmp_path / "secret")
    with pytest.raises(SkillhallError):
        read_skill(skill)


def test_link_into_git_folder_stays_rejected(root: Path, tmp_path: Path) -> None:
    write_skill(tmp_path / ".git" / "pdf")
    (root / "pdf").symlink_to(tmp_path / ".git" / "pdf")
    assert names(follow(root)) == []


def test_agent_config_allows_links_per_source(root: Path, tmp_path: Path) -> None:
    (root / "pdf").symlink_to(write_skill(tmp_path / "outside" / "pdf"))
    settings = settings_for(tmp_path)
    refused = InstructionSkills([InstructionSource("root")], settings)
    allowed = InstructionSkills([InstructionSource("root", follow_links=True)], settings)
    assert refused.text == ""
    assert str(root / "pdf/SKILL.md") in allowed.text


# Bodies in the head cache


def test_list_agrees_with_validate_after_body_check(root: Path, tmp_path: Path) -> None:
    skill = write_skill(root / "pdf")
    with (skill / "SKILL.md").open("ab") as file:
        file.write(b"x" * 5000 + b"\xff")
    cache = tmp_path / "cache"
    assert names(load(root, cache=cache)) == ["pdf"]  # only the head was read
    checked = check_bodies(Root(str(root)), scan_below(root))
    opened = HeadCache(str(cache)).open(Root(str(root)), str(root), LENIENT)
    opened.save(checked, now_ns() + 2 * CLOCK_GRANULARITY)
    catalog = load(root, cache=cache)
    assert (names(catalog), codes(catalog)) == ([], ["not-utf8"])


def test_catalog_with_bodies_rejects_binary_body(root: Path, tmp_path: Path) -> None:
    skill = write_skill(root / "pdf")
    with (skill / "SKILL.md").open("ab") as file:
        file.write(b"x" * 5000 + b"\0")
    catalog = load_catalog([str(root)], bodies=True, settings=settings_for(tmp_path))
    assert (names(catalog), codes(catalog)) == ([], ["nul-byte"])


def test_catalog_depth_is_a_parameter(root: Path, tmp_path: Path) -> None:
    write_skill(root / "a" / "b" / "pdf")
    settings = settings_for(tmp_path)
    assert names(load_catalog([str(root)], depth=2, settings=settings)) == []
    assert names(load_catalog([str(root)], depth=3, settings=settings)) == ["pdf"]
    assert names(load_catalog([str(root)], "specification", depth=3, settings=settings)) == ["pdf"]
    with pytest.raises(ValueError, match="depth"):
        load_catalog([str(root)], depth=0, settings=settings)


def test_linked_user_skill_is_served_if_allowed(tmp_path: Path) -> None:
    elsewhere = write_skill(tmp_path / "elsewhere/pdf")
    (tmp_path / "run/.agents/skills").mkdir(parents=True)
    link = tmp_path / "run/.agents/skills/pdf"
    link.symlink_to(elsewhere)
    assert FolderStore(tmp_path / "run").list().items == ()
    local = FolderStore(tmp_path / "run", follow_links=True)
    assert [item.id for item in local.list().items] == ["pdf"]
    before = local.revision()
    write_skill(elsewhere, description="Changed, and longer.")
    assert local.revision() != before
    local.delete("pdf")
    assert not link.is_symlink()
    assert (elsewhere / "SKILL.md").is_file()
