"""Head cache: correct after every edit, safe for many processes, optional."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import pytest

from skillhall._internal.catalog import cache_file
from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
from skillhall._internal.catalog.head_cache import HeadCache, now_ns
from skillhall._internal.policy.profiles import (
    INSTRUCTION_SKILLS,
    LENIENT,
    LOCAL_SKILLS,
    PROFILES,
    SKILL_IMPORT,
)
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.folder.walker import Scan, ScanContext, scan_root
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
    read_identity,
    scan_below,
    skill_text,
    write_skill,
)

Change: TypeAlias = Callable[[Path], object]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Root with plain, quoted, nested, unusual and broken skills."""
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


def decode(catalog: Catalog) -> dict[str, object]:
    """Return the content of a catalog with decoded frontmatter."""

    def decoded(skill: CatalogSkill) -> CatalogSkill:
        return skill._replace(encoded_frontmatter=skill.frontmatter)

    return {
        "skills": [decoded(skill) for skill in catalog],
        "rejected": catalog.rejected,
        "shadowed": [(decoded(s.skill), decoded(s.winner)) for s in catalog.shadowed],
        "findings": catalog.scan_findings,
    }


def descriptions(root: Path, cache: Path) -> dict[str, str]:
    return {skill.name: skill.description for skill in load(root, cache=cache)}


def is_cached(root: Path, cache: Path) -> bool:
    return scan_below(root, LENIENT, HeadCache(str(cache))).reused_count > 0


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_cached_catalog_equals_the_uncached_one(root: Path, cache: Path, profile: str) -> None:
    cold = load(root, profile=profile)
    build_head_cache(cache, root, PROFILES[profile])
    assert decode(load(root, profile=profile, cache=cache)) == decode(cold)


def test_cached_scan_reads_only_uncacheable_skills(root: Path, cache: Path) -> None:
    scan = scan_below(root, LENIENT, build_head_cache(cache, root))
    # All except the case variant and the link.
    assert (scan.reused_count, len(scan.candidates)) == (7, 9)


COUNT_OPENED = """
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
    """Return how many skills a process lists, and how many SKILL.md it opens."""
    command = [sys.executable, "-c", COUNT_OPENED, str(root), str(cache), profile]
    result = subprocess.run(command, capture_output=True, check=True, timeout=DEADLINE)
    skills, opened = result.stdout.split()
    return int(skills), int(opened)


def test_second_load_opens_no_skill_md(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    for name in "abc":
        write_skill(root / name)
    assert files_opened(root, cache) == (3, 3)
    build_head_cache(cache, root)
    assert files_opened(root, cache) == (3, 0)


@pytest.mark.parametrize("profile", ["specification", "skills-ref", "lenient", "skills-module"])
def test_profiles_share_the_head_cache(tmp_path: Path, cache: Path, profile: str) -> None:
    root = tmp_path / "root"
    for name in "abc":
        write_skill(root / name)
    build_head_cache(cache, root, INSTRUCTION_SKILLS)
    skills, opened = files_opened(root, cache, profile)
    assert skills == 3
    assert opened <= 1  # the profile may check whether the root itself is a skill


def test_only_edited_skills_are_read_again(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    for name in "abc":
        write_skill(root / name)
    build_head_cache(cache, root)
    write_skill(root / "b", description="New.")
    assert files_opened(root, cache) == (3, 1)


def edit_in_place(file: Path) -> None:
    """Keep size, inode and modification time."""
    before = file.stat()
    with file.open("r+b") as handle:
        data = handle.read().replace(b"Old.", b"New.")
        handle.seek(0)
        handle.write(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert file.stat().st_ino == before.st_ino


def replace_by_rename(file: Path) -> None:
    """Keep size and modification time."""
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
def test_every_kind_of_edit_is_detected(tmp_path: Path, cache: Path, change: Change) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf", description="Old.")
    build_head_cache(cache, root)
    assert descriptions(root, cache) == {"pdf": "Old."}
    build_head_cache(cache, root)
    change(root / "pdf" / "SKILL.md")
    assert descriptions(root, cache) == {"pdf": "New."}


@pytest.fixture
def nested_root(tmp_path: Path) -> Path:
    """Root whose scan depends only on folders and plain SKILL.md files."""
    root = tmp_path / "nested"
    write_skill(root / "one")
    write_skill(root / "group" / "two")
    write_skill(root / "group" / "deeper" / "one")
    (root / "empty").mkdir()
    (root / ".hidden").mkdir()
    return root


COUNT_LISTED = """
import sys
listed = []
sys.addaudithook(lambda event, details: listed.append(event) if event == "os.scandir" else None)
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import load_catalog
catalog = load_catalog([sys.argv[1]], settings=Settings("/", sys.argv[2]))
print(len([*catalog.iter_listed()]), len(listed))
"""


def test_unchanged_root_is_loaded_without_listing_folders(nested_root: Path, cache: Path) -> None:
    def count_skills_and_listings() -> list[bytes]:
        command = [sys.executable, "-c", COUNT_LISTED, str(nested_root), str(cache)]
        return subprocess.check_output(command, timeout=DEADLINE).split()

    assert count_skills_and_listings()[1] != b"0"
    build_head_cache(cache, nested_root)
    assert count_skills_and_listings() == [b"3", b"0"]


def test_unchanged_root_gives_an_equal_catalog(nested_root: Path, cache: Path) -> None:
    build_head_cache(cache, nested_root)
    assert decode(load(nested_root, cache=cache)) == decode(load(nested_root))
    alias = nested_root.with_name("alias")
    alias.symlink_to(nested_root)  # findings contain the path of the root
    assert decode(load(alias, cache=cache)) == decode(load(alias))


@pytest.mark.parametrize(
    "change",
    [
        lambda root: write_skill(root / "three"),
        lambda root: write_skill(root / "empty"),
        lambda root: write_skill(root / "group" / "deeper" / "three"),
        lambda root: (root / "group" / "two" / "SKILL.md").unlink(),
        lambda root: (root / "group" / "deeper").rename(root / "deeper"),
        lambda root: (root / "empty").rmdir(),
        lambda root: (root / ".other").mkdir(),
        lambda root: (root / "group" / "link").symlink_to("two"),
        lambda root: (root / "one" / "SKILL.md").write_text(skill_text("one", "New."), "utf-8"),
    ],
)
def test_every_change_of_a_root_is_detected(nested_root: Path, cache: Path, change: Change) -> None:
    build_head_cache(cache, nested_root)
    change(nested_root)
    assert decode(load(nested_root, cache=cache)) == decode(load(nested_root))


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_scan_of_one_profile_is_not_reused_for_another(
    nested_root: Path, cache: Path, profile: str
) -> None:
    build_head_cache(cache, nested_root)
    warm = load(nested_root, profile=profile, cache=cache)
    assert decode(warm) == decode(load(nested_root, profile=profile))


def test_root_that_was_missing_or_empty_is_scanned_again(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    build_head_cache(cache, root)
    root.mkdir()
    assert codes(load(root, cache=cache)) == []
    build_head_cache(cache, root)
    assert not (cache / "heads").exists()


def scan_nothing(names: Iterable[str]) -> Scan:
    raise AssertionError([*names])


def test_changed_skill_is_read_without_a_scan_of_the_others(root: Path, cache: Path) -> None:
    (root / "link").unlink()  # what it leads to could change unnoticed
    shutil.rmtree(root / "variant")
    head_cache = build_head_cache(cache, root)
    (root / "plain" / "SKILL.md").write_text(skill_text("plain", "New."), encoding="utf-8")
    scanned: list[str] = []

    def scan_names(names: Iterable[str]) -> Scan:
        scanned.extend(names)
        context = ScanContext(LENIENT.key_case, (str(root),), {}, names=scanned)
        return scan_root(Root(str(root)), LENIENT.scan_policy, context)

    scan = head_cache.open(Root(str(root)), str(root), LENIENT).find_scan(scan_names)
    assert scanned == ["plain"]
    assert scan is not None
    assert scan.reused_count == len(scan.candidates) - 1
    assert decode(load(root, cache=cache)) == decode(load(root))


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "one" / "SKILL.md").write_text("no frontmatter", "utf-8"),
        lambda root: (root / "one" / "SKILL.md").unlink(),
        lambda root: (root / "one").rename(root / "other"),
        lambda root: (root / "group" / "two" / "SKILL.md").write_text(skill_text("one"), "utf-8"),
        lambda root: [write_skill(root / f"new-{number}") for number in range(3)],
    ],
)
def test_other_changes_give_the_catalog_of_a_complete_scan(
    nested_root: Path, cache: Path, change: Change
) -> None:
    build_head_cache(cache, nested_root)
    change(nested_root)
    assert decode(load(nested_root, cache=cache)) == decode(load(nested_root))


def test_many_changed_skills_are_found_by_a_complete_scan(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    for number in range(70):
        write_skill(root / f"skill-{number}")
    build_head_cache(cache, root)
    for number in range(70):
        write_skill(root / f"skill-{number}", description="New.")
    assert {*descriptions(root, cache).values()} == {"New."}


def test_new_file_next_to_skills_makes_only_the_next_load_list_folders(
    nested_root: Path, cache: Path
) -> None:
    head_cache = build_head_cache(cache, nested_root)
    (nested_root / "group" / "README.md").touch()
    opened = head_cache.open(Root(str(nested_root)), str(nested_root), LENIENT)
    assert opened.find_scan(scan_nothing) is None
    opened.save(scan_below(nested_root, LENIENT, head_cache), now_ns() + 2 * CLOCK_GRANULARITY)
    opened = head_cache.open(Root(str(nested_root)), str(nested_root), LENIENT)
    assert opened.find_scan(scan_nothing) is not None


def test_profiles_do_not_replace_each_others_scans(nested_root: Path, cache: Path) -> None:
    head_cache = build_head_cache(cache, nested_root)
    before = read_identity(index_file(cache))
    other = LENIENT.with_depth(3)
    opened = head_cache.open(Root(str(nested_root)), str(nested_root), other)
    scan = scan_below(nested_root, other, head_cache)
    opened.save(scan, now_ns() + 2 * CLOCK_GRANULARITY)
    assert scan.reused_count == 3
    assert read_identity(index_file(cache)) == before


def test_swapped_folders_are_detected(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    write_skill(root / "a", "same", "First.")
    write_skill(root / "b", "same", "Other.")
    build_head_cache(cache, root)
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        (root / old).rename(root / new)
    assert descriptions(root, cache) == {"same": "Other."}


def test_added_and_deleted_skills_are_detected(root: Path, cache: Path) -> None:
    build_head_cache(cache, root)
    write_skill(root / "added")
    (root / "plain" / "SKILL.md").unlink()
    skills = names(load(root, cache=cache))
    assert "added" in skills
    assert "plain" not in skills


def test_unreadable_skill_is_not_served_from_the_cache() -> None:
    with ordinary_user() as home:
        write_skill(home / "root" / "pdf")
        build_head_cache(home / "cache", home / "root")
        (home / "root" / "pdf" / "SKILL.md").chmod(0)
        catalog = load(home / "root", cache=home / "cache")
    assert codes(catalog) == ["unreadable"]


def test_renamed_folder_is_checked_by_its_new_name(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    build_head_cache(cache, root)
    (root / "pdf").rename(root / "other")
    assert codes(load(root, cache=cache)) == ["name-not-folder"]


def test_new_file_is_not_cached(root: Path, cache: Path) -> None:
    load(root, cache=cache)
    assert not is_cached(root, cache)


def test_new_file_with_an_old_mtime_is_not_cached(tmp_path: Path, cache: Path) -> None:
    os.utime(write_skill(tmp_path / "root" / "pdf") / "SKILL.md", ns=(0, 0))
    load(tmp_path / "root", cache=cache)
    assert not is_cached(tmp_path / "root", cache)


@pytest.mark.parametrize(
    ("age", "expected"), [(CLOCK_GRANULARITY // 2, False), (2 * CLOCK_GRANULARITY, True)]
)
def test_file_is_cached_once_older_than_the_clock_granularity(
    tmp_path: Path, cache: Path, age: int, *, expected: bool
) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    opened = HeadCache(str(cache)).open(Root(str(root)), str(root), LENIENT)
    opened.save(scan_below(root), now_ns() + age)
    assert is_cached(root, cache) is expected


def test_file_with_a_future_mtime_is_not_cached(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    file = write_skill(root / "pdf") / "SKILL.md"
    year = 365 * 24 * 3600 * 10**9
    os.utime(file, ns=(now_ns() + year, now_ns() + year))
    build_head_cache(cache, root)
    assert not is_cached(root, cache)


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip_a_bit(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)


def make_writable_for_others(file: Path) -> None:
    file.chmod(0o620)


def turn_into_link(file: Path) -> None:
    file.rename(file.with_suffix(".real"))
    file.symlink_to(file.with_suffix(".real"))


def change_owner(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can change the owner")
    os.chown(file, NOBODY_UID, NOBODY_UID)


def turn_into_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGE: list[Change] = [
    truncate,
    flip_a_bit,
    make_writable_for_others,
    turn_into_link,
    change_owner,
    turn_into_folder,
    lambda file: file.write_bytes(b""),
    lambda file: file.write_bytes(b"something else entirely"),
    lambda file: file.write_bytes(file.read_bytes() + b"more"),
    lambda file: file.write_bytes(b"x" + file.read_bytes()[1:]),
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_untrusted_cache_file_is_ignored(root: Path, cache: Path, damage: Change) -> None:
    build_head_cache(cache, root)
    damage(index_file(cache))
    assert not is_cached(root, cache)
    assert decode(load(root, cache=cache)) == decode(load(root))


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, make_writable_for_others])
def test_untrusted_cache_file_is_replaced(root: Path, cache: Path, damage: Change) -> None:
    build_head_cache(cache, root)
    damage(index_file(cache))
    build_head_cache(cache, root)
    assert is_cached(root, cache)


def test_any_damaged_byte_is_detected(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    build_head_cache(cache, root)
    file = index_file(cache)
    good = file.read_bytes()
    for i in range(len(good)):
        file.write_bytes(good[:i] + bytes([good[i] ^ 0xFF]) + good[i + 1 :])
        assert not is_cached(root, cache)


def test_cache_file_of_another_format_is_ignored(
    root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_head_cache(cache, root)
    monkeypatch.setattr(cache_file, "FORMAT", cache_file.FORMAT + 1)
    assert not is_cached(root, cache)
    assert decode(load(root, cache=cache)) == decode(load(root))


def test_cache_file_is_private(root: Path, cache: Path) -> None:
    build_head_cache(cache, root)
    assert index_file(cache).stat().st_mode & 0o777 == 0o600
    assert (cache / "heads").stat().st_mode & 0o077 == 0


def test_cache_folder_that_cannot_be_created_is_ignored(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        build_head_cache(cache, root)
        assert decode(load(root, cache=cache)) == decode(load(root))


def test_unwritable_cache_folder_is_ignored() -> None:
    with ordinary_user() as home:
        write_skill(home / "root" / "pdf")
        (home / "cache").mkdir(0o500)
        build_head_cache(home / "cache", home / "root")
        assert names(load(home / "root", cache=home / "cache")) == ["pdf"]
        assert list((home / "cache").iterdir()) == []


def test_read_only_cache_folder_is_used() -> None:
    with ordinary_user() as home:
        write_skill(home / "root" / "pdf")
        build_head_cache(home / "cache", home / "root")
        (home / "cache" / "heads").chmod(0o500)
        assert is_cached(home / "root", home / "cache")
        write_skill(home / "root" / "new")
        assert names(load(home / "root", cache=home / "cache")) == ["new", "pdf"]


def test_deleted_cache_is_created_again(root: Path, cache: Path) -> None:
    build_head_cache(cache, root)
    index_file(cache).unlink()
    (cache / "heads").rmdir()
    cache.rmdir()
    assert decode(load(root, cache=cache)) == decode(load(root))
    build_head_cache(cache, root)
    assert is_cached(root, cache)


def test_disabled_cache_writes_nothing(root: Path, cache: Path) -> None:
    load(root)
    assert not cache.exists()


def test_profiles_with_different_key_case_have_separate_caches(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    file = root / "pdf" / "SKILL.md"
    file.write_text("---\nName: pdf\nDescription: Any.\n---\n", encoding="utf-8")
    cold = {name: decode(load(root, profile=name)) for name in PROFILES}
    for profile in (LENIENT, LOCAL_SKILLS, SKILL_IMPORT):
        build_head_cache(cache, root, profile)
    for name in PROFILES:
        assert decode(load(root, profile=name, cache=cache)) == cold[name]
        for profile in (LENIENT, LOCAL_SKILLS):
            build_head_cache(cache, root, profile)


def test_roots_have_separate_cache_files(tmp_path: Path, cache: Path) -> None:
    for root in ("one", "two"):
        write_skill(tmp_path / root / "pdf", "pdf", f"In {root}.")
        build_head_cache(cache, tmp_path / root)
    assert len(list((cache / "heads").iterdir())) == 2
    assert descriptions(tmp_path / "two", cache) == {"pdf": "In two."}


def test_linked_root_shares_the_cache_of_its_target(
    root: Path, tmp_path: Path, cache: Path
) -> None:
    build_head_cache(cache, root)
    (tmp_path / "alias").symlink_to("root")
    assert is_cached(tmp_path / "alias", cache)
    catalog = load(tmp_path / "alias", cache=cache)
    assert decode(catalog) == decode(load(tmp_path / "alias"))


WRITER = """
import sys
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


def test_concurrent_edits_and_loads_never_return_stale_skills(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    for number in range(20):
        write_skill(root / f"static-{number}")
    for number in range(8):
        write_skill(root / f"writer-{number}")
    repository = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", WRITER, repository, str(root), str(cache)]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(8)]
    assert [writer.wait(DEADLINE) for writer in writers] == [0] * 8
    assert decode(load(root, cache=cache)) == decode(load(root))
    build_head_cache(cache, root)
    assert is_cached(root, cache)
    assert index_file(cache).is_file()  # and no temporary file is left


def test_cached_catalog_can_be_serialized_as_json(root: Path, cache: Path) -> None:
    build_head_cache(cache, root)
    for skill in load(root, cache=cache):
        json.dumps({**skill.frontmatter.fields, "root": skill.root._asdict()})


@pytest.mark.parametrize("profile", ["lenient", "prompt-repository"])
def test_cached_skill_without_a_name_has_equal_frontmatter(
    tmp_path: Path, cache: Path, profile: str
) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf", "null")
    [skill] = load(root, profile=profile)
    build_head_cache(cache, root, PROFILES[profile])
    [cached] = load(root, profile=profile, cache=cache)
    assert cached.frontmatter == skill.frontmatter


def test_cached_skill_without_a_description_has_equal_frontmatter(
    tmp_path: Path, cache: Path
) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf", description="null")
    [skill] = load(root, profile="skill-import")
    build_head_cache(cache, root, PROFILES["skill-import"])
    [cached] = load(root, profile="skill-import", cache=cache)
    assert cached.frontmatter == skill.frontmatter


LOAD_CACHE = """
import sys
from skillhall._internal.catalog.head_cache import HeadCache
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.folder.walker import Scan, ScanContext, scan_root
print(len(HeadCache(sys.argv[1]).open(Root(sys.argv[2]), sys.argv[2], LENIENT).by_folder()))
"""


def test_pipe_as_cache_file_does_not_block(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    build_head_cache(cache, root)
    file = index_file(cache)
    file.unlink()
    os.mkfifo(file)
    command = [sys.executable, "-c", LOAD_CACHE, str(cache), str(root)]
    result = subprocess.run(command, timeout=DEADLINE, check=True, capture_output=True)
    assert result.stdout == b"0\n"


def test_folder_as_cache_file_leaks_no_descriptor(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "root"
    write_skill(root / "pdf")
    build_head_cache(cache, root)
    file = index_file(cache)
    file.unlink()
    file.mkdir()
    before = open_descriptors()
    load(root, cache=cache)
    assert open_descriptors() == before
