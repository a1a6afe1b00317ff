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
    for match in (_RULE.fullmatch(rule.strip()) for rule in rules):
        if match is None or not matches_glob(match["tool"], tool):
            continue
        pattern = match["pattern"] or ""
        if pattern.endswith(":*"):
            command = pattern.removesuffix(":*")
            is_allowed = argument == command or argument.startswith(f"{command} ")
        else:
            is_allowed = pattern.strip() in ("", "*") or matches_glob(pattern, argument)
        if is_allowed:
            return True
    return False
