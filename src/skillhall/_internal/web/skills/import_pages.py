"""Pages that import skills, with a review before anything is saved."""

from collections.abc import Iterable
from typing import NamedTuple

from starlette.responses import Response

from skillhall._internal.policy.access.roles import Action
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill_store.pending_imports import (
    ImportCandidate,
    ImportStatus,
    PendingImport,
)
from skillhall._internal.skill_store.shipped_skills import read_sample_skills
from skillhall._internal.web.page_request import PageRequest, on_error, redirect
from skillhall._internal.web.rendering import form_status, render
from skillhall._internal.web.skills.list_pages import list_skills
from skillhall._internal.wiring.sources import OpenedSource, read_upload
from skillhall.errors import SkillhallError, without_credentials

DEFAULT_FOLDER = "~/.claude/skills"
_GROUPS: tuple[ImportStatus, ...] = ("new", "replaces", "taken", "refused", "same")


class CandidateGroup(NamedTuple):
    """Candidates that an import would treat alike."""

    status: ImportStatus
    candidates: tuple[ImportCandidate, ...]

    @property
    def can_import(self) -> bool:
        """Whether they can be selected."""
        return any(row.can_import for row in self.candidates)


def show_form(request: PageRequest) -> Response:
    """Show the import forms."""
    return render(
        request,
        "import.html",
        status=form_status(request.error),
        source=request.field("source"),
        folder=request.field("folder") or DEFAULT_FOLDER,
        can_scan=request.site.settings.server.folder_scan,
    )


@on_error(show_form, "files")
def review_files(request: PageRequest) -> Response:
    """Review uploaded files."""
    files = request.files
    name = files[0][0].partition("/")[0] if files else ""
    return _start_review(request, name, read_upload(files))


@on_error(show_form, "source")
def review_source(request: PageRequest) -> Response:
    """Review a repository or URL."""
    text = request.field("source").strip()
    opened = request.collection.open_remote(text, allow_tokens=request.may(Action.USE_GIT_TOKENS))
    return _start_review(request, without_credentials(text), opened.bundles, opened)


@on_error(show_form, "folder")
def review_folder(request: PageRequest) -> Response:
    """Review a folder on the server."""
    text = request.field("folder").strip() or DEFAULT_FOLDER
    opened = request.collection.open_folder(text)
    return _start_review(request, text, opened.bundles, opened)


def _start_review(
    request: PageRequest,
    source: str,
    bundles: Iterable[Bundle],
    opened: OpenedSource | None = None,
) -> Response:
    rules = request.collection.load_rules(None if opened is None else opened.reference)
    commit = "" if opened is None else opened.commit
    pending = request.site.pending_imports.add(source, bundles, rules, commit)
    return redirect(f"/skills/import/{pending.id}")


def show_review(request: PageRequest) -> Response:
    """Show the candidates of a pending import. Those that replace a skill are not selected."""
    pending = request.site.pending_imports.find(request.path_params["review"])
    chosen = frozenset(row.key for row in pending.candidates if row.status == "new")
    return _render_review(request, pending, chosen)


def confirm(request: PageRequest) -> Response:
    """Import the selected candidates, unless they have changed since they were shown."""
    imports, import_id = request.site.pending_imports, request.path_params["review"]
    keys = [row.key for row in imports.find(import_id).candidates]
    ids = {key: skill_id for key in keys if (skill_id := request.field(f"id-{key}").strip())}
    pending = imports.find(import_id, ids)
    chosen = frozenset(request.fields.getlist("chosen"))
    status, _, amount = request.field("select").partition(":")
    if status:  # all or none of a group, in a browser without scripts
        group = {row.key for row in pending.candidates if row.status == status}
        chosen = chosen | group if amount == "all" else chosen - group
        return _render_review(request, pending, chosen)
    selected = [row for row in pending.candidates if row.key in chosen]
    # Another id, or a change on the server, may replace a skill that was not shown.
    is_as_shown = all(
        row.can_import and request.field(f"replaces-{row.key}") == row.replaced_digest
        for row in selected
    )
    if not selected or not is_as_shown:
        return _render_review(request, pending, chosen, status=422)
    try:
        report, change = imports.confirm(pending, selected, request.actor)
    except SkillhallError as error:
        request.error = error
        return _render_review(request, pending, chosen, status=form_status(error))
    names = request.join_names(skill.id for skill in report.imported)
    if request.collection.is_reviewed:
        return request.redirect("/reviews", "drafted", names, change)
    return request.redirect("/skills", "imported", names, change)


def _render_review(
    request: PageRequest, pending: PendingImport, chosen: frozenset[str], *, status: int = 200
) -> Response:
    groups = (
        CandidateGroup(status, tuple(row for row in pending.candidates if row.status == status))
        for status in _GROUPS
    )
    return render(
        request,
        "review.html",
        status=status,
        pending_import=pending,
        groups=[group for group in groups if group.candidates],
        chosen=chosen,
        can_import=any(row.can_import for row in pending.candidates),
    )


@on_error(list_skills)
def add_samples(request: PageRequest) -> Response:
    """Add the sample skills whose ids are free."""
    collection = request.collection
    present = collection.snapshot().skills
    samples = [bundle for bundle in read_sample_skills() if bundle.folder not in present]
    if not samples:
        return redirect("/skills")
    rules = collection.load_rules()
    report, change = collection.changes(request.actor).import_(samples, rules=rules)
    ids = request.join_names(skill.id for skill in report.imported)
    notice = "drafted" if collection.is_reviewed else "imported"
    return request.redirect("/skills", notice, ids, change)
