"""`skillhall chat`: chats with an agent that uses skills."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.chat import INSTALL_COMMAND, load_chat_class
from skillhall._internal.agents.chat.events import (
    ChatEvent,
    Done,
    FileRead,
    SkillLoaded,
    TextDelta,
    ToolFailed,
)
from skillhall._internal.cli.command_result import CommandResult, is_json
from skillhall._internal.cli.commands.trust_question import (
    TrustOptions,
    print_warnings,
    serialize_held,
    trust_options,
)
from skillhall._internal.cli.configured_agent import format_budget_cut, open_agent_skills
from skillhall._internal.cli.errors import CommandFailed, print_error_text, to_error_info
from skillhall._internal.cli.options import (
    config_option,
    configured_agent_option,
    json_command,
    roots_option,
)
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import (
    format_count,
    is_interactive,
    print_message,
    print_text,
    sanitize_line,
)
from skillhall._internal.wiring.revocation_refresh import start_daily_refresh
from skillhall.errors import SkillhallError

if TYPE_CHECKING:  # from an optional extra
    from skillhall._internal.agents.chat.chat import Chat

_HELP_TEXT = "/skills lists skills, /NAME loads one, /new starts over, /quit exits"


@json_command("chat", "skillhall chat --model ollama:qwen3 'Summarize sales.csv'")
@click.argument("message", required=False)
@configured_agent_option("Use this agent from the config.")
@config_option
@click.option("--model", metavar="PROVIDER:NAME", help="Override the configured model.")
@roots_option
@trust_options
def command(
    *,
    message: str | None,
    agent: str | None,
    config: str | None,
    model: str | None,
    roots: tuple[str, ...],
    trust: TrustOptions,
) -> CommandResult | None:
    """Chat with an agent that uses skills. With MESSAGE, send it and exit.

    Any provider that Pydantic AI supports works; set its API key in the environment. Changes to
    skills take effect with the next message.
    """
    settings = read_settings()
    print_warnings(start_daily_refresh(settings)())
    skills = open_agent_skills(config, agent, roots, settings, trust)
    chat = _open_chat(skills, model or skills.agent.model or settings.model)
    if message is None and not is_json():
        _run_interactive(chat)
        return None
    if message is None:
        if is_interactive():
            raise click.UsageError("--json needs a MESSAGE")
        message = sys.stdin.read()
    with asyncio.Runner() as runner:
        events = runner.run(_send_message(chat, message, is_silent=is_json()))
    held = serialize_held(skills.snapshot().instructions.held)
    data = {**_serialize_reply(chat, events), "held": held}
    return CommandResult(data, skills.findings) if is_json() else None


def _open_chat(skills: AgentSkills, model: str) -> Chat:
    if not model:
        raise CommandFailed(
            "usage",
            "no model selected",
            "name one with --model or SKILLHALL_MODEL, such as openai-chat:gpt-5 or ollama:qwen3",
        )
    chat_class = load_chat_class()
    if chat_class is None:
        raise CommandFailed("usage", "the chat packages are not installed", INSTALL_COMMAND)
    return chat_class(skills, model)


def _run_interactive(chat: Chat) -> None:
    """Send each input line, or run its command such as /new, until the input ends."""
    snapshot = chat.skills.snapshot()
    count = format_count(len(snapshot.skill_view), "skill")
    tokens = format_count(snapshot.plan.tokens, "token")
    print_message(f"{count}, about {tokens} each turn. {_HELP_TEXT}.")
    if cut := format_budget_cut(snapshot.plan):
        print_message(cut)
    with asyncio.Runner() as runner:
        for line in _read_lines():
            if line == "/quit":
                break
            if line == "/new":
                chat.reset()
            elif line == "/skills":
                names = chat.tools.user_invocable_names()
                print_text("".join(f"/{sanitize_line(name)}\n" for name in names))
            elif line:
                _send_line(runner, chat, line)


def _send_line(runner: asyncio.Runner, chat: Chat, line: str) -> None:
    """Send a line. On a terminal, an error or Ctrl-C ends the reply but not the chat."""
    try:
        runner.run(_send_message(chat, line))
    except (SkillhallError, KeyboardInterrupt) as error:
        if not is_interactive():
            raise
        print_text("\n")
        if isinstance(error, SkillhallError):
            print_error_text(to_error_info(error))


def _read_lines() -> Iterator[str]:
    while True:
        if is_interactive():
            sys.stderr.write("> ")
            sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            return
        yield line.strip()


async def _send_message(chat: Chat, message: str, *, is_silent: bool = False) -> list[ChatEvent]:
    events = []
    async for event in chat.send(message):
        events.append(event)
        if not is_silent:
            _print_event(event)
    return events


def _print_event(event: ChatEvent) -> None:
    """Print an event: the reply to stdout, everything else to stderr."""
    if isinstance(event, TextDelta):
        print_text(event.text)
    elif isinstance(event, Done):
        print_text("\n")
        sys.stdout.flush()
        requests = format_count(event.requests, "request")
        print_message(f"· {requests}, {event.input_tokens} tokens in, {event.output_tokens} out")
    elif isinstance(event, SkillLoaded):
        print_message(f"· loaded {event.skill} ({format_count(event.tokens, 'token')})")
    elif isinstance(event, FileRead):
        path = f"{event.skill}/{event.path}" if event.skill else event.path
        print_message(f"· read {path} ({format_count(event.tokens, 'token')})")
    else:
        print_message(f"· {event.tool} failed: {event.message}")
    sys.stdout.flush()


def _serialize_reply(chat: Chat, events: Sequence[ChatEvent]) -> dict[str, object]:
    activity: list[dict[str, object]] = []
    data: dict[str, object] = {"agent": chat.skills.agent.id, "events": activity}
    for event in events:
        if isinstance(event, SkillLoaded):
            by = "person" if event.by_user else "model"
            entry = {"event": "loaded", "skill": event.skill, "tokens": event.tokens, "by": by}
            activity.append(entry)
        elif isinstance(event, FileRead):
            where = {"skill": event.skill} if event.skill else {}
            activity.append({"event": "read", **where, "path": event.path, "tokens": event.tokens})
        elif isinstance(event, ToolFailed):
            activity.append({"event": "failed", "tool": event.tool, "message": event.message})
        elif isinstance(event, Done):
            tokens = {"inputTokens": event.input_tokens, "outputTokens": event.output_tokens}
            data |= {"answer": event.text, "usage": {"requests": event.requests, **tokens}}
    return data
