"""The list of revoked skills, changes to it, and the inventories of machines."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from skillhall._internal.http.access import actor_of, needs
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.http.thread_pool import Work
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.policy.trust.inventory_item import InventoryItem
from skillhall._internal.policy.trust.revocations import LIST_PATH, RevocationEntry
from skillhall._internal.policy.trust.security_checklist import (
    ChecklistAnswer,
    count_answers,
    serialize_answer,
)
from skillhall._internal.rest import requests, responses
from skillhall._internal.rest.api_route import ApiRoute, Json, waits_for
from skillhall._internal.rest.etag import NO_CACHE, document_response
from skillhall._internal.rest.responses import (
    NOT_MODIFIED,
    PUBLIC,
    describe_content,
    describe_errors,
)
from skillhall._internal.rest.route_parameters import (
    AcceptEncoding,
    IfNoneMatch,
    OptionalText,
    app_state,
    path_text,
)
from skillhall._internal.rest.skill_routes import NOT_FOUND, SKILLS_PATH
from skillhall._internal.skill.signatures.envelope import ENVELOPE_TYPE
from skillhall._internal.skill_store.trust.inventory_overview import InventoryQuery, serialize_row
from skillhall._internal.skill_store.trust.server_trust import ServerTrust

REVOCATIONS_PATH = "/api/v1/revocations"
INVENTORIES_PATH = "/api/v1/inventories"
CHECKLIST_PATH = "/api/v1/checklist"
_UNAVAILABLE = describe_errors({503: "The database is unavailable."})
_CONFLICT = describe_errors({409: "The label belongs to another user."})
_LIST = describe_content("The list of revoked digests.", "application/json", {"type": "object"})
_Trust = Annotated[ServerTrust, app_state("trust")]

router = APIRouter(tags=["trust"], route_class=ApiRoute)


@router.get(
    LIST_PATH,
    response_class=Response,
    responses=_LIST | NOT_MODIFIED | _UNAVAILABLE,
    openapi_extra=PUBLIC,
)
def get_revocation_list(
    trust: _Trust,
    if_none_match: IfNoneMatch = None,
    accept_encoding: AcceptEncoding = "",
) -> Response:
    """Return the list of revoked digests, in a signed envelope if the server has a key."""
    content_type = ENVELOPE_TYPE if trust.published.is_signed else "application/json"
    document, headers = trust.published.get_document(), {"content-type": content_type}
    return document_response(document, headers, if_none_match, accept_encoding)


@router.get(
    REVOCATIONS_PATH, response_model=responses.RevocationListResponse, responses=_UNAVAILABLE
)
@waits_for(Work.DATABASE)
@needs(Action.READ)
def list_revocations(trust: _Trust) -> Response:
    """List all entries, oldest first, including those that undo a revocation."""
    entries = [*map(_serialize_entry, trust.revocations.list())]
    return SuccessResponse({"revocations": entries}, headers=NO_CACHE)


@router.post(
    REVOCATIONS_PATH,
    status_code=201,
    response_model=responses.RevocationResponse,
    responses=NOT_FOUND | _UNAVAILABLE,
)
@waits_for(Work.DATABASE)
@needs(Action.REVIEW_SKILLS)
def revoke_skill(
    request: Request, trust: _Trust, body: Json[requests.RevokeSkillRequest]
) -> Response:
    """Revoke a digest or the current files of a skill, or undo a revocation."""
    actor = actor_of(request.scope)
    if not body.revoked:
        restored = trust.restore(actor, digest=body.digest, reason=body.reason)
        return SuccessResponse({"digest": body.digest, "revoked": False, "changed": restored}, 201)
    entry = trust.revoke(
        actor, digest=body.digest, skill=body.skill, reason=body.reason, instead=body.instead
    )
    return SuccessResponse({**_serialize_entry(entry), "changed": True}, 201)


@router.get(INVENTORIES_PATH, response_model=responses.InventoryResponse, responses=_UNAVAILABLE)
@waits_for(Work.DATABASE)
@needs(Action.READ_INVENTORY)
def get_inventory(
    trust: _Trust,
    q: Annotated[
        OptionalText, Query(description="Text in names, digests, sources and labels.")
    ] = None,
    state: Annotated[OptionalText, Query(description="`approved`, `revoked` or `unknown`.")] = None,
    label: Annotated[OptionalText, Query(description="Label of a machine.")] = None,
) -> Response:
    """Return which version of a skill is on which machine, from the last reports."""
    overview = trust.build_overview(InventoryQuery(q or "", state or "", label or ""))
    machines = [
        {"label": one.label, "by": one.by, "at": one.at, "skills": len(one.items)}
        for one in overview.machines
    ]
    data = {"skills": [*map(serialize_row, overview.rows)], "machines": machines}
    return SuccessResponse(data, headers=NO_CACHE)


@router.post(
    INVENTORIES_PATH,
    status_code=201,
    response_model=responses.SentInventoryResponse,
    responses=_CONFLICT | _UNAVAILABLE,
)
@waits_for(Work.DATABASE)
@needs(Action.SEND_INVENTORY)
def send_inventory(
    request: Request, trust: _Trust, body: Json[requests.SendInventoryRequest]
) -> Response:
    """Replace the last report of a label."""
    items = [InventoryItem(**item.model_dump()) for item in body.skills]
    report = trust.inventories.put(actor_of(request.scope), body.label, items)
    return SuccessResponse({"label": report.label, "at": report.at, "skills": len(items)}, 201)


@router.get(CHECKLIST_PATH, response_model=responses.ChecklistResponse, responses=_UNAVAILABLE)
@waits_for(Work.DATABASE)
@needs(Action.READ)
def get_checklist(trust: _Trust) -> Response:
    """Answer the security checklist for this server."""
    return SuccessResponse(_serialize_checklist(trust.answer_checklist()), headers=NO_CACHE)


@router.get(
    SKILLS_PATH + "/{id}/checklist",
    response_model=responses.ChecklistResponse,
    responses=NOT_FOUND,
)
@needs(Action.READ)
def get_skill_checklist(
    trust: _Trust, skill_id: Annotated[str, path_text("Id of the skill.", alias="id")]
) -> Response:
    """Answer the security checklist for a skill."""
    answers = trust.answer_skill_checklist(skill_id)
    return SuccessResponse(_serialize_checklist(answers), headers=NO_CACHE)


def _serialize_checklist(answers: list[ChecklistAnswer]) -> dict[str, object]:
    return {"rows": [*map(serialize_answer, answers)], "counts": count_answers(answers)}


def _serialize_entry(entry: RevocationEntry) -> dict[str, object]:
    values = entry._asdict()
    return {"revoked": values.pop("is_revoked"), **values}
