"""The prompt methods of the MCP server.

Prompts with files are omitted: clients read them as resources or with tools.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcp_types import PromptReference

from skillhall._internal.mcp.errors import build_invalid_params
from skillhall._internal.mcp.serializers import serialize_completion, serialize_page
from skillhall._internal.mcp.skill_index import CURSOR_PREFIX, find_start
from skillhall._internal.prompt_server.prompt_model import serialize_prompt
from skillhall._internal.prompt_server.skills_as_prompts import SkillPrompts
from skillhall._internal.render.escape import to_single_line
from skillhall.errors import PromptNotFound

if TYPE_CHECKING:
    from mcp_types import CompleteRequestParams, GetPromptRequestParams, PaginatedRequestParams

    from skillhall._internal.catalog.skill_view import SkillProvider
    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot
    from skillhall._internal.prompt_server.service import PromptService

PROMPTS_PAGE_SIZE = 200


class PromptSource:
    """The prompts of a service; without a service, all skills of the provider."""

    def __init__(self, provider: SkillProvider, service: PromptService | None) -> None:
        self._provider = provider
        self._service = service
        self._last: SkillPrompts | None = None

    def current(self) -> PromptSnapshot | SkillPrompts:
        """Return the current prompts. Raises: PromptsSourceError."""
        if self._service is not None:
            return self._service.cached_snapshot() or self._service.snapshot()
        view = self._provider.current_view()
        if self._last is None or self._last.digest != view.revision:
            # Hidden skills too: users call prompts, models do not.
            self._last = SkillPrompts(view.revision, view.all_skills, view.profile)
        return self._last

    def list_page(self, params: PaginatedRequestParams) -> JsonObject:
        """Return a page of prompts, sorted by name. Raises: MCPError, PromptsSourceError."""
        prompts = self.current()
        names = sorted(prompts.names)
        rows: list[JsonObject] = []
        for name in names[find_start(names, params.cursor) :]:
            prompt = prompts.summary(name)
            if prompt.has_files:
                continue
            if len(rows) == PROMPTS_PAGE_SIZE:
                return serialize_page("prompts", rows, f"{CURSOR_PREFIX}{rows[-1]['name']}")
            rows.append(serialize_prompt(prompt))
        return serialize_page("prompts", rows, None)

    def complete(self, params: CompleteRequestParams) -> JsonObject:
        """Return no values: the arguments of prompts are free text.

        Raises: PromptNotFound (also for prompts with files), MCPError for an unknown argument,
        PromptsSourceError.
        """
        name = params.ref.name if isinstance(params.ref, PromptReference) else ""
        prompt = self.current().summary(name)
        if prompt.has_files:
            raise PromptNotFound(name)
        if params.argument.name not in [argument.name for argument in prompt.arguments]:
            problem = f"unknown argument: {to_single_line(params.argument.name[:80])!r}"
            raise build_invalid_params(problem, "invalid_argument")
        return serialize_completion((), "", 0)

    def get(self, params: GetPromptRequestParams) -> JsonObject:
        """Return a prompt with its arguments filled in.

        Raises: PromptNotFound (also for prompts with files), MissingArguments, PromptsSourceError.
        """
        prompts = self.current()
        if prompts.summary(params.name).has_files:
            raise PromptNotFound(params.name)
        response = json.loads(prompts.prompt_json(params.name, params.arguments))
        return {field: response[field] for field in ("description", "messages")}
