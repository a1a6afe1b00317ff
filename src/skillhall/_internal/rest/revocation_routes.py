"""The list of revoked skills, and changes to it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from skillhall._internal.policy.trust.revocations import LIST_PATH
from skillhall._internal.rest.api_route import ApiRoute
from skillhall._internal.rest.etag import document_response
from skillhall._internal.rest.responses import (
    NOT_MODIFIED,
    PUBLIC,
    describe_content,
    describe_errors,
)
from skillhall._internal.rest.route_parameters import AcceptEncoding, IfNoneMatch, app_state
from skillhall._internal.skill.signatures.envelope import ENVELOPE_TYPE
from skillhall._internal.skill_store.revocation_list import PublishedRevocations

_UNAVAILABLE = describe_errors({503: "The database was never available."})
_LIST = describe_content("The list of revoked digests.", "application/json", {"type": "object"})
_Published = Annotated[PublishedRevocations, app_state("revocations")]

router = APIRouter(tags=["installers"], route_class=ApiRoute)


@router.get(
    LIST_PATH,
    response_class=Response,
    responses=_LIST | NOT_MODIFIED | _UNAVAILABLE,
    openapi_extra=PUBLIC,
)
def get_revocation_list(
    published: _Published,
    if_none_match: IfNoneMatch = None,
    accept_encoding: AcceptEncoding = "",
) -> Response:
    """Return the list of revoked digests, in a signed envelope if the server has a key."""
    content_type = ENVELOPE_TYPE if published.is_signed else "application/json"
    document, headers = published.get_document(), {"content-type": content_type}
    return document_response(document, headers, if_none_match, accept_encoding)
