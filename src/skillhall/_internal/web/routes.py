"""Routes of the web pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from skillhall._internal.agents.collection_skills import CollectionSkills
from skillhall._internal.http.auth_middleware import SIGN_IN_PATH
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import ROUTE_KEY
from skillhall._internal.http.response import ByteResponse
from skillhall._internal.skill_store.pending_imports import PendingImports
from skillhall._internal.web.assets import STATIC_PREFIX, load_assets
from skillhall._internal.web.playground.playground_pages import PLAYGROUND_PATH, PlaygroundPages
from skillhall._internal.web.rendering import redirect
from skillhall._internal.web.sessions.routes import session_page_routes
from skillhall._internal.web.site import Site
from skillhall._internal.web.skills.edit_pages import SkillEditPages
from skillhall._internal.web.skills.import_pages import ImportPages
from skillhall._internal.web.skills.skill_pages import SkillPages
from skillhall._internal.web.source_pages import SourcePages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from starlette.requests import Request
    from starlette.responses import Response

    from skillhall._internal.http.credentials import Credentials
    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.prompts.prompt_model import PromptServiceProtocol
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill_store.collection import Collection
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import PageHandler
    from skillhall._internal.workspace.workspace import LazyWorkspace

    RouteEndpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_IMMUTABLE_HEADER = (b"cache-control", b"public, max-age=31536000, immutable")
_NO_CACHE_HEADER = (b"cache-control", b"no-cache")


def build_web_router(  # noqa: PLR0913, PLR0917 - services of the pages
    collection: Collection,
    prompt_service: PromptServiceProtocol,
    settings: Settings,
    workers: WorkerPool,
    credentials: Credentials,
    wait_for_shutdown: Callable[[], Awaitable[None]],
    workspace: LazyWorkspace | None = None,
) -> APIRouter:
    """Return the router of all pages; they are not part of the OpenAPI document.

    `wait_for_shutdown` returns when the server starts to shut down.
    """
    pending = PendingImports(collection.changes, collection.system_ids)
    agent = CollectionSkills(collection)
    site = Site(
        collection, prompt_service, settings, workers, credentials, pending, agent, workspace
    )
    router = APIRouter()
    playground = PlaygroundPages(site, wait_for_shutdown)
    endpoints: list[tuple[str, str, RouteEndpoint]] = [
        (method, path, site.make_endpoint(handler))
        for method, path, handler in _page_routes(site, playground)
    ]
    endpoints.append(("POST", f"{PLAYGROUND_PATH}/send", playground.send_message))
    for method, path, endpoint in endpoints:
        # Starlette routes: FastAPI would analyze the signature of each for OpenAPI.
        labeled = _with_route_label(path, endpoint)
        router.add_route(path, labeled, methods=[method], include_in_schema=False)
    return router


def _with_route_label(path: str, endpoint: RouteEndpoint) -> RouteEndpoint:
    """Set the label under which metrics count requests of this endpoint."""

    async def respond(request: Request) -> Response:
        request.scope[ROUTE_KEY] = path.replace(":path}", "}")
        return await endpoint(request)

    return respond


def _page_routes(
    site: Site, playground: PlaygroundPages
) -> tuple[tuple[str, str, PageHandler], ...]:
    skills, edits = SkillPages(site), SkillEditPages(site)
    imports, sources = ImportPages(site), SourcePages(site)
    return (
        ("GET", "/", _redirect_home),
        ("GET", f"{STATIC_PREFIX}{{path:path}}", _serve_asset),
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
        ("GET", PLAYGROUND_PATH, playground.show),
        ("GET", f"{PLAYGROUND_PATH}/prompt", playground.show_prompt),
        ("POST", f"{PLAYGROUND_PATH}/new", playground.start_over),
        *session_page_routes(site),
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


def _redirect_home(request: PageRequest) -> ByteResponse:  # noqa: ARG001 - a page handler
    return redirect("/skills")


def _serve_asset(request: PageRequest) -> ByteResponse:
    asset = load_assets().get("/".join(request.path_parts[1:]))
    if asset is None:
        raise HttpError("not_found", "file not found")
    url = f"{request.path}?v={request.query.get('v', '')}"
    caching = _IMMUTABLE_HEADER if url == asset.url else _NO_CACHE_HEADER
    return ByteResponse(200, ((b"content-type", asset.content_type), caching), (asset.data,))
