"""Routes of users, of tokens, and of one's own account."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from skillhall._internal.http.access import actor_of, needs
from skillhall._internal.http.credentials import Credential
from skillhall._internal.http.request import CREDENTIAL_KEY
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.http.users import (
    build_join_link,
    create_own_token,
    require_user,
    serialize_token,
    serialize_user,
)
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.rest import requests, responses
from skillhall._internal.rest.api_route import DatabaseRoute, Json
from skillhall._internal.rest.responses import BAD_REQUEST, describe_errors
from skillhall._internal.rest.route_parameters import app_state, path_text
from skillhall._internal.settings import ServerSettings

USERS_PATH = "/api/v1/users"
ACCOUNT_PATH = "/api/v1/account"
_USER_PATH = USERS_PATH + "/{name}"
_TOKENS_PATH = f"{ACCOUNT_PATH}/tokens"
TOKENS_PATH = "/api/v1/tokens"  # of all owners
_ERRORS = describe_errors({503: "The database is unavailable.", 507: "The disk is full."})
_NOT_FOUND = describe_errors({404: "There is no such user or token."})
_CONFLICT = describe_errors({409: "The name or label is taken."})
_Accounts = Annotated[Any, app_state("accounts")]
_Server = Annotated[ServerSettings, app_state("server_settings")]
_Name = Annotated[str, path_text("Name of the user.")]
_TokenId = Annotated[str, path_text("Id of the token.", alias="id")]

router = APIRouter(tags=["users"], route_class=DatabaseRoute, responses=_ERRORS)


def _own_url(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}"


@router.get(USERS_PATH, response_model=responses.UserListResponse)
@needs(Action.MANAGE_USERS)
def list_users(accounts: _Accounts) -> Response:
    """List the users by name."""
    return SuccessResponse({"users": [*map(serialize_user, accounts.users.list())]})


@router.post(
    USERS_PATH,
    status_code=201,
    response_model=responses.NewUserResponse,
    responses=BAD_REQUEST | _CONFLICT,
)
@needs(Action.MANAGE_USERS)
def add_user(
    request: Request, accounts: _Accounts, server: _Server, body: Json[requests.AddUserRequest]
) -> Response:
    """Add a user. The link with which the person signs in first is shown only once."""
    actor = actor_of(request.scope)
    created = accounts.users.add(body.name, body.role, actor, body.display, body.subject)
    link = build_join_link(server, created.code, _own_url(request)) if created.code else ""
    data = {**serialize_user(created.user), "link": link, "tokens": created.tokens}
    return SuccessResponse(data, 201)


@router.get(_USER_PATH, response_model=responses.UserResponse, responses=_NOT_FOUND)
@needs(Action.MANAGE_USERS)
def get_user(accounts: _Accounts, name: _Name) -> Response:
    """Return a user."""
    return SuccessResponse(serialize_user(accounts.users.find(name)))


@router.patch(_USER_PATH, response_model=responses.UserResponse, responses=BAD_REQUEST | _NOT_FOUND)
@needs(Action.MANAGE_USERS)
def edit_user(
    request: Request, accounts: _Accounts, name: _Name, body: Json[requests.EditUserRequest]
) -> Response:
    """Change the role of a user, or disable or enable the user."""
    users, actor = accounts.users, actor_of(request.scope)
    user = users.find(name)
    if body.role is not None:
        user = users.set_role(name, body.role, actor)
    if body.disabled is not None:
        user = users.disable(name, actor) if body.disabled else users.enable(name, actor)
    return SuccessResponse(serialize_user(user))


@router.delete(
    _USER_PATH, response_model=responses.RemovedUserResponse, responses=BAD_REQUEST | _NOT_FOUND
)
@needs(Action.MANAGE_USERS)
def remove_user(request: Request, accounts: _Accounts, name: _Name) -> Response:
    """Remove a user, revoke the user's tokens and end the user's sign-ins."""
    accounts.users.remove(name, actor_of(request.scope))
    return SuccessResponse({"removed": name})


@router.post(
    f"{_USER_PATH}/link",
    status_code=201,
    response_model=responses.LinkResponse,
    responses=BAD_REQUEST | _NOT_FOUND,
)
@needs(Action.MANAGE_USERS)
def create_link(request: Request, accounts: _Accounts, server: _Server, name: _Name) -> Response:
    """Create a link like that of a new user. Earlier links become invalid."""
    created = accounts.users.create_link(name, actor_of(request.scope))
    link = build_join_link(server, created.code, _own_url(request))
    return SuccessResponse({"name": name, "link": link, "expires": created.expires}, 201)


@router.get(ACCOUNT_PATH, response_model=responses.AccountResponse)
@needs(Action.MANAGE_OWN_ACCOUNT)
async def get_account(request: Request) -> Response:
    """Return who sends the request, and what the credential allows."""
    credential: Credential = request.scope.get(CREDENTIAL_KEY) or Credential()
    data = {
        "name": credential.owner,
        "role": credential.role.value,
        "scopes": [*map(str, credential.scopes)],
        "token": credential.label,
    }
    return SuccessResponse(data)


@router.get(TOKENS_PATH, response_model=responses.TokenListResponse)
@needs(Action.MANAGE_TOKENS)
def list_tokens(
    accounts: _Accounts,
    revoked: Annotated[bool, Query(description="Include revoked tokens.")] = False,  # noqa: FBT002
) -> Response:
    """List the tokens of all owners, oldest first."""
    tokens = accounts.tokens.list(with_revoked=revoked)
    return SuccessResponse(
        {"tokens": [serialize_token(token, accounts.tokens) for token in tokens]}
    )


@router.delete(
    TOKENS_PATH + "/{id}", response_model=responses.RevokedTokenResponse, responses=_NOT_FOUND
)
@needs(Action.MANAGE_TOKENS)
def revoke_token(request: Request, accounts: _Accounts, token: _TokenId) -> Response:
    """Revoke a token of any owner."""
    accounts.tokens.revoke(token, actor=actor_of(request.scope))
    return SuccessResponse({"revoked": token})


@router.get(_TOKENS_PATH, response_model=responses.TokenListResponse, responses=_NOT_FOUND)
@needs(Action.MANAGE_OWN_ACCOUNT)
def list_own_tokens(request: Request, accounts: _Accounts) -> Response:
    """List one's own tokens, oldest first."""
    user = require_user(request.scope.get(CREDENTIAL_KEY))
    tokens = accounts.tokens.list(user=user.id)
    return SuccessResponse(
        {"tokens": [serialize_token(token, accounts.tokens) for token in tokens]}
    )


@router.post(
    _TOKENS_PATH,
    status_code=201,
    response_model=responses.NewTokenResponse,
    responses=BAD_REQUEST | _NOT_FOUND | _CONFLICT,
)
@needs(Action.MANAGE_OWN_ACCOUNT)
def create_token(
    request: Request, accounts: _Accounts, body: Json[requests.CreateTokenRequest]
) -> Response:
    """Create a token of one's own. Its text is shown only once."""
    lifetime = None if body.days is None else timedelta(days=body.days)
    credential: Credential | None = request.scope.get(CREDENTIAL_KEY)
    actor = actor_of(request.scope)
    created = create_own_token(
        accounts.tokens, credential, body.label, body.scopes, lifetime, actor=actor
    )
    data = {**serialize_token(created.stored, accounts.tokens), "token": created.text}
    return SuccessResponse(data, 201)


@router.delete(
    _TOKENS_PATH + "/{id}", response_model=responses.RevokedTokenResponse, responses=_NOT_FOUND
)
@needs(Action.MANAGE_OWN_ACCOUNT)
def revoke_own_token(request: Request, accounts: _Accounts, token: _TokenId) -> Response:
    """Revoke one's own token."""
    user = require_user(request.scope.get(CREDENTIAL_KEY))
    accounts.tokens.revoke(token, user.id, actor=actor_of(request.scope))
    return SuccessResponse({"revoked": token})
