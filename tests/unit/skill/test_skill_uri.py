import pytest

from skillhall._internal.skill.skill_uri import MAX_URI_LENGTH, SkillUri
from skillhall.errors import UnsafePath

PDF = SkillUri.parse("skill://acme/pdf/SKILL.md")


def test_a_uri_gives_the_path_the_name_and_the_folder_of_a_skill() -> None:
    assert (PDF.path, PDF.name, PDF.folder_uri) == ("acme/pdf", "pdf", "skill://acme/pdf")


def test_any_scheme_may_serve_skills() -> None:
    uri = SkillUri.parse("github://owner/repo/skills/refunds/SKILL.md")
    assert (uri.path, uri.name) == ("owner/repo/skills/refunds", "refunds")


def test_the_path_of_a_file_is_relative_to_its_skill() -> None:
    assert PDF.to_relative_path("skill://acme/pdf/SKILL.md").text == "SKILL.md"
    assert PDF.to_relative_path("skill://acme/pdf/a/b.md").text == "a/b.md"


def test_names_are_decoded_once() -> None:
    assert PDF.to_relative_path("skill://acme/pdf/a%20b/%C3%A9%2525.md").text == "a b/é%25.md"


SKILLS = {
    "is empty": "",
    "is no URI": "pdf/SKILL.md",
    "is absolute": "/pdf/SKILL.md",
    "has no skill in it": "skill://SKILL.md",
    "has nothing where a host stands": "skill:///pdf/SKILL.md",
    "is a folder": "skill://pdf",
    "is a folder with a slash": "skill://pdf/",
    "ends in a slash": "skill://pdf/SKILL.md/",
    "ends in another file": "skill://pdf/README.md",
    "ends in small letters": "skill://pdf/skill.md",
    "hides its ending": "skill://pdf/%53KILL.md",
    "leads upwards": "skill://acme/../pdf/SKILL.md",
    "is called like upwards": "skill://../SKILL.md",
    "stays where it is": "skill://./pdf/SKILL.md",
    "hides upwards": "skill://acme/%2e%2e/pdf/SKILL.md",
    "hides a slash": "skill://acme%2fpdf/SKILL.md",
    "hides a backslash": "skill://acme%5Cpdf/SKILL.md",
    "has a backslash": "skill://acme\\pdf/SKILL.md",
    "has a query": "skill://pdf/SKILL.md?x=/SKILL.md",
    "has a fragment": "skill://pdf#/SKILL.md",
    "has a space": "skill://p df/SKILL.md",
    "has a line break": "skill://pdf\n/SKILL.md",
    "hides a NUL": "skill://pdf%00/SKILL.md",
    "hides an escape": "skill://pdf%1b/SKILL.md",
    "turns its direction": "skill://pdf%E2%80%AE/SKILL.md",
    "is not UTF-8": "skill://pdf%ff/SKILL.md",
    "has a broken percent": "skill://pdf%2/SKILL.md",
    "has an empty part": "skill://acme//pdf/SKILL.md",
    "has a scheme in capitals": "SKILL://pdf/SKILL.md",
    "is too long": f"skill://{'a' * MAX_URI_LENGTH}/SKILL.md",
}


@pytest.mark.parametrize("text", SKILLS.values(), ids=SKILLS)
def test_no_skill_has_a_uri_that(text: str) -> None:
    with pytest.raises(UnsafePath):
        SkillUri.parse(text)


FILES = {
    "is the folder itself": "skill://acme/pdf",
    "is the folder with a slash": "skill://acme/pdf/",
    "ends in a slash": "skill://acme/pdf/a/",
    "leads upwards": "skill://acme/pdf/../evil",
    "leads upwards from inside": "skill://acme/pdf/a/../../evil",
    "hides upwards": "skill://acme/pdf/%2e%2e/evil",
    "hides upwards in capitals": "skill://acme/pdf/%2E%2E/evil",
    "hides half of upwards": "skill://acme/pdf/.%2e/evil",
    "hides a slash": "skill://acme/pdf/..%2fevil",
    "hides a slash in capitals": "skill://acme/pdf/a%2Fb",
    "has a backslash": "skill://acme/pdf/a\\b",
    "hides a backslash": "skill://acme/pdf/a%5cb",
    "hides a NUL": "skill://acme/pdf/a%00.md",
    "is in another skill": "skill://acme/other/a.md",
    "only begins like it": "skill://acme/pdf-evil/a.md",
    "begins with its name": "skill://acme/pdfa.md",
    "is spelled otherwise": "skill://acme/%70df/a.md",
    "is in capitals": "skill://ACME/pdf/a.md",
    "has another scheme": "file://acme/pdf/a.md",
    "is on the web": "https://acme/pdf/a.md",
    "is a path": "a.md",
    "is absolute": "/etc/passwd",
    "has an empty part": "skill://acme/pdf//a.md",
    "stays where it is": "skill://acme/pdf/./a.md",
    "is a device": "skill://acme/pdf/NUL.txt",
    "is a stream": "skill://acme/pdf/a%3Ab",
    "is a home": "skill://acme/pdf/~root/a",
    "has a query": "skill://acme/pdf/a.md?b",
    "has a fragment": "skill://acme/pdf/a.md#b",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_no_file_of_a_skill_has_a_uri_that(text: str) -> None:
    with pytest.raises(UnsafePath):
        PDF.to_relative_path(text)
