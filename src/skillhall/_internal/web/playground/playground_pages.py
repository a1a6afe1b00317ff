"""The playground: talk to an agent that uses the skills, and see which ones it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fastapi import Request
from starlette.responses import Response

from skillhall._internal.agents.agent_skills import DEFAULT_AGENT, AgentSkills
from skillhall._internal.agents.chat import INSTALL, chat_class
from skillhall._internal.agents.chat.conversations import MAX_MESSAGE, Conversation, Conversations
from skillhall._internal.agents.config.agent_config import AgentDefinition, find_config, read_config
from skillhall._internal.http.credentials import cookie_in
from skillhall._internal.http.errors import status_of
from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.request import Exchange
from skillhall._internal.http.response import Answer, Ready
from skillhall._internal.web.forms import Form, read_form
from skillhall._internal.web.page_request import Visit
from skillhall._internal.web.playground.chat_stream import STREAM, Talk, Talking, TurnRow
from skillhall._internal.web.rendering import POLICY, Page, frame_of, page_answer, redirect
from skillhall._internal.web.site import Problem, error_page, problem_of
from skillhall.errors import ModelUnavailable, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillhall._internal.web.site import Site

PLAYGROUND = "/playground"
COOKIE = "skillhall_conversation"
TEXT = (b"content-type", b"text/plain; charset=utf-8")
_DAY = 24 * 3600  # seconds; conversations end long before
_SHOWN = 200  # characters of an agent's or a model's name in a form


class Budget(NamedTuple):
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
    longest: int
    turns: tuple[TurnRow, ...]
    budget: Budget | None
    is_on: bool
    problem: Problem | None


class _Config(NamedTuple):
    """Who can be talked to, and with which models."""

    agents: tuple[AgentDefinition, ...]
    models: tuple[str, ...]
    error: SkillhallError | None = None

    def agent(self, identity: str) -> AgentDefinition:
        """The agent of that id. Raises: Refused."""
        for one in self.agents:
            if one.id == identity:
                return one
        raise Refused("invalid_argument", f"there is no agent {identity[:_SHOWN]!r}")


class PlaygroundPages:
    """The calls of this page; `stopped` ends when the server is about to stop."""

    def __init__(self, site: Site, stopped: Callable[[], Awaitable[None]]) -> None:
        self._site = site
        self._stopped = stopped
        self._conversations = Conversations()
        self._skills: dict[str, AgentSkills] = {}  # of each agent, as last configured

    def show(self, visit: Visit) -> Answer:
        """The conversation of this browser."""
        return self._page(visit)

    def show_prompt(self, visit: Visit) -> Answer:
        """The system prompt of an agent, as text: exactly what its model is sent."""
        agent = self._config().agent(visit.query.get("agent") or DEFAULT_AGENT)
        text = self._skills_of(agent).text()
        return Answer(200, (TEXT, POLICY), (text.encode("utf-8", "replace"),))

    def forget(self, visit: Visit) -> Answer:
        """Begin anew."""
        self._conversations.end(_cookie(visit))
        return redirect(PLAYGROUND)

    async def say(self, request: Request) -> Response:
        """Send a message. Scripts get the answer as it comes, others the page once it is whole."""
        exchange = Exchange(request.scope, request.receive)
        run = self._site.blocking.run
        try:
            visit = Visit.of(exchange, await read_form(exchange))
        except Refused as refusal:
            return Ready(error_page(Visit.of(exchange, Form()), refusal))
        try:
            talk = await run(self._begun, visit)
        except SkillhallError as error:
            return Ready(await run(self._page, visit, error))
        is_stream = exchange.header(b"accept") == STREAM
        return Talking(self._site, talk, self._stopped, is_stream=is_stream)

    def _begun(self, visit: Visit) -> Talk:
        message = visit.form.text("message").strip()
        if not message:
            raise Refused("invalid_argument", visit.texts("playground.say_something"))
        conversation = self._conversation(visit)
        turn = self._conversations.begin(conversation, message)
        cookie = self._site.keys.cookie(COOKIE, conversation.id, _DAY)
        events = self._conversations.answered(conversation, turn)
        return Talk(visit, turn, events, PLAYGROUND, ((b"set-cookie", cookie),))

    def _conversation(self, visit: Visit) -> Conversation:
        """The one that goes on, unless another agent or model is chosen. Raises: SkillhallError."""
        config = self._config()
        agent = config.agent(visit.form.text("agent") or DEFAULT_AGENT)
        model = self._model(visit, config, agent)
        known = self._conversations.find(_cookie(visit))
        if known is not None and (known.agent, known.model) == (agent.id, model):
            return known
        opened = chat_class()
        if opened is None:
            raise ModelUnavailable(model, "the chat is not installed", INSTALL, code="not_ready")
        return Conversation(agent.id, model, opened(self._skills_of(agent), model))

    def _model(self, visit: Visit, config: _Config, agent: AgentDefinition) -> str:
        """A model that the operator configured: it is the operator who pays. Raises: Refused."""
        asked = visit.form.text("model")
        if asked and asked not in config.models:
            raise Refused("forbidden", f"the model {asked[:_SHOWN]!r} is not configured")
        chosen = asked or agent.model or self._site.settings.model
        if not chosen:
            raise Refused("not_ready", visit.texts("playground.no_model"))
        return chosen

    def _config(self) -> _Config:
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

    def _skills_of(self, agent: AgentDefinition) -> AgentSkills:
        known = self._skills.get(agent.id)
        if known is None or known.agent != agent:
            is_own = agent.id == DEFAULT_AGENT
            site = self._site
            known = site.agent if is_own else AgentSkills(agent, site.settings)
            self._skills[agent.id] = known
        return known

    def _page(self, visit: Visit, error: SkillhallError | None = None) -> Answer:
        config, conversation = self._config(), self._conversations.find(_cookie(visit))
        chosen = visit.form.text("agent") or (conversation.agent if conversation else "")
        turns = conversation.turns if conversation else ()
        failed = turns[-1].message if turns and turns[-1].failure else ""
        problem = error or config.error
        page = PlaygroundPage(
            frame_of(visit, visit.texts("playground.title"), "playground"),
            agents=config.agents,
            models=config.models,
            agent=chosen or DEFAULT_AGENT,
            model=visit.form.text("model") or (conversation.model if conversation else ""),
            message=visit.form.text("message") or failed,
            longest=MAX_MESSAGE,
            turns=tuple(TurnRow.of(visit, turn, self._site.markdown) for turn in turns),
            budget=self._budget(config, chosen),
            is_on=bool(config.models),
            problem=None if problem is None else problem_of(visit, problem),
        )
        status = max(422, status_of(error).http) if error else 200
        return page_answer("playground.html", page, status=status)

    def _budget(self, config: _Config, chosen: str) -> Budget | None:
        try:
            built = self._skills_of(config.agent(chosen or DEFAULT_AGENT)).current()
        except SkillhallError:
            return None
        return Budget(len(built.offer), built.plan.tokens)


def _cookie(visit: Visit) -> str:
    return cookie_in(visit.exchange.header(b"cookie"), COOKIE)
