"""Checklist for the risks AST01 to AST10 of OWASP's Agentic Skills Top 10.

Each row has a question in our own words, what Skillhall does about it, and the evidence. The
numbers are those of OWASP's assessment checklist. Answers about one skill or server depend on its
facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from skillhall._internal.policy.trust.checklist_rows import ROWS
from skillhall._internal.skill.finding import Code

RISKS: Final[Mapping[str, str]] = {
    "AST01": "Malicious skills",
    "AST02": "Compromised supply chain",
    "AST03": "Too many permissions",
    "AST04": "Misleading metadata",
    "AST05": "Unsafe parsing",
    "AST06": "Weak isolation",
    "AST07": "Unnoticed updates",
    "AST08": "Poor scanning",
    "AST09": "No governance",
    "AST10": "Reuse on other platforms",
}


class Answer(StrEnum):
    """Answer to the question of a row."""

    YES = "yes"
    PARTLY = "in part"
    NO = "no"
    OUT_OF_SCOPE = "out of scope"  # Skillhall does not run skills


class EvidenceKind(StrEnum):
    """Kind of evidence for an answer."""

    FINDING = "finding"  # the code of a finding; without one, the answer holds
    COMMAND = "command"
    SETTING = "setting"
    GUIDE = "guide"  # a file in docs/guides
    FACT = "fact"  # a field of `ChecklistFacts`


class Evidence(NamedTuple):
    """Evidence for the answer of a row."""

    kind: EvidenceKind
    name: str

    @classmethod
    def parse(cls, text: str) -> Evidence:
        """Parse evidence such as `command:sign`."""
        kind, _, name = text.partition(":")
        return cls(EvidenceKind(kind), name)


class ChecklistRow(NamedTuple):
    """A question, and what Skillhall does about it in general."""

    id: str
    answer: Answer
    question: str
    evidence: tuple[Evidence, ...] = ()
    note: str = ""  # what is missing

    @property
    def key(self) -> str:
        """The key of the texts in other languages."""
        return f"q{self.id.replace('.', '_')}"

    @property
    def risk(self) -> str:
        """The risk, such as AST01."""
        return f"AST{int(self.id.partition('.')[0]):02}"


class ChecklistFacts(NamedTuple):
    """Facts about a skill or a server; `None` means unknown."""

    findings: frozenset[Code] = frozenset()  # of the scan of a skill
    signed: bool | None = None  # by a known signer
    approved: bool | None = None
    pinned: bool | None = None  # by a digest, in a lock file or on a server
    current: bool | None = None  # not revoked
    token: bool | None = None  # the server requires a token
    signs_list: bool | None = None  # the server signs its list of revocations
    inventory: bool | None = None  # machines have reported their skills


class ChecklistAnswer(NamedTuple):
    """The answer of a row for given facts."""

    row: ChecklistRow
    answer: Answer
    problems: tuple[Evidence, ...] = ()  # what makes the answer worse


CHECKLIST: tuple[ChecklistRow, ...] = tuple(
    ChecklistRow(
        number,
        Answer(answer),
        question,
        tuple(map(Evidence.parse, evidence.split())),
        note,
    )
    for number, answer, question, evidence, note in ROWS
)


def answer_checklist(facts: ChecklistFacts | None = None) -> list[ChecklistAnswer]:
    """Answer all rows for a skill or server; without facts, for Skillhall in general.

    A finding or a fact that contradicts a row turns its answer into no.
    """
    known = facts or ChecklistFacts()
    return [_answer(row, known) for row in CHECKLIST]


def _answer(row: ChecklistRow, facts: ChecklistFacts) -> ChecklistAnswer:
    problems = tuple(one for one in row.evidence if _is_problem(one, facts))
    return ChecklistAnswer(row, Answer.NO if problems else row.answer, problems)


def _is_problem(evidence: Evidence, facts: ChecklistFacts) -> bool:
    if evidence.kind is EvidenceKind.FINDING:
        return Code(evidence.name) in facts.findings
    return evidence.kind is EvidenceKind.FACT and getattr(facts, evidence.name) is False


def serialize_answer(one: ChecklistAnswer) -> dict[str, object]:
    """Serialize the answer of a row."""
    row = one.row
    return {
        "id": row.id,
        "risk": row.risk,
        "question": row.question,
        "answer": one.answer.value,
        "note": row.note,
        "evidence": [{"kind": each.kind.value, "name": each.name} for each in row.evidence],
        "problems": [{"kind": each.kind.value, "name": each.name} for each in one.problems],
    }


def count_answers(answers: list[ChecklistAnswer]) -> dict[str, int]:
    """Return the number of rows with each answer."""
    return {answer.value: sum(one.answer is answer for one in answers) for answer in Answer}
