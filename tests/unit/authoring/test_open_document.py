from pathlib import Path

import pytest

from skillhall._internal.authoring.fix import fix_all, propose_fixes
from skillhall._internal.authoring.open_document import OpenDocument
from skillhall._internal.authoring.validate import validate
from skillhall._internal.policy.profiles import SPECIFICATION
from skillhall._internal.settings import Settings
from skillhall.errors import UnsafePath
from tests.support.skills import make_skill, make_skill_md

FILES = {"references/form.md": b"# Form\n[up](../SKILL.md)\n", "data.bin": b"\xff\xfe\x00"}


def open_document(skill: Path, text: str) -> OpenDocument:
    return OpenDocument.open(str(skill / "SKILL.md"), text, SPECIFICATION)


def test_unsaved_text_has_the_findings_that_validate_would_report(tmp_path: Path) -> None:
    text = make_skill_md("Wrong", body="[a](references/form.md) [b](none.md)\n").decode()
    skill = make_skill(tmp_path, files=FILES)
    findings = open_document(skill, text).check(SPECIFICATION)
    (skill / "SKILL.md").write_text(text)
    settings = Settings(str(tmp_path), str(tmp_path / "cache"), use_head_cache=False)
    (result,) = validate([str(skill)], SPECIFICATION, settings).results
    plain = {judged.finding.with_location(judged.path) for judged in result.findings}
    assert {judged.finding.with_location(judged.path) for judged in findings} == plain


def test_document_in_a_new_folder_is_checked_alone(tmp_path: Path) -> None:
    document = open_document(tmp_path / "new", make_skill_md("new").decode())
    assert document.files == ()
    assert document.check(SPECIFICATION) == ()


def test_document_over_the_limit_has_one_finding(tmp_path: Path) -> None:
    document = open_document(tmp_path / "new", "x" * (1024 * 1024 + 1))
    assert [judged.code.value for judged in document.check(SPECIFICATION)] == ["too-large"]


def test_tokens_are_counted_of_text_files_only(tmp_path: Path) -> None:
    document = open_document(make_skill(tmp_path, files=FILES), "")
    assert document.count_file_tokens("references/form.md") == 6
    assert document.count_file_tokens("data.bin") is None
    assert document.count_file_tokens("none.md") is None


@pytest.mark.parametrize("path", ["../x.md", "/x.md", "", "SKILL.md", "data.bin", "a\\b"])
def test_file_cannot_be_renamed_to_an_unsafe_or_existing_path(tmp_path: Path, path: str) -> None:
    document = open_document(make_skill(tmp_path, files=FILES), "")
    with pytest.raises(UnsafePath):
        document.check_new_path(path)


def test_renamed_file_keeps_the_form_of_its_links(tmp_path: Path) -> None:
    document = open_document(
        make_skill(tmp_path, files=FILES), "[a](./references/form.md) [b](references/form.md)"
    )
    changes = document.rename_file("references/form.md", "b c.md")
    assert [(one.file, one.text) for one in changes] == [
        ("SKILL.md", "./b%20c.md"),
        ("SKILL.md", "b%20c.md"),
    ]


def test_fixes_are_offered_only_if_all_together_improve_the_file() -> None:
    path = "/skills/pdf-tools/SKILL.md"
    broken = make_skill_md("Pdf_Tools")
    assert [fix.change for fix in propose_fixes(path, broken, SPECIFICATION)] == [
        "changed the name 'Pdf_Tools' to 'pdf-tools'"
    ]
    assert fix_all(path, broken, SPECIFICATION) == make_skill_md("pdf-tools")
    fine = make_skill_md("pdf-tools")
    assert propose_fixes(path, fine, SPECIFICATION) == ()
    assert fix_all(path, fine, SPECIFICATION) == fine
