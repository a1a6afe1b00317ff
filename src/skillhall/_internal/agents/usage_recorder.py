"""Usage recorder: records which skills an agent is offered and uses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skillhall._internal.agents.tool_definition import get_argument
from skillhall._internal.storage.usage_log import UsageLog, UsageRecord
from skillhall.errors import SkillNotApproved, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillhall._internal.agents.tool_definition import ToolResult
    from skillhall._internal.catalog.skill_view import SkillView
    from skillhall._internal.settings import Settings
    from skillhall._internal.storage.usage_log import UsageEvent

_TOOL_EVENTS: Mapping[str, UsageEvent] = {"load_skill": "loaded", "read_skill_file": "read"}


@dataclass(frozen=True, slots=True)
class UsageRecorder:
    """Writes the usage of one agent to the usage log, unless it is disabled."""

    settings: Settings
    agent: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def record(self, event: UsageEvent, skills: tuple[str, ...], tokens: int) -> None:
        """Record the event for these skills. Never fails."""
        if self.settings.log_usage and self.settings.data_directory:
            timestamp = self.now().isoformat(timespec="seconds")
            record = UsageRecord(timestamp, self.agent, event, skills, tokens)
            UsageLog(self.settings.data_directory).record(record)

    def record_call(
        self, view: SkillView, tool: str, arguments: object, result: ToolResult, tokens: int
    ) -> str:
        """Record a call of `load_skill` or `read_skill_file` for a skill of `view`.

        Returns the name of the skill; "" if there is none. Other tools are ignored.
        """
        event = _TOOL_EVENTS.get(tool)
        if event is None:
            return ""
        try:
            name = view.find(str(get_argument(arguments, "name"))).name
        except (SkillNotFound, SkillNotApproved):  # a made-up name, or the skill is gone or held
            return ""
        self.record("failed" if result.is_error else event, (name,), tokens)
        return name
