"""Pages that sign in at an identity provider."""

from typing import TYPE_CHECKING

from starlette.responses import Response

from skillhall._internal.http.auth_middleware import OIDC_CALLBACK_PATH
from skillhall._internal.http.credentials import Credential
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.web.account_pages import check_return_path, show_sign_in
from skillhall._internal.web.page_request import PageRequest, on_error, redirect
from skillhall._internal.web.rendering import render

if TYPE_CHECKING:
    from skillhall._internal.wiring.database import (  # imports the database driver
        OidcProvider,
        UserAccounts,
    )

ATTEMPT_COOKIE = "skillhall_oidc"
_ATTEMPT_LIFETIME = 600  # seconds
SIGN_IN_LIFETIME = 12 * 3600  # seconds; people who left the provider are signed out by then


@on_error(show_sign_in)
def start(request: PageRequest) -> Response:
    """Redirect to the identity provider."""
    path = check_return_path(request.query_params.get("next", ""))
    url, cookie = start_attempt(request, path)
    response = redirect(url)
    response.headers.append("set-cookie", cookie)
    return response


def start_attempt(request: PageRequest, return_path: str, code: str = "") -> tuple[str, str]:
    """Start to sign in. Returns the URL at the identity provider, and a Set-Cookie value.

    `code` is that of a link whose user is connected with the identity.
    """
    provider, _ = _require_provider(request)
    url, attempt = provider.start(_callback_url(request), return_path, code)
    return url, _build_cookie(request, attempt.encode(), _ATTEMPT_LIFETIME)


@on_error(show_sign_in)
def finish(request: PageRequest) -> Response:
    """Sign in the person that the identity provider has authenticated.

    The response is a page that refreshes instead of a redirect: the chain of redirects began on
    another site, so the browser would not send the new cookie.
    """
    provider, users = _require_provider(request)
    attempt = provider.decode_attempt(request.cookies.get(ATTEMPT_COOKIE, ""))
    identity = provider.finish(dict(request.query_params), attempt, _callback_url(request))
    user = users.sign_in_identity(identity, request.actor, attempt.code)
    credential = Credential(user=user)
    sign_in = request.site.credentials.sign_in(credential, request.scope, SIGN_IN_LIFETIME)
    path = check_return_path(attempt.return_path)
    response = render(request, "signed_in.html", url=path, is_signed_in=True)
    response.headers.append("set-cookie", sign_in.decode("ascii"))
    response.headers.append("set-cookie", _build_cookie(request, "", 0))
    return response


def _require_provider(request: PageRequest) -> tuple["OidcProvider", "UserAccounts"]:
    accounts = request.site.accounts
    if accounts is None or accounts.provider is None:
        raise HttpError("not_found", request.translations("sign_in.no_provider"))
    return accounts.provider, accounts.users


def _callback_url(request: PageRequest) -> str:
    own_url = f"{request.url.scheme}://{request.url.netloc}"
    return f"{request.site.settings.server.public_url or own_url}{OIDC_CALLBACK_PATH}"


def _build_cookie(request: PageRequest, value: str, seconds: int) -> str:
    """Return a Set-Cookie value. Browsers omit `Strict` cookies after the provider's redirect."""
    build = request.site.credentials.build_cookie
    return build(ATTEMPT_COOKIE, value, seconds, same_site="Lax").decode("ascii")
