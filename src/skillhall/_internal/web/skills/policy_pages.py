"""The page of the policies in effect, and of the rule that decides about each skill."""

from starlette.responses import Response

from skillhall._internal.web.page_request import PageRequest, parse_number
from skillhall._internal.web.rendering import render

ROWS_PER_PAGE = 50


def show_policies(request: PageRequest) -> Response:
    """Show the policy files, and a page of skills with the rules that decide about them."""
    collection = request.collection
    snapshot = collection.snapshot()
    held = {*collection.clear(snapshot).held_ids, *snapshot.revoked}
    only_held = request.query_params.get("show") == "held"
    ids = [identity for identity in snapshot.ids if not only_held or identity in held]
    page_count = max(1, -(-len(ids) // ROWS_PER_PAGE))
    number = min(max(1, parse_number(request.query_params.get("page", "1"))), page_count)
    start = (number - 1) * ROWS_PER_PAGE
    chosen = ids[start : start + ROWS_PER_PAGE]
    summaries = collection.summarize_all([snapshot.skills[identity] for identity in chosen])
    base = "/policy?show=held&page=" if only_held else "/policy?page="
    return render(
        request,
        "policy.html",
        policies=collection.served.describe_policies(),
        rows=[*zip(chosen, summaries, strict=True)],
        only_held=only_held,
        total=len(snapshot.ids),
        held_total=len(held),
        first=start + 1,
        last=start + len(chosen),
        count=len(ids),
        previous_url=f"{base}{number - 1}" if number > 1 else "",
        next_url=f"{base}{number + 1}" if number < page_count else "",
    )
