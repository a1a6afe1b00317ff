"""The addresses of the pages about sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.web.sessions.block_pages import BlockPages
from skillhall._internal.web.sessions.board_pages import BoardPages
from skillhall._internal.web.sessions.import_pages import SessionImportPages
from skillhall._internal.web.sessions.session_pages import SessionPages
from skillhall._internal.web.sessions.template_pages import KeepPages

if TYPE_CHECKING:
    from skillhall._internal.web.site import Call, Site

_SESSION = "/session/{id}"
_BLOCK = f"{_SESSION}/blocks/{{block}}"
_SNAPSHOT = f"{_SESSION}/snapshots/{{snapshot}}"
_TEMPLATE = "/template/{id}"


def session_pages(site: Site) -> tuple[tuple[str, str, Call], ...]:
    """Every page, with its method and its call."""
    sessions, board, blocks = SessionPages(site), BoardPages(site), BlockPages(site)
    imports, keep = SessionImportPages(site), KeepPages(site)
    return (
        ("GET", "/sessions", sessions.list_sessions),
        ("POST", "/sessions", sessions.create),
        ("POST", "/sessions/open", sessions.open),
        ("GET", _SESSION, board.show),
        ("GET", f"{_SESSION}/settings", sessions.show_settings),
        ("POST", f"{_SESSION}/settings", sessions.edit),
        ("POST", f"{_SESSION}/copy", sessions.copy),
        ("GET", f"{_SESSION}/delete", sessions.ask_delete),
        ("POST", f"{_SESSION}/delete", sessions.delete),
        ("GET", f"{_SESSION}/context", sessions.show_context),
        ("GET", f"{_SESSION}/add", blocks.show_new),
        ("POST", f"{_SESSION}/add", blocks.add),
        ("POST", f"{_SESSION}/add/check", blocks.check),
        ("GET", f"{_BLOCK}/edit", blocks.show_edit),
        ("POST", f"{_BLOCK}/edit", blocks.edit),
        ("POST", f"{_BLOCK}/edit/check", blocks.check),
        ("POST", f"{_BLOCK}/move", board.move),
        ("POST", f"{_BLOCK}/delete", board.delete),
        ("POST", f"{_BLOCK}/bring-back", board.bring_back),
        ("GET", f"{_SESSION}/import", imports.show_ways),
        ("POST", f"{_SESSION}/import/files", imports.from_files),
        ("POST", f"{_SESSION}/import/address", imports.from_address),
        ("POST", f"{_SESSION}/import/folder", imports.from_folder),
        ("POST", f"{_SESSION}/import/skills", imports.from_collection),
        ("GET", f"{_SESSION}/import/{{review}}", imports.show_review),
        ("POST", f"{_SESSION}/import/{{review}}", imports.take),
        ("GET", f"{_SESSION}/keep", keep.show),
        ("POST", f"{_SESSION}/snapshots", keep.save_snapshot),
        ("POST", f"{_SNAPSHOT}/restore", keep.restore),
        ("POST", f"{_SNAPSHOT}/delete", keep.delete_snapshot),
        ("POST", f"{_SESSION}/template", keep.save_template),
        ("POST", f"{_SESSION}/apply", keep.apply),
        ("GET", "/templates", keep.list_templates),
        ("POST", f"{_TEMPLATE}/edit", keep.edit_template),
        ("POST", f"{_TEMPLATE}/delete", keep.delete_template),
        ("POST", f"{_TEMPLATE}/start", keep.start),
    )
