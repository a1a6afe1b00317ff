"""Pages that save a conversation of the playground as an eval case of a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from skillhall._internal.agents.chat.conversations import Conversation
from skillhall._internal.agents.chat.events import SkillLoaded
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.skill.evals.eval_check import EVALS_PATH
from skillhall._internal.skill.evals.eval_draft import append_case
from skillhall._internal.skill.frontmatter_locator import normalize_newlines
from skillhall._internal.skill_store.file_changes import NewFile, write_files
from skillhall._internal.web.page_request import PageRequest, on_error, parse_number
from skillhall._internal.web.playground.playground_pages import find_conversation
from skillhall._internal.web.rendering import form_status, render
from skillhall.errors import EditRefused, FieldRefused

if TYPE_CHECKING:
    from skillhall._internal.skill_store.store import SkillFiles


class EvalCaseForm(NamedTuple):
    """Texts of the form, as in an evals file."""

    skill: str
    prompt: str
    expected_output: str
    assertions: str  # one per line


def show_form(request: PageRequest) -> Response:
    """Show the form with the messages up to a turn, and its reply."""
    number = request.query_params.get("turn", "")
    conversation = find_conversation(request)
    skills = _list_skills(request, conversation, parse_number(number))
    return render(
        request,
        "eval_case.html",
        status=form_status(request.error),
        skills=skills,
        turn=number,
        form=_read_form(request) if request.error else _fill_form(conversation, number, skills),
    )


@on_error(show_form)
def save(request: PageRequest) -> Response:
    """Add the case to the evals file of the skill."""
    form, collection = _read_form(request), request.collection
    for name in ("prompt", "expected_output"):
        if not getattr(form, name):
            raise FieldRefused(name, "must not be empty")
    case = {
        "prompt": form.prompt,
        "expected_output": form.expected_output,
        "assertions": [line.strip() for line in form.assertions.splitlines() if line.strip()],
    }

    def add_case(files: SkillFiles) -> SkillFiles:
        present = files.get(EVALS_PATH)
        data = append_case(present[0] if present else None, form.skill, case)
        if data is None:
            raise EditRefused(f"{EVALS_PATH} is not a list of cases that can be extended")
        return write_files(files, [NewFile(EVALS_PATH, data)])

    digest = collection.read_working_files(form.skill).digest()
    changed = collection.change_files(form.skill, add_case, digest, actor=request.actor)
    url = f"/skill/{quote(form.skill, safe='')}/files/{EVALS_PATH}"
    if collection.is_reviewed:
        url = f"/skill/{quote(form.skill, safe='')}/versions"
    return request.redirect(url, "eval_case_saved", form.skill, changed.change_id)


def _list_skills(request: PageRequest, conversation: Conversation | None, number: int) -> list[str]:
    """Return the ids of the user skills, those that the conversation loaded first."""
    snapshot = request.collection.snapshot()
    turns = conversation.turns[:number] if conversation else ()
    events = [event for turn in turns for event in turn.tool_events]
    loaded = {event.skill for event in events if isinstance(event, SkillLoaded)}
    ids = snapshot.ids_of_source("user")
    return sorted(ids, key=lambda one: (snapshot.skills[one].name not in loaded, one))


def _fill_form(conversation: Conversation | None, text: str, skills: list[str]) -> EvalCaseForm:
    """Return the form for a turn. Raises: HttpError if there is no such turn."""
    number = parse_number(text)
    if conversation is None or not 1 <= number <= len(conversation.turns):
        raise HttpError("not_found", "this conversation has ended, or has no such message")
    turns = conversation.turns[:number]
    reply = turns[-1].done.text if turns[-1].done else turns[-1].partial_text
    prompt = "\n\n".join(turn.message for turn in turns)
    return EvalCaseForm(skills[0] if skills else "", prompt, reply, "")


def _read_form(request: PageRequest) -> EvalCaseForm:
    texts = (request.field(name) for name in ("prompt", "expected_output", "assertions"))
    return EvalCaseForm(request.field("skill"), *(normalize_newlines(t).strip() for t in texts))
