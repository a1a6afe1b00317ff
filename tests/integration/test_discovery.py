"""Discovery on a real disk: links, special files, limits and profiles."""

import json
import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS, LENIENT, PROFILES, Profile
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import load_catalog
from tests.support.trees import (
    IN_MEMORY,
    all_findings,
    codes,
    codes_at,
    load,
    names,
    open_descriptors,
    ordinary_user,
    settings_for,
    skill_text,
    write_skill,
)

FOLLOW = ("lenient", "local-skills", "instruction-skills")  # links that stay inside
DO_NOT_FOLLOW = sorted(PROFILES.keys() - set(FOLLOW))
ODD_NAMES = ["-rf", "a b", "it's", 'say "hi"', "*", "$HOME", "a;b", "ü", "{{x}}", "<b>"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A skill next to the root that must never be listed."""
    return write_skill(tmp_path / "outside", "outside", "From outside.")


def bounded(folders: int, profile: Profile = LENIENT) -> Profile:
    return profile._replace(scan_policy=profile.scan_policy._replace(max_folders=folders))


# Links out of the root.


@pytest.mark.parametrize("profile", FOLLOW)
@pytest.mark.parametrize("kind", ["relative", "absolute", "chain"])
def test_link_out_of_root_is_not_listed(root: Path, outside: Path, profile: str, kind: str) -> None:
    write_skill(root / "good")
    if kind == "chain":
        (root / "link").symlink_to(root / ".step")
        (root / ".step").symlink_to(outside)
    else:
        (root / "link").symlink_to(outside if kind == "absolute" else "../outside")
    catalog = load(root, profile=profile)
    assert names(catalog) == ["good"]
    assert codes_at(catalog, root / "link") == ["link-outside"]


@pytest.mark.parametrize("profile", FOLLOW)
def test_skill_md_linked_from_outside_is_not_read(root: Path, outside: Path, profile: str) -> None:
    (root / "mine").mkdir()
    (root / "mine" / "SKILL.md").symlink_to(outside / "SKILL.md")
    catalog = load(root, profile=profile)
    assert names(catalog) == []
    assert codes_at(catalog, root / "mine") == ["link-outside"]


def test_link_finding_names_link_not_target(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside)
    [finding] = all_findings(load(root))
    assert finding.path == str(root / "link")
    assert "outside" not in f"{finding.message} {finding.hint}".replace("points outside", "")


@pytest.mark.parametrize("profile", DO_NOT_FOLLOW)
def test_profile_can_disable_links(root: Path, profile: str) -> None:
    write_skill(root / "real")
    (root / "link").symlink_to("real")
    (root / "file").mkdir()
    (root / "file" / "SKILL.md").symlink_to("../real/SKILL.md")
    catalog = load(root, profile=profile)
    assert names(catalog) == ["real"]
    assert codes_at(catalog, root / "link") == ["link-skipped"]
    assert codes_at(catalog, root / "file") == ["link-skipped"]


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("target", ["absent", "link", "/absent/place"])
def test_broken_link_gives_one_finding(root: Path, profile: str, target: str) -> None:
    write_skill(root / "good")
    (root / "link").symlink_to(target)
    catalog = load(root, profile=profile)
    assert names(catalog) == ["good"]
    assert codes_at(catalog, root / "link") == ["link-broken"]


def test_link_to_file_is_not_a_skill_folder(root: Path) -> None:
    write_skill(root / "good")
    (root / "README.md").symlink_to("good/SKILL.md")
    catalog = load(root)
    assert names(catalog) == ["good"]


# Links inside the root.


@pytest.mark.parametrize("profile", ["lenient", "local-skills"])
@pytest.mark.parametrize("link", ["a-link", "z-link"])
def test_link_next_to_real_folder_gives_one_skill(root: Path, profile: str, link: str) -> None:
    write_skill(root / "real")
    (root / link).symlink_to("real")
    catalog = load(root, profile=profile)
    assert [skill.folder for skill in catalog] == ["real"]
    assert codes(catalog) == ["same-file"]
    assert codes_at(catalog, root / link) == ["same-file"]


def test_absolute_link_inside_root_is_followed(root: Path) -> None:
    write_skill(root / ".store" / "pdf", "pdf")
    (root / "pdf").symlink_to(root / ".store" / "pdf")
    catalog = load(root)
    assert [(skill.name, skill.folder) for skill in catalog] == [("pdf", "pdf")]


def test_two_links_to_hidden_folder_give_first(root: Path) -> None:
    write_skill(root / ".store" / "pdf", "pdf")
    (root / "two").symlink_to(".store/pdf")
    (root / "one").symlink_to("two")
    catalog = load(root)
    assert [skill.folder for skill in catalog] == ["one"]
    assert codes_at(catalog, root / "two") == ["same-file"]


def test_linked_folder_of_skills_is_searched(root: Path) -> None:
    write_skill(root / ".store" / "office" / "pdf")
    (root / "office").symlink_to(".store/office")
    [skill] = load(root)
    assert skill.location == str(root / "office" / "pdf" / "SKILL.md")
    assert skill.folder_handle.path == str(root / ".store" / "office" / "pdf")


def test_skill_md_linked_from_other_skill_gives_one_skill(root: Path) -> None:
    write_skill(root / "real")
    (root / "copy").mkdir()
    (root / "copy" / "SKILL.md").symlink_to("../real/SKILL.md")
    catalog = load(root)
    assert [skill.folder for skill in catalog] == ["real"]
    assert codes_at(catalog, root / "copy") == ["same-file"]


def test_skill_linked_into_other_agents_folder_is_listed_once(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agents" / "skills" / "pdf")
    (tmp_path / ".claude" / "skills").mkdir(parents=True)
    (tmp_path / ".claude" / "skills" / "pdf").symlink_to("../../.agents/skills/pdf")
    catalog = load_catalog(settings=settings_for(tmp_path))
    assert [skill.location for skill in catalog] == [
        str(tmp_path / ".agents" / "skills" / "pdf" / "SKILL.md")
    ]
    assert codes(catalog) == ["same-file"]


def test_link_in_earlier_root_does_not_replace_real_folder(tmp_path: Path) -> None:
    write_skill(tmp_path / "later" / "pdf")
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "pdf").symlink_to("../later/pdf")
    catalog = load(tmp_path / "early", tmp_path / "later")
    assert [skill.directory for skill in catalog] == [str(tmp_path / "later" / "pdf")]
    assert codes(catalog) == ["same-file"]


# Link cycles.


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("target", [".", "..", "../..", "../../root", "../sub"])
def test_link_to_parent_ends_walk(root: Path, profile: str, target: str) -> None:
    write_skill(root / "good")
    (root / "sub").mkdir()
    (root / "sub" / "loop").symlink_to(target)
    assert names(load(root, profile=profile)) == ["good"]


def test_mutual_links_end_walk(root: Path) -> None:
    for name, other in (("ping", "pong"), ("pong", "ping")):
        write_skill(root / name / name)
        (root / name / other).symlink_to(f"../{other}")
    catalog = load(root)
    assert [skill.folder for skill in catalog] == ["ping/ping", "pong/pong"]
    assert codes_at(catalog, root / "ping" / "pong") == ["same-file"]


def test_link_to_itself_is_broken(root: Path) -> None:
    (root / "self").symlink_to("self")
    (root / "ping").symlink_to("pong")
    (root / "pong").symlink_to("ping")
    assert codes(load(root)) == ["link-broken"] * 3


def test_doubling_links_are_walked_once(root: Path) -> None:
    for level in range(30):
        (root / f"d{level}").mkdir()
        for twin in "ab":
            (root / f"d{level}" / twin).symlink_to(f"../d{level + 1}")
    write_skill(root / "d30" / "end")
    catalog = load(root, profile="instruction-skills")
    assert [skill.folder for skill in catalog] == ["d30/end"]


# Special and huge files.


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_pipe_named_skill_md_does_not_block(root: Path, profile: str) -> None:
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe" / "SKILL.md")
    write_skill(root / "good")
    catalog = load(root, profile=profile)
    assert names(catalog) == ["good"]
    assert codes_at(catalog, root / "pipe") == ["not-a-file"]


def test_device_named_skill_md_is_not_read(root: Path) -> None:
    (root / "zero").mkdir()
    try:
        os.mknod(root / "zero" / "SKILL.md", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")
    assert codes_at(load(root), root / "zero") == ["not-a-file"]


def test_socket_named_skill_md_is_skipped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "socket").mkdir()
    monkeypatch.chdir(root / "socket")  # socket paths have a length limit
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("SKILL.md")
    write_skill(root / "good")
    catalog = load(root)
    assert names(catalog) == ["good"]
    assert codes_at(catalog, root / "socket") == ["not-a-file"]


def test_pipe_next_to_skills_is_ignored(root: Path) -> None:
    os.mkfifo(root / "pipe")
    os.mkfifo(root / "flat.md")
    write_skill(root / "good")
    assert names(load(root)) == ["good"]
    catalog = load(root, profile="prompt-repository")
    assert names(catalog) == ["good"]
    assert codes_at(catalog, root / "flat.md") == ["not-a-file"]


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_huge_file_is_rejected_unread(root: Path, profile: str) -> None:
    os.truncate(write_skill(root / "huge") / "SKILL.md", 1 << 40)
    write_skill(root / "good")
    catalog = load(root, profile=profile)
    assert names(catalog) == ["good"]
    assert codes_at(catalog, root / "huge") == ["too-large"]


# Unreadable files and folders.


def test_unreadable_file_gives_one_finding() -> None:
    with ordinary_user() as root:
        (write_skill(root / "closed") / "SKILL.md").chmod(0)
        write_skill(root / "good")
        catalog = load(root)
    assert names(catalog) == ["good"]
    assert codes_at(catalog, root / "closed") == ["unreadable"]


@pytest.mark.parametrize("mode", [0o000, 0o400])
def test_unreadable_folder_gives_one_finding(mode: int) -> None:
    with ordinary_user() as root:
        write_skill(root / "closed").chmod(mode)
        write_skill(root / "good")
        catalog = load(root)
    assert names(catalog) == ["good"]
    assert codes_at(catalog, root / "closed") == ["unreadable"]


def test_folder_without_list_permission_gives_its_skill() -> None:
    with ordinary_user() as root:
        write_skill(root / "unlisted").chmod(0o100)
        assert names(load(root)) == ["unlisted"]
        write_skill(root / "group" / "one")  # the walker expects another group after it
        assert names(load(root)) == ["one", "unlisted"]


def test_unlistable_folder_without_skill_gives_one_finding() -> None:
    with ordinary_user() as root:
        (root / "unlisted").mkdir(0o100)
        catalog = load(root)
    assert codes(catalog) == ["unreadable"]


# Colliding names.


@pytest.mark.parametrize(
    ("one", "other"), [("PDF", "pdf"), ("é", "e\u0301"), ("straße", "STRASSE")]
)
def test_colliding_names_are_reported(root: Path, one: str, other: str) -> None:
    write_skill(root / one, "one")
    write_skill(root / other, "other")
    catalog = load(root)
    assert names(catalog) == ["one", "other"]
    [finding] = [f for f in all_findings(catalog) if f.code == "case-collision"]
    assert repr(one) in finding.message
    assert repr(other) in finding.message


def test_first_of_colliding_folders_wins(root: Path) -> None:
    write_skill(root / "pdf", "pdf", "Lower.")
    write_skill(root / "PDF", "pdf", "Upper.")
    assert [skill.description for skill in load(root)] == ["Upper."]


# Unsafe names.


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("name", [b"new\nline", b"esc\x1b[2J", b"tab\t", b"bad\xff", b"del\x7f"])
def test_unsafe_name_is_skipped_and_escaped(root: Path, profile: str, name: bytes) -> None:
    write_skill(Path(os.fsdecode(os.fsencode(root) + b"/" + name)), "unsafe")
    write_skill(root / "good")
    catalog = load(root, profile=profile)
    assert names(catalog) == ["good"]
    [finding] = all_findings(catalog)
    assert finding.code == "unsafe-path"
    assert finding.message.isascii()
    assert finding.message.isprintable()


def test_unsafe_flat_file_and_link_are_skipped(root: Path) -> None:
    (root / "a\nb.md").write_text(skill_text("flat"), encoding="utf-8")
    (root / "c\nd").symlink_to(".")
    assert codes(load(root, profile="prompt-repository")) == ["unsafe-path", "unsafe-path"]


def test_findings_of_hostile_tree_are_valid_json(root: Path) -> None:
    for name in (b"\xff", b"a\xff/b", b"\x1b", b"case\xff", b"CASE\xff"):
        write_skill(Path(os.fsdecode(os.fsencode(root) + b"/" + name)), "unsafe")
    rows = [result._asdict() for result in all_findings(load(root))]
    assert json.loads(json.dumps(rows).encode("utf-8")) == rows


@pytest.mark.parametrize("name", ODD_NAMES)
def test_printable_name_is_accepted(root: Path, name: str) -> None:
    write_skill(root / name, "plain")
    assert [skill.folder for skill in load(root)] == [name]


# Skipped folders.


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("name", [".git", ".svn", "__MACOSX", "._x", ".hidden"])
def test_hidden_folders_are_skipped_under_every_profile(
    root: Path, profile: str, name: str
) -> None:
    write_skill(root / name, "never")
    write_skill(root / "good")
    catalog = load(root, profile=profile)
    assert names(catalog) == ["good"]
    assert codes_at(catalog, root / name) == ["skipped"]


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_node_modules_are_skipped_depending_on_profile(root: Path, profile: str) -> None:
    write_skill(root / "node_modules" / "package" / "skill")
    catalog = load(root, profile=profile)
    assert names(catalog) == []
    shallow = profile in ("local-skills", "skill-import", "skills-module")
    expected = "no-skill-md" if shallow else "skipped"
    assert codes_at(catalog, root / "node_modules") == [expected]


def test_nested_node_modules_are_skipped(root: Path) -> None:
    write_skill(root / "a" / "b" / "node_modules" / "skill")
    catalog = load(root, profile="instruction-skills")
    assert codes_at(catalog, root / "a" / "b" / "node_modules") == ["skipped"]


def test_link_with_skipped_name_is_not_followed(root: Path) -> None:
    write_skill(root / "real")
    (root / ".hidden").symlink_to("real")
    catalog = load(root)
    assert codes_at(catalog, root / ".hidden") == ["skipped"]


# Depth and folder limits.

DEPTHS = [(name, profile.scan_policy.max_depth) for name, profile in sorted(PROFILES.items())]


def test_depths_are_those_of_contract() -> None:
    one_level = {name for name, depth in DEPTHS if depth == 1}
    assert one_level == PROFILES.keys() - {"lenient", "instruction-skills"}
    assert dict(DEPTHS)["lenient"] == 6
    assert dict(DEPTHS)["instruction-skills"] >= 60


@pytest.mark.parametrize(("profile", "depth"), DEPTHS)
def test_skills_are_found_up_to_profile_depth(root: Path, profile: str, depth: int) -> None:
    write_skill(root.joinpath(*["d"] * (depth - 1), "found"))
    write_skill(root.joinpath(*["e"] * depth, "missed"))
    assert names(load(root, profile=profile)) == ["found"]


def test_folder_limit_is_reported_once(root: Path) -> None:
    for number in range(9):
        write_skill(root / f"group{number}" / f"skill{number}")
    catalog = load(root, profile=bounded(4))
    assert names(catalog) == ["skill0", "skill1", "skill2"]
    assert codes(catalog) == ["bound-reached"]


def test_exact_folder_limit_is_not_reported(root: Path) -> None:
    for number in range(3):
        write_skill(root / f"group{number}" / f"skill{number}")
    assert codes(load(root, profile=bounded(4))) == []


def test_skill_folders_do_not_count_towards_limit(root: Path) -> None:
    for number in range(9):
        write_skill(root / f"skill{number}")
    catalog = load(root, profile=bounded(1))
    assert len(catalog) == 9
    assert codes(catalog) == []


# Nested skills.


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_nested_skill_depends_on_profile(root: Path, profile: str) -> None:
    write_skill(root / "outer")
    write_skill(root / "outer" / "parts" / "inner")
    expected = ["inner", "outer"] if profile == "instruction-skills" else ["outer"]
    assert names(load(root, profile=profile)) == expected


def test_skill_inside_broken_one_is_not_listed(root: Path) -> None:
    (root / "outer" / "inner").mkdir(parents=True)
    (root / "outer" / "SKILL.md").touch()
    write_skill(root / "outer" / "inner")
    assert names(load(root)) == []


# Variants of SKILL.md.


def test_exact_skill_md_wins_over_variant(root: Path) -> None:
    write_skill(root / "pdf", description="Exact.")
    (root / "pdf" / "skill.md").write_text(skill_text("pdf", "Twin."), encoding="utf-8")
    catalog = load(root)
    assert [skill.description for skill in catalog] == ["Exact."]
    assert codes(catalog) == []


@pytest.mark.parametrize("variant", ["skill.md", "Skill.md", "SKILL.MD"])
def test_case_variant_is_used_without_exact_name(root: Path, variant: str) -> None:
    (root / "pdf").mkdir()
    (root / "pdf" / variant).write_text(skill_text("pdf"), encoding="utf-8")
    catalog = load(root)
    assert [skill.file for skill in catalog] == [variant]
    assert codes(catalog) == ["case-variant"]


def test_first_case_variant_is_used(root: Path) -> None:
    (root / "pdf").mkdir()
    for variant in ("skill.md", "Skill.md"):
        text = skill_text("pdf", f"From {variant}.")
        (root / "pdf" / variant).write_text(text, encoding="utf-8")
    assert [skill.file for skill in load(root)] == ["Skill.md"]


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_folder_named_skill_md_gives_one_finding(root: Path, profile: str) -> None:
    (root / "pdf" / "SKILL.md").mkdir(parents=True)
    write_skill(root / "good")
    catalog = load(root, profile=profile)
    assert names(catalog) == ["good"]
    assert codes_at(catalog, root / "pdf") == ["not-a-file"]


# Roots.


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_missing_or_file_root_gives_empty_catalog(root: Path, profile: str) -> None:
    (root / "file").touch()
    for path in (root / "absent", root / "file", root / "file" / "below"):
        catalog = load(path, profile=profile)
        assert names(catalog) == []
        assert codes(catalog) == ["root-missing"]


def test_missing_default_root_is_not_reported(tmp_path: Path) -> None:
    assert codes(load_catalog(settings=settings_for(tmp_path))) == []


def test_default_root_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".skills").touch()
    assert codes(load_catalog(settings=settings_for(tmp_path))) == ["root-missing"]


def test_unreadable_root_gives_empty_catalog() -> None:
    with ordinary_user() as home:
        (home / "root").mkdir(0)
        catalog = load(home / "root")
    assert codes(catalog) == ["root-missing"]


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_root_may_be_a_link(root: Path, tmp_path: Path, profile: str) -> None:
    write_skill(root / "pdf")
    (tmp_path / "link").symlink_to("root")
    [skill] = load(tmp_path / "link", profile=profile)
    assert skill.location == str(tmp_path / "link" / "pdf" / "SKILL.md")


def test_links_inside_linked_root_are_followed(root: Path, tmp_path: Path) -> None:
    write_skill(root / ".store" / "pdf", "pdf")
    (root / "pdf").symlink_to(".store/pdf")
    (tmp_path / "link").symlink_to("root")
    assert names(load(tmp_path / "link")) == ["pdf"]


@pytest.mark.parametrize("profile", sorted(PROFILES.keys() - {"prompt-repository"}))
def test_root_skill_depends_on_profile(root: Path, profile: str) -> None:
    write_skill(root)
    counts = profile not in ("local-skills", "skills-module")
    expected = [("root", "root", str(root / "SKILL.md"))] if counts else []
    catalog = load(root, profile=profile)
    assert [(skill.name, skill.id, skill.location) for skill in catalog] == expected


def test_root_skill_hides_nested_skills_depending_on_profile(root: Path) -> None:
    write_skill(root)
    write_skill(root / "inner")
    assert names(load(root)) == ["root"]
    assert names(load(root, profile="instruction-skills")) == ["inner", "root"]


def test_relative_roots_and_tilde_are_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_skill(tmp_path / "home" / "mine" / "one")
    write_skill(tmp_path / "work" / "here" / "two")
    settings = Settings(str(tmp_path / "work"), str(tmp_path / "cache"), use_head_cache=False)
    assert names(load_catalog(["~/mine", "here"], settings=settings)) == ["one", "two"]


def test_default_roots_are_searched_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    locations = [work / ".agents/skills", work / ".claude/skills", work / ".skills"]
    locations += [home / ".agents/skills", home / ".claude/skills", home / ".skillhall/skills"]
    for location in locations:
        write_skill(location / "pdf")
    catalog = load_catalog(settings=settings_for(work))
    assert [skill.directory for skill in catalog] == [str(locations[0] / "pdf")]
    assert [lost.skill.directory for lost in catalog.shadowed] == [
        str(location / "pdf") for location in locations[1:]
    ]
    assert [lost.skill.source for lost in catalog.shadowed] == ["project"] * 2 + ["user"] * 3


# Flat files.


def flat(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text, encoding="utf-8")


def test_flat_files_are_loaded_from_prompt_repository_only(root: Path) -> None:
    flat(root, "review.md", skill_text("review"))
    for profile in PROFILES:
        expected = ["review"] if profile == "prompt-repository" else []
        assert names(load(root, profile=profile)) == expected


def test_flat_file_wins_over_folder(root: Path) -> None:
    flat(root, "zzz.md", skill_text("review", "Flat."))
    write_skill(root / "aaa", "review", "Folder.")
    catalog = load(root, profile="prompt-repository")
    assert [skill.description for skill in catalog] == ["Flat."]
    [lost] = catalog.shadowed
    assert lost.rule == "a flat file wins over a folder"
    assert codes(catalog) == ["shadowed"]


def test_first_flat_file_wins(root: Path) -> None:
    flat(root, "b.md", skill_text("same", "B."))
    flat(root, "a.md", skill_text("same", "A."))
    assert [skill.file for skill in load(root, profile="prompt-repository")] == ["a.md"]


def test_flat_file_without_name_is_skipped_with_finding(root: Path) -> None:
    flat(root, "review.md", "---\ndescription: Nameless.\n---\n")
    catalog = load(root, profile="prompt-repository")
    assert names(catalog) == []
    assert codes(catalog) == ["flat-name-missing"]


@pytest.mark.parametrize("text", ["# Just a page\n", "", "\0", "---\nname: x\n"])
def test_flat_file_that_is_not_a_prompt_gives_one_finding(root: Path, text: str) -> None:
    flat(root, "README.md", text)
    catalog = load(root, profile="prompt-repository")
    assert len(codes_at(catalog, root / "README.md")) == 1


def test_flat_files_below_root_are_ignored(root: Path) -> None:
    write_skill(root / "pdf")
    flat(root / "pdf", "notes.md", skill_text("notes"))
    catalog = load(root, profile="prompt-repository")
    assert names(catalog) == ["pdf"]
    assert codes(catalog) == []


def test_linked_flat_file_is_not_followed(root: Path) -> None:
    flat(root, "real.md", skill_text("real"))
    (root / "link.md").symlink_to("real.md")
    catalog = load(root, profile="prompt-repository")
    assert names(catalog) == ["real"]
    assert codes_at(catalog, root / "link.md") == ["link-skipped"]


@pytest.mark.parametrize("name", [".hidden.md", "._mac.md"])
def test_hidden_flat_file_is_skipped(root: Path, name: str) -> None:
    flat(root, name, skill_text("hidden"))
    assert codes_at(load(root, profile="prompt-repository"), root / name) == ["skipped"]


# Findings about skipped entries.


def hostile_tree(root: Path, outside: Path) -> list[Path]:
    """Create entries of a root that are skipped, each for a different reason."""
    write_skill(root / ".hidden")
    write_skill(root / ".git")
    write_skill(root / "__MACOSX")
    (root / "broken-link").symlink_to("absent")
    (root / "outside-link").symlink_to(outside)
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe" / "SKILL.md")
    (root / "folder" / "SKILL.md").mkdir(parents=True)
    (root / "file-link").mkdir()
    (root / "file-link" / "SKILL.md").symlink_to(outside / "SKILL.md")
    for name, text in (("empty", ""), ("nul", "\0"), ("unclosed", "---\nname: x\n")):
        (root / name).mkdir()
        (root / name / "SKILL.md").write_text(text, encoding="utf-8")
    os.truncate(write_skill(root / "huge") / "SKILL.md", 1 << 30)
    return sorted(root.iterdir())


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_every_skipped_entry_gives_one_finding(root: Path, outside: Path, profile: str) -> None:
    skipped = hostile_tree(root, outside)
    write_skill(root / "good")
    catalog = load(root, profile=profile)
    assert names(catalog) == ["good"]
    assert {path.name: len(codes_at(catalog, path)) for path in skipped} == {
        path.name: 1 for path in skipped
    }
    assert len(codes(catalog)) == len(skipped)


@pytest.mark.parametrize(
    "profile", [n for n, p in PROFILES.items() if p.scan_policy.max_depth == 1]
)
def test_folder_without_skill_is_reported_in_one_level_profiles(root: Path, profile: str) -> None:
    (root / "empty").mkdir()
    assert codes(load(root, profile=profile)) == ["no-skill-md"]


def test_folder_without_skill_is_searched_in_recursive_profiles(root: Path) -> None:
    (root / "empty").mkdir()
    assert codes(load(root)) == []


def test_files_next_to_skills_are_not_reported(root: Path) -> None:
    write_skill(root / "good")
    for name in ("README.md", "LICENSE", "package.json"):
        (root / name).touch()
    assert codes(load(root)) == []


# Side effects.


def test_progress_grows(root: Path) -> None:
    for number in range(600):
        write_skill(root / f"skill{number}")
    counts: list[int] = []
    load_catalog([str(root)], settings=settings_for(root), progress=counts.append)
    assert len(counts) >= 2
    assert counts == sorted(counts)
    assert counts[-1] <= 600


def test_scan_closes_descriptors(root: Path, outside: Path) -> None:
    hostile_tree(root, outside)
    write_skill(root / "a" / "b" / "c")
    (root / "loop").symlink_to(".")
    before = open_descriptors()
    for profile in PROFILES:
        load(root, profile=profile)
        load(root / "absent", profile=profile)
    assert open_descriptors() == before


def test_scan_does_not_modify_files(root: Path, outside: Path) -> None:
    hostile_tree(root, outside)
    before = [(path, path.lstat().st_mtime_ns) for path in sorted(root.rglob("*"))]
    load(root, profile=INSTRUCTION_SKILLS)
    assert [(path, path.lstat().st_mtime_ns) for path in sorted(root.rglob("*"))] == before


def test_skill_in_home_does_not_shadow_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_skill(tmp_path / ".agents" / "skills" / "pdf")
    catalog = load_catalog(settings=settings_for(tmp_path))
    assert names(catalog) == ["pdf"]
    assert "shadowed" not in codes(catalog)


def test_linked_agent_folder_shadows_nothing(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agents" / "skills" / "pdf")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "skills").symlink_to("../.agents/skills")
    catalog = load_catalog(settings=settings_for(tmp_path))
    assert names(catalog) == ["pdf"]
    assert "shadowed" not in codes(catalog)


def test_nested_roots_give_each_skill_once(root: Path) -> None:
    write_skill(root / "group" / "pdf")
    catalog = load(root, root / "group")
    assert names(catalog) == ["pdf"]
    assert "shadowed" not in codes(catalog)


def test_link_next_to_real_folder_gives_one_finding(root: Path) -> None:
    write_skill(root / "real")
    (root / "link").symlink_to("real")
    assert codes(load(root, profile="instruction-skills")) == ["same-file"]


def test_link_to_root_skill_does_not_list_it_twice(root: Path) -> None:
    write_skill(root)
    (root / "sub").mkdir()
    (root / "sub" / "loop").symlink_to("..")
    catalog = load(root, profile="instruction-skills")
    assert [skill.folder for skill in catalog] == [""]
    assert codes(catalog) == ["same-file"]


def test_links_to_two_files_of_one_folder_are_two_skills(root: Path) -> None:
    (root / ".shared").mkdir()
    for name in ("one", "two"):
        (root / ".shared" / f"{name}.md").write_text(skill_text(name), encoding="utf-8")
        (root / name).mkdir()
        (root / name / "SKILL.md").symlink_to(f"../.shared/{name}.md")
    assert names(load(root)) == ["one", "two"]


def test_location_of_linked_skill_md_exists(root: Path) -> None:
    (root / ".shared").mkdir()
    (root / ".shared" / "text.md").write_text(skill_text("pdf"), encoding="utf-8")
    (root / "pdf").mkdir()
    (root / "pdf" / "SKILL.md").symlink_to("../.shared/text.md")
    [skill] = load(root)
    assert skill.location == str(root / "pdf" / "SKILL.md")


def test_root_with_case_variant_is_a_skill(root: Path) -> None:
    (root / "skill.md").write_text(skill_text("root"), encoding="utf-8")
    catalog = load(root)
    assert names(catalog) == ["root"]
    assert codes(catalog) == ["case-variant"]


@pytest.mark.parametrize("profile", ["lenient", "instruction-skills"])
def test_folders_beyond_depth_are_reported(root: Path, profile: str) -> None:
    depth = PROFILES[profile].scan_policy.max_depth
    write_skill(root.joinpath(*["d"] * depth, "missed"))
    assert codes(load(root, profile=profile)) == ["bound-reached"]


@pytest.mark.parametrize("place", [".git/hidden", ".git"])
def test_link_into_git_folder_is_not_followed(root: Path, place: str) -> None:
    write_skill(root / place, "hidden")
    (root / "link").symlink_to(place)
    assert names(load(root)) == []


@pytest.mark.parametrize("text", ["nul\0byte", "lone\ud800surrogate"])
def test_impossible_root_path_is_missing(tmp_path: Path, text: str) -> None:
    catalog = load_catalog([text], settings=settings_for(tmp_path))
    assert codes(catalog) == ["root-missing"]


def test_skills_are_found_among_thousands_of_files() -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        root = Path(folder)
        for number in range(15_000):
            (root / f"m{number}").touch()
        write_skill(root / "aaa")
        write_skill(root / ".hidden")
        for number in range(9):
            write_skill(root / f"group-{number}" / f"skill-{number}")
        assert len(load(root).skills) == 10


@pytest.mark.parametrize("profile", ["lenient", "instruction-skills", "skills-module"])
def test_output_of_an_agent_in_an_eval_is_not_a_skill(root: Path, profile: str) -> None:
    write_skill(root / "pdf")
    outputs = root / "pdf-workspace/iteration-1/eval-1/with_skill/outputs"
    write_skill(outputs, "evil")
    write_skill(root / "my-workspace")  # an ordinary name
    for _ in range(2):  # without and with the head cache
        catalog = load(root, profile=profile, cache=root.parent / "cache")
        assert sorted(names(catalog)) == ["my-workspace", "pdf"]
    if profile != "skills-module":  # it searches one level
        assert codes_at(catalog, outputs / "SKILL.md") == ["skipped"]


@pytest.mark.parametrize("profile", ["lenient", "local-skills", "skills-module"])
def test_workspace_next_to_a_skill_is_not_missing_its_skill_md(root: Path, profile: str) -> None:
    write_skill(root / "pdf")
    for name in ("pdf-workspace", "docx-workspace"):
        (root / name / "iteration-1").mkdir(parents=True)
    for _ in range(2):  # without and with the head cache
        catalog = load(root, profile=profile, cache=root.parent / "cache")
        found = [codes_at(catalog, root / name) for name in ("pdf-workspace", "docx-workspace")]
        assert found == ([[], []] if profile == "lenient" else [["skipped"], ["no-skill-md"]])
