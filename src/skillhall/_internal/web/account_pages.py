"""Pages for signing in and out, the user's sign-ins, and preferences."""

from datetime import timedelta
from typing import NamedTuple

from starlette.responses import Response

from skillhall._internal.http.auth_middleware import SIGN_IN_PATH
from skillhall._internal.http.credentials import SESSION_COOKIE, Credential
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.users import create_own_token, list_own_scopes, require_user
from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.web.page_request import (
    LANGUAGE_COOKIE,
    THEME_COOKIE,
    THEMES,
    PageRequest,
    on_error,
    redirect,
)
from skillhall._internal.web.rendering import render
from skillhall._internal.web.translations import LANGUAGES
from skillhall.errors import FieldRefused, RecordNotFound

ACCOUNT_PATH = "/account"
_LIFETIMES = (30, 90, 365)  # days
_PREFERENCE_LIFETIME = 365 * 24 * 3600  # seconds
# What user agents contain, and the names that people know. Most browsers also name others, which
# therefore come later.
_BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "Chrome/": "Chrome",
    "CriOS/": "Chrome",
    "Safari/": "Safari",
}
_SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


class SignInRow(NamedTuple):
    """Sign-in of the user."""

    id: str
    browser: str
    user_agent: str
    address: str
    created: str
    used: str
    is_current: bool  # whether it is that of this browser


class TokenRow(NamedTuple):
    """Token of the user."""

    id: str
    label: str
    scopes: str
    created: str
    expires: str  # "" for never
    used: str  # "" for never


def show_sign_in(request: PageRequest) -> Response:
    """Show the sign-in form, or redirect if no sign-in is required."""
    return_path = _read_return_path(request)
    if not request.site.credentials.is_required:
        return redirect(return_path)
    return render(
        request,
        "sign_in.html",
        return_path=return_path,
        has_users=request.site.credentials.has_users,
        uses_token=bool(request.field("token")),
        provider=provider_host(request),
    )


@on_error(show_sign_in)
def sign_in(request: PageRequest) -> Response:
    """Sign in with a name and a password, or with an access token."""
    response = redirect(_read_return_path(request))
    if request.site.credentials.is_required:
        add_sign_in(request, response, _authenticate(request))
    return response


def _authenticate(request: PageRequest) -> Credential:
    """Return the credential in the sign-in form. Raises: HttpError, Busy."""
    credentials, accounts = request.site.credentials, request.site.accounts
    token, name = request.field("token").strip(), request.field("name").strip()
    if name and not token and accounts is not None:
        credential = credentials.authenticate_password(
            name, request.field("password"), accounts.verify_password, request.scope
        )
        problem = request.translations("sign_in.wrong_password")
    else:
        data = token.encode("utf-8", "replace")
        credential = credentials.authenticate_token(data, request.scope)
        problem = request.translations("sign_in.wrong")
    if credential is None:
        raise HttpError("unauthenticated", problem)
    return credential


def add_sign_in(request: PageRequest, response: Response, credential: Credential) -> None:
    """Sign in with a credential, and add the cookie to a response."""
    cookie = request.site.credentials.sign_in(credential, request.scope)
    response.headers.append("set-cookie", cookie.decode("ascii"))


def sign_out(request: PageRequest) -> Response:
    """End the sign-in and delete its cookie."""
    credential = request.credential
    if credential is not None and credential.sign_in is not None:
        request.site.credentials.end_sign_in(credential, credential.sign_in.id, request.actor)
    response = redirect(SIGN_IN_PATH)
    request.add_cookie(response, SESSION_COOKIE, "", 0)
    return response


def show_account(request: PageRequest, new_token: str = "") -> Response:
    """Show the user or token, and the sign-ins; of a user also the tokens.

    `new_token` is the text of a token that was just created.
    """
    credential, accounts = request.credential, request.site.accounts
    if credential is None:
        raise HttpError("not_found", request.translations("account.no_token"))
    user, tokens = credential.user, []
    if user is not None and accounts is not None:
        tokens = [
            TokenRow(
                token.id,
                token.label,
                " ".join(token.scopes),
                token.created,
                token.expires or "",
                token.used or "",
            )
            for token in accounts.tokens.list(user=user.id)
        ]
    return render(
        request,
        "account.html",
        owner=credential.owner,
        user=user,
        token=credential.token,
        scopes=[*map(str, credential.scopes)],
        expires=(credential.token.expires or "") if credential.token else "",
        rows=_list_sign_ins(request, credential),
        tokens=tokens,
        new_token=new_token,
        own_scopes=[*map(str, list_own_scopes(credential))],
        lifetimes=_LIFETIMES,
        label=request.field("label") if request.failed_form == "token" else "",
    )


@on_error(show_account, "token")
def create_token(request: PageRequest) -> Response:
    """Create a token of the user, and show it once."""
    accounts, days = request.site.accounts, request.number_field("days")
    if accounts is None:
        raise HttpError("not_found", request.translations("account.no_token"))
    chosen = request.fields.getlist("scope")
    scopes = [scope for scope in AccessScope if scope in chosen]
    if not scopes:
        raise FieldRefused("scope", request.translations("account.choose_scope"))
    lifetime = timedelta(days=days) if days in _LIFETIMES else None
    label = request.field("label")
    created = create_own_token(
        accounts.tokens, request.credential, label, scopes, lifetime, actor=request.actor
    )
    return show_account(request, created.text)


@on_error(show_account)
def revoke_token(request: PageRequest) -> Response:
    """Revoke a token of the user."""
    accounts, identity = request.site.accounts, request.path_params["id"]
    if accounts is None:
        raise RecordNotFound("token", identity)
    user = require_user(request.credential)
    accounts.tokens.revoke(identity, user.id, actor=request.actor)
    return request.redirect(ACCOUNT_PATH, "token_revoked", "")


@on_error(show_account, "password")
def change_password(request: PageRequest) -> Response:
    """Change the password of the user, and end the other sign-ins."""
    accounts, credential = request.site.accounts, request.credential
    user = require_user(credential)
    if request.field("password") != request.field("repeated"):
        raise FieldRefused("password", request.translations("join.different"))
    if accounts is None or credential is None:
        raise HttpError("not_found", request.translations("account.no_token"))
    # Someone at another user's browser must not guess the password, either.
    request.site.credentials.limit_failures(request.scope)
    try:
        accounts.users.change_password(
            user,
            request.field("current"),
            request.field("password"),
            request.actor,
            "" if credential.sign_in is None else credential.sign_in.id,
        )
    except FieldRefused as error:
        if error.field == "current":
            request.site.credentials.limit_failures(request.scope, is_failure=True)
        raise
    return request.redirect(ACCOUNT_PATH, "password_changed", "")


@on_error(show_account)
def end_sign_in(request: PageRequest) -> Response:
    """End a sign-in of the user, or with the token."""
    credential, identity = request.credential, request.path_params["id"]
    credentials, actor = request.site.credentials, request.actor
    if credential is None or not credentials.end_sign_in(credential, identity, actor):
        raise RecordNotFound("sign-in", identity)
    return request.redirect(ACCOUNT_PATH, "sign_in_ended", "")


def save_preferences(request: PageRequest) -> Response:
    """Save the chosen language or theme in a cookie."""
    response = redirect(_read_return_path(request))
    for name, known in ((LANGUAGE_COOKIE, LANGUAGES), (THEME_COOKIE, THEMES)):
        value = request.field(name.removeprefix("skillhall_"))
        if value in known:
            request.add_cookie(response, name, value, _PREFERENCE_LIFETIME)
    return response


def _list_sign_ins(request: PageRequest, credential: Credential) -> list[SignInRow]:
    return [
        SignInRow(
            item.id,
            describe_browser(item.agent),
            item.agent,
            item.address,
            item.created,
            item.used,
            credential.sign_in is not None and item.id == credential.sign_in.id,
        )
        for item in request.site.credentials.list_sign_ins(credential)
    ]


def describe_browser(user_agent: str) -> str:
    """Return the browser and its system, such as "Firefox on Linux", or the user agent."""
    names = [
        next((name for part, name in known.items() if part in user_agent), "")
        for known in (_BROWSERS, _SYSTEMS)
    ]
    return " on ".join(names) if all(names) else user_agent


def provider_host(request: PageRequest) -> str:
    """Return the host of the identity provider, or ""."""
    accounts = request.site.accounts
    return "" if accounts is None or accounts.provider is None else accounts.provider.host


def _read_return_path(request: PageRequest) -> str:
    """Return the path in `next` if it leads to a page of this server, else "/"."""
    return check_return_path(request.field("next") or request.query_params.get("next", ""))


def check_return_path(text: str) -> str:
    """Return a path if it leads to a page of this server, else "/"."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isascii()
    return text if is_local and text.isprintable() and len(text) < 2000 else "/"  # noqa: PLR2004
