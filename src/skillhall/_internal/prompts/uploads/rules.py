"""The rules for uploads: all of one is checked before anything of it is kept. Pure."""

from __future__ import annotations

import base64
import binascii
from itertools import accumulate
from typing import TYPE_CHECKING

from skillhall._internal.skill.bundle import RelativePath, fold_name
from skillhall.errors import TooLarge, UnsafePath, UploadRejected, label_without_credentials

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.prompts.prompt_model import Upload, UploadedFile

MAX_FILES = 100
MAX_BYTES = 256 * 1024  # of all files together, decoded
MAX_NAME = 200  # characters of a source's name
MAX_HASH = 200  # characters of what a client calls the state of its files
MAX_DEPTH = 32  # folders
_MAX_PART_BYTES = 255  # bytes; file systems hold no longer one
_PERMISSIONS = 0o777
_OWNER_READ_WRITE = 0o600  # what we write we must be able to read and replace
_DEFAULT_MODE = 0o644
_MAX_SHOWN_PATH = 100  # characters of a path that a message repeats


def validate_upload(upload: Upload) -> dict[str, tuple[bytes, int]]:
    """The bytes and modes of all files, by path. Raises: UploadRejected, TooLarge."""
    validate_source_name(upload.source)
    if len(upload.content_hash) > MAX_HASH or not upload.content_hash.isprintable():
        raise UploadRejected(f"contentHash must be at most {MAX_HASH} printable characters")
    if not upload.files:
        raise UploadRejected("an upload needs at least one file")
    if len(upload.files) > MAX_FILES:
        raise TooLarge("the upload", MAX_FILES, "files")
    paths = [_validate_path(file.path) for file in upload.files]
    _check_path_conflicts(paths)
    # Base64 has four characters for three bytes: what is far too large is not even decoded.
    if sum(len(file.content) for file in upload.files) // 4 * 3 > MAX_BYTES + 2 * MAX_FILES:
        raise TooLarge("the upload", MAX_BYTES)
    contents = [_decode_content(file) for file in upload.files]
    if sum(map(len, contents)) > MAX_BYTES:
        raise TooLarge("the upload", MAX_BYTES)
    modes = [_to_file_mode(file) for file in upload.files]
    return dict(zip(paths, zip(contents, modes, strict=True), strict=True))


def normalize_source_name(source: str) -> str:
    """The name that a source is stored and found under, without the credentials of an address.

    Names that differ only in their credentials are one source.
    """
    return label_without_credentials(source.strip())


def validate_source_name(name: str) -> None:
    """Refuse what is no name of a source. Raises: UploadRejected."""
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise UploadRejected(f"source must be a name of 1 to {MAX_NAME} printable characters")


def _validate_path(text: str) -> str:
    try:
        path = RelativePath.parse(text)
    except UnsafePath as error:
        raise UploadRejected(
            f"path {text[:_MAX_SHOWN_PATH]!r} is refused: {error.reason}"
        ) from None
    if len(path.parts) > MAX_DEPTH + 1:
        raise UploadRejected(
            f"path {text[:_MAX_SHOWN_PATH]!r} is refused: it is deeper than {MAX_DEPTH}"
        )
    if any(len(part.encode()) > _MAX_PART_BYTES for part in path.parts):
        raise UploadRejected(
            f"path {text[:_MAX_SHOWN_PATH]!r} is refused: one of its names is too long"
        )
    return path.text


def _check_path_conflicts(paths: Sequence[str]) -> None:
    """Refuse paths that are one on some system, and files that would be folders too."""
    files: set[str] = set()
    for path in paths:
        if fold_name(path) in files:
            raise UploadRejected(
                f"path {path[:_MAX_SHOWN_PATH]!r} is there twice, on some systems at least"
            )
        files.add(fold_name(path))
    spelled: dict[str, str] = {}
    for path in paths:
        for folder in _list_parent_folders(path):
            if fold_name(folder) in files:
                raise UploadRejected(
                    f"path {folder[:_MAX_SHOWN_PATH]!r} is both a file and a folder"
                )
            if spelled.setdefault(fold_name(folder), folder) != folder:
                raise UploadRejected(
                    f"the folder {folder[:_MAX_SHOWN_PATH]!r} is spelled in two ways"
                )


def _list_parent_folders(path: str) -> Iterable[str]:
    return accumulate(path.split("/")[:-1], "{}/{}".format)


def _decode_content(file: UploadedFile) -> bytes:
    """The bytes, if the base64 is the one way to write them."""
    try:
        data = base64.b64decode(file.content, validate=True)
    except (binascii.Error, ValueError):
        data = None
    if data is None or base64.b64encode(data).decode("ascii") != file.content:
        raise UploadRejected(
            f"the content of {file.path[:_MAX_SHOWN_PATH]!r} is not canonical base64"
        )
    return data


def _to_file_mode(file: UploadedFile) -> int:
    return _DEFAULT_MODE if file.mode is None else file.mode & _PERMISSIONS | _OWNER_READ_WRITE
