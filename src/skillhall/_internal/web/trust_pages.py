"""Pages about trust: revocations, the inventory of machines, and the security checklist."""

from itertools import groupby
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.policy.trust.revocations import Revocation
from skillhall._internal.policy.trust.security_checklist import ChecklistAnswer, count_answers
from skillhall._internal.skill_store.trust.inventory_overview import InventoryQuery, ServerState
from skillhall._internal.skill_store.trust.server_trust import ServerTrust
from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall._internal.web.rendering import form_status, render

_MAX_ROWS = 500
_MAX_TEXT = 200  # characters of a filter


class RevocableFiles(NamedTuple):
    """Files that a form revokes."""

    name: str
    digest: str
    revocation: Revocation | None
    url: str  # of the form
    page: str  # URL of the page that leads to the form
    by_name: bool = False  # all digests of the skill: with and without hidden files


class RiskSection(NamedTuple):
    """The rows of one risk."""

    risk: str
    answers: tuple[ChecklistAnswer, ...]


def show_revocation(request: PageRequest) -> Response:
    """Show the form that revokes a skill, or undoes its revocation."""
    return _render_revocation(request, _find_skill(request))


@on_error(show_revocation)
def revoke(request: PageRequest) -> Response:
    """Revoke the files of a skill that were shown."""
    return _revoke(request, _find_skill(request), shown=request.field("digest") or "none")


@on_error(show_revocation)
def undo_revocation(request: PageRequest) -> Response:
    """Undo the revocation of a skill."""
    return _undo_revocation(request, _find_skill(request))


def show_reported(request: PageRequest) -> Response:
    """Show the form for files that machines reported. The server may not have them."""
    return _render_revocation(request, _find_reported(request))


@on_error(show_reported)
def revoke_reported(request: PageRequest) -> Response:
    """Revoke files that machines reported."""
    return _revoke(request, _find_reported(request))


@on_error(show_reported)
def undo_reported(request: PageRequest) -> Response:
    """Undo the revocation of files that machines reported."""
    return _undo_revocation(request, _find_reported(request))


def _find_skill(request: PageRequest) -> RevocableFiles:
    skill = request.path_params["id"]
    details, page = request.collection.details(skill), f"/skill/{quote(skill, safe='')}"
    revocation = details.entry.revocation
    return RevocableFiles(skill, details.digest, revocation, f"{page}/revoke", page, by_name=True)


def _find_reported(request: PageRequest) -> RevocableFiles:
    digest = request.path_params["id"]
    for row in _get_trust(request).build_overview(InventoryQuery()).rows:
        if row.digest and row.digest == digest:
            url = f"/inventory/{quote(digest, safe='')}/revoke"
            return RevocableFiles(row.names[0], digest, row.revocation, url, "/inventory")
    raise HttpError("not_found", "no machine reported these files")


def _render_revocation(request: PageRequest, files: RevocableFiles) -> Response:
    title = request.translations("revocation.title", name=files.name)
    if files.revocation:
        title = request.translations("revocation.undo_title", name=files.name)
    return render(
        request,
        "revoke.html",
        title,
        status=form_status(request.error),
        files=files,
        reason=request.field("reason"),
        instead=request.field("instead"),
    )


def _revoke(request: PageRequest, files: RevocableFiles, shown: str = "") -> Response:
    reason, instead = request.field("reason"), request.field("instead")
    _get_trust(request).revoke(
        request.actor,
        digest="" if files.by_name else files.digest,
        skill=files.name,
        reason=reason,
        instead=instead,
        shown=shown,
    )
    return request.redirect(files.page, "revoked", files.name)


def _undo_revocation(request: PageRequest, files: RevocableFiles) -> Response:
    digest = "" if files.by_name else files.digest
    _get_trust(request).restore(
        request.actor, digest=digest, skill=files.name, reason=request.field("reason")
    )
    return request.redirect(files.page, "revocation_undone", files.name)


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
