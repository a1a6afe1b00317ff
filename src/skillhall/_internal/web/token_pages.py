"""Page on which administrators see the tokens of all users, and revoke them."""

from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall._internal.web.rendering import form_status, render

if TYPE_CHECKING:
    from skillhall._internal.wiring.database import AccessTokens  # imports the database driver

TOKENS_PATH = "/tokens"


class OwnedTokenRow(NamedTuple):
    """Token of any owner."""

    id: str
    label: str
    owner: str
    scopes: str
    created: str
    expires: str  # "" for never
    used: str  # "" for never
    state: str


def show_tokens(request: PageRequest) -> Response:
    """Show the tokens of all owners; with `?revoked=true`, also revoked ones."""
    tokens, with_revoked = _get_tokens(request), request.query_params.get("revoked") == "true"
    rows = [
        OwnedTokenRow(
            token.id,
            token.label,
            token.owner,
            " ".join(token.scopes),
            token.created,
            token.expires or "",
            token.used or "",
            tokens.describe_state(token),
        )
        for token in tokens.list(with_revoked=with_revoked)
    ]
    status = form_status(request.error)
    return render(request, "tokens.html", rows=rows, with_revoked=with_revoked, status=status)


@on_error(show_tokens)
def revoke(request: PageRequest) -> Response:
    """Revoke a token of any owner."""
    _get_tokens(request).revoke(request.path_params["id"], actor=request.actor)
    return request.redirect(TOKENS_PATH, "token_revoked", "")


def _get_tokens(request: PageRequest) -> "AccessTokens":
    if request.site.accounts is None:
        raise HttpError("not_found", request.translations("account.no_token"))
    return request.site.accounts.tokens
