"""Pages that import skills into a session, with a review if one is needed."""

from starlette.responses import Response

from skillhall._internal.policy.access.roles import Action
from skillhall._internal.web.page_request import PageRequest, on_error, redirect
from skillhall._internal.web.rendering import render
from skillhall._internal.web.skills.import_pages import DEFAULT_FOLDER
from skillhall._internal.web.skills.selection_pages import read_selected_ids
from skillhall._internal.wiring.sources import read_upload
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.importer import (
    ImportChoices,
    ImportConflict,
    ImportOptions,
    SkillImporter,
)
from skillhall._internal.workspace.skill_blocks import LOCAL_SOURCE, UPLOAD_SOURCE, Provenance
from skillhall._internal.workspace.validation import parse_zone

MAX_LISTED_SKILLS = 200  # of this server


def show_form(request: PageRequest) -> Response:
    """Show the import forms."""
    session = request.workspace.sessions.find(request.path_params["id"])
    text = request.query_params.get("q", "").strip()[:200]
    collection, listed = request.collection, request.collection.snapshot()
    ids = collection.search_ids(listed, text) if text else listed.ids
    cleared = {skill.id for skill in collection.clear(listed).clearance.cleared}
    chosen = [*dict.fromkeys(request.query_params.getlist("skill"))]  # before a search
    first = dict.fromkeys(skill_id for skill_id in chosen if skill_id in cleared)
    skills = [
        listed.skills[skill_id] for skill_id in dict.fromkeys([*first, *ids]) if skill_id in cleared
    ]
    return render(
        request,
        "session_import.html",
        session=session,
        skills=tuple(skills[:MAX_LISTED_SKILLS]),
        chosen=frozenset(chosen),
        is_truncated=len(skills) > MAX_LISTED_SKILLS,
        query=text,
        source=request.field("source"),
        folder=request.field("folder") or DEFAULT_FOLDER,
        can_scan=request.site.settings.server.folder_scan,
    )


@on_error(show_form, "files")
def import_files(request: PageRequest) -> Response:
    """Import uploaded files."""
    files, importer = request.files, _open_importer(request)
    if len(files) == 1 and "/" not in files[0][0]:
        return _import_or_review(request, importer.read_upload(files[0][1], files[0][0]))
    provenance = Provenance(UPLOAD_SOURCE, files[0][0].partition("/")[0] if files else "")
    return _import_or_review(request, importer.read_bundles(read_upload(files), provenance))


@on_error(show_form, "source")
def import_source(request: PageRequest) -> Response:
    """Import from a repository or URL."""
    text = request.field("source").strip()
    choices = _open_importer(request).read_source(
        text, allow_tokens=request.may(Action.USE_GIT_TOKENS)
    )
    return _import_or_review(request, choices)


@on_error(show_form, "folder")
def import_folder(request: PageRequest) -> Response:
    """Import from a folder on the server."""
    text = request.field("folder").strip()
    return _import_or_review(request, _open_importer(request).read_folder(text))


@on_error(show_form, "skills")
def import_from_collection(request: PageRequest) -> Response:
    """Import skills from this server's collection."""
    importer, candidates = _open_importer(request), []
    for skill_id in read_selected_ids(request.fields.getlist("skill")):
        provenance = Provenance(LOCAL_SOURCE, skill_id)
        bundle = request.collection.cleared_bundle(skill_id)
        choices = importer.read_cleared([bundle], provenance)
        candidates += [row._replace(local_path=skill_id) for row in choices.candidates]
    choices = ImportChoices(tuple(candidates), Provenance(LOCAL_SOURCE, "skillhall"))
    return _import_or_review(request, choices, is_explicit=True)


def _open_importer(request: PageRequest) -> SkillImporter:
    """Return the importer; the session is checked before anything is fetched or read."""
    request.workspace.sessions.find(request.path_params["id"])
    return request.workspace.importer


def _import_or_review(
    request: PageRequest, choices: ImportChoices, *, is_explicit: bool = False
) -> Response:
    """Import the candidates if they need no review, else start one.

    A review is needed if a candidate has findings, is rejected or already exists, or if there are
    several candidates and the user did not choose them (`is_explicit`).
    """
    session_id = request.path_params["id"]
    is_clean = not any(row.findings or row.reasons for row in choices.candidates)
    if (
        is_clean
        and (is_explicit or len(choices.candidates) == 1)
        and not request.workspace.importer.find_conflicts(session_id, choices)
    ):
        return _import(request, choices, ImportOptions())
    key = request.site.pending_session_imports.add(choices, choices.size)
    return redirect(f"/session/{session_id}/import/{key}")


def _import(request: PageRequest, choices: ImportChoices, options: ImportOptions) -> Response:
    session_id = request.path_params["id"]
    blocks = request.workspace.importer.import_choices(session_id, choices, options).blocks
    names = request.join_names(row.content.skill.name for row in blocks if row.content.skill)
    return request.redirect(f"/session/{session_id}", "imported", names)


def show_review(request: PageRequest) -> Response:
    """Show the candidates of a pending import."""
    workspace = request.workspace
    choices = request.site.pending_session_imports.find(request.path_params["review"])
    session = workspace.sessions.find(request.path_params["id"])
    amount = request.field("select").partition(":")[2]  # in a browser without scripts
    acceptable = [row.id for row in choices.candidates if not row.reasons]
    selected = request.fields.getlist("chosen") if request.method == "POST" else acceptable
    if amount:
        selected = acceptable if amount == "all" else []
    return render(
        request,
        "session_review.html",
        request.translations("session_import.choose_title"),
        session=session,
        import_id=request.path_params["review"],
        choices=choices,
        existing_names=workspace.importer.find_conflicts(session.id, choices),
        chosen=frozenset(selected),
        on_conflict=request.field("on_conflict") or ImportConflict.REPLACE,
        zone=request.field("zone") or Zone.STABLE,
    )


@on_error(show_review)
def confirm(request: PageRequest) -> Response:
    """Import the selected candidates."""
    pending, import_id = request.site.pending_session_imports, request.path_params["review"]
    choices = pending.find(import_id)
    chosen = tuple(request.fields.getlist("chosen"))
    if not chosen or request.field("select"):
        return show_review(request)
    zone = parse_zone(request.field("zone")) if request.field("zone") else None
    on_conflict, refuse = request.field("on_conflict"), ImportConflict.REFUSE
    conflict = ImportConflict(on_conflict) if on_conflict in [*ImportConflict] else refuse
    response = _import(request, choices, ImportOptions(zone, conflict, chosen))
    pending.drop(import_id)
    return response
