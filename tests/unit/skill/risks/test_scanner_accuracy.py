"""How well the scan tells attacks from texts that talk about them, on labelled passages.

The passages are written like public skills. Each benign one resembles something that an earlier
version reported; each malicious one is an order in its own words. The held-out ones were written
after the rules, to see how well those do on what they have not seen: 0.79 and 0.85 at first.
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
LEAST_PRECISION, LEAST_RECALL = 0.9, 0.9
LEAST_PASSAGES = 60
# Secret scanners of other people read this repository, too.
RANDOM = "bT7qLx2ZpVd9KfRw3HnYs8CgJm5XaQe4WkBu"


class Passage(NamedTuple):
    """A text, and the code that a scan should have for it; none for a benign one."""

    name: str
    text: str
    expected: Code | None = None

    def alarms(self) -> set[Code]:
        """The codes of medium and high findings."""
        data = make_skill_md(body=self.text)
        found = scan_bundle(make_bundle({"SKILL.md": data}), EMPTY_FRONTMATTER)
        return {one.code for one in found if TIERS[one.code] is not Tier.INFO}


def read(name: str) -> list[Passage]:
    """The passages of a file: each has a line with its name, and its code if it is malicious."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    found = []
    for part in text.split("=== ")[1:]:
        head, _, body = part.partition("\n")
        title, _, code = head.partition(" | ")
        for written, meant in {"\\x1b": "\x1b", "\\x08": "\b", "\\x07": "\a"}.items():
            body = body.replace(written, meant)
        body = body.replace("@RANDOM36@", RANDOM)
        found.append(Passage(title, body, Code(code) if code else None))
    return found


SETS = {
    "known": (read("benign.txt"), read("malicious.txt")),
    "held out": (read("held-out-benign.txt"), read("held-out-malicious.txt")),
}
MALICIOUS = [one for _, malicious in SETS.values() for one in malicious]


@pytest.mark.parametrize("which", SETS)
def test_precision_of_medium_and_high_findings(which: str) -> None:
    benign, malicious = SETS[which]
    false = {one.name: one.alarms() for one in benign if one.alarms()}
    alarms = sum(len(one.alarms()) for one in malicious)
    wrong = sum(map(len, false.values()))
    assert alarms / (alarms + wrong) >= LEAST_PRECISION, false


@pytest.mark.parametrize("which", SETS)
def test_recall_of_the_expected_findings(which: str) -> None:
    malicious = SETS[which][1]
    missed = [one.name for one in malicious if one.expected not in one.alarms()]
    assert 1 - len(missed) / len(malicious) >= LEAST_RECALL, missed


def test_the_passages_are_many_and_differ() -> None:
    for passages in (one for pair in SETS.values() for one in pair):
        assert len(passages) >= LEAST_PASSAGES
        assert len({one.text for one in passages}) == len(passages)
        assert len({one.name for one in passages}) == len(passages)


@pytest.mark.parametrize("expected", sorted({one.expected for one in MALICIOUS if one.expected}))
def test_every_rule_finds_something(expected: Code) -> None:
    assert any(expected in one.alarms() for one in MALICIOUS if one.expected is expected)
