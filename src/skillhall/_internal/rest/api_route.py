"""The route class of the REST API, and the dependency that reads a JSON body.

No postponed annotations here: FastAPI evaluates those of `JsonBody.__call__`.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import MAX_JSON_BYTES, read_json
from skillhall._internal.http.thread_pool import WORKERS
from skillhall._internal.rest.responses import BEARER_SCHEME, BODY_ERRORS, describe_errors

_M = TypeVar("_M", bound=BaseModel)
_MAX_PROBLEMS = 10  # reported per body
_BAD_REQUEST = describe_errors({400: "Invalid request."})
_BODY_ERRORS = describe_errors(BODY_ERRORS)
# The empty entry makes the token optional: a local server may have none.
_SECURITY: list[dict[str, list[str]]] = [{BEARER_SCHEME: []}, {}]


@dataclass(frozen=True)
class JsonBody(Generic[_M]):
    """Dependency that reads a JSON body and validates it with a model.

    FastAPI's own body parameters have no limit on size and time, and accept duplicate keys.
    """

    model: type[_M]
    limit: int = MAX_JSON_BYTES
    is_required: bool = True  # in the OpenAPI document; a missing body is read as {}

    async def __call__(self, request: Request) -> _M:
        """Read the body. Raises: HttpError, ClientDisconnect."""
        return parse_model(self.model, await read_json(request, self.limit))

    def describe(self) -> dict[str, Any]:
        """Return the OpenAPI request body."""
        content = {"application/json": {"schema": inline_schema(self.model)}}
        return {"required": self.is_required, "content": content}


class ApiRoute(APIRoute):
    """A route of the API.

    - A plain function runs in a worker thread, which does not delay a shutdown.
    - Repeated query parameters are rejected instead of ignored.
    - The OpenAPI document gets the JSON body, the token and a summary in sentence case.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - as FastAPI's
        name = endpoint.__name__
        if not iscoroutinefunction(endpoint):
            endpoint = _in_worker(endpoint)
        options["summary"] = name.replace("_", " ").capitalize()
        if isinstance(options["response_model"], type):
            options["response_description"] = options["response_model"].__doc__
        super().__init__(path, endpoint, **options)
        self.openapi_extra = {"security": _SECURITY, **(self.openapi_extra or {})}
        for dependency in self.dependant.dependencies:
            if isinstance(dependency.call, JsonBody):
                self.openapi_extra["requestBody"] = dependency.call.describe()
                self.responses = {**_BAD_REQUEST, **self.responses, **_BODY_ERRORS}

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler with a check of the query."""
        handle = super().get_route_handler()
        fields = get_flat_params(self.dependant)
        names = {field.alias for field in fields if isinstance(field.field_info, Query)}

        async def check_and_handle(request: Request) -> Response:
            if names and request.scope["query_string"]:
                _check_query(request.scope["query_string"], names)
            return await handle(request)

        return check_and_handle


def _in_worker(endpoint: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    @wraps(endpoint)
    async def run(**values: Any) -> Any:  # noqa: ANN401 - the parameters of any endpoint
        return await WORKERS.run(endpoint, **values)

    return run


def _check_query(query: bytes, names: set[str]) -> None:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise HttpError("invalid_argument", "the query is not UTF-8") from None
    seen = set()
    for name, _ in pairs:
        if name in seen:
            raise HttpError("invalid_argument", f"duplicate parameter {name!r}")
        if name in names:
            seen.add(name)


def parse_model(model: type[_M], value: object) -> _M:
    """Validate a value. Raises: HttpError."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # Never the value, which may be a secret.
        found = error.errors(include_url=False, include_context=False, include_input=False)
        problems = [
            {"where": ".".join(map(str, problem["loc"]))[:200], "problem": problem["msg"]}
            for problem in found[:_MAX_PROBLEMS]
        ]
        details = {"problems": problems}
        raise HttpError("invalid_argument", "invalid request body", details=details) from None


def inline_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a model without references."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})

    def inline(value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, list):
            return [inline(item) for item in value]
        if not isinstance(value, dict):
            return value
        inlined = {key: inline(item) for key, item in value.items() if key != "$ref"}
        if "$ref" in value:
            return {**inline(definitions[value["$ref"].rpartition("/")[2]]), **inlined}
        return inlined

    inlined: dict[str, Any] = inline(schema)
    return inlined
