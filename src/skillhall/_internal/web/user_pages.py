"""Pages on which administrators manage users."""

from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.users import build_join_link, describe_state
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall._internal.web.rendering import form_status, render
from skillhall.errors import FieldRefused

if TYPE_CHECKING:
    from skillhall._internal.wiring.database import UserAccounts  # imports the database driver

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
    """Link to set a password, shown once."""

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
            f"{user.used[:16].replace('T', ' ')} UTC" if user.used else "",
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
        status=form_status(request.error),
    )


@on_error(show_users, "add")
def add_user(request: PageRequest) -> Response:
    """Add a user and show the link for the person."""
    name, role = request.field("name").strip(), _read_role(request)
    display = request.field("display")
    created = _get_users(request).add(name, role, request.actor, display)
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
    """Create a link where a user sets a password, and show it."""
    name = request.path_params["name"]
    created = _get_users(request).create_link(name, request.actor)
    return show_users(request, _view_link(request, name, created.code))


def _get_users(request: PageRequest) -> "UserAccounts":
    if request.site.accounts is None:
        raise HttpError("not_found", request.translations("account.no_token"))
    return request.site.accounts.users


def _view_link(request: PageRequest, name: str, code: str) -> NewLinkView:
    """Return the link with the address by which the administrator reaches the server."""
    own_url = f"{request.url.scheme}://{request.url.netloc}"
    return NewLinkView(name, build_join_link(request.site.settings.server, code, own_url))


def _read_role(request: PageRequest) -> Role:
    try:
        return Role(request.field("role"))
    except ValueError:
        raise FieldRefused("role", f"must be one of: {', '.join(Role)}") from None
