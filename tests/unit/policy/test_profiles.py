"""Tests of every profile against the table of expected effects."""

import pytest

from skillhall._internal.policy.duplicate_precedence import DuplicatePolicy, Identity
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.folder_walk_rules import LinkPolicy
from skillhall._internal.policy.profiles import PROFILES, Profile
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parsed import KeyCase
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.tiers import TIERS, Tier
from tests.support.skills import make_skill_md

ORDER = (
    "specification",
    "skills-ref",
    "lenient",
    "prompt-repository",
    "local-skills",
    "instruction-skills",
    "skill-import",
    "skills-module",
)
REJECT, WARN, ACCEPT = Effect.REJECT, Effect.WARN, Effect.ACCEPT

# The file, its folder, and the expected effects in the order above.
CASES_BY_NAME: dict[str, tuple[bytes, str | None, str]] = {
    "good": (make_skill_md("pdf"), "pdf", "OK OK OK OK OK OK OK OK"),
    "name missing": (make_skill_md(None), "pdf", "NO NO WRN OK NO WRN NO NO"),
    "name missing in a flat file": (make_skill_md(None), None, "NO NO WRN NO NO WRN NO NO"),
    "name is a map": (b"---\nname: {}\ndescription: d\n---\n", "pdf", "NO NO WRN OK NO WRN NO NO"),
    "description missing": (make_skill_md("pdf", None), "pdf", "NO NO NO NO NO NO WRN NO"),
    "description blank": (make_skill_md("pdf", "  "), "pdf", "NO NO NO NO NO NO WRN NO"),
    "no frontmatter": (b"# Title\n", "pdf", "NO NO NO NO NO NO NO NO"),
    "unclosed frontmatter": (b"---\nname: pdf\n", "pdf", "NO NO NO NO NO NO NO NO"),
    "not utf-8": (b"---\nname: \xff\n---\n", "pdf", "NO NO NO NO NO NO NO NO"),
    "tag": (make_skill_md("pdf", x="!t y"), "pdf", "NO NO NO NO NO NO NO NO"),
    "alias": (make_skill_md("pdf", x="&a [*a]"), "pdf", "NO NO NO NO NO NO NO NO"),
    "name differs": (make_skill_md("pdf"), "other", "NO NO WRN OK OK WRN OK WRN"),
    "upper case": (make_skill_md("Pdf"), "Pdf", "NO NO WRN OK OK WRN OK NO"),
    "odd characters": (make_skill_md("p_f"), "p_f", "NO NO WRN OK OK WRN OK NO"),
    "edge hyphen": (make_skill_md("pdf-"), "pdf-", "NO NO WRN OK OK WRN OK NO"),
    "two hyphens": (make_skill_md("p--f"), "p--f", "NO NO WRN OK OK WRN OK NO"),
    "long name": (make_skill_md("p" * 65), "p" * 65, "NO NO WRN OK OK WRN OK NO"),
    "marks": (make_skill_md("ไม้"), "ไม้", "OK NO OK OK OK OK OK OK"),
    "colon": (b"---\nname: pdf\ndescription: a: b\n---\n", "pdf", "NO NO WRN WRN WRN NO WRN WRN"),
    "quote": (b"---\nname: pdf\ndescription: 'a\n---\n", "pdf", "NO NO WRN WRN WRN NO WRN WRN"),
    "key case": (b"---\nName: pdf\nDescription: d\n---\n", "pdf", "NO NO NO NO OK NO OK NO"),
    "long description": (
        make_skill_md("pdf", "d" * 1025),
        "pdf",
        "NO NO WRN WRN WRN WRN WRN WRN",
    ),
    "duplicate key": (
        b"---\nname: pdf\ndescription: d\nlicense: a\nlicense: b\n---\n",
        "pdf",
        "NO NO WRN WRN WRN WRN WRN WRN",
    ),
    "long compatibility": (
        make_skill_md("pdf", compatibility="c" * 501),
        "pdf",
        "NO NO WRN WRN WRN WRN WRN WRN",
    ),
    "empty compatibility": (
        make_skill_md("pdf", compatibility="''"),
        "pdf",
        "NO OK WRN WRN WRN WRN WRN WRN",
    ),
    "metadata is text": (
        make_skill_md("pdf", metadata="text"),
        "pdf",
        "NO OK WRN WRN WRN WRN WRN WRN",
    ),
    "unknown field": (make_skill_md("pdf", x="y"), "pdf", "OK NO OK OK OK OK OK OK"),
    "flow style": (make_skill_md("pdf", metadata="{a: b}"), "pdf", "OK NO OK OK OK OK OK OK"),
    "byte order mark": (b"\xef\xbb\xbf" + make_skill_md("pdf"), "pdf", "OK NO OK OK OK OK OK OK"),
    "leading blank": (
        b"\n" + make_skill_md("pdf"),
        "pdf",
        "WRN NO WRN WRN WRN WRN WRN WRN",
    ),
    "carriage returns": (
        make_skill_md("pdf").replace(b"\n", b"\r\n"),
        "pdf",
        "OK OK OK OK OK OK OK OK",
    ),
    "typed name": (b"---\nname: 12\ndescription: d\n---\n", "12", "WRN OK WRN WRN WRN WRN WRN WRN"),
    "tools in a list": (
        make_skill_md("pdf", allowed_tools="\n- Read"),
        "pdf",
        "WRN OK OK OK OK OK OK OK",
    ),
    "large body": (
        make_skill_md("pdf", body="x\n" * 600),
        "pdf",
        "WRN WRN WRN WRN WRN WRN WRN WRN",
    ),
}
EFFECTS = {"OK": ACCEPT, "WRN": WARN, "NO": REJECT}


def strictest_effect(profile: Profile, data: bytes, folder: str | None) -> Effect:
    """Return the strictest effect of the findings."""
    findings = parse_skill(data, folder, profile.key_case).findings
    effects = {judged.effect for judged in profile.load_policy.judge(findings)}
    assert profile.load_policy.accepts(findings) is (REJECT not in effects)
    return next((effect for effect in (REJECT, WARN) if effect in effects), ACCEPT)


CASES = [
    pytest.param(name, data, folder, EFFECTS[effect], id=f"{name}-{case}")
    for case, (data, folder, row) in CASES_BY_NAME.items()
    for name, effect in zip(ORDER, row.split(), strict=True)
]


def test_table_has_every_profile() -> None:
    assert tuple(PROFILES) == ORDER


@pytest.mark.parametrize(("name", "data", "folder", "expected"), CASES)
def test_effect_matches_the_table(
    name: str, data: bytes, folder: str | None, expected: Effect
) -> None:
    assert strictest_effect(PROFILES[name], data, folder) is expected


@pytest.mark.parametrize("name", [name for name in ORDER if name != "skills-ref"])
def test_specification_rejects_what_other_profiles_reject(name: str) -> None:
    specification = PROFILES["specification"].load_policy
    rejected = {code for code in Code if PROFILES[name].load_policy.get_effect(code) is REJECT}
    also = {code for code in Code if specification.get_effect(code) is REJECT}
    assert rejected - also <= {Code.NAME_RESERVED}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_only_prompt_repository_reserves_names(profile: Profile) -> None:
    is_server = profile.name == "prompt-repository"
    assert profile.reserved_names == ({"refresh", "sources"} if is_server else set())


def test_prompt_repository_rejects_reserved_names() -> None:
    assert PROFILES["prompt-repository"].load_policy.get_effect(Code.NAME_RESERVED) is REJECT


@pytest.mark.parametrize(
    ("name", "roots"),
    [
        ("local-skills", [".agents/sys.skills", ".agents/skills"]),
        ("skills-module", [".skills", "~/.skillhall/skills"]),
        ("skill-import", ["~/.claude/skills"]),
        ("prompt-repository", []),
        ("instruction-skills", []),
    ],
)
def test_roots_are_in_order_of_precedence(name: str, roots: list[str]) -> None:
    assert [folder for folder, _ in PROFILES[name].roots] == roots


def test_local_skills_have_system_and_user_roots() -> None:
    assert [source for _, source in PROFILES["local-skills"].roots] == ["system", "user"]


@pytest.mark.parametrize(
    ("name", "depth", "flat", "inside"),
    [
        ("specification", 1, False, False),
        ("skills-ref", 1, False, False),
        ("lenient", 6, False, False),
        ("prompt-repository", 1, True, False),
        ("local-skills", 1, False, False),
        ("instruction-skills", 64, False, True),
        ("skill-import", 1, False, False),
        ("skills-module", 1, False, False),
    ],
)
def test_scan_depth_matches_the_table(name: str, depth: int, flat: bool, inside: bool) -> None:
    scan = PROFILES[name].scan_policy
    assert (scan.max_depth, scan.include_flat_files, scan.search_inside_skills) == (
        depth,
        flat,
        inside,
    )


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("specification", LinkPolicy.DO_NOT_FOLLOW),
        ("skills-ref", LinkPolicy.DO_NOT_FOLLOW),
        ("lenient", LinkPolicy.FOLLOW_INSIDE),
        ("prompt-repository", LinkPolicy.DO_NOT_FOLLOW),
        ("local-skills", LinkPolicy.FOLLOW_INSIDE),
        ("instruction-skills", LinkPolicy.FOLLOW_INSIDE),
        ("skill-import", LinkPolicy.DO_NOT_FOLLOW),
        ("skills-module", LinkPolicy.DO_NOT_FOLLOW),
    ],
)
def test_link_policy_matches_the_table(name: str, links: LinkPolicy) -> None:
    assert PROFILES[name].scan_policy.link_policy is links


@pytest.mark.parametrize(
    ("name", "hidden", "modules"),
    [
        ("specification", True, True),
        ("prompt-repository", True, True),
        ("local-skills", True, False),
        ("instruction-skills", True, True),
        ("skill-import", True, False),
        ("skills-module", True, False),
    ],
)
def test_skipped_folders_match_the_table(name: str, hidden: bool, modules: bool) -> None:
    scan = PROFILES[name].scan_policy
    assert (scan.reason_to_skip(".x") is not None) is hidden
    assert (scan.reason_to_skip("node_modules") is not None) is modules


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
@pytest.mark.parametrize("name", [".git", "__MACOSX", ".DS_Store", "._SKILL.md"])
def test_always_skipped_names_are_never_part_of_a_skill(profile: Profile, name: str) -> None:
    assert profile.scan_policy.reason_to_skip(name) == "never part of a skill"


def test_only_skills_module_includes_hidden_files() -> None:
    including = [
        name for name, profile in PROFILES.items() if profile.scan_policy.include_hidden_files
    ]
    assert including == ["skills-module"]


def test_two_profiles_accept_keys_in_any_case() -> None:
    any_case = [name for name, profile in PROFILES.items() if profile.key_case is KeyCase.ANY]
    assert any_case == ["local-skills", "skill-import"]


@pytest.mark.parametrize(
    ("name", "in_root", "across_roots"),
    [
        ("prompt-repository", DuplicatePolicy.FIRST_WINS, DuplicatePolicy.FIRST_WINS),
        ("local-skills", DuplicatePolicy.FIRST_WINS, DuplicatePolicy.FIRST_WINS),
        ("instruction-skills", DuplicatePolicy.FIRST_WINS, DuplicatePolicy.KEEP_ALL),
        ("skill-import", DuplicatePolicy.KEEP_ALL, DuplicatePolicy.KEEP_ALL),
        ("skills-module", DuplicatePolicy.FIRST_WINS, DuplicatePolicy.FIRST_WINS),
    ],
)
def test_duplicate_policy_matches_the_table(
    name: str, in_root: DuplicatePolicy, across_roots: DuplicatePolicy
) -> None:
    precedence = PROFILES[name].precedence_policy
    assert (precedence.in_root, precedence.across_roots) == (in_root, across_roots)


def test_only_local_skills_are_identified_by_folder() -> None:
    by_id = [
        name
        for name, profile in PROFILES.items()
        if profile.precedence_policy.identity is Identity.ID
    ]
    assert by_id == ["local-skills"]


@pytest.mark.parametrize(
    ("name", "nameless", "undescribed"),
    [
        ("specification", ("", "d"), ("n", "")),
        ("skills-ref", ("", "d"), ("n", "")),
        ("lenient", ("folder", "d"), ("n", "")),
        ("prompt-repository", ("folder", "d"), ("n", "")),
        ("local-skills", ("", "d"), ("n", "")),
        ("instruction-skills", ("folder", "d"), ("n", "")),
        ("skill-import", ("", "d"), ("n", "folder")),
        ("skills-module", ("", "d"), ("n", "")),
    ],
)
def test_name_policy_matches_the_table(
    name: str, nameless: tuple[str, str], undescribed: tuple[str, str]
) -> None:
    name_policy = PROFILES[name].name_policy
    assert name_policy("", "d", "folder") == nameless
    assert name_policy("n", "", "folder") == undescribed
    assert name_policy("n", "d", "folder") == ("n", "d")


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_no_profile_rejects_risks(profile: Profile) -> None:
    for code, tier in TIERS.items():
        expected = Effect.ACCEPT if tier is Tier.INFO else Effect.WARN
        assert profile.load_policy.get_effect(code) is expected
