"""The routes of skills, each with all that it may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter

from skillhall._internal.rest.requests import EditBody, ImportBody, SkillBody
from skillhall._internal.rest.responses import (
    BODY,
    GUARDED,
    SOURCE,
    AddedSkillData,
    CheckedSkillData,
    DeletedSkillData,
    EditedSkillData,
    ImportedSkillsData,
    SkillData,
    SkillListData,
    UndoneData,
    body_of,
    error,
    responses,
)
from skillhall._internal.rest.routes import SECURED, add_route
from skillhall._internal.rest.skill_handlers import CHANGES, SKILLS
from skillhall._internal.rest.well_known import FORMER, WELL_KNOWN

if TYPE_CHECKING:
    from skillhall._internal.rest.skill_handlers import SkillCalls
    from skillhall._internal.rest.well_known import InstallerCalls

_NOT_THERE = {404: "There is no such skill or file."}
_WRITTEN = {
    403: "A system skill, or one of the repository: nobody changes it here.",
    409: "A skill of that id is there already.",
    422: "The skill or the archive is refused.",
    503: "The disk failed, or the source's host asks to wait.",
    507: "The disk is full.",
}
_BINARY = {"type": "string", "format": "binary"}
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file": {**_BINARY, "description": "A zip, tar.gz or tar file, or one SKILL.md."},
        "files": {
            "type": "array",
            "items": _BINARY,
            "description": "All files of a folder, each under its path in it.",
        },
        "id": {"type": "string", "description": "What to call it, if it is one skill."},
        "replace": {"type": "string", "description": "`true` replaces a skill that is there."},
    },
    "oneOf": [{"required": ["file"]}, {"required": ["files"]}],
}
_BAD = {400: "The request breaks a rule.", 413: "A file is larger than the limit."}
_KNOWN: dict[int | str, dict[str, Any]] = {
    304: {"description": "Nothing has changed since the ETag in If-None-Match."}
}


def skill_router(calls: SkillCalls) -> APIRouter:
    """The routes of a server's skills."""
    router = APIRouter(tags=["skills"])
    listed = {**responses(SkillListData, _BAD), **_KNOWN}
    add_route(router, "GET", SKILLS, calls.list_skills, listed, _extra(*_LIST_PARAMETERS))
    made = responses(AddedSkillData, _BAD, BODY, _WRITTEN, status=201)
    body = {"requestBody": body_of(SkillBody, required=True)}
    add_route(router, "POST", SKILLS, calls.add_skill, made, {**_extra(), **body})
    taken = responses(ImportedSkillsData, SOURCE, BODY, _WRITTEN, _NOT_THERE, status=201)
    sent = {"requestBody": _import_body()}
    import_parameters = _extra(*_IMPORT_PARAMETERS)
    add_route(
        router,
        "POST",
        f"{SKILLS}/import",
        calls.import_skills,
        taken,
        {**import_parameters, **sent},
    )
    would_be = responses(CheckedSkillData, _BAD, BODY)
    add_route(router, "POST", f"{SKILLS}/check", calls.check_skill, would_be, {**_extra(), **body})
    _add_changes(router, calls)
    one = {**responses(SkillData, _BAD, _NOT_THERE), **_KNOWN}
    add_route(router, "GET", f"{SKILLS}/{{id}}", calls.one_skill, one, _extra(_ID))
    gone = responses(DeletedSkillData, _BAD, _NOT_THERE, _WRITTEN)
    extra = _extra(_ID, _SHADOWED)
    add_route(router, "DELETE", f"{SKILLS}/{{id}}", calls.delete_skill, gone, extra)
    archived = f"{SKILLS}/{{id}}/archive"
    add_route(router, "GET", archived, calls.one_archive, _bytes("The zip file."), _extra(_ID))
    filed = f"{SKILLS}/{{id}}/files/{{path:path}}"
    add_route(router, "GET", filed, calls.one_file, _bytes("The file."), _extra(_ID, _PATH))
    return router


def installer_router(calls: InstallerCalls) -> APIRouter:
    """The routes of installers."""
    router = APIRouter(tags=["installers"])
    index = _document("The skills for installers.")
    add_route(router, "GET", f"{WELL_KNOWN}/index.json", calls.index, index, _extra())
    former = _document("The skills for installers that read version 0.1.")
    add_route(router, "GET", f"{FORMER}/index.json", calls.former_index, former, _extra())
    filed = f"{FORMER}/{{name}}/{{path:path}}"
    add_route(router, "GET", filed, calls.former_file, _bytes("The file."), _extra(_NAME, _PATH))
    return router


def _add_changes(router: APIRouter, calls: SkillCalls) -> None:
    """The routes of changes that can be taken back."""
    meanwhile = {412: "The skill was changed meanwhile."}
    edited = responses(EditedSkillData, _BAD, BODY, _NOT_THERE, _WRITTEN, meanwhile)
    body = {"requestBody": body_of(EditBody, required=True)}
    add_route(router, "PUT", f"{SKILLS}/{{id}}", calls.edit_skill, edited, {**_extra(_ID), **body})
    undone = responses(UndoneData, _BAD, _NOT_THERE, _WRITTEN, meanwhile)
    change = _parameter("id", "path", "The change's id.")
    add_route(router, "POST", f"{CHANGES}/{{id}}/undo", calls.undo_change, undone, _extra(change))


def _extra(*parameters: dict[str, Any]) -> dict[str, Any]:
    return {"security": SECURED, "parameters": [*parameters]}


def _parameter(name: str, place: str, about: str, **schema: object) -> dict[str, Any]:
    described = {"type": "string", "minLength": 1, **schema}
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, "description": about, "schema": described, **required}


_ID = _parameter("id", "path", "The skill's id.")
_SHADOWED = _parameter(
    "shadowed",
    "query",
    "`true` deletes the user skill that a system skill with the same id shadows.",
    pattern=r"\S",
)
_NAME = _parameter("name", "path", "The name in the index.")
_PATH = _parameter("path", "path", "The file's path in the skill.")
_LIST_PARAMETERS = (
    _parameter("q", "query", "Any text: the skills that it finds, the best first.", pattern=r"\S"),
    _parameter("source", "query", "Only those of `user`, `system` or `repository`.", pattern=r"\S"),
    _parameter("cursor", "query", "Where the page before ended.", pattern=r"\S"),
    {
        "name": "limit",
        "in": "query",
        "description": "How many at most.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
)
_IMPORT_PARAMETERS = (
    _parameter("id", "query", "What to call the skill of an archive.", pattern=r"\S"),
    _parameter("replace", "query", "`true` replaces a skill that is there.", pattern=r"\S"),
    _parameter("filename", "query", "What the archive is called.", pattern=r"\S"),
)


def _import_body() -> dict[str, Any]:
    described = body_of(ImportBody, required=True)
    described["content"]["application/zip"] = {"schema": _BINARY}
    described["content"]["multipart/form-data"] = {"schema": _FORM}
    return described


def _bytes(about: str) -> dict[int | str, dict[str, Any]]:
    return _described(about, "application/octet-stream", _BINARY)


def _document(about: str) -> dict[int | str, dict[str, Any]]:
    return _described(about, "application/json", {"type": "object"})


def _described(about: str, kind: str, schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    described: dict[int | str, dict[str, Any]] = {
        200: {"description": about, "content": {kind: {"schema": schema}}}
    }
    described |= _KNOWN
    for code, text in sorted({**GUARDED, **_BAD, **_NOT_THERE}.items()):
        described[code] = error(code, text)
    return described
