"""Tool guard: enforces `allowed-tools`, for hosts that opt in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.policy.allowed_tools import is_tool_allowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.api.compat.skills_module import SkillMetadata


class ToolGuard:
    """Decides whether a tool may be called while skills are active.

    Every call is allowed while no skill is active, or while an active skill has no `allowed-tools`.
    Otherwise, at least one active skill must allow the call. While an unknown skill is active, only
    the tools in `always` are allowed.

    >>> guard = ToolGuard(discover_skills("skills"))
    >>> guard.activate("pdf-tools")
    >>> guard.refusal("Bash", "rm -rf /") is None
    True
    """

    def __init__(self, skills: Iterable[SkillMetadata], always: str | Iterable[str] = ()) -> None:
        self._rules = {skill.name: skill.allowed_tools for skill in skills}
        # Tools that are always allowed, such as the Skill tool. A string is one tool.
        self._always = (always,) if isinstance(always, str) else tuple(always)
        self._active: dict[str, tuple[str, ...]] = {}
        self._unknown: dict[str, None] = {}  # activated names without a skill, in order

    @property
    def allowed(self) -> dict[str, tuple[str, ...]]:
        """The allowed tools of each skill that restricts them, active or not."""
        return {name: rules for name, rules in self._rules.items() if rules}

    def activate(self, name: str) -> None:
        """Apply the skill's rules from now on."""
        if name in self._rules:
            self._active[name] = self._rules[name]
        else:
            self._unknown[name] = None

    def refusal(self, tool: str, argument: str = "") -> str | None:
        """Return an error line for the model if the call is not allowed, else `None`."""
        if tool in self._always:
            return None
        if self._unknown:
            names = ", ".join(map(repr, self._unknown))
            return f"Error: {tool!r} is not allowed: the rules of the skill {names} are not known"
        rules = self._active.values()
        if not self._active or not all(rules):
            return None
        if any(is_tool_allowed(patterns, tool, argument) for patterns in rules):
            return None
        known = ", ".join(dict.fromkeys(pattern for patterns in rules for pattern in patterns))
        return f"Error: {tool!r} is not among the tools that the active skills allow: {known}"
