"""Pages on which administrators manage users."""

from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.users import build_join_link, describe_state
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.web.account_pages import provider_host
from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall._internal.web.rendering import form_status, render
from skillhall.errors import FieldRefused

if TYPE_CHECKING:
    from skillhall._internal.wiring.database import (  # imports the database driver
        Accounts,
        UserAccounts,
    )

USERS_PATH = "/users"


class UserRow(NamedTuple):
    """User in the table."""

    name: str
    display: str
    role: str
    state: str
    issuer: str
    seen: str
    is_self: bool


class NewLinkView(NamedTuple):
    """Link for a user to sign in the first time, shown once."""

    name: str
    url: str


def show_users(request: PageRequest, link: NewLinkView | None = None) -> Response:
    """Show the users and the form for a new one. `link` was just created."""
    rows = [
        UserRow(
            user.name,
            user.display,
            user.role,
            describe_state(user),
            user.issuer,
            user.used or "",
            user.name == request.actor.user,
        )
        for user in _get_users(request).list()
    ]
    return render(
        request,
        "users.html",
        rows=rows,
        roles=[*map(str, Role)],
        link=link,
        name=request.field("name") if request.error else "",
        display=request.field("display") if request.error else "",
        subject=request.field("subject") if request.error else "",
        provider=provider_host(request),
        status=form_status(request.error),
    )


@on_error(show_users, "add")
def add_user(request: PageRequest) -> Response:
    """Add a user and show the link for the person, if there is one."""
    name, role = request.field("name").strip(), _read_role(request)
    display, subject = request.field("display"), request.field("subject")
    created = _get_users(request).add(name, role, request.actor, display, subject)
    if not created.code:
        return request.redirect(USERS_PATH, "user_added", name)
    return show_users(request, _view_link(request, name, created.code))


@on_error(show_users)
def set_role(request: PageRequest) -> Response:
    """Change the role of a user."""
    name = request.path_params["name"]
    _get_users(request).set_role(name, _read_role(request), request.actor)
    return request.redirect(USERS_PATH, "user_changed", name)


@on_error(show_users)
def disable(request: PageRequest) -> Response:
    """End the sign-ins of a user, and reject the user's tokens."""
    name = request.path_params["name"]
    _get_users(request).disable(name, request.actor)
    return request.redirect(USERS_PATH, "user_disabled", name)


@on_error(show_users)
def enable(request: PageRequest) -> Response:
    """Accept a disabled user again."""
    name = request.path_params["name"]
    _get_users(request).enable(name, request.actor)
    return request.redirect(USERS_PATH, "user_enabled", name)


@on_error(show_users)
def create_link(request: PageRequest) -> Response:
    """Create a link like that of a new user, and show it."""
    name = request.path_params["name"]
    created = _get_users(request).create_link(name, request.actor)
    return show_users(request, _view_link(request, name, created.code))


def confirm_removal(request: PageRequest) -> Response:
    """Ask for confirmation before a user is removed."""
    accounts = _require_accounts(request)
    user = accounts.users.find(request.path_params["name"])
    return render(
        request,
        "user_remove.html",
        request.translations("users.remove_title", name=user.name),
        name=user.name,
        token_count=len(accounts.tokens.list(user=user.id)),
    )


@on_error(show_users)
def remove(request: PageRequest) -> Response:
    """Remove a user, revoke the user's tokens and end the user's sign-ins."""
    name = request.path_params["name"]
    _get_users(request).remove(name, request.actor)
    return request.redirect(USERS_PATH, "user_removed", name)


def _get_users(request: PageRequest) -> "UserAccounts":
    return _require_accounts(request).users


def _require_accounts(request: PageRequest) -> "Accounts":
    if request.site.accounts is None:
        raise HttpError("not_found", request.translations("account.no_token"))
    return request.site.accounts


def _view_link(request: PageRequest, name: str, code: str) -> NewLinkView:
    """Return the link with the address by which the administrator reaches the server."""
    own_url = f"{request.url.scheme}://{request.url.netloc}"
    return NewLinkView(name, build_join_link(request.site.settings.server, code, own_url))


def _read_role(request: PageRequest) -> Role:
    try:
        return Role(request.field("role"))
    except ValueError:
        raise FieldRefused("role", f"must be one of: {', '.join(Role)}") from None
