"""Prices of models, from the package `genai-prices` of the `pydantic-ai` extra."""

from __future__ import annotations

from genai_prices import Usage, calc_price

from skillhall._internal.evals.runs.run_limits import ModelPrice

_SAMPLE = 1000  # tokens; some models cost more per token in long requests
_PER_MILLION = 1_000_000 / _SAMPLE


def find_price(model_name: str) -> ModelPrice | None:
    """Return the price of the model `provider:name`; `None` if it is not known."""
    provider, _, name = model_name.partition(":")
    usage = Usage(input_tokens=_SAMPLE, output_tokens=_SAMPLE)
    try:
        price = calc_price(usage, name, provider_id=provider.removesuffix("-chat"))
    except LookupError:
        return None
    return ModelPrice(
        float(price.input_price) * _PER_MILLION, float(price.output_price) * _PER_MILLION
    )
