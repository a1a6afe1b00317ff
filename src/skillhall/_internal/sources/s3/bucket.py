"""Skills in a bucket, listed and downloaded with the S3 API: anonymous, or signed (SigV4)."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

from skillhall._internal.net.fetch import FetchOptions
from skillhall._internal.net.url import WebUrl
from skillhall._internal.sources.archive.source import (
    DEFAULT_ARCHIVE_LIMITS,
    read_archive,
    read_loose_files,
)
from skillhall._internal.sources.bounded_download import BoundedDownload, run_parallel
from skillhall._internal.sources.repo_layout import find_enclosing_folder, find_visible_skills
from skillhall._internal.sources.s3.aws_config import AwsConfig
from skillhall._internal.sources.source_text import ARCHIVE_EXTENSIONS
from skillhall.errors import NoSkillThere, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.s3.s3_ref import S3Ref

MAX_OBJECTS: Final = 20_000  # in the folder; only files of skills are downloaded
_MAX_LISTING: Final = 8 * 1024 * 1024  # bytes of one page, which has up to 1,000 names
_ALGORITHM = "AWS4-HMAC-SHA256"
_EMPTY_HASH = hashlib.sha256(b"").hexdigest()
_DECLARATION = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_HINT = "a skill is a folder with a SKILL.md in it"


def read_bucket(reference: S3Ref, context: SourceContext) -> tuple[Bundle, ...]:
    """Download the skills of a folder, or those in an archive.

    Raises: SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, NoSkillThere,
    ArchiveRejected, TooLarge, ConfigInvalid.
    """
    config = AwsConfig.read(context.settings, with_credentials=context.with_credentials)
    download = BoundedDownload(context.address_policy, context.progress)
    bucket = _Bucket(reference.bucket, config, download)
    name = reference.path.rpartition("/")[2] or reference.bucket
    if name.lower().endswith(ARCHIVE_EXTENSIONS):
        return read_archive(bucket.get(reference.path), name)
    prefix = f"{reference.path}/" if reference.path else ""
    paths = [key.removeprefix(prefix) for key in bucket.list_keys(prefix)]
    folders = set(find_visible_skills(paths))
    if not folders:
        raise NoSkillThere(reference.text, _HINT)
    paths = [path for path in paths if find_enclosing_folder(path, folders) is not None]
    if len(paths) > DEFAULT_ARCHIVE_LIMITS.entries:
        raise TooLarge(reference.text, DEFAULT_ARCHIVE_LIMITS.entries, "files")
    contents = run_parallel(lambda path: bucket.get(prefix + path), paths)
    return read_loose_files([*zip(paths, contents, strict=True)], name)


@dataclass(frozen=True, slots=True)
class _Bucket:
    """One bucket of a store."""

    name: str
    config: AwsConfig
    download: BoundedDownload

    def list_keys(self, prefix: str) -> list[str]:
        """Return the names of the objects below a prefix. Raises: as `read_bucket`."""
        keys: list[str] = []
        query = {"list-type": "2", "prefix": prefix}
        while True:
            page = _parse_listing(self._request("", query, _MAX_LISTING), self.name)
            # Names that end in a slash are folders that some programs create.
            keys += [key for key in page.keys if key.startswith(prefix) and not key.endswith("/")]
            if len(keys) > MAX_OBJECTS:
                raise TooLarge(f"s3://{self.name}/{prefix}", MAX_OBJECTS, "objects")
            if not page.next_token or not page.keys:
                return sorted(keys)
            query["continuation-token"] = page.next_token

    def get(self, key: str) -> bytes:
        """Download one object. Raises: as `read_bucket`."""
        return self._request(key, {}, DEFAULT_ARCHIVE_LIMITS.total)

    def _request(self, key: str, query: Mapping[str, str], max_bytes: int) -> bytes:
        base = self.config.endpoint
        if not base:
            base = f"https://s3.{self.config.region}.amazonaws.com"
        text = "&".join(f"{name}={_encode(value)}" for name, value in sorted(query.items()))
        url = f"{base}/{self.name}/{quote(key, safe='/-_.~')}" + (f"?{text}" if text else "")
        options = sign_request(WebUrl.parse(url), self.config, time.gmtime())
        return self.download.fetch(url, max_bytes, options).data


class _Listing(NamedTuple):
    keys: list[str]
    next_token: str


def _parse_listing(data: bytes, bucket: str) -> _Listing:
    """Parse one page of a listing. Raises: SourceUnavailable."""
    root = None
    # A declaration could define entities that expand without end.
    if not _DECLARATION.search(data):
        with suppress(ET.ParseError, UnicodeDecodeError):
            # Decoded here, because the parser would also accept encodings that hide a declaration.
            root = ET.fromstring(data.decode())  # noqa: S314 - without declarations, it is harmless
    if root is None or root.tag.rpartition("}")[2] != "ListBucketResult":
        raise SourceUnavailable(bucket, "the listing of the bucket is malformed")
    keys = [node.text or "" for node in root.iterfind("{*}Contents/{*}Key")]
    return _Listing(keys, root.findtext("{*}NextContinuationToken") or "")


def _encode(text: str) -> str:
    return quote(text, safe="-_.~")


def sign_request(url: WebUrl, config: AwsConfig, now: time.struct_time) -> FetchOptions:
    """Return the headers of a signed GET request; those of an anonymous one without a key.

    The signature covers the host, path, query and time (AWS Signature Version 4).
    """
    if config.secret_key is None:
        return FetchOptions()
    moment = time.strftime("%Y%m%dT%H%M%SZ", now)
    headers = {"host": url.authority, "x-amz-content-sha256": _EMPTY_HASH, "x-amz-date": moment}
    if config.session_token is not None:
        headers["x-amz-security-token"] = config.session_token.reveal()
    names = ";".join(sorted(headers))
    lines = [f"{name}:{value}" for name, value in sorted(headers.items())]
    request = "\n".join(["GET", url.path, url.query, *lines, "", names, _EMPTY_HASH])
    scope = f"{moment[:8]}/{config.region}/s3/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{config.secret_key.reveal()}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"{_ALGORITHM}\n{moment}\n{scope}\n{digest}"
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    token = f"Credential={config.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    del headers["host"]
    return FetchOptions(token=token, scheme=_ALGORITHM, secret_headers=tuple(headers.items()))
