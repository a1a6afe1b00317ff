"""Handlers for skills."""

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
from skillhall._internal.render.json_manifest import build_manifest
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
from skillhall._internal.skill.lossless_editor import SkillText
from skillhall._internal.skill_store.collection import MAX_IMPORT_FILES, SOURCES
from skillhall._internal.skill_store.input_checks import serialize_skill

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.catalog.repository_skills import RepositoryOrigin
    from skillhall._internal.http.multipart import MultipartForm
    from skillhall._internal.http.request import HttpRequest
    from skillhall._internal.http.response import Headers
    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.skill_store.collection import (
        Collection,
        SkillDetails,
        SkillImportResult,
    )
    from skillhall._internal.skill_store.store import ImportReport

SKILLS_PATH = "/api/v1/skills"
CHANGES_PATH = "/api/v1/changes"
MAX_ARCHIVE_BYTES = 110 * 1024 * 1024  # of an uploaded archive
_MAX_FORM_PARTS = MAX_IMPORT_FILES + 8  # files and some fields


class SkillHandlers:
    """Handlers over one collection."""

    def __init__(self, collection: Collection, workers: WorkerPool) -> None:
        self._collection = collection
        self._workers = workers
        self._agent_skills = CollectionSkills(collection)

    async def list_skills(self, request: HttpRequest) -> ByteResponse:
        """List the skills by id, or search them, best match first."""
        query = request.read_query(("q", "cursor", "limit", "source"))
        source = query.get("source", "")
        limit = parse_limit(query)
        if "q" in query and ("cursor" in query or source):
            raise HttpError("invalid_argument", "q cannot be combined with cursor or source")
        if source and source not in SOURCES:
            raise HttpError("invalid_argument", f"source must be one of: {', '.join(SOURCES)}")
        snapshot = await self._workers.run(self._collection.snapshot)
        if "q" in query:
            hits = await self._workers.run(self._collection.search, query["q"], limit)
            data = {"skills": [*map(serialize_skill, hits.skills)], "total": hits.total}
            return success_response(encode_json(data), request.request_id)
        etag = f'W/"{snapshot.revision}"'.encode()
        headers: Headers = (*JSON_HEADERS, NO_CACHE_HEADER, (b"etag", etag))
        if etag_matches(request.header(b"if-none-match"), etag):
            return ByteResponse(304, headers[1:])
        page = snapshot.page(query.get("cursor", ""), limit, source)
        data = {"skills": [*map(serialize_skill, page.skills)], "total": page.total}
        if "cursor" not in query:
            data |= skipped_data(snapshot.skipped)
        if page.next_cursor:
            data["nextCursor"] = page.next_cursor
        return success_response(encode_json(data), request.request_id, headers=headers)

    async def get_skill(self, request: HttpRequest) -> ByteResponse:
        """Return a skill with its instructions, files and findings."""
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
        """Download a file of a skill."""
        identity, _, path = _path_names(request)
        read = partial(self._collection.read_file, identity, path)
        return await self._workers.run(etag_response, request, download_headers(path), read)

    async def get_skill_archive(self, request: HttpRequest) -> ByteResponse:
        """Download a skill as a zip file."""
        identity = _path_names(request)[0]
        headers, read = download_headers(f"{identity}.zip"), self._collection.archive
        return await self._workers.run(etag_response, request, headers, partial(read, identity))

    async def create_skill(self, request: HttpRequest) -> ByteResponse:
        """Create a user skill."""
        body = parse_model(CreateSkillRequest, await request.json(empty={}))
        add = self._collection.store.add
        skill = await self._workers.run(add, body.id, body.name, body.description, body.body)
        data = {"id": skill.id, "name": skill.name, "description": skill.description}
        return success_response(encode_json(data), request.request_id, status=201)

    async def import_skills(self, request: HttpRequest) -> ByteResponse:
        """Import skills from an archive, a form with files, or a source."""
        kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
        if kind == b"application/zip":
            import_ = self._import_from_archive(request, await request.body(MAX_ARCHIVE_BYTES))
        elif kind == MULTIPART_TYPE:
            form = await read_multipart(request, MAX_ARCHIVE_BYTES, _MAX_FORM_PARTS)
            import_ = self._import_from_form(form)
        else:
            body = parse_model(ImportSkillsRequest, await request.json(empty={}))
            import_ = partial(
                self._collection.import_source, body.source, body.id, replace=body.replace
            )
        report, change = await self._workers.run(import_)
        data = {**_serialize_import(report), **({"change": change} if change else {})}
        return success_response(encode_json(data), request.request_id, status=201)

    async def delete_skill(self, request: HttpRequest) -> ByteResponse:
        """Delete a user skill."""
        identity = _path_names(request)[0]
        shadowed = _parse_flag(request.read_query(("shadowed",)).get("shadowed"))
        delete = partial(self._collection.delete, identity, shadowed=shadowed)
        change = await self._workers.run(delete)
        data = {"deleted": identity, **({"change": change} if change else {})}
        return success_response(encode_json(data), request.request_id)

    async def edit_skill(self, request: HttpRequest) -> ByteResponse:
        """Change the name, description and instructions of a user skill. The rest stays."""
        identity = _path_names(request)[0]
        body = parse_model(EditSkillRequest, await request.json(empty={}))
        text = SkillText(body.name, body.description, body.body)
        item, change = await self._workers.run(self._collection.edit, identity, text, body.digest)
        data = {"id": item.id, "name": item.name, "description": item.description}
        data |= {"change": change} if change else {}
        return success_response(encode_json(data), request.request_id)

    async def check_skill(self, request: HttpRequest) -> ByteResponse:
        """Check a new skill without saving it."""
        body = parse_model(CreateSkillRequest, await request.json(empty={}))
        text = SkillText(body.name, body.description, body.body)
        draft = await self._workers.run(self._collection.draft, body.id, text)
        data = {
            "id": draft.id,
            "taken": draft.is_taken,
            "problems": [*draft.problems],
            "findings": serialize_findings(draft.findings),
            "tokens": draft.tokens,
            "prompt": "",
        }
        if draft.skill:
            data["prompt"] = self._agent_skills.render_prompt_for_draft(draft.skill)
        return success_response(encode_json(data), request.request_id)

    async def undo_change(self, request: HttpRequest) -> ByteResponse:
        """Undo an edit, an import or a deletion."""
        change = request.scope["path"].removeprefix(CHANGES_PATH).split("/")[1]
        undone = await self._workers.run(self._collection.changes.undo, change)
        data = {"undone": change, "skills": [*undone.entries]}
        return success_response(encode_json(data), request.request_id)

    def _import_from_archive(
        self, request: HttpRequest, data: bytes
    ) -> Callable[[], SkillImportResult]:
        query = request.read_query(("id", "replace", "filename"))
        name, replace = query.get("filename", "skill.zip"), _parse_flag(query.get("replace"))
        import_ = self._collection.import_archive
        return partial(import_, data, name, query.get("id"), replace=replace)

    def _import_from_form(self, form: MultipartForm) -> Callable[[], SkillImportResult]:
        """Return an import of one file, or of the files of a folder. Raises: HttpError."""
        identity = form.fields.get("id", "").strip() or None
        replace = _parse_flag(form.fields.get("replace"))
        single = [file for file in form.files if file.field == "file"]
        folder = [(file.name, file.data) for file in form.files if file.field == "files"]
        if len(single) + bool(folder) != 1:
            raise HttpError("invalid_argument", "the form needs one 'file', or several 'files'")
        if folder:
            return partial(self._collection.import_files, folder, identity, replace=replace)
        import_, file = self._collection.import_file, single[0]
        return partial(import_, file.data, file.name, identity, replace=replace)


def _parse_flag(text: str | None) -> bool:
    """Whether a form field or a parameter is true; checkboxes send "on"."""
    return (text or "").strip().lower() in ("true", "1", "yes", "on")


def _path_names(request: HttpRequest) -> tuple[str, str, str]:
    """Return the skill's id, the sub-resource and the rest of the path. Raises: HttpError."""
    identity, resource, path = path_parts(request, SKILLS_PATH, 3)
    return identity, resource, path


def _details_etag(details: SkillDetails, origin: RepositoryOrigin) -> bytes:
    # The digest of the files is not enough: the entry and the origin can change without them.
    state = repr((details.digest, details.entry, details.shadowed, origin))
    return f'W/"{sha256_hex(state.encode("utf-8", "surrogatepass"))}"'.encode()


def _serialize_details(details: SkillDetails) -> dict[str, object]:
    return {
        **serialize_skill(details.entry),
        "frontmatter": details.frontmatter,
        "body": details.body,
        "tokens": details.tokens,
        "digest": details.digest,
        "files": build_manifest(details.files),
        "findings": serialize_findings(details.findings),
        "shadowed": [*map(serialize_skill, details.shadowed)],
    }


def _serialize_import(report: ImportReport) -> dict[str, object]:
    skills = [{"id": s.id, "name": s.name, "description": s.description} for s in report.imported]
    findings = serialize_findings(report.findings)
    return {"imported": skills, "replaced": [*report.replaced], "findings": findings}
