"""The page with the audit log."""

from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.web.page_request import PageRequest
from skillhall._internal.web.rendering import form_status, render
from skillhall.errors import FieldRefused

AUDIT_PATH = "/audit"
_PAGE_SIZE = 100
_SHORT_DIGEST = 8  # characters
# Filters of the form. The last two have choices.
_FIELDS = ("actor", "action", "subject", "since", "outcome", "via")
_OUTCOMES = ("done", "refused")
_SURFACES = ("web", "rest", "mcp", "cli", "webhook", "system")


class AuditPageRow(NamedTuple):
    """A row of the audit log, for display."""

    id: int
    at: str
    time: str  # without fractions of seconds
    actor: str
    via: str
    address: str
    action: str
    subject: str
    outcome: str
    digests: tuple[str, ...]  # before and after, shortened, without equal ones
    detail: str
    is_sealed: bool


def show_audit(request: PageRequest) -> Response:
    """Show the newest rows that match the filters."""
    audit = request.site.audit
    if audit is None:
        raise HttpError("not_found", "this server has no audit log")
    query = request.query_params
    values = {name: query.get(name, "").strip() for name in _FIELDS}
    chosen = {name: value for name, value in values.items() if value}
    before = query.get("before", "")
    rows: list[dict[str, Any]] = []
    try:
        parsed = audit.log.parse_filter(datetime.now(UTC), **chosen)
        last = int(before[:18]) if before.isascii() and before.isdigit() else 0
        rows = audit.log.newest(parsed, before=last, limit=_PAGE_SIZE + 1)
    except FieldRefused as error:
        request.error = error
    shown = rows[:_PAGE_SIZE]
    older = urlencode({**chosen, "before": shown[-1]["id"]}) if len(rows) > _PAGE_SIZE else ""
    return render(
        request,
        "audit.html",
        status=form_status(request.error),
        rows=[*map(_to_page_row, shown)],
        values=values,
        is_filtered=bool(chosen),
        outcomes=_OUTCOMES,
        surfaces=_SURFACES,
        older_url=f"{AUDIT_PATH}?{older}" if older else "",
        export_query=urlencode(chosen),
        is_broken=audit.is_broken,
    )


def _to_page_row(row: dict[str, Any]) -> AuditPageRow:
    digests = dict.fromkeys((row["digest_before"], row["digest_after"]))
    detail = row["detail"] if isinstance(row["detail"], dict) else {}
    return AuditPageRow(
        row["id"],
        row["at"],
        row["at"][:19].replace("T", " "),
        f"{row['actor']}/{row['token']}" if row["token"] else row["actor"],
        row["via"],
        row["address"],
        row["action"],
        row["subject"],
        row["outcome"],
        tuple(digest.removeprefix("sha256:")[:_SHORT_DIGEST] for digest in digests if digest),
        ", ".join(f"{name}: {value}" for name, value in detail.items() if name != "journal"),
        row["hash"] is not None,
    )
