"""Prompts of one snapshot; those that need files are left to resources and tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from skillhall._internal.mcp.cursors import AFTER, position
from skillhall._internal.mcp.serializers import complete, page
from skillhall._internal.prompts.skill_prompts import SkillPrompts
from skillhall.errors import PromptNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.catalog.skill_view import Offering
    from skillhall._internal.mcp.serializers import Wire
    from skillhall._internal.prompts.prompt_model import Prompt

PROMPTS_IN_PAGE = 200


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

    def get_data(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        """One prompt's answer, as REST gives it, with its arguments filled in.

        Raises: PromptNotFound, MissingArguments, InvalidArguments, PromptsSourceError.
        """


class PromptSupply(Protocol):
    """Where prompts come from."""

    def current(self) -> PromptList | None:
        """What is handed out now, if it is at hand; never waits."""

    def snapshot(self) -> PromptList:
        """What is handed out now. Raises: PromptsSourceError."""


class SkillPromptSupply:
    """The skills of an offering as prompts, where no counter hands any out."""

    def __init__(self, offering: Offering) -> None:
        self._offering = offering
        self._last: SkillPrompts | None = None

    def current(self) -> None:
        """Nothing is at hand: only a look tells whether the skills are what they were."""

    def snapshot(self) -> PromptList:
        """The prompts that the skills make now."""
        offer = self._offering.offer()
        if self._last is None or self._last.digest != offer.revision:
            self._last = SkillPrompts(offer.revision, offer.known, offer.profile)
        return self._last


def prompts_page(prompts: PromptList, cursor: str | None) -> Wire:
    """A part of the list, by name. Raises: MCPError for a cursor that is none of ours."""
    names = sorted(prompts.names)
    told: list[Wire] = []
    for name in names[position(names, cursor) :]:
        prompt = prompts.summary(name)
        if prompt.has_files:
            continue
        if len(told) == PROMPTS_IN_PAGE:
            return page("prompts", told, f"{AFTER}{told[-1]['name']}")
        told.append(_told(prompt))
    return page("prompts", told, None)


def get_prompt(prompts: PromptList, name: str, values: Mapping[str, str] | None) -> Wire:
    """One prompt with its arguments filled in.

    Raises: PromptNotFound also for one that needs files, MissingArguments, PromptsSourceError.
    """
    if prompts.summary(name).has_files:
        raise PromptNotFound(name)
    told = json.loads(prompts.get_data(name, values))
    return complete({"description": told["description"], "messages": told["messages"]})


def _told(prompt: Prompt) -> Wire:
    told: Wire = {"name": prompt.name, "description": prompt.description}
    if prompt.arguments:
        told["arguments"] = [argument._asdict() for argument in prompt.arguments]
    return told
