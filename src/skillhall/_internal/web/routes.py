"""Routes of the web pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from skillhall._internal.http.auth_middleware import SIGN_IN_PATH
from skillhall._internal.web.assets import STATIC_PREFIX, serve_asset
from skillhall._internal.web.playground.playground_pages import PlaygroundPages
from skillhall._internal.web.rendering import redirect
from skillhall._internal.web.sessions.block_pages import BlockPages
from skillhall._internal.web.sessions.board_pages import BoardPages
from skillhall._internal.web.sessions.import_pages import SessionImportPages
from skillhall._internal.web.sessions.session_pages import SessionPages
from skillhall._internal.web.sessions.template_pages import TemplatePages
from skillhall._internal.web.skills.edit_pages import SkillEditPages
from skillhall._internal.web.skills.import_pages import ImportPages
from skillhall._internal.web.skills.skill_pages import SkillPages
from skillhall._internal.web.source_pages import SourcePages

if TYPE_CHECKING:
    from skillhall._internal.web.site import PageHandler, Site


def build_web_router(site: Site) -> APIRouter:
    """Return the router of all pages; they are not part of the OpenAPI document."""
    routes = (*_skill_routes(site), *_session_routes(site), *_other_routes(site))
    return APIRouter(routes=[site.route(*route) for route in routes])


def _skill_routes(site: Site) -> tuple[tuple[str, str, PageHandler], ...]:
    skills, edits, imports = SkillPages(site), SkillEditPages(site), ImportPages(site)
    return (
        ("GET", "/skills", skills.list_skills),
        ("GET", "/skills/changes", skills.check_for_changes),
        ("GET", "/skills/add", edits.show_new),
        ("POST", "/skills/add", edits.add),
        ("POST", "/skills/add/check", edits.check_new),
        ("GET", "/skills/import", imports.show_form),
        ("POST", "/skills/import/files", imports.review_files),
        ("POST", "/skills/import/source", imports.review_source),
        ("POST", "/skills/import/folder", imports.review_folder),
        ("GET", "/skills/import/{review}", imports.show_review),
        ("POST", "/skills/import/{review}", imports.confirm),
        ("GET", "/skill/{id}", skills.show_skill),
        ("GET", "/skill/{id}/files", skills.list_files),
        ("GET", "/skill/{id}/files/{path:path}", skills.show_file),
        ("GET", "/skill/{id}/edit", edits.show_edit),
        ("POST", "/skill/{id}/edit", edits.edit),
        ("POST", "/skill/{id}/edit/check", edits.check_edit),
        ("GET", "/skill/{id}/delete", edits.confirm_delete),
        ("POST", "/skill/{id}/delete", edits.delete),
        ("POST", "/changes/{id}/undo", edits.undo),
    )


def _session_routes(site: Site) -> tuple[tuple[str, str, PageHandler], ...]:
    sessions, board, blocks = SessionPages(site), BoardPages(site), BlockPages(site)
    imports, templates = SessionImportPages(site), TemplatePages(site)
    return (
        ("GET", "/sessions", sessions.list_sessions),
        ("POST", "/sessions", sessions.create),
        ("POST", "/sessions/open", sessions.import_session),
        ("GET", "/session/{id}", board.show),
        ("GET", "/session/{id}/settings", sessions.show_settings),
        ("POST", "/session/{id}/settings", sessions.edit),
        ("POST", "/session/{id}/copy", sessions.duplicate),
        ("GET", "/session/{id}/delete", sessions.confirm_delete),
        ("POST", "/session/{id}/delete", sessions.delete),
        ("GET", "/session/{id}/context", sessions.show_context),
        ("GET", "/session/{id}/add", blocks.show_new),
        ("POST", "/session/{id}/add", blocks.add),
        ("POST", "/session/{id}/add/check", blocks.check),
        ("GET", "/session/{id}/blocks/{block}/edit", blocks.show_edit),
        ("POST", "/session/{id}/blocks/{block}/edit", blocks.edit),
        ("POST", "/session/{id}/blocks/{block}/edit/check", blocks.check),
        ("POST", "/session/{id}/blocks/{block}/move", board.move),
        ("POST", "/session/{id}/blocks/{block}/delete", board.delete),
        ("POST", "/session/{id}/blocks/{block}/restore", board.restore),
        ("GET", "/session/{id}/import", imports.show_form),
        ("POST", "/session/{id}/import/files", imports.import_files),
        ("POST", "/session/{id}/import/source", imports.import_source),
        ("POST", "/session/{id}/import/folder", imports.import_folder),
        ("POST", "/session/{id}/import/skills", imports.import_from_collection),
        ("GET", "/session/{id}/import/{review}", imports.show_review),
        ("POST", "/session/{id}/import/{review}", imports.confirm),
        ("GET", "/session/{id}/saved-states", templates.show_saved_states),
        ("GET", "/session/{id}/keep", templates.redirect_saved_states),  # former URL
        ("POST", "/session/{id}/snapshots", templates.save_snapshot),
        ("POST", "/session/{id}/snapshots/{snapshot}/restore", templates.restore_snapshot),
        ("POST", "/session/{id}/snapshots/{snapshot}/delete", templates.delete_snapshot),
        ("POST", "/session/{id}/template", templates.save_template),
        ("POST", "/session/{id}/apply", templates.apply_template),
        ("GET", "/templates", templates.list_templates),
        ("POST", "/template/{id}/edit", templates.edit_template),
        ("POST", "/template/{id}/delete", templates.delete_template),
        ("POST", "/template/{id}/start", templates.start_session),
    )


def _other_routes(site: Site) -> tuple[tuple[str, str, PageHandler], ...]:
    playground, sources = PlaygroundPages(site), SourcePages(site)
    return (
        ("GET", "/", lambda _: redirect("/skills")),
        ("GET", f"{STATIC_PREFIX}{{path:path}}", serve_asset),
        ("GET", "/playground", playground.show),
        ("GET", "/playground/prompt", playground.show_prompt),
        ("POST", "/playground/new", playground.start_over),
        ("POST", "/playground/send", playground.send_message),
        ("GET", "/sources", sources.show_sources),
        ("GET", "/sources/skipped", sources.show_skipped),
        ("POST", "/sources/refresh", sources.refresh),
        ("POST", "/sources/follow", sources.follow),
        ("POST", "/sources/unfollow", sources.unfollow),
        ("POST", "/settings", sources.save_preferences),
        ("GET", SIGN_IN_PATH, sources.show_sign_in),
        ("POST", SIGN_IN_PATH, sources.sign_in),
        ("POST", "/sign-out", sources.sign_out),
    )
