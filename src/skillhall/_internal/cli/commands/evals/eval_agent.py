"""Opens the agent that does the runs of an eval."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from skillhall._internal.cli.commands.evals.eval_model import require_chat_packages
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.evals.run_agents.command_agent import CommandAgent
from skillhall._internal.evals.runs.transcript import SecretRedactor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.evals.run_agents.run_agent import RunAgent
    from skillhall._internal.evals.runs.run_limits import ModelPrice
    from skillhall._internal.settings import Settings


class OpenedAgent(NamedTuple):
    """An agent, the price of its model if it is known, and a redactor of its secrets."""

    agent: RunAgent
    price: ModelPrice | None = None
    redactor: SecretRedactor = SecretRedactor()
    has_script_tool: bool = True  # an external agent may run every script that it finds


def open_chat_agent(
    model_name: str,
    price: ModelPrice | None,
    settings: Settings,
    *,
    allows_scripts: bool,
    is_dry_run: bool,
) -> OpenedAgent:
    """Return the built-in agent. A dry run needs no API key.

    Raises: CommandFailed, ModelUnavailable.
    """
    if not model_name:
        raise CommandFailed(
            "usage",
            "no model selected",
            "name one with --model or SKILLHALL_MODEL, such as openai-chat:gpt-5 or ollama:qwen3; "
            "or name an agent with --agent-command",
        )
    require_chat_packages()
    from skillhall._internal.agents.chat.models import open_model
    from skillhall._internal.evals.run_agents.chat_agent import ChatAgent
    from skillhall._internal.evals.runs.model_prices import find_price

    price = price or find_price(model_name)
    agent = ChatAgent(
        model=None if is_dry_run else open_model(model_name),
        model_name=model_name,
        settings=settings,
        price=price,
        allows_scripts=allows_scripts,
    )
    return OpenedAgent(agent, price)


def open_command_agent(
    template: str, variables: Sequence[str], skill_folders: Sequence[str]
) -> OpenedAgent:
    """Return an external agent with the named variables of this process.

    Raises: UsageError if a variable is not set, ConfigInvalid.
    """
    missing = [name for name in variables if name not in os.environ]
    if missing:
        raise click.UsageError(f"--env {missing[0]}: the variable is not set")
    environment = {name: os.environ[name] for name in variables}
    agent = CommandAgent.parse(template, environment, skill_folders)
    redactor = SecretRedactor(environment.values())
    return OpenedAgent(agent, redactor=redactor, has_script_tool=False)
