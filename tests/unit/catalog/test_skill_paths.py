from pathlib import Path

import pytest

from skillhall._internal.catalog.skill_paths import assign_skill_paths
from skillhall._internal.policy.profiles import SKILL_IMPORT
from tests.support.trees import load, write_skill


def paths_of(root: Path) -> list[str]:
    return assign_skill_paths(load(root, profile=SKILL_IMPORT))[0]


def test_path_of_a_valid_name_is_the_name(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf")
    paths, findings = assign_skill_paths(load(tmp_path))
    assert (paths, findings) == (["pdf"], [])


def test_second_skill_of_a_name_has_its_id_in_the_path(tmp_path: Path) -> None:
    write_skill(tmp_path / "a", "pdf")
    write_skill(tmp_path / "b", "pdf")
    paths, findings = assign_skill_paths(load(tmp_path, profile=SKILL_IMPORT))
    assert paths == ["pdf", "~b/pdf"]
    assert [finding.code for finding in findings] == ["mcp-address"]
    assert "skill://~b/pdf: another skill with that name comes first" in findings[0].message


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("PDF Tools", "~a/PDF%20Tools"),
        ("acme/skills@pdf", "~a/acme%2Fskills%40pdf"),
        ("..", "~a/.."),
        ("-x", "~a/-x"),
        ("é", "%C3%A9"),
    ],
)
def test_path_ends_with_the_quoted_name(tmp_path: Path, name: str, path: str) -> None:
    write_skill(tmp_path / "a", f"'{name}'")
    assert paths_of(tmp_path) == [path.replace("/..", "/%2E%2E")]


def test_paths_are_unique(tmp_path: Path) -> None:
    for root in ("one", "two", "three"):
        write_skill(tmp_path / root / "a", "pdf")
    roots = [tmp_path / root for root in ("one", "two", "three")]
    paths, _ = assign_skill_paths(load(*roots, profile=SKILL_IMPORT))
    assert paths == ["pdf", "~a/pdf", "~a~2/pdf"]
