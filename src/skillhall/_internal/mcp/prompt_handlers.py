"""The prompt methods. Prompts with files are omitted; clients use resources or tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from skillhall._internal.mcp.cursors import CURSOR_PREFIX, find_start
from skillhall._internal.mcp.serializers import mark_complete, serialize_page
from skillhall._internal.prompts.skill_prompts import SkillPrompts
from skillhall.errors import PromptNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.catalog.skill_view import SkillProvider
    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.prompts.prompt_model import Prompt

PROMPTS_PAGE_SIZE = 200


class PromptList(Protocol):
    """A snapshot of prompts, as far as MCP needs it."""

    @property
    def digest(self) -> str:
        """Changes with the content of any prompt."""

    @property
    def names(self) -> Sequence[str]:
        """The names of all prompts, in order."""

    def summary(self, name: str) -> Prompt:
        """Return a prompt without file contents. Raises: PromptNotFound, PromptsSourceError."""

    def prompt_json(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        """Return the REST response for a prompt, with its arguments filled in.

        Raises: PromptNotFound, MissingArguments, InvalidArguments, PromptsSourceError.
        """


class PromptProvider(Protocol):
    """A source of prompts."""

    def cached_snapshot(self) -> PromptList | None:
        """Return the cached prompts, if any. Never blocks."""

    def snapshot(self) -> PromptList:
        """Return the current prompts. Raises: PromptsSourceError."""


class SkillPromptProvider:
    """Skills as prompts, for servers without a prompt service."""

    def __init__(self, provider: SkillProvider) -> None:
        self._provider = provider
        self._last: SkillPrompts | None = None

    def cached_snapshot(self) -> None:
        """Return nothing: only a scan can tell whether the skills changed."""

    def snapshot(self) -> PromptList:
        """Return the current skills as prompts."""
        view = self._provider.current_view()
        if self._last is None or self._last.digest != view.revision:
            self._last = SkillPrompts(view.revision, view.all_skills, view.profile)
        return self._last


def list_prompts(prompts: PromptList, cursor: str | None) -> JsonObject:
    """Return a page of prompts, by name. Raises: MCPError for an invalid cursor."""
    names = sorted(prompts.names)
    rows: list[JsonObject] = []
    for name in names[find_start(names, cursor) :]:
        prompt = prompts.summary(name)
        if prompt.has_files:
            continue
        if len(rows) == PROMPTS_PAGE_SIZE:
            return serialize_page("prompts", rows, f"{CURSOR_PREFIX}{rows[-1]['name']}")
        rows.append(_serialize_prompt(prompt))
    return serialize_page("prompts", rows, None)


def get_prompt(prompts: PromptList, name: str, values: Mapping[str, str] | None) -> JsonObject:
    """Return a prompt with its arguments filled in.

    Raises: PromptNotFound (also for prompts with files), MissingArguments, PromptsSourceError.
    """
    if prompts.summary(name).has_files:
        raise PromptNotFound(name)
    response = json.loads(prompts.prompt_json(name, values))
    return mark_complete({"description": response["description"], "messages": response["messages"]})


def _serialize_prompt(prompt: Prompt) -> JsonObject:
    entry: JsonObject = {"name": prompt.name, "description": prompt.description}
    if prompt.arguments:
        entry["arguments"] = [argument._asdict() for argument in prompt.arguments]
    return entry
