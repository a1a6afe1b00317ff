"""Routes that import skills and sessions."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from skillhall._internal.http.access import may, needs
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import content_type, read_body
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.http.thread_pool import Work
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.rest.api_route import (
    DatabaseRoute,
    describe_json,
    read_model,
    run_blocking,
)
from skillhall._internal.rest.responses import (
    BAD_REQUEST,
    BINARY_SCHEMA,
    BODY_ERRORS,
    SOURCE_ERRORS,
    describe_errors,
)
from skillhall._internal.rest.route_parameters import OptionalText, Text, WorkspaceDep
from skillhall._internal.rest.sessions import requests, responses
from skillhall._internal.rest.sessions.requests import (
    API_PREFIX,
    SESSION_PATH,
    SESSIONS_PATH,
    ZONE_NAMES,
    SessionId,
)
from skillhall._internal.rest.sessions.responses import (
    DATABASE_ERRORS,
    NOT_FOUND,
    SKILL_ERRORS,
    STORE_ERRORS,
)
from skillhall._internal.workspace.importer import (
    ImportChoices,
    ImportConflict,
    ImportOptions,
    ImportResult,
    SkillImporter,
)
from skillhall._internal.workspace.serializers import (
    serialize_candidates,
    serialize_folder_scan,
    serialize_import_result,
    serialize_session,
)
from skillhall._internal.workspace.validation import parse_zone

MAX_ARCHIVE_BYTES = 110 * 1024 * 1024  # of an uploaded file
_DEFAULT_FILENAMES = {"application/zip": "skill.zip", "text/markdown": "skill.md"}
_ARCHIVE_TYPES = ("application/zip", "application/octet-stream")
_Filename = Annotated[OptionalText, Query(description="Name of the uploaded file.")]
_ERRORS = DATABASE_ERRORS | SOURCE_ERRORS | BODY_ERRORS | STORE_ERRORS | NOT_FOUND | SKILL_ERRORS
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            **describe_json(requests.SessionImportRequest),
            **{kind: {"schema": BINARY_SCHEMA} for kind in _DEFAULT_FILENAMES},
        },
    }
}
router = APIRouter(tags=["sessions"], route_class=DatabaseRoute, responses=DATABASE_ERRORS)


class _Import(NamedTuple):
    """An import from exactly one of an upload, a source, or a folder on the server."""

    options: ImportOptions
    upload: tuple[bytes, str] | None = None  # content and file name
    source: str | None = None
    folder: str = ""
    allow_tokens: bool = True  # whether the server's git tokens may be used

    @property
    def work(self) -> Work:
        """What the import waits for."""
        return Work.DATABASE if self.source is None else Work.FETCH

    def read(self, importer: SkillImporter) -> ImportChoices:
        """Read the skills. Raises: errors from the importer."""
        if self.upload is not None:
            return importer.read_upload(*self.upload)
        if self.source is not None:
            return importer.read_source(self.source, allow_tokens=self.allow_tokens)
        return importer.read_folder(self.folder)


async def _read_import(
    request: Request,
    filename: _Filename = None,
    zone: Annotated[
        OptionalText,
        Query(description="Zone of the blocks.", json_schema_extra={"enum": ZONE_NAMES}),
    ] = None,
    same: Annotated[
        Text,
        Query(
            description="What to do with skills that the session already has.",
            json_schema_extra={"enum": [*ImportConflict]},
        ),
    ] = "refuse",
    skills: Annotated[
        OptionalText,
        Query(description="Names or folders of the skills to import, comma-separated."),
    ] = None,
) -> _Import:
    """Return the import that a request asks for. Raises: HttpError."""
    default_name = _DEFAULT_FILENAMES.get(content_type(request))
    if default_name is None:
        body = await read_model(request, requests.SessionImportRequest)
        options = _build_import_options(body.zone, body.same, tuple(body.skills))
        if (body.source is None) == (body.folder is None):
            raise HttpError("invalid_argument", "specify exactly one of 'source' and 'folder'")
        return _Import(
            options,
            source=body.source,
            folder=body.folder or "",
            allow_tokens=may(request.scope, Action.USE_GIT_TOKENS),
        )
    names = tuple(name.strip() for name in (skills or "").split(",") if name.strip())
    options = _build_import_options(zone, same, names)
    data = await read_body(request, MAX_ARCHIVE_BYTES)
    return _Import(options, upload=(data, filename or default_name))


_ImportDependency = Annotated[_Import, Depends(_read_import)]


def _build_import_options(
    zone: str | None, on_conflict: str, names: tuple[str, ...]
) -> ImportOptions:
    if on_conflict not in tuple(ImportConflict):
        raise HttpError("invalid_argument", f"'same' must be one of: {', '.join(ImportConflict)}")
    return ImportOptions(
        None if zone is None else parse_zone(zone), ImportConflict(on_conflict), names
    )


@router.post(
    f"{SESSION_PATH}/import",
    status_code=201,
    response_model=responses.SessionImportResponse,
    responses=_ERRORS,
    openapi_extra=_BODY,
)
@needs(Action.WRITE_SESSIONS)
async def import_skills(
    request: Request, workspace: WorkspaceDep, session: SessionId, wanted: _ImportDependency
) -> Response:
    """Import skills as blocks, from an upload, a source or a folder on the server."""

    def run() -> ImportResult:
        opened = workspace.open()
        opened.sessions.find(session)  # fails before anything is fetched
        choices = wanted.read(opened.importer)
        return opened.importer.import_choices(session, choices, wanted.options)

    result = await run_blocking(request, wanted.work, run)
    return SuccessResponse(serialize_import_result(result), 201)


@router.post(
    f"{API_PREFIX}/skill-previews",
    response_model=responses.CandidateListResponse,
    responses=_ERRORS,
    openapi_extra=_BODY,
)
@needs(Action.WRITE_SESSIONS)
async def preview_skills(
    request: Request, workspace: WorkspaceDep, wanted: _ImportDependency
) -> Response:
    """List the skills of an upload, a source or a folder, without importing them."""

    def run() -> ImportChoices:
        return wanted.read(workspace.open().importer)

    choices = await run_blocking(request, wanted.work, run)
    return SuccessResponse(serialize_candidates(choices.candidates))


@router.get(
    f"{API_PREFIX}/folder-skills",
    response_model=responses.FolderScanResponse,
    responses=BAD_REQUEST
    | describe_errors({403: "Folder scans are disabled, or a cross-origin request was rejected."}),
)
@needs(Action.WRITE_SESSIONS)
def scan_folder(
    workspace: WorkspaceDep,
    folder: Annotated[
        OptionalText, Query(description="Folder on the server; default ~/.claude/skills.")
    ] = None,
) -> Response:
    """List the skills of a folder on the server, if folder scans are enabled."""
    scan = workspace.open().importer.scan_folder(folder or "")
    return SuccessResponse(serialize_folder_scan(scan))


async def _read_archive(request: Request) -> bytes:
    if content_type(request) not in _ARCHIVE_TYPES:
        raise HttpError("unsupported_media_type", "the body must be sent as application/zip")
    return await read_body(request, MAX_ARCHIVE_BYTES)


@router.post(
    f"{SESSIONS_PATH}/import",
    status_code=201,
    response_model=responses.SessionResponse,
    responses=STORE_ERRORS | BODY_ERRORS | SKILL_ERRORS,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": BINARY_SCHEMA} for kind in _ARCHIVE_TYPES},
        }
    },
)
@needs(Action.WRITE_SESSIONS)
def import_session(
    workspace: WorkspaceDep,
    data: Annotated[bytes, Depends(_read_archive)],
    filename: _Filename = None,
    name: Annotated[OptionalText, Query(description="Name of the new session.")] = None,
) -> Response:
    """Create a session from an exported session."""
    session = workspace.open().importer.create_session(data, filename or "session.zip", name)
    return SuccessResponse(serialize_session(session), 201, {"etag": f'"{session.version}"'})
