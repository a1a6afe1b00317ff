"""Retired words: the code and the docs use the words of the field, one per concept.

`retired_words.json` has the number of uses that are left in each file. It may only shrink; after
removing some, run `UPDATE_GOLDEN=1 pytest tests/architecture/test_words.py`.
"""

import json
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = Path(__file__).with_name("retired_words.json")
# Better words: cached or stored for kept, reported for told, project for shelf, workspace for desk.
RETIRED = re.compile(
    r"\b(?:desks?|shelf|shelves|lately|gently|kept|told|nobody|somebody|whoever|whom|everybody"
    r"|meanwhile|anew|beside|mend(?:s|ed|ing)?|patience|wish(?:es)?|stands|all the same"
    r"|small letters|tak(?:e|es|en|ing) (?:it )?back|let(?:s)? go)\b",
    re.IGNORECASE,
)
TEST_NAME = re.compile(r"\bdef (test_\w+)")
# Not our prose, prose of skills, and sentences that the file repeats from the code.
DATA = ("/vendor/", "/system_skills/", "/sample_skills/", "/built_in/", "/messages.zh.toml")


def count_in_prose() -> dict[str, int]:
    """The uses in the package, its templates and texts, and the documentation."""
    paths = [*(ROOT / "src").rglob("*"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    prose = [
        path for path in paths if path.suffix in {".py", ".md", ".html", ".toml", ".js", ".css"}
    ]
    names = {path.relative_to(ROOT).as_posix(): path for path in prose}
    texts = {
        name: path.read_text(encoding="utf-8")
        for name, path in sorted(names.items())
        if not any(part in name for part in DATA)
    }
    return {name: count for name, text in texts.items() if (count := len(RETIRED.findall(text)))}


def count_in_test_names() -> dict[str, int]:
    """The uses in the names of tests."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        names = " ".join(TEST_NAME.findall(path.read_text(encoding="utf-8"))).replace("_", " ")
        if count := len(RETIRED.findall(names)):
            found[path.relative_to(ROOT).as_posix()] = count
    return found


def test_retired_words_do_not_come_back() -> None:
    found = {"prose": count_in_prose(), "test names": count_in_test_names()}
    if os.environ.get("UPDATE_GOLDEN"):
        ALLOWED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    allowed = json.loads(ALLOWED.read_text(encoding="utf-8"))
    for where, counts in found.items():
        grown = {name: n for name, n in counts.items() if n > allowed[where].get(name, 0)}
        assert grown == {}, f"retired words in {where}: use the words of the field"


@pytest.mark.parametrize("text", ["It is kept.", "TOLD", "whoever asks", "taken back"])
def test_retired_words_are_recognized(text: str) -> None:
    assert RETIRED.search(text)


@pytest.mark.parametrize("text", ["keep", "besides", "understands", "recommend", "retold"])
def test_ordinary_words_are_not_retired(text: str) -> None:
    assert not RETIRED.search(text)
