"""The command palette, which finds skills, sessions and actions, and the list of shortcuts."""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from skillhall._internal.policy.access.roles import Action
from skillhall._internal.web.page_request import PageRequest
from skillhall._internal.web.rendering import render
from skillhall.errors import SkillhallError

MAX_SKILLS, MAX_SESSIONS = 8, 5  # in the results
_MAX_SEARCHED_SESSIONS, _SESSION_BATCH = 1_000, 100
# Text keys below `palette_action`, URLs, and the actions that they need.
_ACTIONS = (
    ("add_skill", "/skills/add", Action.WRITE_SKILLS),
    ("import_skills", "/skills/import", Action.WRITE_SKILLS),
    ("risky", "/skills?risk=L3&risk=L2", Action.READ),
    ("new_session", "/sessions", Action.WRITE_SESSIONS),
    ("templates", "/templates", Action.READ),
    ("policy", "/policy", Action.READ),
    ("shortcuts", "/shortcuts", Action.READ),
)
# Keys, and text keys below `shortcut`. The first ones work on every page.
SHORTCUTS = (
    ("Ctrl K", "palette"),
    ("?", "help"),
    ("/", "search"),
    ("Esc", "close"),
    ("j", "next"),
    ("k", "previous"),
    ("Enter", "open"),
    ("p", "peek"),
    ("x", "select"),
)


class PaletteItem(NamedTuple):
    """A link in the palette."""

    label: str
    url: str
    detail: str = ""


def show_palette(request: PageRequest) -> Response:
    """Show the actions, skills and sessions that match a text."""
    text = request.query_params.get("q", "").strip()[:200]
    actions = [*_find_actions(request, text)]
    skills = [*_find_skills(request, text)] if text else []
    sessions: list[PaletteItem] = []
    if text and request.site.workspace is not None:
        with suppress(SkillhallError):  # the database does not answer; skills are in folders
            sessions = [*_find_sessions(request, text)]
    groups = {"actions": actions, "skills": skills, "sessions": sessions}
    return render(
        request,
        "palette.html",
        text=text,
        groups={name: items for name, items in groups.items() if items},
    )


def show_shortcuts(request: PageRequest) -> Response:
    """Show the keyboard shortcuts."""
    return render(request, "shortcuts.html", shortcuts=SHORTCUTS)


def show_help(request: PageRequest) -> Response:
    """Show what Skillhall is, where things are, and how agents are connected."""
    return render(request, "help.html", shortcuts=SHORTCUTS)


def _find_actions(request: PageRequest, text: str) -> Iterator[PaletteItem]:
    for key, url, action in _ACTIONS:
        label = request.translations(f"palette_action.{key}")
        if request.may(action) and text.casefold() in label.casefold():
            yield PaletteItem(label, url)
    for key, url in request.sections.items():
        label = request.translations(f"menu.{key}")
        if text.casefold() in label.casefold():
            yield PaletteItem(label, url)


def _find_skills(request: PageRequest, text: str) -> Iterator[PaletteItem]:
    """Yield the skills whose name contains the text, then those that a search finds."""
    snapshot = request.collection.snapshot()
    ids = snapshot.find_names(text, MAX_SKILLS)
    if len(ids) < MAX_SKILLS:
        ids += [row.id for row in request.collection.search(text, MAX_SKILLS).skills]
    for identity in [*dict.fromkeys(ids)][:MAX_SKILLS]:
        if identity in snapshot.skills:
            entry = snapshot.get_entry(identity)
            yield PaletteItem(entry.name, f"/skill/{quote(identity, safe='')}", entry.description)


def _find_sessions(request: PageRequest, text: str) -> Iterator[PaletteItem]:
    sessions, after, count, found = request.workspace.sessions, "", 0, 0
    while count < _MAX_SEARCHED_SESSIONS and (batch := sessions.list(after, _SESSION_BATCH)):
        for session in batch:
            if text.casefold() in session.name.casefold() and found < MAX_SESSIONS:
                found += 1
                yield PaletteItem(session.name, f"/session/{session.id}")
        after, count = batch[-1].id, count + len(batch)
