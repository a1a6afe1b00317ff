"""`skillhall chat`: chats with an agent that uses skills."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.errors import CommandFailed, print_error_text, to_error_info
from skillhall._internal.cli.options import config_option, json_option, roots_option
from skillhall._internal.cli.param_types import ConfiguredAgentParam
from skillhall._internal.cli.terminal import (
    is_interactive,
    print_message,
    print_text,
    sanitize_line,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.agents.chat.chat import Chat
    from skillhall._internal.agents.chat.events import ChatEvent

_HELP_TEXT = "/skills lists skills, /NAME loads one, /new starts over, /quit exits"


@click.command("chat", epilog="Example: skillhall chat --model ollama:qwen3 'Summarize sales.csv'")
@click.argument("message", required=False)
@click.option(
    "--agent", type=ConfiguredAgentParam(), metavar="ID", help="Use this agent of the config."
)
@config_option
@click.option("--model", metavar="PROVIDER:NAME", help="Override the configured model.")
@roots_option
@json_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    message: str | None,
    agent: str | None,
    config: str | None,
    model: str | None,
    roots: tuple[str, ...],
    as_json: bool,
) -> int:
    """Chat with an agent that uses skills. With MESSAGE, send it and exit.

    Any provider that Pydantic AI supports works; set its API key in the environment. Changes to
    skills take effect with the next message.
    """
    from skillhall._internal.cli.agent_selection import open_agent_skills

    settings = read_settings()
    skills = open_agent_skills(config, agent, roots, settings)
    chat = _open_chat(skills, model or skills.agent.model or settings.model)
    if message is None and not as_json:
        return _run_interactive(chat)
    return _send_once(chat, _read_piped_message() if message is None else message, as_json=as_json)


def _read_piped_message() -> str:
    if is_interactive():
        raise click.UsageError("--json needs a MESSAGE")
    return sys.stdin.read()


def _open_chat(skills: AgentSkills, model: str) -> Chat:
    if not model:
        raise CommandFailed(
            "usage",
            "no model selected",
            "name one with --model or SKILLHALL_MODEL: openai-chat:gpt-5, ollama:qwen3, …",
        )
    from skillhall._internal.agents.chat import INSTALL_COMMAND, load_chat_class

    chat_class = load_chat_class()
    if chat_class is None:
        raise CommandFailed("usage", "the chat is not installed", INSTALL_COMMAND)
    return chat_class(skills, model)


def _send_once(chat: Chat, message: str, *, as_json: bool) -> int:
    import asyncio

    with asyncio.Runner() as runner:
        events = runner.run(_send_message(chat, message, is_silent=as_json))
    if as_json:
        from skillhall._internal.cli.commands.agent.chat_output import print_chat_json

        print_chat_json(chat, events)
    return 0


def _run_interactive(chat: Chat) -> int:
    """Send each input line until the input ends."""
    import asyncio

    _print_greeting(chat)
    with asyncio.Runner() as runner:
        for line in _read_lines():
            if line == "/quit":
                break
            if line == "/new":
                chat.reset()
            elif line == "/skills":
                print_text(
                    "".join(
                        f"/{sanitize_line(name)}\n" for name in chat.tools.user_invocable_names()
                    )
                )
            elif line:
                _send_line(runner, chat, line)
    return 0


def _send_line(runner: asyncio.Runner, chat: Chat, line: str) -> None:
    """Send one line. On a terminal, an error or Ctrl-C ends the reply but not the chat."""
    from skillhall.errors import SkillhallError

    caught: tuple[type[BaseException], ...] = (SkillhallError, KeyboardInterrupt)
    try:
        runner.run(_send_message(chat, line))
    except caught as error:
        if not is_interactive():
            raise
        print_text("\n")
        if isinstance(error, SkillhallError):
            print_error_text(to_error_info(error))


def _print_greeting(chat: Chat) -> None:
    from skillhall._internal.cli.agent_selection import format_budget_cut

    snapshot = chat.skills.snapshot()
    count = format_count(len(snapshot.skill_view), "skill")
    print_message(
        f"{count}, about {format_count(snapshot.plan.tokens, 'token')} each turn. {_HELP_TEXT}."
    )
    if cut := format_budget_cut(snapshot.plan):
        print_message(cut)


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
    from skillhall._internal.cli.commands.agent.chat_output import print_event

    events = []
    async for event in chat.send(message):
        events.append(event)
        if not is_silent:
            print_event(event)
    return events
