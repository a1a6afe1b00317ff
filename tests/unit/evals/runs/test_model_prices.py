"""List prices of models."""

import pytest

from skillhall._internal.evals.runs.model_prices import find_price


@pytest.mark.parametrize("name", ["openai-chat:gpt-4o", "anthropic:claude-sonnet-4-5"])
def test_known_model_has_a_price(name: str) -> None:
    price = find_price(name)

    assert price is not None
    assert 0 < price.input < price.output


@pytest.mark.parametrize("name", ["openai-chat:scripted", "unknown:model", "model", ""])
def test_unknown_model_has_no_price(name: str) -> None:
    assert find_price(name) is None
