"""Pages that add, edit and delete user skills and undo changes."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from skillhall._internal.skill.autofix import autofix
from skillhall._internal.skill.frontmatter_locator import normalize_newlines
from skillhall._internal.skill.lossless_editor import (
    FORM_FIELDS,
    SkillText,
    edit_skill_md,
    parse_form_fields,
    parse_skill_text,
)
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.draft import SkillDraft, draft_skill_md, fix_text
from skillhall._internal.skill_store.versions.version_diff import DiffLine, diff_texts
from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall._internal.web.rendering import form_status, render
from skillhall.errors import Conflict, SkillhallError, StaleVersionError


class EditConflict(NamedTuple):
    """Current and submitted text of a skill or block changed by someone else."""

    current_text: str
    submitted_text: str
    lines: tuple[DiffLine, ...]


def show_new(request: PageRequest) -> Response:
    """Show an empty form."""
    return _render_form(request, SkillText("", "", "", tuple((key, "") for key in FORM_FIELDS)))


def show_edit(request: PageRequest) -> Response:
    """Show the form with the text of a skill."""
    skill_id = request.path_params["id"]
    request.collection.check_writable(skill_id)
    data, digest = request.collection.read_working_copy(skill_id)
    text = parse_skill_text(data)._replace(fields=tuple(parse_form_fields(data).items()))
    draft = _draft_edit(request.collection, skill_id, text)
    return _render_form(request, text, digest, draft=draft)


def check(request: PageRequest) -> Response:
    """Show the submitted form with checks, a preview and any error; save nothing."""
    skill_id, text, collection = (
        request.path_params.get("id"),
        _read_form(request),
        request.collection,
    )
    fix = request.field("fix")
    if skill_id is None:
        name = request.field("id").strip() or text.name
        has_draft = name.strip() or request.error
        if fix:
            text = fix_text(text, fix, collection.draft(name, text).id or text.name)
        draft = collection.draft(name, text) if has_draft else None
        return _render_form(request, text, draft=draft)
    digest, conflict = request.field("digest"), None
    if isinstance(request.error, StaleVersionError):
        conflict = _compare_versions(collection, skill_id, text)
        # The form gets the current digest: saving again overwrites the current version.
        digest = request.error.digest
    else:
        collection.check_writable(skill_id)
    text = fix_text(text, fix, skill_id)
    draft = _draft_edit(collection, skill_id, text, is_repaired=_is_repaired(request))
    return _render_form(request, text, digest, draft=draft, conflict=conflict)


@on_error(check)
def add(request: PageRequest) -> Response:
    """Add a skill."""
    text = _read_form(request)
    skill_id = request.field("id").strip() or text.name
    skill = request.collection.changes(request.actor).add(skill_id, text)
    if request.collection.is_reviewed:
        return request.redirect(f"{_skill_url(skill.id)}/versions", "drafted", skill.id)
    return request.redirect(_skill_url(skill.id), "added", skill.id)


@on_error(check)
def edit(request: PageRequest) -> Response:
    """Edit a skill, unless it has been changed since the form was opened."""
    skill_id, digest = request.path_params["id"], request.field("digest")
    text, actor = _read_form(request), request.actor
    is_repaired = _is_repaired(request)
    edited = request.collection.edit(skill_id, text, digest, actor=actor, is_repaired=is_repaired)
    url = _skill_url(skill_id)
    if request.collection.is_reviewed:
        return request.redirect(f"{url}/versions", "drafted", skill_id, edited.change_id)
    return request.redirect(url, "edited", skill_id, edited.change_id)


def confirm_delete(request: PageRequest) -> Response:
    """Ask for confirmation before a skill is deleted."""
    skill_id, collection = request.path_params["id"], request.collection
    is_shadowed = request.query_params.get("shadowed") == "true"
    shadowed = collection.shadowed_bundle(skill_id) if is_shadowed else None
    if shadowed is None:
        collection.check_writable(skill_id)
    draft = collection.store.files(skill_id) if collection.is_reviewed else None
    return render(
        request,
        "delete.html",
        request.translations("delete.title", name=skill_id),
        id=skill_id,
        file_count=len((shadowed or draft or collection.bundle(skill_id)).files),
        is_shadowed=is_shadowed,
        can_undo=collection.changes(request.actor).can_undo(skill_id),
    )


def delete(request: PageRequest) -> Response:
    """Delete a skill."""
    skill_id = request.path_params["id"]
    is_shadowed = request.field("shadowed") == "true"
    change = request.collection.delete(skill_id, actor=request.actor, shadowed=is_shadowed)
    return request.redirect("/skills", "deleted", skill_id, change)


def show_changes(request: PageRequest) -> Response:
    """Show the last changes to user skills, which can be undone."""
    changes = request.collection.changes(request.actor).list_recent()
    return render(request, "recent.html", changes=changes)


def undo(request: PageRequest) -> Response:
    """Undo a change."""
    undone = request.collection.changes(request.actor).undo(request.path_params["id"])
    ids = [*undone.entries]
    exists = len(ids) == 1 and ids[0] in request.collection.snapshot().skills
    url = _skill_url(ids[0]) if exists else "/skills"
    return request.redirect(url, "undone", request.join_names(ids))


def _render_form(
    request: PageRequest,
    text: SkillText,
    digest: str = "",
    *,
    draft: SkillDraft | None = None,
    conflict: EditConflict | None = None,
) -> Response:
    skill_id, translations = request.path_params.get("id"), request.translations
    if skill_id is None:
        title = translations("skill_form.title_new")
        action, back_url = "/skills/add", "/skills"
    else:
        title = translations("skill_form.title_edit", name=skill_id)
        action, back_url = f"{_skill_url(skill_id)}/edit", _skill_url(skill_id)
    is_conflict = isinstance(request.error, StaleVersionError | Conflict)
    files_url = f"{_skill_url(skill_id)}/files" if skill_id else ""
    skill, agent_skills = draft.skill if draft else None, request.site.default_agent_skills
    return render(
        request,
        "skill_form.html",
        title,
        status=409 if is_conflict else form_status(request.error),
        action=action,
        back_url=back_url,
        id=request.field("id") if skill_id is None else skill_id,
        is_new=skill_id is None,
        text=text,
        digest=digest,
        draft=draft,
        listing=agent_skills.render_prompt_for_draft(skill) if skill else "",
        conflict=conflict,
        is_repaired=_is_repaired(request),
        changes=_find_changes(request, draft),
        body=request.site.markdown.render(text.body, files_url) if text.body.strip() else "",
    )


def _find_changes(request: PageRequest, draft: SkillDraft | None) -> Sequence[DiffLine]:
    """Return the lines of the SKILL.md that saving would change; none of a new skill."""
    skill_id = request.path_params.get("id")
    if skill_id is None or draft is None or not draft.data:
        return ()
    texts = (_read_skill_file(request.collection, skill_id), draft.data)
    return diff_texts(*(normalize_newlines(data.decode("utf-8", "replace")) for data in texts))


def _draft_edit(
    collection: Collection, skill_id: str, text: SkillText, *, is_repaired: bool = False
) -> SkillDraft:
    def write() -> bytes:
        data = _read_skill_file(collection, skill_id)
        return edit_skill_md(autofix(data, skill_id).data if is_repaired else data, text)

    return draft_skill_md(skill_id, write, present=collection.store.files(skill_id))


def _is_repaired(request: PageRequest) -> bool:
    """Whether the user asked for a repair of the YAML, now or before."""
    return request.field("fix") == "quoting" or request.field("repaired") == "true"


def _compare_versions(collection: Collection, skill_id: str, text: SkillText) -> EditConflict:
    data = _read_skill_file(collection, skill_id)
    current = normalize_newlines(data.decode("utf-8", "replace"))
    try:
        submitted = normalize_newlines(edit_skill_md(data, text).decode("utf-8", "replace"))
    except SkillhallError:
        submitted = text.body
    return EditConflict(current, submitted, diff_texts(current, submitted))


def _read_skill_file(collection: Collection, skill_id: str) -> bytes:
    return collection.read_working_copy(skill_id)[0]


def _read_form(request: PageRequest) -> SkillText:
    body = normalize_newlines(request.field("body"))
    fields = tuple((key, request.field(key)) for key in FORM_FIELDS if key in request.fields)
    return SkillText(request.field("name"), request.field("description"), body, fields)


def _skill_url(skill_id: str) -> str:
    return f"/skill/{quote(skill_id, safe='')}"
