"""Playground: chat with an agent and see which skills it loads."""

from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import PlainTextResponse, Response

from skillhall._internal.agents.agent_skills import DEFAULT_AGENT, AgentSkills
from skillhall._internal.agents.chat import INSTALL_COMMAND, load_chat_class
from skillhall._internal.agents.chat.conversations import MAX_MESSAGE_LENGTH, Conversation
from skillhall._internal.agents.chat.reply_thread import REPLY_TIMEOUT
from skillhall._internal.agents.config.agent_config import AgentDefinition, find_config, read_config
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.web.page_request import PageRequest, on_error, redirect
from skillhall._internal.web.playground.chat_stream import (
    PLAYGROUND_PATH,
    ChatStream,
    TurnRow,
    is_stream,
)
from skillhall._internal.web.rendering import CSP_HEADER, form_status, render, render_problem
from skillhall._internal.web.site import Site
from skillhall.errors import Busy, ModelUnavailable, SkillhallError

CONVERSATION_COOKIE = "skillhall_conversation"
MAX_COMPLETIONS = 8
_COOKIE_LIFETIME = 24 * 3600  # seconds; conversations expire earlier
_MAX_NAME_LENGTH = 200  # characters of a submitted name in an error message


class _Config(NamedTuple):
    """Agents and models to choose from."""

    agents: tuple[AgentDefinition, ...]
    models: tuple[str, ...]
    error: SkillhallError | None = None

    def find_agent(self, agent_id: str) -> AgentDefinition:
        """Return the agent with this id; "" means the default agent. Raises: HttpError."""
        for agent in self.agents:
            if agent.id == (agent_id or DEFAULT_AGENT):
                return agent
        raise HttpError("invalid_argument", f"agent not found: {agent_id[:_MAX_NAME_LENGTH]!r}")


def show(request: PageRequest) -> Response:
    """Show the conversation of this browser, and the form for the next message."""
    conversation, query = find_conversation(request), request.query_params
    agent_id = request.field("agent") or query.get("agent", "")
    agent_id = agent_id or (conversation.agent if conversation else "")
    config = _read_config(request.site, agent_id)
    turns = conversation.turns if conversation else ()
    failed_message = turns[-1].message if turns and turns[-1].error else ""
    try:
        snapshot = _skills_for(request.site, config.find_agent(agent_id)).snapshot()
        listing_size = {"skills": len(snapshot.skill_view), "tokens": snapshot.plan.tokens}
    except SkillhallError:
        listing_size = None
    return render(
        request,
        "playground.html",
        error=request.error or config.error,
        status=form_status(request.error),
        agents=config.agents,
        models=config.models,
        agent=agent_id or DEFAULT_AGENT,
        model=request.field("model") or (conversation.model if conversation else ""),
        message=request.field("message") or failed_message or query.get("message", ""),
        max_message_length=MAX_MESSAGE_LENGTH,
        turns=[TurnRow.from_turn(request, turn, n) for n, turn in enumerate(turns, 1)],
        listing_size=listing_size,  # sent with every turn
        is_enabled=bool(config.models),
    )


def show_prompt(request: PageRequest) -> Response:
    """Return the system prompt of an agent, without a task, as plain text."""
    agent_id = request.query_params.get("agent", "")
    agent = _read_config(request.site, agent_id).find_agent(agent_id)
    text = _skills_for(request.site, agent).system_prompt()
    return PlainTextResponse(text.encode("utf-8", "replace"), headers=CSP_HEADER)


def complete_skill(request: PageRequest) -> Response:
    """Show the skills of an agent whose name starts with, or contains, a text."""
    query = request.query_params
    text = query.get("q", "").strip().casefold()[:_MAX_NAME_LENGTH]
    agent = _read_config(request.site, query.get("agent", "")).find_agent(query.get("agent", ""))
    view = _skills_for(request.site, agent).snapshot().skill_view
    found = [row for row in view if text in row.name.casefold()]
    found.sort(key=lambda row: (not row.name.casefold().startswith(text), row.name))
    return render(request, "completions.html", rows=found[:MAX_COMPLETIONS])


def try_session(request: PageRequest) -> Response:
    """Start a conversation with the compiled context of a session."""
    context = request.workspace.contexts.compile(request.path_params["id"])
    name = request.translations("playground.session", name=context.session.name)
    agent_id = request.site.session_agents.add(context.session.id, name, context.text)
    request.site.conversations.remove(request.cookies.get(CONVERSATION_COOKIE, ""))
    return redirect(f"{PLAYGROUND_PATH}?agent={quote(agent_id, safe='')}")


def start_over(request: PageRequest) -> Response:
    """Start a new conversation."""
    request.site.conversations.remove(request.cookies.get(CONVERSATION_COOKIE, ""))
    return redirect(PLAYGROUND_PATH)


def send_message(request: PageRequest) -> Response:
    """Send a message; scripts get the reply as a stream, plain forms a redirect."""
    try:
        request.site.conversations.check_capacity()
    except Busy as error:
        # A refusal must be cheap: the whole page, or opening a model, costs much more.
        if not is_stream(request):
            raise
        return render_problem(request, error)
    return _send_message(request)


@on_error(show)
def _send_message(request: PageRequest) -> Response:
    message, conversations = request.field("message").strip(), request.site.conversations
    if not message:
        raise HttpError("invalid_argument", request.translations("playground.empty_message"))
    conversation = _get_conversation(request)
    turn = conversations.begin_turn(conversation, message)
    # A stream has begun to answer; others must get an answer in time.
    timeout = REPLY_TIMEOUT if is_stream(request) else request.site.pools.timeout
    events = conversations.stream_reply(conversation, turn, timeout)
    response = ChatStream(request, turn, len(conversation.turns) + 1, events)
    request.add_cookie(response, CONVERSATION_COOKIE, conversation.id, _COOKIE_LIFETIME)
    return response


def find_conversation(request: PageRequest) -> Conversation | None:
    return request.site.conversations.find(request.cookies.get(CONVERSATION_COOKIE, ""))


def _get_conversation(request: PageRequest) -> Conversation:
    """Return the conversation with the chosen agent and model; start it if needed.

    Raises: SkillhallError.
    """
    config = _read_config(request.site, request.field("agent"))
    chosen = request.field("model")
    agent = config.find_agent(request.field("agent"))
    # Only configured models are allowed: the server's API key pays for them.
    if chosen and chosen not in config.models:
        message = f"model is not configured: {chosen[:_MAX_NAME_LENGTH]!r}"
        raise HttpError("forbidden", message)
    model = chosen or agent.model or request.site.settings.model
    if not model:
        raise HttpError("not_ready", request.translations("playground.no_model"))
    current = find_conversation(request)
    if current is not None and (current.agent, current.model) == (agent.id, model):
        return current
    chat_class = load_chat_class()
    if chat_class is None:
        hint = request.translations("playground.install", command=INSTALL_COMMAND)
        raise ModelUnavailable(model, "the chat packages are not installed", hint, code="not_ready")
    return Conversation(agent.id, model, chat_class(_skills_for(request.site, agent), model))


def _read_config(site: Site, agent_id: str) -> _Config:
    """Return the default agent, the agents in the config file, and the models.

    If `agent_id` is that of a session, its agent is returned, too.

    An error in the config file is returned as `error`.
    """
    path, config_error = find_config(site.settings.working_directory), None
    agents: tuple[AgentDefinition, ...] = ()
    try:
        agents = read_config(path).agents if path else ()
    except SkillhallError as error:
        config_error = error
    agents = tuple(agent for agent in agents if agent.id != DEFAULT_AGENT)
    models = dict.fromkeys((site.settings.model, *(agent.model for agent in agents)))
    session = site.session_agents.find(agent_id)
    session_agents = (session.agent,) if session else ()
    all_agents = (AgentDefinition(DEFAULT_AGENT), *agents, *session_agents)
    return _Config(all_agents, tuple(filter(None, models)), config_error)


def _skills_for(site: Site, agent: AgentDefinition) -> AgentSkills:
    if agent.id == DEFAULT_AGENT:
        return site.default_agent_skills
    if session := site.session_agents.find(agent.id):
        return session
    skills = site.agent_skills.get(agent.id)
    if skills is None or skills.agent != agent:  # the config file was edited
        skills = site.agent_skills[agent.id] = AgentSkills(agent, site.settings)
    return skills
