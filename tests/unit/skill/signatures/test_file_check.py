"""Files of a skill, compared with its signature."""

from collections.abc import Callable
from typing import Any

import pytest

from skillhall._internal.skill.signatures.file_check import read_signature
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE, SignatureInvalid
from tests.support.bundles import make_bundle
from tests.support.signatures import (
    RECORDED_FILES,
    RECORDED_SIGNATURE,
    edit_signature,
    edit_statement,
    sign,
)


def find_problem(files: dict[str, bytes]) -> str:
    """Return why the signature is broken, or "" if it is not."""
    try:
        read_signature(make_bundle(files))
    except SignatureInvalid as error:
        return str(error)
    return ""


def test_signed_files_are_accepted() -> None:
    assert not find_problem(sign(RECORDED_FILES))


def test_signature_of_the_reference_tool_is_accepted() -> None:
    assert not find_problem({**RECORDED_FILES, SIGNATURE_FILE: RECORDED_SIGNATURE})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"SKILL.md": b"x"}, "changed: 'SKILL.md'"),
        ({"extra.md": b"x"}, "not signed: 'extra.md'"),
        ({".hidden/extra": b"x"}, "not signed: '.hidden/extra'"),
        ({".github/evil.md": b"x"}, "not signed: '.github/evil.md'"),
    ],
)
def test_changed_and_additional_files_are_named(change: dict[str, bytes], problem: str) -> None:
    assert problem in find_problem({**sign(RECORDED_FILES), **change})


def test_missing_and_renamed_files_are_named() -> None:
    files = sign(RECORDED_FILES)
    assert "missing: 'scripts/read.py'" in find_problem(
        {path: data for path, data in files.items() if path != "scripts/read.py"}
    )
    files["scripts/run.py"] = files.pop("scripts/read.py")
    problem = find_problem(files)
    assert "missing: 'scripts/read.py'" in problem
    assert "not signed: 'scripts/run.py'" in problem


def test_long_lists_of_files_are_cut() -> None:
    extra = {f"{number}.md": b"x" for number in range(9)}
    assert "'4.md' and 4 more" in find_problem({**sign(RECORDED_FILES), **extra})


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda d: d.update(mediaType="other"), "not a Sigstore bundle of version 0.3"),
        (lambda d: d["dsseEnvelope"].update(payloadType="other"), "in-toto statement"),
        (lambda d: d["dsseEnvelope"].update(signatures=[]), "0 signatures"),
        (
            lambda d: d["dsseEnvelope"].update(signatures=d["dsseEnvelope"]["signatures"] * 2),
            "2 signatures",
        ),
        (lambda d: d["dsseEnvelope"].update(payload="%"), "invalid Base64"),
        (lambda d: d["dsseEnvelope"].update(payload=7), "lacks a field"),
        (lambda d: d.pop("verificationMaterial"), "lacks a field"),
        (
            lambda d: d.update(verificationMaterial={"x509CertificateChain": {"certificates": []}}),
            "0 certificates",
        ),
    ],
)
def test_malformed_signature_file_is_reported(edit: Callable[[Any], object], problem: str) -> None:
    files = sign(RECORDED_FILES)
    files[SIGNATURE_FILE] = edit_signature(files[SIGNATURE_FILE], edit)
    assert problem in find_problem(files)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"x" * 2_000_000])
def test_file_that_is_not_a_signature_is_reported(data: bytes) -> None:
    assert find_problem({**RECORDED_FILES, SIGNATURE_FILE: data}).startswith("the file ")


def test_cut_signature_file_is_reported() -> None:
    files = sign(RECORDED_FILES)
    files[SIGNATURE_FILE] = files[SIGNATURE_FILE][:-40]
    assert "not valid JSON" in find_problem(files)


def _rename_resource(statement: dict[str, Any], name: str) -> None:
    statement["predicate"]["resources"][0]["name"] = name


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda s: s.update(_type="other"), "type of the signed statement is not supported"),
        (
            lambda s: s.update(predicateType="other"),
            "type of the signed statement is not supported",
        ),
        (lambda s: s["predicate"]["serialization"].update(method="shards"), "SHA-256"),
        (lambda s: s["predicate"]["serialization"].update(allow_symlinks=True), "links"),
        (lambda s: s["predicate"]["resources"].pop(), "own checksum"),
        (lambda s: s["predicate"]["resources"].append(s["predicate"]["resources"][0]), "twice"),
        (lambda s: s["predicate"]["resources"][0].update(digest="0"), "not a SHA-256 digest"),
        (lambda s: s["predicate"]["resources"][0].update(algorithm="md5"), "not a SHA-256 digest"),
        (lambda s: _rename_resource(s, "../SKILL.md"), "not safe"),
        (lambda s: _rename_resource(s, "./SKILL.md"), "not normalized"),
        (lambda s: s.update(subject=[]), "a list in the signed statement is invalid"),
        (lambda s: s.pop("predicate"), "lacks a field"),
        (lambda s: s["predicate"].update(resources=[{}] * 10_001), "more than 10000 files"),
    ],
)
def test_malformed_statement_is_reported(edit: Callable[[Any], object], problem: str) -> None:
    files = sign(RECORDED_FILES)
    files[SIGNATURE_FILE] = edit_statement(files[SIGNATURE_FILE], edit)
    assert problem in find_problem(files)
