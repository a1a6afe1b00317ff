"""The route class of the REST API, and JSON bodies as parameters of routes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial, wraps
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from skillhall._internal.http.access import action_of, check_action, needs
from skillhall._internal.http.credentials import client_id
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import MAX_JSON_BYTES, read_json
from skillhall._internal.http.thread_pool import Work, WorkerPools
from skillhall._internal.rest.responses import (
    BAD_REQUEST,
    BEARER_SCHEME,
    BODY_ERRORS,
    COMMON_ERRORS,
    PUBLIC_ERRORS,
    envelope,
)

_M = TypeVar("_M", bound=BaseModel)
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])
_MAX_PROBLEMS = 10  # reported per body
# The empty entry makes the token optional: a local server may have none.
_WORK_ATTRIBUTE = "skillhall_work"
_REQUEST_PARAMETER = "skillhall_request"  # added to the parameters of plain functions
_SECURITY: list[dict[str, list[str]]] = [{BEARER_SCHEME: []}, {}]


@dataclass(frozen=True)
class JsonBody:
    """Marks a parameter of a route as the JSON body; its type is the model.

    FastAPI's own body parameters have no limits on size, time and depth, and are read before the
    other parameters are checked.
    """

    limit: int = MAX_JSON_BYTES
    is_required: bool = True  # in the OpenAPI document; a missing body is read as {}


Json = Annotated[_M, JsonBody()]


class ApiRoute(APIRoute):
    """A route of the API.

    - The function names its action (`needs`), unless the route is `PUBLIC`. The action is checked
      before anything else of the request is read.
    - A plain function runs in a worker thread, which does not delay a shutdown. Its pool is that
      of `work`, unless the function is marked with `waits_for`.
    - A parameter of type `Json[Model]` is the body.
    - Repeated query parameters are rejected instead of ignored.
    - The OpenAPI document gets the envelope around the response model, the JSON body, the token,
      the errors of the middleware and a summary in sentence case.
    """

    work: ClassVar = Work.DISK

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - as FastAPI's
        options["summary"] = endpoint.__name__.replace("_", " ").capitalize()
        model = options["response_model"]
        if isinstance(model, type) and issubclass(model, BaseModel):
            options |= {"response_model": envelope(model), "response_description": model.__doc__}
        extra = {"security": _SECURITY, **(options["openapi_extra"] or {})}
        errors = COMMON_ERRORS if extra["security"] else PUBLIC_ERRORS
        options["responses"] = errors | options["responses"]

        if not extra["security"]:
            needs(None)(endpoint)
        action_of(endpoint)  # raises an error if it names none
        is_async = inspect.iscoroutinefunction(endpoint)
        work = getattr(endpoint, _WORK_ATTRIBUTE, self.work)

        @wraps(endpoint)
        async def run(**values: Any) -> Any:  # noqa: ANN401 - the parameters of any endpoint
            if is_async:
                return await endpoint(**values)
            # FastAPI passes the request to one parameter only: to that of the endpoint, if any.
            request = values.get("request") or values.pop(_REQUEST_PARAMETER)
            return await run_blocking(request, work, partial(endpoint, **values))

        signature = inspect.signature(endpoint, eval_str=True)
        parameters = dict(signature.parameters)
        for name, parameter in signature.parameters.items():
            for marker in getattr(parameter.annotation, "__metadata__", ()):
                if isinstance(marker, JsonBody):
                    model = parameter.annotation.__origin__
                    reader = Depends(_body_reader(model, marker.limit))
                    dependency = Annotated[model, reader]  # type: ignore[valid-type] # at run time
                    parameters[name] = parameter.replace(annotation=dependency)
                    content = describe_json(model)
                    extra["requestBody"] = {"required": marker.is_required, "content": content}
                    options["responses"] = BAD_REQUEST | options["responses"] | BODY_ERRORS
        if not is_async and "request" not in parameters:
            parameters[_REQUEST_PARAMETER] = _request_parameter()
        # FastAPI reads the parameters from here.
        vars(run)["__signature__"] = signature.replace(parameters=[*parameters.values()])
        super().__init__(path, run, **{**options, "openapi_extra": extra})

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, preceded by checks of the action and the query."""
        handle = super().get_route_handler()
        fields = get_flat_params(self.dependant)
        names = {field.alias for field in fields if isinstance(field.field_info, Query)}
        action = action_of(self.endpoint)

        async def check_and_handle(request: Request) -> Response:
            check_action(request.scope, action)
            if names and request.scope["query_string"]:
                _check_query(request.scope["query_string"], names)
            return await handle(request)

        return check_and_handle


class DatabaseRoute(ApiRoute):
    """A route whose functions wait for the database."""

    work = Work.DATABASE


def waits_for(work: Work) -> Callable[[_F], _F]:
    """Set what a route's function waits for, overriding `work` of the route class."""

    def mark(endpoint: _F) -> _F:
        vars(endpoint)[_WORK_ATTRIBUTE] = work
        return endpoint

    return mark


async def run_blocking(request: Request, work: Work, call: Callable[[], _T]) -> _T:
    """Run `call` in the pool for its kind of work.

    Raises: HttpError, and errors from `call`.
    """
    pools: WorkerPools = request.app.state.pools
    return await pools[work].run_for(client_id(request.scope), call)


def _request_parameter() -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(_REQUEST_PARAMETER, kind, annotation=Request)


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


def _body_reader(model: type[_M], limit: int) -> Callable[[Request], Coroutine[Any, Any, _M]]:
    async def read(request: Request) -> _M:
        return await read_model(request, model, limit)

    return read


async def read_model(request: Request, model: type[_M], limit: int = MAX_JSON_BYTES) -> _M:
    """Read a JSON body of up to `limit` bytes and validate it.

    Raises: HttpError, ClientDisconnect.
    """
    value = await read_json(request, limit)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # The errors must not contain the value, which may be a secret.
        found = error.errors(include_url=False, include_context=False, include_input=False)
        problems = [
            {"where": ".".join(map(str, problem["loc"]))[:200], "problem": problem["msg"]}
            for problem in found[:_MAX_PROBLEMS]
        ]
        details = {"problems": problems}
        raise HttpError("invalid_argument", "invalid request body", details=details) from None


def describe_json(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI content of a JSON body, with all references inlined."""
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

    return {"application/json": {"schema": inline(schema)}}
