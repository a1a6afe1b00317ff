"""The calls that bring skills and whole sessions in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.response import JSON, Answer, encoded, success
from skillhall._internal.rest.requests import checked
from skillhall._internal.rest.sessions.handlers import DeskCalls
from skillhall._internal.rest.sessions.requests import SkillImportBody
from skillhall._internal.workspace.importer import SameName, Wish
from skillhall._internal.workspace.serializers import (
    candidates_data,
    imported_data,
    scan_data,
    session_data,
)
from skillhall._internal.workspace.validation import checked_zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.http.request import Exchange
    from skillhall._internal.workspace.importer import Imported
    from skillhall._internal.workspace.skill_blocks import Candidate
    from skillhall._internal.workspace.workspace import Workspace

MAX_ARCHIVE = 110 * 1024 * 1024  # bytes of a file that is sent
_KINDS = {b"application/zip": "skill.zip", b"text/markdown": "skill.md"}
_ARCHIVES = (b"application/zip", b"application/octet-stream")
_PARAMETERS = ("filename", "zone", "same", "skills")


class _Upload(NamedTuple):
    data: bytes
    filename: str


class _Named(NamedTuple):
    source: str


class _Folder(NamedTuple):
    folder: str


class DeskImports(DeskCalls):
    """The ways in."""

    async def import_skills(self, exchange: Exchange) -> Answer:
        """Skills as blocks: of a file that is sent, of a source, or of a folder if allowed."""
        what, wish = await _asked(exchange)
        session = str(exchange.scope["path_params"]["session"])

        def work(desk: Workspace) -> Imported:
            desk.sessions.find(session)  # before anything is fetched
            if isinstance(what, _Upload):
                return desk.imports.import_upload(session, *what, wish)
            if isinstance(what, _Folder):
                return desk.imports.import_folder(session, what.folder, wish)
            return desk.imports.import_source(session, what.source, wish)

        done = await self._do(work)
        return success(encoded(imported_data(done)), exchange.request_id, status=201)

    async def preview_skills(self, exchange: Exchange) -> Answer:
        """A checklist of what a file, a source or a folder holds; nothing is imported."""
        what, _ = await _asked(exchange)

        def work(desk: Workspace) -> Sequence[Candidate]:
            if isinstance(what, _Upload):
                return desk.imports.look_upload(*what)
            if isinstance(what, _Folder):
                return desk.imports.look_folder(what.folder).candidates
            return desk.imports.look_source(what.source)

        data = candidates_data(await self._do(work))
        return success(encoded(data), exchange.request_id)

    async def scan_folder(self, exchange: Exchange) -> Answer:
        """A checklist of a folder of the server's machine, if that is allowed."""
        folder = exchange.query(("folder",)).get("folder", "")
        scan = await self._do(lambda desk: desk.imports.look_folder(folder))
        return success(encoded(scan_data(scan)), exchange.request_id)

    async def open_session(self, exchange: Exchange) -> Answer:
        """A new session out of an exported one."""
        asked = exchange.query(("filename", "name"))
        if _kind(exchange) not in _ARCHIVES:
            raise Refused("unsupported_media_type", "the body must be sent as application/zip")
        data = await exchange.body(MAX_ARCHIVE)
        name = asked.get("filename", "session.zip")
        made = await self._do(lambda desk: desk.imports.open_session(data, name, asked.get("name")))
        headers = (*JSON, (b"etag", b'"%d"' % made.version))
        body = encoded(session_data(made))
        return success(body, exchange.request_id, status=201, headers=headers)


async def _asked(exchange: Exchange) -> tuple[_Upload | _Named | _Folder, Wish]:
    """What is to be imported, and how. Raises: Refused."""
    usual = _KINDS.get(_kind(exchange))
    if usual is None:
        body = checked(SkillImportBody, await exchange.json(empty={}))
        wish = _wish(body.zone, body.same, tuple(body.skills))
        if body.source is not None and body.folder is None:
            return _Named(body.source), wish
        if body.folder is not None and body.source is None:
            return _Folder(body.folder), wish
        raise Refused("invalid_argument", "name a source or a folder")
    asked = exchange.query(_PARAMETERS)
    names = tuple(name.strip() for name in asked.get("skills", "").split(",") if name.strip())
    wish = _wish(asked.get("zone"), asked.get("same", "refuse"), names)
    data = await exchange.body(MAX_ARCHIVE)
    return _Upload(data, asked.get("filename", usual)), wish


def _wish(zone: str | None, same: str, names: tuple[str, ...]) -> Wish:
    if same not in tuple(SameName):
        raise Refused("invalid_argument", f"same is one of: {', '.join(SameName)}")
    return Wish(None if zone is None else checked_zone(zone), SameName(same), names)


def _kind(exchange: Exchange) -> bytes:
    return (exchange.header(b"content-type") or b"").partition(b";")[0].strip().lower()
