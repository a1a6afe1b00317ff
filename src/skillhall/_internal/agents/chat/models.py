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
_PROVIDER_FAILED = _ModelFailure("the provider has a problem", "try again in a moment")
_SERVER_ERRORS = 500  # the first status of them
_FAILURES_BY_STATUS = {
    401: _UNAUTHORIZED,
    403: _UNAUTHORIZED,
    404: _ModelFailure("the provider has no such model", "check its name and the provider's URL"),
    429: _ModelFailure("rate limited by the provider", "try again in a moment", "rate_limited"),
}
_FAILURES_BY_EXCEPTION: dict[type[Exception], _ModelFailure] = {
    UsageLimitExceeded: _ModelFailure(
        "the budget for one message is exceeded",
        "shorten the message, or raise the agent's budgets",
    ),
    ModelTimeoutError: _ModelFailure(
        "the provider timed out", "try again in a moment", "upstream_timeout"
    ),
    ModelConnectionError: _ModelFailure(
        "cannot connect to the provider", "check that it is running and that its URL is correct"
    ),
}


def open_model(name: str) -> Model:
    """Return the model with the name `provider:name`. Raises: ModelUnavailable."""
    provider, colon, _ = name.partition(":")
    problem, code = "no provider in its name", "invalid_argument"
    hint = f"write provider:name, such as {EXAMPLE_MODELS}"
    if colon:
        try:
            return infer_model(name)
        except ImportError:
            problem = "the package of its provider is not installed"
            hint = f"install it: pip install 'pydantic-ai-slim[{provider}]'"
        except UserError as error:
            problem = "unknown provider"
            # The message for a missing API key names the variables that may contain it.
            if variables := list(dict.fromkeys(_VARIABLE.findall(str(error)))):
                problem, code = f"{variables[0]} is not set", "unauthenticated"
                hint = f"set {' or '.join(variables)} in the environment"
    raise ModelUnavailable(name, problem, hint, code=code)


def to_model_unavailable(error: AgentRunError | UserError, model_name: str) -> ModelUnavailable:
    """Return the error to show to users.

    It does not contain the provider's text, which may contain the API key.
    """
    problem, hint, code = "unusable reply", "try again", "upstream_error"
    if isinstance(error, ModelHTTPError):
        status = error.status_code
        default = _REQUEST_REJECTED if status < _SERVER_ERRORS else _PROVIDER_FAILED
        problem, hint, code = _FAILURES_BY_STATUS.get(status, default)
        problem = f"{problem} (status {status})"
    else:
        for exception_type, failure in _FAILURES_BY_EXCEPTION.items():
            if isinstance(error, exception_type):
                problem, hint, code = failure
    return ModelUnavailable(model_name, problem, hint, code=code)
