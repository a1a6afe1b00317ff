"""Pages about the versions of skills: the review queue, the history, and one version."""

from urllib.parse import quote

from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.policy.trust.version_states import VersionState
from skillhall._internal.skill_store.versions.skill_versions import SkillVersions
from skillhall._internal.web.page_request import PageRequest, on_error, parse_number
from skillhall._internal.web.rendering import form_status, render
from skillhall.errors import VersionNotFound

BIN_PATH = "/skills/deleted"


def show_queue(request: PageRequest) -> Response:
    """Show the versions that wait for a review, and drafts that were not submitted."""
    versions = _get_versions(request)
    drafts = [row for row in versions.list_drafts() if row.state is VersionState.DRAFT]
    return render(request, "reviews.html", queue=versions.list_queue(), drafts=drafts)


def show_history(request: PageRequest) -> Response:
    """Show the versions of a skill, newest first."""
    skill_id, versions = request.path_params["id"], _get_versions(request)
    listed = versions.list(skill_id, with_drafts=request.may(Action.WRITE_SKILLS))
    if not listed.versions:
        request.collection.find(skill_id)  # raises an error if there is no such skill
    return render(
        request,
        "versions.html",
        request.translations("versions.title", name=skill_id),
        id=skill_id,
        listed=listed,
        can_review=versions.is_on and request.may(Action.REVIEW_SKILLS),
        can_restore=request.may(Action.WRITE_SKILLS),
        is_served=skill_id in request.collection.snapshot().skills,
        is_reviewed=versions.is_on,
    )


def show_bin(request: PageRequest) -> Response:
    """Show the skills that were deleted in the last 30 days."""
    versions = request.collection.versions
    rows = versions.list_bin() if versions else ()
    return render(request, "bin.html", rows=rows, has_bin=versions is not None)


@on_error(show_bin)
def restore_deleted(request: PageRequest) -> Response:
    """Restore a deleted skill."""
    return _restore(request, None)


def confirm_purge(request: PageRequest) -> Response:
    """Ask for confirmation before a deleted skill is deleted permanently."""
    skill_id = request.path_params["id"]
    _get_versions(request).read_files(skill_id, None)  # raises an error if it is not in the bin
    return render(
        request, "purge.html", request.translations("bin.purge_title", name=skill_id), id=skill_id
    )


@on_error(show_bin)
def purge(request: PageRequest) -> Response:
    """Delete the files of a deleted skill permanently."""
    skill_id = request.path_params["id"]
    _get_versions(request).purge(skill_id, request.actor)
    return request.redirect(BIN_PATH, "purged", skill_id)


def show_version(request: PageRequest) -> Response:
    """Show one version: what changed, new findings first, and what can be decided."""
    skill_id, number = _read_path(request)
    against = request.query_params.get("against", "")
    other = parse_number(against) if against else None
    versions = _get_versions(request)
    with_drafts = request.may(Action.WRITE_SKILLS)
    comparison = versions.diff(skill_id, number, other, with_drafts=with_drafts)
    return render(
        request,
        "version.html",
        f"{skill_id}@{number}",
        status=form_status(request.error),
        comparison=comparison,
        details=comparison.details,
        version=comparison.details.version,
        comment=request.field("comment"),
        can_write=with_drafts,
        can_review=versions.is_on and request.may(Action.REVIEW_SKILLS),
        is_reviewed=versions.is_on,
    )


@on_error(show_version, "submit")
def submit(request: PageRequest) -> Response:
    """Submit a draft for review."""
    skill_id, number = _read_path(request)
    comment = request.field("comment")
    _get_versions(request).submit(skill_id, number, request.actor, comment)
    return _redirect(request, "version_submitted")


@on_error(show_version, "review")
def approve(request: PageRequest) -> Response:
    """Approve the version whose digest was shown."""
    skill_id, number = _read_path(request)
    digest, comment = request.field("digest"), request.field("comment")
    _get_versions(request).approve(skill_id, number, request.actor, digest, comment)
    return _redirect(request, "version_approved")


@on_error(show_version, "review")
def return_(request: PageRequest) -> Response:
    """Return a version to its author."""
    skill_id, number = _read_path(request)
    _get_versions(request).return_(skill_id, number, request.actor, request.field("comment"))
    return _redirect(request, "version_returned")


@on_error(show_version, "yank")
def yank(request: PageRequest) -> Response:
    """Yank an approved version."""
    skill_id, number = _read_path(request)
    _get_versions(request).yank(skill_id, number, request.actor, request.field("comment"))
    return _redirect(request, "version_yanked")


@on_error(show_version, "restore")
def restore(request: PageRequest) -> Response:
    """Restore a version: with review, as a new draft."""
    return _restore(request, _read_path(request)[1])


@on_error(show_version, "use")
def use(request: PageRequest) -> Response:
    """Serve an approved version."""
    skill_id, number = _read_path(request)
    _get_versions(request).use(skill_id, number, request.actor, request.field("comment"))
    return _redirect(request, "version_used")


def build_history_url(skill_id: str) -> str:
    """Return the URL of the history of a skill."""
    return f"/skill/{quote(skill_id, safe='')}/versions"


def _restore(request: PageRequest, number: int | None) -> Response:
    skill_id, collection = request.path_params["id"], request.collection
    change = collection.restore(skill_id, number, actor=request.actor).change_id
    if collection.is_reviewed:
        return request.redirect(build_history_url(skill_id), "drafted", skill_id, change)
    subject = skill_id if number is None else f"{skill_id}@{number}"
    return request.redirect(f"/skill/{quote(skill_id, safe='')}", "restored", subject, change)


def _get_versions(request: PageRequest) -> SkillVersions:
    if request.collection.versions is None:
        raise HttpError("not_found", "versions are not recorded on this server")
    return request.collection.versions


def _read_path(request: PageRequest) -> tuple[str, int]:
    """Return the id and the number in the path. Raises: VersionNotFound."""
    skill_id, text = request.path_params["id"], request.path_params["number"]
    number = parse_number(text)
    if number < 1:
        raise VersionNotFound(skill_id, text)
    return skill_id, number


def _redirect(request: PageRequest, notice: str) -> Response:
    skill_id, number = _read_path(request)
    return request.redirect(build_history_url(skill_id), notice, f"{skill_id}@{number}")
