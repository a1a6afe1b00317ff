"""Hostile archives by description: file name, bytes and error code."""

import gzip
import stat
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from tests.support.archives import (
    SKILL,
    STORED,
    UTF8,
    TarEntry,
    ZipEntry,
    central_header,
    deflate,
    local_header,
    make_tar,
    make_tgz,
    make_zip,
    pax,
    tgz_of,
    zip_end,
    zip_of,
)

ROOT, TAR_ROOT = ZipEntry("SKILL.md", SKILL), TarEntry("SKILL.md", SKILL)
ZIP, TGZ = "pdf.zip", "pdf.tar.gz"
REJECTED, TOO_LARGE = "archive_rejected", "too_large"


class HostileArchive(NamedTuple):
    """Archive that must be rejected, with the error code."""

    name: str
    data: bytes
    code: str = REJECTED


NAMES: dict[str, str | bytes] = {
    "climbs out": "../evil",
    "climbs out from inside": "a/../../evil",
    "is absolute": "/etc/evil",
    "begins with a drive": "C:/evil",
    "begins with a drive and no slash": "C:evil",
    "begins with a server": "//server/share/evil",
    "has a backslash": "a\\evil",
    "climbs out by backslashes": "..\\..\\evil",
    "begins with a server by backslashes": "\\\\server\\share",
    "is empty": "",
    "is a dot": ".",
    "has a NUL": "a\x00b",
    "has an escape": "a\x1b[31mb",
    "has a line break": "a\nb",
    "turns its direction": "a\u202egnp.exe",
    "is no UTF-8": b"a\xff\xfe",
    "is overlong UTF-8": b"a\xc0\xafb",
    "is a device": "CON",
    "is a device with an ending": "a/nul.txt",
    "ends in a dot": "a./b",
    "is a stream": "a:evil",
    "is too long": "/".join(["x" * 60] * 4),
    "is 200 levels deep": "a/" * 200 + "b",
}
CLASHING_NAMES = {
    "are the same": ["a", "a"],
    "differ in case": ["a.txt", "A.TXT"],
    "differ in their Unicode form": ["é", unicodedata.normalize("NFD", "é")],
    "are a file and a folder": ["a", "a/b"],
    "are a folder and a file": ["a/b", "a"],
    "are two SKILL.md": ["SKILL.md", "skill.md"],
}
ZIP_KINDS = {
    "link": stat.S_IFLNK,
    "pipe": stat.S_IFIFO,
    "character device": stat.S_IFCHR,
    "block device": stat.S_IFBLK,
    "socket": stat.S_IFSOCK,
}
TAR_KINDS = {
    "hard link": b"1",
    "link": b"2",
    "character device": b"3",
    "block device": b"4",
    "pipe": b"6",
    "sparse file": b"S",
}
RECORDS = {
    "make it sparse": {"GNU.sparse.major": "1", "GNU.sparse.map": "0,1"},
    "make it a link": {"linkpath": "/etc/passwd"},
    "change its size": {"size": "0"},
    "give it a size without end": {"size": "9" * 5000},
}
HEADER_LIES: dict[str, dict[str, int | bytes]] = {
    "name": {"name": b"b"},
    "flags": {"flags": 0},
    "method": {"method": STORED},
    "checksum": {"crc": 1},
    "packed size": {"packed": 1},
    "size": {"size": 2},
    "signature": {"sign": b"pk"},
}


def hostile_archives() -> Iterator[tuple[str, HostileArchive]]:
    """Yield all hostile archives with a description."""
    for what, name in NAMES.items():
        yield f"a zip with a name that {what}", _zip(ZipEntry(name))
        yield f"a tar with a name that {what}", _tgz(pax({"path": name}), TarEntry("harmless"))
    for what, names in CLASHING_NAMES.items():
        yield f"a zip with names that {what}", HostileArchive(ZIP, make_zip(*map(ZipEntry, names)))
        yield f"a tar with names that {what}", HostileArchive(TGZ, make_tgz(*map(TarEntry, names)))
    for what, kind in ZIP_KINDS.items():
        yield f"a zip with a {what}", _zip(ZipEntry("a", b"/etc/passwd", kind | 0o777))
    for what, letter in TAR_KINDS.items():
        yield f"a tar with a {what}", _tgz(TarEntry("a", b"", letter, link=b"../../outside"))
    for what, records in RECORDS.items():
        yield f"a tar with records that {what}", _tgz(pax(records), TarEntry("a"))
    yield from _oversized()
    yield from _confusing()
    yield from _damaged()
    yield from _iter_without_skill()


def _zip(*entries: ZipEntry, code: str = REJECTED) -> HostileArchive:
    return HostileArchive(ZIP, make_zip(ROOT, *entries), code)


def _tgz(*entries: TarEntry, code: str = REJECTED) -> HostileArchive:
    return HostileArchive(TGZ, make_tgz(TAR_ROOT, *entries), code)


def _oversized() -> Iterator[tuple[str, HostileArchive]]:
    much, many = {"SKILL.md": SKILL, "a": bytes(2_000_000)}, range(2_001)
    yield "a zip that unpacks to much more than it is", HostileArchive(ZIP, zip_of(much), TOO_LARGE)
    yield "a tar that unpacks to much more than it is", HostileArchive(TGZ, tgz_of(much), TOO_LARGE)
    bomb = ZipEntry("a", b"x", packed_data=deflate(bytes(3_000_000)))
    yield "a zip that hides how much it unpacks to", _zip(bomb, code=TOO_LARGE)
    names = {str(number): b"" for number in many}
    yield "a zip with many entries", HostileArchive(ZIP, zip_of(names), TOO_LARGE)
    yield "a tar with many entries", HostileArchive(TGZ, tgz_of(names), TOO_LARGE)
    yield "a zip that announces many entries", HostileArchive(ZIP, zip_end(0xFFFE, 0, 0), TOO_LARGE)
    giant = TarEntry("a", size=b"77777777777\x00")
    yield "a tar with a giant member", _tgz(giant, code=TOO_LARGE)
    zeros = make_tgz(TAR_ROOT, end=bytes(3_000_000))
    yield "a tar that goes on after its end", HostileArchive(TGZ, zeros, TOO_LARGE)


def _confusing() -> Iterator[tuple[str, HostileArchive]]:
    valid = make_zip(ROOT, ZipEntry("a"))
    for what, lie in HEADER_LIES.items():
        yield (
            f"a zip whose headers disagree on the {what}",
            _zip(ZipEntry("a", local_overrides=lie)),
        )
    yield "a zip with entries that share their bytes", HostileArchive(ZIP, _overlapping())
    yield "a zip with a program before it", HostileArchive(ZIP, b"#!/bin/sh\n" + valid)
    yield "a zip with bytes behind it", HostileArchive(ZIP, valid + b"junk")
    yield "a zip behind a zip", HostileArchive(ZIP, valid + zip_of({"SKILL.md": b"other"}))
    comment = zip_of({"SKILL.md": b"other"})
    yield "a zip in the comment of a zip", HostileArchive(ZIP, make_zip(ROOT, comment=comment))
    hidden = make_zip(ROOT, ZipEntry("hidden"), listed=1)
    yield "a zip with an entry that it does not list", HostileArchive(ZIP, hidden)
    yield "a zip called a tar", HostileArchive(TGZ, valid)
    yield "a tar called a zip", HostileArchive(ZIP, make_tgz(TAR_ROOT))
    two = make_tgz(TAR_ROOT) + make_tgz(TAR_ROOT)
    yield "a tar of two gzip streams", HostileArchive(TGZ, two)
    yield "a tar behind a tar", HostileArchive(TGZ, gzip.compress(make_tar(TAR_ROOT) * 2))


def _overlapping() -> bytes:
    body = local_header(ROOT) + ROOT.packed
    twins = [ROOT, ZipEntry("a", SKILL)]
    directory = b"".join(central_header(item, 0) for item in twins)
    return body + directory + zip_end(2, len(directory), len(body))


def _damaged() -> Iterator[tuple[str, HostileArchive]]:
    wrong: dict[str, int | bytes] = {"crc": 1}
    valid = make_zip(ROOT, ZipEntry("a", bytes(500)))
    yield "a zip that is encrypted", _zip(ZipEntry("a", flags=UTF8 | 1))
    yield "a zip that is packed in an unknown way", _zip(ZipEntry("a", method=14))
    yield (
        "a zip with a wrong checksum",
        _zip(ZipEntry("a", local_overrides=wrong, central_overrides=wrong)),
    )
    yield "a zip with damaged bytes", _zip(ZipEntry("a", packed_data=b"\xff\xff\xff"))
    yield "a zip that is cut in the middle", HostileArchive(ZIP, valid[: len(valid) // 2])
    yield "a zip without its last byte", HostileArchive(ZIP, valid[:-1])
    yield "a tar that is cut in the middle", HostileArchive(TGZ, make_tgz(TAR_ROOT)[:60])
    yield "a tar without an end", HostileArchive(TGZ, make_tgz(TAR_ROOT, end=b""))
    yield "a tar with a wrong checksum", _tgz(TarEntry("a", checksum=b"000001\x00 "))
    yield "an empty file", HostileArchive(ZIP, b"")
    yield "a page instead of a zip", HostileArchive(ZIP, b"<html>Sign in</html>")
    yield "a page instead of a tar", HostileArchive(TGZ, gzip.compress(b"<html>Sign in</html>"))


def _iter_without_skill() -> Iterator[tuple[str, HostileArchive]]:
    for what, names in {
        "nothing": [],
        "no SKILL.md": ["README.md"],
        "a folder called SKILL.md": ["SKILL.md/a"],
        "a SKILL.md among litter": ["__MACOSX/SKILL.md"],
    }.items():
        yield f"a zip with {what}", HostileArchive(ZIP, zip_of(dict.fromkeys(names, SKILL)))
        yield f"a tar with {what}", HostileArchive(TGZ, tgz_of(dict.fromkeys(names, SKILL)))
