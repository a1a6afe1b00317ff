"""The calls on the skills that a server shows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.agents.collection_skills import CollectionSkills
from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.multipart import MULTIPART, read_form
from skillhall._internal.http.response import JSON, Answer, encoded, success
from skillhall._internal.policy.effects import findings_data
from skillhall._internal.policy.skipped_items import skipped_data
from skillhall._internal.rest.downloads import download_of, path_parts
from skillhall._internal.rest.endpoint import page_limit
from skillhall._internal.rest.etag import REVALIDATED, matches, tagged
from skillhall._internal.rest.requests import EditBody, ImportBody, SkillBody, checked
from skillhall._internal.skill.bundle import sha256_of
from skillhall._internal.skill.edit import SkillText
from skillhall._internal.skill_store.collection import MAX_FILES, SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.http.multipart import Form
    from skillhall._internal.http.request import Exchange
    from skillhall._internal.http.response import Headers
    from skillhall._internal.http.thread_pool import Blocking
    from skillhall._internal.skill_store.collection import (
        Collection,
        Details,
        Imported,
        Listed,
        Origin,
    )
    from skillhall._internal.skill_store.folder_store import ImportReport

SKILLS = "/api/v1/skills"
CHANGES = "/api/v1/changes"
MAX_ARCHIVE = 110 * 1024 * 1024  # bytes of an archive that is sent
_MOST_PARTS = MAX_FILES + 8  # of a form: files, and the fields beside them


class SkillCalls:
    """The calls, over one collection."""

    def __init__(self, collection: Collection, blocking: Blocking) -> None:
        self._collection = collection
        self._blocking = blocking
        self._agent = CollectionSkills(collection)

    async def list_skills(self, exchange: Exchange) -> Answer:
        """The skills in order of their ids, or those that a text finds, the best first."""
        asked = exchange.query(("q", "cursor", "limit", "source"))
        source = asked.get("source", "")
        limit = page_limit(asked)
        if "q" in asked and ("cursor" in asked or source):
            raise Refused("invalid_argument", "a search has no cursor and no source")
        if source and source not in SOURCES:
            raise Refused("invalid_argument", f"a source is one of {', '.join(SOURCES)}")
        shown = await self._blocking.run(self._collection.show)
        if "q" in asked:
            found = await self._blocking.run(self._collection.search, asked["q"], limit)
            data = {"skills": [_listed(one) for one in found.skills], "total": found.total}
            return success(encoded(data), exchange.request_id)
        tag = f'W/"{shown.revision}"'.encode()
        headers: Headers = (*JSON, REVALIDATED, (b"etag", tag))
        if matches(exchange.header(b"if-none-match"), tag):
            return Answer(304, headers[1:])
        page = shown.page(asked.get("cursor", ""), limit, source)
        told: dict[str, object] = {
            "skills": [_listed(one) for one in page.skills],
            "total": page.total,
        }
        if "cursor" not in asked:
            told |= skipped_data(shown.skipped)
        if page.following:
            told["nextCursor"] = page.following
        return success(encoded(told), exchange.request_id, headers=headers)

    async def one_skill(self, exchange: Exchange) -> Answer:
        """Everything about one skill: its text, its files and what was noticed."""
        identity = _names(exchange)[0]
        details = await self._blocking.run(self._collection.details, identity)
        origin = await self._blocking.run(self._collection.origin, identity)
        tag = _tag_of(details, origin)
        headers: Headers = (*JSON, REVALIDATED, (b"etag", tag))
        if matches(exchange.header(b"if-none-match"), tag):
            return Answer(304, headers[1:])
        data = await self._blocking.run(_details, details)
        if origin.commit:
            data["commit"] = origin.commit
        return success(encoded(data), exchange.request_id, headers=headers)

    async def one_file(self, exchange: Exchange) -> Answer:
        """One file of a skill, as bytes that no browser takes for a page."""
        identity, _, path = _names(exchange)
        read = partial(self._collection.read_file, identity, path)
        return await self._blocking.run(tagged, exchange, download_of(path), read)

    async def one_archive(self, exchange: Exchange) -> Answer:
        """All files of a skill as one zip file."""
        identity = _names(exchange)[0]
        read = partial(self._collection.archive, identity)
        return await self._blocking.run(tagged, exchange, download_of(f"{identity}.zip"), read)

    async def add_skill(self, exchange: Exchange) -> Answer:
        """A new skill out of a form."""
        body = checked(SkillBody, await exchange.json(empty={}))
        add = self._collection.local.add
        made = await self._blocking.run(add, body.id, body.name, body.description, body.body)
        data = {"id": made.id, "name": made.name, "description": made.description}
        return success(encoded(data), exchange.request_id, status=201)

    async def import_skills(self, exchange: Exchange) -> Answer:
        """Skills out of an archive or a form that is sent, or of a source that is named."""
        kind = (exchange.header(b"content-type") or b"").partition(b";")[0].strip().lower()
        if kind == b"application/zip":
            take = self._from_archive(exchange, await exchange.body(MAX_ARCHIVE))
        elif kind == MULTIPART:
            take = self._from_form(await read_form(exchange, MAX_ARCHIVE, _MOST_PARTS))
        else:
            body = checked(ImportBody, await exchange.json(empty={}))
            take = partial(
                self._collection.import_source, body.source, body.id, replace=body.replace
            )
        report, change = await self._blocking.run(take)
        data = {**_imported(report), **({"change": change} if change else {})}
        return success(encoded(data), exchange.request_id, status=201)

    async def delete_skill(self, exchange: Exchange) -> Answer:
        """Remove a skill that was added or imported."""
        identity = _names(exchange)[0]
        shadowed = _is_yes(exchange.query(("shadowed",)).get("shadowed"))
        delete = partial(self._collection.delete, identity, shadowed=shadowed)
        change = await self._blocking.run(delete)
        data = {"deleted": identity, **({"change": change} if change else {})}
        return success(encoded(data), exchange.request_id)

    async def edit_skill(self, exchange: Exchange) -> Answer:
        """Change the words of a skill that was added or imported; every other byte stays."""
        identity = _names(exchange)[0]
        body = checked(EditBody, await exchange.json(empty={}))
        text = SkillText(body.name, body.description, body.body)
        item, change = await self._blocking.run(self._collection.edit, identity, text, body.digest)
        data = {"id": item.id, "name": item.name, "description": item.description}
        told = {**data, **({"change": change} if change else {})}
        return success(encoded(told), exchange.request_id)

    async def check_skill(self, exchange: Exchange) -> Answer:
        """What a new skill would be, and what is to be said about it."""
        body = checked(SkillBody, await exchange.json(empty={}))
        text = SkillText(body.name, body.description, body.body)
        made = await self._blocking.run(self._collection.draft, body.id, text)
        data = {
            "id": made.id,
            "taken": made.is_taken,
            "problems": [*made.problems],
            "findings": findings_data(made.findings),
            "tokens": made.tokens,
            "prompt": self._agent.text_about_draft(made.item) if made.item else "",
        }
        return success(encoded(data), exchange.request_id)

    async def undo_change(self, exchange: Exchange) -> Answer:
        """Take back an edit, an import or a deletion."""
        change = exchange.scope["path"].removeprefix(CHANGES).split("/")[1]
        undone = await self._blocking.run(self._collection.changes.undo, change)
        data = {"undone": change, "skills": [*undone.ids]}
        return success(encoded(data), exchange.request_id)

    def _from_archive(self, exchange: Exchange, data: bytes) -> Callable[[], Imported]:
        asked = exchange.query(("id", "replace", "filename"))
        name = asked.get("filename", "skill.zip")
        take = self._collection.import_archive
        return partial(take, data, name, asked.get("id"), replace=_is_yes(asked.get("replace")))

    def _from_form(self, form: Form) -> Callable[[], Imported]:
        """An import of one file, or of the many that a folder picker sends. Raises: Refused."""
        identity = form.fields.get("id", "").strip() or None
        is_replacing = _is_yes(form.fields.get("replace"))
        alone = [one for one in form.files if one.field == "file"]
        picked = [(one.name, one.data) for one in form.files if one.field == "files"]
        if len(alone) + bool(picked) != 1:
            raise Refused("invalid_argument", "the form needs one 'file', or several 'files'")
        if picked:
            take = self._collection.import_files
            return partial(take, picked, identity, replace=is_replacing)
        file = alone[0]
        return partial(
            self._collection.import_file, file.data, file.name, identity, replace=is_replacing
        )


def _is_yes(text: str | None) -> bool:
    """Whether a form or a query says so; a checkbox says "on"."""
    return (text or "").strip().lower() in ("true", "1", "yes", "on")


def _names(exchange: Exchange) -> tuple[str, str, str]:
    """The skill's id, what of it is asked for, and the rest of the path. Raises: Refused."""
    identity, what, path = path_parts(exchange, SKILLS, 3)
    return identity, what, path


def _listed(one: Listed) -> dict[str, object]:
    row = {"id": one.id, "name": one.name, "description": one.description, "source": one.source}
    return {**row, "repository": one.repository} if one.repository else {**row}


def _tag_of(details: Details, origin: Origin) -> bytes:
    """An ETag of the whole response: some of it is not in the skill's own files."""
    facts = repr((details.digest, details.listed, details.shadowed, origin))
    return f'W/"{sha256_of(facts.encode("utf-8", "surrogatepass"))}"'.encode()


def _details(details: Details) -> dict[str, object]:
    files = [
        {"path": f.path.text, "size": f.size, "digest": f.digest(), "executable": f.executable}
        for f in details.files
    ]
    return {
        **_listed(details.listed),
        "frontmatter": details.frontmatter,
        "body": details.body,
        "tokens": details.tokens,
        "digest": details.digest,
        "files": files,
        "findings": findings_data(details.findings),
        "shadowed": [_listed(one) for one in details.shadowed],
    }


def _imported(report: ImportReport) -> dict[str, object]:
    skills = [
        {"id": one.id, "name": one.name, "description": one.description} for one in report.imported
    ]
    findings = findings_data(report.findings)
    return {"imported": skills, "replaced": [*report.replaced], "findings": findings}
