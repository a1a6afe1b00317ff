"""Approved files: what is read is compared with them, byte by byte."""

from dataclasses import replace
from functools import partial

import pytest

from skillhall._internal.skill.approved_files import (
    ApprovedFile,
    ApprovedFiles,
    compute_approved_digest,
    hash_files,
)
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall.errors import SkillNotApproved

SIGNATURE = (1, 2, 3, 4)


def make_bundle(**contents: bytes) -> Bundle:
    files = {
        name: SkillFile(RelativePath.parse(name), len(data), False, partial(bytes, data), SIGNATURE)  # noqa: FBT003
        for name, data in contents.items()
    }
    return Bundle("pdf", files)


def approve(bundle: Bundle, *, known: bool = False) -> ApprovedFiles:
    signatures = dict.fromkeys(bundle.files, SIGNATURE if known else None)
    return ApprovedFiles("pdf", hash_files(bundle), signatures)


def test_digest_is_that_of_the_bundle() -> None:
    bundle = make_bundle(a=b"1", b=b"2")
    assert compute_approved_digest(hash_files(bundle)) == bundle.digest()


def test_same_files_are_accepted() -> None:
    bundle = make_bundle(a=b"1", b=b"2")
    checked = approve(bundle).check_bundle(bundle)
    assert [file.read() for file in checked.files.values()] == [b"1", b"2"]


@pytest.mark.parametrize(
    "changed",
    [
        make_bundle(a=b"1"),
        make_bundle(a=b"1", b=b"2", c=b"3"),
        make_bundle(a=b"1", b=b"X"),
        make_bundle(a=b"1", b=b"longer"),
    ],
)
def test_other_files_are_rejected(changed: Bundle) -> None:
    with pytest.raises(SkillNotApproved, match="it has changed since it was approved"):
        approve(make_bundle(a=b"1", b=b"2")).check_bundle(changed)


def test_execute_bit_is_compared() -> None:
    bundle = make_bundle(a=b"1")
    executable = replace(bundle, files={"a": bundle.files["a"]._replace(executable=True)})
    with pytest.raises(SkillNotApproved):
        approve(bundle).check_bundle(executable)


def test_known_signature_saves_a_read_but_no_comparison() -> None:
    bundle, swapped = make_bundle(a=b"1"), make_bundle(a=b"2")
    checked = approve(bundle, known=True).check_bundle(swapped)
    with pytest.raises(SkillNotApproved):
        checked.files["a"].read()


def test_data_of_an_unknown_file_is_rejected() -> None:
    approved = approve(make_bundle(a=b"1"))
    assert approved.check_data("a", b"1") == b"1"
    for path, data in (("a", b"2"), ("b", b"1")):
        with pytest.raises(SkillNotApproved):
            approved.check_data(path, data)


def test_approved_file_has_its_size() -> None:
    assert hash_files(make_bundle(a=b"12"))["a"] == ApprovedFile(
        "6b51d431df5d7f141cbececcf79edf3dd861c3b4069f0b11661a3eefacbba918", 2, executable=False
    )
