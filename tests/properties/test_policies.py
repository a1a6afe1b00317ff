"""What holds between profiles, for precedence, globs and paths, whatever comes in."""

import ntpath
import posixpath
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillhall._internal.policy.precedence import (
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
def test_a_skill_that_follows_every_rule_is_accepted_by_the_specification(
    skill: ValidSkill,
) -> None:
    found = parse_skill(skill.data, skill.folder).findings
    assert SPECIFICATION.load_policy.accepts(found)


@pytest.mark.parametrize("name", LOOSER)
@given(skill=st.one_of(valid_skills, st.builds(ValidSkill, skill_md_like, st.just("a"))))
def test_what_the_specification_accepts_every_looser_profile_accepts(
    skill: ValidSkill, name: str
) -> None:
    profile = PROFILES[name]
    if SPECIFICATION.load_policy.accepts(parse_skill(skill.data, skill.folder).findings):
        assert profile.load_policy.accepts(
            parse_skill(skill.data, skill.folder, profile.key_case).findings
        )


@pytest.mark.parametrize("name", LOOSER)
@given(found=st.lists(findings))
def test_no_looser_profile_rejects_findings_that_the_specification_accepts(
    found: list[Finding], name: str
) -> None:
    if SPECIFICATION.load_policy.accepts(found):
        unreserved = [one for one in found if one.code is not Code.NAME_RESERVED]
        assert PROFILES[name].load_policy.accepts(unreserved)


@given(skills, policies)
def test_precedence_is_idempotent_and_loses_nothing(
    given_skills: list[Skill], policy: PrecedencePolicy
) -> None:
    kept, shadowed, found = resolve_duplicates(given_skills, policy)
    assert len(kept) + len(shadowed) == len(given_skills)
    assert all(policy.get_key(one.skill) == policy.get_key(one.winner) for one in shadowed)
    assert len(found) >= len(shadowed)
    again, shadowed_again, _ = resolve_duplicates(kept, policy)
    assert (again, shadowed_again) == (kept, [])


@given(skills, st.lists(names | st.just("*")), st.lists(names | st.just("?")))
def test_no_skill_is_both_listed_and_inlined(
    given_skills: list[Skill], available: list[str], inline: list[str]
) -> None:
    selection = select_skills(given_skills, Globs(tuple(available), tuple(inline)))
    chosen = [id(skill) for skill in (*selection.listed, *selection.inlined)]
    assert set(chosen) <= {id(skill) for skill in given_skills}
    assert {id(skill) for skill in selection.listed}.isdisjoint(map(id, selection.inlined))


@given(any_text)
def test_a_name_without_wildcards_matches_itself_alone(text: str) -> None:
    literal = text.replace("*", "").replace("?", "")
    assert matches_glob(literal, literal)
    assert not matches_glob(literal, literal + "x")
    assert matches_glob("*", text)


PIECES = [
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
    st.lists(st.sampled_from(PIECES), max_size=6).map("/".join),
    st.lists(st.sampled_from(PIECES), max_size=6).map("\\".join),
    st.text("./\\ :~ac", max_size=12),
)


@given(paths)
@example("a/../../b")
@example("C:..\\x")
@example("\\\\?\\C:\\x")
def test_no_text_makes_a_relative_path_that_leaves_its_root(text: str) -> None:
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
