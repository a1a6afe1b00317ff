"""Playground: chat with an agent and see which skills it loads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import PlainTextResponse, Response

from skillhall._internal.agents.agent_skills import DEFAULT_AGENT, AgentSkills
from skillhall._internal.agents.chat import INSTALL_COMMAND, load_chat_class
from skillhall._internal.agents.chat.conversations import (
    MAX_MESSAGE_LENGTH,
    Conversation,
    Conversations,
)
from skillhall._internal.agents.config.agent_config import AgentDefinition, find_config, read_config
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.web.playground.chat_stream import PLAYGROUND_PATH, ChatStream, TurnRow
from skillhall._internal.web.rendering import CSP_HEADER, form_status, redirect, render
from skillhall._internal.web.site import PageHandlers
from skillhall.errors import ModelUnavailable, SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import Site

CONVERSATION_COOKIE = "skillhall_conversation"
_COOKIE_LIFETIME = 24 * 3600  # seconds; conversations expire earlier
_MAX_NAME_LENGTH = 200  # characters of a submitted name in an error message


class _Config(NamedTuple):
    """Agents and models to choose from."""

    agents: tuple[AgentDefinition, ...]
    models: tuple[str, ...]
    error: SkillhallError | None = None

    def find_agent(self, agent_id: str) -> AgentDefinition:
        """Return the agent with this id. Raises: HttpError."""
        for agent in self.agents:
            if agent.id == agent_id:
                return agent
        raise HttpError("invalid_argument", f"agent not found: {agent_id[:_MAX_NAME_LENGTH]!r}")


class PlaygroundPages(PageHandlers):
    """Handlers of this page."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._conversations = Conversations()
        self._skills: dict[str, AgentSkills] = {}  # by agent id

    def show(self, request: PageRequest, error: SkillhallError | None = None) -> Response:
        """Show the conversation of this browser, and the form for the next message."""
        config = self._read_config()
        conversation = self._conversations.find(request.cookies.get(CONVERSATION_COOKIE, ""))
        agent = request.field("agent") or (conversation.agent if conversation else "")
        turns = conversation.turns if conversation else ()
        failed_message = turns[-1].message if turns and turns[-1].error else ""
        return render(
            request,
            "playground.html",
            error=error or config.error,
            status=form_status(error),
            agents=config.agents,
            models=config.models,
            agent=agent or DEFAULT_AGENT,
            model=request.field("model") or (conversation.model if conversation else ""),
            message=request.field("message") or failed_message,
            max_message_length=MAX_MESSAGE_LENGTH,
            turns=[TurnRow.from_turn(request, turn, self._site.markdown) for turn in turns],
            listing_size=self._listing_size(config, agent),
            is_enabled=bool(config.models),
        )

    def show_prompt(self, request: PageRequest) -> Response:
        """Return the system prompt of an agent as plain text, exactly as it is sent."""
        agent = self._read_config().find_agent(request.query_params.get("agent") or DEFAULT_AGENT)
        text = self._skills_for(agent).system_prompt()
        return PlainTextResponse(text.encode("utf-8", "replace"), headers=CSP_HEADER)

    def start_over(self, request: PageRequest) -> Response:
        """Start a new conversation."""
        self._conversations.remove(request.cookies.get(CONVERSATION_COOKIE, ""))
        return redirect(PLAYGROUND_PATH)

    def send_message(self, request: PageRequest) -> Response:
        """Send a message; scripts get the reply as a stream, others a redirect."""
        message = request.field("message").strip()
        try:
            if not message:
                text = request.translations("playground.empty_message")
                raise HttpError("invalid_argument", text)
            conversation = self._get_conversation(request)
            turn = self._conversations.begin_turn(conversation, message)
        except SkillhallError as error:
            return self.show(request, error)
        events = self._conversations.stream_reply(conversation, turn)
        response = ChatStream(self._site, request, turn, events)
        self._site.add_cookie(response, CONVERSATION_COOKIE, conversation.id, _COOKIE_LIFETIME)
        return response

    def _get_conversation(self, request: PageRequest) -> Conversation:
        """Continue the conversation, or start one for another agent or model.

        Raises: SkillhallError.
        """
        config = self._read_config()
        agent = config.find_agent(request.field("agent") or DEFAULT_AGENT)
        model = self._select_model(request, config, agent)
        current = self._conversations.find(request.cookies.get(CONVERSATION_COOKIE, ""))
        if current is not None and (current.agent, current.model) == (agent.id, model):
            return current
        chat_class = load_chat_class()
        if chat_class is None:
            reason = "the chat is not installed"
            raise ModelUnavailable(model, reason, INSTALL_COMMAND, code="not_ready")
        return Conversation(agent.id, model, chat_class(self._skills_for(agent), model))

    def _select_model(self, request: PageRequest, config: _Config, agent: AgentDefinition) -> str:
        """Return the chosen model or the default. Raises: HttpError.

        Only configured models are allowed: the server's API key pays for them.
        """
        chosen = request.field("model")
        if chosen and chosen not in config.models:
            message = f"model is not configured: {chosen[:_MAX_NAME_LENGTH]!r}"
            raise HttpError("forbidden", message)
        model = chosen or agent.model or self._site.settings.model
        if not model:
            raise HttpError("not_ready", request.translations("playground.no_model"))
        return model

    def _read_config(self) -> _Config:
        """Return the default agent with all skills, then the agents of the config file."""
        settings, default = self._site.settings, AgentDefinition(DEFAULT_AGENT)
        path, config_error = find_config(settings.working_directory), None
        agents: tuple[AgentDefinition, ...] = ()
        try:
            agents = read_config(path).agents if path else ()
        except SkillhallError as error:
            config_error = error
        agents = tuple(agent for agent in agents if agent.id != DEFAULT_AGENT)
        models = (settings.model, *(agent.model for agent in agents))
        return _Config((default, *agents), tuple(dict.fromkeys(filter(None, models))), config_error)

    def _skills_for(self, agent: AgentDefinition) -> AgentSkills:
        if agent.id == DEFAULT_AGENT:
            return self._site.agent_skills
        skills = self._skills.get(agent.id)
        if skills is None or skills.agent != agent:  # the config file was edited
            skills = self._skills[agent.id] = AgentSkills(agent, self._site.settings)
        return skills

    def _listing_size(self, config: _Config, agent_id: str) -> dict[str, int] | None:
        """Return the size of the skill listing that is sent with every turn."""
        try:
            snapshot = self._skills_for(config.find_agent(agent_id or DEFAULT_AGENT)).snapshot()
        except SkillhallError:
            return None
        return {"skills": len(snapshot.skill_view), "tokens": snapshot.plan.tokens}
