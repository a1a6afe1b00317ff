"""The addresses of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from skillhall._internal.agents.collection_skills import CollectionSkills
from skillhall._internal.http.auth_middleware import SIGN_IN
from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.request import ROUTE
from skillhall._internal.http.response import Answer
from skillhall._internal.skill_store.pending_imports import Reviews
from skillhall._internal.web.assets import STATIC, assets
from skillhall._internal.web.playground.playground_pages import PLAYGROUND, PlaygroundPages
from skillhall._internal.web.rendering import redirect
from skillhall._internal.web.sessions.routes import session_pages
from skillhall._internal.web.site import Site
from skillhall._internal.web.skills.edit_pages import ShapingPages
from skillhall._internal.web.skills.import_pages import ImportPages
from skillhall._internal.web.skills.skill_pages import SkillPages
from skillhall._internal.web.source_pages import SourcePages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from starlette.requests import Request
    from starlette.responses import Response

    from skillhall._internal.http.credentials import Keys
    from skillhall._internal.http.thread_pool import Blocking
    from skillhall._internal.prompts.prompt_model import Counter
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill_store.collection import Collection
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Call
    from skillhall._internal.workspace.workspace import Door

    Respond: TypeAlias = Callable[[Request], Awaitable[Response]]

_FOREVER = (b"cache-control", b"public, max-age=31536000, immutable")
_REVALIDATED = (b"cache-control", b"no-cache")


def web_router(  # noqa: PLR0913, PLR0917 - the services of the pages
    collection: Collection,
    counter: Counter,
    settings: Settings,
    blocking: Blocking,
    keys: Keys,
    stopped: Callable[[], Awaitable[None]],
    workspace: Door | None = None,
) -> APIRouter:
    """Every page; the OpenAPI document is about programs, and names none of them.

    `stopped` ends when the server is about to stop.
    """
    reviews = Reviews(collection.changes, collection.system_ids)
    agent = CollectionSkills(collection)
    site = Site(collection, counter, settings, blocking, keys, reviews, agent, workspace)
    router = APIRouter()
    playground = PlaygroundPages(site, stopped)
    endpoints = [(*row[:2], site.endpoint(row[2])) for row in _pages(site, playground)]
    for method, path, respond in (*endpoints, ("POST", f"{PLAYGROUND}/say", playground.say)):
        # Not as the framework's own routes: it would look in each for what a document says of it.
        router.add_route(path, _counted(path, respond), methods=[method], include_in_schema=False)
    return router


def _counted(path: str, respond: Respond) -> Respond:
    """The same, under the name by which requests are counted."""

    async def counted(request: Request) -> Response:
        request.scope[ROUTE] = path.replace(":path}", "}")
        return await respond(request)

    return counted


def _pages(site: Site, playground: PlaygroundPages) -> tuple[tuple[str, str, Call], ...]:
    skills, shaping = SkillPages(site), ShapingPages(site)
    imports, sources = ImportPages(site), SourcePages(site)
    return (
        ("GET", "/", _home),
        ("GET", f"{STATIC}{{path:path}}", _static),
        ("GET", "/skills", skills.list_skills),
        ("GET", "/skills/news", skills.news),
        ("GET", "/skills/add", shaping.show_new),
        ("POST", "/skills/add", shaping.add),
        ("POST", "/skills/add/check", shaping.check_new),
        ("GET", "/skills/import", imports.show_ways),
        ("POST", "/skills/import/files", imports.from_files),
        ("POST", "/skills/import/address", imports.from_address),
        ("POST", "/skills/import/folder", imports.from_folder),
        ("GET", "/skills/import/{review}", imports.show_review),
        ("POST", "/skills/import/{review}", imports.take),
        ("GET", "/skill/{id}", skills.one_skill),
        ("GET", "/skill/{id}/files", skills.list_files),
        ("GET", "/skill/{id}/files/{path:path}", skills.one_file),
        ("GET", "/skill/{id}/edit", shaping.show_edit),
        ("POST", "/skill/{id}/edit", shaping.edit),
        ("POST", "/skill/{id}/edit/check", shaping.check_edit),
        ("GET", "/skill/{id}/delete", shaping.ask_delete),
        ("POST", "/skill/{id}/delete", shaping.delete),
        ("POST", "/changes/{id}/undo", shaping.undo),
        ("GET", PLAYGROUND, playground.show),
        ("GET", f"{PLAYGROUND}/prompt", playground.show_prompt),
        ("POST", f"{PLAYGROUND}/new", playground.forget),
        *session_pages(site),
        ("GET", "/sources", sources.show_sources),
        ("GET", "/sources/skipped", sources.show_skipped),
        ("POST", "/sources/refresh", sources.refresh),
        ("POST", "/sources/follow", sources.follow),
        ("POST", "/sources/unfollow", sources.unfollow),
        ("POST", "/settings", sources.choose),
        ("GET", SIGN_IN, sources.show_sign_in),
        ("POST", SIGN_IN, sources.sign_in),
        ("POST", "/sign-out", sources.sign_out),
    )


def _home(visit: Visit) -> Answer:  # noqa: ARG001 - a call's signature
    """The first page."""
    return redirect("/skills")


def _static(visit: Visit) -> Answer:
    """A file that pages load; under the address with its digest it never changes."""
    found = assets().get("/".join(visit.names[1:]))
    if found is None:
        raise Refused("not_found", "there is no such file")
    asked = f"{visit.path}?v={visit.query.get('v', '')}"
    caching = _FOREVER if asked == found.address else _REVALIDATED
    return Answer(200, ((b"content-type", found.kind), caching), (found.data,))
