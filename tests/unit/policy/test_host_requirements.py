from dataclasses import dataclass

import pytest

from skillhall._internal.policy.host_requirements import check_requirements
from skillhall._internal.skill.parser import parse_skill
from tests.support.skills import make_skill_md


@dataclass(frozen=True)
class FakeHost:
    platform: str = "linux"

    def has_program(self, name: str) -> bool:
        return name == "git"

    def has_environment_variable(self, name: str) -> bool:
        return name == "HOME"


def check_message(metadata: str) -> str | None:
    parsed = parse_skill(make_skill_md("pdf", metadata=metadata), "pdf")
    finding = check_requirements(parsed.frontmatter, FakeHost())
    return finding.message if finding else None


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
def test_skill_with_met_requirements_has_no_finding(metadata: str) -> None:
    assert check_message(metadata) is None


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ("{openclaw: {requires: {bins: [svn]}}}", "the program 'svn' is not installed"),
        ("{clawdbot: {requires: {bins: svn}}}", "the program 'svn' is not installed"),
        (
            "{clawdis: {requires: {env: [API_KEY]}}}",
            "the environment variable 'API_KEY' is not set",
        ),
        (
            "{openclaw: {requires: {anyBins: [svn, hg]}}}",
            "none of the programs 'svn', 'hg' is installed",
        ),
        ("{openclaw: {os: [macos]}}", "it requires darwin"),
        (
            "{openclaw: {os: win32, requires: {bins: [svn]}}}",
            "it requires win32, the program 'svn' is not installed",
        ),
    ],
)
def test_unmet_requirement_is_reported_with_reason(metadata: str, reason: str) -> None:
    assert check_message(metadata) == f"'pdf' is not available: {reason}"


def test_skill_without_metadata_has_no_requirements() -> None:
    assert (
        check_requirements(parse_skill(make_skill_md("pdf"), "pdf").frontmatter, FakeHost()) is None
    )
