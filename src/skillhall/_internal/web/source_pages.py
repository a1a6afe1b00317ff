"""Pages for sources."""

from typing import NamedTuple, Self
from urllib.parse import urlencode

from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.policy.skipped_items import SkippedItem
from skillhall._internal.prompt_server.prompt_model import SourceSelector, SourceStatus
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall._internal.web.rendering import describe_error, render
from skillhall._internal.web.skills.import_pages import DEFAULT_FOLDER
from skillhall.errors import FollowingOff, without_credentials

_MAX_QUERY_LENGTH = 1500  # characters that fit into the notice cookie
_MAX_SKIPPED_ROWS = 500  # listed per source


class SourceRow(NamedTuple):
    """Source and its status."""

    status: SourceStatus
    name: str
    folder: str
    branch: str

    @classmethod
    def from_status(cls, status: SourceStatus) -> Self:
        """Return the row of a source."""
        if status.followed is None:
            return cls(status, status.source, "", "")
        repo, folder, branch = status.followed
        return cls(status, without_credentials(repo), folder, branch)

    @property
    def anchor(self) -> str:
        """Fragment of this source on the page of skipped entries."""
        return _skipped_anchor(self.status)


class SkippedSection(NamedTuple):
    """Skipped entries of one source."""

    anchor: str
    name: str  # "" for the skills of this server
    commit: str
    rows: tuple[SkippedItem, ...]  # at most _MAX_SKIPPED_ROWS
    total: int


def show_sources(request: PageRequest) -> Response:
    """Show the status of every source."""
    snapshot, prompts = request.collection.snapshot(), request.site.settings.prompts
    service, sources = request.site.prompt_service, ("user", "system", "repository")
    list_error, selector = service.follow_error, _read_selector(request)
    rows = [SourceRow.from_status(status) for status in service.status()]
    if prompts.repo and rows:  # the repository of the settings is the first source
        rows[0] = rows[0]._replace(folder=prompts.path, branch=prompts.branch)
    return render(
        request,
        "sources.html",
        rows=rows,
        has_repository=bool(prompts.repo),
        has_followed=any(row.status.followed for row in rows),
        counts=[(source, len(snapshot.ids_of_source(source))) for source in sources],
        skipped_count=len(snapshot.skipped),
        can_scan=request.site.settings.server.folder_scan,
        folder=DEFAULT_FOLDER,
        submitted=selector._replace(repo=without_credentials(selector.repo)),
        # Other servers share the database but not the list of repositories.
        is_shared=isinstance(list_error, FollowingOff),
        list_error=describe_error(request, list_error) if list_error else None,
    )


def show_skipped(request: PageRequest) -> Response:
    """Show the skipped entries of every source."""
    own = request.collection.snapshot().skipped
    sections = [SkippedSection("own", "", "", own[:_MAX_SKIPPED_ROWS], len(own))]
    for status in request.site.prompt_service.status():
        rows, total = status.skipped[:_MAX_SKIPPED_ROWS], len(status.skipped)
        anchor = _skipped_anchor(status)
        sections.append(SkippedSection(anchor, status.source, status.commit, rows, total))
    shown = [section for section in sections if section.total]
    return render(request, "skipped.html", sections=shown)


@on_error(show_sources)
def refresh(request: PageRequest) -> Response:
    """Fetch every source now."""
    snapshot = request.site.prompt_service.refresh()
    request.site.prompt_service.refresh_followed()
    followed = [row for row in request.site.prompt_service.status() if row.followed is not None]
    for stale in (snapshot.stale, *(row.stale for row in followed)):
        if stale is not None:
            raise HttpError("upstream_error", stale.reason)
    names = [snapshot.source, *(row.source for row in followed)]
    return request.redirect("/sources", "refreshed", request.join_names(names))


@on_error(show_sources, "follow")
def follow(request: PageRequest) -> Response:
    """Add a repository, whose skills are listed from then on."""
    added = request.site.prompt_service.follow(_read_selector(request), actor=request.actor)
    return request.redirect("/sources", "added", added.source)


@on_error(show_sources)
def unfollow(request: PageRequest) -> Response:
    """Remove a repository and its skills."""
    service, key = request.site.prompt_service, request.field("key")
    removed = service.unfollow(key, actor=request.actor)
    name, undo_query = without_credentials(removed.repo), f"?{urlencode(removed._asdict())}"
    # A URL with credentials must not be stored in the notice cookie.
    can_undo = name == removed.repo and len(undo_query) <= _MAX_QUERY_LENGTH
    return request.redirect("/sources", "unfollowed", name, undo_query if can_undo else "")


def _skipped_anchor(status: SourceStatus) -> str:
    """Return the anchor of a source; it stays the same if other sources change."""
    return f"of-{sha256_hex(f'{status.role} {status.source}'.encode())[:12]}"


def _read_selector(request: PageRequest) -> SourceSelector:
    """Return the repository in the form, or in the query of an undo URL."""
    query, names = request.query_params, ("repo", "path", "branch")
    repo, path, branch = (request.field(name) or query.get(name, "") for name in names)
    return SourceSelector(repo, path, branch)
