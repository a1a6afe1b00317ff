"""Pages about trust: revocations, the inventory of machines, and the security checklist."""

from itertools import groupby
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.policy.trust.security_checklist import ChecklistAnswer, count_answers
from skillhall._internal.skill_store.trust.inventory_overview import InventoryQuery, ServerState
from skillhall._internal.skill_store.trust.server_trust import ServerTrust
from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall._internal.web.rendering import form_status, render
from skillhall.errors import StaleVersionError

_MAX_ROWS = 500
_MAX_TEXT = 200  # characters of a filter


class RiskSection(NamedTuple):
    """The rows of one risk."""

    risk: str
    answers: tuple[ChecklistAnswer, ...]


def show_revocation(request: PageRequest) -> Response:
    """Show the form that revokes a skill, or undoes its revocation."""
    skill = request.path_params["id"]
    details = request.collection.details(skill)
    return render(
        request,
        "revoke.html",
        request.translations("revocation.title", name=skill),
        status=form_status(request.error),
        id=skill,
        revocation=details.entry.revocation,
        digest=details.digest,
        reason=request.field("reason"),
        instead=request.field("instead"),
    )


@on_error(show_revocation)
def revoke(request: PageRequest) -> Response:
    """Revoke the files of a skill that were shown."""
    skill, trust = request.path_params["id"], _get_trust(request)
    digest = request.collection.details(skill).digest
    if request.field("digest") != digest:
        raise StaleVersionError(skill, digest)
    reason, instead = request.field("reason"), request.field("instead")
    trust.revoke(request.actor, digest="", skill=skill, reason=reason, instead=instead)
    return request.redirect(f"/skill/{quote(skill, safe='')}", "revoked", skill)


@on_error(show_revocation)
def undo_revocation(request: PageRequest) -> Response:
    """Undo the revocation of a skill."""
    skill, reason = request.path_params["id"], request.field("reason")
    _get_trust(request).restore(request.actor, digest="", skill=skill, reason=reason)
    return request.redirect(f"/skill/{quote(skill, safe='')}", "revocation_undone", skill)


def show_inventory(request: PageRequest) -> Response:
    """Show which version of a skill is on which machine."""
    values = {name: request.query_params.get(name, "")[:_MAX_TEXT] for name in _FILTERS}
    query = InventoryQuery(values["q"], values["state"], values["label"])
    overview = _get_trust(request).build_overview(query)
    return render(
        request,
        "inventory.html",
        values=values,
        is_filtered=any(values.values()),
        states=[*ServerState],
        counts=overview.counts,
        rows=overview.rows[:_MAX_ROWS],
        total=len(overview.rows),
        machines=overview.machines,
        server=request.site.settings.server.public_url or str(request.base_url).rstrip("/"),
    )


_FILTERS = ("q", "state", "label")


def show_checklist(request: PageRequest) -> Response:
    """Show the security checklist of this server."""
    return _render_checklist(request, _get_trust(request).answer_checklist())


def show_skill_checklist(request: PageRequest) -> Response:
    """Show the security checklist of a skill."""
    skill = request.path_params["id"]
    answers = _get_trust(request).answer_skill_checklist(skill)
    return _render_checklist(request, answers, skill)


def _render_checklist(
    request: PageRequest, answers: list[ChecklistAnswer], skill: str = ""
) -> Response:
    title = request.translations("checklist.title_skill", name=skill) if skill else None
    groups = groupby(answers, key=lambda one: one.row.risk)
    return render(
        request,
        "checklist.html",
        title,
        skill=skill,
        sections=[RiskSection(risk, tuple(rows)) for risk, rows in groups],
        counts=count_answers(answers),
    )


def _get_trust(request: PageRequest) -> ServerTrust:
    if request.site.trust is None:
        raise HttpError("not_found", "this server has no inventory")
    return request.site.trust
