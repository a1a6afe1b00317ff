"""Format of a backup: compressed JSON lines, with digests to detect damage.

The first line is the header. Then come the files, in chunks, and the rows of each table; each chunk
and table has a digest. The last line has totals and the digest of all lines before it, so that a
truncated file is detected. Format 1, written by earlier versions, has no files and no digests of
tables. `docs/reference/backup-format.md` describes both.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import io
import json
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from skillhall._internal.skill.bundle import RelativePath, sha256_hex
from skillhall.errors import BackupRejected, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    Progress: TypeAlias = Callable[[int], None]  # called with the number of bytes read so far

FORMAT_1, FORMAT_2 = "skillhall.backup/1", "skillhall.backup/2"
CHUNK_BYTES = 1024 * 1024  # of a file; a larger file has several entries
_MAX_LINE_BYTES = 64 * 1024 * 1024  # a row contains at most one file of 10 MiB, as base64
_MAX_MODE = 0o777
_MAX_INTEGER = 2**63 - 1
_BUFFER_BYTES = 256 * 1024
_COMPRESSION_LEVEL = 6
_BASE64_KEY, _TEXT_KEY = "base64", "text"  # mark a value as bytes


class BackupHeader(NamedTuple):
    """First line of a backup."""

    format: str
    version: int  # of the database schema
    at: str
    database: str  # "sqlite" or "postgresql"; "" in format 1
    left_out: tuple[str, ...] = ()


class TableStart(NamedTuple):
    """Start of the rows of a table."""

    name: str
    columns: list[str]


class FileChunk(NamedTuple):
    """Chunk of a file. `part` names the folder that the file belongs to."""

    part: str
    path: RelativePath
    mode: int
    modified: int  # nanoseconds since 1970
    data: bytes
    offset: int = 0
    is_last: bool = True


class BackupTotals(NamedTuple):
    """Last line of a backup."""

    rows: int
    files: int = 0
    bytes: int = 0  # of the files
    skipped: tuple[str, ...] = ()  # files that could not be stored


BackupEntry: TypeAlias = TableStart | list[object] | FileChunk | BackupTotals


class BackupWriter:
    """Writes a backup to a stream, entry by entry."""

    def __init__(self, stream: BinaryIO, header: BackupHeader) -> None:
        # Lines are short, and each call of the compressor is slow.
        self._packed = gzip.GzipFile(
            fileobj=stream, mode="wb", compresslevel=_COMPRESSION_LEVEL, mtime=0
        )
        self._out = io.BufferedWriter(cast("io.RawIOBase", self._packed), _BUFFER_BYTES)
        self._digest = hashlib.sha256()
        self._rows = self._files = self._bytes = 0
        self._write_line(
            {
                "format": header.format,
                "version": header.version,
                "at": header.at,
                "database": header.database,
                "leftOut": header.left_out,
            }
        )

    def write_chunk(self, chunk: FileChunk) -> None:
        """Write a chunk of a file. The chunks of one file must be consecutive."""
        entry: dict[str, object] = {
            "file": f"{chunk.part}/{chunk.path}",
            "mode": chunk.mode,
            "modified": chunk.modified,
            "sha256": sha256_hex(chunk.data),
            "data": _encode_value(chunk.data),
        }
        if chunk.offset:
            entry["offset"] = chunk.offset
        if not chunk.is_last:
            entry["more"] = True
        self._write_line(entry)
        self._files += chunk.is_last
        self._bytes += len(chunk.data)

    def write_table(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
    ) -> None:
        """Write the rows of a table."""
        self._write_line({"table": name, "columns": columns})
        digest, count = hashlib.sha256(), 0
        for row in rows:
            line = self._write_line([_encode_value(value) for value in row])
            digest.update(line)
            count += 1
        self._write_line({"table": name, "rows": count, "sha256": digest.hexdigest()})
        self._rows += count

    def finish(self, skipped: Sequence[str]) -> BackupTotals:
        """Write the last line. The stream stays open."""
        totals = BackupTotals(self._rows, self._files, self._bytes, tuple(skipped))
        self._write_line({"end": totals._asdict(), "sha256": self._digest.hexdigest()})
        self._out.flush()
        self._packed.close()
        return totals

    def _write_line(self, value: object) -> bytes:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), check_circular=False)
        line = f"{text}\n".encode()
        self._digest.update(line)
        self._out.write(line)
        return line


class BackupReader:
    """Reads a backup and checks every digest. Raises BackupRejected if one is wrong."""

    def __init__(self, stream: BinaryIO, progress: Progress | None = None) -> None:
        self._stream = stream
        self._progress = progress
        self.header = _parse_header(next(self._read_lines(), b""))

    def entries(self) -> Iterator[BackupEntry]:
        """Iterate over all entries from the start. The last one contains the totals.

        Raises: BackupRejected.
        """
        try:
            yield from self._parse_entries()
        except (OSError, EOFError, ValueError, RecursionError, zlib.error):
            raise BackupRejected("it is damaged or not a backup") from None
        except (KeyError, TypeError, UnsafePath):
            raise BackupRejected("it contains an invalid entry") from None

    def _parse_entries(self) -> Iterator[BackupEntry]:
        digest = hashlib.sha256()
        state = _ReaderState(self.header.format == FORMAT_1)
        for number, line in enumerate(self._read_lines()):
            if state.is_complete:
                raise BackupRejected("it has data after its end")
            if number:
                entry = state.parse_line(line, digest)
                if entry is not None:
                    yield entry
            digest.update(line)
        if not state.is_complete:
            raise BackupRejected("its end is missing")

    def _read_lines(self) -> Iterator[bytes]:
        self._stream.seek(0)
        with gzip.GzipFile(fileobj=self._stream) as packed:
            lines = io.BufferedReader(cast("io.RawIOBase", packed), _BUFFER_BYTES)
            for number in range(_MAX_INTEGER):
                try:
                    line = lines.readline(_MAX_LINE_BYTES)
                except (OSError, EOFError, zlib.error):
                    raise BackupRejected("it is damaged or not a backup") from None
                if not line:
                    return
                if self._progress is not None and number % 256 == 0:
                    self._progress(self._stream.tell())
                yield line


class _ReaderState:
    """State of the reader, which decides what the next line may contain."""

    def __init__(self, is_format_1: bool) -> None:  # noqa: FBT001 - private
        self.is_complete = False
        self._is_format_1 = is_format_1
        self._rows = self._files = self._bytes = 0
        self._table = ""
        self._table_rows = 0
        self._table_digest = hashlib.sha256()
        self._last_chunk: FileChunk | None = None

    def parse_line(self, line: bytes, digest: Any) -> BackupEntry | None:  # noqa: ANN401 - a hash
        """Return the entry in a line; `None` if the line ends a table."""
        value = json.loads(line)
        if isinstance(value, list):
            return self._parse_row(line, value)
        if not isinstance(value, dict):
            raise TypeError
        if "file" in value and not self._is_format_1:
            return self._parse_chunk(value)
        if self._last_chunk is not None and not self._last_chunk.is_last:
            raise BackupRejected("a file is incomplete")
        if "columns" in value or "table" in value:
            return self._parse_table(value)
        return self._parse_end(value, digest.hexdigest())

    def _parse_row(self, line: bytes, value: list[object]) -> list[object]:
        if not self._table:
            raise BackupRejected("it contains a row that belongs to no table")
        self._rows += 1
        self._table_rows += 1
        self._table_digest.update(line)
        return [_decode_value(item) for item in value]

    def _parse_table(self, value: dict[str, Any]) -> TableStart | None:
        if "columns" not in value:
            facts = (value["table"], value["rows"], value["sha256"])
            if facts != (self._table, self._table_rows, self._table_digest.hexdigest()):
                raise BackupRejected("the rows of a table were changed")
            self._table = ""
            return None
        name, columns = value.get("table"), value["columns"]
        if not isinstance(name, str) or not name or not isinstance(columns, list):
            raise BackupRejected("the start of a table is invalid")
        if self._table and not self._is_format_1:
            raise BackupRejected("the end of a table is missing")
        self._table, self._table_rows, self._table_digest = name, 0, hashlib.sha256()
        return TableStart(name, [str(column) for column in columns])

    def _parse_chunk(self, value: dict[str, Any]) -> FileChunk:
        data, mode, modified = _decode_value(value["data"]), value["mode"], value["modified"]
        offset = value.get("offset", 0)
        if not isinstance(data, bytes) or len(data) > CHUNK_BYTES:
            raise TypeError
        if not all(type(number) is int for number in (mode, modified, offset)):
            raise TypeError
        if not 0 <= mode <= _MAX_MODE or not 0 <= modified <= _MAX_INTEGER:
            raise BackupRejected("a file has invalid permissions or an invalid time")
        part, _, text = str(value["file"]).partition("/")
        path = RelativePath.parse(text)
        if path.text != text or sha256_hex(data) != value["sha256"]:
            raise BackupRejected("a file was changed")
        chunk = FileChunk(part, path, mode, modified, data, offset, "more" not in value)
        self._check_order(chunk)
        self._last_chunk = chunk
        self._files += offset == 0
        self._bytes += len(data)
        return chunk

    def _check_order(self, chunk: FileChunk) -> None:
        """Check that chunks are consecutive, and files sorted and before all tables.

        No file may occur twice or be inside another one.
        """
        last = self._last_chunk
        if last is not None and not last.is_last:
            expected = (last.part, last.path, last.offset + len(last.data))
            if (chunk.part, chunk.path, chunk.offset) != expected or not chunk.data:
                raise BackupRejected("a file is incomplete")
        elif chunk.offset or self._table or self._rows:
            raise BackupRejected("its entries are not in order")
        elif last is not None and last.part == chunk.part:
            before, parts = last.path.parts, chunk.path.parts
            if before >= parts or parts[: len(before)] == before:
                raise BackupRejected("its entries are not in order")

    def _parse_end(self, value: dict[str, Any], digest: str) -> BackupTotals:
        end = {"rows": value.get("rows")} if self._is_format_1 else value["end"]
        if value.get("sha256") != digest or end["rows"] != self._rows:
            raise BackupRejected("its beginning or end is missing, or it was changed")
        self.is_complete = True
        if self._is_format_1:
            return BackupTotals(self._rows)
        if self._table or (end["files"], end["bytes"]) != (self._files, self._bytes):
            raise BackupRejected("its beginning or end is missing, or it was changed")
        return BackupTotals(self._rows, self._files, self._bytes, _parse_texts(end["skipped"]))


def _parse_header(line: bytes) -> BackupHeader:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise BackupRejected("it is damaged or not a backup") from None
    if not isinstance(value, dict) or value.get("format") not in (FORMAT_1, FORMAT_2):
        raise BackupRejected("it is not a backup, or was written by a newer version of Skillhall")
    version, database = value.get("version"), value.get("database", "")
    if type(version) is not int or version < 1:
        raise BackupRejected("its schema version is missing or invalid")
    if value["format"] == FORMAT_1:
        return BackupHeader(FORMAT_1, version, str(value.get("at", "")), "")
    if database not in ("sqlite", "postgresql"):
        raise BackupRejected("its database type is missing or unknown")
    return BackupHeader(
        FORMAT_2, version, str(value.get("at", "")), database, _parse_texts(value.get("leftOut"))
    )


def _parse_texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _encode_value(value: object) -> object:
    """Encode bytes as text if they are UTF-8, which compresses better, else as base64."""
    if not isinstance(value, bytes | memoryview):
        return value
    data = bytes(value)
    try:
        return {_TEXT_KEY: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {_BASE64_KEY: base64.b64encode(data).decode("ascii")}


def _decode_value(value: object) -> object:
    if not isinstance(value, dict):
        return value
    try:
        if _TEXT_KEY in value:
            return str(value[_TEXT_KEY]).encode("utf-8")
        return base64.b64decode(value[_BASE64_KEY], validate=True)
    except (KeyError, TypeError, UnicodeEncodeError, binascii.Error):
        raise BackupRejected("it contains a value that cannot be read") from None
