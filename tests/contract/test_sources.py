"""Contract of all kinds of sources: open, lock, install again, update.

`tests/golden/lock_files` has the lock files of every kind, with `{port}` for the port of the test's
server. `UPDATE_GOLDEN=1` writes them.
"""

import base64
import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeAlias

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.installer.agent_folders import resolve_targets
from skillhall._internal.installer.install import install
from skillhall._internal.installer.locked_install import (
    LockedInstallResult,
    LockedInstallStatus,
    install_locked,
)
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.update import UpdateStatus, find_outdated, update
from skillhall._internal.installer.verify import verify
from skillhall._internal.settings import Secret, Settings
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.sources import opener
from skillhall._internal.sources.archive.source import read_loose_files
from skillhall._internal.sources.base import OpenedSource, Ref, SourceContext
from skillhall._internal.sources.mcp.servers_file import add_server, parse_server
from skillhall._internal.sources.opener import open_source, parse_source_ref
from skillhall._internal.sources.site.site_index import SCHEMA_URL
from skillhall._internal.sources.source_text import SourceText
from skillhall.errors import LockMismatch, SourceUnavailable
from tests.support.archives import tgz_of
from tests.support.github_server import GitHubServer, run_github_server
from tests.support.mcp_servers import make_contents, make_entry, make_script, write_script
from tests.support.oci_images import (
    MANIFEST,
    ImageFiles,
    describe,
    make_index,
    make_manifest,
    pack_layer,
)
from tests.support.projects import make_project_settings
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import make_settings, run_server
from tests.support.skills import make_skill_md

GOLDEN = Path(__file__).parents[1] / "golden/lock_files"
FILES = {"SKILL.md": make_skill_md("pdf"), "references/forms.md": b"# Forms\n"}
NEW_FILES = {"SKILL.md": make_skill_md("pdf", body="# New steps\n")}

Files: TypeAlias = Mapping[str, bytes]

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


class Source(NamedTuple):
    """Source under test: its text, settings that reach it, and how to change its files."""

    text: str
    settings: Settings
    publish: Callable[[Files], object]
    port: int = 0


def write_files(folder: Path, files: Files) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def zip_files(files: Files, folder: str = "pdf/") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, data in files.items():
            archive.writestr(f"{folder}{path}", data)
    return packed.getvalue()


@contextmanager
def folder_source(settings: Settings) -> Iterator[Source]:
    folder = Path(settings.working_directory, "shared/pdf")
    yield Source("./shared", settings, lambda files: write_files(folder, files))


@contextmanager
def archive_source(settings: Settings) -> Iterator[Source]:
    archive = Path(settings.working_directory, "skills.zip")
    yield Source("skills.zip", settings, lambda files: archive.write_bytes(zip_files(files)))


@contextmanager
def run_host(settings: Settings) -> Iterator[tuple[GitHubServer, Settings]]:
    with run_github_server(Path(settings.home, "host")) as host:
        urls = host.environment()
        url, api_url = urls["SKILLHALL_GITHUB_URL"], urls["SKILLHALL_GITHUB_API_URL"]
        yield host, settings._replace(github_url=url, github_api_url=api_url)


def commit_skill(host: GitHubServer, files: Files) -> None:
    host.commit("acme/skills", {f"skills/pdf/{path}": data for path, data in files.items()})


@contextmanager
def github_source(settings: Settings) -> Iterator[Source]:
    with run_host(settings) as (host, host_settings):
        yield Source("acme/skills/pdf", host_settings, lambda files: commit_skill(host, files))


@contextmanager
def github_api_source(settings: Settings) -> Iterator[Source]:
    with github_source(settings._replace(use_git=False)) as source:
        yield source._replace(text="https://github.com/acme/skills/tree/main/skills")


@contextmanager
def git_source(settings: Settings) -> Iterator[Source]:
    with run_host(settings) as (host, host_settings):
        text = host.url("acme/skills.git/pdf@main")
        yield Source(text, host_settings, lambda files: commit_skill(host, files), host.git.port)


@contextmanager
def url_source(settings: Settings) -> Iterator[Source]:
    with run_host(settings) as (host, host_settings):

        def publish(files: Files) -> None:
            host.files["/files/skills.zip"] = zip_files(files)

        yield Source(host.url("files/skills.zip"), host_settings, publish, host.git.port)


@contextmanager
def markdown_source(settings: Settings) -> Iterator[Source]:
    with run_host(settings) as (host, host_settings):

        def publish(files: Files) -> None:
            host.files["/files/SKILL.md"] = files["SKILL.md"]

        yield Source(host.url("files/SKILL.md"), host_settings, publish, host.git.port)


def encode_index(**fields: object) -> bytes:
    return json.dumps({"skills": [{"name": "pdf", "description": "PDF files.", **fields}]}).encode()


@contextmanager
def site_source(settings: Settings) -> Iterator[Source]:
    with run_host(settings) as (host, host_settings):

        def publish(files: Files) -> None:
            archive = zip_files(files, "")
            digest = f"sha256:{hashlib.sha256(archive).hexdigest()}"
            entry = {"type": "archive", "url": "/files/pdf.zip", "digest": digest}
            index = {"$schema": SCHEMA_URL, **json.loads(encode_index(**entry))}
            host.files["/files/pdf.zip"] = archive
            host.files["/.well-known/agent-skills/index.json"] = json.dumps(index).encode()

        yield Source(host.url(), host_settings, publish, host.git.port)


@contextmanager
def legacy_site_source(settings: Settings) -> Iterator[Source]:
    with static_folder(settings, "/.well-known/skills") as source:
        yield source._replace(text=source.text.partition("/.well-known/")[0])


@contextmanager
def static_folder(settings: Settings, folder: str = "/shared") -> Iterator[Source]:
    with run_host(settings) as (host, host_settings):

        def publish(files: Files) -> None:
            host.files[f"{folder}/index.json"] = encode_index(files=[*files])
            host.files.update({f"{folder}/pdf/{path}": data for path, data in files.items()})

        yield Source(host.url(f"{folder[1:]}/index.json"), host_settings, publish, host.git.port)


@contextmanager
def bucket_source(settings: Settings) -> Iterator[Source]:
    with run_host(settings) as (host, host_settings), bucket_files(host, host_settings) as source:
        yield source
        assert all("authorization" not in request.headers for request in host.git.requests)


@contextmanager
def bucket_files(host: GitHubServer, settings: Settings) -> Iterator[Source]:
    def publish(files: Files) -> None:
        keys = [f"shared/pdf/{path}" for path in files]
        host.files.update({f"/s3/team-skills/shared/pdf/{p}": d for p, d in files.items()})
        listed = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
        xmlns = "http://s3.amazonaws.com/doc/2006-03-01/"
        page = f'<ListBucketResult xmlns="{xmlns}">{listed}</ListBucketResult>'
        host.files["/s3/team-skills/"] = page.encode()

    variables = {"AWS_ENDPOINT_URL": host.url("s3")}
    yield Source("s3://team-skills/shared", settings._replace(variables=variables), publish)


@contextmanager
def server_source(settings: Settings) -> Iterator[Source]:
    """A Skillhall server, by its index."""
    folder = Path(settings.home, "server")
    folder.mkdir()
    served = settings._replace(working_directory=str(folder))
    services = Services(MemoryPromptService(), Collection(FolderStore(folder), served))
    with run_server(settings=make_settings(), services=services) as server:

        def publish(files: Files) -> None:
            path = "/api/v1/skills/import?replace=true&filename=x.zip"
            sent = {"Content-Type": "application/zip"}
            assert server.request("POST", path, zip_files(files), sent).status in {200, 201}

        yield Source(f"http://127.0.0.1:{server.port}", settings, publish, server.port)


SIGNED = {"AWS_ACCESS_KEY_ID": Secret("key-id"), "AWS_SECRET_ACCESS_KEY": Secret("secret")}


@contextmanager
def signed_bucket_source(settings: Settings) -> Iterator[Source]:
    with run_host(settings) as (host, host_settings):
        with bucket_files(host, host_settings._replace(credentials=SIGNED)) as source:
            yield source
        sent = [request.headers.get("authorization", "") for request in host.git.requests]
        assert sent
        assert all(text.startswith("AWS4-HMAC-SHA256 Credential=key-id/") for text in sent)


@contextmanager
def npm_source(settings: Settings) -> Iterator[Source]:
    with run_host(settings) as (host, host_settings):
        versions: dict[str, object] = {}

        def publish(files: Files) -> None:
            folder = "package/.agents/skills/pdf"
            data = tgz_of({f"{folder}/{path}": file for path, file in files.items()})
            version = f"1.{len(versions)}.0"
            path = f"/npm/@acme/tools/-/tools-{version}.tgz"
            digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
            dist = {"integrity": f"sha512-{digest}", "tarball": host.url(path[1:])}
            versions[version] = {"dist": dist}
            host.files[path] = data
            document = {"dist-tags": {"latest": version}, "versions": versions}
            host.files["/npm/@acme%2Ftools"] = json.dumps(document).encode()

        variables = {"NPM_CONFIG_REGISTRY": host.url("npm/")}
        yield Source("npm:@acme/tools", host_settings._replace(variables=variables), publish)


@contextmanager
def image_source(settings: Settings) -> Iterator[Source]:
    with run_host(settings) as (host, host_settings):
        images = ImageFiles(files=host.files)

        def publish(files: Files) -> None:
            images.add_image(pack_layer(files))

        port = host.git.port
        yield Source(f"oci://127.0.0.1:{port}/acme/skills", host_settings, publish, port)


@contextmanager
def layout_source(settings: Settings) -> Iterator[Source]:
    folder = Path(settings.working_directory, "dist/oci")

    def publish(files: Files) -> None:
        layer = pack_layer(files)
        manifest = make_manifest([describe(layer)])
        blobs = {f"blobs/sha256/{sha256_hex(data)}": data for data in (layer, manifest)}
        index = make_index(describe(manifest, MANIFEST))
        write_files(folder, {**blobs, "index.json": index, "oci-layout": b"{}"})

    yield Source("oci:./dist/oci", settings, publish)


@contextmanager
def package_source(settings: Settings) -> Iterator[Source]:
    environment = Path(settings.home, "venv")
    folder = environment / "lib/python3/site-packages/pdf_tools/.agents/skills/pdf"
    settings = settings._replace(variables={"VIRTUAL_ENV": str(environment)})
    yield Source("python:pdf-tools", settings, lambda files: write_files(folder, files))


@contextmanager
def mcp_source(settings: Settings) -> Iterator[Source]:
    script = Path(settings.home, "mcp-script.json")

    def publish(files: Files) -> None:
        frontmatter = {"name": "pdf", "description": "Reads PDF files."}
        entry = make_entry(files, frontmatter=frontmatter)
        command = write_script(make_script(skills=[entry], contents=make_contents(files)), script)
        add_server(settings, parse_server("acme", command))

    yield Source("mcp:acme/pdf", settings, publish)


@dataclass(frozen=True, slots=True)
class MemoryRef(Ref):
    """A kind that only this test knows: one class and one parser are enough."""

    name: str
    contents: ClassVar[dict[str, bytes]] = {}

    @property
    def text(self) -> str:
        return f"memory:{self.name}"

    def open(self, context: SourceContext) -> OpenedSource:  # noqa: ARG002 - needs no settings
        return OpenedSource(self, read_loose_files([*self.contents.items()], self.name))


def parse_memory(source: SourceText) -> MemoryRef | None:
    prefix, _, name = source.text.partition(":")
    return MemoryRef(name) if prefix == "memory" else None


@contextmanager
def new_kind_of_source(settings: Settings) -> Iterator[Source]:
    def publish(files: Files) -> None:
        MemoryRef.contents.clear()
        MemoryRef.contents.update(files)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opener, "KINDS", (*opener.KINDS, parse_memory))
        yield Source("memory:pdf", settings, publish)


SOURCES: dict[str, Callable[[Settings], AbstractContextManager[Source]]] = {
    "folder": folder_source,
    "archive": archive_source,
    "github": github_source,
    "github-api": github_api_source,
    "git": git_source,
    "url": url_source,
    "markdown": markdown_source,
    "site": site_source,
    "site-legacy": legacy_site_source,
    "static-folder": static_folder,
    "npm": npm_source,
    "server": server_source,
    "s3": bucket_source,
    "s3-signed": signed_bucket_source,
    "oci": image_source,
    "oci-layout": layout_source,
    "python": package_source,
    "mcp": mcp_source,
    "new-kind": new_kind_of_source,
}


def compare_with_golden(kind: str, project: Path, source: Source) -> None:
    for name in ("skillhall-lock.json", "skills-lock.json"):
        file, golden = project / name, GOLDEN / kind / name
        if not file.exists():  # `npx skills` does not support every kind
            assert not golden.exists()
            continue
        text = file.read_text("utf-8")
        if source.port:
            text = text.replace(f":{source.port}/", ":{port}/")
        if os.environ.get("UPDATE_GOLDEN") == "1":
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text, "utf-8")
        assert text == golden.read_text("utf-8")


def add(source: Source) -> Project:
    project = Project.from_settings(source.settings)
    opened = open_source(source.text, source.settings)
    install(project, opened, opened.bundles, resolve_targets(project, ["codex"], copy=False))
    return project


@pytest.mark.parametrize("kind", SOURCES)
def test_skill_is_opened_locked_installed_again_and_updated(kind: str, tmp_path: Path) -> None:
    with SOURCES[kind](make_project_settings(tmp_path)) as source:
        source.publish(FILES)
        project = add(source)
        compare_with_golden(kind, tmp_path / "project", source)
        [(key, entry)] = project.read_lock().entries.items()
        assert parse_source_ref(entry.source, allow_loopback_http=True).text == entry.source
        assert [r.status for r in find_outdated(project)] == [UpdateStatus.CURRENT]

        assert [r.is_intact for r in verify(project)] == [True]

        shutil.rmtree(project.path(key))
        assert [r.status for r in install_locked(project, frozen=True)] == [
            LockedInstallStatus.INSTALLED
        ]
        assert project.read_lock().entries == {key: entry}

        source.publish(NEW_FILES)
        assert [r.status for r in find_outdated(project)] == [UpdateStatus.OUTDATED]
        assert [r.status for r in update(project)] == [UpdateStatus.UPDATED]
        installed = Path(project.path(key), "SKILL.md")
        assert installed.read_bytes() == NEW_FILES["SKILL.md"]
        assert [r.status for r in update(project)] == [UpdateStatus.CURRENT]
        updated = project.read_lock().entries[key]
        assert (updated.source, updated.path) == (entry.source, entry.path)


# Repositories are read from the cache instead; local sources have no host.
UNCACHED = ["url", "site", "site-legacy", "static-folder", "server", "npm", "s3", "oci"]


@pytest.mark.parametrize("kind", UNCACHED)
def test_unreachable_host_is_an_error_and_changes_nothing(kind: str, tmp_path: Path) -> None:
    with SOURCES[kind](make_project_settings(tmp_path)) as source:
        source.publish(FILES)
        project = add(source)
    lock = project.read_lock()
    for results in (find_outdated(project), update(project)):
        assert [r.status for r in results] == [UpdateStatus.FAILED]
        assert isinstance(results[0].error, SourceUnavailable)
    with pytest.raises(SourceUnavailable):
        open_source(source.text, source.settings)
    assert [r.is_intact for r in verify(project)] == [True]
    [key] = lock.entries
    shutil.rmtree(project.path(key))
    assert [r.status for r in install_locked(project, frozen=True)] == [LockedInstallStatus.FAILED]
    assert project.read_lock() == lock


# The file or folder of a local source, from the home folder.
MISSING = {
    "folder": "../project/shared",
    "archive": "../project/skills.zip",
    "oci-layout": "../project/dist",
    "python": "venv",
    "mcp": "mcp-script.json",
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_local_source_is_an_error_and_changes_nothing(kind: str, tmp_path: Path) -> None:
    with SOURCES[kind](make_project_settings(tmp_path)) as source:
        source.publish(FILES)
        project = add(source)
        lock = project.read_lock()
        origin = Path(source.settings.home, MISSING[kind])
        origin.rename(tmp_path / "elsewhere")
        for results in (find_outdated(project), update(project)):
            assert [r.status for r in results] == [UpdateStatus.FAILED]
        assert [r.is_intact for r in verify(project)] == [True]
        assert project.read_lock() == lock


# Those whose host still has the locked version after a newer one was published. For repositories,
# `test_add_sources` has the same test by the command line.
VERSIONED = ["npm", "oci"]


def restore_after_newer_version(source: Source) -> tuple[LockedInstallResult, Path]:
    """Add a skill, publish a newer version, and restore the deleted skill from the lock file."""
    source.publish(FILES)
    project = add(source)
    source.publish(NEW_FILES)
    [(key, entry)] = project.read_lock().entries.items()
    shutil.rmtree(project.path(key))
    [result] = install_locked(project, frozen=True)
    assert project.read_lock().entries == {key: entry}
    return result, Path(project.path(key))


@pytest.mark.parametrize("kind", VERSIONED)
def test_locked_version_is_restored_after_a_newer_one(kind: str, tmp_path: Path) -> None:
    with SOURCES[kind](make_project_settings(tmp_path)) as source:
        result, folder = restore_after_newer_version(source)
        assert result.status is LockedInstallStatus.INSTALLED
        assert (folder / "SKILL.md").read_bytes() == FILES["SKILL.md"]


@pytest.mark.parametrize("kind", ["site", "s3", "python", "mcp", "oci-layout"])
def test_frozen_install_without_the_locked_version_changes_nothing(
    kind: str, tmp_path: Path
) -> None:
    with SOURCES[kind](make_project_settings(tmp_path)) as source:
        result, folder = restore_after_newer_version(source)
        assert result.status is LockedInstallStatus.FAILED
        assert isinstance(result.error, LockMismatch)
        assert not folder.exists()


def test_pinned_versions_are_those_that_the_lock_records(tmp_path: Path) -> None:
    (tmp_path / "npm").mkdir()
    (tmp_path / "oci").mkdir()
    with npm_source(make_project_settings(tmp_path / "npm")) as source:
        source.publish(FILES)
        commit = open_source(source.text, source.settings).commit
        opened = open_source("npm:@acme/tools@1.0.0", source.settings)
        assert (opened.commit, opened.reference.is_pinned) == (commit, True)
    with image_source(make_project_settings(tmp_path / "oci")) as source:
        source.publish(FILES)
        commit = open_source(source.text, source.settings).commit
        opened = open_source(f"{source.text}@sha256:{commit}", source.settings)
        assert (opened.commit, opened.reference.is_pinned) == (commit, True)
