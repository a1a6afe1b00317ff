"""Rules for uploads. An upload is checked completely before anything is stored."""

from __future__ import annotations

import base64
import binascii
from itertools import accumulate
from typing import TYPE_CHECKING

from skillhall._internal.skill.bundle import RelativePath, fold_name
from skillhall.errors import TooLarge, UnsafePath, UploadRejected, label_without_credentials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.prompt_server.prompt_model import Upload, UploadedFile

MAX_FILES = 100
MAX_BYTES = 256 * 1024  # decoded, of all files together
MAX_NAME = 200  # characters
MAX_HASH = 200  # characters
MAX_DEPTH = 32  # folders
_MAX_PART_BYTES = 255  # limit of most file systems
_PERMISSIONS = 0o777
_OWNER_READ_WRITE = 0o600  # the server must be able to read and replace its files
_DEFAULT_MODE = 0o644
_MAX_SHOWN_PATH = 100  # characters of a path in a message


def validate_upload(upload: Upload) -> dict[str, tuple[bytes, int]]:
    """Check an upload; return the content and mode of each file, by path.

    Raises: UploadRejected, TooLarge.
    """
    validate_source_name(upload.source)
    if len(upload.content_hash) > MAX_HASH or not upload.content_hash.isprintable():
        raise UploadRejected(f"'contentHash' must be at most {MAX_HASH} printable characters")
    if not upload.files:
        raise UploadRejected("an upload needs at least one file")
    if len(upload.files) > MAX_FILES:
        raise TooLarge("the upload", MAX_FILES, "files")
    paths = [_validate_path(file.path) for file in upload.files]
    _check_path_conflicts(paths)
    # Base64 has four characters for three bytes: do not decode an upload that is far too large.
    # Padding makes the estimate up to two bytes per file too high.
    if sum(len(file.content) for file in upload.files) // 4 * 3 > MAX_BYTES + 2 * MAX_FILES:
        raise TooLarge("the upload", MAX_BYTES)
    contents = [_decode_content(file) for file in upload.files]
    if sum(map(len, contents)) > MAX_BYTES:
        raise TooLarge("the upload", MAX_BYTES)
    modes = [
        _DEFAULT_MODE if file.mode is None else file.mode & _PERMISSIONS | _OWNER_READ_WRITE
        for file in upload.files
    ]
    return dict(zip(paths, zip(contents, modes, strict=True), strict=True))


def normalize_source_name(source: str) -> str:
    """Return the stored name of a source, without the credentials of a URL.

    Names that differ only in their credentials refer to the same source.
    """
    return label_without_credentials(source.strip())


def validate_source_name(name: str) -> None:
    """Check the name of a source. Raises: UploadRejected."""
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise UploadRejected(f"'source' must be a name of 1 to {MAX_NAME} printable characters")


def _validate_path(text: str) -> str:
    try:
        path = RelativePath.parse(text)
    except UnsafePath as error:
        raise _path_error(text, f"is rejected: {error.reason}") from None
    if len(path.parts) > MAX_DEPTH + 1:
        raise _path_error(text, f"is rejected: it is nested deeper than {MAX_DEPTH} folders")
    if any(len(part.encode()) > _MAX_PART_BYTES for part in path.parts):
        raise _path_error(text, "is rejected: one of its names is too long")
    return path.text


def _check_path_conflicts(paths: Sequence[str]) -> None:
    """Reject paths that are equal on some systems, or are both file and folder."""
    files: set[str] = set()
    for path in paths:
        if fold_name(path) in files:
            raise _path_error(
                path, "occurs twice, or is the same as another path on some file systems"
            )
        files.add(fold_name(path))
    spellings: dict[str, str] = {}
    for path in paths:
        for folder in accumulate(path.split("/")[:-1], "{}/{}".format):
            if fold_name(folder) in files:
                raise _path_error(folder, "is both a file and a folder")
            if spellings.setdefault(fold_name(folder), folder) != folder:
                raise _path_error(
                    folder, "is spelled in two ways, which are the same folder on some file systems"
                )


def _path_error(path: str, problem: str) -> UploadRejected:
    return UploadRejected(f"path {path[:_MAX_SHOWN_PATH]!r} {problem}")


def _decode_content(file: UploadedFile) -> bytes:
    """Decode the content. Only canonical base64 is accepted."""
    try:
        data = base64.b64decode(file.content, validate=True)
    except (binascii.Error, ValueError):
        data = None
    if data is None or base64.b64encode(data).decode("ascii") != file.content:
        raise UploadRejected(
            f"the content of {file.path[:_MAX_SHOWN_PATH]!r} is not canonical base64"
        )
    return data
