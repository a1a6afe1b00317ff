"""`skillhall chat`: talk to an agent that uses skills."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import counted, read_settings
from skillhall._internal.cli.errors import CommandFailed, failure_of, tell_failure
from skillhall._internal.cli.options import config_option, json_option, roots_option
from skillhall._internal.cli.param_types import ConfiguredAgent
from skillhall._internal.cli.terminal import clean, is_attended, print_text, say

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.agents.chat.chat import Chat
    from skillhall._internal.agents.chat.events import ChatEvent

_HELP = "/skills lists skills, /NAME calls one, /new starts anew, /quit ends"


@click.command("chat", epilog="Example: skillhall chat --model ollama:qwen3 'Summarise sales.csv'")
@click.argument("message", required=False)
@click.option("--agent", type=ConfiguredAgent(), metavar="ID", help="An agent of the config.")
@config_option
@click.option("--model", metavar="PROVIDER:NAME", help="The model, whatever the config says.")
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
    """Ask an agent that uses skills, once with MESSAGE, else line by line.

    The model may be of any provider that Pydantic AI knows; its key stands in the environment, as
    the provider wants it. Skills that come, change or go are seen at the next message.
    """
    from skillhall._internal.cli.agent_selection import agent_skills

    settings = read_settings()
    skills = agent_skills(config, agent, roots, settings)
    chat = _open(skills, model or skills.agent.model or settings.model)
    if message is None and not as_json:
        return _talk(chat)
    return _ask_once(chat, _piped() if message is None else message, is_json=as_json)


def _piped() -> str:
    if is_attended():
        raise click.UsageError("with --json, give a MESSAGE", click.get_current_context())
    return sys.stdin.read()


def _open(skills: AgentSkills, model: str) -> Chat:
    if not model:
        raise CommandFailed(
            "usage",
            "no model is chosen",
            "name one with --model or SKILLHALL_MODEL: openai-chat:gpt-5, ollama:qwen3, …",
        )
    from skillhall._internal.agents.chat import INSTALL, chat_class

    opened = chat_class()
    if opened is None:
        raise CommandFailed("usage", "the chat is not installed", INSTALL)
    return opened(skills, model)


def _ask_once(chat: Chat, message: str, *, is_json: bool) -> int:
    import asyncio

    with asyncio.Runner() as runner:
        events = runner.run(_answer(chat, message, is_silent=is_json))
    if is_json:
        from skillhall._internal.cli.commands.agent.chat_output import print_chat

        print_chat(chat, events)
    return 0


def _talk(chat: Chat) -> int:
    """Answer one line after the other, until there is no more."""
    import asyncio

    _greet(chat)
    with asyncio.Runner() as runner:
        for line in _lines():
            if line == "/quit":
                break
            if line == "/new":
                chat.reset()
            elif line == "/skills":
                print_text("".join(f"/{clean(name)}\n" for name in chat.tools.callable_names()))
            elif line:
                _answer_line(runner, chat, line)
    return 0


def _answer_line(runner: asyncio.Runner, chat: Chat, line: str) -> None:
    """Answer; where a person sits, an error or Ctrl-C ends the answer and not the chat."""
    from skillhall.errors import SkillhallError

    caught: tuple[type[BaseException], ...] = (SkillhallError, KeyboardInterrupt)
    try:
        runner.run(_answer(chat, line))
    except caught as error:
        if not is_attended():
            raise
        print_text("\n")
        if isinstance(error, SkillhallError):
            tell_failure(failure_of(error))


def _greet(chat: Chat) -> None:
    from skillhall._internal.cli.agent_selection import cut_of

    built = chat.skills.current()
    count = counted(len(built.offer), "skill")
    say(f"{count}, about {counted(built.plan.tokens, 'token')} each turn. {_HELP}.")
    if cut := cut_of(built.plan):
        say(cut)


def _lines() -> Iterator[str]:
    while True:
        if is_attended():
            sys.stderr.write("> ")
            sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            return
        yield line.strip()


async def _answer(chat: Chat, message: str, *, is_silent: bool = False) -> list[ChatEvent]:
    from skillhall._internal.cli.commands.agent.chat_output import show

    events = []
    async for event in chat.send(message):
        events.append(event)
        if not is_silent:
            show(event)
    return events
