"""Parameters that several routes share: services, pages, preconditions, paths.

A validator raises `ValueError` with the message for the client.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request
from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from skillhall._internal.http.access import actor_of
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.workspace.workspace import LazyWorkspace

MAX_PAGE_SIZE = 1000
_VERSION_ETAG = re.compile(r'(?:W/)?"([0-9]{1,18})"')
_UNKNOWN_VERSION = -1  # for an ETag that this server never sends

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
# For parameters that may be missing; the OpenAPI document does not allow null.
OptionalText = Text | SkipJsonSchema[None]
OptionalBlankText = str | SkipJsonSchema[None]


def path_text(description: str, **options: Any) -> Any:  # noqa: ANN401 - as FastAPI's `Path`
    """Return a path parameter that must not be empty."""
    return Path(description=description, json_schema_extra={"minLength": 1}, **options)


def _parse_limit(text: object) -> int:
    # Stricter than `int`, which accepts "+1" and "1_0". Nine digits suffice to reject long numbers.
    if isinstance(text, int):
        return text  # the default
    digits = str(text)
    if digits.isascii() and digits.isdigit() and 1 <= int(digits[:9]) <= MAX_PAGE_SIZE:
        return int(digits)
    raise ValueError(f"'limit' must be a number from 1 to {MAX_PAGE_SIZE}")


PageSize = Annotated[
    int, Query(description="Page size.", ge=1, le=MAX_PAGE_SIZE), BeforeValidator(_parse_limit)
]
IfNoneMatch = Annotated[OptionalBlankText, Header(include_in_schema=False)]
AcceptEncoding = Annotated[str, Header(include_in_schema=False)]


def app_state(name: str) -> Any:  # noqa: ANN401 - as FastAPI's `Depends`
    """Return a dependency on a service that `build_app` stores in the app's state."""

    async def read(request: Request) -> object:
        return getattr(request.app.state, name)

    return Depends(read)


async def _read_actor(request: Request) -> Actor:
    return actor_of(request.scope)


async def _bind_workspace(request: Request) -> LazyWorkspace:
    workspace: LazyWorkspace = request.app.state.workspace
    return workspace.acting_as(actor_of(request.scope))


ActorDep = Annotated[Actor, Depends(_read_actor)]
CollectionDep = Annotated[Collection, app_state("collection")]
# The audit log records changes by the actor of the request.
WorkspaceDep = Annotated[LazyWorkspace, Depends(_bind_workspace)]


def parse_version(if_match: str | None) -> int | None:
    """Return the version in If-Match; `None` without the header, -1 if it is invalid."""
    if if_match is None:
        return None
    match = _VERSION_ETAG.fullmatch(if_match.strip())
    return _UNKNOWN_VERSION if match is None else int(match[1])


async def _require_version(
    if_match: Annotated[
        OptionalBlankText, Header(alias="If-Match", description="ETag of the version to change.")
    ] = None,
) -> int:
    version = parse_version(if_match)
    if version is None:
        message = "If-Match is missing: send the ETag of the version to change"
        raise HttpError("precondition_required", message)
    return version


async def _read_revision(
    if_match: Annotated[
        OptionalBlankText,
        Header(alias="If-Match", description="Revision that the session must still have."),
    ] = None,
) -> int | None:
    return parse_version(if_match)


RequiredVersion = Annotated[int, Depends(_require_version)]
ExpectedRevision = Annotated[int | None, Depends(_read_revision)]
