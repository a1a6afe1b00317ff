"""Use or mention: whether a text tells its reader to do something risky, or only talks about it.

A skill that reviews code quotes attacks, lists them in tables and says "never run …". Those places
are mentions. They are reported as information, so that quotation marks cannot
hide an order, but they do not raise an alarm.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.skill.risks.lines import ScannedText

_MAX_BEFORE = 240  # characters before a place that are looked at, within its sentence
_MAX_AFTER = 120  # characters after it, on its line
_MAX_QUOTE_LENGTH = 300  # characters that a quotation may have
_MAX_LINE_LENGTH = 1000  # characters of a line that patterns meet
_MAX_CHECKS = 1000  # places of one file that are judged
_MAX_OPENER_DISTANCE = 3000  # characters above a line that are searched for its opening line
_ROWS = 200  # lines of a table or a quotation that are walked up
_MAX_INTRODUCTION_LINES = 40  # lines between a place and the line that introduces its list or code

_FENCE = re.compile(r"\s{0,12}(?:>\s?)?(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*)|\s{0,3}\*\*([^*\n]{2,80})\*\*:?\s*$")
_ITEM = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s")
_TABLE = re.compile(r"\s{0,6}\|.*\|")
_DELIMITER = re.compile(
    r"\s{0,6}:?-{2,}:?\s{0,4}\|[\s:|-]{2,200}$"
)  # of a table without outer bars
_BOLD_LEVEL = 7  # the level of a line in bold, below every heading
_SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)[.!?:](?=[\s\"”'*_)])|[\u3002\uff01\uff1f]|\n\s*\n"
)
# Languages in which attacks are described, as a fence names them.
_RULE_LANGUAGE = re.compile(
    r"(?<=[`~])\s{0,3}(?:yara|yar|sigma|semgrep|snort|suricata|rego|falco)\b"
)
_FIELD = re.compile(r"\s*[\w-]{1,40}:\s*$")

# What names an attack, or the act of looking for one.
_THREAT_TERMS = (
    r"attacks?|attackers?|malicious\w*|adversar\w+|hostile|injections?|inject(?:ed|s)|jailbreaks?"
    r"|suspicious|dangerous|unsafe|insecure|harmful|risky|red flags?|anti-?patterns?|threats?"
    r"|exploits?|phishing|exfiltrat\w+|forbidden|prohibited|disallow\w*|untrusted|vulnerab\w+"
    r"|malware|backdoors?|compromised|poison\w+|smells?|bad|evil|mistakes?|pitfalls?"
    r"|failure modes?|violations?|unacceptable|indicators? of|blocklist\w*|denylist\w*"
)
_DETECTION_VERBS = (
    r"(?:flag|detect|reject|intercept|spot)(?:s|ed|ing|ged|ging)?\b|den(?:y|ies|ied)\b"
    r"|refus(?:e|es|ed|ing)\b|block(?:s|ed|ing)\b|(?:look|search|scan|watch|grep|hunt|test)"
    r"(?:s|es|ing)?\s{1,3}(?:out\s{1,3})?for\b|alerts?\s{1,3}on\b|semgrep\b"
    r"|checks?\s{1,3}for\b(?!\s+(?:updates|an?\b|the\b|new))"
)
_NEVER = (
    r"(?:never|do\s+not|don['’]t|avoid|must\s+(?:not|never)|should\s+(?:not|never)|shouldn['’]t)"
)
_WARNING_SYMBOLS = "\u274c\u2717\u2718\u26d4\U0001f6ab\U0001f6a9"
_THREAT_PATTERN = re.compile(
    rf"\b(?:{_THREAT_TERMS})\b|\b(?:{_DETECTION_VERBS})|[{_WARNING_SYMBOLS}]"
)
_JUDGMENT_PATTERN = re.compile(
    rf"{_THREAT_PATTERN.pattern}|\b(?:problems?|risks?|concerns?|unreviewed|unverified|hard\s+to\s+audit)\b"
)
# A heading or an introduction may also just begin with "never".
_PROHIBITION_PATTERN = re.compile(
    rf"\b(?:{_THREAT_TERMS})\b|\b(?:{_DETECTION_VERBS})|[{_WARNING_SYMBOLS}]|^[\s>*_#\d.)-]{{0,12}}(?:you\s+)?{_NEVER}\b"
    r"|\bwhat\s+not\s+to\b|\bnot\s+allowed\b|\bdon['’]ts\b"
)
_NEGATION_PATTERN = re.compile(
    rf"\b(?:{_NEVER}\s+(?:ever\s+|blindly\s+|just\s+|simply\s+)?"
    r"(?:run|use|execute|pipe|paste|type|do|accept|follow|obey|trust|allow|say|write|recommend"
    r"|suggest|install|send|copy|try|add|emit|generate|(?:pip|runn|us|execut|past|send|copy)ing)\b"
    r"|instead\s+of|rather\s+than)"
    r"\s+(?:[\w*_`\"'“-]{1,20}\s+){0,4}[*_`\"'“$(>\s-]{0,4}$"
)
_EXAMPLES = re.compile(
    r"\b(?:if\s+(?:someone|anyone|a\s+\w{1,16}|the\s+\w{1,16}|they|it)\s+(?:writes?|asks?|types?"
    r"|sends?|requests?|tr(?:y|ies)|claims?)|e\.g\.|such\s+as|for\s+example|for\s+instance|examples?|like|phrases?|patterns?|says?"
    r"|saying|reads|containing|contains|strings?|wording|variants?|called|attempts?\s+to)\b"
    r"[^.!?]{0,40}$"
)
# A report of what happened, or of what a check finds.
_NARRATIVE_PATTERN = re.compile(
    r"\b(?:it|they|he|she|which|that|who|we|i|the|an?|this|our|its|their|these)\s+"
    r"(?:[\w`-]{1,24}\s+){0,3}(?:then\s+|also\s+|had\s+)?(?:ran|executed|sent|called|downloaded"
    r"|told|asked|instructed|contained|tried|attempted|claimed|posted|uploaded|logged|recorded"
    r"|captured|observed|showed|found|saw|caught|injected)\b"
    r"|\b(?:finds|matches|catches|reports)\b"
    r"|\b(?:that|which|who)\s+(?:\w{1,16}\s+)?(?:tell|ask|instruct|urge|tr(?:y|ies)|attempt|want|direct)"
    r"(?:s|ing)?\s+(?:[\w-]{1,16}\s+){0,3}to\s+$"
)
# "Lines like …", unless they are to be run.
_COMPARISON_PATTERN = re.compile(r"\b\w{2,24}\s+(?:such\s+as|like)\s[^.]{0,20}$")
_RUN_INSTRUCTION = re.compile(
    r"(?:^|[,:;(]\s|\b(?:then|please|just|simply|you|can|should|must|now|first|to)\s)\W{0,8}"
    r"(?:run|use|execute|try|type|enter|paste|install|start|do|call)\b"
)
_REFUSAL_PATTERN = re.compile(rf"\b(?:{_NEVER}|without|not)\s+(?:ever\s+)?[*_`\"'“]{{0,3}}$")
_URL = re.compile(r"https?://\S{1,500}")
_STEPS = re.compile(r"\b(?:steps?|setup|set\s+up|install\w*|run\s+this)\b")
_QUESTION = re.compile(r"[^.!]{0,200}\?(?=\s|$)")
_CALLOUT = re.compile(r"\s*>\s*(?:\[!|\*\*|[A-Z]{3,12}:)", re.IGNORECASE)
_COMMENT_START = re.compile(r"\s(?:#|//|←|<--?|→|->|=>|—|–|--)\s|\s\(|`\)?[\s,]")
_CODE_COMMENT_START = re.compile(r"\s(?:#|//|←|<--)\s")
_QUOTE_PAIRS = {"“": "”", "«": "»", "「": "」", "\u2018": "’", "『": "』"}
# Of a source file: where patterns and cases of tests are written down.
_STRING_LITERAL = re.compile(
    r"""\s*[\[({]?\s*[rbuf]{0,2}["'`].*["'`]\s*[\])}]{0,2}[,;]?\s*(?:(?:#|//).*)?$"""
)
_CHECK_TERMS = re.compile(
    r"\b(?:patterns?|regex\w*|re\.(?:compile|search|match|findall)|assert\w*|expect|detect\w*"
    r"|includes?|match(?:es)?|test\w*|blocked|deny|suspicious|malicious|injection\w*|attacks?)\b"
)
# What lists of such texts are called.
_LIST_NAMES = re.compile(
    r"patterns?|regex|rules|detect|block|deny|suspicious|malicious|injection|attack|payload|danger"
    r"|forbidden|unsafe|specimen|cases|samples|examples|corpus|threat|signatures|strings|parametrize"
)
_COMMENT = re.compile(r"\s*(?:#(?!!)|//|\*|--|;|<!--|\"\"\"|''')")
_TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|fixtures?|evals?|examples/attacks)/|(?:^|/)test_[^/]*$"
    r"|[._-](?:test|spec|eval|evals|cases)\.\w{1,5}$|(?:^|/)evals?\.\w{1,5}$"
)


class _MarkdownLine(NamedTuple):
    """A line of Markdown, and what it belongs to."""

    start: int
    text: str
    fence: int  # the line that opens the code it is in; -1 outside of code
    headings: str  # the nearest one, and those above it
    is_row: bool = False  # of a table

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())


class MentionDetector:
    """Context of the matches in one file."""

    def __init__(self, lines: ScannedText, path: str, *, is_markdown: bool) -> None:
        self._text = lines.lower
        self._is_markdown = is_markdown
        self._check_count = 0
        self._is_test_file = _TEST_FILE.search(path.lower()) is not None

    def is_mention(self, start: int, *, is_phrase: bool) -> bool:
        """Return whether the text at `start` is only mentioned.

        `spoken` is true of phrases, for which quotation marks mean a mention. Commands are
        quoted when they are used, too.
        """
        self._check_count += 1
        if self._check_count > _MAX_CHECKS:  # bounds the work; the rest counts as used
            return False
        if not self._is_markdown:
            return self._is_mention_in_source(start, is_phrase=is_phrase)
        number = bisect_right(self._starts, start) - 1
        line = self._lines[number]
        if line.is_row:
            return _STEPS.search(self._lines[self._first_row(number)].text) is None
        before = _URL.sub(" ", self._sentence_before(line, start))
        return (
            any(
                cue.search(before)
                for cue in (_THREAT_PATTERN, _NEGATION_PATTERN, _NARRATIVE_PATTERN)
            )
            or (
                _COMPARISON_PATTERN.search(before) is not None
                and _RUN_INSTRUCTION.search(before) is None
            )
            or (
                line.fence >= 0
                and self._is_pattern_or_test_case(line.text[:_MAX_LINE_LENGTH], line.start, start)
            )
            or (is_phrase and self._is_cited(number, start, before))
            or self._is_judged_after(line, start, before)
            or any(
                _PROHIBITION_PATTERN.search(_URL.sub(" ", one))
                for one in self._find_introductions(number)
            )
        )

    def _is_cited(self, number: int, start: int, before: str) -> bool:
        """Return whether a phrase is cited: in quotation marks, as an example, in a question."""
        line = self._lines[number]
        if line.fence >= 0:
            return False
        if line.text.lstrip().startswith(">") and not _CALLOUT.match(line.text):
            first = self._find_first_quoted_line(number)
            above = "".join(one.text for one in self._lines[max(0, first - 2) : first])
            if above.rstrip(" *_").endswith((":", "\uff1a")):
                return True
        if _REFUSAL_PATTERN.search(before):
            return True
        asks = _QUESTION.match(self._text, start, start + _MAX_BEFORE) is not None
        return asks or _EXAMPLES.search(before) is not None or self._is_quoted(line, start)

    @cached_property
    def _lines(self) -> list[_MarkdownLine]:
        return list(_read_lines(self._text))

    @cached_property
    def _starts(self) -> list[int]:
        return [line.start for line in self._lines]

    def _sentence_before(self, line: _MarkdownLine, start: int) -> str:
        """The sentence up to a place; in code, its line alone."""
        if line.fence >= 0:
            return self._text[line.start : start][-_MAX_BEFORE:]
        earliest = max(self._paragraph_start(line), start - _MAX_BEFORE)
        text = self._text[earliest:start]
        ends = [match.end() for match in _SENTENCE_END.finditer(text) if match.group() != ":"]
        return text[ends[-1] :] if ends else text

    def _paragraph_start(self, line: _MarkdownLine) -> int:
        number = bisect_right(self._starts, line.start) - 1
        top = number - _MAX_INTRODUCTION_LINES
        while number > max(0, top) and not _starts_block(self._lines[number].text):
            above = self._lines[number - 1]
            if not above.text.strip() or above.is_row or above.fence >= 0:
                break
            if _HEADING.match(above.text):
                break
            number -= 1
        return self._lines[number].start

    def _is_quoted(self, line: _MarkdownLine, start: int) -> bool:
        began = max(self._paragraph_start(line), start - _MAX_QUOTE_LENGTH)
        before, after = self._text[began:start], self._text[start : start + _MAX_QUOTE_LENGTH]
        after = after.partition("\n\n")[0]
        for mark in ('"', "`"):
            opened = before.count(mark) % 2 == 1 and mark in after
            if opened and not _FIELD.fullmatch(before.rpartition(mark)[0]):
                return True
        if any(_is_quote_open(before, *pair) and pair[1] in after for pair in _QUOTE_PAIRS.items()):
            return True
        opened_at = re.search(r"(?:^|[\s(\[:])'(?=[^'\n]*$)", before)
        return opened_at is not None and re.search(r"\w[.!?,…]{0,3}'(?!\w)", after) is not None

    def _find_first_quoted_line(self, number: int) -> int:
        top = max(0, number - _ROWS)
        while number > top and self._lines[number - 1].text.lstrip().startswith(">"):
            number -= 1
        return number

    def _is_judged_after(self, line: _MarkdownLine, start: int, before: str) -> bool:
        """Whether the rest of the line says that this is an attack, as a comment does.

        An order stays one: "run this; some tools call it dangerous".
        """
        rest = self._text[start : line.start + len(line.text)][:_MAX_LINE_LENGTH]
        if line.fence >= 0:
            aside = _CODE_COMMENT_START.search(rest)
        elif _RUN_INSTRUCTION.search(before):
            return False
        else:
            aside = _COMMENT_START.search(rest)
        comment = rest[aside.end() :][:_MAX_AFTER] if aside else ""
        return _JUDGMENT_PATTERN.search(_URL.sub(" ", comment)) is not None

    def _find_introductions(self, number: int) -> Iterator[str]:
        """Headings, and the lines that a list, a quotation or a piece of code belongs to."""
        line = self._lines[number]
        yield line.headings
        if line.fence >= 0:
            yield from self._find_comments_above(number)
            yield _RULE_LANGUAGE.sub("detects", self._lines[line.fence].text)
        at, indent = (line.fence, 99) if line.fence >= 0 else (number, line.indent)
        if line.fence < 0 and not _starts_block(line.text):
            return
        for above in range(at - 1, max(-1, at - _MAX_INTRODUCTION_LINES), -1):
            other = self._lines[above]
            if not other.text.strip() or other.fence >= 0:
                continue
            if _HEADING.match(other.text):
                return
            if _ITEM.match(other.text) or other.text.lstrip().startswith(">"):
                if other.indent >= indent and line.fence < 0:
                    continue
                yield other.text
                indent = other.indent
                continue
            if other.indent and other.indent >= indent:
                continue
            yield from self._find_colon_introduction(above, is_near=line.fence >= 0)
            return

    def _find_colon_introduction(self, number: int, *, is_near: bool) -> Iterator[str]:
        text = self._lines[number].text.rstrip(" *_")
        if text.endswith((":", "\uff1a")) or is_near:
            start = self._paragraph_start(self._lines[number])
            end = self._lines[number].start + len(self._lines[number].text)
            yield re.split(r"[.!?]\s", self._text[start:end].rstrip(" *_:"))[-1]

    def _find_comments_above(self, number: int) -> Iterator[str]:
        """Comments in code: those right above, and at the top of the block."""
        for above in (number, number - 1, number - 2):
            if above > self._lines[number].fence and _COMMENT.match(self._lines[above].text):
                yield self._lines[above].text

    def _first_row(self, number: int) -> int:
        top = max(0, number - _ROWS)
        while number > top and self._lines[number - 1].is_row:
            number -= 1
        return number

    def _is_mention_in_source(self, start: int, *, is_phrase: bool) -> bool:
        begins = self._text.rfind("\n", 0, start) + 1
        end = self._text.find("\n", start)
        begins = max(begins, start - _MAX_LINE_LENGTH // 2)
        line = self._text[begins : end if end >= 0 else len(self._text)][:_MAX_LINE_LENGTH]
        before = line[: start - begins]
        if self._is_pattern_or_test_case(line, begins, start):
            return True
        if is_phrase and self._is_test_file and _is_in_string(before):
            return True
        if _COMMENT.match(line):
            return (
                _THREAT_PATTERN.search(before) is not None
                or _NEGATION_PATTERN.search(before) is not None
            )
        return is_phrase and _is_in_string(before) and _EXAMPLES.search(before) is not None

    def _is_pattern_or_test_case(self, line: str, line_start: int, start: int) -> bool:
        """Whether a line of code has a text that is looked for: a pattern, or a case of a test.

        A text alone on its line may also be an argument; what it belongs to tells.
        """
        before = line[: start - line_start]
        if not _is_in_string(before):
            return False
        if _CHECK_TERMS.search(before):
            return True
        return (
            _STRING_LITERAL.match(line) is not None
            and _LIST_NAMES.search(self._find_opening_line(line_start)) is not None
        )

    def _find_opening_line(self, line_start: int) -> str:
        """The line that a more indented one belongs to; "" if there is none near."""
        above = self._text[max(0, line_start - _MAX_OPENER_DISTANCE) : line_start].split("\n")[:-1]
        end = self._text.find("\n", line_start)
        own = self._text[line_start : end if end >= 0 else line_start + _MAX_LINE_LENGTH][
            :_MAX_LINE_LENGTH
        ]
        indent = len(own) - len(own.lstrip())
        for line in reversed(above):
            if line.strip() and len(line) - len(line.lstrip()) < indent:
                return line[:_MAX_LINE_LENGTH]
        return ""


def _is_in_string(before: str) -> bool:
    return any(before.count(mark) % 2 for mark in "\"'`")


def _starts_block(text: str) -> bool:
    return _ITEM.match(text) is not None or text.lstrip().startswith((">", "|", "#"))


def _is_quote_open(before: str, opening: str, closing: str) -> bool:
    return before.rfind(opening) > before.rfind(closing)


def _read_lines(text: str) -> Iterator[_MarkdownLine]:
    fence, mark, is_table = -1, "", False
    headings: list[tuple[int, str]] = []
    at = 0
    for number, line in enumerate(text.split("\n")):
        found = _FENCE.match(line)
        if fence < 0 and (heading := _HEADING.match(line)):
            level = len(heading[1]) if heading[1] else _BOLD_LEVEL
            headings = [one for one in headings if one[0] < level]
            headings.append((level, heading[2] or heading[3] or ""))
        title = " / ".join(one for level, one in headings[-2:] if level > 1 or len(headings) == 1)
        is_table = "|" in line and (is_table or _DELIMITER.match(line) is not None)
        is_row = fence < 0 and not found and (is_table or _TABLE.match(line) is not None)
        if found and fence < 0:
            yield _MarkdownLine(at, line, -1, title)
            fence, mark = number, found[1]
        elif found and found[1][0] == mark[0] and len(found[1]) >= len(mark):
            fence = -1
            yield _MarkdownLine(at, line, -1, title)
        else:
            yield _MarkdownLine(at, line, fence, title, is_row)
        at += len(line) + 1
