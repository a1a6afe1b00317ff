"""Routes of skills and of changes to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple, Protocol

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from skillhall._internal.agents.collection_skills import CollectionSkills
from skillhall._internal.authoring.portability import serialize_verdicts
from skillhall._internal.catalog.repository_skills import RepositoryOrigin
from skillhall._internal.evals.reports.served_results import find_served_overview
from skillhall._internal.http.access import actor_of, check_action, may, needs
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.multipart import MULTIPART_TYPE, read_multipart
from skillhall._internal.http.request import content_type, read_body
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.http.thread_pool import Work
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.policy.skipped_items import skipped_data
from skillhall._internal.policy.trust.version_states import VersionState
from skillhall._internal.rest import requests, responses
from skillhall._internal.rest.api_route import (
    ApiRoute,
    Json,
    describe_json,
    read_model,
    run_blocking,
    waits_for,
)
from skillhall._internal.rest.etag import NO_CACHE, download_headers, etag_matches, etag_response
from skillhall._internal.rest.responses import (
    BINARY_SCHEMA,
    BODY_ERRORS,
    NOT_MODIFIED,
    SOURCE_ERRORS,
    Responses,
    describe_content,
    describe_errors,
)
from skillhall._internal.rest.route_parameters import (
    ActorDep,
    CollectionDep,
    IfNoneMatch,
    OptionalText,
    PageSize,
    path_text,
)
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.lossless_editor import SkillText
from skillhall._internal.skill_store.collection import (
    MAX_IMPORT_FILES,
    MAX_PAGE_SIZE,
    SOURCES,
    Collection,
)
from skillhall._internal.skill_store.file_changes import (
    MAX_SKILL_BYTES,
    NewFile,
    delete_file,
    write_files,
)
from skillhall._internal.skill_store.serializers import (
    serialize_details,
    serialize_draft,
    serialize_facets,
    serialize_import,
    serialize_skill,
    serialize_stored,
    serialize_version,
)
from skillhall._internal.skill_store.skill_table import FACETS, ORDERS, SORT_KEYS, SkillQuery
from skillhall._internal.skill_store.store import ImportReport
from skillhall._internal.skill_store.undoable_changes import SkillChangeResult
from skillhall._internal.skill_store.versions.skill_versions import parse_pin
from skillhall.errors import SkillNotFound, VersionNotFound

SKILLS_PATH = "/api/v1/skills"
_SKILL_PATH = SKILLS_PATH + "/{id}"
_UNDO_PATH = "/api/v1/changes/{id}/undo"
MAX_ARCHIVE_BYTES = 110 * 1024 * 1024  # of an uploaded archive
_MAX_DIGITS = 10  # of a cursor
_MAX_FORM_PARTS = MAX_IMPORT_FILES + 8  # files and some fields

NOT_FOUND = describe_errors({404: "Skill, file or change not found."})
BAD_REQUEST = describe_errors({400: "Invalid request.", 413: "A file exceeds the size limit."})
REVOKED = describe_errors({403: "The skill is revoked, or held by a rule."})
_CONFLICT = describe_errors({412: "The skill was changed by someone else."})
_WRITE_ERRORS = describe_errors(
    {
        403: "System skills and skills of repositories are read-only.",
        409: "A skill with this id already exists.",
        422: "The skill or the archive was rejected.",
        503: "The server is busy, the source's host limits the rate, or the disk failed.",
        507: "The disk is full.",
    }
)
_FORM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file": {**BINARY_SCHEMA, "description": "A zip, tar.gz or tar file, or one SKILL.md."},
        "files": {
            "type": "array",
            "items": BINARY_SCHEMA,
            "description": "All files of a folder, each with its relative path as filename.",
        },
        "id": {"type": "string", "description": "Id for the skill, if there is only one."},
        "replace": {"type": "string", "description": "`true` replaces existing skills."},
    },
    "oneOf": [{"required": ["file"]}, {"required": ["files"]}],
}
_SkillId = Annotated[
    str, path_text("Id of the skill, or of a version: `pdf@4` or `pdf@sha256:…`.", alias="id")
]
_FILE_PATH = f"{_SKILL_PATH}/files/{{path:path}}"
_FilePath = Annotated[str, path_text("Path of the file in the skill.")]
_State = Annotated[
    OptionalText,
    Query(description="`draft` returns the newest version, even if it is not approved."),
]


class _RespondAboutSkill(Protocol):
    def __call__(self, skill_id: str, *, with_drafts: bool) -> Response: ...


class _Import(NamedTuple):
    """An import, and what it waits for."""

    work: Work
    run: Callable[[Collection], tuple[ImportReport, str]]  # returns the id of the change, too


_FILTERS = [
    {
        "name": facet,
        "in": "query",
        "required": False,
        "schema": {"type": "array", "items": {"type": "string"}},
        "description": "With `facets`: skills with one of these values.",
    }
    for facet in FACETS
    if facet != "source"
]
router = APIRouter(tags=["skills"], route_class=ApiRoute)


@router.get(
    SKILLS_PATH,
    response_model=responses.SkillListResponse,
    responses=NOT_MODIFIED | BAD_REQUEST,
    openapi_extra={"parameters": _FILTERS},
)
@needs(Action.READ)
def list_skills(  # noqa: PLR0913, PLR0917 - the parameters of the query
    request: Request,
    collection: CollectionDep,
    q: Annotated[
        OptionalText, Query(description="Search text; the best match comes first.")
    ] = None,
    source: Annotated[OptionalText, Query(description="`user`, `system` or `repository`.")] = None,
    facets: Annotated[
        OptionalText,
        Query(
            description="`true` returns facts about each skill, and counts them. Then the skills "
            "can be filtered by `source`, `repository`, `risk`, `findings`, `size`, `agent`, "
            "`scripts`, `evals`, `loads` and `dropped`, also together with `q`. A filter may be "
            "repeated."
        ),
    ] = None,
    sort: Annotated[
        OptionalText,
        Query(
            description="With `facets`: `name` (the default), `id`, `source`, `risk`, `tokens`, "
            "`files` or `findings`."
        ),
    ] = None,
    order: Annotated[OptionalText, Query(description="With `sort`: `asc` or `desc`.")] = None,
    cursor: Annotated[OptionalText, Query(description="`nextCursor` of the previous page.")] = None,
    limit: PageSize = 100,
    state: Annotated[
        OptionalText, Query(description="`draft` lists the newest versions that are not served.")
    ] = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """List the skills by id, or search them, best match first."""
    if state is not None:
        _read_state(request, collection, "", state)
        return SuccessResponse(_list_drafts(collection))
    if _parse_flag(facets):
        return SuccessResponse(_query_table(request, collection, cursor or "", limit))
    if sort or order:
        raise HttpError("invalid_argument", "'sort' and 'order' need 'facets=true'")
    if q and (cursor or source):
        raise HttpError("invalid_argument", "'q' cannot be combined with 'cursor' or 'source'")
    if source and source not in SOURCES:
        raise HttpError("invalid_argument", f"'source' must be one of: {', '.join(SOURCES)}")
    if q:
        hits = collection.search(q, limit)
        return SuccessResponse(
            {"skills": [*map(serialize_skill, hits.skills)], "total": hits.total}
        )
    snapshot = collection.snapshot()
    headers = {**NO_CACHE, "etag": f'W/"{snapshot.revision}"'}
    if etag_matches(if_none_match, headers["etag"]):
        return Response(status_code=304, headers=headers)
    page = snapshot.page(cursor or "", limit, source or "")
    data = {"skills": [*map(serialize_skill, page.skills)], "total": page.total}
    if not cursor:
        data |= skipped_data(snapshot.skipped)
    if page.next_cursor:
        data["nextCursor"] = page.next_cursor
    return SuccessResponse(data, headers=headers)


@router.post(
    SKILLS_PATH,
    status_code=201,
    response_model=responses.AddedSkillResponse,
    responses=BAD_REQUEST | _WRITE_ERRORS,
)
@needs(Action.WRITE_SKILLS)
@waits_for(Work.STORE)
def create_skill(
    collection: CollectionDep, actor: ActorDep, body: Json[requests.CreateSkillRequest]
) -> Response:
    """Create a user skill."""
    text = SkillText(body.name, body.description, body.body)
    skill = collection.changes(actor).add(body.id, text)
    return SuccessResponse(serialize_stored(skill), 201)


async def _read_import(
    request: Request,
    skill_id: Annotated[
        OptionalText, Query(description="Id for the skill in the archive.", alias="id")
    ] = None,
    replace: Annotated[OptionalText, Query(description="`true` replaces existing skills.")] = None,
    filename: Annotated[OptionalText, Query(description="File name of the archive.")] = None,
) -> _Import:
    """Return the import that a request asks for: an archive, a form or a source."""
    kind, actor = content_type(request), actor_of(request.scope)
    if kind == "application/zip":
        data, name = await read_body(request, MAX_ARCHIVE_BYTES), filename or "skill.zip"
        return _Import(
            Work.STORE,
            lambda collection: collection.import_archive(
                data, name, skill_id, actor=actor, replace=_parse_flag(replace)
            ),
        )
    if kind != MULTIPART_TYPE:
        body = await read_model(request, requests.ImportSkillsRequest)
        allow_tokens = may(request.scope, Action.USE_GIT_TOKENS)
        return _Import(
            Work.FETCH,
            lambda collection: collection.import_source(
                body.source,
                body.id,
                actor=actor,
                replace=body.replace,
                allow_tokens=allow_tokens,
            ),
        )
    form = await read_multipart(request, MAX_ARCHIVE_BYTES, _MAX_FORM_PARTS)
    identity = form.fields.get("id", "").strip() or None
    is_replacing = _parse_flag(form.fields.get("replace"))
    single = [file for file in form.files if file.field == "file"]
    folder = [(file.name, file.data) for file in form.files if file.field == "files"]
    if len(single) + bool(folder) != 1:
        problem = "the form needs either one 'file' field, or one or more 'files' fields"
        raise HttpError("invalid_argument", problem)
    if folder:
        return _Import(
            Work.STORE,
            lambda collection: collection.import_files(
                folder, identity, actor=actor, replace=is_replacing
            ),
        )
    return _Import(
        Work.STORE,
        lambda collection: collection.import_file(
            single[0].data, single[0].name, identity, actor=actor, replace=is_replacing
        ),
    )


@router.post(
    f"{SKILLS_PATH}/import",
    status_code=201,
    response_model=responses.ImportedSkillsResponse,
    responses=SOURCE_ERRORS | BODY_ERRORS | _WRITE_ERRORS | NOT_FOUND,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                **describe_json(requests.ImportSkillsRequest),
                "application/zip": {"schema": BINARY_SCHEMA},
                "multipart/form-data": {"schema": _FORM_SCHEMA},
            },
        }
    },
)
@needs(Action.WRITE_SKILLS)
async def import_skills(
    request: Request, collection: CollectionDep, import_: Annotated[_Import, Depends(_read_import)]
) -> Response:
    """Import skills from an archive, a form with files, or a source."""
    run = partial(import_.run, collection)
    report, change = await run_blocking(request, import_.work, run)
    return SuccessResponse({**serialize_import(report), **_serialize_change(change)}, 201)


@router.post(
    f"{SKILLS_PATH}/check", response_model=responses.CheckedSkillResponse, responses=BAD_REQUEST
)
@needs(Action.READ)
def check_skill(collection: CollectionDep, body: Json[requests.CreateSkillRequest]) -> Response:
    """Check a new skill without saving it."""
    draft = collection.draft(body.id, SkillText(body.name, body.description, body.body))
    prompt = ""
    if draft.skill:
        prompt = CollectionSkills(collection).render_prompt_for_draft(draft.skill)
    return SuccessResponse(serialize_draft(draft, prompt))


@router.put(
    _SKILL_PATH,
    response_model=responses.EditedSkillResponse,
    responses=BAD_REQUEST | NOT_FOUND | _WRITE_ERRORS | _CONFLICT,
)
@needs(Action.WRITE_SKILLS)
@waits_for(Work.STORE)
def edit_skill(
    collection: CollectionDep,
    actor: ActorDep,
    skill_id: _SkillId,
    body: Json[requests.EditSkillRequest],
) -> Response:
    """Change the name, description and instructions of a user skill.

    Other fields and files stay unchanged.
    """
    text = SkillText(body.name, body.description, body.body)
    return _respond_edited(collection.edit(skill_id, text, body.digest, actor=actor))


@router.post(
    _UNDO_PATH,
    response_model=responses.UndoResponse,
    responses=BAD_REQUEST | NOT_FOUND | _WRITE_ERRORS | _CONFLICT,
)
@needs(Action.WRITE_SKILLS)
@waits_for(Work.STORE)
def undo_change(
    collection: CollectionDep,
    actor: ActorDep,
    change_id: Annotated[str, path_text("Id of the change.", alias="id")],
) -> Response:
    """Undo an edit, an import or a deletion."""
    undone = collection.changes(actor).undo(change_id)
    return SuccessResponse({"undone": change_id, "skills": [*undone.entries]})


@router.get(
    _SKILL_PATH,
    response_model=responses.SkillResponse,
    responses=NOT_MODIFIED | BAD_REQUEST | NOT_FOUND,
)
@needs(Action.READ)
async def get_skill(
    request: Request,
    collection: CollectionDep,
    skill_id: _SkillId,
    state: _State = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return a skill with its instructions, files and findings."""
    respond = partial(_build_skill_response, collection, if_none_match=if_none_match)
    return await _run_read(request, collection, skill_id, state, respond)


def _build_skill_response(
    collection: Collection, skill_id: str, *, with_drafts: bool, if_none_match: str | None
) -> Response:
    details = collection.details(skill_id, with_drafts=with_drafts)
    origin = RepositoryOrigin() if details.version else collection.origin(skill_id)
    # The digest of the files is not enough: the entry and the origin can change without them.
    content = repr((details.digest, details.entry, details.shadowed, origin))
    if details.version:
        content += details.version.state
    etag = f'W/"{sha256_hex(content.encode("utf-8", "surrogatepass"))}"'
    headers = {**NO_CACHE, "etag": etag}
    if etag_matches(if_none_match, etag):
        return Response(status_code=304, headers=headers)
    commit = {"commit": origin.commit} if origin.commit else {}
    return SuccessResponse({**serialize_details(details), **commit}, headers=headers)


@router.get(
    f"{_SKILL_PATH}/trust",
    response_model=responses.SkillTrustResponse,
    responses=BAD_REQUEST | NOT_FOUND,
)
@needs(Action.READ)
def get_skill_trust(collection: CollectionDep, skill_id: _SkillId) -> Response:
    """Return who wrote a skill, who approved it, whether it changed, and whether agents get it."""
    summary = collection.summarize_trust(collection.find(skill_id))
    if overview := find_served_overview(collection, skill_id):
        summary = summary.with_evals(overview.text)
    return SuccessResponse(summary.serialize(), headers=NO_CACHE)


@router.get(
    f"{_SKILL_PATH}/evals",
    response_model=responses.SkillEvalsResponse,
    responses=BAD_REQUEST | NOT_FOUND,
)
@needs(Action.READ)
def get_skill_evals(collection: CollectionDep, skill_id: _SkillId) -> Response:
    """Return the latest eval results of a skill, and whether they are of its current version."""
    overview = find_served_overview(collection, skill_id)
    result = None if overview is None else overview.serialize()
    return SuccessResponse({"result": result}, headers=NO_CACHE)


@router.get(
    f"{_SKILL_PATH}/compat",
    response_model=responses.SkillCompatResponse,
    responses=BAD_REQUEST | NOT_FOUND,
)
@needs(Action.READ)
def get_skill_compat(
    collection: CollectionDep,
    skill_id: _SkillId,
    agents: Annotated[
        OptionalText, Query(description="Ids of agents or libraries, separated by commas.")
    ] = None,
) -> Response:
    """Return what each agent or library would make of a skill: load it, lose a field, drop it."""
    chosen = [agent.strip() for agent in (agents or "").split(",") if agent.strip()]
    details, skill = collection.details(skill_id), collection.find(skill_id)
    verdicts = details.judge_portability(skill, chosen)
    return SuccessResponse({"clients": serialize_verdicts(verdicts)}, headers=NO_CACHE)


@router.delete(
    _SKILL_PATH,
    response_model=responses.DeletedSkillResponse,
    responses=BAD_REQUEST | NOT_FOUND | _WRITE_ERRORS,
)
@needs(Action.WRITE_SKILLS)
@waits_for(Work.STORE)
def delete_skill(
    collection: CollectionDep,
    actor: ActorDep,
    skill_id: _SkillId,
    shadowed: Annotated[
        OptionalText,
        Query(
            description="`true` deletes the user skill that a system skill with this id shadows."
        ),
    ] = None,
) -> Response:
    """Delete a user skill."""
    change = collection.delete(skill_id, actor=actor, shadowed=_parse_flag(shadowed))
    return SuccessResponse({"deleted": skill_id, **_serialize_change(change)})


def describe_download(description: str) -> Responses:
    """Return the OpenAPI responses of a route that sends a file."""
    content = describe_content(description, "application/octet-stream", BINARY_SCHEMA)
    return content | NOT_MODIFIED | BAD_REQUEST | NOT_FOUND | REVOKED


@router.get(
    f"{_SKILL_PATH}/archive", response_class=Response, responses=describe_download("A zip file.")
)
@needs(Action.READ)
async def get_skill_archive(
    request: Request,
    collection: CollectionDep,
    skill_id: _SkillId,
    state: _State = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Download a skill as a zip file."""

    def respond(skill_id: str, *, with_drafts: bool) -> Response:
        data = collection.archive(skill_id, with_drafts=with_drafts)
        return etag_response(data, download_headers(f"{skill_id}.zip"), if_none_match)

    return await _run_read(request, collection, skill_id, state, respond)


@router.get(
    _FILE_PATH,
    response_class=Response,
    responses=describe_download("The file."),
)
@needs(Action.READ)
async def get_skill_file(  # noqa: PLR0913, PLR0917 - the parameters of the request
    request: Request,
    collection: CollectionDep,
    skill_id: _SkillId,
    path: _FilePath,
    state: _State = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Download a file of a skill."""

    def respond(skill_id: str, *, with_drafts: bool) -> Response:
        data = collection.download_file(skill_id, path, with_drafts=with_drafts)
        return etag_response(data, download_headers(path), if_none_match)

    return await _run_read(request, collection, skill_id, state, respond)


def _query_table(
    request: Request, collection: Collection, cursor: str, limit: int
) -> dict[str, object]:
    """Return a page of the table, as the web page shows it. Raises: HttpError."""
    read_all = request.query_params.getlist
    query, snapshot = SkillQuery.parse(read_all), collection.snapshot()
    for name, allowed in (("sort", SORT_KEYS), ("order", ORDERS), ("source", SOURCES)):
        if not {*filter(None, read_all(name))} <= {*allowed}:
            raise HttpError("invalid_argument", f"{name!r} must be one of: {', '.join(allowed)}")
    start = int(cursor) if cursor.isdecimal() and len(cursor) < _MAX_DIGITS else 0
    if cursor and str(start) != cursor:
        raise HttpError("invalid_argument", "'cursor' must be the 'nextCursor' of another page")
    found = collection.query(query, snapshot, start, min(limit, MAX_PAGE_SIZE))
    end = start + len(found.ids)
    return {
        "skills": [*map(partial(collection.serialize_row, snapshot), found.ids)],
        "total": found.total,
        "facets": serialize_facets(found.facets),
        **({"nextCursor": str(end)} if found.ids and end < found.total else {}),
    }


_Digest = Annotated[
    OptionalText,
    Query(description="Digest of the skill that the change is based on; required."),
]


@router.put(
    _FILE_PATH,
    response_model=responses.EditedSkillResponse,
    responses=BAD_REQUEST | BODY_ERRORS | NOT_FOUND | _WRITE_ERRORS | _CONFLICT,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": BINARY_SCHEMA}},
        }
    },
)
@needs(Action.WRITE_SKILLS)
async def write_skill_file(  # noqa: PLR0913, PLR0917 - the parameters of the request
    request: Request,
    collection: CollectionDep,
    actor: ActorDep,
    skill_id: _SkillId,
    path: _FilePath,
    digest: _Digest = None,
    executable: Annotated[
        OptionalText,
        Query(description="`true` or `false`; by default as before, or not executable."),
    ] = None,
) -> Response:
    """Write a file of a user skill; the request body is its content."""
    data = await read_body(request, MAX_SKILL_BYTES)
    is_executable = None if executable is None else _parse_flag(executable)
    new = NewFile(path, data, is_executable)
    edit = partial(write_files, new_files=[new])
    change = partial(collection.change_files, skill_id, edit, _require(digest), actor=actor)
    edited = await run_blocking(request, Work.STORE, change)
    return _respond_edited(edited)


@router.delete(
    _FILE_PATH,
    response_model=responses.EditedSkillResponse,
    responses=BAD_REQUEST | NOT_FOUND | _WRITE_ERRORS | _CONFLICT,
)
@needs(Action.WRITE_SKILLS)
@waits_for(Work.STORE)
def delete_skill_file(
    collection: CollectionDep,
    actor: ActorDep,
    skill_id: _SkillId,
    path: _FilePath,
    digest: _Digest = None,
) -> Response:
    """Delete a file of a user skill, but not its SKILL.md."""
    edit = partial(delete_file, path=path)
    return _respond_edited(collection.change_files(skill_id, edit, _require(digest), actor=actor))


def _require(digest: str | None) -> str:
    if not digest:
        raise HttpError(
            "invalid_argument", "'digest' is required: the digest of the skill to change"
        )
    return digest


def _respond_edited(edited: SkillChangeResult) -> Response:
    skill, change = edited
    return SuccessResponse({**serialize_stored(skill), **_serialize_change(change)})


def _serialize_change(change: str) -> dict[str, object]:
    """Return the field with the id of a change; {} if it cannot be undone."""
    return {"change": change} if change else {}


def _list_drafts(collection: Collection) -> dict[str, object]:
    drafts = () if collection.versions is None else collection.versions.list_drafts()
    rows = []
    for draft in drafts:
        pinned = f"{draft.skill}@{draft.number}"
        try:
            entry = collection.details(pinned, with_drafts=True).entry
        except (SkillNotFound, VersionNotFound):  # its skill was deleted
            continue
        rows.append({**serialize_skill(entry), "version": serialize_version(draft)})
    return {"skills": rows, "total": len(rows)}


async def _run_read(
    request: Request,
    collection: Collection,
    skill_id: str,
    state: str | None,
    respond: _RespondAboutSkill,
) -> Response:
    """Call `respond` with the id of a skill or version, in the pool for its kind of work."""

    def run() -> Response:
        identity, with_drafts = _read_state(request, collection, skill_id, state)
        return respond(identity, with_drafts=with_drafts)

    # Versions are in the database, which may hang; skills are in folders.
    has_version = state is not None or parse_pin(skill_id) is not None
    work = Work.DATABASE if has_version and collection.versions is not None else Work.DISK
    return await run_blocking(request, work, run)


def _read_state(
    request: Request, collection: Collection, skill_id: str, state: str | None
) -> tuple[str, bool]:
    """Return the id of the version that a request is about, and whether it may be a draft.

    Raises: HttpError, ScopeRequired, RoleRequired, DatabaseUnavailable.
    """
    if state is None:
        return skill_id, False
    if state != VersionState.DRAFT:
        raise HttpError("invalid_argument", "'state' must be 'draft'")
    check_action(request.scope, Action.WRITE_SKILLS)
    return collection.pin_draft(skill_id), True


def _parse_flag(text: str | None) -> bool:
    """Whether a form field or a parameter is true; checkboxes send "on"."""
    return (text or "").strip().lower() in ("true", "1", "yes", "on")
