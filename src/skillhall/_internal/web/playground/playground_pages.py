"""The playground: talk to an agent that uses the skills, and see which ones it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fastapi import Request
from starlette.responses import Response

from skillhall._internal.agents.agent_skills import DEFAULT_AGENT, AgentSkills
from skillhall._internal.agents.chat import INSTALL_COMMAND, load_chat_class
from skillhall._internal.agents.chat.conversations import (
    MAX_MESSAGE_LENGTH,
    Conversation,
    Conversations,
)
from skillhall._internal.agents.config.agent_config import AgentDefinition, find_config, read_config
from skillhall._internal.http.credentials import read_cookie
from skillhall._internal.http.errors import error_status
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import HttpRequest
from skillhall._internal.http.response import ByteResponse, Ready
from skillhall._internal.web.forms import PageForm, read_page_form
from skillhall._internal.web.page_request import PageRequest
from skillhall._internal.web.playground.chat_stream import (
    NDJSON_TYPE,
    ChatStream,
    PendingReply,
    TurnRow,
)
from skillhall._internal.web.rendering import CSP_HEADER, Page, build_frame, redirect, render_page
from skillhall._internal.web.site import PageError, build_page_error, render_error_page
from skillhall.errors import ModelUnavailable, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillhall._internal.web.site import Site

PLAYGROUND_PATH = "/playground"
CONVERSATION_COOKIE = "skillhall_conversation"
TEXT_HEADER = (b"content-type", b"text/plain; charset=utf-8")
_COOKIE_LIFETIME = 24 * 3600  # seconds; conversations end long before
_MAX_NAME_LENGTH = 200  # characters of an agent's or a model's name in a form


class ListingSize(NamedTuple):
    """What the agent is told of skills at every turn."""

    skills: int
    tokens: int


@dataclass(frozen=True, slots=True)
class PlaygroundPage(Page):
    """The conversation so far, and the form that goes on with it."""

    agents: tuple[AgentDefinition, ...]
    models: tuple[str, ...]
    agent: str
    model: str  # "" is the agent's own
    message: str
    max_message_length: int
    turns: tuple[TurnRow, ...]
    listing_size: ListingSize | None
    is_enabled: bool
    problem: PageError | None


class _Config(NamedTuple):
    """Who can be talked to, and with which models."""

    agents: tuple[AgentDefinition, ...]
    models: tuple[str, ...]
    error: SkillhallError | None = None

    def find_agent(self, identity: str) -> AgentDefinition:
        """The agent of that id. Raises: Refused."""
        for one in self.agents:
            if one.id == identity:
                return one
        raise HttpError("invalid_argument", f"there is no agent {identity[:_MAX_NAME_LENGTH]!r}")


class PlaygroundPages:
    """The calls of this page; `stopped` ends when the server is about to stop."""

    def __init__(self, site: Site, wait_for_shutdown: Callable[[], Awaitable[None]]) -> None:
        self._site = site
        self._wait_for_shutdown = wait_for_shutdown
        self._conversations = Conversations()
        self._skills: dict[str, AgentSkills] = {}  # of each agent, as last configured

    def show(self, request: PageRequest) -> ByteResponse:
        """The conversation of this browser."""
        return self._render_page(request)

    def show_prompt(self, request: PageRequest) -> ByteResponse:
        """The system prompt of an agent, as text: exactly what its model is sent."""
        agent = self._read_config().find_agent(request.query.get("agent") or DEFAULT_AGENT)
        text = self._skills_for(agent).system_prompt()
        return ByteResponse(200, (TEXT_HEADER, CSP_HEADER), (text.encode("utf-8", "replace"),))

    def start_over(self, request: PageRequest) -> ByteResponse:
        """Begin anew."""
        self._conversations.remove(_conversation_cookie(request))
        return redirect(PLAYGROUND_PATH)

    async def send_message(self, request: Request) -> Response:
        """Send a message. Scripts get the answer as it comes, others the page once it is whole."""
        exchange = HttpRequest(request.scope, request.receive)
        run = self._site.workers.run
        try:
            visit = PageRequest.from_http(exchange, await read_page_form(exchange))
        except HttpError as refusal:
            return Ready(render_error_page(PageRequest.from_http(exchange, PageForm()), refusal))
        try:
            talk = await run(self._start_turn, visit)
        except SkillhallError as error:
            return Ready(await run(self._render_page, visit, error))
        is_stream = exchange.header(b"accept") == NDJSON_TYPE
        return ChatStream(self._site, talk, self._wait_for_shutdown, is_stream=is_stream)

    def _start_turn(self, request: PageRequest) -> PendingReply:
        message = request.form.text("message").strip()
        if not message:
            raise HttpError("invalid_argument", request.translations("playground.empty_message"))
        conversation = self._get_conversation(request)
        turn = self._conversations.begin_turn(conversation, message)
        cookie = self._site.credentials.build_cookie(
            CONVERSATION_COOKIE, conversation.id, _COOKIE_LIFETIME
        )
        events = self._conversations.stream_reply(conversation, turn)
        return PendingReply(request, turn, events, PLAYGROUND_PATH, ((b"set-cookie", cookie),))

    def _get_conversation(self, request: PageRequest) -> Conversation:
        """The one that goes on, unless another agent or model is chosen. Raises: SkillhallError."""
        config = self._read_config()
        agent = config.find_agent(request.form.text("agent") or DEFAULT_AGENT)
        model = self._select_model(request, config, agent)
        known = self._conversations.find(_conversation_cookie(request))
        if known is not None and (known.agent, known.model) == (agent.id, model):
            return known
        opened = load_chat_class()
        if opened is None:
            raise ModelUnavailable(
                model, "the chat is not installed", INSTALL_COMMAND, code="not_ready"
            )
        return Conversation(agent.id, model, opened(self._skills_for(agent), model))

    def _select_model(self, request: PageRequest, config: _Config, agent: AgentDefinition) -> str:
        """A model that the operator configured: it is the operator who pays. Raises: Refused."""
        asked = request.form.text("model")
        if asked and asked not in config.models:
            raise HttpError(
                "forbidden", f"the model {asked[:_MAX_NAME_LENGTH]!r} is not configured"
            )
        chosen = asked or agent.model or self._site.settings.model
        if not chosen:
            raise HttpError("not_ready", request.translations("playground.no_model"))
        return chosen

    def _read_config(self) -> _Config:
        """The agents of the config, as it is now, after the one with all skills of the server."""
        settings, own = self._site.settings, AgentDefinition(DEFAULT_AGENT)
        found, error = find_config(settings.working_directory), None
        agents: tuple[AgentDefinition, ...] = ()
        try:
            agents = read_config(found).agents if found else ()
        except SkillhallError as problem:
            error = problem
        named = tuple(one for one in agents if one.id != DEFAULT_AGENT)
        models = (settings.model, *(one.model for one in named))
        return _Config((own, *named), tuple(dict.fromkeys(filter(None, models))), error)

    def _skills_for(self, agent: AgentDefinition) -> AgentSkills:
        known = self._skills.get(agent.id)
        if known is None or known.agent != agent:
            is_own = agent.id == DEFAULT_AGENT
            site = self._site
            known = site.agent_skills if is_own else AgentSkills(agent, site.settings)
            self._skills[agent.id] = known
        return known

    def _render_page(
        self, request: PageRequest, error: SkillhallError | None = None
    ) -> ByteResponse:
        config, conversation = (
            self._read_config(),
            self._conversations.find(_conversation_cookie(request)),
        )
        chosen = request.form.text("agent") or (conversation.agent if conversation else "")
        turns = conversation.turns if conversation else ()
        failed = turns[-1].message if turns and turns[-1].error else ""
        problem = error or config.error
        page = PlaygroundPage(
            build_frame(request, request.translations("playground.title"), "playground"),
            agents=config.agents,
            models=config.models,
            agent=chosen or DEFAULT_AGENT,
            model=request.form.text("model") or (conversation.model if conversation else ""),
            message=request.form.text("message") or failed,
            max_message_length=MAX_MESSAGE_LENGTH,
            turns=tuple(TurnRow.from_turn(request, turn, self._site.markdown) for turn in turns),
            listing_size=self._listing_size(config, chosen),
            is_enabled=bool(config.models),
            problem=None if problem is None else build_page_error(request, problem),
        )
        status = max(422, error_status(error).http_status) if error else 200
        return render_page("playground.html", page, status=status)

    def _listing_size(self, config: _Config, agent_id: str) -> ListingSize | None:
        try:
            built = self._skills_for(config.find_agent(agent_id or DEFAULT_AGENT)).snapshot()
        except SkillhallError:
            return None
        return ListingSize(len(built.skill_view), built.plan.tokens)


def _conversation_cookie(request: PageRequest) -> str:
    return read_cookie(request.http_request.header(b"cookie"), CONVERSATION_COOKIE)
