from lsprotocol.types import CodeAction, DiagnosticSeverity, RenameFile

from skillhall._internal.authoring.open_document import OpenDocument
from skillhall._internal.authoring.portability import PortabilityProblem
from skillhall._internal.lsp.diagnostics import (
    build_code_actions,
    build_diagnostics,
    build_portability_diagnostics,
)
from skillhall._internal.lsp.positions import TextLines
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.portability.client_rules import Outcome
from skillhall._internal.policy.profiles import SPECIFICATION
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.finding import Code, Finding

PATH, URI = "/skills/pdf-tools/SKILL.md", "file:///skills/pdf-tools/SKILL.md"
TEXT = "---\nname: pdf-tools\ndescription: a: b\n---\n  indented\n"
LINES = TextLines(TEXT, "utf-16")


def judged(path: str = PATH, line: int | None = 3, hint: str = "") -> JudgedFinding:
    finding = Finding(Code.YAML_REPAIRED, "it was read as text", line, hint, path)
    return JudgedFinding(finding, Effect.REJECT)


def actions(path: str = PATH, text: str = TEXT) -> list[CodeAction]:
    document = OpenDocument(path, text, Bundle("/skills/pdf-tools", {}))
    found = build_diagnostics([judged()], path, LINES)
    return build_code_actions(document, URI, TextLines(text, "utf-16"), SPECIFICATION, found)


def test_diagnostic_covers_its_line_and_has_the_hint() -> None:
    (one,) = build_diagnostics([judged(hint="quote it")], PATH, LINES)
    assert (one.range.start.line, one.range.end.character) == (2, len("description: a: b"))
    assert (one.severity, one.code, one.source) == (
        DiagnosticSeverity.Error,
        "yaml-repaired",
        "skillhall",
    )
    assert one.message == "it was read as text\nhint: quote it"


def test_finding_past_the_end_is_on_the_last_line() -> None:
    (one,) = build_diagnostics([judged(line=99)], PATH, LINES)
    assert one.range.start.line == 5


def test_finding_about_another_file_is_on_the_first_line_with_its_path() -> None:
    places = ["/skills/pdf-tools/run.sh", "/skills/pdf-tools", "/other/x.md"]
    found = build_diagnostics([judged(path, line=7) for path in places], PATH)
    assert [one.message.partition("it was")[0] for one in found] == [
        "run.sh:7: ",
        "",
        "/other/x.md:7: ",
    ]
    assert {one.range.start.line for one in found} == {0}


def test_fix_and_fix_all_are_offered_with_their_diagnostics() -> None:
    quote, every = actions()
    assert quote.title == "Quote the value of 'description'"
    assert [one.code for one in quote.diagnostics or ()] == ["yaml-repaired"]
    for one in (quote, every):
        assert one.edit is not None
        (edit,) = (one.edit.changes or {})[URI]
        assert edit.new_text == '"a: b"'


def test_clean_document_has_no_actions() -> None:
    assert actions(text=TEXT.replace("a: b", "text")) == []


def test_file_in_another_case_can_be_renamed() -> None:
    (rename,) = actions("/skills/pdf-tools/skill.md", TEXT.replace("a: b", "text"))
    assert rename.edit is not None
    (change,) = rename.edit.document_changes or ()
    assert isinstance(change, RenameFile)
    assert change.new_uri == URI


def test_portability_problem_is_on_the_line_of_its_field() -> None:
    dropped = PortabilityProblem("", Outcome.DROPPED, "it has a tab", "use spaces", ("A 1", "B 2"))
    lost = PortabilityProblem("description", Outcome.LOSS, "it is long", "cut it", ("A 1",))
    lines = {"": 0, "description": 2}
    first, second = build_portability_diagnostics([dropped, lost], lines.__getitem__, LINES)
    assert first.message == "the skill is dropped by A 1, B 2: it has a tab\nhint: use spaces"
    assert (first.severity, first.range.start.line) == (DiagnosticSeverity.Warning, 0)
    assert second.message == "description is lost in A 1: it is long\nhint: cut it"
    assert (second.severity, second.range.start.line) == (DiagnosticSeverity.Information, 2)
