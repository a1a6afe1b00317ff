"""Models for the chat, and the errors of their providers."""

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
    "the provider rejected the API key", "check the key in the environment", "unauthenticated"
)
_REQUEST_REJECTED = _ModelFailure(
    "the provider rejected the request", "try again, or use another model"
)
_FAILURES_BY_STATUS = {
    401: _UNAUTHORIZED,
    403: _UNAUTHORIZED,
    404: _ModelFailure("the provider has no such model", "check its name and the provider's URL"),
    429: _ModelFailure("rate limited by the provider", "try again in a moment", "rate_limited"),
}
_FAILURES_BY_EXCEPTION: dict[type[Exception], _ModelFailure] = {
    UsageLimitExceeded: _ModelFailure(
        "the budget for one message is exceeded", "ask for less, or raise the agent's budgets"
    ),
    ModelTimeoutError: _ModelFailure(
        "the provider timed out", "try again in a moment", "upstream_timeout"
    ),
    ModelConnectionError: _ModelFailure(
        "cannot connect to the provider", "check that it is running and that its URL is correct"
    ),
}


def open_model(name: str) -> Model:
    """Return the model `provider:name`. Raises: ModelUnavailable."""
    if ":" not in name:
        raise _build_unknown_model_error(name, "no provider in its name")
    try:
        return infer_model(name)
    except ImportError:
        provider = name.partition(":")[0]
        hint = f"install it: pip install 'pydantic-ai-slim[{provider}]'"
        problem = "the package of its provider is not installed"
        raise ModelUnavailable(name, problem, hint, code="invalid_argument") from None
    except UserError as error:
        raise _build_setup_error(name, str(error)) from None


def _build_setup_error(name: str, message: str) -> ModelUnavailable:
    """Return the error for a missing API key, whose variable is in the provider's message."""
    variables = list(dict.fromkeys(_VARIABLE.findall(message)))
    if variables:
        hint = f"set {' or '.join(variables)} in the environment"
        problem = f"{variables[0]} is not set"
        return ModelUnavailable(name, problem, hint, code="unauthenticated")
    return _build_unknown_model_error(name, "unknown provider")


def _build_unknown_model_error(name: str, problem: str) -> ModelUnavailable:
    hint = f"write provider:name, as {EXAMPLE_MODELS}"
    return ModelUnavailable(name, problem, hint, code="invalid_argument")


def to_model_unavailable(error: AgentRunError | UserError, model_name: str) -> ModelUnavailable:
    """Return the error for users, without the provider's text, which may contain the key."""
    if isinstance(error, ModelHTTPError):
        status = error.status_code
        failure = _FAILURES_BY_STATUS.get(status, _REQUEST_REJECTED)
        return ModelUnavailable(
            model_name, f"{failure.problem} (status {status})", failure.hint, code=failure.code
        )
    for exception_type, failure in _FAILURES_BY_EXCEPTION.items():
        if isinstance(error, exception_type):
            return ModelUnavailable(model_name, failure.problem, failure.hint, code=failure.code)
    return ModelUnavailable(model_name, "unusable reply", "try again")
