"""The calls that bring skills and whole sessions in."""

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

MAX_ARCHIVE_BYTES = 110 * 1024 * 1024  # bytes of a file that is sent
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
    """The ways in."""

    async def import_skills(self, request: HttpRequest) -> ByteResponse:
        """Skills as blocks: of a file that is sent, of a source, or of a folder if allowed."""
        what, wish = await _parse_import_request(request)
        session = str(request.scope["path_params"]["session"])

        def work(desk: Workspace) -> ImportResult:
            desk.sessions.find(session)  # before anything is fetched
            if isinstance(what, _Upload):
                return desk.importer.import_upload(session, *what, wish)
            if isinstance(what, _Folder):
                return desk.importer.import_folder(session, what.folder, wish)
            return desk.importer.import_source(session, what.source, wish)

        done = await self._run(work)
        return success_response(
            encode_json(serialize_import_result(done)), request.request_id, status=201
        )

    async def preview_skills(self, request: HttpRequest) -> ByteResponse:
        """A checklist of what a file, a source or a folder holds; nothing is imported."""
        what, _ = await _parse_import_request(request)

        def work(desk: Workspace) -> Sequence[BlockCandidate]:
            if isinstance(what, _Upload):
                return desk.importer.list_upload_candidates(*what)
            if isinstance(what, _Folder):
                return desk.importer.scan_folder(what.folder).candidates
            return desk.importer.list_source_candidates(what.source)

        data = serialize_candidates(await self._run(work))
        return success_response(encode_json(data), request.request_id)

    async def scan_folder(self, request: HttpRequest) -> ByteResponse:
        """A checklist of a folder of the server's machine, if that is allowed."""
        folder = request.read_query(("folder",)).get("folder", "")
        scan = await self._run(lambda desk: desk.importer.scan_folder(folder))
        return success_response(encode_json(serialize_folder_scan(scan)), request.request_id)

    async def import_session(self, request: HttpRequest) -> ByteResponse:
        """A new session out of an exported one."""
        asked = request.read_query(("filename", "name"))
        if _content_type(request) not in _ARCHIVE_TYPES:
            raise HttpError("unsupported_media_type", "the body must be sent as application/zip")
        data = await request.body(MAX_ARCHIVE_BYTES)
        name = asked.get("filename", "session.zip")
        made = await self._run(
            lambda desk: desk.importer.create_session(data, name, asked.get("name"))
        )
        headers = (*JSON_HEADERS, (b"etag", b'"%d"' % made.version))
        body = encode_json(serialize_session(made))
        return success_response(body, request.request_id, status=201, headers=headers)


async def _parse_import_request(
    request: HttpRequest,
) -> tuple[_Upload | _RemoteSource | _Folder, ImportOptions]:
    """What is to be imported, and how. Raises: Refused."""
    usual = _DEFAULT_FILENAMES.get(_content_type(request))
    if usual is None:
        body = parse_model(SessionImportRequest, await request.json(empty={}))
        wish = _build_import_options(body.zone, body.same, tuple(body.skills))
        if body.source is not None and body.folder is None:
            return _RemoteSource(body.source), wish
        if body.folder is not None and body.source is None:
            return _Folder(body.folder), wish
        raise HttpError("invalid_argument", "name a source or a folder")
    asked = request.read_query(_UPLOAD_PARAMETERS)
    names = tuple(name.strip() for name in asked.get("skills", "").split(",") if name.strip())
    wish = _build_import_options(asked.get("zone"), asked.get("same", "refuse"), names)
    data = await request.body(MAX_ARCHIVE_BYTES)
    return _Upload(data, asked.get("filename", usual)), wish


def _build_import_options(
    zone: str | None, on_conflict: str, names: tuple[str, ...]
) -> ImportOptions:
    if on_conflict not in tuple(ImportConflict):
        raise HttpError("invalid_argument", f"same is one of: {', '.join(ImportConflict)}")
    return ImportOptions(
        None if zone is None else parse_zone(zone), ImportConflict(on_conflict), names
    )


def _content_type(request: HttpRequest) -> bytes:
    return (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
