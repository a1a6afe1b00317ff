"""Parser of the replies of a judge.

Replies are untrusted: quotes are looked up in the outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.evals.eval_records import Verdict
from skillhall._internal.evals.grading.grader import Judgment
from skillhall._internal.evals.grading.run_outputs import OutputUnreadable
from skillhall._internal.strict_json import InvalidJson, parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.evals.grading.run_outputs import RunOutputs

MAX_EVIDENCE = 600  # characters
_MIN_QUOTE = 3  # letters and digits; shorter quotes occur in almost every text
_VERDICTS = {"passed": Verdict.PASSED, "failed": Verdict.FAILED, "unclear": Verdict.NOT_JUDGED}


class UnusableReply(ValueError):
    """A reply without the requested JSON. The message is the reason."""


class JudgeResult(NamedTuple):
    """One result in the reply of a judge, not checked yet."""

    verdict: Verdict
    quote: str
    reason: str


def parse_results(reply: str) -> dict[int, JudgeResult]:
    """Return the results by the number of their assertion. Raises: UnusableReply.

    Results that cannot be used, and numbers with different verdicts, are left out.
    """
    entries = parse_reply(reply).get("results")
    if not isinstance(entries, list):
        raise UnusableReply("it has no list 'results'")
    results: dict[int, JudgeResult] = {}
    contradicted = set()
    for entry in entries:
        number = entry.get("number") if isinstance(entry, dict) else None
        if not isinstance(number, int) or isinstance(number, bool):
            continue
        verdict = _VERDICTS.get(str(entry.get("verdict")).lower())
        if verdict is None:
            continue
        result = JudgeResult(verdict, _read_text(entry, "quote"), _read_text(entry, "reason"))
        if results.setdefault(number, result).verdict is not verdict:
            contradicted.add(number)
    return {number: one for number, one in results.items() if number not in contradicted}


def parse_reply(reply: str) -> Mapping[str, object]:
    """Return the JSON object in a reply, which may be in a code block. Raises: UnusableReply."""
    start, end = reply.find("{"), reply.rfind("}")
    if start < 0 or end < start:
        raise UnusableReply("it is not JSON")
    try:
        value = parse_json(reply[start : end + 1].encode("utf-8", "replace"), unique_keys=False)
    except InvalidJson:
        raise UnusableReply("it is not valid JSON") from None
    if not isinstance(value, dict):
        raise UnusableReply("it is not a JSON object")
    return value


def judge_result(result: JudgeResult, outputs: RunOutputs) -> Judgment:
    """Return the verdict if its quote is in the outputs, else why it does not count."""
    if result.verdict is Verdict.NOT_JUDGED:
        return Judgment(Verdict.NOT_JUDGED, f"unclear to the judge: {result.reason}"[:MAX_EVIDENCE])
    if not result.quote:
        if result.verdict is Verdict.PASSED:
            reason = f"the judge passed it without a quote: {result.reason}"
            return Judgment(Verdict.NOT_JUDGED, reason[:MAX_EVIDENCE])
        return Judgment(Verdict.FAILED, result.reason[:MAX_EVIDENCE])
    source = find_quote(result.quote, outputs)
    shown = f'"{result.quote[: MAX_EVIDENCE // 2]}"'
    if source is None:
        reason = f"the judge's quote is not in the outputs: {shown}"
        return Judgment(Verdict.NOT_JUDGED, reason)
    return Judgment(result.verdict, f"{shown} ({source}): {result.reason}"[:MAX_EVIDENCE])


def find_quote(quote: str, outputs: RunOutputs) -> str | None:
    """Return the place of a quote: "reply", "files" or a file's path; else `None`.

    White space may differ. A quote of fewer than three letters and digits must be a complete
    output or a complete line of one.
    """
    wanted = _normalize(quote)
    if not wanted:
        return None
    is_short = sum(character.isalnum() for character in wanted) < _MIN_QUOTE
    for name, text in _iter_texts(outputs):
        if is_short:
            lines = [text, *text.split("\n")]
            if any(_normalize(line) == wanted for line in lines):
                return name
        elif wanted in _normalize(text):
            return name
    return None


def _iter_texts(outputs: RunOutputs) -> list[tuple[str, str]]:
    texts = [("reply", outputs.reply), ("files", "\n".join(outputs.list_files()))]
    for path in outputs.files:
        try:
            texts.append((path, outputs.read_text(path)))
        except OutputUnreadable:
            continue
    return texts


def _normalize(text: str) -> str:
    return " ".join(text.split())


def _read_text(entry: Mapping[str, object], key: str) -> str:
    value = entry.get(key)
    return value.strip() if isinstance(value, str) else ""
