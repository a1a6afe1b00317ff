"""Recorded requests by topic, in the order in which they are sent."""

import hashlib
import hmac

from tests.compatibility.mcp_scenarios import HANDSHAKE, INITIALIZE, META, MODERN
from tests.compatibility.rest_runner import Call, Form, Zip
from tests.compatibility.world import CSV_REPORT, PDF_TOOLS, skill_md

TOKEN = "recorded-token-of-a-test-server"  # noqa: S105 - only for tests
SECRET = "recorded-secret-of-a-git-host"  # noqa: S105 - only for tests

_API = "/api/v1"
_SESSIONS = f"{_API}/sessions"
_SESSION = f"{_SESSIONS}/{{session}}"
_NOTE = f"{_SESSION}/blocks/{{note}}"
_NO_TOKEN = {"Authorization": ""}
_ELSEWHERE = {"Origin": "https://elsewhere.example"}
_UPLOAD = "LS0tCm5hbWU6IGhlbGxvCmRlc2NyaXB0aW9uOiBTYXlzIGhlbGxvLgotLS0KSGVsbG8uCg=="
_BROKEN = "Tm8gZnJvbnRtYXR0ZXIuCg=="
_MARKDOWN = skill_md("from-text", "Came as one file.", "# Text\n\nFollow it.").encode()
_PUSH = b'{"ref": "refs/heads/main", "repository": {"clone_url": "https://example.com/a/b.git"}}'
_SIGNATURE = "sha256=" + hmac.new(SECRET.encode(), _PUSH, hashlib.sha256).hexdigest()
_NEW_SKILL = {"id": "fresh", "name": "fresh", "description": "A new skill.", "body": "# Fresh\n"}


def _match(tag: str) -> dict[str, str]:
    return {"If-Match": tag}


def _if_changed(name: str) -> dict[str, str]:
    return {"If-None-Match": f"{{{name}}}"}


PROMPTS = (
    Call("list", "GET", f"{_API}/prompts", save={"prompts-tag": "header etag"}),
    Call("list, unchanged", "GET", f"{_API}/prompts", headers=_if_changed("prompts-tag")),
    Call("list, HEAD", "HEAD", f"{_API}/prompts"),
    Call("get", "POST", f"{_API}/prompts/greet", {"arguments": {"who": "Ada", "language": "C"}}),
    Call("get, optional argument", "POST", f"{_API}/prompts/greet", {"arguments": {"who": 5}}),
    Call("get, with files", "POST", f"{_API}/prompts/pdf-tools"),
    Call("get, missing argument", "POST", f"{_API}/prompts/greet"),
    Call("get, list as argument", "POST", f"{_API}/prompts/greet", {"arguments": {"who": []}}),
    Call("get, unknown", "POST", f"{_API}/prompts/tides", {}),
    Call("get, wrong JSON", "POST", f"{_API}/prompts/greet", b"{"),
    Call("get, JSON array", "POST", f"{_API}/prompts/greet", []),
    Call("get, wrong method", "GET", f"{_API}/prompts/greet"),
    Call("get, text body", "POST", f"{_API}/prompts/greet", b"x", {"Content-Type": "text/plain"}),
    Call("refresh", "POST", f"{_API}/prompts/refresh"),
    Call("refresh, branch in body", "POST", f"{_API}/prompts/refresh", {"branch": "main"}),
    Call("refresh, unknown field", "POST", f"{_API}/prompts/refresh", {"other": 1}),
    Call("list of a repository", "GET", f"{_API}/prompts?repo={{repository}}&path=skills"),
    Call("list, empty repo", "GET", f"{_API}/prompts?repo="),
    Call("list, repo and source", "GET", f"{_API}/prompts?repo=https://a.example/b&source=c"),
    Call("list, file URL", "GET", f"{_API}/prompts?repo=file:///etc"),
    Call(
        "upload",
        "POST",
        f"{_API}/prompts/sources",
        {
            "source": "team",
            "contentHash": "abc",
            "files": [
                {"path": "hello.md", "content": _UPLOAD, "mode": "0644"},
                {"path": "broken.md", "content": _BROKEN},
            ],
        },
    ),
    Call(
        "upload, unchanged",
        "POST",
        f"{_API}/prompts/sources",
        {
            "source": "team",
            "contentHash": "abc",
            "files": [{"path": "hello.md", "content": _UPLOAD}],
        },
    ),
    Call(
        "upload, path that leaves",
        "POST",
        f"{_API}/prompts/sources",
        {"source": "bad", "files": [{"path": "../x.md", "content": _UPLOAD}]},
    ),
    Call("upload, no files", "POST", f"{_API}/prompts/sources", {"source": "bad", "files": []}),
    Call("upload, too large", "POST", f"{_API}/prompts/sources", kind="announce"),
    Call("list of an upload", "GET", f"{_API}/prompts?source=team"),
    Call("get of an upload", "POST", f"{_API}/prompts/hello?source=team"),
    Call("refresh of an upload", "POST", f"{_API}/prompts/refresh", {"source": "team"}),
    Call("list of an unknown upload", "GET", f"{_API}/prompts?source=nothing"),
    Call("tools", "GET", f"{_API}/tools"),
)

SKILLS = (
    Call("list", "GET", f"{_API}/skills", save={"skills-tag": "header etag"}),
    Call("list, unchanged", "GET", f"{_API}/skills", headers=_if_changed("skills-tag")),
    Call("list, first page", "GET", f"{_API}/skills?limit=1", save={"cursor": "data.nextCursor"}),
    Call("list, next page", "GET", f"{_API}/skills?limit=1&cursor={{cursor}}"),
    Call("list, user skills", "GET", f"{_API}/skills?source=user"),
    Call("list, wrong source", "GET", f"{_API}/skills?source=other"),
    Call("list, wrong limit", "GET", f"{_API}/skills?limit=0"),
    Call("search by name", "GET", f"{_API}/skills?q=notes"),
    Call("search, nothing found", "GET", f"{_API}/skills?q=zzzz"),
    Call("get user skill", "GET", f"{_API}/skills/notes", save={"skill-tag": "header etag"}),
    Call("get, unchanged", "GET", f"{_API}/skills/notes", headers=_if_changed("skill-tag")),
    Call("get skill of the repository", "GET", f"{_API}/skills/helper"),
    Call("get system skill", "GET", f"{_API}/skills/shared-id"),
    Call("get, unknown", "GET", f"{_API}/skills/nothing"),
    Call(
        "file",
        "GET",
        f"{_API}/skills/notes/files/references/format.md",
        save={"file-tag": "header etag"},
    ),
    Call(
        "file, unchanged",
        "GET",
        f"{_API}/skills/notes/files/references/format.md",
        headers=_if_changed("file-tag"),
    ),
    Call("file, unknown", "GET", f"{_API}/skills/notes/files/nothing.md"),
    Call("file, path that leaves", "GET", f"{_API}/skills/notes/files/..%2F..%2Fx"),
    Call("archive", "GET", f"{_API}/skills/helper/archive", save={"archive-tag": "header etag"}),
    Call(
        "archive, unchanged",
        "GET",
        f"{_API}/skills/helper/archive",
        headers=_if_changed("archive-tag"),
    ),
    Call("archive, unknown", "GET", f"{_API}/skills/nothing/archive"),
)

INSTALLERS = (
    Call(
        "index 0.2",
        "GET",
        "/.well-known/agent-skills/index.json",
        save={"index-tag": "header etag"},
    ),
    Call(
        "index 0.2, unchanged",
        "GET",
        "/.well-known/agent-skills/index.json",
        headers=_if_changed("index-tag"),
    ),
    Call("index 0.1", "GET", "/.well-known/skills/index.json"),
    Call("file", "GET", "/.well-known/skills/helper/references/forms.md"),
    Call("skill file of a flat prompt", "GET", "/.well-known/skills/greet/SKILL.md"),
    Call("file, unknown", "GET", "/.well-known/skills/helper/nothing.md"),
)

SKILL_CHANGES = (
    Call("check", "POST", f"{_API}/skills/check", _NEW_SKILL, prose=frozenset({"prompt"})),
    Call("check, nothing given", "POST", f"{_API}/skills/check", {"id": "", "name": ""}),
    Call(
        "check, wrong name",
        "POST",
        f"{_API}/skills/check",
        {"id": "fresh", "name": "Fresh One", "description": ""},
        prose=frozenset({"prompt"}),
    ),
    Call("add", "POST", f"{_API}/skills", _NEW_SKILL),
    Call("add, exists", "POST", f"{_API}/skills", _NEW_SKILL),
    Call("add, no description", "POST", f"{_API}/skills", {"id": "x", "name": "x"}),
    Call(
        "add, empty description",
        "POST",
        f"{_API}/skills",
        {"id": "x", "name": "x", "description": ""},
    ),
    Call("added skill", "GET", f"{_API}/skills/fresh", save={"digest": "data.digest"}),
    Call(
        "edit",
        "PUT",
        f"{_API}/skills/fresh",
        {"digest": "{digest}", "name": "fresh", "description": "Edited.", "body": "# New\n"},
        save={"edit": "data.change"},
    ),
    Call(
        "edit, older digest",
        "PUT",
        f"{_API}/skills/fresh",
        {"digest": "{digest}", "name": "fresh", "description": "Again.", "body": "# New\n"},
    ),
    Call("undo", "POST", f"{_API}/changes/{{edit}}/undo"),
    Call("undo, twice", "POST", f"{_API}/changes/{{edit}}/undo"),
    Call("undo, unknown", "POST", f"{_API}/changes/0000000000000000/undo"),
    Call(
        "edit system skill",
        "PUT",
        f"{_API}/skills/shared-id",
        {"digest": "{digest}", "name": "shared-id", "description": "x", "body": "x"},
    ),
    Call(
        "import zip",
        "POST",
        f"{_API}/skills/import?id=zipped&filename=pdf.zip",
        Zip({f"pdf-tools/{name}": text for name, text in PDF_TOOLS.items()}),
    ),
    Call(
        "import zip, exists",
        "POST",
        f"{_API}/skills/import?id=zipped&filename=pdf.zip",
        Zip({f"pdf-tools/{name}": text for name, text in PDF_TOOLS.items()}),
    ),
    Call(
        "import zip, replace",
        "POST",
        f"{_API}/skills/import?id=zipped&replace=true&filename=csv.zip",
        Zip({f"csv-report/{name}": text for name, text in CSV_REPORT.items()}),
    ),
    Call(
        "import zip, no skill",
        "POST",
        f"{_API}/skills/import?filename=x.zip",
        Zip({"readme.md": "Nothing"}),
    ),
    Call(
        "import zip, path that leaves",
        "POST",
        f"{_API}/skills/import?filename=x.zip",
        Zip({"../SKILL.md": "Nothing"}),
    ),
    Call(
        "import form",
        "POST",
        f"{_API}/skills/import",
        Form({"id": "from-form"}, "from-form.md", _MARKDOWN),
    ),
    Call(
        "import repository",
        "POST",
        f"{_API}/skills/import",
        {"source": "{repository}/skills/beta"},
    ),
    Call("import folder", "POST", f"{_API}/skills/import", {"source": "./folder"}),
    Call("delete", "DELETE", f"{_API}/skills/zipped", save={"deletion": "data.change"}),
    Call("undo deletion", "POST", f"{_API}/changes/{{deletion}}/undo"),
    Call("delete again", "DELETE", f"{_API}/skills/zipped"),
    Call("delete, unknown", "DELETE", f"{_API}/skills/zipped"),
    Call("delete system skill", "DELETE", f"{_API}/skills/shared-id"),
    Call("delete shadowed skill", "DELETE", f"{_API}/skills/shared-id?shadowed=true"),
    Call("delete skill of the repository", "DELETE", f"{_API}/skills/helper"),
    Call("list afterwards", "GET", f"{_API}/skills"),
)

SESSIONS = (
    Call("list, empty", "GET", _SESSIONS),
    Call("block types", "GET", f"{_API}/block-types"),
    Call(
        "create",
        "POST",
        _SESSIONS,
        {"name": "Research", "budgets": {"total": 100, "working": 2}},
        save={"session": "data.id"},
    ),
    Call("create, no name", "POST", _SESSIONS, {}),
    Call("create, line break in name", "POST", _SESSIONS, {"name": "a\nb"}),
    Call("create, unknown template", "POST", _SESSIONS, {"name": "x", "template": "0" * 32}),
    Call("get", "GET", _SESSION),
    Call("get, unknown", "GET", f"{_SESSIONS}/nothing"),
    Call("rename", "PATCH", _SESSION, {"name": "Renamed"}, _match('"1"')),
    Call("rename, older version", "PATCH", _SESSION, {"name": "No"}, _match('"1"')),
    Call("rename, no version", "PATCH", _SESSION, {"name": "No"}),
    Call("rename, unknown field", "PATCH", _SESSION, {"other": 1}, _match('"2"')),
    Call("duplicate", "POST", f"{_SESSION}/duplicate", {"name": "Copy"}, save={"copy": "data.id"}),
    Call("list", "GET", _SESSIONS, save={}),
    Call("list, first page", "GET", f"{_SESSIONS}?limit=1", save={"page": "data.nextCursor"}),
    Call("list, next page", "GET", f"{_SESSIONS}?limit=1&cursor={{page}}"),
    Call("list, wrong cursor", "GET", f"{_SESSIONS}?cursor=a-b"),
    Call("delete, no version", "DELETE", f"{_SESSIONS}/{{copy}}"),
    Call("delete, wrong version", "DELETE", f"{_SESSIONS}/{{copy}}", headers=_match('"99"')),
    Call("delete", "DELETE", f"{_SESSIONS}/{{copy}}", headers=_match('"1"')),
    Call("deleted", "GET", f"{_SESSIONS}/{{copy}}"),
)

BLOCKS = (
    Call(
        "create note",
        "POST",
        f"{_SESSION}/blocks",
        {"type": "note", "content": "A note of some words."},
        save={"note": "data.id", "note-version": "data.version"},
    ),
    Call(
        "create system prompt",
        "POST",
        f"{_SESSION}/blocks",
        {"type": "system_prompt", "content": "You review papers."},
        save={"prompt-block": "data.id"},
    ),
    Call(
        "create before",
        "POST",
        f"{_SESSION}/blocks",
        {"type": "code", "content": "x = 1", "before": "{note}"},
        save={"code": "data.id"},
    ),
    Call(
        "create in a zone",
        "POST",
        f"{_SESSION}/blocks",
        {"type": "note", "content": "Stable.", "zone": "STABLE", "first": True},
    ),
    Call("create, unknown type", "POST", f"{_SESSION}/blocks", {"type": "x", "content": "y"}),
    Call("create, no content", "POST", f"{_SESSION}/blocks", {"type": "note"}),
    Call("create, NUL", "POST", f"{_SESSION}/blocks", {"type": "note", "content": "a\0b"}),
    Call(
        "create, unknown neighbour",
        "POST",
        f"{_SESSION}/blocks",
        {"type": "note", "content": "y", "after": "0" * 32},
    ),
    Call("create, too large", "POST", f"{_SESSION}/blocks", kind="announce"),
    Call("list", "GET", f"{_SESSION}/blocks"),
    Call("list, one zone", "GET", f"{_SESSION}/blocks?zone=STABLE"),
    Call("list, one type", "GET", f"{_SESSION}/blocks?type=code"),
    Call("list, with a text", "GET", f"{_SESSION}/blocks?q=words"),
    Call("list, wrong zone", "GET", f"{_SESSION}/blocks?zone=OTHER"),
    Call("get", "GET", _NOTE, save={"note-tag": "header etag"}),
    Call("get, unknown", "GET", f"{_SESSION}/blocks/{'0' * 32}"),
    Call(
        "edit",
        "PATCH",
        _NOTE,
        {"content": "Edited words."},
        _match("{note-tag}"),
        save={"newer-tag": "header etag"},
    ),
    Call("edit, older version", "PATCH", _NOTE, {"content": "No"}, _match("{note-tag}")),
    Call("edit, no version", "PATCH", _NOTE, {"content": "No"}),
    Call(
        "move",
        "POST",
        f"{_NOTE}/move",
        {"zone": "STABLE", "first": True},
        _match("{newer-tag}"),
        save={"moved-tag": "header etag"},
    ),
    Call("move, no version", "POST", f"{_NOTE}/move", {"zone": "STABLE"}),
    Call("move, wrong zone", "POST", f"{_NOTE}/move", {"zone": "x"}, _match("{moved-tag}")),
    Call("delete, no version", "DELETE", _NOTE),
    Call("delete", "DELETE", _NOTE, headers=_match("{moved-tag}")),
    Call("deleted blocks", "GET", f"{_SESSION}/deleted-blocks"),
    Call("undelete", "POST", f"{_NOTE}/undelete"),
    Call("undelete, not deleted", "POST", f"{_NOTE}/undelete"),
    Call("context", "GET", f"{_SESSION}/context", save={"context-tag": "header etag"}),
    Call("context, unchanged", "GET", f"{_SESSION}/context", headers=_if_changed("context-tag")),
    Call("context as text", "GET", f"{_SESSION}/context?format=text"),
    Call("context, wrong format", "GET", f"{_SESSION}/context?format=x"),
)

TEMPLATES = (
    Call("list, empty", "GET", f"{_API}/templates"),
    Call(
        "create",
        "POST",
        f"{_API}/templates",
        {"session": "{session}", "name": "Reviews", "description": "For papers."},
        save={"template": "data.id"},
    ),
    Call(
        "create, exists",
        "POST",
        f"{_API}/templates",
        {"session": "{session}", "name": "Reviews"},
    ),
    Call("create, unknown session", "POST", f"{_API}/templates", {"session": "x", "name": "y"}),
    Call("list", "GET", f"{_API}/templates"),
    Call("get", "GET", f"{_API}/templates/{{template}}"),
    Call("get, unknown", "GET", f"{_API}/templates/nothing"),
    Call(
        "edit",
        "PATCH",
        f"{_API}/templates/{{template}}",
        {"name": "Papers", "session": "{session}"},
        _match('"1"'),
        save={"template-tag": "header etag"},
    ),
    Call(
        "edit, older version",
        "PATCH",
        f"{_API}/templates/{{template}}",
        {"name": "No"},
        _match('"1"'),
    ),
    Call(
        "session from it",
        "POST",
        _SESSIONS,
        {"name": "From template", "template": "{template}"},
        save={"made": "data.id"},
    ),
    Call("blocks of that session", "GET", f"{_SESSIONS}/{{made}}/blocks"),
    Call(
        "apply, append",
        "POST",
        f"{_SESSIONS}/{{made}}/apply-template",
        {"template": "{template}"},
    ),
    Call(
        "apply, replace",
        "POST",
        f"{_SESSIONS}/{{made}}/apply-template",
        {"template": "{template}", "how": "replace"},
    ),
    Call(
        "apply, older revision",
        "POST",
        f"{_SESSIONS}/{{made}}/apply-template",
        {"template": "{template}"},
        _match('"1"'),
    ),
    Call("delete, no version", "DELETE", f"{_API}/templates/{{template}}"),
    Call(
        "delete",
        "DELETE",
        f"{_API}/templates/{{template}}",
        headers=_match("{template-tag}"),
    ),
)

SNAPSHOTS = (
    Call("list, empty", "GET", f"{_SESSION}/snapshots"),
    Call(
        "create",
        "POST",
        f"{_SESSION}/snapshots",
        {"name": "Before"},
        save={"snapshot": "data.id"},
    ),
    Call("create, no name", "POST", f"{_SESSION}/snapshots", {}),
    Call("list", "GET", f"{_SESSION}/snapshots"),
    Call("get", "GET", f"{_SESSION}/snapshots/{{snapshot}}"),
    Call("get, unknown", "GET", f"{_SESSION}/snapshots/nothing"),
    Call(
        "restore, older revision",
        "POST",
        f"{_SESSION}/snapshots/{{snapshot}}/restore",
        headers=_match('"1"'),
    ),
    Call("restore", "POST", f"{_SESSION}/snapshots/{{snapshot}}/restore"),
    Call("list afterwards", "GET", f"{_SESSION}/snapshots"),
    Call("delete", "DELETE", f"{_SESSION}/snapshots/{{snapshot}}"),
    Call("delete, unknown", "DELETE", f"{_SESSION}/snapshots/{{snapshot}}"),
)

IMPORTS = (
    Call("folder", "GET", f"{_API}/folder-skills?folder={{world}}/broken"),
    Call("folder, unknown", "GET", f"{_API}/folder-skills?folder={{world}}/nothing"),
    Call("preview folder", "POST", f"{_API}/skill-previews", {"folder": "{world}/skills"}),
    Call("preview repository", "POST", f"{_API}/skill-previews", {"source": "{repository}"}),
    Call(
        "preview zip",
        "POST",
        f"{_API}/skill-previews?filename=csv.zip",
        Zip({f"csv-report/{name}": text for name, text in CSV_REPORT.items()}),
    ),
    Call("preview, nothing given", "POST", f"{_API}/skill-previews", {}),
    Call(
        "import folder",
        "POST",
        f"{_SESSION}/import",
        {"folder": "{world}/skills", "skills": ["pdf-tools"], "zone": "PERMANENT"},
    ),
    Call(
        "import folder, exists",
        "POST",
        f"{_SESSION}/import",
        {"folder": "{world}/skills", "skills": ["pdf-tools"]},
    ),
    Call(
        "import folder, replace",
        "POST",
        f"{_SESSION}/import",
        {"folder": "{world}/skills", "skills": ["pdf-tools"], "same": "replace"},
    ),
    Call(
        "import repository, keep",
        "POST",
        f"{_SESSION}/import",
        {"source": "{repository}", "skills": ["alpha"], "same": "keep"},
    ),
    Call(
        "import Markdown",
        "POST",
        f"{_SESSION}/import?filename=from-text.md&zone=WORKING",
        _MARKDOWN,
        {"Content-Type": "text/markdown"},
    ),
    Call(
        "import Markdown, no frontmatter",
        "POST",
        f"{_SESSION}/import?filename=x.md",
        b"# Nothing\n",
        {"Content-Type": "text/markdown"},
    ),
    Call(
        "import Markdown, no name",
        "POST",
        f"{_SESSION}/import?filename=x.md",
        b"---\ndescription: x\n---\n# Nothing\n",
        {"Content-Type": "text/markdown"},
    ),
    Call(
        "import zip, no skill",
        "POST",
        f"{_SESSION}/import?filename=x.zip",
        Zip({"readme.md": "Nothing"}),
    ),
    Call("blocks afterwards", "GET", f"{_SESSION}/blocks?type=skill"),
    Call("export", "GET", f"{_SESSION}/export", prose=frozenset({"description"})),
    Call("export, unknown", "GET", f"{_SESSIONS}/nothing/export"),
    Call(
        "import session",
        "POST",
        f"{_SESSIONS}/import?filename=csv.zip&name=Opened",
        Zip({f"csv-report/{name}": text for name, text in CSV_REPORT.items()}),
    ),
)

EVENTS = (
    Call("first of all", "GET", f"{_API}/events?after=0", kind="stream"),
    Call("first of a session", "GET", f"{_API}/events?session={{made}}&after=0", kind="stream"),
    Call(
        "after the last one that was seen",
        "GET",
        f"{_API}/events",
        headers={"Last-Event-ID": "1"},
        kind="stream",
    ),
    Call("wrong number", "GET", f"{_API}/events?after=x"),
)

HEALTH = (
    Call("alive", "GET", "/healthz", headers=_NO_TOKEN),
    Call("ready", "GET", "/readyz", headers=_NO_TOKEN),
    Call("metrics", "GET", "/metrics"),
    Call("metrics, no token", "GET", "/metrics", headers=_NO_TOKEN),
)

WEBHOOKS = (
    Call(
        "signed push of an unknown repository",
        "POST",
        f"{_API}/webhooks/git",
        _PUSH,
        {**_NO_TOKEN, "X-GitHub-Event": "push", "X-Hub-Signature-256": _SIGNATURE},
    ),
    Call(
        "another event",
        "POST",
        f"{_API}/webhooks/git",
        _PUSH,
        {**_NO_TOKEN, "X-GitHub-Event": "ping", "X-Hub-Signature-256": _SIGNATURE},
    ),
    Call(
        "wrong signature",
        "POST",
        f"{_API}/webhooks/git",
        _PUSH,
        {**_NO_TOKEN, "X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=0"},
    ),
    Call(
        "GitLab push of the served repository",
        "POST",
        f"{_API}/webhooks/git",
        {"ref": "refs/heads/main", "project": {"git_http_url": "{repository}"}},
        {**_NO_TOKEN, "X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": SECRET},
    ),
    Call(
        "push without a repository",
        "POST",
        f"{_API}/webhooks/git",
        {"ref": "refs/heads/main"},
        {**_NO_TOKEN, "X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": SECRET},
    ),
)

ERRORS = (
    Call("no token", "GET", f"{_API}/prompts", headers=_NO_TOKEN),
    Call("wrong token", "GET", f"{_API}/skills", headers={"Authorization": "Bearer wrong"}),
    Call("wrong scheme", "GET", f"{_API}/skills", headers={"Authorization": "Basic eDp5"}),
    Call("other site, MCP", "POST", "/mcp", {}, _ELSEWHERE),
    Call("other host", "GET", f"{_API}/prompts", headers={"Host": "elsewhere.example"}),
    Call("unknown route", "GET", f"{_API}/nothing"),
    Call("unknown page", "GET", "/nothing", headers={"Accept": "text/html"}),
    Call("wrong method", "DELETE", f"{_API}/prompts"),
    Call("wrong method, health", "POST", "/healthz", {}),
    Call("text body", "POST", f"{_API}/skills", b"x", {"Content-Type": "text/plain"}),
    Call("wrong JSON", "POST", f"{_API}/skills", b"{"),
    Call("too large", "POST", f"{_API}/skills", kind="announce"),
    Call("own request id", "GET", "/healthz", headers={"X-Request-Id": "abc.def"}),
)

_MCP = {"Accept": "application/json, text/event-stream"}
_MODERN = {**_MCP, "Mcp-Protocol-Version": MODERN}


def _rpc(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _modern(method: str, **params: object) -> Call:
    name = str(params.get("name", ""))
    headers = {**_MODERN, "Mcp-Method": method} | ({"Mcp-Name": name} if name else {})
    body = _rpc(method, **params, _meta=META)
    return Call(f"{method} {name}".strip(), "POST", "/mcp", body, headers, prose=_MCP_PROSE)


_MCP_PROSE = frozenset({"instructions", "title"})
_HANDSHAKE = {**_MCP, "Mcp-Session-Id": "{mcp}", "Mcp-Protocol-Version": HANDSHAKE}
MCP = (
    _modern("server/discover"),
    _modern("prompts/list"),
    _modern("prompts/get", name="greet", arguments={"who": "Ada"}),
    _modern("prompts/get", name="nothing"),
    _modern("tools/call", name="load_skill", arguments={"name": "notes"}),
    _modern("resources/list"),
    _modern("skills/list"),
    Call(
        "initialize",
        "POST",
        "/mcp",
        _rpc("initialize", **INITIALIZE),
        _MCP,
        save={"mcp": "header mcp-session-id"},
        prose=_MCP_PROSE,
    ),
    Call(
        "initialized",
        "POST",
        "/mcp",
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _HANDSHAKE,
    ),
    Call("prompts/list of a session", "POST", "/mcp", _rpc("prompts/list"), _HANDSHAKE),
    Call("end of a session", "DELETE", "/mcp", None, _HANDSHAKE),
    Call("session that has ended", "POST", "/mcp", _rpc("prompts/list"), _HANDSHAKE),
    Call("no token", "POST", "/mcp", _rpc("prompts/list"), {**_MCP, **_NO_TOKEN}),
    Call("other media type", "POST", "/mcp", _rpc("ping"), {**_MODERN, "Accept": "text/html"}),
)

_WRONG_TOKEN = {"Authorization": "Bearer wrong"}
LIMITS = (
    Call("wrong token, too often", "GET", f"{_API}/tools", headers=_WRONG_TOKEN, times=31),
    Call("right token", "GET", f"{_API}/tools"),
)

# For a server without a token and a repository.
OPEN_SERVER = (
    Call("other site, change", "POST", f"{_API}/skills", _NEW_SKILL, _ELSEWHERE),
    Call("other site, source", "GET", f"{_API}/prompts?repo=https://a.example/b", None, _ELSEWHERE),
    Call("other site, fetch", "POST", f"{_API}/skills", {}, {"Sec-Fetch-Site": "cross-site"}),
    Call("folder scan off", "GET", f"{_API}/folder-skills?folder={{world}}/skills"),
    Call("webhook off", "POST", f"{_API}/webhooks/git", {}),
    Call("built-in prompts", "GET", f"{_API}/prompts"),
    Call(
        "built-in prompt",
        "POST",
        f"{_API}/prompts/plan-skill",
        prose=frozenset({"description", "text"}),
    ),
    Call("ready", "GET", "/readyz"),
)

TOPICS = {
    "rest-prompts": PROMPTS,
    "rest-skills": SKILLS,
    "rest-installers": INSTALLERS,
    "rest-skill-changes": SKILL_CHANGES,
    "rest-sessions": SESSIONS,
    "rest-blocks": BLOCKS,
    "rest-templates": TEMPLATES,
    "rest-snapshots": SNAPSHOTS,
    "rest-imports": IMPORTS,
    "rest-events": EVENTS,
    "rest-health": HEALTH,
    "rest-webhooks": WEBHOOKS,
    "rest-errors": ERRORS,
    "mcp-http": MCP,
    "rest-limits": LIMITS,  # last, since wrong tokens are rate limited from then on
}
