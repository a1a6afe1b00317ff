"""Routes of the session pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.web.sessions.block_pages import BlockPages
from skillhall._internal.web.sessions.board_pages import BoardPages
from skillhall._internal.web.sessions.import_pages import SessionImportPages
from skillhall._internal.web.sessions.session_pages import SessionPages
from skillhall._internal.web.sessions.template_pages import TemplatePages

if TYPE_CHECKING:
    from skillhall._internal.web.site import PageHandler, Site

_SESSION_PATH = "/session/{id}"
_BLOCK_PATH = f"{_SESSION_PATH}/blocks/{{block}}"
_SNAPSHOT_PATH = f"{_SESSION_PATH}/snapshots/{{snapshot}}"
_TEMPLATE_PATH = "/template/{id}"


def session_page_routes(site: Site) -> tuple[tuple[str, str, PageHandler], ...]:
    """Return method, path and handler of every session page."""
    sessions, board, blocks = SessionPages(site), BoardPages(site), BlockPages(site)
    imports, templates = SessionImportPages(site), TemplatePages(site)
    return (
        ("GET", "/sessions", sessions.list_sessions),
        ("POST", "/sessions", sessions.create),
        ("POST", "/sessions/open", sessions.import_session),
        ("GET", _SESSION_PATH, board.show),
        ("GET", f"{_SESSION_PATH}/settings", sessions.show_settings),
        ("POST", f"{_SESSION_PATH}/settings", sessions.edit),
        ("POST", f"{_SESSION_PATH}/copy", sessions.duplicate),
        ("GET", f"{_SESSION_PATH}/delete", sessions.confirm_delete),
        ("POST", f"{_SESSION_PATH}/delete", sessions.delete),
        ("GET", f"{_SESSION_PATH}/context", sessions.show_context),
        ("GET", f"{_SESSION_PATH}/add", blocks.show_new),
        ("POST", f"{_SESSION_PATH}/add", blocks.add),
        ("POST", f"{_SESSION_PATH}/add/check", blocks.check),
        ("GET", f"{_BLOCK_PATH}/edit", blocks.show_edit),
        ("POST", f"{_BLOCK_PATH}/edit", blocks.edit),
        ("POST", f"{_BLOCK_PATH}/edit/check", blocks.check),
        ("POST", f"{_BLOCK_PATH}/move", board.move),
        ("POST", f"{_BLOCK_PATH}/delete", board.delete),
        ("POST", f"{_BLOCK_PATH}/restore", board.restore),
        ("GET", f"{_SESSION_PATH}/import", imports.show_form),
        ("POST", f"{_SESSION_PATH}/import/files", imports.import_files),
        ("POST", f"{_SESSION_PATH}/import/source", imports.import_source),
        ("POST", f"{_SESSION_PATH}/import/folder", imports.import_folder),
        ("POST", f"{_SESSION_PATH}/import/skills", imports.import_from_collection),
        ("GET", f"{_SESSION_PATH}/import/{{review}}", imports.show_review),
        ("POST", f"{_SESSION_PATH}/import/{{review}}", imports.confirm),
        ("GET", f"{_SESSION_PATH}/saved-states", templates.show_saved_states),
        ("GET", f"{_SESSION_PATH}/keep", templates.redirect_saved_states),  # former URL
        ("POST", f"{_SESSION_PATH}/snapshots", templates.save_snapshot),
        ("POST", f"{_SNAPSHOT_PATH}/restore", templates.restore_snapshot),
        ("POST", f"{_SNAPSHOT_PATH}/delete", templates.delete_snapshot),
        ("POST", f"{_SESSION_PATH}/template", templates.save_template),
        ("POST", f"{_SESSION_PATH}/apply", templates.apply_template),
        ("GET", "/templates", templates.list_templates),
        ("POST", f"{_TEMPLATE_PATH}/edit", templates.edit_template),
        ("POST", f"{_TEMPLATE_PATH}/delete", templates.delete_template),
        ("POST", f"{_TEMPLATE_PATH}/start", templates.start_session),
    )
