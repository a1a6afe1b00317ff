"""The warm index: never wrong after an edit, safe for many processes, disposable."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from skillhall._internal.catalog import head_cache as indexing
from skillhall._internal.catalog.catalog import Catalog, Skill
from skillhall._internal.catalog.head_cache import CLOCK_GRANULARITY, HeadCache, now_ns
from skillhall._internal.policy.profiles import (
    INSTRUCTION_SKILLS,
    LENIENT,
    LOCAL_SKILLS,
    PROFILES,
    SKILL_IMPORT,
)
from tests.support.trees import (
    DEADLINE,
    NOBODY_UID,
    build_head_cache,
    codes,
    index_file,
    load,
    names,
    open_descriptors,
    ordinary_user,
    scan_below,
    skill_text,
    write_skill,
)

Change: TypeAlias = Callable[[Path], object]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with plain, quoted, nested, odd and broken skills."""
    root = tmp_path / "root"
    write_skill(root / "plain")
    write_skill(root / "quoted", description='"a: b"', more="license: 'MIT'\n")
    write_skill(
        root / "group" / "folded", description=">\n  one\n  two", more="extra: [1, {a: b}]\n"
    )
    write_skill(root / "hidden", more="disable-model-invocation: true\n")
    write_skill(root / "other-folder", "another-name", more="metadata:\n  version: 1.0\n")
    write_skill(root / "repaired", description="colon: inside", more="allowed-tools: Read, Write\n")
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_text("no frontmatter", encoding="utf-8")
    (root / "variant").mkdir()
    (root / "variant" / "skill.md").write_text(skill_text("variant"), encoding="utf-8")
    (root / "link").symlink_to("plain")
    return root


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def whole(catalog: Catalog) -> dict[str, object]:
    """Everything a catalog says, its frontmatters decoded."""

    def told(skill: Skill) -> Skill:
        return skill._replace(encoded_frontmatter=skill.frontmatter)

    return {
        "skills": [told(skill) for skill in catalog],
        "rejected": catalog.rejected,
        "shadowed": [(told(lost.skill), told(lost.winner)) for lost in catalog.shadowed],
        "notes": catalog.scan_findings,
    }


def described(root: Path, cache: Path) -> dict[str, str]:
    return {skill.name: skill.description for skill in load(root, cache=cache)}


def is_warm(root: Path, cache: Path) -> bool:
    return scan_below(root, LENIENT, HeadCache(str(cache))).reused_count > 0


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_a_warm_catalog_equals_the_cold_one(root: Path, cache: Path, profile: str) -> None:
    cold = load(root, profile=profile)
    build_head_cache(cache, root, PROFILES[profile])
    assert whole(load(root, profile=profile, cache=cache)) == whole(cold)


def test_a_warm_scan_reads_only_what_an_index_cannot_hold(root: Path, cache: Path) -> None:
    scanned = scan_below(root, LENIENT, build_head_cache(cache, root))
    # All but the variant and the link.
    assert (scanned.reused_count, len(scanned.candidates)) == (7, 9)


OPENED = """
import sys
opened = []
sys.addaudithook(
    lambda event, details: opened.append(str(details[0])) if event == "open" else None
)
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import load_catalog
settings = Settings("/", sys.argv[2])
catalog = load_catalog([sys.argv[1]], sys.argv[3], settings=settings)
print(len(catalog), len([path for path in opened if path.endswith("SKILL.md")]))
"""


def files_opened(root: Path, cache: Path, profile: str = "skills-module") -> tuple[int, int]:
    """How many skills a fresh process lists, and how many SKILL.md it opens for that."""
    command = [sys.executable, "-c", OPENED, str(root), str(cache), profile]
    done = subprocess.run(command, capture_output=True, check=True, timeout=DEADLINE)
    skills, opened = done.stdout.split()
    return int(skills), int(opened)


def test_the_second_load_opens_no_skill_file(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    for name in "abc":
        write_skill(root / name)
    assert files_opened(root, cache) == (3, 3)
    build_head_cache(cache, root)
    assert files_opened(root, cache) == (3, 0)


@pytest.mark.parametrize("profile", ["specification", "skills-ref", "lenient", "skills-module"])
def test_another_profile_needs_no_second_reading(tmp_path: Path, cache: Path, profile: str) -> None:
    root = tmp_path / "root"
    for name in "abc":
        write_skill(root / name)
    build_head_cache(cache, root, INSTRUCTION_SKILLS)
    skills, opened = files_opened(root, cache, profile)
    assert skills == 3
    assert opened <= 1  # whether the root itself is a skill


def test_only_the_edited_skill_is_read_again(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    for name in "abc":
        write_skill(root / name)
    build_head_cache(cache, root)
    write_skill(root / "b", description="New.")
    assert files_opened(root, cache) == (3, 1)


def edit_in_place(file: Path) -> None:
    """Same size, same inode, and the time put back."""
    before = file.stat()
    with file.open("r+b") as handle:
        data = handle.read().replace(b"Old.", b"New.")
        handle.seek(0)
        handle.write(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert file.stat().st_ino == before.st_ino


def replace_by_rename(file: Path) -> None:
    """Same size, and the time of the file that was there."""
    before = file.stat()
    new = file.with_name("new")
    new.write_bytes(file.read_bytes().replace(b"Old.", b"New."))
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.rename(file)


def swap_folder(file: Path) -> None:
    aside = file.parent.with_name("aside")
    write_skill(aside, file.parent.name, "New.")
    file.parent.rename(file.parent.with_name(".old"))
    aside.rename(file.parent)


def link_to_another(file: Path) -> None:
    write_skill(file.parents[1] / ".store" / "pdf", "pdf", "New.")
    file.unlink()
    file.symlink_to("../.store/pdf/SKILL.md")


@pytest.mark.parametrize("change", [edit_in_place, replace_by_rename, swap_folder, link_to_another])
def test_an_edit_is_seen_however_it_was_made(tmp_path: Path, cache: Path, change: Change) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf", description="Old.")
    build_head_cache(cache, root)
    assert described(root, cache) == {"pdf": "Old."}
    build_head_cache(cache, root)
    change(root / "pdf" / "SKILL.md")
    assert described(root, cache) == {"pdf": "New."}


def test_two_skills_that_change_places_are_seen(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    write_skill(root / "a", "same", "First.")
    write_skill(root / "b", "same", "Other.")
    build_head_cache(cache, root)
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        (root / old).rename(root / new)
    assert described(root, cache) == {"same": "Other."}


def test_what_is_added_and_what_is_deleted_is_seen(root: Path, cache: Path) -> None:
    build_head_cache(cache, root)
    write_skill(root / "added")
    (root / "plain" / "SKILL.md").unlink()
    found = names(load(root, cache=cache))
    assert "added" in found
    assert "plain" not in found


def test_a_skill_that_becomes_unreadable_is_not_shown_from_the_index() -> None:
    with ordinary_user() as home:
        write_skill(home / "root" / "pdf")
        build_head_cache(home / "cache", home / "root")
        (home / "root" / "pdf" / "SKILL.md").chmod(0)
        catalog = load(home / "root", cache=home / "cache")
    assert codes(catalog) == ["unreadable"]


def test_a_renamed_folder_is_judged_by_its_new_name(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    build_head_cache(cache, root)
    (root / "pdf").rename(root / "other")
    assert codes(load(root, cache=cache)) == ["name-not-folder"]


def test_a_file_younger_than_the_grain_of_the_clock_is_not_trusted(root: Path, cache: Path) -> None:
    load(root, cache=cache)
    assert not is_warm(root, cache)


def test_a_file_with_an_old_date_that_was_put_there_just_now_is_not_trusted(
    tmp_path: Path, cache: Path
) -> None:
    os.utime(write_skill(tmp_path / "root" / "pdf") / "SKILL.md", ns=(0, 0))
    load(tmp_path / "root", cache=cache)
    assert not is_warm(tmp_path / "root", cache)


@pytest.mark.parametrize(
    ("age", "expected"), [(CLOCK_GRANULARITY // 2, False), (2 * CLOCK_GRANULARITY, True)]
)
def test_a_file_is_trusted_once_it_is_older_than_the_grain(
    tmp_path: Path, cache: Path, age: int, *, expected: bool
) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    HeadCache(str(cache)).save(str(root), LENIENT.key_case, scan_below(root), now_ns() + age)
    assert is_warm(root, cache) is expected


def test_a_file_from_the_future_is_never_trusted(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    file = write_skill(root / "pdf") / "SKILL.md"
    year = 365 * 24 * 3600 * 10**9
    os.utime(file, ns=(now_ns() + year, now_ns() + year))
    build_head_cache(cache, root)
    assert not is_warm(root, cache)


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip_a_bit(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)


def make_writable_for_others(file: Path) -> None:
    file.chmod(0o620)


def turn_into_a_link(file: Path) -> None:
    file.rename(file.with_suffix(".real"))
    file.symlink_to(file.with_suffix(".real"))


def give_away(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(file, NOBODY_UID, NOBODY_UID)


def turn_into_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGE: list[Change] = [
    truncate,
    flip_a_bit,
    make_writable_for_others,
    turn_into_a_link,
    give_away,
    turn_into_a_folder,
    lambda file: file.write_bytes(b""),
    lambda file: file.write_bytes(b"something else entirely"),
    lambda file: file.write_bytes(file.read_bytes() + b"more"),
    lambda file: file.write_bytes(b"x" + file.read_bytes()[1:]),
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_index_that_cannot_be_trusted_is_ignored(
    root: Path, cache: Path, damage: Change
) -> None:
    build_head_cache(cache, root)
    damage(index_file(cache))
    assert not is_warm(root, cache)
    assert whole(load(root, cache=cache)) == whole(load(root))


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, make_writable_for_others])
def test_an_index_that_cannot_be_trusted_is_replaced(
    root: Path, cache: Path, damage: Change
) -> None:
    build_head_cache(cache, root)
    damage(index_file(cache))
    build_head_cache(cache, root)
    assert is_warm(root, cache)


def test_every_damage_of_one_byte_is_noticed(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    build_head_cache(cache, root)
    file = index_file(cache)
    good = file.read_bytes()
    for at in range(len(good)):
        file.write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        assert not is_warm(root, cache)


def test_an_index_of_another_format_is_ignored(
    root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_head_cache(cache, root)
    monkeypatch.setattr(indexing, "FORMAT", indexing.FORMAT + 1)
    assert not is_warm(root, cache)
    assert whole(load(root, cache=cache)) == whole(load(root))


def test_an_index_is_private_to_its_owner(root: Path, cache: Path) -> None:
    build_head_cache(cache, root)
    assert index_file(cache).stat().st_mode & 0o777 == 0o600
    assert (cache / "heads").stat().st_mode & 0o077 == 0


def test_a_cache_folder_that_cannot_be_made_is_no_error(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        build_head_cache(cache, root)
        assert whole(load(root, cache=cache)) == whole(load(root))


def test_a_cache_folder_that_cannot_be_written_is_no_error() -> None:
    with ordinary_user() as home:
        write_skill(home / "root" / "pdf")
        (home / "cache").mkdir(0o500)
        build_head_cache(home / "cache", home / "root")
        assert names(load(home / "root", cache=home / "cache")) == ["pdf"]
        assert list((home / "cache").iterdir()) == []


def test_a_cache_folder_that_may_only_be_read_still_serves() -> None:
    with ordinary_user() as home:
        write_skill(home / "root" / "pdf")
        build_head_cache(home / "cache", home / "root")
        (home / "cache" / "heads").chmod(0o500)
        assert is_warm(home / "root", home / "cache")
        write_skill(home / "root" / "new")
        assert names(load(home / "root", cache=home / "cache")) == ["new", "pdf"]


def test_a_deleted_cache_is_made_again(root: Path, cache: Path) -> None:
    build_head_cache(cache, root)
    index_file(cache).unlink()
    (cache / "heads").rmdir()
    cache.rmdir()
    assert whole(load(root, cache=cache)) == whole(load(root))
    build_head_cache(cache, root)
    assert is_warm(root, cache)


def test_an_index_that_is_switched_off_is_neither_read_nor_written(root: Path, cache: Path) -> None:
    load(root)
    assert not cache.exists()


def test_profiles_that_read_keys_differently_do_not_share_what_they_read(
    tmp_path: Path, cache: Path
) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    file = root / "pdf" / "SKILL.md"
    file.write_text("---\nName: pdf\nDescription: Any.\n---\n", encoding="utf-8")
    cold = {name: whole(load(root, profile=name)) for name in PROFILES}
    for profile in (LENIENT, LOCAL_SKILLS, SKILL_IMPORT):
        build_head_cache(cache, root, profile)
    for name in PROFILES:
        assert whole(load(root, profile=name, cache=cache)) == cold[name]
        for profile in (LENIENT, LOCAL_SKILLS):
            build_head_cache(cache, root, profile)


def test_two_roots_have_two_indexes(tmp_path: Path, cache: Path) -> None:
    for root in ("one", "two"):
        write_skill(tmp_path / root / "pdf", "pdf", f"In {root}.")
        build_head_cache(cache, tmp_path / root)
    assert len(list((cache / "heads").iterdir())) == 2
    assert described(tmp_path / "two", cache) == {"pdf": "In two."}


def test_a_root_reached_by_a_link_shares_the_index_of_the_real_one(
    root: Path, tmp_path: Path, cache: Path
) -> None:
    build_head_cache(cache, root)
    (tmp_path / "alias").symlink_to("root")
    assert is_warm(tmp_path / "alias", cache)
    found = load(tmp_path / "alias", cache=cache)
    assert whole(found) == whole(load(tmp_path / "alias"))


WRITER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.support.trees import build_head_cache, load
root, cache, number = Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
for turn in range(12):
    build_head_cache(cache, root)
    new = root / f"writer-{number}" / "new"
    new.write_text(f"---\\nname: writer-{number}\\ndescription: Turn {turn}.\\n---\\n")
    new.rename(new.with_name("SKILL.md"))
    catalog = load(root, cache=cache)
    assert catalog.find(f"writer-{number}").description == f"Turn {turn}."
    assert len(catalog) == 28, len(catalog)
"""


def test_eight_processes_that_edit_load_and_write_at_once_never_see_a_wrong_skill(
    tmp_path: Path, cache: Path
) -> None:
    root = tmp_path / "root"
    for number in range(20):
        write_skill(root / f"steady-{number}")
    for number in range(8):
        write_skill(root / f"writer-{number}")
    repository = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", WRITER, repository, str(root), str(cache)]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(8)]
    assert [writer.wait(DEADLINE) for writer in writers] == [0] * 8
    assert whole(load(root, cache=cache)) == whole(load(root))
    build_head_cache(cache, root)
    assert is_warm(root, cache)
    assert index_file(cache).is_file()  # and nothing else was left behind


def test_a_warm_catalog_can_be_written_as_json(root: Path, cache: Path) -> None:
    build_head_cache(cache, root)
    for skill in load(root, cache=cache):
        json.dumps({**skill.frontmatter.fields, "root": skill.root._asdict()})


@pytest.mark.parametrize("profile", ["lenient", "prompt-repository"])
def test_a_skill_without_a_name_has_the_same_frontmatter_warm_and_cold(
    tmp_path: Path, cache: Path, profile: str
) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf", "null")
    [cold] = load(root, profile=profile)
    build_head_cache(cache, root, PROFILES[profile])
    [again] = load(root, profile=profile, cache=cache)
    assert again.frontmatter == cold.frontmatter


def test_a_skill_without_a_description_has_the_same_frontmatter_warm_and_cold(
    tmp_path: Path, cache: Path
) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf", description="null")
    [cold] = load(root, profile="skill-import")
    build_head_cache(cache, root, PROFILES["skill-import"])
    [again] = load(root, profile="skill-import", cache=cache)
    assert again.frontmatter == cold.frontmatter


HUNG = """
import sys
import time
from skillhall._internal.catalog.head_cache import HeadCache
from skillhall._internal.skill.parsed import KeyCase
print(len(HeadCache(sys.argv[1]).load(sys.argv[2], KeyCase.EXACT)))
"""


def test_a_pipe_in_place_of_the_index_is_not_waited_for(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    build_head_cache(cache, root)
    file = index_file(cache)
    file.unlink()
    os.mkfifo(file)
    command = [sys.executable, "-c", HUNG, str(cache), str(root)]
    done = subprocess.run(command, timeout=DEADLINE, check=True, capture_output=True)
    assert done.stdout == b"0\n"


def test_a_folder_in_place_of_the_index_leaves_no_descriptor_open(
    tmp_path: Path, cache: Path
) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    build_head_cache(cache, root)
    file = index_file(cache)
    file.unlink()
    file.mkdir()
    before = open_descriptors()
    load(root, cache=cache)
    assert open_descriptors() == before
