"""Groups of copies: kinds, similarity, differences and unreadable files."""

import sys
from pathlib import Path
from random import Random

import pytest

from skillhall._internal.catalog.duplicates.duplicate_finder import find_duplicates
from skillhall._internal.catalog.duplicates.duplicate_report import (
    DuplicateGroup,
    DuplicateReport,
)
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import load_catalog
from tests.support.skills import make_skill, make_skill_md


def make_text(seed: int, count: int = 200) -> str:
    rng = Random(seed)  # noqa: S311 - test data
    words = [f"{rng.choice('bcdfg')}{rng.choice('aeiou')}{rng.randrange(99)}" for _ in range(count)]
    return "\n".join(" ".join(words[at : at + 10]) for at in range(0, count, 10)) + "\n"


def edit_text(text: str, share: float) -> str:
    rng = Random(5)  # noqa: S311 - test data
    return "\n".join(
        " ".join("other" if rng.random() < share else word for word in line.split(" "))
        for line in text.split("\n")
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "skills"


def find(root: Path, threshold: float = 0.6) -> DuplicateReport:
    catalog = load_catalog([str(root)], settings=Settings(".", ".", use_head_cache=False))
    return find_duplicates(catalog.iter_listed(), catalog.profile.scan_policy, threshold)


def write(root: Path, name: str, body: str, **files: bytes) -> None:
    data = make_skill_md(name, f"Description of {body.split(maxsplit=1)[:1]}.", body)
    make_skill(root, name, data=data, files={f"{path}.py": each for path, each in files.items()})


def list_names(group: DuplicateGroup) -> list[str]:
    return [Path(skill.location).parent.name for skill in group.skills]


def test_skills_with_equal_files_are_equal(root: Path) -> None:
    data = make_skill_md("same", "Does it.", make_text(1))
    for folder in ("a/same", "b/same"):
        make_skill(root, folder, data=data, files={"run.py": b"pass\n"})
    report = find(root)
    (group,) = report.groups
    assert (group.kind, group.similarity, report.compared) == ("equal", 1.0, 2)
    assert [skill.differences.describe() for skill in group.skills] == ["", ""]


def test_equal_texts_with_different_files_are_the_same_text(root: Path) -> None:
    write(root, "one", make_text(1), run=b"pass\n", old=b"")
    write(root, "two", make_text(1).replace(" ", "  "), run=b"exit\n")
    (group,) = find(root).groups
    assert (group.kind, group.similarity, list_names(group)) == ("same-text", 1.0, ["one", "two"])
    differences = group.skills[1].differences
    assert (differences.fields, differences.files) == (("name",), ("old.py", "run.py"))


@pytest.mark.parametrize(("share", "lowest"), [(0.05, 0.85), (0.2, 0.6)])
def test_edited_skill_is_near_its_original(root: Path, share: float, lowest: float) -> None:
    text = make_text(1, 600)
    write(root, "one", text)
    write(root, "two", edit_text(text, share))
    write(root, "three", make_text(2, 600))
    (group,) = find(root).groups
    assert (group.kind, list_names(group)) == ("near", ["one", "two"])
    assert lowest < group.similarity < 1
    differences = group.skills[1].differences
    assert 0 < differences.added_lines == differences.removed_lines <= 60


def test_threshold_decides_what_is_near(root: Path) -> None:
    text = make_text(1, 600)
    write(root, "one", text)
    write(root, "two", edit_text(text, 0.2))
    assert find(root, 0.9).groups == ()
    assert len(find(root, 0.5).groups) == 1


@pytest.mark.parametrize("threshold", [0, -1, 1.1, float("nan")])
def test_threshold_out_of_range_is_an_error(root: Path, threshold: float) -> None:
    root.mkdir()
    with pytest.raises(ValueError, match="threshold"):
        find(root, threshold)


def test_skill_that_contains_another_one_overlaps_with_it(root: Path) -> None:
    write(root, "large", make_text(1, 300) + make_text(2, 300) + make_text(3, 300))
    write(root, "small", make_text(2, 300))
    (group,) = find(root).groups
    assert (group.kind, list_names(group)) == ("overlapping", ["small", "large"])
    assert group.similarity > 0.95


def test_skills_that_share_a_template_are_not_copies(root: Path) -> None:
    template = make_text(0, 100)
    for number in range(70):
        write(root, f"skill{number}", make_text(number + 1, 120) + template)
    report = find(root)
    assert report.groups == ()
    assert report.common_phrases > 0


def test_many_copies_are_one_group(root: Path) -> None:
    text = make_text(1, 300)
    for number in range(80):
        write(root, f"skill{number:02}", f"{text}And step {number} of {number * 7}.\n")
    (group,) = find(root).groups
    assert (group.kind, len(group.skills)) == ("near", 80)


def test_copies_in_a_chain_are_compared_with_the_first_one(root: Path) -> None:
    parts = [make_text(seed, 100) for seed in range(6)]
    for number in range(3):
        write(root, f"skill{number}", "".join(parts[number : number + 4]))
    (group,) = find(root).groups
    similarities = [skill.similarity for skill in group.skills]
    assert similarities[0] == 1
    assert similarities[1] > 0.7
    assert 0.45 < similarities[2] < 0.55
    assert group.similarity == similarities[2]


def test_chinese_text_is_compared_by_characters(root: Path) -> None:
    rng = Random(1)  # noqa: S311 - test data
    characters = [chr(0x4E00 + rng.randrange(2000)) for _ in range(300)]
    write(root, "one", "".join(characters))
    write(root, "two", "。".join("".join(characters[at : at + 30]) for at in range(0, 270, 30)))
    (group,) = find(root).groups
    assert (group.kind, list_names(group)) == ("near", ["one", "two"])


def test_skill_linked_for_two_agents_is_not_a_copy_of_itself(root: Path) -> None:
    write(root, "one", make_text(1))
    (root / "two").symlink_to(root / "one")
    (root.parent / "linked").symlink_to(root)
    folders = [str(root), str(root.parent / "linked")]
    catalog = load_catalog(folders, settings=Settings(".", ".", use_head_cache=False))
    report = find_duplicates(catalog.iter_listed(), catalog.profile.scan_policy)
    assert report.groups == ()


@pytest.mark.parametrize("body", ["", "\n\n", "..."])
def test_skills_without_a_body_are_copies_only_with_the_same_description(
    root: Path, body: str
) -> None:
    for name, description in (("a", "Merges."), ("b", "Splits."), ("c", "Merges")):
        make_skill(root, name, data=make_skill_md(name, description, body))
    groups = find(root).groups
    assert [list_names(group) for group in groups] == [["a", "c"]]


def test_bodies_that_are_not_text_are_compared(root: Path) -> None:
    # A listing reads only the first 4 KiB, so it does not notice them.
    junk = bytes(range(256)) * 20
    for name, body in (("a", junk), ("b", junk), ("c", junk[::-1].replace(b"a", b"x y"))):
        make_skill(root, name, data=make_skill_md(name, "Does it.", "\n" * 5000) + body)
    assert [list_names(group) for group in find(root).groups] == [["a", "b"]]


def test_body_of_a_megabyte_is_compared(root: Path) -> None:
    text = make_text(1, 180_000)
    write(root, "one", text)
    write(root, "two", text[:-2000])
    (group,) = find(root).groups
    assert 0.99 < group.similarity < 1


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_unreadable_and_vanished_files_are_reported(root: Path) -> None:
    for name in ("a", "b", "c", "d"):
        write(root, name, make_text(1))
    catalog = load_catalog([str(root)], settings=Settings(".", ".", use_head_cache=False))
    (root / "b" / "SKILL.md").unlink()
    (root / "c" / "SKILL.md").unlink()
    (root / "c" / "SKILL.md").mkdir()
    report = find_duplicates(catalog.iter_listed(), catalog.profile.scan_policy)
    assert [list_names(group) for group in report.groups] == [["a", "d"]]
    assert report.unreadable == tuple(str(root / name / "SKILL.md") for name in ("b", "c"))
    assert report.compared == 2


def test_copies_that_vanish_during_the_comparison_are_left_out(root: Path) -> None:
    for name in ("a", "b"):
        write(root, name, make_text(1))
    catalog = load_catalog([str(root)], settings=Settings(".", ".", use_head_cache=False))

    def run_step(step, function, items, /):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        if step == "describing copies":
            (root / "b" / "SKILL.md").unlink()
        return [*map(function, items)]

    report = find_duplicates(catalog.iter_listed(), catalog.profile.scan_policy, 0.6, run_step)
    assert report.groups == ()


def test_groups_are_ordered_by_kind_and_size(root: Path) -> None:
    for number, (kind, copies) in enumerate([("near", 2), ("equal", 2), ("equal", 3)]):
        text = make_text(number, 400)
        for copy in range(copies):
            body = edit_text(text, 0.05 * copy) if kind == "near" else text
            data = make_skill_md(f"{kind}{number}", "Does it.", body)
            make_skill(root, f"{copy}/{kind}{number}", data=data)
    groups = find(root).groups
    assert [(group.kind, len(group.skills)) for group in groups] == [
        ("equal", 3),
        ("equal", 2),
        ("near", 2),
    ]
