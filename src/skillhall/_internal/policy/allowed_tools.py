"""Rules of `allowed-tools`, which pre-approve tools; a host may enforce them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillhall._internal.policy.selection import matches_glob

_RULE = re.compile(r"(?P<tool>[^()\s]+)(?:\((?P<pattern>.*)\))?", re.DOTALL)


def is_tool_allowed(rules: Iterable[str], tool: str, argument: str = "") -> bool:
    """Whether one of the rules allows the tool with this argument.

    `Read` allows every call of Read, `Bash(git add *)` those whose argument matches the glob, and
    `Bash(git:*)` the command `git` with any arguments.
    """
    return any(_rule_allows(rule, tool, argument) for rule in rules)


def _rule_allows(rule: str, tool: str, argument: str) -> bool:
    match = _RULE.fullmatch(rule.strip())
    if match is None or not matches_glob(match["tool"], tool):
        return False
    pattern = match["pattern"]
    if pattern is None or pattern.strip() in ("", "*"):
        return True
    if pattern.endswith(":*"):
        command = pattern.removesuffix(":*")
        return argument == command or argument.startswith(f"{command} ")
    return matches_glob(pattern, argument)
