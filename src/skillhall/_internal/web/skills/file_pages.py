"""Pages that edit, add, upload and delete the files of user skills."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter_locator import (
    FrontmatterBlock,
    find_frontmatter,
    is_skill_md,
    normalize_newlines,
)
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill_store.draft import draft_files
from skillhall._internal.skill_store.file_changes import (
    NewFile,
    delete_file,
    rename_file,
    write_files,
)
from skillhall._internal.skill_store.input_checks import read_files
from skillhall._internal.skill_store.versions.version_diff import diff_texts
from skillhall._internal.web.page_request import on_error
from skillhall._internal.web.rendering import form_status, render
from skillhall._internal.web.skills.skill_pages import MAX_TEXT_BYTES
from skillhall.errors import SkillFileNotFound, StaleVersionError

if TYPE_CHECKING:
    from starlette.responses import Response

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.draft import SkillDraft
    from skillhall._internal.skill_store.file_changes import ChangeFiles
    from skillhall._internal.skill_store.store import SkillFiles
    from skillhall._internal.skill_store.versions.version_diff import DiffLine
    from skillhall._internal.web.page_request import PageRequest

_BOM = b"\xef\xbb\xbf"


class FileForm(NamedTuple):
    """The form of one file; `path` is "" for a new file."""

    path: str
    new_path: str
    text: str | None  # None if the file is not text
    is_executable: bool


def show_editor(request: PageRequest) -> Response:
    """Show the form for one file, or for a new one."""
    bundle, path = _read_skill(request), request.query_params.get("path", "")
    if not path:
        return _render_form(request, bundle, FileForm("", "", "", is_executable=False))
    file = bundle.get_file(RelativePath.parse(path))
    text = _decode(file.read())
    return _render_form(request, bundle, FileForm(path, path, text, file.executable))


def check(request: PageRequest) -> Response:
    """Show the submitted form with its findings and any error; save nothing."""
    bundle, form = _read_skill(request), _read_form(request)
    draft = draft_files(_get_id(request), lambda: _change(form)(read_files(bundle)))
    return _render_form(request, bundle, form, draft)


@on_error(check)
def save(request: PageRequest) -> Response:
    """Save one file, unless the skill has been changed since the form was opened."""
    form = _read_form(request)
    return _change_files(request, _change(form), "edited", form.new_path.strip())


def list_files(request: PageRequest) -> Response:
    """Show the files of a skill, with forms to change them if it is a user skill."""
    skill_id, collection = _get_id(request), request.collection
    is_editable = collection.find(skill_id).source == "user"
    files = tuple(collection.bundle(skill_id).files.values())
    digest = collection.read_working_files(skill_id).digest() if is_editable else ""
    return render(
        request,
        "files.html",
        f"{request.translations('files.title')} · {skill_id}",
        id=skill_id,
        files=files,
        is_editable=is_editable,
        digest=digest,
    )


@on_error(list_files)
def upload(request: PageRequest) -> Response:
    """Add uploaded files in a folder of the skill; existing files are refused."""
    folder = request.field("folder").strip().strip("/")
    new = [NewFile(f"{folder}/{name}" if folder else name, data) for name, data in request.files]
    change = partial(write_files, new_files=new, replace=False)
    return _change_files(request, change, "uploaded", request.join_names(one.path for one in new))


@on_error(list_files)
def delete(request: PageRequest) -> Response:
    """Delete one file."""
    path = request.field("path")
    return _change_files(request, partial(delete_file, path=path), "deleted", path)


def _change_files(request: PageRequest, change: ChangeFiles, notice: str, subject: str) -> Response:
    skill_id = _get_id(request)
    changed = request.collection.change_files(
        skill_id, change, request.field("digest"), actor=request.actor
    )
    url = f"/skill/{quote(skill_id, safe='')}"
    if request.collection.is_reviewed:
        return request.redirect(f"{url}/versions", "drafted", skill_id, changed.change_id)
    return request.redirect(f"{url}/files", notice, subject, changed.change_id)


def _change(form: FileForm) -> ChangeFiles:
    """Return the change that a form describes."""

    def change(files: SkillFiles) -> SkillFiles:
        if not form.path:
            data = (form.text or "").encode("utf-8", "surrogateescape")
            new = NewFile(form.new_path, data, form.is_executable)
            return write_files(files, [new], replace=False)
        if form.path not in files:
            raise SkillFileNotFound(form.path)
        present = files[form.path][0]
        data = present if form.text is None else _encode(form.text, present)
        new = NewFile(form.path, data, form.is_executable)
        files = write_files(files, [new])
        is_renamed = form.new_path.strip() != form.path
        return rename_file(files, form.path, form.new_path) if is_renamed else files

    return change


def _render_form(
    request: PageRequest, bundle: Bundle, form: FileForm, draft: SkillDraft | None = None
) -> Response:
    skill_id, is_stale = _get_id(request), isinstance(request.error, StaleVersionError)
    findings = [one for one in draft.findings if one.finding.path == form.path] if draft else []
    changes = () if form.text is None else _diff_with_current(bundle, form)
    digest = request.field("digest") or bundle.digest()
    markdown, files_url = _read_markdown(form), f"/skill/{quote(skill_id, safe='')}/files"
    return render(
        request,
        "file_form.html",
        form.path or request.translations("file_form.title_new"),
        status=409 if is_stale else form_status(request.error),
        id=skill_id,
        form=form,
        is_skill_md=is_skill_md(form.path),
        # After a conflict, saving again overwrites the current version.
        digest=bundle.digest() if is_stale else digest,
        draft=draft,
        findings=findings,
        tokens=estimate_tokens(form.text or ""),
        changes=changes,
        is_conflict=is_stale,
        sections=request.site.markdown.outline(markdown),
        preview=request.site.markdown.render(markdown, files_url) if markdown.strip() else "",
    )


def _read_markdown(form: FileForm) -> str:
    """Return the text of a Markdown file without its frontmatter; "" for other files."""
    text = form.text or ""
    if not form.new_path.lower().endswith((".md", ".markdown")):
        return ""
    block = find_frontmatter(text.encode("utf-8", "replace"))
    if isinstance(block, FrontmatterBlock):
        head = text.encode("utf-8", "replace")[: block.body_start].count(b"\n")
        text = "\n" * head + text.split("\n", head)[-1]  # the numbers of the lines stay the same
    return text


def _diff_with_current(bundle: Bundle, form: FileForm) -> tuple[DiffLine, ...]:
    file = bundle.files.get(form.path)
    current = "" if file is None else _decode(file.read()) or ""
    return diff_texts(current, form.text or "")


def _read_skill(request: PageRequest) -> Bundle:
    return request.collection.read_working_files(_get_id(request))


def _read_form(request: PageRequest) -> FileForm:
    text = normalize_newlines(request.field("text")) if "text" in request.fields else None
    is_executable = request.field("executable") == "on"
    path = request.field("path")
    return FileForm(path, request.field("new_path") or path, text, is_executable)


def _decode(data: bytes) -> str | None:
    """Return the text of a file; None if it is not text or too large for the form."""
    if len(data) > MAX_TEXT_BYTES or b"\0" in data:
        return None
    try:
        return normalize_newlines(data.removeprefix(_BOM).decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _encode(text: str, present: bytes) -> bytes:
    """Return the text with the line ends and the byte order mark of the present file."""
    data = text.encode("utf-8", "surrogatepass")
    if b"\r\n" in present:
        data = data.replace(b"\n", b"\r\n")
    return _BOM + data if present.startswith(_BOM) else data


def _get_id(request: PageRequest) -> str:
    skill_id: str = request.path_params["id"]
    return skill_id
