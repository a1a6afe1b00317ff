"""The checklist for OWASP's Agentic Skills Top 10: answers with evidence that exists."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from skillhall._internal.cli.app import COMMANDS
from skillhall._internal.policy.trust.security_checklist import (
    CHECKLIST,
    RISKS,
    Answer,
    ChecklistFacts,
    ChecklistRow,
    EvidenceKind,
    answer_checklist,
    count_answers,
    serialize_answer,
)
from skillhall._internal.skill.finding import Code

DOCS = Path(__file__).parents[4] / "docs"
SETTINGS = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
EXPECTED_COUNTS = {"yes": 34, "in part": 13, "no": 8, "out of scope": 9}


def find_answers(facts: ChecklistFacts) -> dict[str, Answer]:
    return {one.row.id: one.answer for one in answer_checklist(facts)}


def test_rows_are_numbered_and_counted() -> None:
    per_risk = Counter(row.risk for row in CHECKLIST)
    assert [*per_risk.values()] == [6, 6, 8, 6, 6, 7, 6, 6, 7, 6]
    assert [*per_risk] == [*RISKS]
    assert len({row.id for row in CHECKLIST}) == len(CHECKLIST)
    assert count_answers(answer_checklist()) == EXPECTED_COUNTS


def test_every_row_says_what_is_missing() -> None:
    for row in CHECKLIST:
        assert row.question.endswith("?")
        assert bool(row.note) == (row.answer is not Answer.YES), row.id


def test_pages_have_the_same_texts() -> None:
    file = DOCS.parent / "src/skillhall/_internal/web/texts/en.toml"
    texts = tomllib.loads(file.read_text(encoding="utf-8"))
    assert texts["checklist_question"] == {row.key: row.question for row in CHECKLIST}
    assert texts["checklist_note"] == {row.key: row.note for row in CHECKLIST if row.note}
    assert texts["checklist_risk"] == RISKS


@pytest.mark.parametrize("row", CHECKLIST, ids=lambda row: row.id)
def test_evidence_of_a_row_exists(row: ChecklistRow) -> None:
    assert row.evidence
    for kind, name in row.evidence:
        if kind is EvidenceKind.FINDING:
            assert Code(name)
        elif kind is EvidenceKind.COMMAND:
            assert name in COMMANDS
        elif kind is EvidenceKind.SETTING:
            assert f"`{name}`" in SETTINGS
        elif kind is EvidenceKind.GUIDE:
            assert (DOCS / "guides" / name).is_file()
        else:
            assert name in ChecklistFacts._fields


def test_finding_answers_its_rows_with_no() -> None:
    answers = find_answers(ChecklistFacts(frozenset({Code.HARDCODED_SECRET})))
    assert [number for number, answer in answers.items() if answer is Answer.NO] == [
        *("1.2", "2.6", "3.2", "4.6", "5.2", "5.6", "8.3", "10.1", "10.3")
    ]


def test_missing_signature_and_approval_answer_their_rows_with_no() -> None:
    unsigned = find_answers(ChecklistFacts(signed=False))
    assert {unsigned[number] for number in ("1.1", "1.3", "2.1")} == {Answer.NO}
    assert find_answers(ChecklistFacts(approved=False))["9.3"] is Answer.NO
    assert find_answers(ChecklistFacts(approved=True, signed=True)) == find_answers(
        ChecklistFacts()
    )


def test_answer_names_the_problem() -> None:
    facts = ChecklistFacts(frozenset({Code.HARDCODED_SECRET}))
    [row] = [one for one in map(serialize_answer, answer_checklist(facts)) if one["id"] == "8.3"]
    assert row["problems"] == [{"kind": "finding", "name": "hardcoded-secret"}]
    assert row["answer"] == "no"
