"""The calls on sessions, blocks, templates and snapshots."""

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
from skillhall._internal.rest.etag import etag_matches, read_version, require_version
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

MAX_BLOCK_BODY_BYTES = (
    8 * 1024 * 1024
)  # bytes of a body with a block in it: JSON may write a byte as six
_NO_CACHE_HEADER = (b"cache-control", b"no-cache")


CURSOR_PATTERN = r"[0-9a-z]{1,64}"


class SessionHandlersBase:
    """What all calls on a workspace have in common."""

    def __init__(self, workspace: LazyWorkspace, workers: WorkerPool) -> None:
        self._workspace = workspace
        self._workers = workers

    async def _run(self, work: Callable[[Workspace], _T]) -> _T:
        """What the work returns; it may wait for the database."""
        return await self._workers.run(lambda: work(self._workspace.open()))


class SessionHandlers(SessionHandlersBase):
    """The calls on sessions."""

    async def list_sessions(self, request: HttpRequest) -> ByteResponse:
        """A page of sessions."""
        asked = request.read_query(("cursor", "limit"))
        limit = parse_limit(asked)
        after = asked.get("cursor", "")
        if after and re.fullmatch(CURSOR_PATTERN, after) is None:
            raise HttpError("invalid_argument", "the cursor is not one of ours")
        found = await self._run(lambda desk: desk.sessions.list(after, limit + 1))
        data: dict[str, object] = {"sessions": [serialize_session(one) for one in found[:limit]]}
        if len(found) > limit:
            data["nextCursor"] = found[limit - 1].id
        return success_response(encode_json(data), request.request_id)

    async def create_session(self, request: HttpRequest) -> ByteResponse:
        """A new session, empty or out of a template."""
        body = await _parse_body(CreateSessionRequest, request)

        def work(desk: Workspace) -> Session:
            if body.template is None:
                budgets = NO_BUDGETS if body.budgets is None else body.budgets.to_budgets()
                return desk.sessions.create(body.name, budgets)
            if body.budgets is not None:
                raise HttpError("invalid_argument", "a template brings its own budgets")
            return desk.templates.create_session(body.template, body.name)

        return _versioned_response(serialize_session(await self._run(work)), request, status=201)

    async def get_session(self, request: HttpRequest) -> ByteResponse:
        """A session and how much lies in its zones."""
        found = await self._run(lambda desk: desk.sessions.overview(_path_id(request)))
        return _versioned_response(serialize_overview(found), request)

    async def edit_session(self, request: HttpRequest) -> ByteResponse:
        """Another name, or other budgets."""
        version = require_version(request)
        body = await _parse_body(EditSessionRequest, request)
        budgets = None if body.budgets is None else body.budgets.to_budgets()
        made = await self._run(
            lambda desk: desk.sessions.edit(
                _path_id(request), version, name=body.name, budgets=budgets
            )
        )
        return _versioned_response(serialize_session(made), request)

    async def delete_session(self, request: HttpRequest) -> ByteResponse:
        """Remove a session with all its blocks and snapshots."""
        version, identity = require_version(request), _path_id(request)
        await self._run(lambda desk: desk.sessions.delete(identity, version))
        return success_response(encode_json({"deleted": identity}), request.request_id)

    async def duplicate_session(self, request: HttpRequest) -> ByteResponse:
        """Another session with the same blocks."""
        body = await _parse_body(DuplicateSessionRequest, request)
        made = await self._run(lambda desk: desk.sessions.duplicate(_path_id(request), body.name))
        return _versioned_response(serialize_session(made), request, status=201)

    async def get_context(self, request: HttpRequest) -> ByteResponse:
        """The compiled context, with what each part of it costs; or its text alone."""
        form = request.read_query(("format",)).get("format", "json")
        if form not in ("json", "text"):
            raise HttpError("invalid_argument", "format is json or text")
        context = await self._run(lambda desk: desk.contexts.compile(_path_id(request)))
        tag = _version_etag(context.session.revision)
        headers: Headers = (_NO_CACHE_HEADER, (b"etag", tag))
        if etag_matches(request.header(b"if-none-match"), tag):
            return ByteResponse(304, headers)
        if form == "text":
            kind = (b"content-type", b"text/plain; charset=utf-8")
            return ByteResponse(200, (kind, *headers), (context.text.encode(),))
        data = encode_json(serialize_context(context))
        return success_response(data, request.request_id, headers=(*JSON_HEADERS, *headers))

    async def export_session(self, request: HttpRequest) -> ByteResponse:
        """The session as a skill folder in a zip file."""

        def work(desk: Workspace) -> tuple[str, bytes]:
            return export_session(desk.contexts.compile(_path_id(request)))

        name, data = await self._run(work)
        return ByteResponse(200, (*download_headers(name), _NO_CACHE_HEADER), (data,))

    async def apply_template(self, request: HttpRequest) -> ByteResponse:
        """A template's blocks, after those of the session or in place of them."""
        body = await _parse_body(ApplyTemplateRequest, request)
        revision = read_version(request)
        done = await self._run(
            lambda desk: desk.templates.apply(
                _path_id(request), body.template, ApplyMode(body.how), revision
            )
        )
        before = {} if done.before is None else {"before": serialize_snapshot(done.before)}
        return _versioned_response({**serialize_session(done.session), **before}, request)


class BlockHandlers(SessionHandlersBase):
    """The calls on blocks."""

    async def list_block_types(self, request: HttpRequest) -> ByteResponse:
        """The types of blocks."""
        return success_response(encode_json(serialize_block_types()), request.request_id)

    async def list_blocks(self, request: HttpRequest) -> ByteResponse:
        """The blocks of a session in order, or some of them."""
        wanted = _parse_filter(request.read_query(("zone", "type", "q")))

        def work(desk: Workspace) -> tuple[Session, list[Block]]:
            # The revision first: blocks that are newer than it are seen again, never missed.
            session = desk.sessions.find(_path_id(request))
            return session, desk.blocks.list(session.id, wanted)

        session, blocks = await self._run(work)
        data = {"blocks": [*map(serialize_block, blocks)], "revision": session.revision}
        return success_response(encode_json(data), request.request_id)

    async def list_deleted_blocks(self, request: HttpRequest) -> ByteResponse:
        """The blocks that can be brought back, the last deleted first."""

        def work(desk: Workspace) -> tuple[Session, list[Block]]:
            session = desk.sessions.find(_path_id(request))
            return session, [*desk.blocks.list_deleted(session.id)]

        session, blocks = await self._run(work)
        data = {"blocks": [*map(serialize_block, blocks)], "revision": session.revision}
        return success_response(encode_json(data), request.request_id)

    async def add_block(self, request: HttpRequest) -> ByteResponse:
        """A new block."""
        body = await _parse_body(AddBlockRequest, request, MAX_BLOCK_BODY_BYTES)
        made = await self._run(
            lambda desk: desk.blocks.add(
                _path_id(request), body.type, body.content, body.target_zone(), body.to_placement()
            )
        )
        return _versioned_response(serialize_block(made), request, status=201)

    async def get_block(self, request: HttpRequest) -> ByteResponse:
        """One block."""
        found = await self._run(
            lambda desk: desk.blocks.find(_path_id(request), _path_id(request, "block"))
        )
        return _versioned_response(serialize_block(found), request)

    async def edit_block(self, request: HttpRequest) -> ByteResponse:
        """Another text, or another type."""
        version = require_version(request)
        body = await _parse_body(EditBlockRequest, request, MAX_BLOCK_BODY_BYTES)
        made = await self._run(
            lambda desk: desk.blocks.edit(
                _path_id(request),
                _path_id(request, "block"),
                version,
                text=body.content,
                kind=body.type,
            )
        )
        return _versioned_response(serialize_block(made), request)

    async def move_block(self, request: HttpRequest) -> ByteResponse:
        """Another place, in its zone or in another one."""
        version = require_version(request)
        body = await _parse_body(MoveBlockRequest, request)
        made = await self._run(
            lambda desk: desk.blocks.move(
                _path_id(request),
                _path_id(request, "block"),
                version,
                body.target_zone(),
                body.to_placement(),
            )
        )
        return _versioned_response(serialize_block(made), request)

    async def delete_block(self, request: HttpRequest) -> ByteResponse:
        """Remove a block; it can be brought back."""
        version, identity = require_version(request), _path_id(request, "block")
        await self._run(lambda desk: desk.blocks.delete(_path_id(request), identity, version))
        return success_response(encode_json({"deleted": identity}), request.request_id)

    async def restore_block(self, request: HttpRequest) -> ByteResponse:
        """A deleted block, where it was."""
        made = await self._run(
            lambda desk: desk.blocks.restore(_path_id(request), _path_id(request, "block"))
        )
        return _versioned_response(serialize_block(made), request)


class TemplateHandlers(SessionHandlersBase):
    """The calls on templates and snapshots."""

    async def list_templates(self, request: HttpRequest) -> ByteResponse:
        """All templates, by name."""
        found = await self._run(lambda desk: desk.templates.list())
        data = {"templates": [serialize_template(one) for one in found]}
        return success_response(encode_json(data), request.request_id)

    async def save_template(self, request: HttpRequest) -> ByteResponse:
        """A template out of a session's blocks."""
        body = await _parse_body(SaveTemplateRequest, request)
        made = await self._run(
            lambda desk: desk.templates.save(body.session, body.name, body.description)
        )
        return _versioned_response(serialize_template(made), request, status=201)

    async def get_template(self, request: HttpRequest) -> ByteResponse:
        """A template and its blocks."""
        found = await self._run(lambda desk: desk.templates.find(_path_id(request, "template")))
        return _versioned_response(serialize_template_detail(found), request)

    async def edit_template(self, request: HttpRequest) -> ByteResponse:
        """Another name, or the blocks of a session as they are."""
        version = require_version(request)
        body = await _parse_body(EditTemplateRequest, request)

        def work(desk: Workspace) -> Template:
            identity = _path_id(request, "template")
            changes = {"name": body.name, "description": body.description, "session": body.session}
            return desk.templates.edit(identity, version, **changes)

        return _versioned_response(serialize_template(await self._run(work)), request)

    async def delete_template(self, request: HttpRequest) -> ByteResponse:
        """Remove a template."""
        version, identity = require_version(request), _path_id(request, "template")
        await self._run(lambda desk: desk.templates.delete(identity, version))
        return success_response(encode_json({"deleted": identity}), request.request_id)

    async def list_snapshots(self, request: HttpRequest) -> ByteResponse:
        """The snapshots of a session, the newest first."""
        found = await self._run(lambda desk: desk.snapshots.list(_path_id(request)))
        data = {"snapshots": [serialize_snapshot(one) for one in found]}
        return success_response(encode_json(data), request.request_id)

    async def save_snapshot(self, request: HttpRequest) -> ByteResponse:
        """The session as it is."""
        body = await _parse_body(SaveSnapshotRequest, request)
        made = await self._run(lambda desk: desk.snapshots.save(_path_id(request), body.name))
        return success_response(
            encode_json(serialize_snapshot(made)), request.request_id, status=201
        )

    async def get_snapshot(self, request: HttpRequest) -> ByteResponse:
        """A snapshot and its blocks."""
        found = await self._run(
            lambda desk: desk.snapshots.find(_path_id(request), _path_id(request, "snapshot"))
        )
        return success_response(encode_json(serialize_snapshot_detail(found)), request.request_id)

    async def restore_snapshot(self, request: HttpRequest) -> ByteResponse:
        """The session as it was then; as it is, it becomes a snapshot too."""
        revision = read_version(request)
        done = await self._run(
            lambda desk: desk.snapshots.restore(
                _path_id(request), _path_id(request, "snapshot"), revision
            )
        )
        data = {**serialize_session(done.session), "before": serialize_snapshot(done.before)}
        return _versioned_response(data, request)

    async def delete_snapshot(self, request: HttpRequest) -> ByteResponse:
        """Remove a snapshot."""
        identity = _path_id(request, "snapshot")
        await self._run(lambda desk: desk.snapshots.delete(_path_id(request), identity))
        return success_response(encode_json({"deleted": identity}), request.request_id)


def _path_id(request: HttpRequest, name: str = "session") -> str:
    return str(request.scope["path_params"][name])


async def _parse_body(model: type[_M], request: HttpRequest, limit: int | None = None) -> _M:
    more = {} if limit is None else {"limit": limit}
    return parse_model(model, await request.json(empty={}, **more))


def _versioned_response(
    data: Mapping[str, object], request: HttpRequest, status: int = 200
) -> ByteResponse:
    """An answer about something with a version, which is its ETag."""
    tag = _version_etag(int(str(data["version"])))
    headers: Headers = (*JSON_HEADERS, _NO_CACHE_HEADER, (b"etag", tag))
    return success_response(encode_json(data), request.request_id, status=status, headers=headers)


def _version_etag(version: int) -> bytes:
    return b'"%d"' % version


def _parse_filter(query: Mapping[str, str]) -> BlockFilter:
    zone, kind = query.get("zone"), query.get("type")
    return BlockFilter(
        None if zone is None else parse_zone(zone),
        None if kind is None else validate_block_type(kind),
        query.get("q", ""),
    )
