"""The calls on sessions, blocks, templates and snapshots."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.response import JSON, Answer, encoded, success
from skillhall._internal.rest.downloads import download_of
from skillhall._internal.rest.endpoint import page_limit
from skillhall._internal.rest.etag import matches, optional_version, version_in
from skillhall._internal.rest.requests import checked
from skillhall._internal.rest.sessions.requests import (
    ApplyBody,
    BlockBody,
    BlockPatch,
    CopyBody,
    MoveBody,
    SessionBody,
    SessionPatch,
    SnapshotBody,
    TemplateBody,
    TemplatePatch,
)
from skillhall._internal.workspace.blocks import Filter
from skillhall._internal.workspace.export import export_session
from skillhall._internal.workspace.serializers import (
    arrangement_data,
    block_data,
    context_data,
    overview_data,
    saved_session_data,
    session_data,
    snapshot_data,
    template_data,
    types_data,
)
from skillhall._internal.workspace.sessions import NO_BUDGETS
from skillhall._internal.workspace.templates import Applying
from skillhall._internal.workspace.validation import checked_type, checked_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

    from skillhall._internal.http.request import Exchange
    from skillhall._internal.http.response import Headers
    from skillhall._internal.http.thread_pool import Blocking
    from skillhall._internal.workspace import Block, Session, Template
    from skillhall._internal.workspace.workspace import Door, Workspace

_T = TypeVar("_T")
_M = TypeVar("_M", bound="BaseModel")

MAX_BLOCK = 8 * 1024 * 1024  # bytes of a body with a block in it: JSON may write a byte as six
_REVALIDATED = (b"cache-control", b"no-cache")


CURSOR = r"[0-9a-z]{1,64}"


class DeskCalls:
    """What all calls on a workspace have in common."""

    def __init__(self, door: Door, blocking: Blocking) -> None:
        self._door = door
        self._blocking = blocking

    async def _do(self, work: Callable[[Workspace], _T]) -> _T:
        """What the work returns; it may wait for the database."""
        return await self._blocking.run(lambda: work(self._door.open()))


class SessionCalls(DeskCalls):
    """The calls on sessions."""

    async def list_sessions(self, exchange: Exchange) -> Answer:
        """A page of sessions."""
        asked = exchange.query(("cursor", "limit"))
        limit = page_limit(asked)
        after = asked.get("cursor", "")
        if after and re.fullmatch(CURSOR, after) is None:
            raise Refused("invalid_argument", "the cursor is not one of ours")
        found = await self._do(lambda desk: desk.sessions.list(after, limit + 1))
        data: dict[str, object] = {"sessions": [session_data(one) for one in found[:limit]]}
        if len(found) > limit:
            data["nextCursor"] = found[limit - 1].id
        return success(encoded(data), exchange.request_id)

    async def create_session(self, exchange: Exchange) -> Answer:
        """A new session, empty or out of a template."""
        body = await _body(SessionBody, exchange)

        def work(desk: Workspace) -> Session:
            if body.template is None:
                budgets = NO_BUDGETS if body.budgets is None else body.budgets.value()
                return desk.sessions.create(body.name, budgets)
            if body.budgets is not None:
                raise Refused("invalid_argument", "a template brings its own budgets")
            return desk.templates.start(body.template, body.name)

        return _tagged(session_data(await self._do(work)), exchange, status=201)

    async def one_session(self, exchange: Exchange) -> Answer:
        """A session and how much lies in its zones."""
        found = await self._do(lambda desk: desk.sessions.overview(_id(exchange)))
        return _tagged(overview_data(found), exchange)

    async def edit_session(self, exchange: Exchange) -> Answer:
        """Another name, or other budgets."""
        version = version_in(exchange)
        body = await _body(SessionPatch, exchange)
        budgets = None if body.budgets is None else body.budgets.value()
        made = await self._do(
            lambda desk: desk.sessions.edit(_id(exchange), version, name=body.name, budgets=budgets)
        )
        return _tagged(session_data(made), exchange)

    async def delete_session(self, exchange: Exchange) -> Answer:
        """Remove a session with all its blocks and snapshots."""
        version, identity = version_in(exchange), _id(exchange)
        await self._do(lambda desk: desk.sessions.delete(identity, version))
        return success(encoded({"deleted": identity}), exchange.request_id)

    async def copy_session(self, exchange: Exchange) -> Answer:
        """Another session with the same blocks."""
        body = await _body(CopyBody, exchange)
        made = await self._do(lambda desk: desk.sessions.duplicate(_id(exchange), body.name))
        return _tagged(session_data(made), exchange, status=201)

    async def one_context(self, exchange: Exchange) -> Answer:
        """The compiled context, with what each part of it costs; or its text alone."""
        form = exchange.query(("format",)).get("format", "json")
        if form not in ("json", "text"):
            raise Refused("invalid_argument", "format is json or text")
        context = await self._do(lambda desk: desk.contexts.compile(_id(exchange)))
        tag = _etag(context.session.revision)
        headers: Headers = (_REVALIDATED, (b"etag", tag))
        if matches(exchange.header(b"if-none-match"), tag):
            return Answer(304, headers)
        if form == "text":
            kind = (b"content-type", b"text/plain; charset=utf-8")
            return Answer(200, (kind, *headers), (context.text.encode(),))
        data = encoded(context_data(context))
        return success(data, exchange.request_id, headers=(*JSON, *headers))

    async def export(self, exchange: Exchange) -> Answer:
        """The session as a skill folder in a zip file."""

        def work(desk: Workspace) -> tuple[str, bytes]:
            return export_session(desk.contexts.compile(_id(exchange)))

        name, data = await self._do(work)
        return Answer(200, (*download_of(name), _REVALIDATED), (data,))

    async def apply_template(self, exchange: Exchange) -> Answer:
        """A template's blocks, after those of the session or in place of them."""
        body = await _body(ApplyBody, exchange)
        revision = optional_version(exchange)
        done = await self._do(
            lambda desk: desk.templates.apply(
                _id(exchange), body.template, Applying(body.how), revision
            )
        )
        before = {} if done.before is None else {"before": snapshot_data(done.before)}
        return _tagged({**session_data(done.session), **before}, exchange)


class BlockCalls(DeskCalls):
    """The calls on blocks."""

    async def block_types(self, exchange: Exchange) -> Answer:
        """The types of blocks."""
        return success(encoded(types_data()), exchange.request_id)

    async def list_blocks(self, exchange: Exchange) -> Answer:
        """The blocks of a session in order, or some of them."""
        wanted = _filter(exchange.query(("zone", "type", "q")))

        def work(desk: Workspace) -> tuple[Session, list[Block]]:
            # The revision first: blocks that are newer than it are seen again, never missed.
            session = desk.sessions.find(_id(exchange))
            return session, desk.blocks.list(session.id, wanted)

        session, blocks = await self._do(work)
        data = {"blocks": [*map(block_data, blocks)], "revision": session.revision}
        return success(encoded(data), exchange.request_id)

    async def deleted_blocks(self, exchange: Exchange) -> Answer:
        """The blocks that can be brought back, the last deleted first."""

        def work(desk: Workspace) -> tuple[Session, list[Block]]:
            session = desk.sessions.find(_id(exchange))
            return session, [*desk.blocks.deleted(session.id)]

        session, blocks = await self._do(work)
        data = {"blocks": [*map(block_data, blocks)], "revision": session.revision}
        return success(encoded(data), exchange.request_id)

    async def add_block(self, exchange: Exchange) -> Answer:
        """A new block."""
        body = await _body(BlockBody, exchange, MAX_BLOCK)
        made = await self._do(
            lambda desk: desk.blocks.add(
                _id(exchange), body.type, body.content, body.goal(), body.place()
            )
        )
        return _tagged(block_data(made), exchange, status=201)

    async def one_block(self, exchange: Exchange) -> Answer:
        """One block."""
        found = await self._do(lambda desk: desk.blocks.find(_id(exchange), _id(exchange, "block")))
        return _tagged(block_data(found), exchange)

    async def edit_block(self, exchange: Exchange) -> Answer:
        """Another text, or another type."""
        version = version_in(exchange)
        body = await _body(BlockPatch, exchange, MAX_BLOCK)
        made = await self._do(
            lambda desk: desk.blocks.edit(
                _id(exchange), _id(exchange, "block"), version, text=body.content, kind=body.type
            )
        )
        return _tagged(block_data(made), exchange)

    async def move_block(self, exchange: Exchange) -> Answer:
        """Another place, in its zone or in another one."""
        version = version_in(exchange)
        body = await _body(MoveBody, exchange)
        made = await self._do(
            lambda desk: desk.blocks.move(
                _id(exchange), _id(exchange, "block"), version, body.goal(), body.place()
            )
        )
        return _tagged(block_data(made), exchange)

    async def delete_block(self, exchange: Exchange) -> Answer:
        """Remove a block; it can be brought back."""
        version, identity = version_in(exchange), _id(exchange, "block")
        await self._do(lambda desk: desk.blocks.delete(_id(exchange), identity, version))
        return success(encoded({"deleted": identity}), exchange.request_id)

    async def bring_block_back(self, exchange: Exchange) -> Answer:
        """A deleted block, where it was."""
        made = await self._do(
            lambda desk: desk.blocks.bring_back(_id(exchange), _id(exchange, "block"))
        )
        return _tagged(block_data(made), exchange)


class TemplateCalls(DeskCalls):
    """The calls on templates and snapshots."""

    async def list_templates(self, exchange: Exchange) -> Answer:
        """All templates, by name."""
        found = await self._do(lambda desk: desk.templates.list())
        data = {"templates": [template_data(one) for one in found]}
        return success(encoded(data), exchange.request_id)

    async def save_template(self, exchange: Exchange) -> Answer:
        """A template out of a session's blocks."""
        body = await _body(TemplateBody, exchange)
        made = await self._do(
            lambda desk: desk.templates.save(body.session, body.name, body.description)
        )
        return _tagged(template_data(made), exchange, status=201)

    async def one_template(self, exchange: Exchange) -> Answer:
        """A template and its blocks."""
        found = await self._do(lambda desk: desk.templates.find(_id(exchange, "template")))
        return _tagged(arrangement_data(found), exchange)

    async def edit_template(self, exchange: Exchange) -> Answer:
        """Another name, or the blocks of a session as they are."""
        version = version_in(exchange)
        body = await _body(TemplatePatch, exchange)

        def work(desk: Workspace) -> Template:
            identity = _id(exchange, "template")
            changes = {"name": body.name, "description": body.description, "session": body.session}
            return desk.templates.edit(identity, version, **changes)

        return _tagged(template_data(await self._do(work)), exchange)

    async def delete_template(self, exchange: Exchange) -> Answer:
        """Remove a template."""
        version, identity = version_in(exchange), _id(exchange, "template")
        await self._do(lambda desk: desk.templates.delete(identity, version))
        return success(encoded({"deleted": identity}), exchange.request_id)

    async def list_snapshots(self, exchange: Exchange) -> Answer:
        """The snapshots of a session, the newest first."""
        found = await self._do(lambda desk: desk.snapshots.list(_id(exchange)))
        data = {"snapshots": [snapshot_data(one) for one in found]}
        return success(encoded(data), exchange.request_id)

    async def save_snapshot(self, exchange: Exchange) -> Answer:
        """The session as it is."""
        body = await _body(SnapshotBody, exchange)
        made = await self._do(lambda desk: desk.snapshots.save(_id(exchange), body.name))
        return success(encoded(snapshot_data(made)), exchange.request_id, status=201)

    async def one_snapshot(self, exchange: Exchange) -> Answer:
        """A snapshot and its blocks."""
        found = await self._do(
            lambda desk: desk.snapshots.find(_id(exchange), _id(exchange, "snapshot"))
        )
        return success(encoded(saved_session_data(found)), exchange.request_id)

    async def restore_snapshot(self, exchange: Exchange) -> Answer:
        """The session as it was then; as it is, it becomes a snapshot too."""
        revision = optional_version(exchange)
        done = await self._do(
            lambda desk: desk.snapshots.restore(_id(exchange), _id(exchange, "snapshot"), revision)
        )
        data = {**session_data(done.session), "before": snapshot_data(done.before)}
        return _tagged(data, exchange)

    async def delete_snapshot(self, exchange: Exchange) -> Answer:
        """Remove a snapshot."""
        identity = _id(exchange, "snapshot")
        await self._do(lambda desk: desk.snapshots.delete(_id(exchange), identity))
        return success(encoded({"deleted": identity}), exchange.request_id)


def _id(exchange: Exchange, name: str = "session") -> str:
    return str(exchange.scope["path_params"][name])


async def _body(model: type[_M], exchange: Exchange, limit: int | None = None) -> _M:
    more = {} if limit is None else {"limit": limit}
    return checked(model, await exchange.json(empty={}, **more))


def _tagged(data: Mapping[str, object], exchange: Exchange, status: int = 200) -> Answer:
    """An answer about something with a version, which is its ETag."""
    tag = _etag(int(str(data["version"])))
    headers: Headers = (*JSON, _REVALIDATED, (b"etag", tag))
    return success(encoded(data), exchange.request_id, status=status, headers=headers)


def _etag(version: int) -> bytes:
    return b'"%d"' % version


def _filter(asked: Mapping[str, str]) -> Filter:
    zone, kind = asked.get("zone"), asked.get("type")
    return Filter(
        None if zone is None else checked_zone(zone),
        None if kind is None else checked_type(kind),
        asked.get("q", ""),
    )
