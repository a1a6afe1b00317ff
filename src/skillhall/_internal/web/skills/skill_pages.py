"""Pages that show one skill, its files and one file."""

from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from skillhall._internal.evals.reports.served_results import find_served_overview
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill_store.collection import SkillDetails
from skillhall._internal.web.highlight import escape_text, highlight_code
from skillhall._internal.web.markdown_html import MarkdownSection
from skillhall._internal.web.page_request import PageRequest
from skillhall._internal.web.rendering import render
from skillhall._internal.web.skills.compat_card import build_compat_card
from skillhall._internal.web.skills.eval_card import build_eval_card
from skillhall.errors import SkillNotApproved

MIN_OUTLINE = 4  # sections
MAX_PEEKED = 8  # findings and files
MAX_PEEKED_CHARACTERS = 4_000  # of the instructions
MAX_TEXT_BYTES = 512 * 1024  # larger files are not shown
_SOURCE_FOLDERS = {source: folder for folder, source in LOCAL_SKILLS.roots}


def show_skill(request: PageRequest) -> Response:
    """Show one skill."""
    skill_id = request.path_params["id"]
    details = request.collection.details(skill_id)
    entry, skill = details.entry, request.collection.find(skill_id)
    origin, folder = request.collection.origin(skill_id), _SOURCE_FOLDERS.get(entry.source)
    files_url = f"/skill/{quote(skill_id, safe='')}/files"
    accepted, actionable = _split_findings(details.findings)
    trust = request.collection.summarize_trust(skill)
    return render(
        request,
        "skill.html",
        entry.name,
        details=details,
        file=skill.file,
        location=f"{folder}/{skill.folder}".strip("/") if folder else origin.repository,
        commit=origin.commit,
        body=request.site.markdown.render(details.body, files_url, with_anchors=True),
        outline=_find_sections(request, details.body),
        accepted_findings=accepted,
        actionable_findings=actionable,
        listing=request.site.default_agent_skills.render_prompt_for_skill(skill_id),
        activation=_render_activation(request, details),
        is_editable=entry.source == "user",
        trust=trust,
        compat=build_compat_card(details.judge_portability(skill)),
        evals=build_eval_card(find_served_overview(request.collection, skill_id)),
        can_use=trust.decision.is_cleared and not entry.hidden,
        has_versions=entry.source == "user" and request.collection.versions is not None,
    )


def _find_sections(request: PageRequest, body: str) -> Sequence[MarkdownSection]:
    """Return the sections of long instructions; none of short ones."""
    sections = request.site.markdown.outline(body)
    return sections if len(sections) >= MIN_OUTLINE else ()


def _render_activation(request: PageRequest, details: SkillDetails) -> str:
    """Return the text that a model gets; "" for a skill that is revoked or held by a rule."""
    try:
        return request.site.default_agent_skills.render_activation_text(details.entry.id)
    except SkillNotApproved:
        return ""


def _can_download(request: PageRequest, skill_id: str) -> bool:
    """Return whether a skill is neither revoked nor held by a rule."""
    try:
        request.collection.find_available(skill_id)
    except SkillNotApproved:
        return False
    return True


def peek(request: PageRequest) -> Response:
    """Show the beginning of a skill, for the panel next to the list."""
    skill_id = request.path_params["id"]
    details = request.collection.details(skill_id)
    files_url = f"/skill/{quote(skill_id, safe='')}/files"
    return render(
        request,
        "peek.html",
        details.entry.name,
        entry=details.entry,
        facts=request.collection.facts.get_or_default(request.collection.find(skill_id)),
        findings=_split_findings(details.findings)[1][:MAX_PEEKED],
        files=details.files[:MAX_PEEKED],
        body=request.site.markdown.render(_cut(details.body), files_url),
        is_editable=details.entry.source == "user" and request.may(Action.WRITE_SKILLS),
    )


def _cut(text: str) -> str:
    """Return the paragraphs at the beginning of a text."""
    if len(text) <= MAX_PEEKED_CHARACTERS:
        return text
    return text[:MAX_PEEKED_CHARACTERS].rpartition("\n\n")[0] or text[:MAX_PEEKED_CHARACTERS]


def show_file(request: PageRequest) -> Response:
    """Show one file of a skill: highlighted text, or only size and digest."""
    skill_id, path = request.path_params["id"], request.path_params["path"]
    data = request.collection.read_file(skill_id, path)
    findings = request.collection.details(skill_id).findings
    accepted, actionable = _split_findings([row for row in findings if row.finding.path == path])
    return render(
        request,
        "file.html",
        f"{path} · {skill_id}",
        id=skill_id,
        path=path,
        is_editable=request.collection.find(skill_id).source == "user",
        can_download=_can_download(request, skill_id),
        size=len(data),
        digest=f"sha256:{sha256_hex(data)}",
        lines=_highlight_lines(data, path),  # None if it is not text or too large
        findings=[*actionable, *accepted],
        finding_lines={row.finding.line for row in (*actionable, *accepted)},
    )


def _split_findings(
    findings: Sequence[JudgedFinding],
) -> tuple[list[JudgedFinding], list[JudgedFinding]]:
    """Return the findings that need no action, then the others."""
    accepted = [row for row in findings if row.effect is Effect.ACCEPT]
    return accepted, [row for row in findings if row.effect is not Effect.ACCEPT]


def _highlight_lines(data: bytes, path: str) -> tuple[Markup, ...] | None:
    if len(data) > MAX_TEXT_BYTES or b"\0" in data:
        return None
    try:
        text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return None
    lines = text.removesuffix("\n").split("\n")
    rows = str(highlight_code(text, path)).removesuffix("\n").split("\n")
    # A span over several lines cannot be split; such a file is shown without highlighting.
    if len(rows) != len(lines) or any(row.count("<span") != row.count("</span") for row in rows):
        return tuple(escape_text(line) for line in lines)
    return tuple(Markup(row) for row in rows)  # noqa: S704 - highlighted, thus escaped
