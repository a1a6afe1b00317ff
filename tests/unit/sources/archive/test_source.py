"""Archives: bundles from valid ones, and rejection of hostile ones."""

import contextlib
import gzip
import io
import shutil
import stat
import struct
import subprocess
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.sources.archive.source import (
    DEFAULT_ARCHIVE_LIMITS,
    REPOSITORY_LIMITS,
    ArchiveExtraction,
    ArchiveLimits,
    read_archive,
)
from skillhall._internal.sources.archive.tar_format import iterate_tar_members
from skillhall.errors import ArchiveRejected, TooLarge
from tests.support.archives import (
    SKILL,
    STORED,
    STREAMED,
    UTF8,
    TarEntry,
    ZipEntry,
    central_header,
    deflate,
    extra_field,
    local_header,
    make_tar,
    make_tgz,
    make_zip,
    pax,
    pax_record,
    tgz_of,
    zip_end,
    zip_of,
)

Pack: TypeAlias = Callable[[Mapping[str, bytes]], bytes]
BINARY = bytes(range(256)) * 40 + b"\r\n\xef\xbb\xbf\x1a"
ROOT = ZipEntry("SKILL.md", SKILL)
TAR_ROOT = TarEntry("SKILL.md", SKILL)
SMALL = ArchiveLimits(
    entries=10, total=4000, file=2000, ratio=10, ratio_min_total=3000, depth=3, path=20
)
FORMATS = pytest.mark.parametrize(
    "pack",
    [zip_of, tgz_of, lambda files: gzip.decompress(tgz_of(files))],
    ids=["zip", "tgz", "tar"],
)
SOURCES = st.sampled_from(["a", "é", "run.py", "Z", "b c", "SKILL.md", "x" * 30, "日本", "👩‍💻"])
TREES = st.dictionaries(
    st.lists(SOURCES, min_size=1, max_size=3).map("/".join), st.binary(max_size=80), max_size=5
)


def read(
    data: bytes, name: str = "pdf", limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS
) -> tuple[Bundle, ...]:
    return read_archive(data, name, limits)


def contents(bundle: Bundle) -> dict[str, bytes]:
    return {path: file.read() for path, file in bundle.files.items()}


def folders(bundles: tuple[Bundle, ...]) -> list[str]:
    return [bundle.folder for bundle in bundles]


def rejection_reason(
    data: bytes, name: str = "pdf", limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS
) -> str:
    """Return the reason why an archive is rejected, or `too_large`."""
    with pytest.raises((ArchiveRejected, TooLarge)) as caught:
        read_archive(data, name, limits)
    assert len(str(caught.value)) < 400
    return caught.value.reason if isinstance(caught.value, ArchiveRejected) else caught.value.code


# Bundles


@FORMATS
def test_bytes_are_unchanged(pack: Pack) -> None:
    files = {"SKILL.md": SKILL, "assets/logo.bin": BINARY, "empty.txt": b"", "é/日本.md": b"\r\n"}
    (bundle,) = read(pack(files))
    assert contents(bundle) == files
    assert [file.size for file in bundle.files.values()] == [len(SKILL), len(BINARY), 0, 2]
    assert bundle.findings == ()


@FORMATS
def test_files_are_in_path_order(pack: Pack) -> None:
    (bundle,) = read(pack({"b": b"", "SKILL.md": SKILL, "a/c": b"", "a.txt": b""}))
    assert list(bundle.files) == ["SKILL.md", "a.txt", "a/c", "b"]


@pytest.mark.parametrize(
    ("mode", "executable"),
    [(0o100644, False), (0o100755, True), (0o104755, True), (0o106777, True), (0o066, False)],
)
def test_only_executable_bit_of_mode_is_kept(mode: int, executable: bool) -> None:
    tar_mode = b"%07o\x00" % (mode & 0o7777)
    zipped = make_zip(ROOT, ZipEntry("run", mode=mode))
    tarred = make_tgz(TAR_ROOT, TarEntry("run", mode=tar_mode))
    for (bundle,) in (read(zipped), read(tarred)):
        assert bundle.files["run"].executable is executable


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("pdf-tools.zip", "pdf-tools"),
        ("pdf-tools.ZIP", "pdf-tools"),
        ("pdf.tools.skill", "pdf.tools"),
        ("/home/ada/pdf.zip", "pdf"),
        (r"C:\Users\ada\pdf.zip", "pdf"),
        ("../../etc/..", "skill"),
        ("CON.zip", "skill"),
        (".zip", "skill"),
        ("a\x00b.zip", "skill"),
        ("", "skill"),
    ],
)
def test_root_skill_is_named_after_archive(name: str, folder: str) -> None:
    assert folders(read(make_zip(ROOT), name)) == [folder]


@pytest.mark.parametrize("name", ["pdf.tar.gz", "pdf.tgz", "pdf.TAR.GZ", "pdf.tar", "pdf"])
def test_every_tar_extension_is_removed(name: str) -> None:
    assert folders(read(make_tgz(TAR_ROOT), name)) == ["pdf"]


@FORMATS
def test_wrapper_folder_names_the_skill(pack: Pack) -> None:
    (bundle,) = read(pack({"pdf-main/SKILL.md": SKILL, "pdf-main/a/b.txt": b"x"}), "x")
    assert bundle.folder == "pdf-main"
    assert contents(bundle) == {"SKILL.md": SKILL, "a/b.txt": b"x"}


@FORMATS
def test_deeply_nested_skills_are_found(pack: Pack) -> None:
    files = ["r/b/SKILL.md", "r/a/x/y/SKILL.md", "r/b/f.txt", "README.md", "r/a/z.txt", "r/ab/f"]
    result = read(pack(dict.fromkeys(files, SKILL)))
    assert folders(result) == ["r/a/x/y", "r/b"]
    assert [list(bundle.files) for bundle in result] == [["SKILL.md"], ["SKILL.md", "f.txt"]]


@FORMATS
def test_nested_skill_belongs_to_outer_skill(pack: Pack) -> None:
    result = read(pack(dict.fromkeys(["a/b/c/SKILL.md", "a/SKILL.md", "a/b/SKILL.md"], SKILL)))
    assert folders(result) == ["a"]
    assert list(result[0].files) == ["SKILL.md", "b/SKILL.md", "b/c/SKILL.md"]


def test_skill_md_in_other_case_is_a_skill() -> None:
    assert folders(read(zip_of({"a/skill.md": SKILL, "b/Skill.MD": SKILL}))) == ["a", "b"]


@FORMATS
@pytest.mark.parametrize(
    "files", [["README.md"], ["SKILL.md/a"], ["__MACOSX/SKILL.md"], [".git/a/SKILL.md"]]
)
def test_archive_without_skill_is_rejected(pack: Pack, files: list[str]) -> None:
    with pytest.raises(ArchiveRejected, match=r"No SKILL\.md found") as caught:
        read(pack(dict.fromkeys(files, SKILL)), "pdf")
    assert caught.value.reason == "no_skill"


def test_empty_archive_is_rejected() -> None:
    assert rejection_reason(make_zip()) == "no_skill"
    assert rejection_reason(gzip.compress(bytes(10240))) == "no_skill"


@FORMATS
def test_macos_metadata_is_dropped(pack: Pack) -> None:
    litter = ["__MACOSX/._pdf", "__MACOSX/pdf/._SKILL.md", ".DS_Store", "pdf/.DS_Store", "pdf/._a"]
    (bundle,) = read(pack({**dict.fromkeys(litter, b"\x00"), "pdf/SKILL.md": SKILL}), "x")
    assert bundle.folder == "pdf"
    assert list(bundle.files) == ["SKILL.md"]
    assert bundle.findings == ()


@FORMATS
@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", ".g\u200cit", ".hg", ".svn"])
def test_version_control_folder_is_skipped_with_one_finding(pack: Pack, name: str) -> None:
    files = [f"a/{name}/config", f"a/{name}/hooks/x", "a/SKILL.md", "a/.gitignore", f"{name}/x"]
    (bundle,) = read(pack(dict.fromkeys(files, SKILL)))
    assert list(bundle.files) == [".gitignore", "SKILL.md"]
    assert [(result.code, result.path) for result in bundle.findings] == [("file-left-out", name)]


def test_folder_entries_and_dot_prefixes_are_accepted() -> None:
    folder = ZipEntry("a/", b"", 0o040755, STORED, dos=0x10)
    zipped = make_zip(ZipEntry("./", b"", 0o040755), folder, ZipEntry("./a/SKILL.md", SKILL))
    tarred = make_tgz(
        *(TarEntry(name, b"", b"5") for name in ("./", "./a", "./a/b/")),
        TarEntry("./a/SKILL.md", SKILL),
    )
    assert [folders(read(data)) for data in (zipped, tarred)] == [["a"], ["a"]]


def test_nested_archive_is_not_unpacked() -> None:
    inner = zip_of({"../evil": b"x", "SKILL.md": SKILL})
    data = make_zip(ROOT, ZipEntry("inner.zip", inner, method=STORED))
    assert contents(read(data)[0])["inner.zip"] == inner


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_of_python_is_read(compression: int) -> None:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", compression) as archive:
        archive.mkdir("pdf")
        archive.writestr("pdf/SKILL.md", SKILL)
        with archive.open("pdf/wide.bin", "w", force_zip64=True) as file:
            file.write(BINARY)
        archive.comment = b"made by hand"
    assert contents(read(memory.getvalue())[0]) == {"SKILL.md": SKILL, "wide.bin": BINARY}


class Pipe(io.BytesIO):
    """File that cannot seek, like standard output."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise OSError

    def seek(self, _offset: int, _whence: int = 0) -> int:
        raise OSError


@pytest.mark.parametrize("wide", [False, True])
def test_streamed_zip_is_read(wide: bool) -> None:
    pipe = Pipe()
    with (
        zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("SKILL.md", "w", force_zip64=wide) as file,
    ):
        file.write(SKILL)
    assert contents(read(pipe.getvalue())[0]) == {"SKILL.md": SKILL}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_tar_of_python_is_read(form: int, mode: str) -> None:
    long = "/".join(["d" * 60] * 3) + "/é.bin"
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode=mode, format=form) as archive:  # type: ignore[call-overload]  # the mode is a value here
        for path, data in {"SKILL.md": SKILL, long: BINARY}.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    assert contents(read(memory.getvalue())[0]) == {"SKILL.md": SKILL, long: BINARY}


def test_global_comment_of_git_is_accepted() -> None:
    data = make_tgz(pax({"comment": "0" * 40}, b"g"), TAR_ROOT)
    assert folders(read(data)) == ["pdf"]


# Names

BAD_NAMES = {
    "traversal": "../evil",
    "inner traversal": "a/../../evil",
    "absolute": "/etc/passwd",
    "home": "~/evil",
    "drive": "C:/evil",
    "drive without a slash": "C:evil",
    "UNC": "//server/share/evil",
    "backslash": "a\\evil",
    "backslash traversal": "..\\..\\evil",
    "UNC with backslashes": "\\\\server\\share",
    "empty": "",
    "dot": ".",
    "dots": "..",
    "inner dot": "a/./b",
    "two dot prefixes": "././a",
    "two slashes": "a//b",
    "control": "a\x1bb",
    "newline": "a\nb",
    "delete": "a\x7fb",
    "second control set": "a\x85b",
    "bidi": "a\u202egnp.exe",
    "zero width": "a\u200bb",
    "line separator": "a\u2028b",
    "invalid UTF-8": b"a\xff\xfe",
    "overlong UTF-8": b"a\xc0\xafb",
    "surrogate": b"a\xed\xa0\x80",
    "device": "CON",
    "device with an ending": "a/nul.txt",
    "device with a superscript": "COM¹.md",
    "trailing dot": "a./b",
    "trailing space": "a /b",
    "stream": "a:evil",
    "too long": "/".join(["x" * 60] * 4),
    "too long in bytes": "é" * 121,
    "200 levels": "a/" * 200 + "b",
    "33 folders": "a/" * 33 + "b",
}


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
def test_unsafe_name_is_rejected(name: str | bytes) -> None:
    assert rejection_reason(make_zip(ROOT, ZipEntry(name))) == "path"
    long = TarEntry("", (name if isinstance(name, bytes) else name.encode()) + b"\x00", b"L")
    assert rejection_reason(make_tgz(TAR_ROOT, long, TarEntry("harmless"))) == "path"
    assert rejection_reason(make_tgz(TAR_ROOT, pax({"path": name}), TarEntry("harmless"))) == "path"


def test_nul_in_name_is_rejected() -> None:
    assert rejection_reason(make_zip(ROOT, ZipEntry("a\x00b"))) == "path"
    assert rejection_reason(make_tgz(TAR_ROOT, pax({"path": "a\x00b"}), TarEntry("a"))) == "path"


@pytest.mark.parametrize("name", ["../a/", "/", "a//", "//", "..", "CON/"])
def test_unsafe_folder_is_rejected(name: str) -> None:
    assert rejection_reason(make_tgz(TAR_ROOT, TarEntry(name, b"", b"5"))) == "path"


def test_longest_and_deepest_names_are_accepted() -> None:
    names = ["x" * 120 + "/" + "y" * 119, "a/" * 32 + "b"]
    (bundle,) = read(zip_of({"SKILL.md": SKILL, **dict.fromkeys(names, b"")}))
    assert set(names) <= set(bundle.files)


def test_name_unsafe_without_its_folder_is_rejected() -> None:
    assert rejection_reason(zip_of({"a/SKILL.md": SKILL, "a/~x": b""})) == "path"


def test_ustar_prefix_is_part_of_name() -> None:
    assert rejection_reason(make_tgz(TAR_ROOT, TarEntry("evil", prefix=b"../.."))) == "path"


def test_message_has_no_local_path_and_escapes_names() -> None:
    with pytest.raises(ArchiveRejected) as caught:
        read(make_zip(ZipEntry("a\x1b[31m\u202e")), "/home/ada/secret/pdf.zip")
    assert str(caught.value) == (
        r"the archive 'pdf.zip' is rejected: 'a\x1b[31m\u202e': it contains control characters"
    )


TWINS = [
    ["a", "a"],
    ["a.txt", "A.TXT"],
    ["stra\u00dfe", "STRASSE"],
    ["é", unicodedata.normalize("NFD", "é")],
    ["É", unicodedata.normalize("NFD", "é")],
    ["a", "a\u200d"],
    ["./a", "a"],
    ["a", "a/b"],
    ["a/b", "a"],
    ["A", "a/b"],
    ["a/b", "A/c"],
    ["x/é/a", unicodedata.normalize("NFD", "x/é/b")],
    ["SKILL.md", "skill.md"],
]


@FORMATS
@pytest.mark.parametrize("names", TWINS, ids=lambda names: ascii(" ".join(names)))
def test_colliding_names_are_rejected(pack: Pack, names: list[str]) -> None:
    if pack is zip_of:
        data = make_zip(*(ZipEntry(name) for name in names))
    else:
        data = make_tar(*(TarEntry(name) for name in names))
    assert rejection_reason(data) == "duplicate"


@pytest.mark.parametrize("names", [["a/", "a/"], ["a/", "A/"], ["a/", "a"], ["a", "a/"]])
def test_folder_and_file_of_one_name_are_rejected(names: list[str]) -> None:
    entries = [ZipEntry(name, b"", 0o040755 if name.endswith("/") else 0o100644) for name in names]
    assert rejection_reason(make_zip(ROOT, *entries)) == "duplicate"


# Kinds


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (stat.S_IFLNK, "link"),
        (stat.S_IFIFO, "special"),
        (stat.S_IFCHR, "special"),
        (stat.S_IFBLK, "special"),
        (stat.S_IFSOCK, "special"),
        (0o170000, "special"),
        (stat.S_IFDIR, "confusion"),
    ],
)
def test_zip_with_special_file_is_rejected(kind: int, reason: str) -> None:
    assert rejection_reason(make_zip(ROOT, ZipEntry("a", b"/etc/passwd", kind | 0o777))) == reason


@pytest.mark.parametrize(
    "entry",
    [
        ZipEntry("a/", b"", 0o100644),
        ZipEntry("a", b"", 0, dos=0x10),
        ZipEntry("a/", b"content", 0o040755),
    ],
    ids=["file called like a folder", "folder called like a file", "folder with content"],
)
def test_entry_with_contradicting_name_and_kind_is_rejected(entry: ZipEntry) -> None:
    assert rejection_reason(make_zip(ROOT, entry)) == "confusion"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        *((kind, "link") for kind in (b"1", b"2", b"K")),
        *((kind, "special") for kind in (b"3", b"4", b"6", b"7", b"S", b"D", b"M", b"V", b"?")),
    ],
)
def test_tar_with_special_file_is_rejected(kind: bytes, reason: str) -> None:
    assert (
        rejection_reason(make_tgz(TAR_ROOT, TarEntry("a", b"", kind, link=b"/etc/passwd")))
        == reason
    )


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ({"GNU.sparse.major": "1"}, "special"),
        ({"GNU.sparse.map": "0,1"}, "special"),
        ({"linkpath": "/etc/passwd"}, "link"),
        ({"size": "0"}, "confusion"),
        ({"size": "512"}, "confusion"),
        ({"size": "9" * 5000}, "confusion"),
        ({"hdrcharset": "BINARY"}, "confusion"),
    ],
    ids=str,
)
def test_pax_records_that_change_member_are_rejected(records: dict[str, str], reason: str) -> None:
    assert rejection_reason(make_tgz(TAR_ROOT, pax(records), TarEntry("a"))) == reason


@pytest.mark.parametrize("key", ["path", "size", "linkpath", "hdrcharset", "GNU.sparse.name"])
def test_global_records_that_change_members_are_rejected(key: str) -> None:
    assert rejection_reason(make_tgz(pax({key: "1"}, b"g"), TAR_ROOT)) == "confusion"


def test_pax_records_may_have_name_and_same_size() -> None:
    data = make_tgz(TAR_ROOT, pax({"path": "é", "size": "1", "mtime": "1.5"}), TarEntry("a"))
    assert contents(read(data)[0])["é"] == b"x"


LONG, LAST = TarEntry("", b"b\x00", b"L"), TarEntry("last")
TWICE = {
    "two names": [pax({"path": "b"}), LONG],
    "two sets of records": [pax({"path": "b"}), pax({"path": "c"})],
    "two long names": [LONG, LONG],
    "a record twice": [TarEntry("", pax_record("path", "b") + pax_record("path", "c"), b"x")],
}


@pytest.mark.parametrize("before", TWICE.values(), ids=TWICE)
def test_member_with_two_extension_headers_is_rejected(before: list[TarEntry]) -> None:
    assert rejection_reason(make_tgz(TAR_ROOT, *before, TarEntry("a"))) == "confusion"


@pytest.mark.parametrize(
    "records",
    [b"x", b"5 a=b", b"99 a=b\n", b"6 a=b\n\n", b"0 a=b\n", b"-6 a=b\n", b"5 ab\n", b"9" * 99],
)
def test_malformed_pax_records_are_rejected(records: bytes) -> None:
    assert (
        rejection_reason(make_tgz(TAR_ROOT, TarEntry("", records, b"x"), TarEntry("a")))
        == "malformed"
    )


def test_tar_folder_with_content_and_file_with_slash_are_rejected() -> None:
    assert rejection_reason(make_tgz(TAR_ROOT, TarEntry("a", b"x", b"5"))) == "confusion"
    assert rejection_reason(make_tgz(TAR_ROOT, TarEntry("a/", b"x"))) == "confusion"
    assert rejection_reason(make_tgz(TAR_ROOT, TarEntry("a/", b"x", b"\x00"))) == "confusion"


# Limits


@FORMATS
def test_archive_at_limits_is_read(pack: Pack) -> None:
    files = {"SKILL.md": SKILL, **{f"f{number}": b"" for number in range(9)}}
    limits = ArchiveLimits(entries=10, file=len(SKILL), total=20_000)
    assert len(read(pack(files), limits=limits)[0].files) == 10


@FORMATS
@pytest.mark.parametrize(
    "files",
    [
        {str(number): b"" for number in range(11)},
        {"a": bytes(range(251)) * 8},
        {str(number): bytes([number]) + BINARY[:1400] for number in range(4)},
    ],
    ids=["entries", "a file", "in total"],
)
def test_archive_beyond_limit_is_too_large(pack: Pack, files: dict[str, bytes]) -> None:
    assert rejection_reason(pack(files), limits=SMALL) == "too_large"


@pytest.mark.parametrize("pack", [zip_of, tgz_of])
@pytest.mark.parametrize(("files", "size"), [(1, 2_000_000), (2, 600_000)])
def test_high_compression_ratio_is_too_large(pack: Pack, files: int, size: int) -> None:
    assert (
        rejection_reason(pack({str(number): bytes(size) for number in range(files)})) == "too_large"
    )


def test_small_archive_with_high_ratio_is_read() -> None:
    assert len(read(zip_of({"SKILL.md": SKILL, "a": bytes(1_000_000)}))[0].files) == 2


def test_entry_count_is_checked_before_reading() -> None:
    assert rejection_reason(zip_end(0xFFFE, 0, 0)) == "too_large"


def test_bomb_with_wrong_size_is_stopped_while_unpacking() -> None:
    bomb = deflate(bytes(3_000_000))
    entry = ZipEntry("a", b"x", packed_data=bomb)
    assert rejection_reason(make_zip(ROOT, entry)) == "too_large"


def test_bomb_after_end_of_tar_is_stopped() -> None:
    assert rejection_reason(make_tgz(TAR_ROOT, end=bytes(3_000_000))) == "too_large"


@pytest.mark.parametrize("size", [b"\x80" + b"\x00" * 10 + b"\x01", b"77777777777\x00"])
def test_giant_member_is_rejected_by_header(size: bytes) -> None:
    assert rejection_reason(make_tgz(TAR_ROOT, TarEntry("a", size=size))) == "too_large"
    assert rejection_reason(make_tgz(TAR_ROOT, TarEntry("a", kind=b"x", size=size))) == "too_large"


@pytest.mark.parametrize("size", [0, 2])
def test_wrong_size_is_rejected(size: int) -> None:
    lie = {"size": size}
    assert (
        rejection_reason(make_zip(ROOT, ZipEntry("a", local_overrides=lie, central_overrides=lie)))
        == "malformed"
    )


def test_entries_with_shared_body_are_rejected() -> None:
    kernel = ZipEntry("a", bytes(5000))
    data = make_zip(ROOT, kernel)
    start = len(make_zip(ROOT)) - len(zip_end(0, 0, 0)) - len(central_header(ROOT, 0))
    body = data[: start + len(local_header(kernel)) + len(kernel.packed)]
    twins = [central_header(ROOT, 0)] + [
        central_header(ZipEntry(name, bytes(5000)), start) for name in "ab"
    ]
    directory = b"".join(twins)
    assert rejection_reason(body + directory + zip_end(3, len(directory), len(body))) == "confusion"


def test_header_that_contains_next_one_is_rejected() -> None:
    inner = ZipEntry("SKILL.md", b"x")
    quoted = extra_field(0xCAFE, local_header(inner))
    outer = ZipEntry("a", b"x", local_overrides={"extra": quoted})
    body = local_header(outer) + outer.packed
    offset = len(local_header(outer)) - len(local_header(inner))
    directory = central_header(outer, 0) + central_header(inner, offset)
    assert rejection_reason(body + directory + zip_end(2, len(directory), len(body))) == "confusion"


def test_overlapping_entries_are_rejected() -> None:
    lie = {"packed": 60, "size": 60}
    entry = ZipEntry("a", b"x", method=STORED, local_overrides=lie, central_overrides=lie)
    assert (
        rejection_reason(make_zip(ROOT, entry, ZipEntry("b", bytes(100), method=STORED)))
        == "confusion"
    )


# Confusion

DISAGREEMENTS: dict[str, dict[str, int | bytes]] = {
    "name": {"name": b"b"},
    "longer name": {"name": b"ab"},
    "flags": {"flags": 0},
    "method": {"method": STORED},
    "checksum": {"crc": 1},
    "packed size": {"packed": 1},
    "size": {"size": 2},
    "Unicode name": {"extra": extra_field(0x7075, b"\x01\x00\x00\x00\x00b")},
    "signature": {"sign": b"pk"},
}


@pytest.mark.parametrize("lie", DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_contradicting_local_header_is_rejected(lie: dict[str, int | bytes]) -> None:
    assert rejection_reason(make_zip(ROOT, ZipEntry("a", local_overrides=lie))) == "confusion"


@pytest.mark.parametrize(
    "lie", [*list(DISAGREEMENTS.values())[:-1], {"offset": 1}, {"disk": 1}], ids=str
)
def test_contradicting_directory_is_rejected(lie: dict[str, int | bytes]) -> None:
    assert rejection_reason(make_zip(ROOT, ZipEntry("a", central_overrides=lie))) == "confusion"


def test_matching_unicode_name_is_accepted() -> None:
    field = extra_field(0x7075, b"\x01" + struct.pack("<L", zlib.crc32(b"a")) + b"a")
    assert "a" in read(make_zip(ROOT, ZipEntry("a", extra=field)))[0].files


def test_utf8_names_without_flag_are_read() -> None:
    assert "é" in read(make_zip(ROOT, ZipEntry("é", flags=0)))[0].files


INNER = zip_of({"SKILL.md": b"other"})
VALID_ZIP = make_zip(ROOT, ZipEntry("a"))
CONFUSING = {
    "hidden first member": make_zip(ROOT, ZipEntry("a"))[: len(local_header(ROOT) + ROOT.packed)]
    + make_zip(ROOT),
    "hidden last member": make_zip(ROOT, ZipEntry("hidden"), listed=1),
    "prefix": b"#!/bin/sh\n" + VALID_ZIP,
    "prefix with right offsets": make_zip(ROOT, prefix=b"#!/bin/sh\n"),
    "prefix of zeros": make_zip(ROOT, prefix=bytes(16)),
    "prefix of an empty archive": make_zip(prefix=b"PK-junk"),
    "suffix": VALID_ZIP + b"junk",
    "suffix of zeros": VALID_ZIP + bytes(8),
    "gap": make_zip(ZipEntry("SKILL.md", SKILL, trailing_data=b"junk"), ZipEntry("a")),
    "gap of zeros": make_zip(ZipEntry("SKILL.md", SKILL, trailing_data=bytes(12)), ZipEntry("a")),
    "gap before the directory": make_zip(ROOT, ZipEntry("a", trailing_data=b"junk")),
    "two end records": VALID_ZIP + zip_end(0, 0, 0),
    "two archives": VALID_ZIP + INNER,
    "archive in the comment": make_zip(ROOT, comment=INNER),
    "end record in the comment": make_zip(ROOT, comment=zip_end(0, 0, 0)),
    "header in the comment": make_zip(ROOT, comment=b"PK\x01\x02"),
    "fewer entries than listed": VALID_ZIP[:-22] + zip_end(1, 101, len(VALID_ZIP) - 123),
    "several parts": VALID_ZIP[:-22] + zip_end(2, 101, len(VALID_ZIP) - 123, parts=(1, 0)),
    "other count in this part": VALID_ZIP[:-22]
    + zip_end(2, 101, len(VALID_ZIP) - 123, parts=(0, 1)),
    "bytes inside compressed data": make_zip(
        ROOT, ZipEntry("a", packed_data=deflate(b"x") + b"junk")
    ),
    "two gzip streams": make_tgz(TAR_ROOT) + make_tgz(TAR_ROOT),
    "suffix of gzip": make_tgz(TAR_ROOT) + b"junk",
    "suffix of gzip of zeros": make_tgz(TAR_ROOT) + bytes(100_000),
    "two tars": make_tar(TAR_ROOT) + make_tar(TAR_ROOT),
    "member after one zero block": make_tar(TAR_ROOT, end=bytes(512)) + make_tar(TAR_ROOT),
    "suffix of a tar": make_tar(TAR_ROOT) + bytes(512) + b"junk",
    "zip after a tar": make_tar(TAR_ROOT) + INNER,
}


@pytest.mark.parametrize("data", CONFUSING.values(), ids=CONFUSING)
def test_ambiguous_zip_is_rejected(data: bytes) -> None:
    assert rejection_reason(data) == "confusion"


def test_ambiguous_zip_fixtures_are_otherwise_valid() -> None:
    assert folders(read(VALID_ZIP[:-22] + zip_end(2, 101, len(VALID_ZIP) - 123))) == ["pdf"]


def test_archive_comment_is_accepted() -> None:
    assert folders(read(make_zip(ROOT, comment=b"made by hand" * 100))) == ["pdf"]


@pytest.mark.parametrize("name", ["pdf.tar.gz", "pdf.tgz", "pdf.tar"])
def test_zip_named_like_tar_is_rejected(name: str) -> None:
    assert rejection_reason(make_zip(ROOT), name) == "confusion"


def test_tar_named_like_zip_is_rejected() -> None:
    assert rejection_reason(make_tgz(TAR_ROOT), "pdf.zip") == "confusion"
    assert rejection_reason(make_tar(TAR_ROOT), "pdf.zip") == "confusion"


# Data descriptors and zip64

NUMBERS = (zlib.crc32(b"x"), len(deflate(b"x")), 1)
SIGN = b"PK\x07\x08"
DESCRIPTORS = [struct.pack("<3L", *NUMBERS), struct.pack("<LQQ", *NUMBERS)]
NOT_YET: dict[str, int | bytes] = {"crc": 0, "packed": 0, "size": 0}


@pytest.mark.parametrize("local", [{}, NOT_YET], ids=["with numbers", "without"])
@pytest.mark.parametrize("after", [*DESCRIPTORS, *(SIGN + form for form in DESCRIPTORS)])
def test_data_descriptor_is_accepted(after: bytes, local: dict[str, int | bytes]) -> None:
    entry = ZipEntry("a", flags=STREAMED, trailing_data=after, local_overrides=local)
    assert "a" in read(make_zip(entry, ROOT))[0].files


@pytest.mark.parametrize(
    "after",
    [
        b"",
        SIGN,
        struct.pack("<3L", 1, NUMBERS[1], 1),
        struct.pack("<3L", NUMBERS[0], 9, 1),
        struct.pack("<3L", NUMBERS[0], NUMBERS[1], 2),
        DESCRIPTORS[0] + b"\x00",
        DESCRIPTORS[0] * 2,
    ],
    ids=["missing", "cut", "checksum", "packed size", "size", "longer", "two"],
)
def test_contradicting_data_descriptor_is_rejected(after: bytes) -> None:
    entry = ZipEntry("a", flags=STREAMED, trailing_data=after, local_overrides=NOT_YET)
    assert rejection_reason(make_zip(entry, ROOT)) == "confusion"


WIDE: dict[str, int | bytes] = {"size": 0xFFFFFFFF, "packed": 0xFFFFFFFF}


def wide_entry(size: int) -> ZipEntry:
    extra = extra_field(1, struct.pack("<QQ", size, NUMBERS[1]))
    return ZipEntry("a", extra=extra, local_overrides=WIDE, central_overrides=WIDE)


def test_small_sizes_in_zip64_field_are_accepted() -> None:
    assert "a" in read(make_zip(wide_entry(1), ROOT))[0].files


@pytest.mark.parametrize("size", [1 << 40, (1 << 64) - 1])
def test_large_sizes_in_zip64_field_are_too_large(size: int) -> None:
    assert rejection_reason(make_zip(wide_entry(size), ROOT)) == "too_large"


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (b"", "malformed"),
        (extra_field(1, b"\x01" * 8), "malformed"),
        (extra_field(1, bytes(16)) * 2, "confusion"),
        (extra_field(1, bytes(16)) + b"\x01\x00\x09", "malformed"),
        (extra_field(1, bytes(16)) + b"\x01\x00\x09\x00", "malformed"),
        (bytes(1028), "malformed"),
    ],
    ids=["none", "too short", "two", "cut", "ends too early", "too long"],
)
def test_malformed_extra_field_is_rejected(extra: bytes, reason: str) -> None:
    assert (
        rejection_reason(make_zip(ZipEntry("a", extra=extra, central_overrides=WIDE), ROOT))
        == reason
    )


END_SIZE = 22  # bytes of the end record of `VALID_ZIP`
WIDE_END = 56
AS_IT_IS: Mapping[str, int] = MappingProxyType({})
LARGEST: tuple[int, ...] = (0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)


def wide_zip(
    data: bytes,
    *,
    narrow: tuple[int, ...] | None = None,
    record: Mapping[str, int] = AS_IT_IS,
    locator: Mapping[str, int] = AS_IT_IS,
    between: bytes = b"",
) -> bytes:
    """Add a zip64 end record, as writers do that do not know sizes in advance."""
    body, end = data[:-END_SIZE], data[-END_SIZE:]
    numbers = struct.unpack("<4H2LH", end[4:])[:-1]
    fields = dict(zip(("part", "first", "here", "entries", "size", "start"), numbers, strict=True))
    fields = {"rest": WIDE_END - 12, **fields, **record}
    wide = b"PK\x06\x06" + struct.pack("<Q2H2L4Q", fields.pop("rest"), 45, 45, *fields.values())
    result = {"part": 0, "offset": len(body), "parts": 1, **locator}
    finder = b"PK\x06\x07" + struct.pack("<LQL", *result.values())
    plain = b"PK\x05\x06" + struct.pack("<4H2LH", *(numbers if narrow is None else narrow), 0)
    return body + wide + between + finder + plain


@pytest.mark.parametrize(
    "narrow",
    [None, LARGEST, (0, 0, *LARGEST[2:]), (0, 0, 1, 1, *LARGEST[4:])],
    ids=["plain numbers too", "none", "no parts", "count alone"],
)
def test_zip64_end_record_is_read(narrow: tuple[int, ...] | None) -> None:
    assert contents(read(wide_zip(make_zip(ROOT), narrow=narrow))[0]) == {"SKILL.md": SKILL}


def test_zip64_fields_for_every_number_are_read() -> None:
    sizes = struct.pack("<QQ", len(SKILL), len(deflate(SKILL)))
    entry = ZipEntry(
        "SKILL.md",
        SKILL,
        local_overrides={**WIDE, "extra": extra_field(1, sizes)},
        central_overrides={
            **WIDE,
            "offset": 0xFFFFFFFF,
            "disk": 0xFFFF,
            "extra": extra_field(1, sizes + bytes(8) + bytes(4)),
        },
    )
    assert contents(read(wide_zip(make_zip(entry), narrow=LARGEST))[0]) == {"SKILL.md": SKILL}


@pytest.mark.skipif(shutil.which("zip") is None, reason="there is no zip program")
def test_zip64_of_zip_program_is_read(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_bytes(SKILL)
    words = ["zip", "-q", "-fz", "pdf.zip", "SKILL.md"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
    data = (tmp_path / "pdf.zip").read_bytes()
    assert b"PK\x06\x06" in data
    assert contents(read(data)[0]) == {"SKILL.md": SKILL}


def test_zip64_entry_count_beyond_limit_is_too_large() -> None:
    data = wide_zip(make_zip(ROOT), narrow=LARGEST, record={"here": 70_000, "entries": 70_000})
    assert rejection_reason(data) == "too_large"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (VALID_ZIP[:-END_SIZE] + zip_end(0xFFFF, 0, 0), "malformed"),
        (VALID_ZIP[:-END_SIZE] + zip_end(1, 0xFFFFFFFF, 0), "malformed"),
        (VALID_ZIP[:-END_SIZE] + zip_end(1, 0, 0xFFFFFFFF), "malformed"),
        (VALID_ZIP[:-END_SIZE] + b"PK\x06\x07" + bytes(16) + zip_end(0, 0, 0), "confusion"),
        (wide_zip(VALID_ZIP, record={"entries": 9}), "confusion"),
        (wide_zip(VALID_ZIP, record={"start": 9}), "confusion"),
        (wide_zip(VALID_ZIP, record={"part": 1}), "confusion"),
        (wide_zip(VALID_ZIP, record={"rest": 45}), "malformed"),
        (wide_zip(VALID_ZIP, locator={"offset": 0}), "confusion"),
        (wide_zip(VALID_ZIP, locator={"part": 1}), "confusion"),
        (wide_zip(VALID_ZIP, locator={"parts": 2}), "confusion"),
        (wide_zip(VALID_ZIP, between=b"x"), "confusion"),
        (wide_zip(VALID_ZIP, narrow=LARGEST, record={"start": 9}), "confusion"),
    ],
    ids=[
        *("no record for the count", "no record for the size", "no record for the start"),
        *("no record", "other count", "other start", "other part", "longer record"),
        *("locator elsewhere", "locator in a part", "several parts", "a gap", "start elsewhere"),
    ],
)
def test_contradicting_zip64_end_record_is_rejected(data: bytes, reason: str) -> None:
    assert rejection_reason(data) == reason


# Encryption, methods, damage


@pytest.mark.parametrize(
    "entry",
    [
        ZipEntry("a", flags=UTF8 | 1),
        ZipEntry("a", flags=UTF8 | 1 | 1 << 6),
        ZipEntry("a", flags=UTF8 | 1 << 13),
        ZipEntry("a", method=99),
        ZipEntry("a", extra=extra_field(0x9901, b"\x02\x00AE\x03\x08\x00")),
    ],
    ids=["classic", "strong", "hidden headers", "AES", "AES field"],
)
def test_encrypted_entry_is_rejected(entry: ZipEntry) -> None:
    assert rejection_reason(make_zip(ROOT, entry)) == "encrypted"


@pytest.mark.parametrize("method", [1, 6, 9, 12, 14, 93, 95, 98, 0xFFFF])
def test_other_compression_methods_are_rejected(method: int) -> None:
    assert rejection_reason(make_zip(ROOT, ZipEntry("a", method=method))) == "method"


@pytest.mark.parametrize("bit", [4, 5, 7, 12, 14, 15])
def test_unknown_flag_is_rejected(bit: int) -> None:
    assert rejection_reason(make_zip(ROOT, ZipEntry("a", flags=UTF8 | 1 << bit))) == "method"


WRONG_SUM: dict[str, int | bytes] = {"crc": 1}
DAMAGED = {
    "nothing": b"",
    "text": b"<html>Sign in</html>",
    "only a sign": b"PK\x05\x06",
    "directory that ends too early": zip_end(1, 0, 0),
    "directory without its sign": make_zip(
        ZipEntry("SKILL.md", SKILL, central_overrides={"sign": b"pk"})
    ),
    "checksum": make_zip(
        ROOT, ZipEntry("a", local_overrides=WRONG_SUM, central_overrides=WRONG_SUM)
    ),
    "checksum of stored": make_zip(
        ROOT, ZipEntry("a", method=STORED, local_overrides=WRONG_SUM, central_overrides=WRONG_SUM)
    ),
    "deflate": make_zip(ROOT, ZipEntry("a", packed_data=b"\xff\xff\xff")),
    "deflate without its end": make_zip(ROOT, ZipEntry("a", packed_data=deflate(b"x" * 50)[:-2])),
    "empty deflate": make_zip(ROOT, ZipEntry("a", b"", packed_data=b"")),
    "stored of another size": make_zip(ROOT, ZipEntry("a", b"x", method=STORED, packed_data=b"xy")),
    "gzip of text": gzip.compress(b"<html>Sign in</html>"),
    "gzip of noise": gzip.compress(BINARY),
    "gzip of nothing": gzip.compress(b""),
    "gzip checksum": make_tgz(TAR_ROOT)[:-8] + bytes(8),
    "gzip header": b"\x1f\x8b\x08\xff",
    "tar checksum": make_tar(TarEntry("SKILL.md", checksum=b"000001\x00 ")),
    "tar checksum of letters": make_tar(TarEntry("SKILL.md", checksum=b"letters ")),
    "tar size": make_tar(TarEntry("SKILL.md", size=b"-0000000001\x00")),
    "tar size with a tail": make_tar(TarEntry("SKILL.md", size=b"01\x00000000002")),
    "tar without an end": make_tar(TAR_ROOT, end=b""),
    "tar with half an end": make_tar(TAR_ROOT, end=bytes(512)),
    "tar that ends in records": make_tar(TAR_ROOT, pax({"path": "b"})),
    "tar that ends in a long name": make_tar(TAR_ROOT, LONG),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_damaged_archive_is_malformed(data: bytes) -> None:
    assert rejection_reason(data) == "malformed"


@pytest.mark.parametrize(
    "data",
    [VALID_ZIP, make_zip(ROOT, comment=b"c" * 30), make_tgz(TAR_ROOT), make_tar(TAR_ROOT)],
    ids=["zip", "zip with a comment", "tgz", "tar"],
)
def test_truncated_archive_is_rejected_at_every_length(data: bytes) -> None:
    for length in {*range(0, len(data), 7), *range(len(data) - 40, len(data))}:
        assert rejection_reason(data[:length]) in {"malformed", "confusion"}


# Properties

STREAMED_ENTRY = ZipEntry(
    "a", flags=STREAMED, trailing_data=SIGN + DESCRIPTORS[0], local_overrides=NOT_YET
)
VALID = [
    make_zip(ROOT, ZipEntry("a/", b"", 0o040755), ZipEntry("a/b", BINARY[:300], 0o100755)),
    make_zip(STREAMED_ENTRY, ZipEntry("b/SKILL.md", SKILL), comment=b"c"),
    make_zip(wide_entry(1), ROOT),
    make_tar(pax({"comment": "x"}, b"g"), TAR_ROOT, LONG, TarEntry("a"), pax({"path": "c"}), LAST),
]


@pytest.mark.parametrize("data", VALID)
def test_fixtures_of_mutation_tests_are_valid(data: bytes) -> None:
    assert len(read(data)) == 1


def read_or_reject(data: bytes) -> None:
    """Read an archive; only a rejection is expected as an error."""
    with contextlib.suppress(ArchiveRejected, TooLarge):
        assert read_archive(data, "pdf")


@given(
    st.binary(max_size=600), st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08"])
)
def test_any_bytes_are_read_or_rejected(data: bytes, start: bytes) -> None:
    read_or_reject(start + data)


@given(st.sampled_from(VALID), st.data())
def test_mutated_archive_is_read_or_rejected(valid: bytes, data: st.DataObject) -> None:
    changed = bytearray(valid[: data.draw(st.integers(0, len(valid)) | st.just(len(valid)))])
    locations = st.integers(0, max(0, len(changed) - 1))
    for location, value in data.draw(
        st.lists(st.tuples(locations, st.binary(max_size=4)), max_size=4)
    ):
        changed[location : location + len(value)] = value
    read_or_reject(bytes(changed))
    read_or_reject(gzip.compress(changed, 1))


def joined(folder: str, name: str) -> str:
    return f"{folder}/{name}"


@given(TREES, st.booleans())
@example(tree={"a": b"", "a/b": b""}, executable=True)
def test_packed_files_are_read_unchanged(tree: dict[str, bytes], executable: bool) -> None:
    files = {"SKILL.md": SKILL, **{f"files/{path}": data for path, data in tree.items()}}
    mode = 0o755 if executable else 0o644
    zipped = make_zip(*(ZipEntry(path, data, 0o100000 | mode) for path, data in files.items()))
    tarred = make_tgz(
        *(TarEntry(path, data, mode=b"%07o\x00" % mode) for path, data in files.items())
    )
    if any(above in files for path in files for above in accumulate(path.split("/")[:-1], joined)):
        assert (rejection_reason(zipped), rejection_reason(tarred)) == ("duplicate", "duplicate")
        return
    for (bundle,) in (read(zipped), read(tarred)):
        assert contents(bundle) == files
        assert {file.executable for file in bundle.files.values()} == {executable}


# Streamed archives of repositories


def walked(
    data: bytes, limits: ArchiveLimits = REPOSITORY_LIMITS
) -> list[tuple[bytes, bool, bool, bytes]]:
    intake = ArchiveExtraction("acme/skills", 0, limits)
    chunks = (data[start : start + 100] for start in range(0, len(data), 100))
    return [
        (member.path, member.is_file, member.executable, b"".join(member.content))
        for member in iterate_tar_members(intake.gunzip_stream(chunks), intake)
    ]


def test_tar_members_of_repository_are_in_order() -> None:
    data = make_tgz(
        pax({"comment": "1" * 40}, b"g"),
        TarEntry("top/", b"", b"5"),
        TarEntry("top/a", b"A" * 1000),
        TarEntry("top/run", b"", mode=b"0000775\x00"),
        pax({"linkpath": "/" + "x" * 200}),
        TarEntry("top/link", b"", b"2"),
        TarEntry("top/device", b"", b"3"),
    )
    assert walked(data) == [
        (b"a", True, False, b"A" * 1000),
        (b"run", True, True, b""),
        (b"link", False, False, b""),
        (b"device", False, False, b""),
    ]


def test_unread_content_is_skipped() -> None:
    data = make_tgz(TarEntry("top/a", b"A" * 200_000), TarEntry("top/b", b"B"))
    intake = ArchiveExtraction("acme/skills", 0, REPOSITORY_LIMITS)
    members = iterate_tar_members(intake.gunzip_stream(iter([data])), intake)
    assert [member.path for member in members] == [b"a", b"b"]


def test_streaming_enforces_limits() -> None:
    many = make_tgz(*(TarEntry(f"top/{number}") for number in range(11)))
    for limits in (
        ArchiveLimits(entries=10),
        ArchiveLimits(total=9 * 1024),
        ArchiveLimits(ratio=2, ratio_min_total=1),
    ):
        with pytest.raises(TooLarge):
            walked(many, limits)


def test_streaming_skips_large_files() -> None:
    data = make_tgz(TarEntry("top/a", b"x" * 5000), TarEntry("top/b"))
    assert len(walked(data, ArchiveLimits(file=10))) == 2


def test_emoji_flags_in_names_are_accepted() -> None:
    wales = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f.md"
    assert [*read(zip_of({"SKILL.md": SKILL, wales: b""}))[0].files] == ["SKILL.md", wales]
    assert rejection_reason(zip_of({"SKILL.md": SKILL, f"{wales}\U000e0041": b""})) == "path"
