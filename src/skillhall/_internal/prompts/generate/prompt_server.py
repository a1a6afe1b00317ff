"""A prompt server seen by a client: opening it, sending it a folder, keeping a prompt's files."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillhall._internal.fs.handles import Place
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.scan_rules import ScanPolicy
from skillhall._internal.prompts.generate.convert import is_script
from skillhall._internal.prompts.generate.marker import Origin
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.sources.git.remote import parse_endpoint
from skillhall._internal.sources.git.source import as_git
from skillhall._internal.sources.ref import GitHubRef, GitRef, parse_reference
from skillhall._internal.sources.server_api.prompt_client import Asked, FileToSend
from skillhall._internal.sources.server_api.prompt_client import NotServed as NotServed  # noqa: PLC0414 - for surfaces
from skillhall._internal.sources.server_api.prompt_client import PromptServer as PromptServer  # noqa: PLC0414 - for surfaces
from skillhall._internal.sources.server_api.prompt_client import Refreshed as Refreshed  # noqa: PLC0414 - for surfaces
from skillhall._internal.sources.server_api.rest_client import Server
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

MAX_UPLOAD_FILES: Final = 100  # the contract of the server
MAX_UPLOAD: Final = 256 * 1024  # bytes of all files
_FILE, _PROGRAM = 0o644, 0o755


def open_prompt_server(
    settings: Settings, address: str = "", asked: Mapping[str, str] | None = None
) -> PromptServer:
    """The server at an address, or the one of the settings; nothing is sent yet.

    Raises: SourceRejected, ConfigInvalid.
    """
    override = Asked(**(asked or {}))
    shown = Asked(*map(without_credentials, override))
    shown = shown._replace(source=label_without_credentials(override.source))
    for text, without in zip(override, shown, strict=True):
        if without != text:
            problem = "it holds a user name, a password or a query"
            raise SourceRejected("url", text, problem, "the server has a token of its own for it")
    client = settings.client
    server = Server.at(address or client.server, client.token)
    if client.git_token is not None and _is_for_token(override.repo, settings):
        server = server.with_git_token(client.git_token)
    return PromptServer(server, override)


def _is_for_token(repo: str, settings: Settings) -> bool:
    """Whether a repository lies on a host that the person's token is for."""
    try:
        reference = parse_reference(repo, loopback_http=bool(settings.allowed_networks))
        if not isinstance(reference, GitHubRef | GitRef):
            return False
        endpoint = parse_endpoint(as_git(reference, settings.github_url).url)
    except SourceRejected:  # the server tells what is wrong with it
        return False
    return endpoint.authority in settings.client.git_token_hosts


def origin_of(server: PromptServer) -> Origin:
    """How generated skills remember the server."""
    return Origin(server.server.address, server.asked)


@dataclass(frozen=True, slots=True)
class Packed:
    """A folder's files, ready to be sent, and what of it stays behind."""

    files: tuple[FileToSend, ...]
    digest: str
    findings: tuple[Finding, ...]


def pack(folder: str) -> Packed:
    """The files of a folder of prompts. Raises: SkillFileNotFound, TooLarge, UploadRejected."""
    bundle = open_bundle(Place(os.path.realpath(folder)), ScanPolicy())
    if not bundle.files:
        raise UploadRejected("there is no file to send in that folder")
    if len(bundle.files) > MAX_UPLOAD_FILES:
        raise TooLarge(os.path.basename(folder), MAX_UPLOAD_FILES, "files")
    if sum(file.size for file in bundle.files.values()) > MAX_UPLOAD:
        raise TooLarge(os.path.basename(folder), MAX_UPLOAD)
    files = tuple(
        FileToSend(path, file.read(), _PROGRAM if file.executable else _FILE)
        for path, file in bundle.files.items()
    )
    return Packed(files, _digest_of(files), bundle.findings)


def _digest_of(files: tuple[FileToSend, ...]) -> str:
    """One digest for all files: their paths, modes and own digests."""
    lines = (f"{f.path}\0{f.mode:o}\0{hashlib.sha256(f.data).hexdigest()}\n" for f in files)
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def write_files(folder: str, files: Mapping[str, bytes]) -> None:
    """Make a new folder with a prompt's files, all or nothing. Raises: Conflict, OSError."""
    parent, name = os.path.split(os.path.abspath(folder))
    written = {
        path: (data, _PROGRAM if is_script(path, data) else _FILE) for path, data in files.items()
    }
    os.makedirs(parent, exist_ok=True)
    with WritableFolder(parent) as base, base.locked():
        if base.kind(name) is not None:
            raise Conflict(folder, "name a folder that is not there yet")
        base.put_folder(name, written)
