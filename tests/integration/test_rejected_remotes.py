"""Failing and hostile hosts: one error, and no folder is changed."""

import base64
import gzip
import hashlib
import json
import shutil
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from skillhall._internal.net.connection import NetworkSettings, _default_tls_context
from skillhall._internal.net.fetch import fetch
from skillhall._internal.sources.archive import upload
from skillhall._internal.sources.archive.source import DEFAULT_ARCHIVE_LIMITS
from skillhall._internal.sources.git import source as git_source
from skillhall._internal.sources.git.remote import GitAccess, GitLimits
from skillhall._internal.sources.site.site_index import SCHEMA_URL
from tests.support.archives import SKILL, tgz_of, zip_of
from tests.support.cli_sandbox import ADD, IMPORT, PASSWORD, SECRETS, CliSandbox
from tests.support.git_server import FOLDER, LINK, GitRepo, GitServer, git_repo, run_git_server
from tests.support.github_api_server import (
    GitHubApiServer,
    RepoFile,
    Repository,
    run_github_api_server,
)
from tests.support.hostile_archives import hostile_archives
from tests.support.http_server import (
    HttpServer,
    Route,
    make_certificate,
    never_respond,
    redirect,
    respond,
    respond_chunked,
    respond_endlessly,
    run_http_server,
)
from tests.support.oci_images import (
    MANIFEST,
    Registry,
    describe,
    digest_of,
    make_index,
    make_manifest,
    pack_layer,
)

VALID_ZIP = zip_of({"SKILL.md": SKILL})
HASTY = NetworkSettings(total=0.5, idle=0.2)
PAGE = b"<html>Sign in</html>"
BOMB = gzip.compress(bytes(2_000_000))
GZIP = {"Content-Encoding": "gzip"}
GREETING = b"HTTP/1.1 200 OK\r\n\r\n"
PROMISED = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n"


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow the test servers; all other private addresses stay rejected."""
    monkeypatch.setenv("SKILLHALL_ALLOW_NETWORKS", "127.0.0.1/32")


# Files by URL


@pytest.fixture
def site() -> Iterator[HttpServer]:
    with run_http_server() as running:
        yield running


ANSWERS: dict[str, tuple[Route, str]] = {
    "nothing there": (respond("404 Not Found", PAGE), "not_found"),
    "gone": (respond("410 Gone"), "not_found"),
    "a fault": (respond("500 Oh", PASSWORD.encode()), "upstream_error"),
    "out of order": (respond("503 Service Unavailable"), "upstream_error"),
    "not allowed": (respond("401 Unauthorized"), "upstream_error"),
    "too many requests": (respond("429 No", headers={"Retry-After": "9"}), "rate_limited"),
    "a page": (respond(body=PAGE), "archive_rejected"),
    "less than promised": (respond(body=VALID_ZIP, length=len(VALID_ZIP) + 1), "upstream_error"),
    "half a chunk": (respond_chunked(VALID_ZIP, end=b"ff\r\nx"), "upstream_error"),
    "more than is taken": (respond_endlessly(PROMISED), "too_large"),
    "damaged gzip": (respond(body=b"junk", headers=GZIP), "upstream_error"),
    "no HTTP": (lambda talk: talk.send(b"SSH-2.0-x\r\n\r\n"), "upstream_error"),
    "hanging up": (lambda _: None, "upstream_error"),
    "a circle": (redirect("/x.zip"), "upstream_error"),
    "to nowhere": (respond("302 Found"), "upstream_error"),
    "to a private host": (redirect("http://10.0.0.1/x.zip"), "source_rejected"),
    "to metadata": (redirect("http://169.254.169.254/x.zip"), "source_rejected"),
    "to another loopback": (redirect("http://[::1]/x.zip"), "source_rejected"),
    "to a number": (redirect("http://2130706433/x.zip"), "source_rejected"),
    "to a file": (redirect("file:///etc/passwd"), "source_rejected"),
    "to a password": (redirect(f"https://a:{PASSWORD}@b.example/x"), "source_rejected"),
}


@pytest.mark.parametrize(("route", "code"), ANSWERS.values(), ids=ANSWERS)
def test_malformed_response_gives_one_error(
    sandbox: CliSandbox, site: HttpServer, route: Route, code: str
) -> None:
    site.routes["/x.zip"] = route
    for command in (ADD, IMPORT):
        sandbox.check_rejected(command, [site.url("/x.zip")], code)
    assert all("authorization" not in request.headers for request in site.requests)


@pytest.mark.parametrize("body", [PAGE, b"", b"\xff\xfe\x00", b"---\nname: [\n---\n"])
def test_html_page_is_rejected(sandbox: CliSandbox, site: HttpServer, body: bytes) -> None:
    site.routes["/SKILL.md"] = respond(body=body)
    for command in (ADD, IMPORT):
        sandbox.check_rejected(command, [site.url("/SKILL.md")], "invalid_skill")


@pytest.mark.parametrize(
    "route", [never_respond, lambda writer: writer.send_slowly(GREETING + VALID_ZIP, 0.1)]
)
def test_slow_host_times_out(
    sandbox: CliSandbox, site: HttpServer, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "fetch", partial(fetch, network=HASTY))  # instead of 30 seconds
    site.routes["/x.zip"] = route
    sandbox.check_rejected(ADD, [site.url("/x.zip")], "upstream_timeout")


@pytest.mark.parametrize("route", [respond_endlessly(GREETING), respond(body=BOMB, headers=GZIP)])
def test_endless_body_is_rejected(
    sandbox: CliSandbox, site: HttpServer, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = replace(DEFAULT_ARCHIVE_LIMITS, total=1_000_000)
    monkeypatch.setattr(upload, "DEFAULT_ARCHIVE_LIMITS", limits)
    site.routes["/x.zip"] = route
    sandbox.check_rejected(ADD, [site.url("/x.zip")], "too_large")


def test_redirect_from_https_to_http_is_rejected(
    sandbox: CliSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = make_certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("SKILLHALL_ALLOW_NETWORKS", "127.0.0.0/8 ::1/128")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    _default_tls_context.cache_clear()
    with run_http_server(context) as safe:
        safe.routes["/x.zip"] = redirect("http://127.0.0.1:1/x.zip")
        result = sandbox.check_rejected(ADD, [safe.url("/x.zip", "localhost")], "source_rejected")
    _default_tls_context.cache_clear()
    assert "from https to http" in result.error["message"]


# Indexes of sites


INDEX = "/.well-known/agent-skills/index.json"
OLD_INDEX = "/.well-known/skills/index.json"
DIGEST = f"sha256:{hashlib.sha256(VALID_ZIP).hexdigest()}"
ENTRY = {"name": "pdf", "type": "archive", "url": "/pdf.zip", "digest": DIGEST}


def index(*entries: object, **fields: object) -> bytes:
    return json.dumps({"$schema": SCHEMA_URL, "skills": entries, **fields}).encode()


def old_index(**fields: object) -> bytes:
    return json.dumps({"skills": [{"name": "pdf", "files": ["SKILL.md"], **fields}]}).encode()


def archive_entry(data: bytes) -> tuple[bytes, bytes]:
    """An index that lists the digest of an archive, and the archive."""
    return index({**ENTRY, "digest": f"sha256:{hashlib.sha256(data).hexdigest()}"}), data


INDEXES: dict[str, tuple[bytes, str]] = {
    "a page": (PAGE, "upstream_error"),
    "a list": (b"[]", "upstream_error"),
    "another version": (index(ENTRY, **{"$schema": "https://x.example/9"}), "upstream_error"),
    "no skills": (index(), "not_found"),
    "skills that are no list": (b'{"skills": 1}', "upstream_error"),
    "skills that are no objects": (index("pdf"), "upstream_error"),
    "two keys of one name": (b'{"skills": [], "skills": []}', "upstream_error"),
    "brackets without end": (b'{"skills":' + b"[" * 100_000, "upstream_error"),
    "more skills than are read": (index(*[ENTRY] * 2_001), "upstream_error"),
}
BAD_ENTRIES: dict[str, dict[str, object]] = {
    "another file": {"digest": f"sha256:{'0' * 64}"},
    "no digest": {"digest": ""},
    "a weak digest": {"digest": "md5:d41d8cd98f00b204e9800998ecf8427e"},
    "an unknown type": {"type": "exe"},
    "a name that climbs out": {"name": "../pdf"},
    "a name with a slash": {"name": "a/pdf"},
    "a name of a device": {"name": "con"},
    "an invisible name": {"name": "pdf\u202e"},
    "no name": {"name": ""},
    "a file of this machine": {"url": "file:///etc/passwd"},
    "a private host": {"url": "http://10.0.0.1/pdf.zip"},
    "metadata of a cloud": {"url": "http://169.254.169.254/pdf.zip"},
    "a password": {"url": f"https://a:{PASSWORD}@b.example/pdf.zip"},
    "brackets": {"url": "https://[x/pdf.zip"},
    "a missing file": {"url": "/none.zip"},
}
BAD_FILES: dict[str, object] = {
    "a path that climbs out": ["SKILL.md", "../../x"],
    "an absolute path": ["SKILL.md", "/etc/passwd"],
    "a backslash": ["SKILL.md", "..\\x"],
    "an escape": ["SKILL.md", "\x1b[2J"],
    "one path twice": ["SKILL.md", "SKILL.md"],
    "no SKILL.md": ["notes.md"],
    "a missing file": ["SKILL.md", "none.md"],
    "numbers": [1],
    "no list": "SKILL.md",
}


@pytest.mark.parametrize(("body", "code"), INDEXES.values(), ids=INDEXES)
def test_malformed_index_gives_one_error(
    sandbox: CliSandbox, site: HttpServer, body: bytes, code: str
) -> None:
    site.routes[INDEX] = respond(body=body)
    for command in (ADD, IMPORT):
        sandbox.check_rejected(command, [site.url("/")], code)


@pytest.mark.parametrize(
    ("route", "code"), [ANSWERS[name] for name in ANSWERS if ANSWERS[name][1] != "archive_rejected"]
)
def test_site_with_malformed_response_gives_one_error(
    sandbox: CliSandbox, site: HttpServer, route: Route, code: str
) -> None:
    site.routes |= {INDEX: route, OLD_INDEX: route, "/x.zip": route}
    sandbox.check_rejected(ADD, [site.url("")], code)
    assert all("authorization" not in request.headers for request in site.requests)


@pytest.mark.parametrize("changes", BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_skill_that_differs_from_the_index_is_rejected(
    sandbox: CliSandbox, site: HttpServer, changes: dict[str, object]
) -> None:
    site.routes |= {INDEX: respond(body=index({**ENTRY, **changes}))}
    site.routes["/pdf.zip"] = respond(body=VALID_ZIP)
    result = sandbox.check_rejected(ADD, [site.url("")], "invalid_skill")
    assert "cannot be installed" in result.out


@pytest.mark.parametrize("files", BAD_FILES.values(), ids=BAD_FILES)
def test_hostile_file_list_is_rejected(
    sandbox: CliSandbox, site: HttpServer, files: object
) -> None:
    site.routes[OLD_INDEX] = respond(body=old_index(files=files))
    site.routes["/.well-known/skills/pdf/SKILL.md"] = respond(body=SKILL)
    sandbox.check_rejected(ADD, [site.url("")], "invalid_skill")


@pytest.mark.parametrize(
    "name",
    [
        "a zip with a name that climbs out",
        "a tar with a link",
        "a zip that unpacks to much more than it is",
        "a page instead of a zip",
    ],
)
def test_hostile_archive_in_an_index_is_rejected(
    sandbox: CliSandbox, site: HttpServer, name: str
) -> None:
    hostile = dict(hostile_archives())[name]
    body, archive = archive_entry(hostile.data)
    site.routes |= {INDEX: respond(body=body), "/pdf.zip": respond(body=archive)}
    code = "too_large" if hostile.code == "too_large" else "invalid_skill"
    sandbox.check_rejected(ADD, [site.url("")], code)


def test_broken_skill_of_an_index_does_not_stop_the_others(
    sandbox: CliSandbox, site: HttpServer
) -> None:
    broken = {**ENTRY, "name": "broken", "digest": f"sha256:{'0' * 64}"}
    site.routes |= {INDEX: respond(body=index(broken, ENTRY, ENTRY))}
    site.routes["/pdf.zip"] = respond(body=VALID_ZIP)
    result = sandbox.run(*ADD, "--json", site.url(""), "--skill", "pdf")
    assert result.code == 0
    arguments = [site.url(""), "--skill", "broken"]
    sandbox.check_rejected(ADD, arguments, "invalid_skill", ignored=["data"])
    assert (sandbox.project / ".agents/skills/pdf/SKILL.md").read_bytes() == SKILL


def test_listing_of_a_folder_is_not_an_index(sandbox: CliSandbox, site: HttpServer) -> None:
    site.routes["/"] = respond(body=b'<a href="pdf/SKILL.md">pdf</a>')
    sandbox.check_rejected(ADD, [site.url("/")], "not_found")


# Packages of npm


TARBALL = tgz_of({"package/skills/pdf/SKILL.md": SKILL})


def sha512(data: bytes) -> str:
    return f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"


@pytest.fixture
def registry(site: HttpServer, monkeypatch: pytest.MonkeyPatch) -> HttpServer:
    for name in ("NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("npm_config_registry", site.url("/npm/"))
    site.routes["/pdf.tgz"] = respond(body=TARBALL)
    return site


def package(site: HttpServer, **dist: object) -> bytes:
    dist = {"integrity": sha512(TARBALL), "tarball": site.url("/pdf.tgz"), **dist}
    document = {"dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"dist": dist}}}
    return json.dumps(document).encode()


PACKAGES: dict[str, bytes] = {
    "a page": PAGE,
    "a list": b"[]",
    "no versions": b'{"dist-tags": {"latest": "1.0.0"}}',
    "no dist": b'{"dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {}}}',
    "two keys of one name": b'{"versions": {}, "versions": {}}',
}
DISTS: dict[str, tuple[dict[str, object], str]] = {
    "another file": ({"integrity": sha512(b"x")}, "archive_rejected"),
    "a weak digest only": ({"integrity": "sha1-x"}, "upstream_error"),
    "no digest": ({"integrity": None}, "upstream_error"),
    "a malformed digest": ({"integrity": "sha512-!"}, "upstream_error"),
    "no URL": ({"tarball": 1}, "upstream_error"),
    "a file of this machine": ({"tarball": "file:///etc/passwd"}, "source_rejected"),
    "metadata of a cloud": ({"tarball": "http://169.254.169.254/x.tgz"}, "source_rejected"),
    "a private host": ({"tarball": "https://10.0.0.1/x.tgz"}, "source_rejected"),
    "a password": ({"tarball": f"https://a:{PASSWORD}@b.example/x.tgz"}, "source_rejected"),
}


@pytest.mark.parametrize("body", PACKAGES.values(), ids=PACKAGES)
def test_malformed_package_document_gives_one_error(
    sandbox: CliSandbox, registry: HttpServer, body: bytes
) -> None:
    registry.routes["/npm/pdf"] = respond(body=body)
    for command in (ADD, IMPORT):
        sandbox.check_rejected(command, ["npm:pdf"], "upstream_error")


@pytest.mark.parametrize(("dist", "code"), DISTS.values(), ids=DISTS)
def test_package_that_differs_from_its_document_is_rejected(
    sandbox: CliSandbox, registry: HttpServer, dist: dict[str, object], code: str
) -> None:
    registry.routes["/npm/pdf"] = respond(body=package(registry, **dist))
    sandbox.check_rejected(ADD, ["npm:pdf"], code)


@pytest.mark.parametrize(
    "name",
    [
        "a tar with a name that climbs out",
        "a tar with a link",
        "a tar that unpacks to much more than it is",
        "a tar of two gzip streams",
        "a page instead of a tar",
    ],
)
def test_hostile_package_is_rejected(sandbox: CliSandbox, registry: HttpServer, name: str) -> None:
    hostile = dict(hostile_archives())[name]
    registry.routes["/npm/pdf"] = respond(body=package(registry, integrity=sha512(hostile.data)))
    registry.routes["/pdf.tgz"] = respond(body=hostile.data)
    sandbox.check_rejected(ADD, ["npm:pdf"], hostile.code)


@pytest.mark.parametrize("source", ["npm:none", "npm:pdf@9.9.9", "npm:pdf@next", "npm:empty"])
def test_missing_package_or_version_is_not_found(
    sandbox: CliSandbox, registry: HttpServer, source: str
) -> None:
    registry.routes["/npm/pdf"] = respond(body=package(registry))
    empty = tgz_of({"package/package.json": b"{}"})
    registry.routes["/npm/empty"] = respond(
        body=package(registry, integrity=sha512(empty), tarball=registry.url("/empty.tgz"))
    )
    registry.routes["/empty.tgz"] = respond(body=empty)
    sandbox.check_rejected(ADD, [source], "not_found")


@pytest.mark.parametrize(
    ("route", "code"), [ANSWERS[name] for name in ANSWERS if ANSWERS[name][1] != "archive_rejected"]
)
def test_registry_with_malformed_response_gives_one_error(
    sandbox: CliSandbox, registry: HttpServer, route: Route, code: str
) -> None:
    registry.routes |= {"/npm/pdf": route, "/x.zip": route}
    sandbox.check_rejected(ADD, ["npm:pdf"], code)


def test_token_of_a_registry_is_sent_to_it_alone(
    sandbox: CliSandbox, registry: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPM_TOKEN", PASSWORD)
    location = registry.url("/npm/").partition(":")[2]
    config = sandbox.folder / "home/.npmrc"
    config.write_text(f"{location}:_authToken=${{NPM_TOKEN}}\n", encoding="utf-8")
    project = f"registry={registry.url('/evil/')}\n{registry.url('/')[5:]}:_authToken=stolen\n"
    (sandbox.project / ".npmrc").write_text(project, encoding="utf-8")
    registry.routes["/npm/pdf"] = respond(body=package(registry))
    result = sandbox.run(*ADD, "--json", "npm:pdf")
    assert (result.code, PASSWORD in result.out + result.err) == (0, False)
    sent = {one.target: one.headers.get("authorization") for one in registry.requests}
    assert sent == {"/npm/pdf": f"Bearer {PASSWORD}", "/pdf.tgz": None}


# Stores with the S3 API


@pytest.fixture
def store(site: HttpServer, monkeypatch: pytest.MonkeyPatch) -> HttpServer:
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", site.url("/s3"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session-planted")
    return site


LISTING = "/s3/bucket/"


def listing(*keys: str, more: str = "") -> bytes:
    contents = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
    return f"<ListBucketResult>{contents}{more}</ListBucketResult>".encode()


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]>'
LISTINGS: dict[str, tuple[bytes, str]] = {
    "a page": (PAGE, "upstream_error"),
    "no XML": (b"{}", "upstream_error"),
    "entities": (f"{ENTITIES}<ListBucketResult/>".encode(), "upstream_error"),
    "entities in UTF-16": (f"{ENTITIES}<ListBucketResult/>".encode("utf-16"), "upstream_error"),
    "another document": (b"<Error><Code>AccessDenied</Code></Error>", "upstream_error"),
    "nothing": (listing(), "not_found"),
    "no skill": (listing("a/README.md"), "not_found"),
    "another folder": (listing("b/pdf/SKILL.md"), "not_found"),
    "a path that climbs out": (listing("a/pdf/SKILL.md", "a/pdf/../../x"), "archive_rejected"),
    "a backslash": (listing("a/pdf/SKILL.md", "a/pdf/..\\x"), "archive_rejected"),
    "one name twice": (listing("a/pdf/SKILL.md", "a/pdf/skill.md"), "archive_rejected"),
    "a missing object": (listing("a/pdf/SKILL.md", "a/pdf/none.md"), "not_found"),
    "many objects": (listing(*["a/pdf/SKILL.md"] * 20_001), "too_large"),
    "many files": (listing(*[f"a/pdf/{n}" for n in range(2_000)], "a/pdf/SKILL.md"), "too_large"),
}


@pytest.mark.parametrize(("body", "code"), LISTINGS.values(), ids=LISTINGS)
def test_hostile_listing_of_a_bucket_is_rejected(
    sandbox: CliSandbox, store: HttpServer, body: bytes, code: str
) -> None:
    store.routes[LISTING] = respond(body=body)
    if code == "archive_rejected":
        store.default_route = lambda _: respond(body=SKILL)
    store.routes["/s3/bucket/a/pdf/SKILL.md"] = respond(body=SKILL)
    sandbox.check_rejected(ADD, ["s3://bucket/a"], code)


def test_listing_without_end_is_rejected(sandbox: CliSandbox, store: HttpServer) -> None:
    more = "<NextContinuationToken>t</NextContinuationToken>"
    page = listing(*["a/x"] * 5_000, more=more)
    store.default_route = lambda _: respond(body=page)
    sandbox.check_rejected(ADD, ["s3://bucket/a"], "too_large")


@pytest.mark.parametrize(
    ("route", "code"), [ANSWERS[name] for name in ANSWERS if ANSWERS[name][1] != "archive_rejected"]
)
def test_store_with_malformed_response_gives_one_error(
    sandbox: CliSandbox, store: HttpServer, route: Route, code: str
) -> None:
    store.routes |= {LISTING: route, "/x.zip": route}
    result = sandbox.check_rejected(ADD, ["s3://bucket/a"], code)
    assert "session-planted" not in result.out


@pytest.mark.parametrize("name", ["a zip with a link", "a zip with many entries"])
def test_hostile_archive_in_a_bucket_is_rejected(
    sandbox: CliSandbox, store: HttpServer, name: str
) -> None:
    hostile = dict(hostile_archives())[name]
    store.routes["/s3/bucket/x.zip"] = respond(body=hostile.data)
    sandbox.check_rejected(ADD, ["s3://bucket/x.zip"], hostile.code)


def test_signature_is_sent_to_the_store_alone(sandbox: CliSandbox, store: HttpServer) -> None:
    with run_http_server() as other:
        other.routes["/x"] = respond(body=SKILL)
        store.routes[LISTING] = respond(body=listing("a/pdf/SKILL.md"))
        store.routes["/s3/bucket/a/pdf/SKILL.md"] = redirect(other.url("/x"))
        result = sandbox.run(*ADD, "--json", "s3://bucket/a")
        assert (result.code, PASSWORD in result.out + result.err) == (0, False)
        assert len(store.requests) == 2
        for request in store.requests:
            assert request.headers["authorization"].startswith(
                "AWS4-HMAC-SHA256 Credential=key-id/"
            )
            assert request.headers["x-amz-security-token"] == "session-planted"
            assert PASSWORD not in str(request)
        [leaked] = other.requests
    assert not [name for name in leaked.headers if name == "authorization" or "amz" in name]


# Images in registries


LAYER = pack_layer({"SKILL.md": SKILL})


@pytest.fixture
def images(site: HttpServer) -> Registry:
    registry = Registry(site)
    site.default_route = registry.find_route
    registry.images.add_image(LAYER)
    return registry


# `tests/unit/sources/oci/test_image.py` has more of both.
DOCUMENTS: dict[str, bytes] = {
    "a page": PAGE,
    "brackets without end": b'{"layers":' + b"[" * 100_000,
    "a digest that climbs out": make_manifest([describe(LAYER, digest="../../../etc/passwd")]),
    "an index and layers": make_index(describe(LAYER, MANIFEST), layers=[]),
}
BAD_LAYERS: dict[str, tuple[list[dict[str, object]], str]] = {
    "another file": ([describe(LAYER, digest=digest_of(b"x"))], "not_found"),
    "another size": ([describe(LAYER, size=len(LAYER) + 1)], "archive_rejected"),
    "more than is listed": ([describe(LAYER, size=len(LAYER) - 1)], "too_large"),
    "an endless size": ([describe(LAYER, size=10**12)], "too_large"),
    "no skill": ([], "not_found"),
}


@pytest.mark.parametrize("body", DOCUMENTS.values(), ids=DOCUMENTS)
def test_malformed_manifest_gives_one_error(
    sandbox: CliSandbox, images: Registry, body: bytes
) -> None:
    images.images.add_manifest(body)
    sandbox.check_rejected(ADD, [images.text], "upstream_error")


@pytest.mark.parametrize(("layers", "code"), BAD_LAYERS.values(), ids=BAD_LAYERS)
def test_image_with_hostile_layers_is_rejected(
    sandbox: CliSandbox, images: Registry, layers: list[dict[str, object]], code: str
) -> None:
    images.images.add_manifest(make_manifest(layers))
    sandbox.check_rejected(ADD, [images.text], code)


@pytest.mark.parametrize("target", ["layer", "manifest", "index"])
def test_image_that_differs_from_its_digest_is_rejected(
    sandbox: CliSandbox, images: Registry, target: str
) -> None:
    manifest = images.images.add_image(LAYER)
    images.images.add_manifest(make_index(describe(manifest, MANIFEST)))
    name = {"layer": f"blobs/{digest_of(LAYER)}", "manifest": f"manifests/{digest_of(manifest)}"}
    text = images.text
    if target == "index":
        name[target] = f"manifests/{digest_of(b'x')}"
        text = f"{text}@{digest_of(b'x')}"
    images.images.files[f"/v2/acme/skills/{name[target]}"] = pack_layer({"SKILL.md": b"evil"})
    result = sandbox.check_rejected(ADD, [text], "archive_rejected")
    assert "digest" in result.error["message"]


@pytest.mark.parametrize(
    "name",
    [
        "a tar with a name that climbs out",
        "a tar with a link",
        "a tar that unpacks to much more than it is",
        "a tar of two gzip streams",
    ],
)
def test_hostile_layer_is_rejected(sandbox: CliSandbox, images: Registry, name: str) -> None:
    hostile = dict(hostile_archives())[name]
    images.images.add_image(LAYER, hostile.data)
    sandbox.check_rejected(ADD, [images.text], hostile.code)


def test_layer_that_removes_files_is_rejected(sandbox: CliSandbox, images: Registry) -> None:
    images.images.add_image(LAYER, pack_layer({".wh.SKILL.md": b""}))
    sandbox.check_rejected(ADD, [images.text], "archive_rejected")


def test_manifest_without_end_is_rejected(sandbox: CliSandbox, images: Registry) -> None:
    images.site.routes["/v2/acme/skills/manifests/latest"] = respond_endlessly(PROMISED)
    sandbox.check_rejected(ADD, [images.text], "too_large")


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("manifests/latest", "a fault"),
        ("manifests/latest", "a circle"),
        ("manifests/latest", "to metadata"),
        (f"blobs/{digest_of(LAYER)}", "hanging up"),
        (f"blobs/{digest_of(LAYER)}", "too many requests"),
        (f"blobs/{digest_of(LAYER)}", "to a private host"),
    ],
)
def test_registry_of_images_with_malformed_response_gives_one_error(
    sandbox: CliSandbox, images: Registry, target: str, name: str
) -> None:
    route, code = ANSWERS[name]
    images.site.routes |= {f"/v2/acme/skills/{target}": route, "/x.zip": route}
    sandbox.check_rejected(ADD, [images.text], code)


REALMS: dict[str, tuple[str, str]] = {
    "a private host": ("https://10.0.0.1/token", "source_rejected"),
    "metadata of a cloud": ("http://169.254.169.254/token", "source_rejected"),
    "a file of this machine": ("file:///etc/passwd", "source_rejected"),
    "a password": (f"https://a:{PASSWORD}@b.example/token", "source_rejected"),
    "no URL": ("token", "source_rejected"),
    "nothing there": ("", "upstream_error"),
}


@pytest.mark.parametrize(("realm", "code"), REALMS.values(), ids=REALMS)
def test_hostile_token_service_is_rejected(
    sandbox: CliSandbox, images: Registry, realm: str, code: str
) -> None:
    images.token = "t"  # noqa: S105 - fake
    images.realm = realm or images.site.url("/none")
    sandbox.check_rejected(ADD, [images.text], code)


@pytest.mark.parametrize("body", [PAGE, b'{"token": 1}', b'{"token": "a\\r\\nX: y"}'])
def test_malformed_token_is_rejected(sandbox: CliSandbox, images: Registry, body: bytes) -> None:
    images.token = "t"  # noqa: S105 - fake
    images.site.routes["/token"] = respond(body=body)
    sandbox.check_rejected(ADD, [images.text], "upstream_error")


def store_docker_login(sandbox: CliSandbox, **logins: str) -> None:
    """Store passwords by host, as `docker login` does."""
    auths = {
        host: {"auth": base64.b64encode(f"ada:{password}".encode()).decode()}
        for host, password in logins.items()
    }
    folder = sandbox.folder / "home/.docker"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"auths": auths}), encoding="utf-8")


BASIC = f"Basic {base64.b64encode(f'ada:{PASSWORD}'.encode()).decode()}"


def test_docker_login_is_sent_to_the_registry_for_a_token(
    sandbox: CliSandbox, images: Registry
) -> None:
    images.token, images.login = "t" * 6_000, BASIC
    images.realm = images.site.url("/token?scope=repository:other:push")
    store_docker_login(sandbox, **{images.host: PASSWORD, "other.example": "other"})
    result = sandbox.run(*ADD, "--json", images.text)
    assert (result.code, PASSWORD in result.out + result.err) == (0, False)
    [token] = [one for one in images.site.requests if one.target.startswith("/token")]
    # The scope is ours, not the one that the registry asks for.
    assert token.target == "/token?service=acme&scope=repository%3Aacme/skills%3Apull"
    others = {one.headers.get("authorization") for one in images.site.requests if one is not token}
    assert others == {None, f"Bearer {images.token}"}


def test_docker_login_is_not_sent_to_a_token_service_elsewhere(
    sandbox: CliSandbox, images: Registry
) -> None:
    with run_http_server() as elsewhere:
        elsewhere.routes["/token"] = respond("401 Unauthorized")
        images.token, images.realm = "t", elsewhere.url("/token")
        # With the second one, the registry would get a token for another registry.
        other = f"127.0.0.1:{elsewhere.port}"
        store_docker_login(sandbox, **{images.host: PASSWORD, other: PASSWORD})
        sandbox.check_rejected(ADD, [images.text], "upstream_error")
        assert elsewhere.requests
        assert all("authorization" not in one.headers for one in elsewhere.requests)


@pytest.mark.parametrize("setting", ["on", "off"])
def test_docker_login_is_sent_as_a_password_if_the_registry_asks_for_one(
    sandbox: CliSandbox, images: Registry, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("SKILLHALL_STORED_LOGINS", setting)
    images.token, images.challenge = "t", 'Basic realm="acme"'
    store_docker_login(sandbox, **{images.host: PASSWORD})
    result = sandbox.check_rejected(ADD, [images.text], "upstream_error")
    sent = {one.headers.get("authorization") for one in images.site.requests}
    assert sent == ({None, BASIC} if setting == "on" else {None})
    assert ("rejected the credentials" in result.error["message"]) is (setting == "on")


def test_token_of_a_registry_is_not_sent_to_the_store_of_its_blobs(
    sandbox: CliSandbox, images: Registry
) -> None:
    images.token = "t"  # noqa: S105 - fake
    with run_http_server() as store:
        store.routes["/blob"] = respond(body=LAYER)
        blob = f"/v2/acme/skills/blobs/{digest_of(LAYER)}"
        images.site.routes[blob] = redirect(store.url("/blob?signature=x"))
        assert sandbox.run(*ADD, "--json", images.text).code == 0
        assert ["authorization" in one.headers for one in store.requests] == [False]


# Git repositories


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    return git_repo(tmp_path / "served/skills.git", {"pdf/SKILL.md": SKILL})


@pytest.fixture
def served(repository: GitRepo, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    with run_git_server(repository.folder.parent) as running:
        monkeypatch.setenv("SKILLHALL_GIT_TOKEN_HOSTS", f"127.0.0.1:{running.port}")
        yield running


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("none.git", "not_found"),
        ("skills.git@none", "not_found"),
        (f"skills.git@{'1' * 40}", "not_found"),
        ("private/x.git", "source_rejected"),
        ("metadata/x.git", "source_rejected"),
        ("elsewhere/x.git", "source_rejected"),
    ],
)
def test_missing_or_redirected_git_repository_is_rejected(
    sandbox: CliSandbox, served: GitServer, source: str, code: str
) -> None:
    served.redirects |= {
        "/private/": "http://10.0.0.1/x.git",
        "/metadata/": "http://169.254.169.254/x.git",
        "/elsewhere/": f"https://a:{PASSWORD}@b.example/x.git",
    }
    for command in (ADD, IMPORT):
        sandbox.check_rejected(command, [served.url(source)], code)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "upstream_error"),
        (403, "upstream_error"),
        (404, "not_found"),
        (429, "rate_limited"),
        (500, "upstream_error"),
        (503, "upstream_error"),
    ],
)
def test_failing_git_host_gives_one_error(
    sandbox: CliSandbox, served: GitServer, status: int, code: str
) -> None:
    served.status = status
    sandbox.check_rejected(ADD, [served.url("skills.git")], code)


@pytest.mark.parametrize("token", ["", SECRETS["SKILLHALL_GIT_TOKEN"]])
def test_git_host_gets_no_other_token(
    sandbox: CliSandbox, served: GitServer, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.token = "another"  # noqa: S105 - a fake token
    monkeypatch.setenv("SKILLHALL_GIT_TOKEN", token)
    result = sandbox.check_rejected(ADD, [served.url("skills.git")], "upstream_error")
    assert "token" in result.error["message"] or "credentials" in result.error["message"]


def _evil(name: str) -> Callable[[GitRepo], object]:
    return lambda repo: repo.commit_tree(
        repo.tree([(FOLDER, repo.files({"config": b"x", "SKILL.md": SKILL}), name)])
    )


def _lose_file(repo: GitRepo) -> None:
    name = repo.blob(SKILL)
    (repo.folder / "objects" / name[:2] / name[2:]).unlink()


TREES: dict[str, tuple[Callable[[GitRepo], object], str]] = {
    "the inside of git": (_evil(".git"), "upstream_error"),
    "the inside of git in capitals": (_evil(".GIT"), "upstream_error"),
    "the inside of git by its short name": (_evil("git~1"), "upstream_error"),
    "a way up": (_evil(".."), "upstream_error"),
    "a file that is missing": (_lose_file, "upstream_error"),
}
EMPTY_TREES: dict[str, Callable[[GitRepo], object]] = {
    "no skill": lambda repo: repo.commit({"README.md": b"x"}),
    "a SKILL.md that is a link": lambda repo: repo.commit(
        {"pdf/SKILL.md": b"/etc/passwd"}, {"pdf/SKILL.md": LINK}
    ),
    "a folder that is a link": lambda repo: repo.commit({"pdf": b"/etc"}, {"pdf": LINK}),
}


@pytest.mark.parametrize(("build", "code"), TREES.values(), ids=TREES)
def test_hostile_tree_is_rejected(
    sandbox: CliSandbox,
    served: GitServer,
    repository: GitRepo,
    build: Callable[[GitRepo], object],
    code: str,
) -> None:
    build(repository)
    sandbox.check_rejected(ADD, [served.url("skills.git")], code)


@pytest.mark.parametrize("build", EMPTY_TREES.values(), ids=EMPTY_TREES)
def test_repository_without_skill_writes_only_cache(
    sandbox: CliSandbox, served: GitServer, repository: GitRepo, build: Callable[[GitRepo], object]
) -> None:
    build(repository)
    sandbox.check_rejected(ADD, [served.url("skills.git")], "not_found", ignored=["cache"])


def test_slow_git_host_times_out(
    sandbox: CliSandbox, served: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = partial(GitAccess, limits=GitLimits(total_seconds=0.5))
    monkeypatch.setattr(git_source, "GitAccess", hasty)  # instead of 120 seconds
    served.release_event = threading.Event()
    sandbox.check_rejected(ADD, [served.url("skills.git")], "upstream_timeout")


def test_oversized_repository_is_rejected(
    sandbox: CliSandbox, served: GitServer, repository: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = partial(GitAccess, limits=GitLimits(max_bytes=50_000))
    monkeypatch.setattr(git_source, "GitAccess", small)  # instead of 500 MiB
    repository.commit({"pdf/SKILL.md": SKILL, "pdf/blank": bytes(60_000)})
    sandbox.check_rejected(ADD, [served.url("skills.git")], "too_large")


# GitHub without git


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubApiServer]:
    with run_github_api_server() as running:
        running.tokens.add(SECRETS["GITHUB_TOKEN"])
        running.repositories["acme/skills"] = Repository()
        running.repositories["acme/skills"].commit({"pdf/SKILL.md": SKILL})
        monkeypatch.setenv("SKILLHALL_GIT", "off")
        monkeypatch.setenv("SKILLHALL_GITHUB_API_URL", running.api_url)
        yield running


HEAD = "/repos/acme/skills/commits/HEAD"


@pytest.mark.parametrize(
    ("source", "route", "code"),
    [
        ("acme/none", None, "not_found"),
        ("acme/skills@none", None, "not_found"),
        ("acme/skills", respond("500 Oh", PASSWORD.encode()), "upstream_error"),
        ("acme/skills", respond("403 No", headers={"Retry-After": "9"}), "rate_limited"),
        ("acme/skills", respond("401 No"), "upstream_error"),
        ("acme/skills", respond(body=PAGE), "upstream_error"),
        ("acme/skills", redirect("http://10.0.0.1/x"), "source_rejected"),
        ("acme/skills", redirect("http://169.254.169.254/x"), "source_rejected"),
        ("acme/skills", respond("409 Empty"), "not_found"),
    ],
)
def test_malformed_github_response_gives_one_error(
    sandbox: CliSandbox, github: GitHubApiServer, source: str, route: Route | None, code: str
) -> None:
    if route is not None:
        github.route_overrides[HEAD] = route
    for command in (ADD, IMPORT):
        sandbox.check_rejected(command, [source], code)


@pytest.mark.parametrize("kind", ["trees", "blobs"])
@pytest.mark.parametrize("route", [respond(body=b"lies"), respond("404 No"), respond("502 No")])
def test_failing_github_writes_only_cache(
    sandbox: CliSandbox, github: GitHubApiServer, kind: str, route: Route
) -> None:
    [(sha, files)] = github.repositories["acme/skills"].commits.items()
    object_id = sha if kind == "trees" else files["pdf/SKILL.md"].sha
    github.route_overrides[f"/repos/acme/skills/git/{kind}/{object_id}"] = route
    result = sandbox.run(*ADD, "--json", "acme/skills")
    code = result.error["code"]
    assert code in ("upstream_error", "not_found")
    sandbox.check_rejected(ADD, ["acme/skills"], code, ignored=["cache"])


def test_linked_skill_md_on_github_is_not_a_skill(
    sandbox: CliSandbox, github: GitHubApiServer
) -> None:
    github.repositories["acme/skills"].commit(
        {"pdf/SKILL.md": RepoFile(b"/etc/passwd", LINK), "README.md": b"x"}
    )
    sandbox.check_rejected(ADD, ["acme/skills"], "not_found", ignored=["cache"])
