"""Models for the chat: opened by name, and what it means when one does not answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pydantic_ai.exceptions import (
    AgentRunError,
    ModelConnectionError,
    ModelHTTPError,
    ModelTimeoutError,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.models import infer_model

from skillhall.errors import ModelUnavailable

if TYPE_CHECKING:
    from pydantic_ai.models import Model

EXAMPLE_MODELS = (
    "openai-chat:gpt-5, anthropic:claude-sonnet-4-6, google:gemini-2.5-pro, ollama:qwen3"
)
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")


class _ModelFailure(NamedTuple):
    problem: str
    hint: str
    code: str = "upstream_error"


_UNAUTHORIZED = _ModelFailure(
    "the provider does not take the key", "check the key in the environment", "unauthenticated"
)
_REQUEST_REJECTED = _ModelFailure(
    "the provider refuses the request", "try again, or with another model"
)
_FAILURES_BY_STATUS = {
    401: _UNAUTHORIZED,
    403: _UNAUTHORIZED,
    404: _ModelFailure(
        "the provider has no such model", "check its name, and the provider's address"
    ),
    429: _ModelFailure("the provider asks to wait", "try again in a while", "rate_limited"),
}
_FAILURES_BY_EXCEPTION: dict[type[Exception], _ModelFailure] = {
    UsageLimitExceeded: _ModelFailure(
        "the budget for one message is used up", "ask for less, or raise the agent's budgets"
    ),
    ModelTimeoutError: _ModelFailure(
        "the provider takes too long", "try again in a while", "upstream_timeout"
    ),
    ModelConnectionError: _ModelFailure(
        "the provider cannot be reached", "is it running, and is its address right?"
    ),
}


def open_model(name: str) -> Model:
    """The model of that name, as `provider:name`. Raises: ModelUnavailable."""
    if ":" not in name:
        raise _build_unknown_model_error(name, "it names no provider")
    try:
        return infer_model(name)
    except ImportError:
        provider = name.partition(":")[0]
        hint = f"install what it needs: pip install 'pydantic-ai-slim[{provider}]'"
        problem = "its provider's package is not installed"
        raise ModelUnavailable(name, problem, hint, code="invalid_argument") from None
    except UserError as error:
        raise _build_setup_error(name, str(error)) from None


def _build_setup_error(name: str, message: str) -> ModelUnavailable:
    """What is missing for a model: mostly a variable with a key, which the provider names."""
    variables = list(dict.fromkeys(_VARIABLE.findall(message)))
    if variables:
        hint = f"set {' or '.join(variables)} in the environment"
        problem = f"{variables[0]} is not set"
        return ModelUnavailable(name, problem, hint, code="unauthenticated")
    return _build_unknown_model_error(name, "no such provider is known")


def _build_unknown_model_error(name: str, problem: str) -> ModelUnavailable:
    hint = f"write provider:name, as {EXAMPLE_MODELS}"
    return ModelUnavailable(name, problem, hint, code="invalid_argument")


def to_model_unavailable(error: AgentRunError | UserError, model_name: str) -> ModelUnavailable:
    """The error for a person. What a provider says may repeat a key: only its status is told."""
    if isinstance(error, ModelHTTPError):
        status = error.status_code
        kind = _FAILURES_BY_STATUS.get(status, _REQUEST_REJECTED)
        return ModelUnavailable(
            model_name, f"{kind.problem} (status {status})", kind.hint, code=kind.code
        )
    for known, kind in _FAILURES_BY_EXCEPTION.items():
        if isinstance(error, known):
            return ModelUnavailable(model_name, kind.problem, kind.hint, code=kind.code)
    return ModelUnavailable(model_name, "it gave no answer that can be used", "try again")
