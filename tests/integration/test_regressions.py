"""Regression tests, named after the symptom."""

from pathlib import Path

from skillhall._internal.catalog.skill_content import open_skill_bundle
from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.sources.folder.bundle_reader import MAX_FILES
from tests.support.trees import build_head_cache, codes, load, names, skill_text, write_skill


def test_linked_root_skill_is_checked_by_its_link_name(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf")
    (tmp_path / "alias").symlink_to("pdf")
    cold = load(tmp_path / "alias")
    build_head_cache(tmp_path / "cache", tmp_path / "pdf")
    assert codes(cold) == ["name-not-folder"]
    assert codes(load(tmp_path / "alias", cache=tmp_path / "cache")) == codes(cold)


def test_links_are_followed_in_a_root_inside_a_skipped_folder(tmp_path: Path) -> None:
    root = tmp_path / ".git" / "root"
    write_skill(root / ".store" / "pdf", "pdf")
    (root / "pdf").symlink_to(".store/pdf")
    assert names(load(root)) == ["pdf"]


def test_flat_prompt_among_many_files_is_complete(tmp_path: Path) -> None:
    for number in range(MAX_FILES):
        (tmp_path / f"{number:05}").touch()
    (tmp_path / "z.md").write_text(skill_text("z"), encoding="utf-8")
    skill = load(tmp_path, profile="prompt-repository").find("z")
    assert list(open_skill_bundle(skill, PROMPT_REPOSITORY.scan_policy).files) == ["z.md"]
