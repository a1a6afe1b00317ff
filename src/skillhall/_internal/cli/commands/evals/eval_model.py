"""The model of eval commands, and its price."""

from __future__ import annotations

import math

import click

from skillhall._internal.agents.chat import INSTALL_COMMAND, load_chat_class
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.evals.runs.run_limits import ModelPrice


def require_model(name: str) -> str:
    """Return the name of the model. Raises: CommandFailed if none is configured."""
    if name:
        return name
    raise CommandFailed(
        "usage",
        "no model selected",
        "name one with --model or SKILLHALL_MODEL, such as openai-chat:gpt-5 or ollama:qwen3",
    )


def require_chat_packages() -> None:
    """Check that the packages for models are installed. Raises: CommandFailed."""
    if load_chat_class() is None:
        raise CommandFailed("usage", "the chat packages are not installed", INSTALL_COMMAND)


def _parse_price(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> ModelPrice | None:
    """Parse a price such as `3,15`."""
    if text is None:
        return None
    try:
        given, returned = (float(one) for one in text.split(","))
    except ValueError:
        given = returned = -1.0
    if not (0 <= given < math.inf and 0 <= returned < math.inf):
        raise click.BadParameter("use two prices in dollars, such as 3,15")
    return ModelPrice(given, returned)


price_option = click.option(
    "--price",
    callback=_parse_price,
    metavar="IN,OUT",
    help="Dollars per million input and output tokens.  [default: the list price, if known]",
)


def require_price(price: ModelPrice | None, max_cost: float | None) -> None:
    """Check that a cost limit can be enforced. Raises: CommandFailed."""
    if max_cost is not None and price is None:
        raise CommandFailed(
            "usage",
            "--max-cost needs the price of the model, which is not known",
            "add the price, such as --price 3,15, or limit the tokens with --max-tokens",
        )
