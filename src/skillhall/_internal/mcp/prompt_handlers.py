"""Prompts of one snapshot; those that need files are left to resources and tools."""

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
    """What MCP needs of a snapshot of prompts."""

    @property
    def digest(self) -> str:
        """Changes with whatever a list or an answer could say."""

    @property
    def names(self) -> Sequence[str]:
        """The names of all prompts, in order."""

    def summary(self, name: str) -> Prompt:
        """One prompt without the files' bytes. Raises: PromptNotFound, PromptsSourceError."""

    def prompt_json(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        """One prompt's answer, as REST gives it, with its arguments filled in.

        Raises: PromptNotFound, MissingArguments, InvalidArguments, PromptsSourceError.
        """


class PromptProvider(Protocol):
    """Where prompts come from."""

    def cached_snapshot(self) -> PromptList | None:
        """What is handed out now, if it is at hand; never waits."""

    def snapshot(self) -> PromptList:
        """What is handed out now. Raises: PromptsSourceError."""


class SkillPromptProvider:
    """The skills of an offering as prompts, where no counter hands any out."""

    def __init__(self, provider: SkillProvider) -> None:
        self._provider = provider
        self._last: SkillPrompts | None = None

    def cached_snapshot(self) -> None:
        """Nothing is at hand: only a look tells whether the skills are what they were."""

    def snapshot(self) -> PromptList:
        """The prompts that the skills make now."""
        offer = self._provider.current_view()
        if self._last is None or self._last.digest != offer.revision:
            self._last = SkillPrompts(offer.revision, offer.all_skills, offer.profile)
        return self._last


def list_prompts(prompts: PromptList, cursor: str | None) -> JsonObject:
    """A part of the list, by name. Raises: MCPError for a cursor that is none of ours."""
    names = sorted(prompts.names)
    told: list[JsonObject] = []
    for name in names[find_start(names, cursor) :]:
        prompt = prompts.summary(name)
        if prompt.has_files:
            continue
        if len(told) == PROMPTS_PAGE_SIZE:
            return serialize_page("prompts", told, f"{CURSOR_PREFIX}{told[-1]['name']}")
        told.append(_serialize_prompt(prompt))
    return serialize_page("prompts", told, None)


def get_prompt(prompts: PromptList, name: str, values: Mapping[str, str] | None) -> JsonObject:
    """One prompt with its arguments filled in.

    Raises: PromptNotFound also for one that needs files, MissingArguments, PromptsSourceError.
    """
    if prompts.summary(name).has_files:
        raise PromptNotFound(name)
    told = json.loads(prompts.prompt_json(name, values))
    return mark_complete({"description": told["description"], "messages": told["messages"]})


def _serialize_prompt(prompt: Prompt) -> JsonObject:
    told: JsonObject = {"name": prompt.name, "description": prompt.description}
    if prompt.arguments:
        told["arguments"] = [argument._asdict() for argument in prompt.arguments]
    return told
