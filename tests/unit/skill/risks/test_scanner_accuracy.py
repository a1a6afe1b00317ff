"""Precision and recall of the scan on labeled passages.

The passages are written like public skills. Each benign one resembles a false positive of an
earlier version; each malicious one has its own wording. The held-out ones were written after the
rules. On those, precision and recall were 0.79 and 0.85 at first.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill.risks.tiers import TIERS, Tier
from tests.support.bundles import make_bundle
from tests.support.skills import make_skill_md

FOLDER = Path(__file__).parent / "passages"
MIN_PRECISION, MIN_RECALL = 0.9, 0.9
MIN_PASSAGES = 60
# A placeholder in the passages: other secret scanners read this repository too.
RANDOM = "bT7qLx2ZpVd9KfRw3HnYs8CgJm5XaQe4WkBu"


class Passage(NamedTuple):
    """A text and the code that the scan should report; `None` if it is benign."""

    name: str
    text: str
    expected: Code | None = None

    def alarms(self) -> set[Code]:
        """Return the codes of medium and high findings."""
        data = make_skill_md(body=self.text)
        findings = scan_bundle(make_bundle({"SKILL.md": data}), EMPTY_FRONTMATTER)
        return {f.code for f in findings if TIERS[f.code] is not Tier.INFO}


def read_passages(name: str) -> list[Passage]:
    """Read a file of passages. Each starts with its name, and its code if malicious."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    passages = []
    for part in text.split("=== ")[1:]:
        head, _, body = part.partition("\n")
        title, _, code = head.partition(" | ")
        for escape, character in {"\\x1b": "\x1b", "\\x08": "\b", "\\x07": "\a"}.items():
            body = body.replace(escape, character)
        body = body.replace("@RANDOM36@", RANDOM)
        passages.append(Passage(title, body, Code(code) if code else None))
    return passages


SETS = {
    "known": (read_passages("benign.txt"), read_passages("malicious.txt")),
    "held out": (read_passages("held-out-benign.txt"), read_passages("held-out-malicious.txt")),
}
MALICIOUS = [passage for _, malicious in SETS.values() for passage in malicious]


@pytest.mark.parametrize("set_name", SETS)
def test_precision_of_medium_and_high_findings(set_name: str) -> None:
    benign, malicious = SETS[set_name]
    false = {passage.name: passage.alarms() for passage in benign if passage.alarms()}
    alarms = sum(len(passage.alarms()) for passage in malicious)
    wrong = sum(map(len, false.values()))
    assert alarms / (alarms + wrong) >= MIN_PRECISION, false


@pytest.mark.parametrize("set_name", SETS)
def test_recall_of_expected_findings(set_name: str) -> None:
    malicious = SETS[set_name][1]
    missed = [passage.name for passage in malicious if passage.expected not in passage.alarms()]
    assert 1 - len(missed) / len(malicious) >= MIN_RECALL, missed


def test_passages_are_numerous_and_unique() -> None:
    for passages in (group for pair in SETS.values() for group in pair):
        assert len(passages) >= MIN_PASSAGES
        assert len({passage.text for passage in passages}) == len(passages)
        assert len({passage.name for passage in passages}) == len(passages)


@pytest.mark.parametrize(
    "expected", sorted({passage.expected for passage in MALICIOUS if passage.expected})
)
def test_every_rule_has_a_true_positive(expected: Code) -> None:
    assert any(
        expected in passage.alarms() for passage in MALICIOUS if passage.expected is expected
    )
