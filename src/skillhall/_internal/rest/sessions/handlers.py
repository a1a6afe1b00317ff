"""Handlers for sessions, blocks, templates and snapshots."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.response import (
    JSON_HEADERS,
    ByteResponse,
    encode_json,
    success_response,
)
from skillhall._internal.rest.downloads import download_headers
from skillhall._internal.rest.endpoint import parse_limit
from skillhall._internal.rest.etag import (
    NO_CACHE_HEADER,
    etag_matches,
    read_version,
    require_version,
)
from skillhall._internal.rest.requests import parse_model
from skillhall._internal.rest.sessions.requests import (
    AddBlockRequest,
    ApplyTemplateRequest,
    CreateSessionRequest,
    DuplicateSessionRequest,
    EditBlockRequest,
    EditSessionRequest,
    EditTemplateRequest,
    MoveBlockRequest,
    SaveSnapshotRequest,
    SaveTemplateRequest,
)
from skillhall._internal.workspace.blocks import BlockFilter
from skillhall._internal.workspace.export import export_session
from skillhall._internal.workspace.serializers import (
    serialize_block,
    serialize_block_types,
    serialize_context,
    serialize_overview,
    serialize_session,
    serialize_snapshot,
    serialize_snapshot_detail,
    serialize_template,
    serialize_template_detail,
)
from skillhall._internal.workspace.sessions import NO_BUDGETS
from skillhall._internal.workspace.templates import ApplyMode
from skillhall._internal.workspace.validation import parse_zone, validate_block_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.http.response import Headers
    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.workspace import Block, Session, Template
    from skillhall._internal.workspace.workspace import LazyWorkspace, Workspace

_T = TypeVar("_T")
_M = TypeVar("_M", bound="BaseModel")

MAX_BLOCK_BODY_BYTES = 8 * 1024 * 1024  # a block of 1 MiB, whose bytes JSON may escape as \u00XX
CURSOR_PATTERN = r"[0-9a-z]{1,64}"


class SessionHandlersBase:
    """Access to the workspace from handlers."""

    def __init__(self, workspace: LazyWorkspace, workers: WorkerPool) -> None:
        self._workspace = workspace
        self._workers = workers

    async def _run(self, work: Callable[[Workspace], _T]) -> _T:
        """Run `work` in a worker thread, since it may wait for the database."""
        return await self._workers.run(lambda: work(self._workspace.open()))


class SessionHandlers(SessionHandlersBase):
    """Handlers for sessions."""

    async def list_sessions(self, request: HttpRequest) -> ByteResponse:
        """List sessions, oldest first."""
        query = request.read_query(("cursor", "limit"))
        limit = parse_limit(query)
        after = query.get("cursor", "")
        if after and re.fullmatch(CURSOR_PATTERN, after) is None:
            raise HttpError("invalid_argument", "invalid cursor")
        # One session more than requested shows whether there is another page.
        sessions = await self._run(lambda ws: ws.sessions.list(after, limit + 1))
        data: dict[str, object] = {"sessions": [*map(serialize_session, sessions[:limit])]}
        if len(sessions) > limit:
            data["nextCursor"] = sessions[limit - 1].id
        return success_response(encode_json(data), request.request_id)

    async def create_session(self, request: HttpRequest) -> ByteResponse:
        """Create a session, empty or from a template."""
        body = await _parse_body(CreateSessionRequest, request)

        def work(ws: Workspace) -> Session:
            if body.template is None:
                budgets = NO_BUDGETS if body.budgets is None else body.budgets.to_budgets()
                return ws.sessions.create(body.name, budgets)
            if body.budgets is not None:
                raise HttpError("invalid_argument", "budgets cannot be combined with template")
            return ws.templates.create_session(body.template, body.name)

        return _versioned_response(serialize_session(await self._run(work)), request, status=201)

    async def get_session(self, request: HttpRequest) -> ByteResponse:
        """Return a session with the sizes of its zones."""
        overview = await self._run(lambda ws: ws.sessions.overview(_path_id(request)))
        return _versioned_response(serialize_overview(overview), request)

    async def edit_session(self, request: HttpRequest) -> ByteResponse:
        """Change the name or the budgets of a session."""
        version = require_version(request)
        body = await _parse_body(EditSessionRequest, request)
        budgets = None if body.budgets is None else body.budgets.to_budgets()
        session = await self._run(
            lambda ws: ws.sessions.edit(_path_id(request), version, name=body.name, budgets=budgets)
        )
        return _versioned_response(serialize_session(session), request)

    async def delete_session(self, request: HttpRequest) -> ByteResponse:
        """Delete a session with its blocks and snapshots."""
        version, identity = require_version(request), _path_id(request)
        await self._run(lambda ws: ws.sessions.delete(identity, version))
        return success_response(encode_json({"deleted": identity}), request.request_id)

    async def duplicate_session(self, request: HttpRequest) -> ByteResponse:
        """Create a session with the same blocks."""
        body = await _parse_body(DuplicateSessionRequest, request)
        session = await self._run(lambda ws: ws.sessions.duplicate(_path_id(request), body.name))
        return _versioned_response(serialize_session(session), request, status=201)

    async def get_context(self, request: HttpRequest) -> ByteResponse:
        """Return the compiled context with its token counts, or as plain text."""
        form = request.read_query(("format",)).get("format", "json")
        if form not in ("json", "text"):
            raise HttpError("invalid_argument", "format must be json or text")
        context = await self._run(lambda ws: ws.contexts.compile(_path_id(request)))
        etag = _version_etag(context.session.revision)
        headers: Headers = (NO_CACHE_HEADER, (b"etag", etag))
        if etag_matches(request.header(b"if-none-match"), etag):
            return ByteResponse(304, headers)
        if form == "text":
            content_type = (b"content-type", b"text/plain; charset=utf-8")
            return ByteResponse(200, (content_type, *headers), (context.text.encode(),))
        data = encode_json(serialize_context(context))
        return success_response(data, request.request_id, headers=(*JSON_HEADERS, *headers))

    async def export_session(self, request: HttpRequest) -> ByteResponse:
        """Download a session as a zip file with a skill folder."""

        def work(ws: Workspace) -> tuple[str, bytes]:
            return export_session(ws.contexts.compile(_path_id(request)))

        name, data = await self._run(work)
        return ByteResponse(200, (*download_headers(name), NO_CACHE_HEADER), (data,))

    async def apply_template(self, request: HttpRequest) -> ByteResponse:
        """Add a template's blocks to a session, or replace the session's blocks."""
        body = await _parse_body(ApplyTemplateRequest, request)
        revision = read_version(request)
        result = await self._run(
            lambda ws: ws.templates.apply(
                _path_id(request), body.template, ApplyMode(body.how), revision
            )
        )
        before = {} if result.before is None else {"before": serialize_snapshot(result.before)}
        return _versioned_response({**serialize_session(result.session), **before}, request)


class BlockHandlers(SessionHandlersBase):
    """Handlers for blocks."""

    async def list_block_types(self, request: HttpRequest) -> ByteResponse:
        """List the block types."""
        return success_response(encode_json(serialize_block_types()), request.request_id)

    async def list_blocks(self, request: HttpRequest) -> ByteResponse:
        """List the blocks of a session in order, filtered by zone, type and text."""
        block_filter = _parse_filter(request.read_query(("zone", "type", "q")))

        def work(ws: Workspace) -> tuple[Session, list[Block]]:
            # The revision is read first, so a concurrent change is fetched twice, never missed.
            session = ws.sessions.find(_path_id(request))
            return session, ws.blocks.list(session.id, block_filter)

        return _block_list_response(request, *await self._run(work))

    async def list_deleted_blocks(self, request: HttpRequest) -> ByteResponse:
        """List the deleted blocks that can be restored, last deleted first."""

        def work(ws: Workspace) -> tuple[Session, list[Block]]:
            session = ws.sessions.find(_path_id(request))
            return session, [*ws.blocks.list_deleted(session.id)]

        return _block_list_response(request, *await self._run(work))

    async def add_block(self, request: HttpRequest) -> ByteResponse:
        """Add a block to a session."""
        body = await _parse_body(AddBlockRequest, request, MAX_BLOCK_BODY_BYTES)
        block = await self._run(
            lambda ws: ws.blocks.add(
                _path_id(request), body.type, body.content, body.target_zone(), body.to_placement()
            )
        )
        return _versioned_response(serialize_block(block), request, status=201)

    async def get_block(self, request: HttpRequest) -> ByteResponse:
        """Return a block."""
        block = await self._run(
            lambda ws: ws.blocks.find(_path_id(request), _path_id(request, "block"))
        )
        return _versioned_response(serialize_block(block), request)

    async def edit_block(self, request: HttpRequest) -> ByteResponse:
        """Change the content or the type of a block."""
        version = require_version(request)
        body = await _parse_body(EditBlockRequest, request, MAX_BLOCK_BODY_BYTES)
        block = await self._run(
            lambda ws: ws.blocks.edit(
                _path_id(request),
                _path_id(request, "block"),
                version,
                text=body.content,
                kind=body.type,
            )
        )
        return _versioned_response(serialize_block(block), request)

    async def move_block(self, request: HttpRequest) -> ByteResponse:
        """Move a block within its zone or to another zone."""
        version = require_version(request)
        body = await _parse_body(MoveBlockRequest, request)
        block = await self._run(
            lambda ws: ws.blocks.move(
                _path_id(request),
                _path_id(request, "block"),
                version,
                body.target_zone(),
                body.to_placement(),
            )
        )
        return _versioned_response(serialize_block(block), request)

    async def delete_block(self, request: HttpRequest) -> ByteResponse:
        """Delete a block. It can be restored."""
        version, identity = require_version(request), _path_id(request, "block")
        await self._run(lambda ws: ws.blocks.delete(_path_id(request), identity, version))
        return success_response(encode_json({"deleted": identity}), request.request_id)

    async def restore_block(self, request: HttpRequest) -> ByteResponse:
        """Restore a deleted block to its former position."""
        block = await self._run(
            lambda ws: ws.blocks.restore(_path_id(request), _path_id(request, "block"))
        )
        return _versioned_response(serialize_block(block), request)


class TemplateHandlers(SessionHandlersBase):
    """Handlers for templates and snapshots."""

    async def list_templates(self, request: HttpRequest) -> ByteResponse:
        """List the templates by name."""
        templates = await self._run(lambda ws: ws.templates.list())
        data = {"templates": [*map(serialize_template, templates)]}
        return success_response(encode_json(data), request.request_id)

    async def save_template(self, request: HttpRequest) -> ByteResponse:
        """Save the blocks of a session as a template."""
        body = await _parse_body(SaveTemplateRequest, request)
        template = await self._run(
            lambda ws: ws.templates.save(body.session, body.name, body.description)
        )
        return _versioned_response(serialize_template(template), request, status=201)

    async def get_template(self, request: HttpRequest) -> ByteResponse:
        """Return a template with its blocks."""
        detail = await self._run(lambda ws: ws.templates.find(_path_id(request, "template")))
        return _versioned_response(serialize_template_detail(detail), request)

    async def edit_template(self, request: HttpRequest) -> ByteResponse:
        """Rename a template, or replace its blocks with those of a session."""
        version = require_version(request)
        body = await _parse_body(EditTemplateRequest, request)

        def work(ws: Workspace) -> Template:
            identity = _path_id(request, "template")
            changes = {"name": body.name, "description": body.description, "session": body.session}
            return ws.templates.edit(identity, version, **changes)

        return _versioned_response(serialize_template(await self._run(work)), request)

    async def delete_template(self, request: HttpRequest) -> ByteResponse:
        """Delete a template."""
        version, identity = require_version(request), _path_id(request, "template")
        await self._run(lambda ws: ws.templates.delete(identity, version))
        return success_response(encode_json({"deleted": identity}), request.request_id)

    async def list_snapshots(self, request: HttpRequest) -> ByteResponse:
        """List the snapshots of a session, newest first."""
        snapshots = await self._run(lambda ws: ws.snapshots.list(_path_id(request)))
        data = {"snapshots": [*map(serialize_snapshot, snapshots)]}
        return success_response(encode_json(data), request.request_id)

    async def save_snapshot(self, request: HttpRequest) -> ByteResponse:
        """Save a snapshot of a session."""
        body = await _parse_body(SaveSnapshotRequest, request)
        snapshot = await self._run(lambda ws: ws.snapshots.save(_path_id(request), body.name))
        data = encode_json(serialize_snapshot(snapshot))
        return success_response(data, request.request_id, status=201)

    async def get_snapshot(self, request: HttpRequest) -> ByteResponse:
        """Return a snapshot with its blocks."""
        detail = await self._run(
            lambda ws: ws.snapshots.find(_path_id(request), _path_id(request, "snapshot"))
        )
        return success_response(encode_json(serialize_snapshot_detail(detail)), request.request_id)

    async def restore_snapshot(self, request: HttpRequest) -> ByteResponse:
        """Restore a snapshot. The current state is saved as an automatic snapshot first."""
        revision = read_version(request)
        result = await self._run(
            lambda ws: ws.snapshots.restore(
                _path_id(request), _path_id(request, "snapshot"), revision
            )
        )
        data = {**serialize_session(result.session), "before": serialize_snapshot(result.before)}
        return _versioned_response(data, request)

    async def delete_snapshot(self, request: HttpRequest) -> ByteResponse:
        """Delete a snapshot."""
        identity = _path_id(request, "snapshot")
        await self._run(lambda ws: ws.snapshots.delete(_path_id(request), identity))
        return success_response(encode_json({"deleted": identity}), request.request_id)


def _path_id(request: HttpRequest, name: str = "session") -> str:
    return str(request.scope["path_params"][name])


async def _parse_body(model: type[_M], request: HttpRequest, limit: int | None = None) -> _M:
    options = {} if limit is None else {"limit": limit}
    return parse_model(model, await request.json(empty={}, **options))


def _versioned_response(
    data: Mapping[str, object], request: HttpRequest, status: int = 200
) -> ByteResponse:
    """Return a record with its version as the ETag."""
    etag = _version_etag(int(str(data["version"])))
    headers: Headers = (*JSON_HEADERS, NO_CACHE_HEADER, (b"etag", etag))
    return success_response(encode_json(data), request.request_id, status=status, headers=headers)


def _block_list_response(
    request: HttpRequest, session: Session, blocks: list[Block]
) -> ByteResponse:
    data = {"blocks": [*map(serialize_block, blocks)], "revision": session.revision}
    return success_response(encode_json(data), request.request_id)


def _version_etag(version: int) -> bytes:
    return b'"%d"' % version


def _parse_filter(query: Mapping[str, str]) -> BlockFilter:
    zone, kind = query.get("zone"), query.get("type")
    return BlockFilter(
        None if zone is None else parse_zone(zone),
        None if kind is None else validate_block_type(kind),
        query.get("q", ""),
    )
