"""The calls on the skills that a server shows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.agents.collection_skills import CollectionSkills
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.multipart import MULTIPART_TYPE, read_multipart
from skillhall._internal.http.response import (
    JSON_HEADERS,
    ByteResponse,
    encode_json,
    success_response,
)
from skillhall._internal.policy.effects import serialize_findings
from skillhall._internal.policy.skipped_items import skipped_data
from skillhall._internal.rest.downloads import download_headers, path_parts
from skillhall._internal.rest.endpoint import parse_limit
from skillhall._internal.rest.etag import NO_CACHE_HEADER, etag_matches, etag_response
from skillhall._internal.rest.requests import (
    CreateSkillRequest,
    EditSkillRequest,
    ImportSkillsRequest,
    parse_model,
)
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.edit import SkillText
from skillhall._internal.skill_store.collection import MAX_IMPORT_FILES, SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.http.multipart import MultipartForm
    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.http.response import Headers
    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.skill_store.collection import (
        Collection,
        CollectionEntry,
        RepositoryOrigin,
        SkillDetails,
        SkillImportResult,
    )
    from skillhall._internal.skill_store.folder_store import ImportReport

SKILLS_PATH = "/api/v1/skills"
CHANGES_PATH = "/api/v1/changes"
MAX_ARCHIVE_BYTES = 110 * 1024 * 1024  # bytes of an archive that is sent
_MAX_FORM_PARTS = MAX_IMPORT_FILES + 8  # of a form: files, and the fields beside them


class SkillHandlers:
    """The calls, over one collection."""

    def __init__(self, collection: Collection, workers: WorkerPool) -> None:
        self._collection = collection
        self._workers = workers
        self._agent_skills = CollectionSkills(collection)

    async def list_skills(self, request: HttpRequest) -> ByteResponse:
        """The skills in order of their ids, or those that a text finds, the best first."""
        asked = request.read_query(("q", "cursor", "limit", "source"))
        source = asked.get("source", "")
        limit = parse_limit(asked)
        if "q" in asked and ("cursor" in asked or source):
            raise HttpError("invalid_argument", "a search has no cursor and no source")
        if source and source not in SOURCES:
            raise HttpError("invalid_argument", f"a source is one of {', '.join(SOURCES)}")
        shown = await self._workers.run(self._collection.snapshot)
        if "q" in asked:
            found = await self._workers.run(self._collection.search, asked["q"], limit)
            data = {
                "skills": [_serialize_summary(one) for one in found.skills],
                "total": found.total,
            }
            return success_response(encode_json(data), request.request_id)
        tag = f'W/"{shown.revision}"'.encode()
        headers: Headers = (*JSON_HEADERS, NO_CACHE_HEADER, (b"etag", tag))
        if etag_matches(request.header(b"if-none-match"), tag):
            return ByteResponse(304, headers[1:])
        page = shown.page(asked.get("cursor", ""), limit, source)
        told: dict[str, object] = {
            "skills": [_serialize_summary(one) for one in page.skills],
            "total": page.total,
        }
        if "cursor" not in asked:
            told |= skipped_data(shown.skipped)
        if page.next_cursor:
            told["nextCursor"] = page.next_cursor
        return success_response(encode_json(told), request.request_id, headers=headers)

    async def get_skill(self, request: HttpRequest) -> ByteResponse:
        """Everything about one skill: its text, its files and what was noticed."""
        identity = _path_names(request)[0]
        details = await self._workers.run(self._collection.details, identity)
        origin = await self._workers.run(self._collection.origin, identity)
        tag = _details_etag(details, origin)
        headers: Headers = (*JSON_HEADERS, NO_CACHE_HEADER, (b"etag", tag))
        if etag_matches(request.header(b"if-none-match"), tag):
            return ByteResponse(304, headers[1:])
        data = await self._workers.run(_serialize_details, details)
        if origin.commit:
            data["commit"] = origin.commit
        return success_response(encode_json(data), request.request_id, headers=headers)

    async def get_skill_file(self, request: HttpRequest) -> ByteResponse:
        """One file of a skill, as bytes that no browser takes for a page."""
        identity, _, path = _path_names(request)
        read = partial(self._collection.read_file, identity, path)
        return await self._workers.run(etag_response, request, download_headers(path), read)

    async def get_skill_archive(self, request: HttpRequest) -> ByteResponse:
        """All files of a skill as one zip file."""
        identity = _path_names(request)[0]
        read = partial(self._collection.archive, identity)
        return await self._workers.run(
            etag_response, request, download_headers(f"{identity}.zip"), read
        )

    async def add_skill(self, request: HttpRequest) -> ByteResponse:
        """A new skill out of a form."""
        body = parse_model(CreateSkillRequest, await request.json(empty={}))
        add = self._collection.store.add
        made = await self._workers.run(add, body.id, body.name, body.description, body.body)
        data = {"id": made.id, "name": made.name, "description": made.description}
        return success_response(encode_json(data), request.request_id, status=201)

    async def import_skills(self, request: HttpRequest) -> ByteResponse:
        """Skills out of an archive or a form that is sent, or of a source that is named."""
        kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
        if kind == b"application/zip":
            take = self._import_from_archive(request, await request.body(MAX_ARCHIVE_BYTES))
        elif kind == MULTIPART_TYPE:
            take = self._import_from_form(
                await read_multipart(request, MAX_ARCHIVE_BYTES, _MAX_FORM_PARTS)
            )
        else:
            body = parse_model(ImportSkillsRequest, await request.json(empty={}))
            take = partial(
                self._collection.import_source, body.source, body.id, replace=body.replace
            )
        report, change = await self._workers.run(take)
        data = {**_serialize_import(report), **({"change": change} if change else {})}
        return success_response(encode_json(data), request.request_id, status=201)

    async def delete_skill(self, request: HttpRequest) -> ByteResponse:
        """Remove a skill that was added or imported."""
        identity = _path_names(request)[0]
        shadowed = _parse_flag(request.read_query(("shadowed",)).get("shadowed"))
        delete = partial(self._collection.delete, identity, shadowed=shadowed)
        change = await self._workers.run(delete)
        data = {"deleted": identity, **({"change": change} if change else {})}
        return success_response(encode_json(data), request.request_id)

    async def edit_skill(self, request: HttpRequest) -> ByteResponse:
        """Change the words of a skill that was added or imported; every other byte stays."""
        identity = _path_names(request)[0]
        body = parse_model(EditSkillRequest, await request.json(empty={}))
        text = SkillText(body.name, body.description, body.body)
        item, change = await self._workers.run(self._collection.edit, identity, text, body.digest)
        data = {"id": item.id, "name": item.name, "description": item.description}
        told = {**data, **({"change": change} if change else {})}
        return success_response(encode_json(told), request.request_id)

    async def check_skill(self, request: HttpRequest) -> ByteResponse:
        """What a new skill would be, and what is to be said about it."""
        body = parse_model(CreateSkillRequest, await request.json(empty={}))
        text = SkillText(body.name, body.description, body.body)
        made = await self._workers.run(self._collection.draft, body.id, text)
        data = {
            "id": made.id,
            "taken": made.is_taken,
            "problems": [*made.problems],
            "findings": serialize_findings(made.findings),
            "tokens": made.tokens,
            "prompt": self._agent_skills.render_prompt_for_draft(made.skill) if made.skill else "",
        }
        return success_response(encode_json(data), request.request_id)

    async def undo_change(self, request: HttpRequest) -> ByteResponse:
        """Take back an edit, an import or a deletion."""
        change = request.scope["path"].removeprefix(CHANGES_PATH).split("/")[1]
        undone = await self._workers.run(self._collection.changes.undo, change)
        data = {"undone": change, "skills": [*undone.ids]}
        return success_response(encode_json(data), request.request_id)

    def _import_from_archive(
        self, request: HttpRequest, data: bytes
    ) -> Callable[[], SkillImportResult]:
        asked = request.read_query(("id", "replace", "filename"))
        name = asked.get("filename", "skill.zip")
        take = self._collection.import_archive
        return partial(take, data, name, asked.get("id"), replace=_parse_flag(asked.get("replace")))

    def _import_from_form(self, form: MultipartForm) -> Callable[[], SkillImportResult]:
        """An import of one file, or of the many that a folder picker sends. Raises: Refused."""
        identity = form.fields.get("id", "").strip() or None
        is_replacing = _parse_flag(form.fields.get("replace"))
        alone = [one for one in form.files if one.field == "file"]
        picked = [(one.name, one.data) for one in form.files if one.field == "files"]
        if len(alone) + bool(picked) != 1:
            raise HttpError("invalid_argument", "the form needs one 'file', or several 'files'")
        if picked:
            take = self._collection.import_files
            return partial(take, picked, identity, replace=is_replacing)
        file = alone[0]
        return partial(
            self._collection.import_file, file.data, file.name, identity, replace=is_replacing
        )


def _parse_flag(text: str | None) -> bool:
    """Whether a form or a query says so; a checkbox says "on"."""
    return (text or "").strip().lower() in ("true", "1", "yes", "on")


def _path_names(request: HttpRequest) -> tuple[str, str, str]:
    """The skill's id, what of it is asked for, and the rest of the path. Raises: Refused."""
    identity, what, path = path_parts(request, SKILLS_PATH, 3)
    return identity, what, path


def _serialize_summary(entry: CollectionEntry) -> dict[str, object]:
    row = {
        "id": entry.id,
        "name": entry.name,
        "description": entry.description,
        "source": entry.source,
    }
    return {**row, "repository": entry.repository} if entry.repository else {**row}


def _details_etag(details: SkillDetails, origin: RepositoryOrigin) -> bytes:
    """An ETag of the whole response: some of it is not in the skill's own files."""
    facts = repr((details.digest, details.entry, details.shadowed, origin))
    return f'W/"{sha256_hex(facts.encode("utf-8", "surrogatepass"))}"'.encode()


def _serialize_details(details: SkillDetails) -> dict[str, object]:
    files = [
        {"path": f.path.text, "size": f.size, "digest": f.digest(), "executable": f.executable}
        for f in details.files
    ]
    return {
        **_serialize_summary(details.entry),
        "frontmatter": details.frontmatter,
        "body": details.body,
        "tokens": details.tokens,
        "digest": details.digest,
        "files": files,
        "findings": serialize_findings(details.findings),
        "shadowed": [_serialize_summary(one) for one in details.shadowed],
    }


def _serialize_import(report: ImportReport) -> dict[str, object]:
    skills = [
        {"id": one.id, "name": one.name, "description": one.description} for one in report.imported
    ]
    findings = serialize_findings(report.findings)
    return {"imported": skills, "replaced": [*report.replaced], "findings": findings}
