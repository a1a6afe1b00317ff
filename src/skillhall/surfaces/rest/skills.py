"""The calls on the skills that a server shows, and the documents that installers read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from skillhall.library.collection import SOURCES
from skillhall.library.editing import SkillText
from skillhall.surfaces.http.answer import JSON, Answer, encoded, success
from skillhall.surfaces.http.refusal import Refused
from skillhall.surfaces.rest.bodies import EditBody, ImportBody, SkillBody, checked
from skillhall.surfaces.rest.tags import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillhall.library.collection import Artifact, Collection, Details, Listed
    from skillhall.library.local_skills import ImportReport
    from skillhall.policy.loading import Judged
    from skillhall.surfaces.http.answer import Headers
    from skillhall.surfaces.http.blocking import Blocking
    from skillhall.surfaces.http.exchange import Exchange

SKILLS = "/api/v1/skills"
CHANGES = "/api/v1/changes"
WELL_KNOWN = "/.well-known/agent-skills"
SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
MAX_ARCHIVE = 110 * 1024 * 1024  # bytes of an archive that is sent
_PAGE, _MOST = 100, 1000  # skills
_PREFIX = f"{SKILLS}/".encode()
_REVALIDATED = (b"cache-control", b"no-cache")


class SkillCalls:
    """The calls, over one collection."""

    def __init__(self, collection: Collection, blocking: Blocking) -> None:
        self._collection = collection
        self._blocking = blocking

    async def list_skills(self, exchange: Exchange) -> Answer:
        """The skills in order of their ids, or those that a text finds, the best first."""
        asked = exchange.query(("q", "cursor", "limit", "source"))
        source = asked.get("source", "")
        limit = _limit(asked.get("limit", str(_PAGE)))
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
        headers: Headers = (*JSON, _REVALIDATED, (b"etag", tag))
        if matches(exchange.header(b"if-none-match"), tag):
            return Answer(304, headers[1:])
        page = shown.page(asked.get("cursor", ""), limit, source)
        told: dict[str, object] = {
            "skills": [_listed(one) for one in page.skills],
            "total": page.total,
        }
        if page.following:
            told["nextCursor"] = page.following
        return success(encoded(told), exchange.request_id, headers=headers)

    async def one_skill(self, exchange: Exchange) -> Answer:
        """Everything about one skill: its text, its files and what was noticed."""
        details = await self._blocking.run(self._collection.details, _names(exchange)[0])
        tag = f'W/"{details.digest}"'.encode()
        headers: Headers = (*JSON, _REVALIDATED, (b"etag", tag))
        if matches(exchange.header(b"if-none-match"), tag):
            return Answer(304, headers[1:])
        data = await self._blocking.run(_details, details)
        return success(encoded(data), exchange.request_id, headers=headers)

    async def one_file(self, exchange: Exchange) -> Answer:
        """One file of a skill, as bytes that no browser takes for a page."""
        identity, _, path = _names(exchange)
        data = await self._blocking.run(self._collection.read_file, identity, path)
        return Answer(200, (*_download(path.rpartition("/")[2]), _REVALIDATED), (data,))

    async def one_archive(self, exchange: Exchange) -> Answer:
        """All files of a skill as one zip file."""
        identity = _names(exchange)[0]
        data = await self._blocking.run(self._collection.archive, identity)
        return Answer(200, (*_download(f"{identity}.zip"), _REVALIDATED), (data,))

    async def add_skill(self, exchange: Exchange) -> Answer:
        """A new skill out of a form."""
        body = checked(SkillBody, await exchange.json(empty={}))
        add = self._collection.local.add
        made = await self._blocking.run(add, body.id, body.name, body.description, body.body)
        data = {"id": made.id, "name": made.name, "description": made.description}
        return success(encoded(data), exchange.request_id, status=201)

    async def import_skills(self, exchange: Exchange) -> Answer:
        """Skills out of an archive that is sent, or of a source that is named."""
        kind = (exchange.header(b"content-type") or b"").partition(b";")[0].strip().lower()
        if kind == b"application/zip":
            take = self._from_archive(exchange, await exchange.body(MAX_ARCHIVE))
        else:
            body = checked(ImportBody, await exchange.json(empty={}))
            take = partial(
                self._collection.import_source, body.source, body.id, replace=body.replace
            )
        report = await self._blocking.run(take)
        return success(encoded(_imported(report)), exchange.request_id, status=201)

    async def delete_skill(self, exchange: Exchange) -> Answer:
        """Remove a skill that was added or imported."""
        identity = _names(exchange)[0]
        change = await self._blocking.run(self._collection.delete, identity)
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
            "findings": _findings(made.findings),
            "tokens": made.tokens,
            "prompt": made.prompt,
        }
        return success(encoded(data), exchange.request_id)

    async def undo_change(self, exchange: Exchange) -> Answer:
        """Take back an edit, an import or a deletion."""
        change = exchange.scope["path"].removeprefix(CHANGES).split("/")[1]
        undone = await self._blocking.run(self._collection.changes.undo, change)
        data = {"undone": change, "skills": [*undone.ids]}
        return success(encoded(data), exchange.request_id)

    async def index(self, exchange: Exchange) -> Answer:  # noqa: ARG002 - a call's signature
        """The skills for installers, each with the address and the digest of its file."""
        artifacts = await self._blocking.run(lambda: [*self._collection.artifacts()])
        skills = [_entry(artifact) for artifact in artifacts]
        return Answer(200, (*JSON, _REVALIDATED), (encoded({"$schema": SCHEMA, "skills": skills}),))

    def _from_archive(self, exchange: Exchange, data: bytes) -> Callable[[], ImportReport]:
        asked = exchange.query(("id", "replace", "filename"))
        is_replacing = asked.get("replace", "false").lower() in ("true", "1", "yes")
        name = asked.get("filename", "skill.zip")
        take = self._collection.import_archive
        return partial(take, data, name, asked.get("id"), replace=is_replacing)


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= _MOST:
        raise Refused("invalid_argument", f"limit is a number from 1 to {_MOST}")
    return int(text)


def _names(exchange: Exchange) -> tuple[str, str, str]:
    """The skill's id, what of it is asked for, and the rest of the path. Raises: Refused."""
    parts = exchange.scope["raw_path"].removeprefix(_PREFIX).split(b"/", 2)
    try:
        identity, what, path = (
            unquote_to_bytes(part).decode("utf-8") for part in (*parts, b"", b"")[:3]
        )
    except UnicodeDecodeError:
        raise Refused("not_found", "there is no such skill") from None
    return identity, what, path


def _download(name: str) -> Headers:
    """How bytes of strangers are sent: to be kept, never to be shown as a page."""
    return (
        (b"content-type", b"application/octet-stream"),
        (b"content-disposition", f"attachment; filename*=UTF-8''{quote(name, safe='')}".encode()),
    )


def _listed(one: Listed) -> dict[str, object]:
    return {"id": one.id, "name": one.name, "description": one.description, "source": one.source}


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
        "findings": _findings(details.findings),
    }


def _findings(findings: Iterable[Judged]) -> list[dict[str, object]]:
    told: list[dict[str, object]] = []
    for found, effect in findings:
        fields: dict[str, object] = {
            "code": found.code.value,
            "effect": effect.value,
            "message": found.message,
            "path": found.path,
            "line": found.line,
            "hint": found.hint,
        }
        told.append({key: value for key, value in fields.items() if value not in ("", None)})
    return told


def _imported(report: ImportReport) -> dict[str, object]:
    skills = [
        {"id": one.id, "name": one.name, "description": one.description} for one in report.imported
    ]
    findings = _findings(report.findings)
    return {"imported": skills, "replaced": [*report.replaced], "findings": findings}


def _entry(artifact: Artifact) -> dict[str, object]:
    place = f"{SKILLS}/{quote(artifact.listed.id, safe='')}"
    return {
        "name": artifact.listed.name,
        "type": "archive" if artifact.is_archive else "skill-md",
        "description": artifact.listed.description,
        "url": f"{place}/archive" if artifact.is_archive else f"{place}/files/{artifact.files[0]}",
        "digest": artifact.digest,
    }
