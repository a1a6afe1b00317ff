import pytest

from skillhall._internal.skill.skill_uri import MAX_URI_LENGTH, SkillUri
from skillhall.errors import UnsafePath

PDF = SkillUri.parse("skill://acme/pdf/SKILL.md")


def test_uri_has_path_name_and_folder_of_the_skill() -> None:
    assert (PDF.path, PDF.name, PDF.folder_uri) == ("acme/pdf", "pdf", "skill://acme/pdf")


def test_any_scheme_is_accepted() -> None:
    uri = SkillUri.parse("github://owner/repo/skills/refunds/SKILL.md")
    assert (uri.path, uri.name) == ("owner/repo/skills/refunds", "refunds")


def test_file_path_is_relative_to_the_skill() -> None:
    assert PDF.to_relative_path("skill://acme/pdf/SKILL.md").text == "SKILL.md"
    assert PDF.to_relative_path("skill://acme/pdf/a/b.md").text == "a/b.md"


def test_segments_are_percent_decoded_once() -> None:
    assert PDF.to_relative_path("skill://acme/pdf/a%20b/%C3%A9%2525.md").text == "a b/é%25.md"


INVALID_SKILL_URIS = {
    "empty": "",
    "not a URI": "pdf/SKILL.md",
    "absolute path": "/pdf/SKILL.md",
    "without a skill": "skill://SKILL.md",
    "empty host": "skill:///pdf/SKILL.md",
    "folder": "skill://pdf",
    "folder with trailing slash": "skill://pdf/",
    "trailing slash": "skill://pdf/SKILL.md/",
    "another file": "skill://pdf/README.md",
    "lowercase file name": "skill://pdf/skill.md",
    "encoded file name": "skill://pdf/%53KILL.md",
    "dot dot": "skill://acme/../pdf/SKILL.md",
    "dot dot as skill": "skill://../SKILL.md",
    "dot segment": "skill://./pdf/SKILL.md",
    "encoded dot dot": "skill://acme/%2e%2e/pdf/SKILL.md",
    "encoded slash": "skill://acme%2fpdf/SKILL.md",
    "encoded backslash": "skill://acme%5Cpdf/SKILL.md",
    "backslash": "skill://acme\\pdf/SKILL.md",
    "query": "skill://pdf/SKILL.md?x=/SKILL.md",
    "fragment": "skill://pdf#/SKILL.md",
    "space": "skill://p df/SKILL.md",
    "line break": "skill://pdf\n/SKILL.md",
    "encoded NUL": "skill://pdf%00/SKILL.md",
    "encoded escape character": "skill://pdf%1b/SKILL.md",
    "direction override": "skill://pdf%E2%80%AE/SKILL.md",
    "not UTF-8": "skill://pdf%ff/SKILL.md",
    "broken percent encoding": "skill://pdf%2/SKILL.md",
    "empty segment": "skill://acme//pdf/SKILL.md",
    "uppercase scheme": "SKILL://pdf/SKILL.md",
    "too long": f"skill://{'a' * MAX_URI_LENGTH}/SKILL.md",
}


@pytest.mark.parametrize("text", INVALID_SKILL_URIS.values(), ids=INVALID_SKILL_URIS)
def test_invalid_skill_uri_is_rejected(text: str) -> None:
    with pytest.raises(UnsafePath):
        SkillUri.parse(text)


INVALID_FILE_URIS = {
    "folder": "skill://acme/pdf",
    "folder with trailing slash": "skill://acme/pdf/",
    "trailing slash": "skill://acme/pdf/a/",
    "dot dot": "skill://acme/pdf/../evil",
    "dot dot inside": "skill://acme/pdf/a/../../evil",
    "encoded dot dot": "skill://acme/pdf/%2e%2e/evil",
    "uppercase encoded dot dot": "skill://acme/pdf/%2E%2E/evil",
    "half encoded dot dot": "skill://acme/pdf/.%2e/evil",
    "encoded slash": "skill://acme/pdf/..%2fevil",
    "uppercase encoded slash": "skill://acme/pdf/a%2Fb",
    "backslash": "skill://acme/pdf/a\\b",
    "encoded backslash": "skill://acme/pdf/a%5cb",
    "encoded NUL": "skill://acme/pdf/a%00.md",
    "another skill": "skill://acme/other/a.md",
    "folder with the same prefix": "skill://acme/pdf-evil/a.md",
    "file with the same prefix": "skill://acme/pdfa.md",
    "encoded folder": "skill://acme/%70df/a.md",
    "uppercase folder": "skill://ACME/pdf/a.md",
    "another scheme": "file://acme/pdf/a.md",
    "web URL": "https://acme/pdf/a.md",
    "relative path": "a.md",
    "absolute path": "/etc/passwd",
    "empty segment": "skill://acme/pdf//a.md",
    "dot segment": "skill://acme/pdf/./a.md",
    "device name": "skill://acme/pdf/NUL.txt",
    "alternate stream": "skill://acme/pdf/a%3Ab",
    "home folder": "skill://acme/pdf/~root/a",
    "query": "skill://acme/pdf/a.md?b",
    "fragment": "skill://acme/pdf/a.md#b",
}


@pytest.mark.parametrize("text", INVALID_FILE_URIS.values(), ids=INVALID_FILE_URIS)
def test_invalid_file_uri_is_rejected(text: str) -> None:
    with pytest.raises(UnsafePath):
        PDF.to_relative_path(text)
