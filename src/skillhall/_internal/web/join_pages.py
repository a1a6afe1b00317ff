"""Pages for the link of a new user: set a password, or sign in at the identity provider."""

from typing import TYPE_CHECKING

from starlette.responses import Response

from skillhall._internal.http.credentials import Credential
from skillhall._internal.web.account_pages import add_sign_in, provider_host
from skillhall._internal.web.oidc_pages import start_attempt
from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall._internal.web.rendering import render
from skillhall.errors import FieldRefused, LinkExpired

if TYPE_CHECKING:
    from skillhall._internal.wiring.database import UserAccounts  # imports the database driver


def show_join(request: PageRequest) -> Response:
    """Show the form of a link. The code is in the fragment of the link."""
    code, provider = request.field("code"), provider_host(request)
    return render(request, "join.html", code=code, provider=provider, status=None)


@on_error(show_join)
def join(request: PageRequest) -> Response:
    """Set the password of a new user, and sign in."""
    request.site.credentials.limit_failures(request.scope)
    if request.field("password") != request.field("repeated"):
        raise FieldRefused("password", request.translations("join.different"))
    users, code = _check_link(request)
    user = users.use_link(code, request.field("password"), request.actor)
    response = request.redirect("/", "joined", user.name)
    add_sign_in(request, response, Credential(user=user))
    return response


@on_error(show_join)
def connect(request: PageRequest) -> Response:
    """Send a new user to the identity provider.

    The response is a page that refreshes instead of a redirect: the Content-Security-Policy does
    not allow a form to redirect to another site.
    """
    request.site.credentials.limit_failures(request.scope)
    _, code = _check_link(request)
    url, cookie = start_attempt(request, "/", code)
    response = render(request, "signed_in.html", url=url, is_signed_in=False)
    response.headers.append("set-cookie", cookie)
    return response


def _check_link(request: PageRequest) -> tuple["UserAccounts", str]:
    """Return the users, and the code in the form. Raises: LinkExpired."""
    accounts, code = request.site.accounts, request.field("code").strip()
    if accounts is None:
        raise LinkExpired
    try:
        accounts.users.find_link(code)
    except LinkExpired:
        request.site.credentials.limit_failures(request.scope, is_failure=True)
        raise
    return accounts.users, code
