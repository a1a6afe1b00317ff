"""Handlers that import skills and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.response import (
    JSON_HEADERS,
    ByteResponse,
    encode_json,
    success_response,
)
from skillhall._internal.rest.requests import parse_model
from skillhall._internal.rest.sessions.handlers import SessionHandlersBase
from skillhall._internal.rest.sessions.requests import SessionImportRequest
from skillhall._internal.workspace.importer import ImportConflict, ImportOptions
from skillhall._internal.workspace.serializers import (
    serialize_candidates,
    serialize_folder_scan,
    serialize_import_result,
    serialize_session,
)
from skillhall._internal.workspace.validation import parse_zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.workspace.importer import ImportResult
    from skillhall._internal.workspace.skill_blocks import BlockCandidate
    from skillhall._internal.workspace.workspace import Workspace

MAX_ARCHIVE_BYTES = 110 * 1024 * 1024  # of an uploaded file
_DEFAULT_FILENAMES = {b"application/zip": "skill.zip", b"text/markdown": "skill.md"}
_ARCHIVE_TYPES = (b"application/zip", b"application/octet-stream")
_UPLOAD_PARAMETERS = ("filename", "zone", "same", "skills")


class _Upload(NamedTuple):
    data: bytes
    filename: str


class _RemoteSource(NamedTuple):
    source: str


class _Folder(NamedTuple):
    folder: str


class SessionImportHandlers(SessionHandlersBase):
    """Handlers for imports into sessions."""

    async def import_skills(self, request: HttpRequest) -> ByteResponse:
        """Import skills as blocks, from an upload, a source or a folder on the server."""
        origin, options = await _parse_import_request(request)
        session = str(request.scope["path_params"]["session"])

        def work(ws: Workspace) -> ImportResult:
            ws.sessions.find(session)  # fails before anything is fetched
            if isinstance(origin, _Upload):
                return ws.importer.import_upload(session, *origin, options)
            if isinstance(origin, _Folder):
                choices = ws.importer.read_folder(origin.folder)
            else:
                choices = ws.importer.read_source(origin.source)
            return ws.importer.import_choices(session, choices, options)

        data = encode_json(serialize_import_result(await self._run(work)))
        return success_response(data, request.request_id, status=201)

    async def preview_skills(self, request: HttpRequest) -> ByteResponse:
        """List the skills of an upload, a source or a folder, without importing them."""
        origin, _ = await _parse_import_request(request)

        def work(ws: Workspace) -> Sequence[BlockCandidate]:
            if isinstance(origin, _Upload):
                return ws.importer.read_upload(*origin).candidates
            if isinstance(origin, _Folder):
                return ws.importer.scan_folder(origin.folder).candidates
            return ws.importer.read_source(origin.source).candidates

        data = serialize_candidates(await self._run(work))
        return success_response(encode_json(data), request.request_id)

    async def scan_folder(self, request: HttpRequest) -> ByteResponse:
        """List the skills of a folder on the server, if folder scans are enabled."""
        folder = request.read_query(("folder",)).get("folder", "")
        scan = await self._run(lambda ws: ws.importer.scan_folder(folder))
        return success_response(encode_json(serialize_folder_scan(scan)), request.request_id)

    async def import_session(self, request: HttpRequest) -> ByteResponse:
        """Create a session from an exported session."""
        query = request.read_query(("filename", "name"))
        if _content_type(request) not in _ARCHIVE_TYPES:
            raise HttpError("unsupported_media_type", "the body must be sent as application/zip")
        data = await request.body(MAX_ARCHIVE_BYTES)
        filename, name = query.get("filename", "session.zip"), query.get("name")
        session = await self._run(lambda ws: ws.importer.create_session(data, filename, name))
        headers = (*JSON_HEADERS, (b"etag", b'"%d"' % session.version))
        body = encode_json(serialize_session(session))
        return success_response(body, request.request_id, status=201, headers=headers)


async def _parse_import_request(
    request: HttpRequest,
) -> tuple[_Upload | _RemoteSource | _Folder, ImportOptions]:
    """Return the origin and the options of an import. Raises: HttpError."""
    default_name = _DEFAULT_FILENAMES.get(_content_type(request))
    if default_name is None:
        body = parse_model(SessionImportRequest, await request.json(empty={}))
        options = _build_import_options(body.zone, body.same, tuple(body.skills))
        if body.source is not None and body.folder is None:
            return _RemoteSource(body.source), options
        if body.folder is not None and body.source is None:
            return _Folder(body.folder), options
        raise HttpError("invalid_argument", "name either a source or a folder")
    query = request.read_query(_UPLOAD_PARAMETERS)
    names = tuple(name.strip() for name in query.get("skills", "").split(",") if name.strip())
    options = _build_import_options(query.get("zone"), query.get("same", "refuse"), names)
    data = await request.body(MAX_ARCHIVE_BYTES)
    return _Upload(data, query.get("filename", default_name)), options


def _build_import_options(
    zone: str | None, on_conflict: str, names: tuple[str, ...]
) -> ImportOptions:
    if on_conflict not in tuple(ImportConflict):
        raise HttpError("invalid_argument", f"same must be one of: {', '.join(ImportConflict)}")
    return ImportOptions(
        None if zone is None else parse_zone(zone), ImportConflict(on_conflict), names
    )


def _content_type(request: HttpRequest) -> bytes:
    return (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
