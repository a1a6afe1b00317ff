"""Distinguishes text that instructs the reader from text that mentions an attack.

A skill about security quotes attacks, lists them in tables and says "never run …". Such matches
are mentions. They are reported in the info tier, which raises no alarm. They are not dropped, since
quotation marks could then hide an instruction.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from skillhall._internal.skill.risks.lazy_pattern import LazyPattern
from skillhall._internal.skill.risks.rule_engine import ScannedText

# Limits of the context that is searched, in characters unless noted. They bound the work
# per match; public skills need less.
_MAX_BEFORE = 240  # before the match, in its sentence
_MAX_AFTER = 120  # after the match, on its line
_MAX_QUOTE_LENGTH = 300
_MAX_LINE_LENGTH = 1000
_MAX_CHECKS = 1000  # matches of one file
_MAX_OPENER_DISTANCE = 3000  # between a line and the less indented line that it belongs to
_MAX_ROWS = 200  # lines of a table or quotation
_MAX_INTRODUCTION_LINES = 40  # lines between the match and the introduction of its list or code

_FENCE = LazyPattern(r"\s{0,12}(?:>\s?)?(`{3,}|~{3,})")
_HEADING = LazyPattern(r"\s{0,3}(#{1,6})\s+(.*)|\s{0,3}\*\*([^*\n]{2,80})\*\*:?\s*$")
_ITEM = LazyPattern(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s")
_TABLE = LazyPattern(r"\s{0,6}\|.*\|")
# The delimiter row of a table without outer bars.
_DELIMITER = LazyPattern(r"\s{0,6}:?-{2,}:?\s{0,4}\|[\s:|-]{2,200}$")
_BOLD_LEVEL = 7  # a bold line ranks below the six levels of headings
_SENTENCE_END = LazyPattern(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)[.!?:](?=[\s\"”'*_)])|[\u3002\uff01\uff1f]|\n\s*\n"
)
# Info strings of code blocks in languages for detection rules.
_RULE_LANGUAGE = LazyPattern(
    r"(?<=[`~])\s{0,3}(?:yara|yar|sigma|semgrep|snort|suricata|rego|falco)\b"
)
_FIELD = LazyPattern(r"\s*[\w-]{1,40}:\s*$")

# Words for attacks, and for detecting them.
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
_THREAT_PATTERN = LazyPattern(
    rf"\b(?:{_THREAT_TERMS})\b|\b(?:{_DETECTION_VERBS})|[{_WARNING_SYMBOLS}]"
)
_JUDGMENT_PATTERN = LazyPattern(
    rf"{_THREAT_PATTERN.pattern}|\b(?:problems?|risks?|concerns?|unreviewed|unverified|hard\s+to\s+audit)\b"
)
# Headings and introductions may also start with "never".
_PROHIBITION_PATTERN = LazyPattern(
    rf"\b(?:{_THREAT_TERMS})\b|\b(?:{_DETECTION_VERBS})|[{_WARNING_SYMBOLS}]|^[\s>*_#\d.)-]{{0,12}}(?:you\s+)?{_NEVER}\b"
    r"|\bwhat\s+not\s+to\b|\bnot\s+allowed\b|\bdon['’]ts\b"
)
_NEGATION_PATTERN = LazyPattern(
    rf"\b(?:{_NEVER}\s+(?:ever\s+|blindly\s+|just\s+|simply\s+)?"
    r"(?:run|use|execute|pipe|paste|type|do|accept|follow|obey|trust|allow|say|write|recommend"
    r"|suggest|install|send|copy|try|add|emit|generate|(?:pip|runn|us|execut|past|send|copy)ing)\b"
    r"|instead\s+of|rather\s+than)"
    r"\s+(?:[\w*_`\"'“-]{1,20}\s+){0,4}[*_`\"'“$(>\s-]{0,4}$"
)
_EXAMPLES = LazyPattern(
    r"\b(?:if\s+(?:someone|anyone|a\s+\w{1,16}|the\s+\w{1,16}|they|it)\s+(?:writes?|asks?|types?"
    r"|sends?|requests?|tr(?:y|ies)|claims?)|e\.g\.|such\s+as|for\s+example|for\s+instance|examples?|like|phrases?|patterns?|says?"
    r"|saying|reads|containing|contains|strings?|wording|variants?|called|attempts?\s+to)\b"
    r"[^.!?]{0,40}$"
)
# Reports of an incident, or of the result of a check.
_NARRATIVE_PATTERN = LazyPattern(
    r"\b(?:it|they|he|she|which|that|who|we|i|the|an?|this|our|its|their|these)\s+"
    r"(?:[\w`-]{1,24}\s+){0,3}(?:then\s+|also\s+|had\s+)?(?:ran|executed|sent|called|downloaded"
    r"|told|asked|instructed|contained|tried|attempted|claimed|posted|uploaded|logged|recorded"
    r"|captured|observed|showed|found|saw|caught|injected)\b"
    r"|\b(?:finds|matches|catches|reports)\b"
    r"|\b(?:that|which|who)\s+(?:\w{1,16}\s+)?(?:tell|ask|instruct|urge|tr(?:y|ies)|attempt|want|direct)"
    r"(?:s|ing)?\s+(?:[\w-]{1,16}\s+){0,3}to\s+$"
)
# "Lines like …", unless the sentence says to run them.
_COMPARISON_PATTERN = LazyPattern(r"\b\w{2,24}\s+(?:such\s+as|like)\s[^.]{0,20}$")
_RUN_INSTRUCTION = LazyPattern(
    r"(?:^|[,:;(]\s|\b(?:then|please|just|simply|you|can|should|must|now|first|to)\s)\W{0,8}"
    r"(?:run|use|execute|try|type|enter|paste|install|start|do|call)\b"
)
_REFUSAL_PATTERN = LazyPattern(rf"\b(?:{_NEVER}|without|not)\s+(?:ever\s+)?[*_`\"'“]{{0,3}}$")
_URL = LazyPattern(r"https?://\S{1,500}")
_STEPS = LazyPattern(r"\b(?:steps?|setup|set\s+up|install\w*|run\s+this)\b")
_QUESTION = LazyPattern(r"[^.!]{0,200}\?(?=\s|$)")
_CALLOUT = LazyPattern(r"\s*>\s*(?:\[!|\*\*|[A-Z]{3,12}:)", re.IGNORECASE)
_COMMENT_START = LazyPattern(r"\s(?:#|//|←|<--?|→|->|=>|—|–|--)\s|\s\(|`\)?[\s,]")
_CODE_COMMENT_START = LazyPattern(r"\s(?:#|//|←|<--)\s")
_QUOTE_PAIRS = {"“": "”", "«": "»", "「": "」", "\u2018": "’", "『": "』"}
# In source files: lines with only a string, as in lists of patterns and test cases.
_STRING_LITERAL = LazyPattern(
    r"""\s*[\[({]?\s*[rbuf]{0,2}["'`].*["'`]\s*[\])}]{0,2}[,;]?\s*(?:(?:#|//).*)?$"""
)
_CHECK_TERMS = LazyPattern(
    r"\b(?:patterns?|regex\w*|re\.(?:compile|search|match|findall)|assert\w*|expect|detect\w*"
    r"|includes?|match(?:es)?|test\w*|blocked|deny|suspicious|malicious|injection\w*|attacks?)\b"
)
# Names of lists of patterns and test cases.
_LIST_NAMES = LazyPattern(
    r"patterns?|regex|rules|detect|block|deny|suspicious|malicious|injection|attack|payload|danger"
    r"|forbidden|unsafe|specimen|cases|samples|examples|corpus|threat|signatures|strings|parametrize"
)
_COMMENT = LazyPattern(r"\s*(?:#(?!!)|//|\*|--|;|<!--|\"\"\"|''')")
_TEST_FILE = LazyPattern(
    r"(?:^|/)(?:tests?|__tests__|specs?|fixtures?|evals?|examples/attacks)/|(?:^|/)test_[^/]*$"
    r"|[._-](?:test|spec|eval|evals|cases)\.\w{1,5}$|(?:^|/)evals?\.\w{1,5}$"
)


class _MarkdownLine(NamedTuple):
    """A line of Markdown and its context."""

    start: int
    text: str
    fence: int  # line number of the opening fence; -1 outside code
    headings: str  # the nearest heading and its parent
    is_row: bool = False  # row of a table

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())


class MentionDetector:
    """Distinguishes instructions from mere mentions of attacks in one file."""

    def __init__(self, lines: ScannedText, path: str, *, is_markdown: bool) -> None:
        self._text = lines.lower
        self._is_markdown = is_markdown
        self._check_count = 0
        self._is_test_file = _TEST_FILE.search(path.lower()) is not None

    def is_mention(self, start: int, *, is_phrase: bool) -> bool:
        """Whether the match at `start` is only a mention.

        Quotation marks make a phrase a mention, but not a command: commands are also quoted when
        the reader should run them.
        """
        self._check_count += 1
        # Over the limit, every match counts as a use.
        if self._check_count > _MAX_CHECKS:
            return False
        if not self._is_markdown:
            return self._is_mention_in_source(start, is_phrase=is_phrase)
        return self._is_mention_in_markdown(start, is_phrase=is_phrase)

    def _is_mention_in_markdown(self, start: int, *, is_phrase: bool) -> bool:
        number = bisect_right(self._starts, start) - 1
        line = self._lines[number]
        if line.is_row:
            # A table mentions things, unless its first row says that it has steps to follow.
            first_row = self._go_up(number, lambda other: other.is_row)
            return _STEPS.search(self._lines[first_row].text) is None
        before = _URL.sub(" ", self._sentence_before(line, start))
        cues = (_THREAT_PATTERN, _NEGATION_PATTERN, _NARRATIVE_PATTERN)
        if any(cue.search(before) for cue in cues):
            return True
        if _COMPARISON_PATTERN.search(before) and _RUN_INSTRUCTION.search(before) is None:
            return True
        text = line.text[:_MAX_LINE_LENGTH]
        if line.fence >= 0 and self._is_pattern_or_test_case(text, line.start, start):
            return True
        if is_phrase and self._is_cited(number, start, before):
            return True
        introductions = self._find_introductions(number)
        return self._is_judged_after(line, start, before) or any(
            _PROHIBITION_PATTERN.search(_URL.sub(" ", text)) for text in introductions
        )

    def _is_cited(self, number: int, start: int, before: str) -> bool:
        """Whether a phrase is cited: quoted, refused, an example, or part of a question."""
        line = self._lines[number]
        if line.fence >= 0:
            return False
        if line.text.lstrip().startswith(">") and not _CALLOUT.match(line.text):
            first = self._go_up(number, lambda other: other.text.lstrip().startswith(">"))
            above = "".join(other.text for other in self._lines[max(0, first - 2) : first])
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
        """Return the sentence up to `start`; in code, only its line."""
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
            is_text = above.text.strip() and not above.is_row and above.fence < 0
            # The end of the frontmatter: a skill's name must not explain its first command.
            is_rule = above.text.strip() == "---"
            if not is_text or is_rule or _HEADING.match(above.text):
                break
            number -= 1
        return self._lines[number].start

    def _is_quoted(self, line: _MarkdownLine, start: int) -> bool:
        began = max(self._paragraph_start(line), start - _MAX_QUOTE_LENGTH)
        before, after = self._text[began:start], self._text[start : start + _MAX_QUOTE_LENGTH]
        after = after.partition("\n\n")[0]
        for mark in ('"', "`"):
            opened = before.count(mark) % 2 == 1 and mark in after
            # The quoted value of a field (`key: "…"`) is not a citation.
            if opened and not _FIELD.fullmatch(before.rpartition(mark)[0]):
                return True
        for opening, closing in _QUOTE_PAIRS.items():
            if before.rfind(opening) > before.rfind(closing) and closing in after:
                return True
        opened_at = re.search(r"(?:^|[\s(\[:])'(?=[^'\n]*$)", before)
        return opened_at is not None and re.search(r"\w[.!?,…]{0,3}'(?!\w)", after) is not None

    def _go_up(self, number: int, belongs: Callable[[_MarkdownLine], bool]) -> int:
        """Return the number of the first line of the table or quotation around a line."""
        top = max(0, number - _MAX_ROWS)
        while number > top and belongs(self._lines[number - 1]):
            number -= 1
        return number

    def _is_judged_after(self, line: _MarkdownLine, start: int, before: str) -> bool:
        """Whether the rest of the line calls the match an attack.

        After an instruction, the match is a use: "run this; some tools call it dangerous".
        """
        rest = self._text[start : line.start + len(line.text)][:_MAX_LINE_LENGTH]
        if line.fence >= 0:
            opening = _CODE_COMMENT_START.search(rest)
        elif _RUN_INSTRUCTION.search(before):
            return False
        else:
            opening = _COMMENT_START.search(rest)
        comment = rest[opening.end() :][:_MAX_AFTER] if opening else ""
        return _JUDGMENT_PATTERN.search(_URL.sub(" ", comment)) is not None

    def _find_introductions(self, number: int) -> Iterator[str]:
        """Yield headings and the lines that introduce the list, quotation or code."""
        line = self._lines[number]
        yield line.headings
        if line.fence >= 0:
            # Comments on the line and on the two lines above.
            near = self._lines[max(line.fence + 1, number - 2) : number + 1]
            yield from (other.text for other in reversed(near) if _COMMENT.match(other.text))
            yield _RULE_LANGUAGE.sub("detects", self._lines[line.fence].text)
        # Code belongs to a list item of any indent.
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
                if other.indent < indent or line.fence >= 0:
                    yield other.text
                    indent = other.indent
                continue
            if other.indent and other.indent >= indent:
                continue
            if other.text.rstrip(" *_").endswith((":", "\uff1a")) or line.fence >= 0:
                text = self._text[self._paragraph_start(other) : other.start + len(other.text)]
                yield re.split(r"[.!?]\s", text.rstrip(" *_:"))[-1]
            return

    def _is_mention_in_source(self, start: int, *, is_phrase: bool) -> bool:
        line_start = self._text.rfind("\n", 0, start) + 1
        end = self._text.find("\n", start)
        line_start = max(line_start, start - _MAX_LINE_LENGTH // 2)
        line = self._text[line_start : end if end >= 0 else len(self._text)][:_MAX_LINE_LENGTH]
        before = line[: start - line_start]
        if self._is_pattern_or_test_case(line, line_start, start):
            return True
        if is_phrase and self._is_test_file and _is_in_string(before):
            return True
        if _COMMENT.match(line):
            return any(cue.search(before) for cue in (_THREAT_PATTERN, _NEGATION_PATTERN))
        return is_phrase and _is_in_string(before) and _EXAMPLES.search(before) is not None

    def _is_pattern_or_test_case(self, line: str, line_start: int, start: int) -> bool:
        """Whether the match is in a string that code searches for or tests with.

        A string alone on its line may also be an argument: the opening line above decides.
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
        """Return the nearest less indented line above, or ""."""
        above = self._text[max(0, line_start - _MAX_OPENER_DISTANCE) : line_start].split("\n")[:-1]
        end = self._text.find("\n", line_start)
        limit = line_start + _MAX_LINE_LENGTH
        line = self._text[line_start : min(end, limit) if end >= 0 else limit]
        indent = len(line) - len(line.lstrip())
        for other in reversed(above):
            if other.strip() and len(other) - len(other.lstrip()) < indent:
                return other[:_MAX_LINE_LENGTH]
        return ""


def _is_in_string(before: str) -> bool:
    return any(before.count(mark) % 2 for mark in "\"'`")


def _starts_block(text: str) -> bool:
    return _ITEM.match(text) is not None or text.lstrip().startswith((">", "|", "#"))


def _read_lines(text: str) -> Iterator[_MarkdownLine]:
    fence, mark, is_table = -1, "", False
    headings: list[tuple[int, str]] = []
    at = 0
    for number, line in enumerate(text.split("\n")):
        opening = _FENCE.match(line)
        if fence < 0 and (heading := _HEADING.match(line)):
            level = len(heading[1]) if heading[1] else _BOLD_LEVEL
            headings = [parent for parent in headings if parent[0] < level]
            headings.append((level, heading[2] or heading[3] or ""))
        # The title of the document (level 1) says nothing about a section.
        title = " / ".join(text for level, text in headings[-2:] if level > 1 or len(headings) == 1)
        is_table = "|" in line and (is_table or _DELIMITER.match(line) is not None)
        is_row = fence < 0 and not opening and (is_table or _TABLE.match(line) is not None)
        if opening and fence < 0:
            yield _MarkdownLine(at, line, -1, title)
            fence, mark = number, opening[1]
        elif opening and opening[1].startswith(mark):
            fence = -1
            yield _MarkdownLine(at, line, -1, title)
        else:
            yield _MarkdownLine(at, line, fence, title, is_row)
        at += len(line) + 1
