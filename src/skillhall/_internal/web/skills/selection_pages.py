"""Pages about the skills that are selected in the list: export and deletion."""

from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall._internal.web.rendering import render

MAX_SELECTED = 1_000  # skills


def export_selected(request: PageRequest) -> Response:
    """Return the files of the selected skills as a zip file."""
    data = request.collection.archive_all(read_selected_ids(request.query_params.getlist("skill")))
    disposition = {"content-disposition": 'attachment; filename="skills.zip"'}
    return Response(data, 200, disposition, "application/zip")


def confirm_delete_selected(request: PageRequest) -> Response:
    """Ask for confirmation before the selected skills are deleted."""
    is_form = request.method == "POST"
    ids = read_selected_ids((request.fields if is_form else request.query_params).getlist("skill"))
    collection, snapshot = request.collection, request.collection.snapshot()
    user_ids = [one for one in ids if one in snapshot.skills and collection.is_writable(one)]
    changes = collection.changes(request.actor)
    return render(
        request,
        "delete_selected.html",
        request.translations("delete_selected.title", count=len(user_ids)),
        ids=user_ids,
        unchanged=[one for one in ids if one not in user_ids],
        can_undo=all(map(changes.can_undo, user_ids)),
    )


@on_error(confirm_delete_selected)
def delete_selected(request: PageRequest) -> Response:
    """Delete the selected skills."""
    ids = read_selected_ids(request.fields.getlist("skill"))
    change = request.collection.delete_all(ids, actor=request.actor)
    return request.redirect("/skills", "deleted", request.join_names(ids), change)


def read_selected_ids(values: list[str]) -> list[str]:
    """Return the selected ids. Raises: HttpError if there are none, or too many."""
    ids = [*dict.fromkeys(values)]
    if not ids:
        raise HttpError("invalid_argument", "no skill is selected")
    if len(ids) > MAX_SELECTED:
        raise HttpError("invalid_argument", f"select at most {MAX_SELECTED:,} skills")
    return ids
