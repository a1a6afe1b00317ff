"""What a skill's `allowed-tools` allow: a field that pre-approves, unless a host enforces it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall._internal.policy.selection import matches_glob

if TYPE_CHECKING:
    from collections.abc import Iterable

_RULE = re.compile(r"(?P<tool>[^()\s]+)(?:\((?P<pattern>.*)\))?", re.DOTALL)


def is_tool_allowed(rules: Iterable[str], tool: str, argument: str = "") -> bool:
    """Whether one of the rules names the tool, and the argument if it is about one.

    `Read` allows every call of Read; `Bash(git add *)` those whose argument matches; with
    `Bash(git:*)` it must be `git`, alone or with more words.
    """
    return any(_rule_allows(rule, tool, argument) for rule in rules)


def _rule_allows(rule: str, tool: str, argument: str) -> bool:
    found = _RULE.fullmatch(rule.strip())
    if found is None or not matches_glob(found["tool"], tool):
        return False
    pattern = found["pattern"]
    if pattern is None or pattern.strip() in ("", "*"):
        return True
    if pattern.endswith(":*"):
        words = pattern.removesuffix(":*")
        return argument == words or argument.startswith(f"{words} ")
    return matches_glob(pattern, argument)
