"""References to folders and archives in stores with the S3 API: `s3://bucket/path`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.sources.base import OpenedSource, Ref
from skillhall.errors import SourceRejected, UnsafePath

if TYPE_CHECKING:
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.source_text import SourceText

_PREFIX = "s3://"
_BUCKET = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


@dataclass(frozen=True, slots=True)
class S3Ref(Ref):
    """Folder of skills, or an archive, in a bucket."""

    bucket: str
    path: str = ""  # without a final slash; "" is the whole bucket

    is_remote = True

    @property
    def text(self) -> str:
        """The text that parses to this reference."""
        return f"{_PREFIX}{self.bucket}/{self.path}".rstrip("/")

    def open(self, context: SourceContext) -> OpenedSource:
        """Download the skills. Raises: as `read_bucket`."""
        # Imported here because reading a lock file must not load it: see `Ref`.
        from skillhall._internal.sources.s3.bucket import read_bucket  # noqa: PLC0415

        return OpenedSource(self, read_bucket(self, context))


def parse_s3(source: SourceText) -> S3Ref | None:
    """Parse the name of a bucket with an optional path. Raises: SourceRejected."""
    if source.scheme != "s3" or not source.text.startswith(_PREFIX):
        return None
    bucket, _, path = source.text.removeprefix(_PREFIX).partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise SourceRejected("host", source.text, "it is not a valid bucket name")
    path = path.rstrip("/")
    try:
        if path and RelativePath.parse(path).text != path:
            raise SourceRejected("path", source.text, "its path is not normalized")
    except UnsafePath as error:
        raise SourceRejected("path", source.text, error.reason) from None
    return S3Ref(bucket, path)
