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
    from skillhall._internal.wiring.database import Accounts  # imports the database driver

ATTEMPT_COOKIE = "skillhall_oidc"
_ATTEMPT_LIFETIME = 600  # seconds
SIGN_IN_LIFETIME = 12 * 3600  # seconds; people who left the provider are out by then


@on_error(show_sign_in)
def start(request: PageRequest) -> Response:
    """Redirect to the identity provider."""
    from skillhall._internal.wiring.database import encode_attempt  # noqa: PLC0415 - the driver

    provider = _require_accounts(request).provider
    assert provider is not None  # noqa: S101 - checked
    url, attempt = provider.start(_callback_url(request))
    response = redirect(url)
    value = encode_attempt(attempt, check_return_path(request.query_params.get("next", "")))
    # The provider's site leads back to us: browsers send no stricter cookie then.
    _set_attempt(request, response, value, _ATTEMPT_LIFETIME)
    return response


@on_error(show_sign_in)
def finish(request: PageRequest) -> Response:
    """Sign in the person that the identity provider has authenticated.

    Answers with a page that refreshes: after a redirect, the browser would not send the new cookie,
    since the chain of redirects began on another site.
    """
    from skillhall._internal.wiring.database import decode_attempt  # noqa: PLC0415 - the driver

    accounts, credentials = _require_accounts(request), request.site.credentials
    assert accounts.provider is not None  # noqa: S101 - checked
    attempt, path = decode_attempt(request.cookies.get(ATTEMPT_COOKIE, ""))
    answer = dict(request.query_params)
    identity = accounts.provider.finish(answer, attempt, _callback_url(request))
    user = accounts.users.sign_in_identity(identity, request.actor)
    cookie = credentials.sign_in(Credential(user=user), request.scope, SIGN_IN_LIFETIME)
    response = render(request, "signed_in.html", return_path=check_return_path(path))
    response.headers.append("set-cookie", cookie.decode("ascii"))
    _set_attempt(request, response, "", 0)
    return response


def _require_accounts(request: PageRequest) -> "Accounts":
    accounts = request.site.accounts
    if accounts is None or accounts.provider is None:
        raise HttpError("not_found", request.translations("sign_in.no_provider"))
    return accounts


def _callback_url(request: PageRequest) -> str:
    own_url = f"{request.url.scheme}://{request.url.netloc}"
    return f"{request.site.settings.server.public_url or own_url}{OIDC_CALLBACK_PATH}"


def _set_attempt(request: PageRequest, response: Response, value: str, seconds: int) -> None:
    build = request.site.credentials.build_cookie
    cookie = build(ATTEMPT_COOKIE, value, seconds, same_site="Lax")
    response.headers.append("set-cookie", cookie.decode("ascii"))
