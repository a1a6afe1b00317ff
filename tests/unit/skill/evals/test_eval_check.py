"""Tests of the check of eval files in a bundle."""

from __future__ import annotations

from functools import partial

import pytest

from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.evals.eval_check import check_evals
from skillhall._internal.skill.evals.eval_file import MAX_EVAL_FILE_BYTES
from skillhall._internal.skill.finding import Code, Finding
from skillhall.errors import UnsafePath


def make_bundle(files: dict[str, bytes], left_out: str = "") -> Bundle:
    listed = {
        path: SkillFile(
            RelativePath.parse(path), len(data), executable=False, read=partial(bytes, data)
        )
        for path, data in files.items()
    }
    findings = (Finding(Code.FILE_LEFT_OUT, "a link", path=left_out),) if left_out else ()
    return Bundle("csv", listed, findings)


def evals_with_file(path: str) -> bytes:
    return b'{"evals": [{"id": 1, "prompt": "p",\n"files": ["%s"]}]}' % path.encode()


def test_skill_without_eval_files_has_no_evals() -> None:
    assert not check_evals(make_bundle({"SKILL.md": b""}), "csv").has_evals


def test_cases_assertions_and_queries_are_counted() -> None:
    files = {
        "evals/evals.json": b'{"evals": [{"id": 1, "prompt": "p", "assertions": ["a", "b"]}]}',
        "evals/trigger-eval.json": b'[{"query": "a", "should_trigger": true}]',
    }
    summary = check_evals(make_bundle(files), "csv")

    assert (summary.cases, summary.assertions, summary.queries) == (1, 2, 1)
    assert summary.findings == ()


@pytest.mark.parametrize("path", ["evals/files/a.csv", "./evals/files/a.csv", "evals/files"])
def test_input_file_or_folder_in_evals_is_accepted(path: str) -> None:
    files = {"evals/evals.json": evals_with_file(path), "evals/files/a.csv": b""}

    assert check_evals(make_bundle(files), "csv").findings == ()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/etc/passwd", "eval-file"),
        ("../other/a.csv", "eval-file"),
        ("evals/../../a.csv", "eval-file"),
        ("~/a.csv", "eval-file"),
        ("C:/a.csv", "eval-file"),
        ("https://example.com/a.csv", "eval-file"),
        ("evals/files/missing.csv", "eval-file"),
        ("evals/link.csv", "eval-file"),
        ("evals/link.csv/below", "eval-file"),
        ("data.csv", "eval-variant"),
    ],
)
def test_other_input_file_is_reported_with_its_line(path: str, code: str) -> None:
    files = {"evals/evals.json": evals_with_file(path), "data.csv": b""}
    (finding,) = check_evals(make_bundle(files, "evals/link.csv"), "csv").findings

    assert (finding.code.value, finding.line, finding.path) == (code, 2, "evals/evals.json")


def test_missing_script_of_an_assertion_is_reported() -> None:
    script = '{"type": "script", "value": "evals/checks/sum.py"}'
    data = '{"evals": [{"id": 1, "prompt": "p", "assertions": [\n' + script + "]}]}"
    findings = check_evals(make_bundle({"evals/evals.json": data.encode()}), "csv").findings

    assert ("eval-file", 2) in [(finding.code.value, finding.line) for finding in findings]


@pytest.mark.parametrize("link", ["evals/evals.json", "evals"])
def test_link_is_reported_and_not_read(link: str) -> None:
    summary = check_evals(make_bundle({}, link), "csv")

    assert summary.has_evals
    assert [finding.code for finding in summary.findings] == [Code.EVAL_UNREADABLE]


def test_large_file_is_not_read() -> None:
    bundle = make_bundle({"evals/evals.json": b" " * (MAX_EVAL_FILE_BYTES + 1)})

    assert check_evals(bundle, "csv").findings[0].code is Code.EVAL_UNREADABLE


def test_file_that_cannot_be_read_is_reported() -> None:
    def fail() -> bytes:
        raise UnsafePath("evals/evals.json", "it is gone")

    path = RelativePath.parse("evals/evals.json")
    bundle = Bundle("csv", {path.text: SkillFile(path, 1, executable=False, read=fail)})

    assert check_evals(bundle, "csv").findings[0].code is Code.EVAL_UNREADABLE
