from dataclasses import dataclass

import pytest

from skillhall._internal.policy.requirements import check_requirements
from skillhall._internal.skill.parser import parse_skill
from tests.support.skills import make_skill_md


@dataclass(frozen=True)
class Machine:
    platform: str = "linux"

    def has_program(self, name: str) -> bool:
        return name == "git"

    def has_environment_variable(self, name: str) -> bool:
        return name == "HOME"


def reason(metadata: str) -> str | None:
    parsed = parse_skill(make_skill_md("pdf", metadata=metadata), "pdf")
    found = check_requirements(parsed.frontmatter, Machine())
    return found.message if found else None


@pytest.mark.parametrize(
    "metadata",
    [
        "{author: ada}",
        "just text",
        "{openclaw: {requires: {bins: [git], env: [HOME]}, os: [linux, darwin]}}",
        "{openclaw: {requires: {anyBins: [svn, git]}}}",
        "{openclaw: {requires: {bins: [svn]}, always: true}}",
        "{openclaw: {requires: {config: [channels.x]}}}",
        "{openclaw: {requires: [svn], os: }}",
    ],
)
def test_a_skill_that_finds_what_it_needs_is_offered(metadata: str) -> None:
    assert reason(metadata) is None


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ("{openclaw: {requires: {bins: [svn]}}}", "the program 'svn' is not installed"),
        ("{clawdbot: {requires: {bins: svn}}}", "the program 'svn' is not installed"),
        ("{clawdis: {requires: {env: [API_KEY]}}}", "the variable 'API_KEY' is not set"),
        (
            "{openclaw: {requires: {anyBins: [svn, hg]}}}",
            "none of the programs 'svn', 'hg' is installed",
        ),
        ("{openclaw: {os: [macos]}}", "it is made for darwin"),
        (
            "{openclaw: {os: win32, requires: {bins: [svn]}}}",
            "it is made for win32, the program 'svn' is not installed",
        ),
    ],
)
def test_a_skill_that_misses_something_is_not_and_says_why(metadata: str, why: str) -> None:
    assert reason(metadata) == f"'pdf' is not offered: {why}"


def test_a_skill_without_metadata_needs_nothing() -> None:
    assert (
        check_requirements(parse_skill(make_skill_md("pdf"), "pdf").frontmatter, Machine()) is None
    )
