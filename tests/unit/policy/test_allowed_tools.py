import pytest

from skillhall._internal.policy.allowed_tools import is_tool_allowed


@pytest.mark.parametrize(
    ("rule", "tool", "argument"),
    [
        ("Read", "Read", "any/path"),
        ("Bash()", "Bash", "ls"),
        ("Bash(*)", "Bash", "ls"),
        ("Bash(git add *)", "Bash", "git add a.txt"),
        ("Bash(git:*)", "Bash", "git"),
        ("Bash(git:*)", "Bash", "git status"),
        ("mcp__files__*", "mcp__files__read", ""),
    ],
)
def test_rule_allows_matching_calls(rule: str, tool: str, argument: str) -> None:
    assert is_tool_allowed(["Other", rule], tool, argument)


@pytest.mark.parametrize(
    ("rule", "tool", "argument"),
    [
        ("Read", "Write", ""),
        ("Read", "read", ""),
        ("Bash(git add *)", "Bash", "git push"),
        ("Bash(git:*)", "Bash", "gitk"),
        ("Bash(git:*)", "Bash", "sudo git status"),
        ("Bash(ls)", "Bash", "ls; rm -rf x"),
        ("((", "Bash", ""),
        ("", "Bash", ""),
    ],
)
def test_rule_does_not_allow_other_calls(rule: str, tool: str, argument: str) -> None:
    assert not is_tool_allowed([rule], tool, argument)
