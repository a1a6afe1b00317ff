"""Client of a prompt server: connects, uploads folders, writes a prompt's files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.folder_walk_rules import ScanPolicy
from skillhall._internal.prompt_server.generate.convert import is_script
from skillhall._internal.prompt_server.generate.marker import PromptOrigin
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.sources.git.remote import parse_endpoint
from skillhall._internal.sources.opener import parse_source_ref
from skillhall._internal.sources.server_api.prompt_client import (
    FileToUpload,
    PromptClient,
    RefreshResult,
    RemoteSourceSelector,
    SkippedEntry,
)
from skillhall._internal.sources.server_api.rest_client import ServerConnection
from skillhall.errors import (
    Conflict,
    SourceRejected,
    TooLarge,
    UploadRejected,
    label_without_credentials,
    without_credentials,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.finding import Finding

__all__ = [
    "PromptClient",
    "RefreshResult",
    "SkippedEntry",
    "UploadFolder",
    "build_origin",
    "open_prompt_client",
    "read_upload_folder",
    "write_prompt_files",
]
MAX_UPLOAD_FILES: Final = 100  # the server's limit
MAX_UPLOAD_SIZE: Final = 256 * 1024  # bytes of all files; the server's limit
_FILE_MODE, _EXECUTABLE_MODE = 0o644, 0o755
_NO_CREDENTIALS_HINT = "remove the credentials and the query string; the server uses its own token"


def open_prompt_client(
    settings: Settings, url: str = "", selector: Mapping[str, str] | None = None
) -> PromptClient:
    """Create a client for a URL, or for the configured server. Nothing is sent yet.

    Raises: SourceRejected, ConfigInvalid.
    """
    override = RemoteSourceSelector(**(selector or {}))
    cleaned = RemoteSourceSelector(*map(without_credentials, override))
    cleaned = cleaned._replace(source=label_without_credentials(override.source))
    for text, redacted in zip(override, cleaned, strict=True):
        if redacted != text:
            problem = "it contains a user name, a password or a query string"
            raise SourceRejected("url", text, problem, _NO_CREDENTIALS_HINT)
    client = settings.client
    server = ServerConnection.from_url(url or client.server, client.token, proxies=settings.proxies)
    if client.git_token is not None and _is_token_host(override.repo, settings):
        server = server.with_git_token(client.git_token)
    return PromptClient(server, override)


def _is_token_host(repo: str, settings: Settings) -> bool:
    """Whether the user's token is meant for the host of the repository."""
    try:
        reference = parse_source_ref(repo, allow_loopback_http=bool(settings.allowed_networks))
        if reference.repository is None:
            return False
        endpoint = parse_endpoint(reference.repository.git_url(settings.github_url))
    except SourceRejected:  # the server reports the problem
        return False
    return endpoint.authority in settings.client.git_token_hosts


def build_origin(server: PromptClient) -> PromptOrigin:
    """Return the origin that generated skills record."""
    return PromptOrigin(server.server.base_url, server.selector)


@dataclass(frozen=True, slots=True)
class UploadFolder:
    """Files of a folder, ready to be uploaded, and findings about skipped files."""

    files: tuple[FileToUpload, ...]
    digest: str
    findings: tuple[Finding, ...]


def read_upload_folder(folder: str) -> UploadFolder:
    """Read a folder of prompts. Raises: SkillFileNotFound, TooLarge, UploadRejected."""
    bundle = open_bundle(FolderHandle(os.path.realpath(folder)), ScanPolicy())
    if not bundle.files:
        raise UploadRejected("the folder contains no files to upload")
    if len(bundle.files) > MAX_UPLOAD_FILES:
        raise TooLarge(os.path.basename(folder), MAX_UPLOAD_FILES, "files")
    if sum(file.size for file in bundle.files.values()) > MAX_UPLOAD_SIZE:
        raise TooLarge(os.path.basename(folder), MAX_UPLOAD_SIZE)
    files = tuple(
        FileToUpload(path, file.read(), _EXECUTABLE_MODE if file.executable else _FILE_MODE)
        for path, file in bundle.files.items()
    )
    # One digest of all paths, modes and contents.
    lines = (f"{f.path}\0{f.mode:o}\0{sha256_hex(f.data)}\n" for f in files)
    digest = sha256_hex("".join(lines).encode())
    return UploadFolder(files, f"sha256:{digest}", bundle.findings)


def write_prompt_files(folder: str, files: Mapping[str, bytes]) -> None:
    """Write a prompt's files to a new folder, all or none. Raises: Conflict, OSError."""
    parent, name = os.path.split(os.path.abspath(folder))
    written = {
        path: (data, _EXECUTABLE_MODE if is_script(path, data) else _FILE_MODE)
        for path, data in files.items()
    }
    os.makedirs(parent, exist_ok=True)
    with WritableFolder(parent) as base, base.lock():
        if base.entry_kind(name) is not None:
            raise Conflict(folder, "name a folder that does not exist yet")
        base.create_folder(name, written)
