"""Routes of the versions of skills and of their reviews."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from starlette.responses import Response

from skillhall._internal.http.access import may, needs
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.http.thread_pool import Work
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.policy.trust.version_states import ReviewMode
from skillhall._internal.rest import requests, responses
from skillhall._internal.rest.api_route import DatabaseRoute, Json, JsonBody, waits_for
from skillhall._internal.rest.etag import NO_CACHE
from skillhall._internal.rest.responses import describe_errors
from skillhall._internal.rest.route_parameters import (
    ActorDep,
    CollectionDep,
    OptionalBlankText,
    path_text,
)
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.serializers import (
    serialize_comparison,
    serialize_deleted,
    serialize_stored,
    serialize_version_change,
    serialize_version_details,
    serialize_versions,
    serialize_waiting,
)
from skillhall._internal.skill_store.undoable_changes import SkillChangeResult
from skillhall._internal.skill_store.versions.skill_versions import SkillVersions, VersionList
from skillhall.errors import SkillNotFound, VersionNotFound

_VERSIONS_PATH = "/api/v1/skills/{id}/versions"
_BIN_PATH = "/api/v1/bin/{id}"
_CURRENT_PATH = "/api/v1/skills/{id}/current"
_VERSION_PATH = _VERSIONS_PATH + "/{number}"
_BAD_REQUEST = describe_errors({400: "Invalid request."})
_NOT_FOUND = describe_errors({404: "Skill or version not found."})
_CONFLICT = describe_errors({409: "The version is in another state."})
_OWN_WORK = describe_errors({403: "Not allowed, or you are an author of the version."})
_READ_ONLY = describe_errors({403: "Not allowed, or the skill is read-only."})
_STALE = describe_errors(
    {412: "Another version is in review; the details have its digest.", 428: "If-Match is missing."}
)
_ERRORS = _BAD_REQUEST | _NOT_FOUND
_SkillId = Annotated[str, path_text("Id of the skill.", alias="id")]
_Number = Annotated[int, Path(description="Number of the version.", ge=1, le=2**53)]
_OptionalComment = Annotated[requests.VersionCommentRequest, JsonBody(is_required=False)]

router = APIRouter(tags=["versions"], route_class=DatabaseRoute)


async def _require_digest(
    if_match: Annotated[
        OptionalBlankText,
        Header(alias="If-Match", description="Digest of the version, in double quotes."),
    ] = None,
) -> str:
    if if_match is None or not if_match.strip():
        message = "If-Match is missing: send the digest of the version that you reviewed"
        raise HttpError("precondition_required", message)
    return if_match.strip().removeprefix("W/").strip('"')


RequiredDigest = Annotated[str, Depends(_require_digest)]


@router.get("/api/v1/reviews", response_model=responses.ReviewQueueResponse)
@needs(Action.WRITE_SKILLS)
def list_reviews(collection: CollectionDep) -> Response:
    """List the versions that wait for a review, oldest first."""
    waiting = () if collection.versions is None else collection.versions.list_queue()
    return SuccessResponse({"versions": [*map(serialize_waiting, waiting)]}, headers=NO_CACHE)


@router.get(_VERSIONS_PATH, response_model=responses.VersionListResponse, responses=_ERRORS)
@needs(Action.READ)
def list_versions(request: Request, collection: CollectionDep, skill_id: _SkillId) -> Response:
    """List the versions of a skill, newest first; readers get those that were approved."""
    listed = VersionList(skill_id, (), None, ())
    if collection.versions is not None:
        listed = collection.versions.list(skill_id, with_drafts=_sees_drafts(request))
    if not listed.versions:
        collection.find(skill_id)  # raises an error if there is no such skill
    mode = ReviewMode.OFF if collection.versions is None else collection.versions.mode
    return SuccessResponse(serialize_versions(listed, mode.value), headers=NO_CACHE)


@router.get(_VERSION_PATH, response_model=responses.VersionDetailsResponse, responses=_ERRORS)
@needs(Action.READ)
def get_version(
    request: Request, collection: CollectionDep, skill_id: _SkillId, number: _Number
) -> Response:
    """Return a version with its files, findings and reviews."""
    versions = _open(collection, skill_id, number)
    details = versions.show(skill_id, number, with_drafts=_sees_drafts(request))
    headers = {**NO_CACHE, "etag": f'"{details.version.digest}"'}
    return SuccessResponse(serialize_version_details(details), headers=headers)


@router.get(
    f"{_VERSION_PATH}/diff", response_model=responses.VersionDiffResponse, responses=_ERRORS
)
@needs(Action.READ)
def compare_versions(
    request: Request,
    collection: CollectionDep,
    skill_id: _SkillId,
    number: _Number,
    against: Annotated[
        int | None, Query(description="Number of the other version.", ge=1, le=2**53)
    ] = None,
) -> Response:
    """Compare a version with another one, by default with the version that it would replace."""
    versions = _open(collection, skill_id, number)
    comparison = versions.diff(skill_id, number, against, with_drafts=_sees_drafts(request))
    return SuccessResponse(serialize_comparison(comparison), headers=NO_CACHE)


@router.post(
    f"{_VERSION_PATH}/restore",
    response_model=responses.RestoredSkillResponse,
    responses=_ERRORS | _READ_ONLY,
)
@needs(Action.WRITE_SKILLS)
@waits_for(Work.STORE)
def restore_version(
    collection: CollectionDep, actor: ActorDep, skill_id: _SkillId, number: _Number
) -> Response:
    """Write the files of an earlier version again; with review, as a draft."""
    _open(collection, skill_id, number)
    return _respond_restored(
        collection, skill_id, collection.restore(skill_id, number, actor=actor)
    )


@router.get("/api/v1/bin", response_model=responses.BinResponse)
@needs(Action.WRITE_SKILLS)
def list_bin(collection: CollectionDep) -> Response:
    """List the deleted skills that can be restored, the last one first."""
    rows = () if collection.versions is None else collection.versions.list_bin()
    return SuccessResponse({"skills": [*map(serialize_deleted, rows)]}, headers=NO_CACHE)


@router.post(
    f"{_BIN_PATH}/restore",
    response_model=responses.RestoredSkillResponse,
    responses=_ERRORS | _READ_ONLY,
)
@needs(Action.WRITE_SKILLS)
@waits_for(Work.STORE)
def restore_deleted(collection: CollectionDep, actor: ActorDep, skill_id: _SkillId) -> Response:
    """Restore a deleted skill; with review, as a draft."""
    return _respond_restored(collection, skill_id, collection.restore(skill_id, actor=actor))


@router.delete(_BIN_PATH, response_model=responses.PurgedSkillResponse, responses=_ERRORS)
@needs(Action.WRITE_SKILLS)
def purge_deleted(collection: CollectionDep, actor: ActorDep, skill_id: _SkillId) -> Response:
    """Delete the files of a deleted skill permanently."""
    if collection.versions is None:
        raise SkillNotFound(skill_id)
    collection.versions.purge(skill_id, actor)
    return SuccessResponse({"purged": skill_id})


@router.post(
    f"{_VERSION_PATH}/submit",
    response_model=responses.ChangedVersionResponse,
    responses=_ERRORS | _CONFLICT,
)
@needs(Action.WRITE_SKILLS)
def submit_version(
    collection: CollectionDep,
    actor: ActorDep,
    skill_id: _SkillId,
    number: _Number,
    body: _OptionalComment,
) -> Response:
    """Submit a draft for review; an earlier version in review becomes a draft again."""
    versions = _open(collection, skill_id, number)
    change = versions.submit(skill_id, number, actor, body.comment)
    return SuccessResponse(serialize_version_change(change))


@router.post(
    f"{_VERSION_PATH}/return",
    response_model=responses.ChangedVersionResponse,
    responses=_ERRORS | _CONFLICT,
)
@needs(Action.REVIEW_SKILLS)
def return_version(
    collection: CollectionDep,
    actor: ActorDep,
    skill_id: _SkillId,
    number: _Number,
    body: Json[requests.ReturnVersionRequest],
) -> Response:
    """Return a version to its author, with a comment."""
    versions = _open(collection, skill_id, number)
    change = versions.return_(skill_id, number, actor, body.comment)
    return SuccessResponse(serialize_version_change(change))


@router.post(
    f"{_VERSION_PATH}/approve",
    response_model=responses.ChangedVersionResponse,
    responses=_ERRORS | _CONFLICT | _OWN_WORK | _STALE,
)
@needs(Action.REVIEW_SKILLS)
def approve_version(  # noqa: PLR0913, PLR0917 - the parameters of the request
    collection: CollectionDep,
    actor: ActorDep,
    skill_id: _SkillId,
    number: _Number,
    digest: RequiredDigest,
    body: _OptionalComment,
) -> Response:
    """Approve a version and serve it."""
    versions = _open(collection, skill_id, number)
    change = versions.approve(skill_id, number, actor, digest, body.comment)
    return SuccessResponse(serialize_version_change(change))


@router.post(
    f"{_VERSION_PATH}/yank",
    response_model=responses.ChangedVersionResponse,
    responses=_ERRORS | _CONFLICT,
)
@needs(Action.REVIEW_SKILLS)
def yank_version(
    collection: CollectionDep,
    actor: ActorDep,
    skill_id: _SkillId,
    number: _Number,
    body: Json[requests.YankVersionRequest],
) -> Response:
    """Yank an approved version. If it is served, the newest other approved one replaces it."""
    versions = _open(collection, skill_id, number)
    change = versions.yank(skill_id, number, actor, body.reason)
    return SuccessResponse(serialize_version_change(change))


@router.put(
    _CURRENT_PATH,
    response_model=responses.ChangedVersionResponse,
    responses=_ERRORS | _CONFLICT,
)
@needs(Action.REVIEW_SKILLS)
def use_version(
    collection: CollectionDep,
    actor: ActorDep,
    skill_id: _SkillId,
    body: Json[requests.UseVersionRequest],
) -> Response:
    """Serve an approved version: roll back to an earlier one, or return to a later one."""
    versions = _open(collection, skill_id, body.number)
    change = versions.use(skill_id, body.number, actor, body.comment)
    return SuccessResponse(serialize_version_change(change))


def _sees_drafts(request: Request) -> bool:
    return may(request.scope, Action.WRITE_SKILLS)


def _respond_restored(collection: Collection, skill_id: str, result: SkillChangeResult) -> Response:
    newest = collection.versions.list(skill_id).versions[0] if collection.versions else None
    data = serialize_stored(result.skill)
    if newest is not None:
        data["number"] = newest.number
    return SuccessResponse(data)


def _open(collection: Collection, skill_id: str, number: int) -> SkillVersions:
    """Return the versions of the server. Raises: SkillNotFound, VersionNotFound."""
    if collection.versions is not None:
        return collection.versions
    if skill_id not in collection.snapshot().skills:
        raise SkillNotFound(skill_id)
    raise VersionNotFound(skill_id, str(number))
