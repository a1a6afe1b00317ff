"""Routes of the web pages."""

from functools import partial
from http import HTTPStatus
from typing import TypeAlias

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from skillhall._internal.http.access import check_action, needs
from skillhall._internal.http.auth_middleware import OIDC_CALLBACK_PATH, OIDC_PATH, SIGN_IN_PATH
from skillhall._internal.http.credentials import client_id
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import ROUTE_KEY
from skillhall._internal.http.thread_pool import Work
from skillhall._internal.http.users import JOIN_PATH
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.web import (
    account_pages,
    audit_pages,
    join_pages,
    oidc_pages,
    source_pages,
    status_pages,
    token_pages,
    trust_pages,
    user_pages,
)
from skillhall._internal.web.assets import STATIC_PREFIX, serve_asset
from skillhall._internal.web.page_request import SITE_KEY, PageHandler, PageRequest, redirect
from skillhall._internal.web.playground import eval_case_pages, playground_pages
from skillhall._internal.web.rendering import render_error
from skillhall._internal.web.sessions import (
    block_pages,
    board_pages,
    reading_pages,
    session_pages,
    template_pages,
)
from skillhall._internal.web.sessions import import_pages as session_imports
from skillhall._internal.web.site import Site
from skillhall._internal.web.skills import (
    edit_pages,
    file_pages,
    import_pages,
    list_pages,
    palette_pages,
    policy_pages,
    selection_pages,
    skill_pages,
    version_pages,
)
from skillhall.errors import SkillhallError

_DATABASE, _STORE, _FETCH = Work.DATABASE, Work.STORE, Work.FETCH
_PUBLIC, _OWN, _READ = None, Action.MANAGE_OWN_ACCOUNT, Action.READ
_WRITE, _SESSIONS = Action.WRITE_SKILLS, Action.WRITE_SESSIONS
_REVIEW, _SETTINGS = Action.REVIEW_SKILLS, Action.MANAGE_SETTINGS
_SCRIPT_HEADER = "x-skillhall-script"  # of a form that a script submits
_Page: TypeAlias = tuple[str, str, Action | None, PageHandler]
_PageThatWaits: TypeAlias = tuple[str, str, Action | None, PageHandler, Work]
# Method, path, action that the user must be allowed to do, handler, and what the handler waits
# for if not only for the disk.
ROUTES: tuple[_Page | _PageThatWaits, ...] = (
    ("GET", "/skills", _READ, list_pages.list_skills),
    ("GET", "/skills/recent", _WRITE, edit_pages.show_changes, _STORE),
    ("GET", "/skills/changes", _READ, list_pages.check_for_changes),
    ("POST", "/skills/views/save", _OWN, list_pages.save_view),
    ("POST", "/skills/views/delete", _OWN, list_pages.delete_view),
    ("GET", "/skills/export.csv", _READ, list_pages.export_csv),
    ("GET", "/skills/export.json", _READ, list_pages.export_json),
    ("GET", "/skills/selected/export", _READ, selection_pages.export_selected),
    ("GET", "/skills/selected/delete", _WRITE, selection_pages.confirm_delete_selected, _STORE),
    ("POST", "/skills/selected/delete", _WRITE, selection_pages.delete_selected, _STORE),
    ("GET", "/skills/add", _WRITE, edit_pages.show_new),
    ("POST", "/skills/add", _WRITE, edit_pages.add, _STORE),
    ("POST", "/skills/add/check", _WRITE, edit_pages.check),
    ("POST", "/skills/samples", _WRITE, import_pages.add_samples, _STORE),
    ("GET", "/skills/import", _WRITE, import_pages.show_form),
    ("POST", "/skills/import/files", _WRITE, import_pages.review_files, _STORE),
    ("POST", "/skills/import/source", _WRITE, import_pages.review_source, _FETCH),
    ("POST", "/skills/import/folder", _WRITE, import_pages.review_folder, _STORE),
    ("GET", "/skills/import/{review}", _WRITE, import_pages.show_review, _STORE),
    ("POST", "/skills/import/{review}", _WRITE, import_pages.confirm, _STORE),
    ("GET", "/policy", _READ, policy_pages.show_policies),
    ("GET", "/skill/{id}", _READ, skill_pages.show_skill),
    ("GET", "/skill/{id}/peek", _READ, skill_pages.peek),
    ("GET", "/skill/{id}/files", _READ, file_pages.list_files, _STORE),
    ("GET", "/skill/{id}/edit-file", _WRITE, file_pages.show_editor, _STORE),
    ("POST", "/skill/{id}/edit-file", _WRITE, file_pages.save, _STORE),
    ("POST", "/skill/{id}/edit-file/check", _WRITE, file_pages.check, _STORE),
    ("POST", "/skill/{id}/delete-file", _WRITE, file_pages.delete, _STORE),
    ("POST", "/skill/{id}/upload", _WRITE, file_pages.upload, _STORE),
    ("GET", "/skill/{id}/files/{path:path}", _READ, skill_pages.show_file),
    ("GET", "/skill/{id}/edit", _WRITE, edit_pages.show_edit, _STORE),
    ("POST", "/skill/{id}/edit", _WRITE, edit_pages.edit, _STORE),
    ("POST", "/skill/{id}/edit/check", _WRITE, edit_pages.check, _STORE),
    ("GET", "/skill/{id}/delete", _WRITE, edit_pages.confirm_delete, _STORE),
    ("POST", "/skill/{id}/delete", _WRITE, edit_pages.delete, _STORE),
    ("POST", "/changes/{id}/undo", _WRITE, edit_pages.undo, _STORE),
    ("GET", "/skill/{id}/revoke", _REVIEW, trust_pages.show_revocation, _STORE),
    ("POST", "/skill/{id}/revoke", _REVIEW, trust_pages.revoke, _DATABASE),
    ("POST", "/skill/{id}/revoke/undo", _REVIEW, trust_pages.undo_revocation, _DATABASE),
    ("GET", "/reviews", _WRITE, version_pages.show_queue, _DATABASE),
    ("GET", "/skill/{id}/versions", _READ, version_pages.show_history, _DATABASE),
    ("GET", "/skill/{id}/versions/{number}", _READ, version_pages.show_version, _DATABASE),
    ("GET", version_pages.BIN_PATH, _WRITE, version_pages.show_bin, _DATABASE),
    ("POST", "/skills/deleted/{id}/restore", _WRITE, version_pages.restore_deleted, _STORE),
    ("GET", "/skills/deleted/{id}/purge", _WRITE, version_pages.confirm_purge, _DATABASE),
    ("POST", "/skills/deleted/{id}/purge", _WRITE, version_pages.purge, _DATABASE),
    ("POST", "/skill/{id}/versions/{number}/restore", _WRITE, version_pages.restore, _STORE),
    ("POST", "/skill/{id}/versions/{number}/submit", _WRITE, version_pages.submit, _DATABASE),
    ("POST", "/skill/{id}/versions/{number}/approve", _REVIEW, version_pages.approve, _DATABASE),
    ("POST", "/skill/{id}/versions/{number}/return", _REVIEW, version_pages.return_, _DATABASE),
    ("POST", "/skill/{id}/versions/{number}/yank", _REVIEW, version_pages.yank, _DATABASE),
    ("POST", "/skill/{id}/versions/{number}/use", _REVIEW, version_pages.use, _DATABASE),
    ("GET", "/sessions", _READ, session_pages.list_sessions, _DATABASE),
    ("POST", "/sessions", _SESSIONS, session_pages.create, _DATABASE),
    ("GET", "/sessions/choose", _SESSIONS, session_pages.show_choice, _DATABASE),
    ("POST", "/sessions/choose", _SESSIONS, session_pages.choose, _DATABASE),
    ("POST", "/sessions/open", _SESSIONS, session_pages.import_session, _DATABASE),
    ("GET", "/session/{id}", _READ, board_pages.show, _DATABASE),
    ("GET", "/session/{id}/settings", _SESSIONS, session_pages.show_settings, _DATABASE),
    ("POST", "/session/{id}/settings", _SESSIONS, session_pages.edit, _DATABASE),
    ("POST", "/session/{id}/copy", _SESSIONS, session_pages.duplicate, _DATABASE),
    ("GET", "/session/{id}/delete", _SESSIONS, session_pages.confirm_delete, _DATABASE),
    ("POST", "/session/{id}/delete", _SESSIONS, session_pages.delete, _DATABASE),
    ("GET", "/session/{id}/read", _READ, reading_pages.show, _DATABASE),
    ("GET", "/session/{id}/context", _READ, session_pages.show_context, _DATABASE),
    ("GET", "/session/{id}/add", _SESSIONS, block_pages.show_new, _DATABASE),
    ("POST", "/session/{id}/add", _SESSIONS, block_pages.add, _DATABASE),
    ("POST", "/session/{id}/add/check", _SESSIONS, block_pages.check, _DATABASE),
    ("GET", "/session/{id}/blocks/{block}/edit", _SESSIONS, block_pages.show_edit, _DATABASE),
    ("POST", "/session/{id}/blocks/{block}/edit", _SESSIONS, block_pages.edit, _DATABASE),
    ("POST", "/session/{id}/blocks/{block}/edit/check", _SESSIONS, block_pages.check, _DATABASE),
    ("POST", "/session/{id}/blocks/{block}/move", _SESSIONS, board_pages.move, _DATABASE),
    ("POST", "/session/{id}/blocks/{block}/delete", _SESSIONS, board_pages.delete, _DATABASE),
    ("POST", "/session/{id}/blocks/{block}/restore", _SESSIONS, board_pages.restore, _DATABASE),
    ("GET", "/session/{id}/import", _SESSIONS, session_imports.show_form, _DATABASE),
    ("POST", "/session/{id}/import/files", _SESSIONS, session_imports.import_files, _DATABASE),
    ("POST", "/session/{id}/import/source", _SESSIONS, session_imports.import_source, _FETCH),
    ("POST", "/session/{id}/import/folder", _SESSIONS, session_imports.import_folder, _DATABASE),
    (
        "POST",
        "/session/{id}/import/skills",
        _SESSIONS,
        session_imports.import_from_collection,
        _DATABASE,
    ),
    ("GET", "/session/{id}/import/{review}", _SESSIONS, session_imports.show_review, _DATABASE),
    ("POST", "/session/{id}/import/{review}", _SESSIONS, session_imports.confirm, _DATABASE),
    ("GET", "/session/{id}/saved-states", _READ, template_pages.show_saved_states, _DATABASE),
    # The former URL.
    ("GET", "/session/{id}/keep", _READ, template_pages.redirect_saved_states, _DATABASE),
    ("POST", "/session/{id}/snapshots", _SESSIONS, template_pages.save_snapshot, _DATABASE),
    (
        "POST",
        "/session/{id}/snapshots/{snapshot}/restore",
        _SESSIONS,
        template_pages.restore_snapshot,
        _DATABASE,
    ),
    (
        "POST",
        "/session/{id}/snapshots/{snapshot}/delete",
        _SESSIONS,
        template_pages.delete_snapshot,
        _DATABASE,
    ),
    ("POST", "/session/{id}/template", _SESSIONS, template_pages.save_template, _DATABASE),
    ("POST", "/session/{id}/apply", _SESSIONS, template_pages.apply_template, _DATABASE),
    ("GET", "/templates", _READ, template_pages.list_templates, _DATABASE),
    ("POST", "/template/{id}/edit", _SESSIONS, template_pages.edit_template, _DATABASE),
    ("POST", "/template/{id}/delete", _SESSIONS, template_pages.delete_template, _DATABASE),
    ("POST", "/template/{id}/start", _SESSIONS, template_pages.start_session, _DATABASE),
    ("GET", "/palette", _READ, palette_pages.show_palette, _DATABASE),
    ("GET", "/help", _READ, palette_pages.show_help),
    ("GET", "/shortcuts", _READ, palette_pages.show_shortcuts),
    ("GET", "/", _READ, lambda _: redirect("/skills")),
    ("GET", f"{STATIC_PREFIX}{{path:path}}", _PUBLIC, serve_asset),
    ("POST", "/session/{id}/try", Action.CHAT, playground_pages.try_session, _DATABASE),
    ("GET", "/playground", _READ, playground_pages.show),
    ("GET", "/playground/prompt", _READ, playground_pages.show_prompt),
    ("GET", "/playground/skills", _READ, playground_pages.complete_skill),
    ("GET", "/playground/eval-case", _WRITE, eval_case_pages.show_form),
    ("POST", "/playground/eval-case", _WRITE, eval_case_pages.save, _STORE),
    ("POST", "/playground/new", Action.CHAT, playground_pages.start_over),
    ("POST", "/playground/send", Action.CHAT, playground_pages.send_message),
    ("GET", "/sources", _READ, source_pages.show_sources),
    ("GET", "/sources/skipped", _READ, source_pages.show_skipped),
    ("POST", "/sources/refresh", Action.MANAGE_SOURCES, source_pages.refresh, _FETCH),
    ("POST", "/sources/follow", Action.MANAGE_SOURCES, source_pages.follow, _FETCH),
    ("POST", "/sources/unfollow", Action.MANAGE_SOURCES, source_pages.unfollow),
    ("GET", audit_pages.AUDIT_PATH, Action.READ_AUDIT, audit_pages.show_audit, _DATABASE),
    ("GET", "/inventory", Action.READ_INVENTORY, trust_pages.show_inventory, _DATABASE),
    ("GET", status_pages.STATUS_PATH, Action.READ_STATUS, status_pages.show_status, _DATABASE),
    ("GET", status_pages.SETTINGS_PATH, _SETTINGS, status_pages.show_settings),
    ("POST", status_pages.SETTINGS_PATH, _SETTINGS, status_pages.save_settings, _DATABASE),
    ("GET", "/inventory/{id}/revoke", Action.READ_INVENTORY, trust_pages.show_reported, _DATABASE),
    ("POST", "/inventory/{id}/revoke", _REVIEW, trust_pages.revoke_reported, _DATABASE),
    ("POST", "/inventory/{id}/revoke/undo", _REVIEW, trust_pages.undo_reported, _DATABASE),
    ("GET", "/checklist", _READ, trust_pages.show_checklist, _DATABASE),
    ("GET", "/skill/{id}/checklist", _READ, trust_pages.show_skill_checklist),
    ("POST", "/settings", _OWN, account_pages.save_preferences),
    ("GET", SIGN_IN_PATH, _PUBLIC, account_pages.show_sign_in),
    ("POST", SIGN_IN_PATH, _PUBLIC, account_pages.sign_in),
    ("GET", OIDC_PATH, _PUBLIC, oidc_pages.start, _FETCH),
    ("POST", OIDC_PATH, _PUBLIC, join_pages.connect, _FETCH),
    ("GET", OIDC_CALLBACK_PATH, _PUBLIC, oidc_pages.finish, _FETCH),
    ("GET", JOIN_PATH, _PUBLIC, join_pages.show_join),
    ("POST", JOIN_PATH, _PUBLIC, join_pages.join, _DATABASE),
    ("POST", "/sign-out", _OWN, account_pages.sign_out, _DATABASE),
    ("GET", account_pages.ACCOUNT_PATH, _OWN, account_pages.show_account, _DATABASE),
    ("POST", "/account/tokens", _OWN, account_pages.create_token, _DATABASE),
    ("POST", "/account/tokens/{id}/revoke", _OWN, account_pages.revoke_token, _DATABASE),
    ("POST", "/account/password", _OWN, account_pages.change_password, _DATABASE),
    ("GET", user_pages.USERS_PATH, Action.MANAGE_USERS, user_pages.show_users, _DATABASE),
    ("POST", user_pages.USERS_PATH, Action.MANAGE_USERS, user_pages.add_user, _DATABASE),
    ("POST", "/users/{name}/role", Action.MANAGE_USERS, user_pages.set_role, _DATABASE),
    ("POST", "/users/{name}/disable", Action.MANAGE_USERS, user_pages.disable, _DATABASE),
    ("POST", "/users/{name}/enable", Action.MANAGE_USERS, user_pages.enable, _DATABASE),
    ("POST", "/users/{name}/link", Action.MANAGE_USERS, user_pages.create_link, _DATABASE),
    ("GET", "/users/{name}/remove", Action.MANAGE_USERS, user_pages.confirm_removal, _DATABASE),
    ("POST", "/users/{name}/remove", Action.MANAGE_USERS, user_pages.remove, _DATABASE),
    ("GET", token_pages.TOKENS_PATH, Action.MANAGE_TOKENS, token_pages.show_tokens, _DATABASE),
    ("POST", "/tokens/{id}/revoke", Action.MANAGE_TOKENS, token_pages.revoke, _DATABASE),
    ("POST", "/account/sign-ins/{id}/end", _OWN, account_pages.end_sign_in, _DATABASE),
)


def build_web_router(site: Site) -> APIRouter:
    """Return the router of all pages; they are not part of the OpenAPI document."""
    return APIRouter(routes=[_build_route(site, *route) for route in ROUTES])


def _build_route(  # noqa: PLR0913, PLR0917 - the columns of the table
    site: Site,
    method: str,
    path: str,
    action: Action | None,
    handler: PageHandler,
    work: Work = Work.DISK,
) -> Route:
    """Return a route to a handler, which runs in a worker thread."""
    label, workers = path.replace(":path}", "}"), site.pools[work]

    @needs(action)
    async def respond(request: Request) -> Response:
        request.scope[ROUTE_KEY] = label  # for metrics
        request.scope[SITE_KEY] = site
        page_request = PageRequest(request.scope, request.receive)
        try:
            check_action(request.scope, action)
            if method == "POST":
                await page_request.read_form()
            response = await workers.run_for(
                client_id(request.scope), partial(handler, page_request)
            )
        except SkillhallError as error:
            return render_error(page_request, error)
        except OSError:  # its message may name a path of the server
            failure = HttpError("storage_unavailable", "the server cannot access its storage")
            return render_error(page_request, failure)
        if response.status_code == HTTPStatus.SEE_OTHER and _SCRIPT_HEADER in request.headers:
            # A script would follow the redirect and so use up the notice for the next page.
            response.status_code = HTTPStatus.OK
        return response

    return Route(path, respond, methods=[method], include_in_schema=False)
