"""Properties of profiles, precedence, globs and paths."""

import ntpath
import posixpath
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillhall._internal.policy.duplicate_precedence import (
    DuplicatePolicy,
    Identity,
    PrecedencePolicy,
    resolve_duplicates,
)
from skillhall._internal.policy.profiles import PROFILES, SPECIFICATION
from skillhall._internal.policy.selection import Globs, matches_glob, select_skills
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parser import parse_skill
from skillhall.errors import UnsafePath
from tests.support.strategies import ValidSkill, any_text, findings, skill_md_like, valid_skills

LOOSER = [
    "lenient",
    "prompt-repository",
    "local-skills",
    "instruction-skills",
    "skill-import",
    "skills-module",
]


@dataclass(frozen=True)
class Skill:
    name: str
    root_number: int
    id: str
    is_flat: bool
    location: str


names = st.sampled_from("ab")
skills = st.lists(st.builds(Skill, names, st.integers(0, 2), names, st.booleans(), st.text()))
policies = st.builds(
    PrecedencePolicy,
    st.sampled_from(Identity),
    st.sampled_from(DuplicatePolicy),
    st.sampled_from(DuplicatePolicy),
)


@given(valid_skills)
def test_specification_accepts_valid_skills(
    skill: ValidSkill,
) -> None:
    parsed = parse_skill(skill.data, skill.folder)
    assert SPECIFICATION.load_policy.accepts(parsed.findings)


@pytest.mark.parametrize("name", LOOSER)
@given(skill=st.one_of(valid_skills, st.builds(ValidSkill, skill_md_like, st.just("a"))))
def test_looser_profiles_accept_what_the_specification_accepts(
    skill: ValidSkill, name: str
) -> None:
    profile = PROFILES[name]
    if SPECIFICATION.load_policy.accepts(parse_skill(skill.data, skill.folder).findings):
        assert profile.load_policy.accepts(
            parse_skill(skill.data, skill.folder, profile.key_case).findings
        )


@pytest.mark.parametrize("name", LOOSER)
@given(any_findings=st.lists(findings))
def test_looser_profiles_accept_findings_the_specification_accepts(
    any_findings: list[Finding], name: str
) -> None:
    if SPECIFICATION.load_policy.accepts(any_findings):
        unreserved = [finding for finding in any_findings if finding.code is not Code.NAME_RESERVED]
        assert PROFILES[name].load_policy.accepts(unreserved)


@given(skills, policies)
def test_precedence_is_idempotent_and_lossless(
    all_skills: list[Skill], policy: PrecedencePolicy
) -> None:
    used, duplicates = resolve_duplicates(all_skills, policy)
    shadowed = [duplicate for duplicate in duplicates if duplicate.is_shadowed]
    assert len(used) + len(shadowed) == len(all_skills)
    assert all(policy.get_key(loser.skill) == policy.get_key(loser.winner) for loser in duplicates)
    again, duplicates_again = resolve_duplicates(used, policy)
    assert again == used
    assert not any(duplicate.is_shadowed for duplicate in duplicates_again)


@given(skills, st.lists(names | st.just("*")), st.lists(names | st.just("?")))
def test_no_skill_is_both_listed_and_inlined(
    all_skills: list[Skill], available: list[str], inline: list[str]
) -> None:
    selection = select_skills(all_skills, Globs(tuple(available), tuple(inline)))
    selected = [id(skill) for skill in (*selection.listed, *selection.inlined)]
    assert set(selected) <= {id(skill) for skill in all_skills}
    assert {id(skill) for skill in selection.listed}.isdisjoint(map(id, selection.inlined))


@given(any_text)
def test_pattern_without_wildcards_matches_only_itself(text: str) -> None:
    literal = text.replace("*", "").replace("?", "")
    assert matches_glob(literal, literal)
    assert not matches_glob(literal, literal + "x")
    assert matches_glob("*", text)


SEGMENTS = [
    "..",
    ".",
    "...",
    "",
    "a",
    "C:",
    "~",
    "\\",
    "/",
    "con",
    "nul.txt",
    " ",
    "a.",
    "\0",
    "．．",
]
paths = st.one_of(
    any_text,
    st.lists(st.sampled_from(SEGMENTS), max_size=6).map("/".join),
    st.lists(st.sampled_from(SEGMENTS), max_size=6).map("\\".join),
    st.text("./\\ :~ac", max_size=12),
)


@given(paths)
@example("a/../../b")
@example("C:..\\x")
@example("\\\\?\\C:\\x")
def test_relative_path_never_leaves_its_root(text: str) -> None:
    try:
        path = RelativePath.parse(text)
    except UnsafePath:
        return
    root = posixpath.normpath(posixpath.join("/srv/skill", path.text))
    assert posixpath.commonpath(["/srv/skill", root]) == "/srv/skill"
    assert root != "/srv/skill"
    windows = ntpath.normpath(ntpath.join("C:\\root\\skill", path.text))
    assert ntpath.commonpath(["C:\\root\\skill", windows]) == "C:\\root\\skill"
    assert not ntpath.isabs(path.text)
    assert RelativePath.parse(path.text) == path
