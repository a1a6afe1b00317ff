"""The guard: `allowed-tools` enforced, for hosts that ask for it; by default nobody is guarded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.policy.allowed_tools import is_tool_allowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.api.compat.skills_module import SkillMetadata


class ToolGuard:
    """Says whether a tool may be called while skills are active.

    A skill that names no tools asks for no guard. With several active skills, one that allows the
    call is enough.
    """

    def __init__(self, skills: Iterable[SkillMetadata], always: str | Iterable[str] = ()) -> None:
        self._rules = {skill.name: skill.allowed_tools for skill in skills}
        # Tools that no skill takes away, such as the Skill tool; a text is one of them.
        self._always = (always,) if isinstance(always, str) else tuple(always)
        self._active: dict[str, tuple[str, ...]] = {}

    @property
    def allowed(self) -> dict[str, tuple[str, ...]]:
        """What each skill that names tools allows, active or not."""
        return {name: rules for name, rules in self._rules.items() if rules}

    def activate(self, name: str) -> None:
        """From here on the skill's rules count."""
        self._active[name] = self._rules.get(name, ())

    def refusal(self, tool: str, argument: str = "") -> str | None:
        """Why a call is refused, in a line for the model; `None` if it may go on."""
        rules = self._active.values()
        if not self._active or not all(rules) or tool in self._always:
            return None
        if any(is_tool_allowed(one, tool, argument) for one in rules):
            return None
        known = ", ".join(dict.fromkeys(rule for one in rules for rule in one))
        return f"Error: {tool!r} is not among the tools that the active skills allow: {known}"
