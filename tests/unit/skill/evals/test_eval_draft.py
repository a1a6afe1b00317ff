"""Drafts of eval files: cases that are added to a present file."""

import json

import pytest

from skillhall._internal.skill.evals.eval_draft import append_case


def test_case_is_appended_to_present_ones_and_other_contents_stay() -> None:
    first = append_case(None, "pdf", {"prompt": "One.", "expected_output": "", "assertions": []})
    assert first is not None
    assert json.loads(first) == {"skill_name": "pdf", "evals": [{"id": 1, "prompt": "One."}]}
    present = b'{"note": "ours", "evals": [{"id": 7, "prompt": "A"}, {"id": "x", "prompt": "B"}]}'
    second = append_case(present, "pdf", {"prompt": "Two."})
    assert second is not None
    assert json.loads(second)["note"] == "ours"
    assert json.loads(second)["evals"][-1] == {"id": 8, "prompt": "Two."}


@pytest.mark.parametrize("present", [b"[", b"[]", b'{"evals": {}}', b'{"a": 1, "a": 2}'])
def test_case_is_not_appended_to_an_unreadable_file(present: bytes) -> None:
    assert append_case(present, "pdf", {"prompt": "Two."}) is None
