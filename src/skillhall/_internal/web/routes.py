"""Routes of the web pages."""

from functools import partial

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from skillhall._internal.http.auth_middleware import SIGN_IN_PATH
from skillhall._internal.http.credentials import client_id
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import ROUTE_KEY
from skillhall._internal.http.thread_pool import Work
from skillhall._internal.web import account_pages, source_pages
from skillhall._internal.web.assets import STATIC_PREFIX, serve_asset
from skillhall._internal.web.page_request import SITE_KEY, PageHandler, PageRequest, redirect
from skillhall._internal.web.playground import playground_pages
from skillhall._internal.web.rendering import render_error
from skillhall._internal.web.sessions import block_pages, board_pages, session_pages, template_pages
from skillhall._internal.web.sessions import import_pages as session_import_pages
from skillhall._internal.web.site import Site
from skillhall._internal.web.skills import edit_pages, import_pages, skill_pages
from skillhall.errors import SkillhallError

_DATABASE, _STORE, _FETCH = Work.DATABASE, Work.STORE, Work.FETCH
# Method, path, handler, and what the handler waits for if not only for the disk.
ROUTES: tuple[tuple[str, str, PageHandler] | tuple[str, str, PageHandler, Work], ...] = (
    ("GET", "/skills", skill_pages.list_skills),
    ("GET", "/skills/changes", skill_pages.check_for_changes),
    ("GET", "/skills/add", edit_pages.show_new),
    ("POST", "/skills/add", edit_pages.add, _STORE),
    ("POST", "/skills/add/check", edit_pages.check),
    ("GET", "/skills/import", import_pages.show_form),
    ("POST", "/skills/import/files", import_pages.review_files, _STORE),
    ("POST", "/skills/import/source", import_pages.review_source, _FETCH),
    ("POST", "/skills/import/folder", import_pages.review_folder, _STORE),
    ("GET", "/skills/import/{review}", import_pages.show_review, _STORE),
    ("POST", "/skills/import/{review}", import_pages.confirm, _STORE),
    ("GET", "/skill/{id}", skill_pages.show_skill),
    ("GET", "/skill/{id}/files", skill_pages.list_files),
    ("GET", "/skill/{id}/files/{path:path}", skill_pages.show_file),
    ("GET", "/skill/{id}/edit", edit_pages.show_edit),
    ("POST", "/skill/{id}/edit", edit_pages.edit, _STORE),
    ("POST", "/skill/{id}/edit/check", edit_pages.check),
    ("GET", "/skill/{id}/delete", edit_pages.confirm_delete, _STORE),
    ("POST", "/skill/{id}/delete", edit_pages.delete, _STORE),
    ("POST", "/changes/{id}/undo", edit_pages.undo, _STORE),
    ("GET", "/sessions", session_pages.list_sessions, _DATABASE),
    ("POST", "/sessions", session_pages.create, _DATABASE),
    ("POST", "/sessions/open", session_pages.import_session, _DATABASE),
    ("GET", "/session/{id}", board_pages.show, _DATABASE),
    ("GET", "/session/{id}/settings", session_pages.show_settings, _DATABASE),
    ("POST", "/session/{id}/settings", session_pages.edit, _DATABASE),
    ("POST", "/session/{id}/copy", session_pages.duplicate, _DATABASE),
    ("GET", "/session/{id}/delete", session_pages.confirm_delete, _DATABASE),
    ("POST", "/session/{id}/delete", session_pages.delete, _DATABASE),
    ("GET", "/session/{id}/context", session_pages.show_context, _DATABASE),
    ("GET", "/session/{id}/add", block_pages.show_new, _DATABASE),
    ("POST", "/session/{id}/add", block_pages.add, _DATABASE),
    ("POST", "/session/{id}/add/check", block_pages.check, _DATABASE),
    ("GET", "/session/{id}/blocks/{block}/edit", block_pages.show_edit, _DATABASE),
    ("POST", "/session/{id}/blocks/{block}/edit", block_pages.edit, _DATABASE),
    ("POST", "/session/{id}/blocks/{block}/edit/check", block_pages.check, _DATABASE),
    ("POST", "/session/{id}/blocks/{block}/move", board_pages.move, _DATABASE),
    ("POST", "/session/{id}/blocks/{block}/delete", board_pages.delete, _DATABASE),
    ("POST", "/session/{id}/blocks/{block}/restore", board_pages.restore, _DATABASE),
    ("GET", "/session/{id}/import", session_import_pages.show_form, _DATABASE),
    ("POST", "/session/{id}/import/files", session_import_pages.import_files, _DATABASE),
    ("POST", "/session/{id}/import/source", session_import_pages.import_source, _FETCH),
    ("POST", "/session/{id}/import/folder", session_import_pages.import_folder, _DATABASE),
    ("POST", "/session/{id}/import/skills", session_import_pages.import_from_collection, _DATABASE),
    ("GET", "/session/{id}/import/{review}", session_import_pages.show_review, _DATABASE),
    ("POST", "/session/{id}/import/{review}", session_import_pages.confirm, _DATABASE),
    ("GET", "/session/{id}/saved-states", template_pages.show_saved_states, _DATABASE),
    ("GET", "/session/{id}/keep", template_pages.redirect_saved_states, _DATABASE),  # former URL
    ("POST", "/session/{id}/snapshots", template_pages.save_snapshot, _DATABASE),
    (
        "POST",
        "/session/{id}/snapshots/{snapshot}/restore",
        template_pages.restore_snapshot,
        _DATABASE,
    ),
    (
        "POST",
        "/session/{id}/snapshots/{snapshot}/delete",
        template_pages.delete_snapshot,
        _DATABASE,
    ),
    ("POST", "/session/{id}/template", template_pages.save_template, _DATABASE),
    ("POST", "/session/{id}/apply", template_pages.apply_template, _DATABASE),
    ("GET", "/templates", template_pages.list_templates, _DATABASE),
    ("POST", "/template/{id}/edit", template_pages.edit_template, _DATABASE),
    ("POST", "/template/{id}/delete", template_pages.delete_template, _DATABASE),
    ("POST", "/template/{id}/start", template_pages.start_session, _DATABASE),
    ("GET", "/", lambda _: redirect("/skills")),
    ("GET", f"{STATIC_PREFIX}{{path:path}}", serve_asset),
    ("GET", "/playground", playground_pages.show),
    ("GET", "/playground/prompt", playground_pages.show_prompt),
    ("POST", "/playground/new", playground_pages.start_over),
    ("POST", "/playground/send", playground_pages.send_message),
    ("GET", "/sources", source_pages.show_sources),
    ("GET", "/sources/skipped", source_pages.show_skipped),
    ("POST", "/sources/refresh", source_pages.refresh, _FETCH),
    ("POST", "/sources/follow", source_pages.follow, _FETCH),
    ("POST", "/sources/unfollow", source_pages.unfollow),
    ("POST", "/settings", account_pages.save_preferences),
    ("GET", SIGN_IN_PATH, account_pages.show_sign_in),
    ("POST", SIGN_IN_PATH, account_pages.sign_in),
    ("POST", "/sign-out", account_pages.sign_out, _DATABASE),
    ("GET", account_pages.ACCOUNT_PATH, account_pages.show_account, _DATABASE),
    ("POST", "/account/sign-ins/{id}/end", account_pages.end_sign_in, _DATABASE),
)


def build_web_router(site: Site) -> APIRouter:
    """Return the router of all pages; they are not part of the OpenAPI document."""
    return APIRouter(routes=[_build_route(site, *route) for route in ROUTES])


def _build_route(
    site: Site, method: str, path: str, handler: PageHandler, work: Work = Work.DISK
) -> Route:
    """Return a route to a handler, which runs in a worker thread."""
    label, workers = path.replace(":path}", "}"), site.pools[work]

    async def respond(request: Request) -> Response:
        request.scope[ROUTE_KEY] = label  # for metrics
        request.scope[SITE_KEY] = site
        page_request = PageRequest(request.scope, request.receive)
        try:
            if method == "POST":
                await page_request.read_form()
            return await workers.run_for(client_id(request.scope), partial(handler, page_request))
        except SkillhallError as error:
            return render_error(page_request, error)
        except OSError:  # its message may name a path of the server
            failure = HttpError("storage_unavailable", "the server cannot access its storage")
            return render_error(page_request, failure)

    return Route(path, respond, methods=[method], include_in_schema=False)
